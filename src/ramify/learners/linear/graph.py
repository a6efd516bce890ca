"""The solver for classes tied along a DAG or an undirected graph of labels.

    min over W   ½ Σ_ab M_ab w_a·w_b + Σ_n Σ_i U_in L(y_in w_n·x_i)        (Gopal & Yang 2013, section 3; M: see structure.py)

Deviation from the paper. It descends over the classes in turn, each given its neighbours; what neighbours have in common then
travels one edge a round. Here ties and losses are taken in turn (Douglas & Rachford's splitting, as in ADMM), with a state s,
one vector a class, and a diagonal T. T_n lies halfway between what holds w_n when its neighbours are fixed and when they are
free, M_nn and 1 / (M⁻¹)_nn:

    ties     V = (M + T)⁻¹ T s              all units at once, units without loss included, by one sparse factorization
    losses   W = argmin over w_n of ½ T_n ‖w_n − (2 v_n − s_n)‖² + Σ_i U_in L     every class by itself, in the dual
    state    s ← s + W − V, mixed with the last few steps after Anderson

At T = diag M the second step is the paper's: 2 v_n − s_n is then the weighted mean of n's neighbours in V. The dual variables
α of that step are a bound: with u_n = Σ_i α y x no weights go below Σ U h(α/U) − ½ Σ_ab (M⁻¹)_ab u_a·u_b. The distance between
W's objective and that bound is what classes lack by themselves, plus ½ r·M⁻¹r with r = MW − u, what ties lack; their proportion
decides how closely classes are solved in the next round. Training stops when the best of both sides differ by no more than the
tolerance. All pairs of a document and a class are worked on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.linalg import splu
from scipy.special import entr

from ramify.errors import InputError
from ramify.execution import Executor, row_blocks, stage
from ramify.learners.linear.anderson import Mixer
from ramify.learners.linear.pairs import Pairs, all_others, pair_up
from ramify.learners.linear.problem import LOSSES, Certificate, Costs, Settings
from ramify.learners.linear.rows import Rows
from ramify.learners.linear.structure import Structure
from ramify.native import gather_classes, solve_classes_in_place

MOST_WEIGHTS = 1 << 30  # units × features
CLASSES_A_TASK = 8
BLOCK = 1 << 22  # bytes of a dense matrix that is solved for at once
DEPTH = 5  # steps that are mixed
MEMORY = 1 << 28  # numbers kept for mixing
CLASS_TOLERANCE = 1e-6  # times the gap reached: small, for ties multiply what classes lack by up to 1 / anchor
# weights may be stretched: documents that ought to lie on the margin lie around it, and a stretch lifts them over the corner
STRETCHES = (1.0, 1.00003, 1.0001, 1.0003, 1.001, 1.003, 1.01)
IS_STRETCHED = np.array(STRETCHES) > 1
PASSES = (2, 64)  # over the pairs of a class in a round, at least and at most
CLOSER, LOOSER = 0.3, 0.03  # what classes lack, relative to what ties lack, beyond which passes double or halve

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GraphTask:
    """One problem: documents, the classes' own documents (documents × classes), how units are tied, and costs.

    Column k of `own` belongs to unit structure.class_units[k].
    """

    rows: Rows
    own: csc_array
    structure: Structure
    costs: Costs
    settings: Settings
    executor: Executor


@dataclass(frozen=True, slots=True)
class GraphSolution:
    """Weights (units × features of the rows), what is certain of them, and the dual variables of the last round."""

    W: Floats
    certificate: Certificate
    pairs: Pairs


def solve_graph(task: GraphTask) -> GraphSolution:
    """Solve a problem to the relative duality gap of its settings, or until its rounds are used up."""
    _refuse_too_many(len(task.structure), task.rows.n_features)
    ties = Ties.of(task)
    classes = Classes.of(task, ties.T)
    state = np.zeros((task.own.shape[1], task.rows.n_features), dtype=np.float32)
    mixer = Mixer(min(DEPTH, MEMORY // max(1, 2 * state.size)), ties.T)
    best, W, passes, gap = Certificate(np.inf, -np.inf, 0), state, 2 * PASSES[0], 1.0
    with stage("solving", None) as step:
        while True:
            V = ties.pull(state)
            found = classes.settle(2 * V - state, passes, CLASS_TOLERANCE * gap, best.rounds)
            look = ties.measure(found)
            W = np.float32(look.stretch) * found.W if look.primal < best.primal else W
            best = Certificate(min(best.primal, look.primal), max(best.dual, look.dual), best.rounds + 1)
            step.advance()
            if best.gap <= task.settings.tolerance or best.rounds >= task.settings.max_iter:
                return GraphSolution(ties.complete(W), best, classes.true_pairs())
            state = mixer.next(state, found.W - V)
            passes, gap = _choose_passes(passes, look), min(gap, best.gap)


def _refuse_too_many(n_units: int, n_features: int) -> None:
    if n_units * n_features > MOST_WEIGHTS:
        raise InputError(
            f"{n_units} units with {n_features} features each are {n_units * n_features} weights, and a graph or DAG can have "
            f"{MOST_WEIGHTS}; keep at most {MOST_WEIGHTS // n_units} features, or use a tree."
        )


# ---- losses ----------------------------------------------------------------------------------------------------------------


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
    """Every class drawn with T to a centre of its own.

    pairs: all of them, costs and dual variables divided by T. X: the documents.
    features: of the rows, as often as a task has classes.
    """

    task: GraphTask
    T: Doubles
    pairs: Pairs
    X: csr_array
    features: NDArray[np.int32]

    @classmethod
    def of(cls, task: GraphTask, T: Doubles) -> Classes:
        """Before the first round."""
        positive, negative = task.costs.positive / T, task.costs.negative / T
        pairs = pair_up(task.own, all_others(task.own), positive.astype(np.float32), negative.astype(np.float32))
        rows, n_features = task.rows, task.rows.n_features
        X = csr_array((rows.values, rows.features, rows.offsets), shape=(len(rows), n_features))
        return cls(task, T, pairs, X, np.tile(np.arange(n_features, dtype=np.int32), CLASSES_A_TASK))

    def settle(self, centres: Floats, passes: int, tolerance: float, n_rounds: int) -> Settled:
        """Some passes over every class, and a close look at what came out: weights move in rounded steps on the way."""
        shift, W, known = np.zeros_like(centres), np.empty_like(centres), np.zeros((len(self.pairs), 4))
        entropy = np.zeros(len(self.pairs))
        seed = self.task.settings.seed + 1_000_003 * n_rounds

        def work(some: slice) -> Doubles:
            self._ascend(some, centres, (tolerance, passes, seed), known)
            self._gather(some, shift)
            W[some] = centres[some] + shift[some]
            entropy[some] = [self._entropy(k) for k in range(some.start, some.stop)]
            return self._losses(some, W)

        loss = np.sum(list(self.task.executor.map(work, row_blocks(len(self.pairs), 1, CLASSES_A_TASK))), axis=0)
        lack = np.maximum(known[:, 0] - known[:, 1], 0)
        return Settled(W, shift * self.T.astype(np.float32)[:, None], loss, self.T * entropy, self.T * lack)

    def _ascend(self, some: slice, centres: Floats, how: tuple[float, int, int], known: Doubles) -> None:
        task, n, n_features = self.task, len(self.pairs), self.task.rows.n_features
        start, numbers = np.zeros(n, dtype=np.int64), np.arange(n, dtype=np.int32)
        start[some] = n_features * np.arange(some.stop - some.start)
        centre = numbers, start, start + n_features, self.features, centres[some].ravel()
        solve_classes_in_place(
            *task.rows.arrays, LOSSES[task.settings.loss], *self.pairs.arrays, task.costs.documents,
            np.arange(n + 1, dtype=np.int64), *centre, numbers[some], *how, known,
        )  # fmt: skip

    def _gather(self, some: slice, shift: Floats) -> None:
        rows, pairs, ones = self.task.rows.arrays, self.pairs.arrays, np.ones(len(self.pairs))
        as_they_are = np.arange(shift.shape[1], dtype=np.int32)
        units, ends, features, values = gather_classes(
            *rows, *pairs, ones, as_they_are, 0.0, some.start, some.stop, np.empty(len(ones))
        )
        shift[np.repeat(units, np.diff(ends, prepend=0)), features] = values

    def _losses(self, some: slice, W: Floats) -> Doubles:
        """Σ U L of some classes, for every stretch of their weights; only the hinge has a corner that makes one worthwhile."""
        costs, own = self.task.costs, self.task.own[:, some].toarray().astype(bool)
        upper = np.where(own, costs.positive[some], costs.negative[some]) * costs.documents[:, None]
        z = np.where(own, 1, -1) * (self.X @ np.ascontiguousarray(W[some].T)).astype(np.float64)
        if self.task.settings.loss == "logistic":
            return np.where(IS_STRETCHED, np.inf, np.sum(upper * np.logaddexp(0, -z)))
        upper, z = upper[z < 1], z[z < 1]
        if self.task.settings.loss == "squared_hinge":
            return np.where(IS_STRETCHED, np.inf, np.sum(upper * (1 - z) ** 2))
        return np.array([np.sum(upper * np.maximum(0, 1 - stretch * z)) for stretch in STRETCHES])

    def _entropy(self, k: int) -> float:
        """Σ U h(α/U) of a class."""
        pairs, here = self.pairs, slice(self.pairs.offsets[k], self.pairs.offsets[k + 1])
        alphas = pairs.alphas[here].astype(np.float64)
        if self.task.settings.loss == "hinge":
            return float(alphas.sum())
        upper = self.task.costs.documents[pairs.documents[here]].astype(np.float64)
        upper[: pairs.n_positive[k]] *= pairs.cost_positive[k]
        upper[pairs.n_positive[k] :] *= pairs.cost_negative[k]
        alphas, upper = alphas[upper > 0], upper[upper > 0]
        if self.task.settings.loss == "squared_hinge":
            return float(np.sum(alphas - alphas**2 / (4 * upper)))
        share = np.minimum(alphas / upper, 1)
        return float(np.sum(upper * (entr(share) + entr(1 - share))))

    def true_pairs(self) -> Pairs:
        """The pairs with their true costs and dual variables."""
        alphas = self.pairs.alphas * np.repeat(self.T, np.diff(self.pairs.offsets)).astype(np.float32)
        costs = self.task.costs
        return replace(self.pairs, cost_positive=costs.positive, cost_negative=costs.negative, alphas=alphas)


# ---- ties ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Look:
    """Objective and bound of a round, the stretch of weights that the objective is for, and what classes lack."""

    primal: float
    stretch: float
    dual: float
    lack_of_classes: float

    @property
    def lack_of_ties(self) -> float:
        """½ r·M⁻¹r, the rest of the distance."""
        return max(0.0, self.primal - self.dual - self.lack_of_classes)


def _choose_passes(passes: int, look: Look) -> int:
    if look.lack_of_classes > CLOSER * look.lack_of_ties:
        return min(2 * passes, PASSES[1])
    return max(passes // 2, PASSES[0]) if look.lack_of_classes < LOOSER * look.lack_of_ties else passes


@dataclass(frozen=True, slots=True)
class Ties:
    """M with its factorizations; features are taken in blocks, so that dense vectors of all units stay small."""

    structure: Structure
    T: Doubles
    executor: Executor
    solve: Callable[[Doubles], Doubles]
    solve_drawn: Callable[[Doubles], Doubles]
    solve_free: Callable[[Doubles], Doubles]
    free_to_classes: Any

    @classmethod
    def of(cls, task: GraphTask) -> Ties:
        """Factorize M, M + T, and M among the units without loss."""
        M, classes, free = csc_array(task.structure.M), task.structure.class_units, task.structure.free_units
        solve, rows = splu(M).solve, csc_array(task.structure.M[free])
        T = _stiffness(task.structure, solve)
        drawn = np.zeros(len(task.structure))
        drawn[classes] = T
        solve_drawn, solve_free = splu(csc_array(M + diags_array(drawn))).solve, _solver(csc_array(rows[:, free]))
        return cls(task.structure, T, task.executor, solve, solve_drawn, solve_free, rows[:, classes])

    def pull(self, state: Floats) -> Floats:
        """V of the classes."""
        V, classes = np.empty_like(state), self.structure.class_units

        def work(some: slice) -> None:
            V[:, some] = self.solve_drawn(self._spread(self.T[:, None] * state[:, some]))[classes]

        self._over(state.shape[1], work)
        return V

    def measure(self, found: Settled) -> Look:
        """Both sides of the problem at what classes have found."""
        classes = self.structure.class_units

        def work(some: slice) -> Doubles:
            W, u = self._complete(found.W[:, some]), found.u[:, some].astype(np.float64)
            return np.array([np.vdot(W, self.structure.M @ W), np.vdot(u, self.solve(self._spread(u))[classes])])

        ties, bound = 0.5 * np.sum(self._over(found.W.shape[1], work), axis=0)
        primals = np.square(STRETCHES) * ties + found.loss
        best, dual = int(np.argmin(primals)), float(found.entropy.sum() - bound)
        return Look(float(primals[best]), STRETCHES[best], dual, float(found.lack.sum()))

    def complete(self, W: Floats) -> Floats:
        """The weights of all units, those without loss as the weighted means of their neighbours."""
        whole = np.empty((len(self.structure), W.shape[1]), dtype=np.float32)

        def work(some: slice) -> None:
            whole[:, some] = self._complete(W[:, some])

        self._over(W.shape[1], work)
        return whole

    def _complete(self, W: Floats) -> Doubles:
        whole = self._spread(W.astype(np.float64))
        whole[self.structure.free_units] = -self.solve_free(self.free_to_classes @ whole[self.structure.class_units])
        return whole

    def _spread(self, of_classes: Doubles) -> Doubles:
        whole = np.zeros((len(self.structure), of_classes.shape[1]))
        whole[self.structure.class_units] = of_classes
        return whole

    def _over(self, n_features: int, work: Callable[[slice], Any]) -> list[Any]:
        return list(self.executor.map(work, row_blocks(n_features, 8 * len(self.structure), BLOCK)))


def _stiffness(structure: Structure, solve: Callable[[Doubles], Doubles]) -> Doubles:
    """T_n = √(M_nn / (M⁻¹)_nn)."""
    n, classes = len(structure), structure.class_units
    inverse = np.empty(len(classes))
    for some in row_blocks(len(classes), 8 * n, BLOCK):
        unit, column = classes[some], np.arange(some.stop - some.start)
        ones = np.zeros((n, len(column)))
        ones[unit, column] = 1
        inverse[some] = solve(ones)[unit, column]
    T: Doubles = np.sqrt(structure.M.diagonal()[classes] / inverse)
    return T


def _solver(A: csc_array) -> Callable[[Doubles], Doubles]:
    """x of Ax = b; a matrix without rows has nothing to solve."""
    if A.shape[0] == 0:
        return lambda b: b
    solve: Callable[[Doubles], Doubles] = splu(A).solve
    return solve
