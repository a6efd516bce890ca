"""Labels made wrong on purpose, and how many of them are among the first label issues of ``ramify audit`` and of cleanlab.

    python benchmarks/auditing.py --data DIR [--problems 20news_bydate esco_titles arxiv_small directory-200] [--seeds 0 1 2]

Of the labels 5 % move to a sibling of their class and 2 % to any other class. Ramify audits the corpus; cleanlab's
confident learning ranks it by out-of-sample probabilities of the same folds: those of scikit-learn's
LogisticRegression, as its documentation does it, and those of Ramify's own learners. Of cleanlab's three rankings the
best one counts, chosen by the answers. Labels that were wrong from the beginning count against both alike. The time of
an audit is told in trainings of the same system on the same documents, features included, measured before and after it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from datasets import DIRECTORIES
from environments import HERE, InstallError, Row, python_for
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, save_npz
from timing import head, show, timed

from ramify import Taxonomy, TextClassifier
from ramify.data import Corpus, make_web_directory
from ramify.features import Vectors
from ramify.systems import find_system
from ramify.taxonomy import most_specific, read_taxonomy
from ramify.workflows import Audit, audit
from ramify.workflows.auditing.out_of_fold import OutOfFold, fit_folds
from ramify.workflows.folds import split_into_folds
from ramify.workflows.training import new_learner, parse_system, prepared

CLEANLAB = Row("cleanlab", "cleanlab_ranking", ("cleanlab==2.9.0", "scikit-learn==1.9.1", "scipy==1.17.1", "numpy==2.4.6"))
FIRST = (50, 200, 500)
Nodes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Spoiled:
    """A corpus with wrong labels, and which labels are."""

    corpus: Corpus
    taxonomy: Taxonomy
    labels: Nodes
    is_wrong: NDArray[np.bool_]


def main() -> None:
    """A table for every problem; the mean of all seeds."""
    given = _parse()
    python = find_cleanlab(given.envs)
    for name in given.problems:
        rows: dict[str, list[list[float]]] = {}
        for seed in given.seeds:
            spoiled = spoil(*read_problem(name, given.data, given.documents), given.sibling, given.anywhere, seed)
            for row, figures in measure(spoiled, given, python).items():
                rows.setdefault(row, []).append(figures)
        n_classes, n_wrong = len(np.unique(spoiled.labels)), int(spoiled.is_wrong.sum())
        about = f"{len(spoiled.corpus):,} documents, {n_classes:,} classes, {n_wrong:,} labels made wrong"
        head(f"{name}: {about}, {len(given.seeds)} seeds", "row", *(f"first {n}" for n in FIRST), "trainings", "seconds")
        for row, figures in rows.items():
            means = np.mean(figures, axis=0)
            times = ("–" if np.isnan(mean) else f"{mean:.2f}" for mean in means[-2:])
            show([row, *(f"{mean:.3f}" for mean in means[:-2]), *times])


# ---- problems -----------------------------------------------------------------------------------------------------------


def read_problem(name: str, data: Path | None, most: int) -> tuple[Any, Nodes, Taxonomy]:
    """Documents with one class each, some of them drawn, and the taxonomy."""
    if name in DIRECTORIES:
        made = make_web_directory(DIRECTORIES[name].n_leaves, min(most, 40 * DIRECTORIES[name].n_leaves), seed=0)
        return made.X, most_specific(made.Y, made.taxonomy).indices.astype(np.int64), made.taxonomy
    if data is None or not (data / name / "train.jsonl.gz").is_file():
        raise SystemExit(f"no problem {name!r}; there are {', '.join(DIRECTORIES)}, and corpora below --data DIR.")
    taxonomy = read_taxonomy(data / name / "taxonomy.tsv")
    with gzip.open(data / name / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if len(row["labels"]) == 1]
    chosen = [rows[i] for i in np.sort(np.random.default_rng(0).permutation(len(rows))[:most])]
    texts = [row["text"].partition("\n\n")[2] if name == "20news_bydate" else row["text"] for row in chosen]
    return texts, np.asarray([taxonomy.index(row["labels"][0]) for row in chosen]), taxonomy


def spoil(documents: Any, nodes: Nodes, taxonomy: Taxonomy, sibling: float, anywhere: float, seed: int) -> Spoiled:
    """Move some labels to a sibling that documents have, and some anywhere."""
    rng, classes, labels = np.random.default_rng(seed), np.unique(nodes), nodes.copy()
    order, n = rng.permutation(len(nodes)), len(nodes)
    near, far = order[: round(sibling * n)], order[round(sibling * n) : round((sibling + anywhere) * n)]
    parent = taxonomy.parent
    for i in near.tolist():
        others = classes[(parent[classes] == parent[nodes[i]]) & (classes != nodes[i])]
        labels[i] = rng.choice(others) if len(others) else nodes[i]
    for i in far.tolist():
        labels[i] = rng.choice(classes[classes != nodes[i]])
    names = [[taxonomy.names[node]] for node in labels]
    return Spoiled(Corpus("spoiled", documents, names), taxonomy, labels, labels != nodes)


# ---- measuring ----------------------------------------------------------------------------------------------------------


def measure(spoiled: Spoiled, given: argparse.Namespace, python: Path | None) -> dict[str, list[float]]:
    """Precision among the first label issues, time in trainings, and seconds, of every row."""
    rows: dict[str, list[float]] = {}
    for system in given.systems:
        rows[f"ramify audit, {system}"] = measure_audit(system, spoiled, given)
    if python is not None:
        rows |= measure_cleanlab(spoiled, given, python)
    return rows


def measure_audit(system: str, spoiled: Spoiled, given: argparse.Namespace) -> list[float]:
    """The same of one system."""

    def train() -> TextClassifier:
        return new_classifier(system, spoiled, given.threads).fit(spoiled.corpus.documents, spoiled.corpus.labels)

    def run_audit() -> Audit:
        return audit(new_classifier(system, spoiled, given.threads), spoiled.corpus, max_issues=max(FIRST), folds=given.folds)

    (before, _), (seconds, found), (after, _) = timed(train), timed(run_audit), timed(train)
    ranked = np.asarray([issue.document for issue in found.issues])
    return [*precisions(ranked, spoiled), 2 * seconds / (before + after), seconds]


def precisions(ranked: Nodes, spoiled: Spoiled) -> list[float]:
    """The share of labels that are wrong among the first ones; of all where there are fewer."""
    return [float(spoiled.is_wrong[ranked[:n]].mean()) if len(ranked) else 0.0 for n in FIRST]


def new_classifier(system: str, spoiled: Spoiled, threads: int) -> TextClassifier:
    """As ``ramify audit`` makes it; no calibration of its own, so that a training is just that."""
    name, params = parse_system(system)
    learner = new_learner(find_system(name), params)
    vectorizer = Vectors() if spoiled.corpus.has_vectors else None
    shared: dict[str, Any] = {"features": vectorizer, "learner": learner, "calibrate": False, "n_jobs": threads}
    return TextClassifier(name, spoiled.taxonomy, **shared)


# ---- cleanlab -----------------------------------------------------------------------------------------------------------


def find_cleanlab(envs: Path) -> Path | None:
    """The interpreter of its environment, where it can be installed."""
    try:
        return python_for(CLEANLAB, envs)
    except InstallError as error:
        print(f"cleanlab {error}", file=sys.stderr)
        return None


def measure_cleanlab(spoiled: Spoiled, given: argparse.Namespace, python: Path) -> dict[str, list[float]]:
    """Its rows, each with the best of its rankings."""
    system, corpus = given.systems[0], spoiled.corpus
    classifier, taxonomy = prepared(new_classifier(system, spoiled, given.threads), corpus)
    out_of_fold = fit_folds(classifier, corpus, split_into_folds(corpus, taxonomy, given.folds))
    classes = out_of_fold.classes
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_npz(folder / "X.npz", csr_matrix(out_of_fold.X))
        np.save(folder / "labels.npy", np.searchsorted(classes, spoiled.labels))
        np.save(folder / "fold.npy", out_of_fold.fold)
        np.save(folder / "ours.npy", flat_probabilities(out_of_fold, classes))
        command = [str(python), "-m", "peers.cleanlab_ranking", str(folder), "--c", *(f"{c:g}" for c in given.c)]
        subprocess.run(command, cwd=HERE, check=True)
        found = json.loads((folder / "ranked.json").read_text())
    rows = {}
    for row, figures in found["rows"].items():
        ranks = [precisions(np.asarray(ranked, dtype=np.int64), spoiled) for ranked in figures["ranked"].values()]
        rows[f"cleanlab, {row}"] = [*np.max(ranks, axis=0).tolist(), np.nan, figures["seconds"] or np.nan]
    return rows


def flat_probabilities(out_of_fold: OutOfFold, classes: Nodes) -> NDArray[np.float64]:
    """Out-of-fold probabilities of Ramify's learners, without a tree: documents × classes."""
    found = np.zeros((out_of_fold.own.shape[0], len(classes)))
    blocks = out_of_fold.blocks(np.arange(len(found)), lambda learner, scores: learner.to_probabilities(scores)[:, classes])
    for rows, P in blocks:
        found[rows] = np.maximum(np.nan_to_num(P, nan=0.0), 1e-9)
    return found / found.sum(axis=1, keepdims=True)


def _parse() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path)
    options.add_argument("--problems", nargs="+", default=["20news_bydate", "esco_titles", "arxiv_small", "directory-200"])
    options.add_argument("--documents", type=int, default=12_000, help="at most so many of each problem")
    options.add_argument("--systems", nargs="+", default=["lr:C=10", "svm"])
    options.add_argument("--sibling", type=float, default=0.05)
    options.add_argument("--anywhere", type=float, default=0.02)
    options.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options.add_argument("--folds", type=int, default=5)
    options.add_argument("--c", type=float, nargs="*", default=[1.0, 10.0], help="of scikit-learn's LogisticRegression")
    options.add_argument("--threads", type=int, default=-1)
    options.add_argument("--envs", type=Path, default=HERE / ".envs")
    return options.parse_args()


if __name__ == "__main__":
    main()
