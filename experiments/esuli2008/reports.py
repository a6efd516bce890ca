"""Clinical reports, by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from experiments.esuli2008.material import Ints, clean, make_vectorizer
from experiments.esuli2008.measuring import Row
from experiments.esuli2008.rounds import rounds_of
from experiments.study import Run
from ramify.learners import AdaBoostMH, TreeBoostMH
from ramify.metrics import modified_f1
from ramify.metrics.flat import per_node
from ramify.parallel import choose_executor
from ramify.taxonomy import Taxonomy

FOLDS = 10


def run_medical(run: Run) -> Row:
    """F1 of answers that each report got from learners that had not seen it."""
    data = run.corpus("medical")
    reports, tree = data.pooled(), data.taxonomy
    texts = None if reports.has_vectors else clean(reports.documents, keeps_numbers=False)
    X = reports.documents if texts is None else make_vectorizer("binary").fit_transform(texts)
    Y = tree.encode(reports.labels)
    folds = np.array_split(np.random.default_rng(run.seed).permutation(len(reports)), run.choose(FOLDS, FOLDS, 2))
    n_leaves, sizes = int(tree.is_leaf.sum()), per_node(Y)[tree.is_leaf]
    found: Row = {"documents": len(reports), "leaves": n_leaves, "inner": len(tree) - n_leaves, "folds": len(folds)}
    found |= {"terms": len(np.unique(X.indices)), "mean size": float(sizes.mean()), "largest size": int(sizes.max())}
    for way, learner in {"adaboost": AdaBoostMH, "learnt": TreeBoostMH}.items():
        make = partial(learner, tree, n_rounds=max(rounds_of(run)), n_jobs=1)
        found[way] = run.keep(way, partial(cross_validate, make, X, Y, folds, tree, run))
    return found


def cross_validate(make: Callable[[], Any], X: csr_array, Y: csr_array, folds: list[Ints], tree: Taxonomy, run: Run) -> Row:
    """F1 over the answers of all folds together, after every number of rounds."""
    rounds = rounds_of(run)

    def predict(test: Ints) -> list[csr_array]:
        rest = np.setdiff1d(np.arange(X.shape[0]), test)
        learnt = make().fit(X[rest], Y[rest])
        return [learnt.at_round(s).predict_sets(X[test]) for s in rounds]

    parts = list(choose_executor(run.threads).map(predict, folds))
    return pooled(parts, Y[np.concatenate(folds)], tree, rounds)


def pooled(parts: list[list[csr_array]], true: csr_array, tree: Taxonomy, rounds: Sequence[int]) -> Row:
    """F1 of the answers of all folds, which stand in the order of the truth."""
    rows = {}
    for k, s in enumerate(rounds):
        given = csr_array(np.concatenate([part[k].toarray() for part in parts]))
        scores = modified_f1(true, given, tree).all
        rows[str(s)] = {"micro": scores.micro_f1, "macro": scores.macro_f1}
    return rows
