"""What ``ramify train --auto`` finds beside the best system that is found by hand: ``python benchmarks/auto.py --data DIR``.

DIR holds corpora in folders of their own: train.*, test.* and taxonomy.tsv. By hand: every system that can take the documents,
as it is by default and, where it has a C that is not, with that chosen by cross-validation; the best on the test documents
counts, which is more than anybody could know who chooses. The system that is trained without any option has a column of its
own. Then the command itself, from its start to its end, with some numbers of minutes; it never sees the test documents before
its report. Figures are micro F1 of most specific labels on the test documents, as in ``ramify compare``; with one label a
document that is accuracy. Missing values of vectors are filled with means first.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from measuring import host_facts
from scipy.sparse import csr_array
from timing import show, timed

import ramify
from ramify.classifier import TextClassifier
from ramify.data import Corpus, read_corpus
from ramify.errors import RamifyError
from ramify.metrics.resampling import MEASURES, from_sums, measure_rows, modified_classes
from ramify.parallel import OutOfTime, deadline_at, single_stage
from ramify.systems import DEFAULT_SYSTEM, SYSTEMS
from ramify.taxonomy import Taxonomy, read_taxonomy
from ramify.workflows import train_classifier
from ramify.workflows.reading import adapt_corpus

NAMES = ("20news_bydate", "arxiv_small", "esco_titles", "cellcycle_go", "imclef07a", "medical_cmc2007", "reuters21578_90")
COLUMNS = (
    "corpus",
    "default",
    "best by hand",
    "micro F1",
    "minutes",
    "selected",
    "micro F1",
    "difference",
    "seconds",
    "in time",
)

Problem = tuple[Corpus, Corpus, Taxonomy]
Figures = dict[str, Any]


def main() -> None:
    """Measure every corpus by hand and with every number of minutes, and keep what was measured."""
    given = parse()
    results = json.loads(given.out.read_text()) if given.out and given.out.is_file() else {}
    results["machine"] = host_facts()
    for name in given.corpus or NAMES:
        folder = given.data / name
        if not folder.is_dir():
            print(f"{folder} is not there, so it is left out", file=sys.stderr)
            continue
        rows = results.setdefault(name, {"hand": {}, "auto": {}})
        for key, figures in measure(folder, rows, given):
            print(f"{name}: {key}: {figures}", file=sys.stderr, flush=True)
            if given.out:
                given.out.write_text(json.dumps(results, indent=1))
    tell({name: rows for name, rows in results.items() if name != "machine"})


def measure(folder: Path, rows: Figures, given: argparse.Namespace) -> Iterator[tuple[str, Figures]]:
    """What was not measured yet, or all of it anew."""
    problem = read_problem(folder)
    for row in by_hand() if given.hand else ():
        if given.again or row not in rows["hand"]:
            rows["hand"][row] = hand_row(row, problem, given)
            yield row, rows["hand"][row]
    for minutes in given.minutes:
        if given.again or str(minutes) not in rows["auto"]:
            rows["auto"][str(minutes)] = auto_row(minutes, problem, given)
            yield f"{minutes:g} minutes", rows["auto"][str(minutes)]


# ---- by hand ------------------------------------------------------------------------------------------------------------


def by_hand() -> Iterator[str]:
    """Every system, and every system that has a C with that chosen."""
    for name, system in SYSTEMS.items():
        yield name
        learner = system.learner()
        if learner.get_params().get("C", "auto") != "auto" and getattr(learner, "base", "svm") == "svm":
            yield f"{name}:C=auto"


def hand_row(row: str, problem: Problem, given: argparse.Namespace) -> Figures:
    """One system; what cannot take the documents, or takes too long, keeps its row with the reason."""
    learn, tested, taxonomy = problem
    name, _, chosen = row.partition(":")
    learner = SYSTEMS[name].learner().set_params(**({"C": "auto"} if chosen else {}))
    classifier = TextClassifier(name, taxonomy, learner=learner, calibrate=False, n_jobs=given.threads)
    try:
        with single_stage("by hand"), deadline_at(None if given.limit is None else time.monotonic() + given.limit):
            seconds, trained = timed(lambda: train_classifier(classifier, learn, holdout=0))
    except OutOfTime:
        return {"reason": f"took more than {given.limit:g} s"}
    except RamifyError as error:
        return {"reason": str(error)}
    return {"micro_f1": micro_f1(trained.classifier, tested, taxonomy), "seconds": seconds}


# ---- the command --------------------------------------------------------------------------------------------------------


def auto_row(minutes: float, problem: Problem, given: argparse.Namespace) -> Figures:
    """The command from start to end, and its model on the test documents."""
    learn, tested, taxonomy = problem
    with tempfile.TemporaryDirectory() as scratch:
        files = {part: write(corpus, Path(scratch) / part) for part, corpus in (("train", learn), ("test", tested))}
        (Path(scratch) / "taxonomy.tsv").write_text("".join(edges(taxonomy)), encoding="utf-8")
        command = [Path(sys.executable).with_name("ramify"), "train", files["train"], "--test", files["test"], "--auto"]
        command += ["--taxonomy", Path(scratch) / "taxonomy.tsv", "--minutes", minutes, "--threads", given.threads, "--json"]
        command += ["-m", Path(scratch) / "model"]
        seconds, done = timed(lambda: subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False))
        if done.returncode:
            return {"reason": done.stderr.strip().splitlines()[-1], "seconds": seconds}
        tuning = json.loads(done.stdout)["tuning"]
        figure = micro_f1(ramify.load(Path(scratch) / "model"), tested, taxonomy)
    chosen = f"{tuning['default']['settings']} (default)" if tuning["keeps_default"] else tuning["trials"][0]["settings"]
    winner = tuning["winner"] | {"settings": chosen, "replaced": tuning["replaced"]}
    return {
        "micro_f1": figure,
        "seconds": seconds,
        "winner": winner,
        "default": tuning["default"],
        "keeps_default": tuning["keeps_default"],
        "lacks_calibration": tuning["lacks_calibration"],
        "tried": len(tuning["trials"]),
        "winning": tuning["winning"],
    }


def write(corpus: Corpus, path: Path) -> Path:
    """A corpus as a file that the command reads."""
    if not corpus.has_vectors:
        lines = (
            json.dumps({"text": text, "labels": labels}) for text, labels in zip(corpus.documents, corpus.labels, strict=True)
        )
        path = path.with_suffix(".jsonl")
    else:
        rows = (corpus.documents[[i]] for i in range(len(corpus)))
        values = (" ".join(f"{j}:{v:.9g}" for j, v in zip(row.indices, row.data, strict=True)) for row in rows)
        lines = (f"{','.join(labels)} {row}" for labels, row in zip(corpus.labels, values, strict=True))
        path = path.with_suffix(".svm")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def edges(taxonomy: Taxonomy) -> Iterator[str]:
    """The lines of a table of children and parents."""
    for node, name in enumerate(taxonomy.names):
        parents = taxonomy.parent_nodes[taxonomy.parent_offsets[node] : taxonomy.parent_offsets[node + 1]]
        yield from (f"{name}\t{taxonomy.names[parent]}\n" for parent in parents)
        if not len(parents):
            yield f"{name}\tROOT\n"


# ---- figures ------------------------------------------------------------------------------------------------------------


def read_problem(folder: Path) -> Problem:
    """Documents to train on and to test on, without missing values."""
    taxonomy = read_taxonomy(folder / "taxonomy.tsv")
    learn, tested = (
        read_corpus(next(folder.glob(f"{part}.*")), is_label=taxonomy.__contains__).labelled() for part in ("train", "test")
    )
    if learn.has_vectors:
        tested = tested.with_width(learn.documents.shape[1])
        if np.isnan(learn.documents.data).any():
            means = np.nanmean(learn.documents.toarray(), axis=0)
            learn, tested = filled(learn, means), filled(tested, means)
    return learn, tested, taxonomy


def filled(corpus: Corpus, means: Any) -> Corpus:
    """Vectors with means in the place of missing values."""
    X = corpus.documents.toarray()
    return replace(corpus, documents=csr_array(np.where(np.isnan(X), means, X).astype(np.float32)))


def micro_f1(classifier: TextClassifier, tested: Corpus, taxonomy: Taxonomy) -> float:
    """Micro F1 over the classes of the modified hierarchy, as a comparison measures it."""
    truth = taxonomy.encode(tested.labels)
    answers = classifier.predict_matrix(adapt_corpus(classifier, tested).documents)
    rows = measure_rows(truth, answers, taxonomy, modified_classes(truth, taxonomy))
    return float(from_sums(np.asarray(rows.sum(axis=0)).ravel())[MEASURES.index("micro_f1")])


def tell(results: dict[str, Figures]) -> None:
    """One line a corpus and number of minutes."""
    show(COLUMNS)
    show(["---"] * len(COLUMNS))
    for name, rows in results.items():
        hand = {row: figures["micro_f1"] for row, figures in rows["hand"].items() if "micro_f1" in figures}
        best = max(hand, key=lambda row: hand[row], default=None)
        for minutes, auto in sorted(rows["auto"].items(), key=lambda each: float(each[0])):
            default = f"{100 * hand[DEFAULT_SYSTEM]:.2f}" if DEFAULT_SYSTEM in hand else "–"
            show([name, default, *line(best, hand, float(minutes), auto)])


def line(best: str | None, hand: dict[str, float], minutes: float, auto: Figures) -> Iterator[str]:
    """The cells of a line behind the name of the corpus and the default."""
    yield from ("–", "–") if best is None else (best, f"{100 * hand[best]:.2f}")
    yield f"{minutes:g}"
    if "micro_f1" not in auto:
        yield from (auto["reason"], "–", "–")
    else:
        apart = "–" if best is None else f"{100 * (auto['micro_f1'] - hand[best]):+.2f}"
        yield from (auto["winner"]["settings"], f"{100 * auto['micro_f1']:.2f}", apart)
    yield from (f"{auto['seconds']:.0f}", "yes" if auto["seconds"] <= 60 * minutes else "NO")


def parse() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="where the folders of the corpora are")
    parser.add_argument("--corpus", action="append", help="a folder; all that are known without it")
    parser.add_argument("--minutes", type=float, nargs="*", default=[1.0, 2.0, 5.0])
    parser.add_argument("--hand", action=argparse.BooleanOptionalAction, default=True, help="measure systems by hand, too")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds that a system may take by hand")
    parser.add_argument("--threads", type=int, default=-1)
    parser.add_argument("--out", type=Path, help="keep results here; what is there already is not measured again")
    parser.add_argument("--again", action="store_true", help="measure everything anew")
    return parser.parse_args()


if __name__ == "__main__":
    main()
