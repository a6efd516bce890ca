"""Training on some chunks of a set and deciding the labels of another, by every rule about the same classifiers.

Section 5: H-loss with all costs 1. All rules about the same classifiers share one training. The paper does not state the cost
C of the machines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from experiments.cesabianchi2006.rules import RULES, Learner
from experiments.study import Run
from ramify.data.synthetic import Problem
from ramify.learners import NodeClassifiers
from ramify.metrics import h_loss_by_depth
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_specific

ALL_LEARNERS = tuple(dict.fromkeys(rule.learner for rule in RULES.values()))


class Fold(NamedTuple):
    """Rows to train on and to test on."""

    train: NDArray[np.int64]
    test: NDArray[np.int64]


class Circle(NamedTuple):
    """Ordered chunks in a circle: training on some that follow each other, testing on the next."""

    n_chunks: int
    n_train: int

    def folds(self, n_docs: int) -> list[Fold]:
        """A fold for every chunk to begin with.

        >>> [fold.test.tolist() for fold in Circle(n_chunks=4, n_train=3).folds(4)]
        [[3], [0], [1], [2]]
        """
        chunks = np.array_split(np.arange(n_docs), self.n_chunks)
        around = [[chunks[(k + first) % self.n_chunks] for k in range(self.n_train + 1)] for first in range(self.n_chunks)]
        return [Fold(np.concatenate(train), test) for *train, test in around]


def try_rules(
    run: Run, name: str, make: Callable[[], Problem], circle: Circle, learners: Sequence[Learner], cost: float = 1.0
) -> dict[str, Any]:
    """What a set is like, and what every rule about some learners makes of every fold of it."""
    problem = cache(make)  # not made at all where everything is known
    of_set = run.keep(f"{name}, the set", lambda: describe(problem()))
    folds = circle.folds(of_set["documents"])
    tried: list[dict[str, Any]] = []
    for number, learner in product(range(run.choose(full=len(folds), quick=len(folds), tiny=1)), learners):
        key = f"{name}, fold {number + 1}, {learner.base}, {learner.calibration or 'not calibrated'}"
        tried.append(run.keep(key, partial(try_learner, learner, problem, folds[number], cost, run.threads)))
    rules = {rule: [each["rules"][rule] for each in tried if rule in each["rules"]] for rule in RULES}
    return {"cost": cost, "set": of_set, "rules": {rule: found for rule, found in rules.items() if found}}


def describe(problem: Problem) -> dict[str, Any]:
    """How many documents; paths and nodes a document, a path counted by its most specific node."""
    counted = {"paths": most_specific(problem.Y, problem.taxonomy), "nodes": expand_to_ancestors(problem.Y, problem.taxonomy)}
    n_docs = problem.Y.shape[0]
    return {"documents": n_docs, "classes": len(problem.taxonomy), **{what: Y.nnz / n_docs for what, Y in counted.items()}}


def try_learner(learner: Learner, make: Callable[[], Problem], fold: Fold, cost: float, threads: int) -> dict[str, Any]:
    """Train one learner on one fold, and decide by all rules that use it."""
    problem, (base, calibration) = make(), learner
    start = time.perf_counter()
    fitted = NodeClassifiers(problem.taxonomy, base=base, calibration=calibration, C=cost, n_jobs=threads)
    fitted.fit(problem.X[fold.train], problem.Y[fold.train])
    seconds = time.perf_counter() - start
    S = fitted.scores(problem.X[fold.test])
    P, truth = fitted.conditionals(S), csr_array(problem.Y[fold.test])
    answers = {name: rule.decide(S, P, problem.taxonomy) for name, rule in RULES.items() if rule.learner == learner}
    return {"seconds": seconds, "rules": {name: judge(truth, answer, problem.taxonomy) for name, answer in answers.items()}}


def judge(truth: csr_array, answer: csr_array, taxonomy: Taxonomy) -> dict[str, Any]:
    """H-loss by depth, and how many nodes a document gets."""
    return {"by_depth": h_loss_by_depth(truth, answer, taxonomy).tolist(), "nodes": answer.nnz / answer.shape[0]}
