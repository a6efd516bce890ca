"""The training problem of DAGs and label graphs, the dual ascent of its classes, and Anderson mixing of its rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.special import entr

from ramify import native
from ramify.learners.linear.problem import Costs, Pairs, Rows, Settings, all_others, pair_up
from ramify.learners.linear.taxonomy_ties import Structure
from ramify.parallel import Arrays, Executor, row_blocks
from ramify.parallel.checkpoints import invalid_checkpoint, take_array

# The objective is measured for the weights times each scale: documents that should lie on the margin lie around it, and a small
# factor moves them past the corner of the hinge.
SCALES = (1.0, 1.00003, 1.0001, 1.0003, 1.001, 1.003, 1.01)
IS_SCALED = np.array(SCALES) > 1
CLASSES_PER_TASK = 8
WORSE = 2.0  # times the last residual: the step is rejected
RIDGE = 1e-10  # of the Gram matrix, relative to its trace

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GraphProblem:
    """Documents, the positive documents of every class (documents × classes), how units are tied, and costs.

    Column k of `own` belongs to unit structure.class_units[k].
    """

    rows: Rows
    own: csc_array
    structure: Structure
    costs: Costs
    settings: Settings

    @property
    def work(self) -> Doubles:
        """By unit: the size of its vector, and of all documents if it is a class."""
        work = np.full(len(self.structure), float(self.rows.n_features))
        work[self.structure.class_units] += len(self.rows.values)
        return work


# ---- dual ascent of the classes, each regularized towards a centre ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SolvedClasses:
    """Classes after a round: weights, u = Σ α y x, Σ U L for every scale, and by class Σ U h(α/U) and the duality gap."""

    W: Floats
    u: Floats
    loss: Doubles
    entropy: Doubles
    gap: Doubles


@dataclass(frozen=True, slots=True)
class Classes:
    """Some classes of a graph, each regularized with weight T towards a centre.

    own: documents × these classes. pairs: all of them, costs and dual variables divided by T. X: the documents.
    features: of the rows, repeated for every class of a task.
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
        """Before the first round, for some of the classes."""
        own, rows = csc_array(problem.own[:, which]), problem.rows
        costs = Costs(problem.costs.positive[which], problem.costs.negative[which], problem.costs.documents)
        positive, negative = costs.positive / T, costs.negative / T
        pairs = pair_up(own, all_others(own), positive.astype(np.float32), negative.astype(np.float32))
        features = np.tile(np.arange(rows.n_features, dtype=np.int32), CLASSES_PER_TASK)
        return cls(rows, own, costs, problem.settings, executor, T, pairs, rows.matrix(), features)

    def solve(self, centres: Floats, passes: int, tolerance: float, n_rounds: int) -> SolvedClasses:
        """Some passes of dual ascent over every class; then weights from the dual variables, free of rounding drift."""
        shift, W, known = np.zeros_like(centres), np.empty_like(centres), np.zeros((len(self.pairs), 4))
        entropy = np.zeros(len(self.pairs))
        seed = self.settings.seed + 1_000_003 * n_rounds
        documents, pairs = self.rows.to_native(), native.Pairs(*self.pairs.arrays, len(self.rows))
        ones, same_order = np.ones(len(self.pairs)), np.arange(centres.shape[1], dtype=np.int32)

        def work(some: slice) -> Doubles:
            centred = self._centred(some, centres)
            native.solve_classes_in_place(
                documents, pairs, self.costs.documents, *centred, np.arange(some.start, some.stop, dtype=np.int32),
                self.settings.loss, tolerance, passes, seed, known,
            )  # fmt: skip
            found = documents, pairs, ones, same_order, 0.0, some.start, some.stop, np.empty(len(ones))
            units, ends, features, values = native.assemble_class_weights_in_place(*found)
            shift[np.repeat(units, np.diff(ends, prepend=0)), features] = values
            W[some] = centres[some] + shift[some]
            entropy[some] = [self._entropy(k) for k in range(some.start, some.stop)]
            return self._losses(some, W)

        loss = np.sum(list(self.executor.map(work, row_blocks(len(self.pairs), 1, CLASSES_PER_TASK))), axis=0)
        gap = np.maximum(known[:, 0] - known[:, 1], 0)
        return SolvedClasses(W, shift * self.T.astype(np.float32)[:, None], loss, self.T * entropy, self.T * gap)

    def _centred(self, some: slice, centres: Floats) -> tuple[native.Pattern, native.SparseVectors]:
        """The centre of every class as its only ancestor, and the vectors of some of them; the others are empty."""
        n, n_features, n_some = len(self.pairs), self.rows.n_features, some.stop - some.start
        start, end = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        start[some] = n_features * np.arange(n_some)
        end[some] = start[some] + n_features
        own = native.Pattern(np.arange(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32), n)
        features = self.features[: n_some * n_features]
        return own, native.SparseVectors(start, end, features, centres[some].ravel(), n_features)

    def _losses(self, some: slice, W: Floats) -> Doubles:
        """Σ U L of some classes, for every scale of their weights; scaling pays only at the corner of the hinge."""
        costs, own = self.costs, self.own[:, some].toarray().astype(bool)
        upper = np.where(own, costs.positive[some], costs.negative[some]) * costs.documents[:, None]
        z = np.where(own, 1, -1) * (self.X @ np.ascontiguousarray(W[some].T)).astype(np.float64)
        if self.settings.loss == "logistic":
            return np.where(IS_SCALED, np.inf, np.sum(upper * np.logaddexp(0, -z)))
        upper, z = upper[z < 1], z[z < 1]
        if self.settings.loss == "squared_hinge":
            return np.where(IS_SCALED, np.inf, np.sum(upper * (1 - z) ** 2))
        return np.array([np.sum(upper * np.maximum(0, 1 - scale * z)) for scale in SCALES])

    def _entropy(self, k: int) -> float:
        """Σ U h(α/U) of a class."""
        pairs, some = self.pairs, slice(self.pairs.offsets[k], self.pairs.offsets[k + 1])
        alphas = pairs.alphas[some].astype(np.float64)
        if self.settings.loss == "hinge":
            return float(alphas.sum())
        upper = self.costs.documents[pairs.documents[some]].astype(np.float64)
        upper[: pairs.n_positive[k]] *= pairs.cost_positive[k]
        upper[pairs.n_positive[k] :] *= pairs.cost_negative[k]
        alphas, upper = alphas[upper > 0], upper[upper > 0]
        if self.settings.loss == "squared_hinge":
            return float(np.sum(alphas - alphas**2 / (4 * upper)))
        fraction = np.minimum(alphas / upper, 1)
        return float(np.sum(upper * (entr(fraction) + entr(1 - fraction))))

    def true_pairs(self) -> Pairs:
        """The pairs with their true costs and dual variables."""
        alphas = self.pairs.alphas * np.repeat(self.T, np.diff(self.pairs.offsets)).astype(np.float32)
        return replace(self.pairs, cost_positive=self.costs.positive, cost_negative=self.costs.negative, alphas=alphas)


# ---- Anderson mixing ----------------------------------------------------------------------------------------------------
#
# The next point of a fixed-point iteration F. With residuals g = F(s) − s it is s + g − Σ_j γ_j (Δs_j + Δg_j), with the γ that
# minimize ‖g − Σ_j γ_j Δg_j‖ (Walker & Ni 2011, section 2). If a residual is more than twice the last one, the point is
# rejected for the plain step from the last point, and the history is cleared (a safeguard as in Zhang et al. 2020).
#
# Workers own rows of the points. Each has an `AndersonHistory` of its rows and computes products of them; the sums of these
# products are all that the `AndersonMixer` needs.


@dataclass(slots=True)
class AndersonMixer:
    """Computes γ from products of the last residual changes with each other and with the residual."""

    gram: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    size: float = np.inf
    is_first: bool = True

    def next(self, products: Sequence[float]) -> list[float] | None:
        """γ of the last changes, or None to reject the point. products: sums of what :meth:`AndersonHistory.add` returns."""
        size = products[0] ** 0.5
        if not self.is_first and size > WORSE * self.size:
            self.is_first = True
            return None
        self.size, self.is_first = size, False
        n = len(products) // 2
        if not n:
            return []
        gram, newest = np.empty((n, n)), np.asarray(products[1 : n + 1])
        gram[:-1, :-1] = self.gram[len(self.gram) - n + 1 :, len(self.gram) - n + 1 :]
        gram[-1], gram[:, -1] = newest, newest
        self.gram = gram
        ridge = RIDGE * max(float(np.trace(gram)), 1e-300) * np.eye(n)
        return list(np.linalg.solve(gram + ridge, products[n + 1 :]).tolist())


@dataclass(slots=True)
class AndersonHistory:
    """The last changes of points and residuals, at most `depth`; `weights` is the metric, by row."""

    depth: int
    weights: NDArray[np.float64]
    point_changes: list[Floats] = field(default_factory=list)
    residual_changes: list[Floats] = field(default_factory=list)
    last: tuple[Floats, Floats] | None = None
    previous: tuple[Floats, Floats] | None = None

    def add(self, point: Floats, residual: Floats) -> list[float]:
        """Add a point; returns ‖residual‖², and products of all changes with the last change and with the residual."""
        if self.depth and self.last is not None:
            self.point_changes.append(point - self.last[0])
            self.residual_changes.append(residual - self.last[1])
            del self.point_changes[: -self.depth], self.residual_changes[: -self.depth]
        self.previous, self.last = self.last, (point, residual)
        changes = self.residual_changes
        newest = [self._product(change, changes[-1]) for change in changes]
        return [self._product(residual, residual), *newest, *(self._product(change, residual) for change in changes)]

    def step(self, gamma: Sequence[float] | None) -> Floats:
        """The next point; without γ, the plain step from the previous point."""
        previous, self.previous = self.previous, None
        if gamma is None:
            assert previous is not None
            self.point_changes, self.residual_changes, self.last = [], [], None
            return previous[0] + previous[1]
        assert self.last is not None
        point = self.last[0] + self.last[1]
        for factor, moved, turned in zip(gamma, self.point_changes, self.residual_changes, strict=True):
            point -= np.float32(factor) * (moved + turned)
        return point

    def _product(self, a: Floats, b: Floats) -> float:
        return float(np.einsum("ij,ij->i", a, b) @ self.weights)

    def state(self) -> Arrays:
        """Arrays for a checkpoint."""
        state = {f"point_change_{k}": change for k, change in enumerate(self.point_changes)}
        state |= {f"residual_change_{k}": change for k, change in enumerate(self.residual_changes)}
        return state if self.last is None else state | {"last_point": self.last[0], "last_residual": self.last[1]}

    def restore(self, state: Arrays, width: int) -> None:
        """Restore a checkpoint with rows of a width."""

        def take(name: str) -> Floats:
            return take_array(state, name, np.float32, len(self.weights), width)

        n = sum(name.startswith("residual_change_") for name in state)
        if n > self.depth:
            raise invalid_checkpoint("more steps than are mixed")
        self.point_changes = [take(f"point_change_{k}") for k in range(n)]
        self.residual_changes = [take(f"residual_change_{k}") for k in range(n)]
        self.last = (take("last_point"), take("last_residual")) if "last_point" in state else None
