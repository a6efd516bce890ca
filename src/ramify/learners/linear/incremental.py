"""Linear classifiers that another learner has learnt already, beside those that must be learnt anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, vstack

from ramify.errors import ModelError
from ramify.learners.linear.dual_solver import Solution, solve
from ramify.learners.linear.problem import Certificate, Costs, Problem, Rows, arrange_rows
from ramify.learners.linear.taxonomy_ties import Forest, tie_along_paths
from ramify.learners.linear.training import Setup, TrainedWeights, suits
from ramify.learners.linear.warm_start import Dual, Reached, find_reached
from ramify.learners.linear.weights import Weights
from ramify.learners.warm_start import WarmStart, same_columns
from ramify.parallel import choose_executor

Ints = NDArray[np.int64]
SAME = ("C_", "loss", "tol", "max_iter", "mode", "fit_intercept", "class_weight", "n_features_in_")


def has_same_parameters(learner: Any, before: WarmStart | None, C: float) -> bool:
    """Whether an earlier learner solved the same problems with the same parameters, so that its solutions count."""
    if before is None or type(before.learner) is not type(learner):
        return False
    other, mine = before.learner, {"C_": C}
    same = all(getattr(other, name, None) == mine.get(name, getattr(learner, name, None)) for name in SAME)
    is_exact = getattr(learner, "mode", "exact") == "exact" and learner.class_weight is None
    return same and is_exact and isinstance(getattr(other, "weights_", None), (Weights, type(None)))  # none in shards


def reuse_or_train(
    taken: Ints,
    weights: Weights,
    figures: NDArray[np.float64],
    train_some: Callable[[Ints], TrainedWeights],
    dual: Dual | None = None,
) -> TrainedWeights:
    """Classes that stand alone: some taken over, the others trained.

    taken: for every class the one that is taken over, -1 where it is to be trained. weights, figures, dual: of those that can
    be taken over. train_some: trains some of the classes.
    """
    fresh, n = np.flatnonzero(taken < 0), len(figures)
    trained = train_some(fresh) if len(fresh) else None
    place = taken.copy()
    place[fresh] = n + np.arange(len(fresh))
    if trained is None:
        trained = TrainedWeights(_none_of(weights), Certificate(0.0, 0.0, 0), figures=np.zeros((0, 2)), dual=Dual.none())
    primal, dual_bound = figures[taken[taken >= 0]].sum(axis=0)
    found = trained.certificate
    certificate = Certificate(float(primal) + found.primal, float(dual_bound) + found.dual, found.rounds)
    joined = None if trained.figures is None else np.concatenate([figures, trained.figures])[place]
    both = None if dual is None or trained.dual is None else dual.followed_by(trained.dual).of_classes(place)
    return TrainedWeights(_rows_of(weights, trained.weights, place), certificate, dual=both, figures=joined)


def _none_of(weights: Weights) -> Weights:
    nothing = np.zeros(0, dtype=np.int64)
    return Weights(csr_array((0, weights.n_features), dtype=np.float32), np.zeros(0), nothing.astype(np.int32), nothing)


def _rows_of(first: Weights, second: Weights, place: Ints) -> Weights:
    """Classes that stand alone, from the rows of two models after each other."""
    rows = csr_array(vstack([first.deltas, second.deltas], format="csr")[place])
    bias, n = np.concatenate([first.bias, second.bias])[place], len(place)
    return Weights(rows, bias, np.full(n, -1, dtype=np.int32), np.arange(n, dtype=np.int64))


def start_from(before: WarmStart, own: csr_array) -> Dual | None:
    """Dual variables for classes as they are now (own: documents × classes), from those of the classes nearest to them."""
    dual: Dual | None = getattr(before.learner, "dual_", None)
    if dual is None:
        return None
    were = csr_array(before.own[:, before.learner.class_nodes_[: len(dual)]])
    return dual.numbered(before.documents).of_classes(before.nearest(were, own))


def begin_leaves(weights: Weights, ties: Forest, leaves: Ints, parent: Ints) -> tuple[Weights, Ints]:
    """Give leaves without documents the weights of the nearest node above them that has any; gives these leaves, too.

    A leaf without a loss is as its parent is: its own change of weights is 0 at the optimum. parent: of every node.
    """
    unit_of: dict[int, int] = {}
    for unit, node in enumerate(ties.node.tolist()):
        unit_of.setdefault(node, unit)  # an inner node comes before the class of its own documents
    found = []
    for leaf in leaves.tolist():
        above = int(parent[leaf])
        while above >= 0 and above not in unit_of:
            above = int(parent[above])
        if above >= 0 and leaf not in unit_of:
            found.append((leaf, unit_of[above]))
    if not found:
        return weights, np.zeros(0, dtype=np.int64)
    nodes, units = np.asarray(found, dtype=np.int64).T
    n = len(nodes)
    nothing = csr_array((n, weights.n_features), dtype=weights.deltas.dtype)
    deltas = csr_array(vstack([weights.deltas, nothing], format="csr"))
    numbers = len(weights.parent) + np.arange(n, dtype=np.int64)
    parents = np.concatenate([weights.parent, units.astype(np.int32)])
    made = Weights(deltas, np.append(weights.bias, np.zeros(n)), parents, np.append(weights.class_units, numbers))
    return made, nodes


def check_figures(figures: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
    """Objectives and bounds of a model file."""
    fits = figures.ndim == 2 and figures.shape[0] <= n_classes and figures.shape[1] == 2  # leaves without documents have none
    if figures.dtype != np.float64 or not fits or not np.isfinite(figures).all():
        raise ModelError("what is certain of the classes does not fit the linear model; train the model again.")
    return figures


def columns_of(own: csr_array, nodes: Ints) -> csc_array:
    """Documents × some nodes."""
    return csc_array(own[:, nodes])


# --------------------------------------------------------------------------------------------------------------
# The part of a tree that a change has reached, solved with the weights above it held as they are.
#
# All other classes keep their weights and dual variables. For any weights W and dual variables α the gap is
#
#     Σ_n Σ_i U_in (L(z_in) − h(α_in / U_in) + α_in z_in) + ½ Σ_v ‖δ_v(W) − δ_v(α)‖²        z_in = y_in w_n·x_i
#
# over the classes n and the units v (Fenchel), so it is the sum of what was certified of the other classes, of the gap of the
# part, and of how far δ of the units above the part, which are held, have come away from their dual variables. Where that is no
# more than the tolerance, the solution is as good as any; otherwise less is held, and in the end nothing.


MOST = 0.7  # of the classes: where more are reached, all are solved
PART, LEAST = 0.6, 0.1  # of what is left of the tolerance: what the part may use; and of the tolerance, the least


@dataclass(frozen=True, slots=True)
class Local:
    """All classes, of which some were taken over. loose: how far units that are held are from their dual variables."""

    trained: TrainedWeights
    loose: float
    taken_over: int


def solve_reached(
    X: csr_array, own: csr_array, ties: Forest, costs: Costs, setup: Setup, before: WarmStart, start: Dual
) -> Local | Dual:
    """Solve what a change has reached, and take over all else; dual variables to go on from, where that is not enough.

    own: documents × classes. start: dual variables to begin with.
    """
    executor, other = choose_executor(setup.n_jobs), before.learner
    if (
        len(executor.worker_threads) > 1
        or other.class_figures_ is None
        or not before.has_same_documents
        or suits(X, own, setup)
    ):
        return start
    nodes = other.class_nodes_[: len(other.class_figures_)]
    old = tie_along_paths(other.taxonomy_, np.sort(nodes))
    same = same_columns([before.now(columns_of(before.own, nodes))], [own.tocsc()])
    if not np.array_equal(old.class_nodes, nodes):
        return start
    reached, known = find_reached(old, ties, same), other.dual_.numbered(before.documents).of_classes(same)
    while len(classes := reached.classes(ties)) <= MOST * own.shape[1]:
        part = _Part(X, own, ties, costs, setup, other, same, reached, classes)
        found = part.joined(part.solve(executor, start) if len(classes) else None, known)
        if isinstance(found, Local) or not reached.path:
            return found
        reached, start = reached.wider(ties), found  # hold less
    return start


class _Part:
    """The part of a problem that a change has reached, and what is known of all else."""

    def __init__(
        self, X: csr_array, own: csr_array, ties: Forest, costs: Costs, setup: Setup, other: Any, same: Ints, reached: Reached,
        classes: Ints,
    ) -> None:  # fmt: skip
        self.X, self.own, self.ties, self.costs, self.setup = X, own, ties, costs, setup
        self.other, self.same, self.reached, self.classes = other, same, reached, classes
        self.weights: Weights = other.weights_
        is_reached = np.zeros(own.shape[1], dtype=bool)
        is_reached[classes] = True
        self.others = np.flatnonzero(~is_reached)
        self.figures = other.class_figures_[same[self.others]]  # of all others

    def solve(self, executor: Any, start: Dual) -> Solution:
        """Solve the part."""
        rows, some = arrange_rows(self.X, self.setup.bias), self.classes
        held = self._held(rows) if self.reached.path else None
        costs = Costs(self.costs.positive[some], self.costs.negative[some], self.costs.documents)
        settings = replace(self.setup.settings, tolerance=self._tolerance())
        problem = Problem(rows, csc_array(self.own[:, some]), self.reached.forest(self.ties), costs, settings, held)
        return solve(problem, executor, start.of_classes(some), keep_dual=True)

    def _held(self, rows: Rows) -> NDArray[np.float32]:
        """Weights of the unit above the part, as the rows number features."""
        w, bias = self.weights.of_unit(int(self.reached.before[self.reached.path[-1]]))
        dense = np.zeros(rows.n_features, dtype=np.float32)
        dense[rows.place] = w
        if rows.has_bias:
            dense[0] = bias
        return dense

    def _tolerance(self) -> float:
        """What of the tolerance is left for the part, relative to its own objective; no more than the tolerance itself."""
        gap, tolerance = self.other.gap_, self.setup.settings.tolerance
        rest = self.figures.sum(axis=0)
        left = tolerance * gap.primal - (rest[0] - rest[1]) - self.other.slack_
        share = max(gap.primal - rest[0], 1e-12 * gap.primal)
        return float(np.clip(PART * left / share, LEAST * tolerance, tolerance))

    def joined(self, solution: Solution | None, known: Dual) -> Local | Dual:
        """All classes; their dual variables where the gap is not within the tolerance. known: those of before, by class."""
        if solution is None:
            figures, dual, certificate = np.zeros((0, 2)), Dual.none(), Certificate(0.0, 0.0, 0)
        else:
            assert solution.pairs is not None
            assert solution.figures is not None
            figures, certificate = solution.figures, solution.certificate
            dual = Dual.of(solution.pairs, np.arange(self.X.shape[0]))
        place = np.empty(self.own.shape[1], dtype=np.int64)
        place[self.others], place[self.classes] = self.others, self.own.shape[1] + np.arange(len(self.classes))
        duals = known.followed_by(dual).of_classes(place)
        all_figures = np.empty((self.own.shape[1], 2))
        all_figures[self.others], all_figures[self.classes] = self.figures, figures
        loose = self._looseness(duals)
        inner = self._inner_of_others()
        primal = float(self.figures[:, 0].sum()) + inner + certificate.primal
        gap = float(self.figures[:, 0].sum() - self.figures[:, 1].sum()) + certificate.primal - certificate.dual
        found = Certificate(primal, primal - gap - loose - self.other.slack_, certificate.rounds)
        if found.gap > self.setup.settings.tolerance:
            return duals
        weights = self._weights(None if solution is None else solution.weights)
        return Local(
            TrainedWeights(weights, found, dual=duals, figures=all_figures), loose + self.other.slack_, len(self.others)
        )

    def _looseness(self, dual: Dual) -> float:
        """½ Σ ‖δ(W) − δ(α)‖² over the units that are held."""
        if not self.reached.path:
            return 0.0
        classes = np.repeat(np.arange(len(dual)), np.diff(dual.offsets))
        above = [self.ties.above[a:b] for a, b in zip(self.ties.above_offsets[:-1], self.ties.above_offsets[1:], strict=True)]
        loose = 0.0
        for unit in self.reached.path:
            is_below = np.asarray([unit in units for units in above], dtype=bool)[classes]
            a = np.bincount(dual.documents[is_below], dual.values[is_below], minlength=self.X.shape[0])
            k = int(self.reached.before[unit])
            away = self.X.T @ a
            row = self.weights.deltas[[k]]
            away[row.indices] -= row.data
            bias = a.sum() - self.weights.bias[k] if self.setup.bias else 0.0
            loose += 0.5 * float(away @ away + bias * bias)
        return loose

    def _inner_of_others(self) -> float:
        """½ Σ ‖δ‖² over the inner units that are as they were."""
        is_inner = self.ties.class_of < 0
        is_inner[self.reached.units] = False
        units = self.reached.before[is_inner]
        rows, bias = self.weights.deltas[units], self.weights.bias[units]
        return 0.5 * float(np.square(rows.data, dtype=np.float64).sum() + bias @ bias)

    def _weights(self, part: Any) -> Weights:
        """The weights of all units: of the part, and as they were."""
        place = self.reached.before.copy()
        if part is None:
            stacked, bias = self.weights.deltas, self.weights.bias
        else:
            n = len(self.weights.parent)
            place[self.reached.units] = n + bool(self.reached.path) + np.arange(len(self.reached.units))
            stacked = csr_array(vstack([self.weights.deltas, part.deltas], format="csr"))
            bias = np.concatenate([self.weights.bias, part.bias])
        classes = np.flatnonzero(self.ties.class_of >= 0).astype(np.int64)
        return Weights(csr_array(stacked[place]), bias[place], self.ties.parent, classes)
