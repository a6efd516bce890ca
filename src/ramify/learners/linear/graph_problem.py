"""What the solver of graphs is told, and what it is certain of after a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.special import entr

from ramify.learners.linear.problem import LOSSES, Costs, Pairs, Rows, Settings, all_others, pair_up
from ramify.learners.linear.taxonomy_ties import Structure
from ramify.native import gather_classes, solve_classes_in_place
from ramify.parallel import Arrays, Executor, row_blocks
from ramify.parallel.checkpoints import strange, take_array

# weights may be stretched: documents that ought to lie on the margin lie around it, and a stretch lifts them over the corner
STRETCHES = (1.0, 1.00003, 1.0001, 1.0003, 1.001, 1.003, 1.01)


@dataclass(frozen=True, slots=True)
class GraphProblem:
    """One problem: documents, the classes' own documents (documents × classes), how units are tied, and costs.

    Column k of `own` belongs to unit structure.class_units[k].
    """

    rows: Rows
    own: csc_array
    structure: Structure
    costs: Costs
    settings: Settings

    @property
    def work(self) -> NDArray[np.float64]:
        """Of every unit: its vector, and the entries of all documents if it is a class."""
        work = np.full(len(self.structure), float(self.rows.n_features))
        work[self.structure.class_units] += len(self.rows.values)
        return work


@dataclass(frozen=True, slots=True)
class Look:
    """Objective and bound of a round, the stretch of weights that the objective is for, and what classes lack."""

    primal: float
    stretch: float
    dual: float
    lack_of_classes: float

    @classmethod
    def at(cls, sizes: Sequence[float], losses: NDArray[np.float64]) -> Look:
        """From sums over all units: ½ W·MW, ½ u·M⁻¹u, Σ U h(α/U) and what classes lack; and Σ U L for every stretch."""
        ties, bound, entropy, lack = sizes
        primals = np.square(STRETCHES) * ties + losses
        best = int(np.argmin(primals))
        return cls(float(primals[best]), STRETCHES[best], entropy - bound, lack)

    @property
    def lack_of_ties(self) -> float:
        """½ r·M⁻¹r, the rest of the distance."""
        return max(0.0, self.primal - self.dual - self.lack_of_classes)


# --------------------------------------------------------------------------------------------------------------
# The losses of a graph's classes: every class by itself, drawn to a centre of its own, in the dual.


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


# --------------------------------------------------------------------------------------------------------------
# Anderson's mixing: the next point of a fixed-point iteration, from what the last few steps changed.
#
# With residuals g = F(s) − s, the step is s + g − Σ_j γ_j (Δs_j + Δg_j), with the γ for which g − Σ_j γ_j Δg_j is smallest
# (Walker & Ni 2011, section 2). A point whose residual is twice that of the one before is given up for the plain step from
# there, and the memory is emptied (Zhang, O'Donoghue & Boyd 2020 guard theirs in the same way).
#
# Points may be cut into rows that several own. Each has a `Trail` of its own rows and gives products of them; their sums are
# all
# that a `Mixer` needs to say how the steps are mixed.


WORSE = 2.0  # times the residual before: too much
RIDGE = 1e-10  # relative to the changes seen


@dataclass(slots=True)
class Mixer:
    """How steps are mixed, from products of the last changes of residuals with each other and with the residual."""

    gram: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    size: float = np.inf
    is_first: bool = True

    def next(self, products: Sequence[float]) -> list[float] | None:
        """γ of the last changes, or None to step back. products: as trails give them, added up."""
        size = products[0] ** 0.5
        if not self.is_first and size > WORSE * self.size:
            self.is_first = True
            return None
        self.size, self.is_first = size, False
        n = len(products) // 2
        return self._solve(np.asarray(products[1 : n + 1]), products[n + 1 :]) if n else []

    def _solve(self, newest: NDArray[np.float64], aims: Sequence[float]) -> list[float]:
        n = len(newest)
        gram = np.empty((n, n))
        gram[:-1, :-1] = self.gram[len(self.gram) - n + 1 :, len(self.gram) - n + 1 :]
        gram[-1], gram[:, -1] = newest, newest
        self.gram = gram
        ridge = RIDGE * max(float(np.trace(gram)), 1e-300) * np.eye(n)
        gamma: list[float] = np.linalg.solve(gram + ridge, aims).tolist()
        return gamma


@dataclass(slots=True)
class Trail:
    """Rows of the last few changes of points and residuals, at most `depth` of them; `weights` is the metric, by row."""

    depth: int
    weights: NDArray[np.float64]
    moves: list[Floats] = field(default_factory=list)
    turns: list[Floats] = field(default_factory=list)
    last: tuple[Floats, Floats] | None = None
    before: tuple[Floats, Floats] | None = None

    def add(self, point: Floats, residual: Floats) -> list[float]:
        """Remember a point with its residual; gives ‖residual‖², then the last change's products and the residual's.

        Both are products with all changes that are remembered, the oldest first.
        """
        if self.depth and self.last is not None:
            self.moves.append(point - self.last[0])
            self.turns.append(residual - self.last[1])
            del self.moves[: -self.depth], self.turns[: -self.depth]
        self.before, self.last = self.last, (point, residual)
        newest = [self._product(turn, self.turns[-1]) for turn in self.turns]
        return [self._product(residual, residual), *newest, *(self._product(turn, residual) for turn in self.turns)]

    def step(self, gamma: Sequence[float] | None) -> Floats:
        """The next point, with the steps mixed as a mixer says; without γ, back and one plain step from there."""
        before, self.before = self.before, None
        if gamma is None:
            assert before is not None
            self.moves, self.turns, self.last = [], [], None
            return before[0] + before[1]
        assert self.last is not None
        point = self.last[0] + self.last[1]
        for share, move, turn in zip(gamma, self.moves, self.turns, strict=True):
            point -= np.float32(share) * (move + turn)
        return point

    def _product(self, a: Floats, b: Floats) -> float:
        return float(np.einsum("ij,ij->i", a, b) @ self.weights)

    def state(self) -> Arrays:
        """What is remembered between two steps."""
        kept = {f"move_{k}": move for k, move in enumerate(self.moves)} | {f"turn_{k}": t for k, t in enumerate(self.turns)}
        return kept if self.last is None else kept | {"last_point": self.last[0], "last_residual": self.last[1]}

    def restore(self, state: Arrays, width: int) -> None:
        """Remember what another did, with rows of a width."""

        def take(name: str) -> Floats:
            return take_array(state, name, np.float32, len(self.weights), width)

        n = sum(name.startswith("turn_") for name in state)
        if n > self.depth:
            raise strange("more steps than are mixed")
        self.moves, self.turns = ([take(f"{name}_{k}") for k in range(n)] for name in ("move", "turn"))
        self.last = (take("last_point"), take("last_residual")) if "last_point" in state else None
