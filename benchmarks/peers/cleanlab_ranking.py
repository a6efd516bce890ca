"""cleanlab's confident learning: ``python -m peers.cleanlab_ranking FOLDER --c 1 10``.

FOLDER holds X.npz, documents × features, labels.npy and fold.npy, a class and a fold for each document, and ours.npy,
probabilities of documents × classes by Ramify's learners that have not seen them. As in cleanlab's documentation,
scikit-learn's LogisticRegression gives probabilities, too, of each fold by a model trained on the others. ranked.json
receives, for each way to get probabilities, the documents that `find_label_issues` names by each of its rankings, in
order, and the seconds for probabilities.
"""

import argparse
import json
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import numpy as np
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from scipy.sparse import csr_matrix, load_npz
from sklearn.linear_model import LogisticRegression

MOST = 500  # that are told
RANKINGS = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")


def main() -> None:
    """Rank by all probabilities that there are."""
    given = _parse()
    X = csr_matrix(load_npz(given.folder / "X.npz"))
    labels, fold, ours = (np.load(given.folder / f"{name}.npy") for name in ("labels", "fold", "ours"))
    found = {"version": version("cleanlab"), "rows": {}}
    found["rows"]["probabilities of ramify"] = {"ranked": _rank(labels, ours), "seconds": None}
    for C in given.c:
        learner = LogisticRegression(C=C, max_iter=400)
        start = perf_counter()
        probabilities = _out_of_fold(learner, X, labels, fold)
        seconds = perf_counter() - start
        found["rows"][f"LogisticRegression, C = {C:g}"] = {"ranked": _rank(labels, probabilities), "seconds": seconds}
    (given.folder / "ranked.json").write_text(json.dumps(found))


def _out_of_fold(learner, X, labels, fold):
    probabilities = np.full((len(labels), int(labels.max()) + 1), 1e-9)
    for k in np.unique(fold):
        fitted = learner.fit(X[fold != k], labels[fold != k])
        probabilities[np.ix_(fold == k, fitted.classes_)] = fitted.predict_proba(X[fold == k])
    return probabilities / probabilities.sum(axis=1, keepdims=True)


def _rank(labels, probabilities):
    """Issues by each ranking, and behind them the other documents by the same score."""
    ranked = {}
    for name in RANKINGS:
        issues = find_label_issues(labels, probabilities, return_indices_ranked_by=name, n_jobs=1)
        rest = np.argsort(get_label_quality_scores(labels, probabilities, method=name), kind="stable")
        ranked[name] = [*issues.tolist(), *rest[~np.isin(rest, issues)].tolist()][:MOST]
    return ranked


def _parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--c", type=float, nargs="*", default=[1.0])
    return parser.parse_args()


if __name__ == "__main__":
    main()
