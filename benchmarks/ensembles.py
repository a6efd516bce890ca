"""Averages of the calibrated probabilities of several systems, beside the default alone.

$ python benchmarks/ensembles.py --data DIR

No test document of a corpus is read: of its training documents, at most 14,000, a quarter is held out. Corpora with one label
per document; predicted is the most probable label. Prints a Markdown table: micro F1 / macro F1, and CPU seconds of training.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from defaults import Measured, percent, quality, read
from timing import head, show

from ramify import TextClassifier
from ramify.data import hold_out
from ramify.features import FeatureUnion
from ramify.systems import find_system
from ramify.taxonomy import Taxonomy, most_specific

CORPORA = ("clinc150", "esco_titles", "20news_bydate", "arxiv_small")
MOST = 14_000
MEMBERS: dict[str, dict[str, Any]] = {  # all but shrinkage-nb on words and characters
    "path-svm": {},
    "shrinkage-nb": {},
    "lr": {"features": FeatureUnion()},
    "hr-svm": {"features": FeatureUnion(), "learner": find_system("hr-svm").learner().set_params(loss="squared_hinge")},
}
ENSEMBLES = (
    ("path-svm",),
    ("path-svm", "shrinkage-nb"),
    ("path-svm", "lr"),
    ("path-svm", "hr-svm"),
    ("path-svm", "lr", "hr-svm"),
    tuple(MEMBERS),
)


def label_probabilities(P: Any, taxonomy: Taxonomy, labels: Any) -> Any:
    """P(a document's label is a node), from P(it is at or below a node)."""
    own = P.astype(np.float64)
    for node in range(len(taxonomy)):
        own[:, node] -= P[:, taxonomy.children_of(node)].sum(axis=1)
    return np.maximum(own[:, labels], 1e-9)


def measure(name: str, data: Path, seed: int) -> dict[tuple[str, ...], str]:
    """Each ensemble on one corpus."""
    taxonomy, corpus, _ = read(name, data)
    corpus = corpus.take(np.sort(np.random.default_rng(seed).permutation(len(corpus.documents))[:MOST]))
    train, held_out = (corpus.take(rows) for rows in hold_out(corpus.labels, 0.25, seed, corpus.documents))
    truth = taxonomy.encode(held_out.labels)
    measured = Measured(None, truth, taxonomy, {})  # type: ignore[arg-type]  # no rows of peers
    labels = np.unique(most_specific(taxonomy.encode(train.labels), taxonomy).indices)
    logs, seconds = {}, {}
    for member, parts in MEMBERS.items():
        start = time.process_time()
        fitted = TextClassifier(member, taxonomy, n_jobs=1, **parts).fit(list(train.documents), train.labels)
        seconds[member] = time.process_time() - start
        logs[member] = np.log(label_probabilities(fitted.predict_proba(list(held_out.documents)), taxonomy, labels))
    cells = {}
    for members in ENSEMBLES:
        best = labels[np.sum([logs[member] for member in members], axis=0).argmax(axis=1)]
        found = quality(measured, [[int(node)] for node in best])
        figures = f"{percent(found['micro_f1'])} / {percent(found['macro_f1'])}"
        cells[members] = f"{figures} ({sum(seconds[member] for member in members):.0f} s)"
    return cells


def main() -> None:
    """Print one row for each ensemble and deal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--corpus", action="append", choices=CORPORA, help="only this one; may be given again")
    parser.add_argument("--seeds", type=int, default=2, help="deals of the documents")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    names = given.corpus or CORPORA
    found = {(name, seed): measure(name, given.data, seed) for name in names for seed in range(given.seeds)}
    head("Geometric means of calibrated probabilities", "systems", *(f"{name}, deal {seed + 1}" for name, seed in found))
    for members in ENSEMBLES:
        show([", ".join(members), *(cells[members] for cells in found.values())])


if __name__ == "__main__":
    main()
