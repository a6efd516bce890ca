"""Linear classifiers that another learner has learnt already, beside those that must be learnt anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, vstack

from ramify.errors import ModelError
from ramify.learners.before import Before
from ramify.learners.linear.dual import Dual
from ramify.learners.linear.forest import Forest
from ramify.learners.linear.problem import Certificate
from ramify.learners.linear.training import Trained
from ramify.learners.linear.weights import Weights

Ints = NDArray[np.int64]
SAME = ("C_", "loss", "tol", "max_iter", "mode", "fit_intercept", "class_weight", "n_features_in_")


def is_alike(learner: Any, before: Before | None, C: float) -> bool:
    """Whether an earlier learner solved the same problems with the same parameters, so that its solutions count."""
    if before is None or type(before.learner) is not type(learner):
        return False
    other, mine = before.learner, {"C_": C}
    same = all(getattr(other, name, None) == mine.get(name, getattr(learner, name, None)) for name in SAME)
    is_exact = getattr(learner, "mode", "exact") == "exact" and learner.class_weight is None
    return same and is_exact and isinstance(getattr(other, "weights_", None), (Weights, type(None)))  # none in shards


def train_others(
    taken: Ints, weights: Weights, figures: NDArray[np.float64], train_some: Callable[[Ints], Trained], dual: Dual | None = None
) -> Trained:
    """Classes that stand alone: some taken over, the others trained.

    taken: for every class the one that is taken over, -1 where it is to be trained. weights, figures, dual: of those that can
    be taken over. train_some: trains some of the classes.
    """
    fresh, n = np.flatnonzero(taken < 0), len(figures)
    trained = train_some(fresh) if len(fresh) else None
    place = taken.copy()
    place[fresh] = n + np.arange(len(fresh))
    if trained is None:
        trained = Trained(_none_of(weights), Certificate(0.0, 0.0, 0), figures=np.zeros((0, 2)), dual=Dual.none())
    primal, dual_bound = figures[taken[taken >= 0]].sum(axis=0)
    found = trained.certificate
    certificate = Certificate(float(primal) + found.primal, float(dual_bound) + found.dual, found.rounds)
    joined = None if trained.figures is None else np.concatenate([figures, trained.figures])[place]
    both = None if dual is None or trained.dual is None else dual.followed_by(trained.dual).of_classes(place)
    return Trained(_rows_of(weights, trained.weights, place), certificate, dual=both, figures=joined)


def _none_of(weights: Weights) -> Weights:
    nothing = np.zeros(0, dtype=np.int64)
    return Weights(csr_array((0, weights.n_features), dtype=np.float32), np.zeros(0), nothing.astype(np.int32), nothing)


def _rows_of(first: Weights, second: Weights, place: Ints) -> Weights:
    """Classes that stand alone, from the rows of two models after each other."""
    rows = csr_array(vstack([first.deltas, second.deltas], format="csr")[place])
    bias, n = np.concatenate([first.bias, second.bias])[place], len(place)
    return Weights(rows, bias, np.full(n, -1, dtype=np.int32), np.arange(n, dtype=np.int64))


def start_from(before: Before, own: csr_array) -> Dual | None:
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


def checked_figures(figures: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
    """Objectives and bounds of a model file."""
    fits = figures.ndim == 2 and figures.shape[0] <= n_classes and figures.shape[1] == 2  # leaves without documents have none
    if figures.dtype != np.float64 or not fits or not np.isfinite(figures).all():
        raise ModelError("what is certain of the classes does not fit the linear model; train the model again.")
    return figures


def columns_of(own: csr_array, nodes: Ints) -> csc_array:
    """Documents × some nodes."""
    return csc_array(own[:, nodes])
