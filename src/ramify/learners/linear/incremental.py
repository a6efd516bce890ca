"""Incremental training: reuse the classifiers of an earlier model whose documents have not changed, and solve the others.

Independent classes are reused one by one. Of a tree, the part below the change is solved with the weights above it held
fixed. For any weights W and dual variables α the duality gap is (Fenchel)

    Σ_n Σ_i U_in (L(z_in) − h(α_in / U_in) + α_in z_in) + ½ Σ_v ‖δ_v(W) − δ_v(α)‖²        z_in = y_in w_n·x_i

over the classes n and the units v. So it is the sum of what is certified of the reused classes, of the gap of the part, and of
the slack: how far δ of the fixed units is from their dual variables. Where that exceeds the tolerance, fewer units are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, vstack

from ramify.errors import ModelError
from ramify.learners.linear.dual_solver import TrainedWeights, solve
from ramify.learners.linear.problem import LARGEST_OBJECTIVE, Certificate, Costs, Dual, Problem, arrange_rows
from ramify.learners.linear.taxonomy_ties import Forest, Joins, tie_along_paths
from ramify.learners.linear.training import Setup, suits
from ramify.learners.linear.weights import Weights
from ramify.learners.warm_start import WarmStart, match_columns
from ramify.parallel import choose_executor
from ramify.taxonomy import Taxonomy

Ints = NDArray[np.int64]
SAME = ("loss", "tol", "max_iter", "mode", "fit_intercept", "class_weight", "ties")
MOST = 0.7  # fraction of the classes: where more have changed, all are solved
PART, LEAST = 0.6, 0.1  # of the unused tolerance, what the part may use; and of the tolerance, the least


def has_same_parameters(learner: Any, warm_start: WarmStart | None, C: float) -> bool:
    """Whether an earlier learner solved the same problems exactly and with the same parameters, so that they can be reused."""
    if warm_start is None or type(warm_start.learner) is not type(learner):
        return False
    mine, theirs = learner.get_params(deep=False), warm_start.learner.get_params(deep=False)
    is_exact = mine.get("mode", "exact") == "exact" and learner.class_weight is None
    same = all(mine.get(name) == theirs.get(name) for name in SAME) and warm_start.learner.C_ == C
    return bool(is_exact and same and warm_start.learner.n_features_in_ == learner.n_features_in_)


# ---- independent classes ------------------------------------------------------------------------------------------------


def are_independent(weights: Weights, figures: NDArray[np.float64] | None) -> bool:
    """Whether classes can be reused one by one: none has weights of its parents, and each has its objective and bound."""
    return figures is not None and len(figures) == weights.n_classes and weights.is_flat


def reuse_or_train(
    reused: Ints, weights: Weights, figures: NDArray[np.float64], train_some: Callable[[Ints], TrainedWeights],
    dual: Dual | None = None,
) -> TrainedWeights:  # fmt: skip
    """Independent classes: reuse some and train the others.

    reused: for every class the one that it reuses, -1 to train it. weights, figures, dual: of the classes that can be reused.
    train_some: trains some of the classes.
    """
    fresh, n = np.flatnonzero(reused < 0), len(figures)
    trained = train_some(fresh) if len(fresh) else _nothing(weights.n_features)
    place = reused.copy()
    place[fresh] = n + np.arange(len(fresh))
    primal, bound = figures[reused[reused >= 0]].sum(axis=0)
    found = trained.certificate
    certificate = Certificate(float(primal) + found.primal, float(bound) + found.dual, found.rounds)
    joined = None if trained.figures is None else np.concatenate([figures, trained.figures])[place]
    both = None if dual is None or trained.dual is None else dual.followed_by(trained.dual).of_classes(place)
    rows = csr_array(vstack([weights.deltas, trained.weights.deltas], format="csr")[place])
    made = Weights.flat(rows, np.concatenate([weights.bias, trained.weights.bias])[place])
    return TrainedWeights(made, certificate, dual=both, figures=joined)


def _nothing(n_features: int) -> TrainedWeights:
    """What there is to train where no class has changed."""
    empty = Weights.flat(csr_array((0, n_features), dtype=np.float32), np.zeros(0))
    return TrainedWeights(empty, Certificate(0.0, 0.0, 0), figures=np.zeros((0, 2)), dual=Dual.none())


def start_from(warm_start: WarmStart, own: csr_array) -> Dual | None:
    """Dual variables for the classes of now (own: documents × classes), from the old classes that share most documents."""
    dual: Dual | None = warm_start.learner.dual_
    if dual is None:
        return None
    old = csr_array(warm_start.own[:, warm_start.learner.class_nodes_[: len(dual)]])
    return dual.numbered(warm_start.documents).of_classes(warm_start.most_similar(old, own))


def add_empty_leaves(weights: Weights, ties: Forest, leaves: Ints, taxonomy: Taxonomy) -> tuple[Weights, Ints]:
    """Give leaves without documents the weights of their ancestors that have any; returns these leaves, too.

    A leaf without a loss has δ = 0 at the optimum, and in a tree the weights of its parent.
    """
    unit_of: dict[int, int] = {}
    for unit, node in enumerate(ties.node.tolist()):
        unit_of.setdefault(node, unit)  # an inner node comes before the class of its own documents
    found: list[tuple[int, int]] = []
    added: dict[int, list[int]] = {}
    n_units = len(weights.parent)
    for leaf in leaves.tolist():
        above = {unit_of[node] for node in taxonomy.ancestors_of(leaf).tolist() if node in unit_of}
        if above and leaf not in unit_of:
            main = max(above, key=lambda unit: (len(weights.path_of(unit)), unit))
            added[n_units + len(found)] = sorted(above - set(weights.path_of(main)))
            found.append((leaf, main))
    if not found:
        return weights, np.zeros(0, dtype=np.int64)
    (nodes, units), n = np.asarray(found, dtype=np.int64).T, len(found)
    empty = csr_array((n, weights.n_features), dtype=weights.deltas.dtype)
    deltas = csr_array(vstack([weights.deltas, empty], format="csr"))
    numbers = n_units + np.arange(n, dtype=np.int64)
    known = {} if weights.joins is None else {unit: weights.joins.added_by(unit) for unit in range(n_units)}
    joins = Joins.of(n_units + n, known | added) if known or any(added.values()) else None
    parents = np.concatenate([weights.parent, units.astype(np.int32)])
    class_units = np.append(weights.class_units, numbers)
    return Weights(deltas, np.append(weights.bias, np.zeros(n)), parents, class_units, joins), nodes


def check_figures(figures: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
    """Check the objectives and bounds of a model file."""
    fits = figures.ndim == 2 and figures.shape[0] <= n_classes and figures.shape[1] == 2  # leaves without documents have none
    if figures.dtype != np.float64 or not fits or not (np.abs(figures) <= LARGEST_OBJECTIVE).all():
        raise ModelError("the certificates of the classes do not fit the linear model; train the model again.")
    return figures


# ---- the changed part of a tree -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChangedPart:
    """The part of a tree that has changed.

    old: for every unit its old number, -1 where it is new or has changed. path: from the root down, the units above the
    change, whose weights are held fixed. units: those that have changed, classes included.
    """

    old: Ints
    path: list[int]
    units: Ints

    def classes(self, forest: Forest) -> Ints:
        """The classes among the changed units."""
        found = forest.class_of[self.units]
        return found[found >= 0].astype(np.int64)

    def wider(self, forest: Forest) -> ChangedPart:
        """The same with the last unit of the path and everything below it."""
        is_changed = np.zeros(len(forest) + 1, dtype=bool)  # the last one stands above the roots
        is_changed[self.path[-1]] = True
        for unit in range(self.path[-1] + 1, len(forest)):  # parents come first
            is_changed[unit] = is_changed[forest.parent[unit]]
        units, old = np.flatnonzero(is_changed[:-1]), self.old.copy()
        old[units] = -1
        return ChangedPart(old, self.path[:-1], units)

    def forest(self, forest: Forest) -> Forest:
        """The changed units, and above them the last unit of the path, if there is any."""
        units = np.sort(np.concatenate([self.path[-1:], self.units])).astype(np.int64)
        place = np.full(len(forest) + 1, -1, dtype=np.int32)
        place[units] = np.arange(len(units), dtype=np.int32)
        return Forest.numbered(place[forest.parent[units]], forest.node[units], forest.class_of[units] >= 0)


def find_changed_part(old: Forest, new: Forest, same: Ints) -> ChangedPart:
    """Compare two trees. same: for every class of the new one its number in the old one, -1 where it is new or has changed.

    Units are equal if the same classes are below them in the same arrangement; node names do not matter. The path goes down
    from the root as long as exactly one child has changed.
    """
    drawn = np.random.default_rng(0).integers(1, 2**63, size=len(same) + int(old.class_of.max(initial=-1)) + 1, dtype=np.uint64)
    known, fresh = drawn[len(same) :], drawn[: len(same)]
    new_keys, old_keys = _hash_units(new, np.where(same >= 0, known[same], fresh)), _hash_units(old, known)
    unit_of = {key: unit for unit, key in enumerate(old_keys.tolist())}
    old_of = np.asarray([unit_of.get(key, -1) for key in new_keys.tolist()], dtype=np.int64)
    path, at, old_at = [], -1, -1
    while True:
        children, old_children = np.flatnonzero(new.parent == at), np.flatnonzero(old.parent == old_at)
        changed = children[~np.isin(new_keys[children], old_keys[old_children])]
        gone = old_children[~np.isin(old_keys[old_children], new_keys[children])]
        if len(changed) != 1 or len(gone) != 1 or new.class_of[changed[0]] >= 0 or old.class_of[gone[0]] >= 0:
            break
        at, old_at = int(changed[0]), int(gone[0])
        path.append(at)
        old_of[at] = old_at
    is_changed = np.zeros(len(new) + 1, dtype=bool)  # the last one stands above the roots
    is_changed[changed] = True
    for unit in np.setdiff1d(np.arange(len(new)), path).tolist():  # parents come first
        is_changed[unit] |= is_changed[new.parent[unit]]
    units = np.flatnonzero(is_changed[:-1])
    old_of[units] = -1
    return ChangedPart(old_of, path, units)


def _hash_units(forest: Forest, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of everything below each unit. keys: of every class."""
    found = np.zeros(len(forest), dtype=np.uint64)
    for unit in range(len(forest) - 1, -1, -1):  # parents come first, so a backward sweep sees children first
        is_class = forest.class_of[unit] >= 0
        found[unit] = keys[forest.class_of[unit]] if is_class else _splitmix64(found[unit])
        if forest.parent[unit] >= 0:
            with np.errstate(over="ignore"):
                found[forest.parent[unit]] += _splitmix64(found[unit])
    return found


def _splitmix64(key: np.uint64) -> np.uint64:
    with np.errstate(over="ignore"):
        key = np.uint64(key) + np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return key ^ (key >> np.uint64(31))


def solve_changed_part(
    X: csr_array, own: csr_array, ties: Forest, costs: Costs, setup: Setup, warm_start: WarmStart, start: Dual
) -> tuple[TrainedWeights, float, int] | Dual:
    """Solve the changed part of a tree and reuse the rest; where that is not possible, returns dual variables to start from.

    Otherwise returns the weights, the slack, and how many classes were reused. own: documents × classes. start: of all classes.
    """
    executor, other = choose_executor(setup.n_jobs), warm_start.learner
    has_one_worker = len(executor.worker_threads) == 1 and not suits(X, own, setup)
    if not has_one_worker or other.class_figures_ is None or not warm_start.has_same_documents:
        return start
    nodes = other.class_nodes_[: len(other.class_figures_)]
    old = tie_along_paths(other.taxonomy_, np.sort(nodes))
    if not old.is_tree or not ties.is_tree:  # the change of a DAG is no subtree
        return start
    if not np.array_equal(other.weights_.parent[: len(old)], old.parent):  # so that units have the same numbers
        return start
    same = match_columns([warm_start.renumber(csc_array(warm_start.own[:, nodes]))], [own.tocsc()])
    if not np.array_equal(old.class_nodes, nodes):
        return start
    changed, known = find_changed_part(old, ties, same), other.dual_.numbered(warm_start.documents).of_classes(same)
    while len(classes := changed.classes(ties)) <= MOST * own.shape[1]:
        others = np.setdiff1d(np.arange(own.shape[1]), classes)
        figures = other.class_figures_[same[others]]
        part = _Part(X, own, ties, costs, setup, other, changed, classes, others, figures)
        trained = part.solve(executor, start) if len(classes) else _nothing(X.shape[1])
        found = part.combine(trained, known)
        if not isinstance(found, Dual) or not changed.path:
            return found
        changed, start = changed.wider(ties), found
    return start


@dataclass(frozen=True, slots=True)
class _Part:
    """The changed part of a problem, and what is known of the rest. figures: of the other classes, which are reused."""

    X: csr_array
    own: csr_array
    ties: Forest
    costs: Costs
    setup: Setup
    other: Any
    changed: ChangedPart
    classes: Ints
    others: Ints
    figures: NDArray[np.float64]

    def solve(self, executor: Any, start: Dual) -> TrainedWeights:
        rows, some, held = arrange_rows(self.X, self.setup.bias), self.classes, None
        if self.changed.path:  # weights of the unit above the part, in the feature order of the rows
            w, bias = self.other.weights_.of_unit(int(self.changed.old[self.changed.path[-1]]))
            held = np.zeros(rows.n_features, dtype=np.float32)
            held[rows.place] = w
            if rows.has_bias:
                held[0] = bias
        # what is left of the tolerance for the part, relative to its own objective; at most the tolerance itself
        objective, tolerance, rest = self.other.gap_.primal, self.setup.settings.tolerance, self.figures.sum(axis=0)
        left = tolerance * objective - (rest[0] - rest[1]) - self.other.slack_
        fraction = PART * left / max(objective - rest[0], 1e-12 * objective)
        settings = replace(self.setup.settings, tolerance=float(np.clip(fraction, LEAST * tolerance, tolerance)))
        own, ties = csc_array(self.own[:, some]), self.changed.forest(self.ties)
        problem = Problem(rows, own, ties, self.costs.of(some), settings, held)
        trained = solve(problem, executor, start.of_classes(some), keep_dual=True)
        assert trained.pairs is not None
        return replace(trained, dual=Dual.of(trained.pairs, np.arange(len(rows))))

    def combine(self, trained: TrainedWeights, known: Dual) -> tuple[TrainedWeights, float, int] | Dual:
        """All classes; or, where the gap is above the tolerance, their dual variables. known: those of the reused classes."""
        assert trained.dual is not None
        n, certificate = self.own.shape[1], trained.certificate
        place, all_figures = np.empty(n, dtype=np.int64), np.empty((n, 2))
        place[self.others], place[self.classes] = self.others, n + np.arange(len(self.classes))
        all_figures[self.others], all_figures[self.classes] = self.figures, trained.figures
        duals = known.followed_by(trained.dual).of_classes(place)
        slack = self._slack(duals)
        is_reused = self.ties.class_of < 0
        is_reused[self.changed.units] = False
        rows, bias = (part[self.changed.old[is_reused]] for part in (self.other.weights_.deltas, self.other.weights_.bias))
        inner = 0.5 * float(np.square(rows.data, dtype=np.float64).sum() + bias @ bias)  # of the inner units that are reused
        primal = float(self.figures[:, 0].sum()) + inner + certificate.primal
        gap = float(self.figures[:, 0].sum() - self.figures[:, 1].sum()) + certificate.primal - certificate.dual
        found = Certificate(primal, primal - gap - slack - self.other.slack_, certificate.rounds)
        if found.gap > self.setup.settings.tolerance:
            return duals
        weights = self._combine_weights(trained.weights)
        combined = TrainedWeights(weights, found, dual=duals, figures=all_figures)
        return combined, slack + self.other.slack_, len(self.others)

    def _slack(self, dual: Dual) -> float:
        """½ Σ ‖δ(W) − δ(α)‖² over the fixed units."""
        if not self.changed.path:
            return 0.0
        classes = np.repeat(np.arange(len(dual)), np.diff(dual.offsets))
        above = [self.ties.above[a:b] for a, b in zip(self.ties.above_offsets[:-1], self.ties.above_offsets[1:], strict=True)]
        weights, slack = self.other.weights_, 0.0
        for unit in self.changed.path:
            is_below = np.asarray([unit in units for units in above], dtype=bool)[classes]
            a = np.bincount(dual.documents[is_below], dual.values[is_below], minlength=self.X.shape[0])
            k = int(self.changed.old[unit])
            difference = self.X.T @ a
            row = weights.deltas[[k]]
            difference[row.indices] -= row.data
            bias = a.sum() - weights.bias[k] if self.setup.bias else 0.0
            slack += 0.5 * float(difference @ difference + bias * bias)
        return slack

    def _combine_weights(self, trained: Weights) -> Weights:
        place, known = self.changed.old.copy(), self.other.weights_
        first = len(known.bias) + bool(self.changed.path)  # the fixed unit comes first in the part
        place[self.changed.units] = first + np.arange(len(self.changed.units))
        deltas = csr_array(vstack([known.deltas, trained.deltas], format="csr")[place])
        bias = np.concatenate([known.bias, trained.bias])[place]
        return Weights(deltas, bias, self.ties.parent, np.flatnonzero(self.ties.class_of >= 0).astype(np.int64))
