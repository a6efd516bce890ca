"""Boosting beside its slow oracles, on the same rounds: that of the tests, and sums by products of sparse matrices."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import numpy as np
from boosting_problems import Split, read_reuters
from environments import HERE
from numpy.typing import NDArray
from scipy.sparse import csr_array
from timing import Figures, head, interleaved, show, timed

from ramify.learners import AdaBoostMH, TreeBoostMH

GOAL = 20
COLUMNS = (
    "system",
    "variant",
    "documents",
    "terms",
    "classes",
    "rounds",
    "oracle",
    "oracle s",
    "ramify s",
    "times faster",
    "goal",
)
TIE = 1e-9


def compare_with_oracle(given: Namespace) -> tuple[list[Figures], list[str]]:
    """All rows, and what is wrong with them."""
    corpus = read_reuters(given.data / "reuters21578_90")
    small, rounds = corpus.some(40 if given.quick else 200), 3 if given.quick else 5
    rows = []
    head("Reuters-21578, one thread; both find the same pivots and votes.", *COLUMNS)
    for variant in ("R", "RA", "D"):
        rows.append(beside_tests(AdaBoostMH, variant, small, rounds, given.repeat))
    rows.append(beside_tests(TreeBoostMH, "R", small, rounds, given.repeat))
    rows.append(beside_products(corpus.some(300) if given.quick else corpus, 5 if given.quick else 32, given.repeat))
    slow = [row for row in rows if row["goal"] and row["times_faster"] < row["goal"]]
    return rows, [f"{row['system']} {row['variant']} is not {GOAL} times as fast as its oracle" for row in slow]


def beside_tests(learner: Any, variant: str, split: Split, n_rounds: int, repeat: int) -> Figures:
    """A row: the oracle of the tests once, and all its rounds compared."""
    sys.path.append(str(HERE.parent / "tests"))
    from oracles import boosting as oracle

    parents = [split.taxonomy.parents_of(node).tolist() for node in range(len(split.taxonomy))]
    labels = [set(split.Y.indices[a:b].tolist()) for a, b in zip(split.Y.indptr, split.Y.indptr[1:], strict=False)]
    slow = oracle.treeboost if learner is TreeBoostMH else oracle.adaboost
    seconds, expected = timed(lambda: slow(parents, split.X, labels, n_rounds, variant))
    fast = learner(split.taxonomy, n_rounds=n_rounds, variant=variant)
    row, fitted = time_ours(lambda: fast.fit(split.X, split.Y), repeat, "of the tests", seconds)
    found = {committee.node: committee for committee in fitted.committees_}
    oracles = expected.committees if learner is TreeBoostMH else {-1: expected}
    assert found.keys() == oracles.keys()
    for node, committee in oracles.items():
        oracle.check_same(found[node], committee)
    return finish(row, fast, split, GOAL)


def beside_products(split: Split, n_rounds: int, repeat: int) -> Figures:
    """A row: all sums of all rounds made anew by two products of sparse matrices, and the pivots compared."""
    fast = AdaBoostMH(split.taxonomy, n_rounds=n_rounds).fit(split.X, split.Y)
    positive = split.Y[:, fast.class_nodes_].toarray().astype(bool)
    seconds, pivots = timed(lambda: boost_by_products(split.X, positive, n_rounds))
    row, fitted = time_ours(lambda: fast.fit(split.X, split.Y), repeat, "products of matrices", seconds)
    assert fitted.committees_[0].pivots.tolist() == pivots
    return finish(row, fast, split, None)


def boost_by_products(X: csr_array, positive: NDArray[np.bool_], n_rounds: int) -> list[int]:
    """Pivots of AdaBoost.MH with real-valued votes."""
    by_term = csr_array(X.T.astype(np.float64))
    has = X.tocsc().astype(bool)
    epsilon = 1 / positive.size
    D, y, pivots = np.full(positive.shape, epsilon), np.where(positive, 1.0, -1.0), []
    for _ in range(n_rounds):
        plus, minus = D * positive, D * ~positive
        present = np.stack([by_term @ plus, by_term @ minus])
        absent = np.maximum(np.stack([plus.sum(axis=0), minus.sum(axis=0)])[:, None] - present, 0)
        z = 2 * (np.sqrt(present.prod(axis=0)) + np.sqrt(absent.prod(axis=0))).sum(axis=1)
        pivot = int(np.flatnonzero(z <= z.min() * (1 + TIE))[0])
        with_it, without = (0.5 * np.log((W[0, pivot] + epsilon) / (W[1, pivot] + epsilon)) for W in (present, absent))
        D *= np.exp(-y * np.where(has[:, [pivot]].toarray(), with_it, without))
        pivots.append(pivot)
        D /= D.sum()
    return pivots


def time_ours(fit: Callable[[], Any], repeat: int, oracle: str, oracle_seconds: float) -> tuple[Figures, Any]:
    """The times of a row, and what was learnt."""
    ((seconds, fitted),) = interleaved([fit], max(3, repeat))
    row = {"oracle": oracle, "oracle_seconds": oracle_seconds, "seconds": seconds, "times_faster": oracle_seconds / seconds}
    return row, fitted


def finish(row: Figures, fitted: Any, split: Split, goal: int | None) -> Figures:
    """The row with what it is about, shown."""
    about = {"system": fitted.kind, "variant": fitted.variant, "rounds": fitted.n_rounds, "goal": goal}
    sizes = {"documents": split.X.shape[0], "terms": len(np.unique(split.X.indices))}
    row |= about | sizes | {"classes": sum(len(committee.classes) for committee in fitted.committees_)}
    numbers = [f"{row[name]:,}" for name in ("documents", "terms", "classes", "rounds")]
    times = [row["oracle"], f"{row['oracle_seconds']:.2f}", f"{row['seconds']:.4f}", f"×{row['times_faster']:,.0f}"]
    show([row["system"], row["variant"], *numbers, *times, f"≥ {goal}" if goal else ""])
    return row
