"""The losses of a graph's classes: every class by itself, drawn to a centre of its own, in the dual."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.special import entr

from ramify.execution import Executor, row_blocks
from ramify.learners.linear.graph_problem import STRETCHES, GraphProblem
from ramify.learners.linear.pairs import Pairs, all_others, pair_up
from ramify.learners.linear.problem import LOSSES, Costs, Settings
from ramify.learners.linear.rows import Rows
from ramify.native import gather_classes, solve_classes_in_place

CLASSES_A_TASK = 8
IS_STRETCHED = np.array(STRETCHES) > 1

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Settled:
    """Classes after a round: weights, u = Σ α y x, Σ U L for every stretch, and by class Σ U h(α/U) and what it lacks."""

    W: Floats
    u: Floats
    loss: Doubles
    entropy: Doubles
    lack: Doubles


@dataclass(frozen=True, slots=True)
class Classes:
    """Some classes of a graph, each drawn with T to a centre.

    own: documents × these classes. pairs: all of them, costs and dual variables divided by T. X: the documents.
    features: of the rows, as often as a task has classes.
    """

    rows: Rows
    own: csc_array
    costs: Costs
    settings: Settings
    executor: Executor
    T: Doubles
    pairs: Pairs
    X: csr_array
    features: NDArray[np.int32]

    @classmethod
    def of(cls, problem: GraphProblem, which: NDArray[np.int64], T: Doubles, executor: Executor) -> Classes:
        """Before the first round."""
        own, rows = csc_array(problem.own[:, which]), problem.rows
        costs = Costs(problem.costs.positive[which], problem.costs.negative[which], problem.costs.documents)
        positive, negative = costs.positive / T, costs.negative / T
        pairs = pair_up(own, all_others(own), positive.astype(np.float32), negative.astype(np.float32))
        features = np.tile(np.arange(rows.n_features, dtype=np.int32), CLASSES_A_TASK)
        return cls(rows, own, costs, problem.settings, executor, T, pairs, rows.matrix(), features)

    def settle(self, centres: Floats, passes: int, tolerance: float, n_rounds: int) -> Settled:
        """Some passes over every class, and a close look at what came out: weights move in rounded steps on the way."""
        shift, W, known = np.zeros_like(centres), np.empty_like(centres), np.zeros((len(self.pairs), 4))
        entropy = np.zeros(len(self.pairs))
        seed = self.settings.seed + 1_000_003 * n_rounds

        def work(some: slice) -> Doubles:
            self._ascend(some, centres, (tolerance, passes, seed), known)
            self._gather(some, shift)
            W[some] = centres[some] + shift[some]
            entropy[some] = [self._entropy(k) for k in range(some.start, some.stop)]
            return self._losses(some, W)

        loss = np.sum(list(self.executor.map(work, row_blocks(len(self.pairs), 1, CLASSES_A_TASK))), axis=0)
        lack = np.maximum(known[:, 0] - known[:, 1], 0)
        return Settled(W, shift * self.T.astype(np.float32)[:, None], loss, self.T * entropy, self.T * lack)

    def _ascend(self, some: slice, centres: Floats, how: tuple[float, int, int], known: Doubles) -> None:
        n, n_features = len(self.pairs), self.rows.n_features
        start, numbers = np.zeros(n, dtype=np.int64), np.arange(n, dtype=np.int32)
        start[some] = n_features * np.arange(some.stop - some.start)
        centre = numbers, start, start + n_features, self.features, centres[some].ravel()
        solve_classes_in_place(
            *self.rows.arrays, LOSSES[self.settings.loss], *self.pairs.arrays, self.costs.documents,
            np.arange(n + 1, dtype=np.int64), *centre, numbers[some], *how, known,
        )  # fmt: skip

    def _gather(self, some: slice, shift: Floats) -> None:
        rows, pairs, ones = self.rows.arrays, self.pairs.arrays, np.ones(len(self.pairs))
        as_they_are = np.arange(shift.shape[1], dtype=np.int32)
        units, ends, features, values = gather_classes(
            *rows, *pairs, ones, as_they_are, 0.0, some.start, some.stop, np.empty(len(ones))
        )
        shift[np.repeat(units, np.diff(ends, prepend=0)), features] = values

    def _losses(self, some: slice, W: Floats) -> Doubles:
        """Σ U L of some classes, for every stretch of their weights; only the hinge has a corner that makes one worthwhile."""
        costs, own = self.costs, self.own[:, some].toarray().astype(bool)
        upper = np.where(own, costs.positive[some], costs.negative[some]) * costs.documents[:, None]
        z = np.where(own, 1, -1) * (self.X @ np.ascontiguousarray(W[some].T)).astype(np.float64)
        if self.settings.loss == "logistic":
            return np.where(IS_STRETCHED, np.inf, np.sum(upper * np.logaddexp(0, -z)))
        upper, z = upper[z < 1], z[z < 1]
        if self.settings.loss == "squared_hinge":
            return np.where(IS_STRETCHED, np.inf, np.sum(upper * (1 - z) ** 2))
        return np.array([np.sum(upper * np.maximum(0, 1 - stretch * z)) for stretch in STRETCHES])

    def _entropy(self, k: int) -> float:
        """Σ U h(α/U) of a class."""
        pairs, here = self.pairs, slice(self.pairs.offsets[k], self.pairs.offsets[k + 1])
        alphas = pairs.alphas[here].astype(np.float64)
        if self.settings.loss == "hinge":
            return float(alphas.sum())
        upper = self.costs.documents[pairs.documents[here]].astype(np.float64)
        upper[: pairs.n_positive[k]] *= pairs.cost_positive[k]
        upper[pairs.n_positive[k] :] *= pairs.cost_negative[k]
        alphas, upper = alphas[upper > 0], upper[upper > 0]
        if self.settings.loss == "squared_hinge":
            return float(np.sum(alphas - alphas**2 / (4 * upper)))
        share = np.minimum(alphas / upper, 1)
        return float(np.sum(upper * (entr(share) + entr(1 - share))))

    def true_pairs(self) -> Pairs:
        """The pairs with their true costs and dual variables."""
        alphas = self.pairs.alphas * np.repeat(self.T, np.diff(self.pairs.offsets)).astype(np.float32)
        return replace(self.pairs, cost_positive=self.costs.positive, cost_negative=self.costs.negative, alphas=alphas)
