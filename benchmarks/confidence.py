"""Whether probabilities mean what they say, and guarantees hold.

    python benchmarks/confidence.py --data DIR
    python benchmarks/confidence.py --data DIR --part coverage --corpus esco_titles --system svm
    python benchmarks/confidence.py --data DIR --part calibration --mixed

calibration: a system learns from the training documents; the error of its probabilities on the test documents stands beside
that before they were calibrated, for every level. --mixed deals all documents anew, so that test documents are like those
trained on: the given test parts of 20 newsgroups and arXiv are from later times.

coverage: the test documents are split 200 times into two halves, of which one serves to calibrate the guarantee, and the
other to see what came of it. With n documents in the first half and m in the second, and no two scores alike, the number of
answers that hold follows the beta-binomial law with m, k and n + 1 − k, where k = ⌈(n + 1)(1 − risk)⌉. The p-value is that of a
Kolmogorov–Smirnov test of the 200 numbers against that law; the mean over 20,000 splits tells luck from fault.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import betabinom, kstest

import ramify
from ramify.data import Corpus, read_corpus
from ramify.decisions.conformal import ConformalPaths
from ramify.metrics.calibration import is_covered, predicted_depth
from ramify.persistence import write_text_atomically
from ramify.workflows import evaluate

CORPORA = ("20news_bydate", "arxiv_small", "esco_titles")
SYSTEMS = ("svm", "hr-svm", "shrinkage-nb", "b-svm", "treeboost-mh")
RISKS = (0.1, 0.05, 0.01)
SPLITS, MANY = 200, 20_000


def main() -> None:
    """Measure, tell, and keep what was found."""
    given = _arguments()
    rows: list[dict[str, Any]] = []
    for corpus in given.corpus:
        taxonomy, train, test = read(given.data / corpus, given.mixed)
        for system in given.system:
            fitted = ramify.TextClassifier(system, taxonomy, n_jobs=-1).fit(train.documents, train.labels)
            for part, measure in PARTS.items():
                if given.part in (part, "all"):
                    rows += [{"corpus": corpus, "system": system, "part": part, **row} for row in measure(fitted, test)]
                    print(told(rows[-1]["part"], [row for row in rows if (row["corpus"], row["system"]) == (corpus, system)]))
    if given.out is not None:
        write_text_atomically(given.out, json.dumps(rows, indent=1) + "\n")


def read(folder: Path, mixed: bool) -> tuple[ramify.Taxonomy, Corpus, Corpus]:
    """A taxonomy, and documents to train on and to test on; of six topics, where there are such."""
    topical = folder / "taxonomy_topical6.tsv"
    taxonomy = ramify.read_taxonomy(topical if topical.exists() else folder / "taxonomy.tsv")
    train, test = (read_corpus(folder / f"{part}.jsonl.gz", is_label=taxonomy.__contains__) for part in ("train", "test"))
    if not mixed:
        return taxonomy, train, test
    both = replace(train.joined(test), lines=(), locations=None)
    order = np.random.default_rng(0).permutation(len(both))
    return taxonomy, both.take(order[: len(train)]), both.take(order[len(train) :])


def calibration_of(fitted: ramify.TextClassifier, test: Corpus) -> list[dict[str, Any]]:
    """How far off probabilities are at each level, and were before they were calibrated."""
    return evaluate(fitted, test).calibration


def coverage_of(fitted: ramify.TextClassifier, test: Corpus) -> list[dict[str, Any]]:
    """The guaranteed and the achieved risk, over many splits of the test documents."""
    taxonomy = fitted.taxonomy_
    Y, P = taxonomy.encode(test.labels), fitted.predict_proba(test.documents)
    whole = ConformalPaths.fit(P, Y, taxonomy)
    plain = float(predicted_depth(fitted.predict_matrix(test.documents), taxonomy).mean())
    return [_over_splits(whole, P, Y, taxonomy, risk, fitted.system) | {"depth_without_guarantee": plain} for risk in RISKS]


def _over_splits(whole: ConformalPaths, P: Any, Y: Any, taxonomy: ramify.Taxonomy, risk: float, name: str) -> dict[str, Any]:
    """A document's truth is held as long as the threshold is not below the mass at which it is lost.

    name: of the system, which has splits of its own, so that the luck of one is not that of all.
    """
    rng, n_documents = np.random.default_rng([*name.encode(), round(1000 * risk)]), len(P)
    n = n_documents // 2
    m, k = n_documents - n, math.ceil((n + 1) * (1 - risk) - 1e-9)
    held, depths = [], []
    for split in range(MANY):
        order = rng.permutation(n_documents)
        first, second = order[:n], order[n:]
        guarantee = ConformalPaths(whole.scores[first], whole.branches[first])
        covered = whole.scores[second, 0] <= guarantee.threshold(risk)
        held.append(int(covered.sum()))
        if split < 5:  # the answers themselves, to see that they say the same
            answers = guarantee.decide(P[second], taxonomy, risk)
            assert (is_covered(Y[second], answers, taxonomy) == covered).all()
            depths.append(float(predicted_depth(answers, taxonomy).mean()))
    law = betabinom(m, k, n + 1 - k)
    low, high = law.ppf(0.025), law.ppf(0.975)
    counts = np.asarray(held[:SPLITS])
    spread = law.cdf(counts - 1) + rng.random(SPLITS) * law.pmf(counts)  # even from 0 to 1, if the law holds
    return {
        "risk": risk,
        "guaranteed": 1 - risk,
        "achieved": float(counts.mean() / m),
        "achieved_in_many": float(np.mean(held) / m),
        "expected": k / (n + 1),
        "standard_error": float(law.std() / m / math.sqrt(SPLITS)),
        "inside_95": float(((counts >= low) & (counts <= high)).mean()),
        "p_value": float(kstest(spread, "uniform").pvalue),
        "depth": float(np.mean(depths)),
    }


PARTS = {"calibration": calibration_of, "coverage": coverage_of}


def told(part: str, rows: list[dict[str, Any]]) -> str:
    """The rows of a corpus and a system as lines of a table in Markdown."""
    lines = []
    for row in (row for row in rows if row["part"] == part):
        head = f"| {row['corpus']} | {row['system']} |"
        if part == "calibration":
            keys = ("pairs_uncalibrated", "pairs", "top_label_uncalibrated", "top_label")
            lines.append(f"{head} {row['depth'] + 1} | " + " | ".join(f"{row.get(key, math.nan):.4f}" for key in keys) + " |")
        else:
            shares = " | ".join(
                f"{row[key]:.4f}" for key in ("guaranteed", "expected", "achieved", "standard_error", "achieved_in_many")
            )
            law = f"{row['inside_95']:.1%} | {row['p_value']:.3f}"
            depth = f"{row['depth']:.2f} | {row['depth_without_guarantee'] - row['depth']:.2f}"
            lines.append(f"{head} {row['risk']:g} | {shares} | {law} | {depth} |")
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="The folder with the corpora.")
    parser.add_argument("--corpus", nargs="+", default=CORPORA)
    parser.add_argument("--system", nargs="+", default=SYSTEMS)
    parser.add_argument("--part", choices=(*PARTS, "all"), default="all")
    parser.add_argument("--mixed", action="store_true", help="Deal training and test documents anew.")
    parser.add_argument("--out", type=Path, help="Write the figures as JSON.")
    given = parser.parse_args()
    for corpus in given.corpus:
        if not (given.data / corpus / "taxonomy.tsv").exists():
            sys.exit(f"there is no {corpus} below {given.data}; name the folder with the corpora.")
    return given


if __name__ == "__main__":
    main()
