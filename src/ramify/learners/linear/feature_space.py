"""Linear learners on few, dense, correlated features, where dual coordinate descent stalls: second-order steps on W itself.

    min over W   ½ Σ_ab M_ab w_a·w_b + Σ_n Σ_i U_in L(y_in w_n·x_i)

over units a, b and classes n, each of them one unit (Gopal & Yang 2013, section 3). With u_n = Σ_i α_in y_in x_i the dual is
Σ U h(α/U) − ½ tr(U' M⁻¹ U), and training stops when it and the objective differ by no more than the tolerance.

Deviations from the paper. It uses coordinate descent and L-BFGS; here the hinge is solved by an interior point and the smooth
losses by Newton steps, each over all units at once. Units that M does not connect are solved one group after the other, each
to the tolerance: classes on their own, where M is diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu
from threadpoolctl import threadpool_limits

from ramify.execution import Executor, SerialExecutor
from ramify.learners.linear.feature_interior import follow_path
from ramify.learners.linear.feature_newton import SMOOTH, descend
from ramify.learners.linear.feature_problem import Best, Problem
from ramify.learners.linear.problem import Costs
from ramify.learners.linear.unit_blocks import Floats, order_units

FEW, DENSE = 256, 0.25  # features, and the share of them that a document has
VERY_FEW = 64
FREE_WORK = 1000.0  # products of blocks that are always worth it
BLOCKS = 1 << 27  # numbers in the blocks of all classes: a gigabyte


@dataclass(frozen=True, slots=True)
class FeatureSolution:
    """Weights (units × features), dual variables (documents × classes), objective, bound, and the most steps of a group."""

    W: Floats
    alphas: Floats
    primal: float
    dual: float
    iterations: int

    @property
    def gap(self) -> float:
        """(primal − dual) / primal."""
        return max(0.0, self.primal - self.dual) / max(self.primal, 1e-300)


def suits_feature_space(n_docs: int, n_features: int, nnz: int, n_classes: int) -> bool:
    """Whether features are few and documents dense: at most 64, or at most 256 of which a document has a quarter.

    A step costs documents × features² for every class, and features² numbers are kept of it: no more than a gigabyte.

    >>> suits_feature_space(10_000, 81, 700_000, 63), suits_feature_space(10_000, 40_000, 700_000, 63)
    (True, False)
    """
    dense = n_features <= FEW and nnz >= DENSE * n_docs * n_features
    return (n_features <= VERY_FEW or dense) and n_classes * n_features**2 <= BLOCKS


def solve_in_feature_space(
    X: Floats,
    own: csc_array,
    M: csr_array,
    class_units: NDArray[np.integer],
    costs: Costs,
    loss: str = "hinge",
    tolerance: float = 1e-3,
    max_iter: int = 200,
    start: Floats | None = None,
    executor: Executor | None = None,
) -> FeatureSolution:
    """Solve a problem whose features are few, from the weights of an earlier solution with other costs if there are any.

    Blocks are too small for several threads to work on one; so groups are shared out instead.
    """
    W = np.zeros((M.shape[0], X.shape[1]))
    alphas = np.zeros((own.shape[1], X.shape[0]))
    primal, dual, iterations = 0.0, 0.0, 0

    def work(group: Group) -> tuple[Group, Best]:
        first = np.zeros(group.problem.shape) if start is None else np.nan_to_num(start[group.units])
        return group, _solve(group.problem, loss, tolerance, max_iter, first)

    groups = _groups(np.ascontiguousarray(X, dtype=np.float64), own, M, class_units, costs)
    with threadpool_limits(1, "blas"):
        for group, best in (executor or SerialExecutor()).map(work, groups):
            W[group.units], alphas[group.classes] = best.W, best.alphas
            primal, dual, iterations = primal + best.primal, dual + best.dual, max(iterations, best.iterations)
    return FeatureSolution(W, alphas.T, primal, dual, iterations)


def _solve(problem: Problem, loss: str, tolerance: float, max_iter: int, start: Floats) -> Best:
    with np.errstate(all="ignore"):  # a step that overflows is seen, and the best point before it returned
        if loss == "hinge":
            best = follow_path(problem, tolerance, max_iter, start)
        else:
            best = descend(problem, SMOOTH[loss], start, max_iter, tolerance).best
    if np.isfinite(best.primal) or not start.any():
        return best
    return _solve(problem, loss, tolerance, max_iter, np.zeros(problem.shape))  # the start was too far away


class Group(NamedTuple):
    """Units that M connects, the classes among them, and their problem."""

    units: NDArray[np.intp]
    classes: NDArray[np.intp]
    problem: Problem


def _groups(X: Floats, own: csc_array, M: csr_array, class_units: NDArray[np.integer], costs: Costs) -> Iterator[Group]:
    """All groups that have classes."""
    M = csr_array(M, dtype=np.float64, copy=True)
    M.sum_duplicates()
    M.eliminate_zeros()
    _, group_of = connected_components(M, directed=False)
    place = np.zeros(M.shape[0], dtype=np.intp)
    for group in np.unique(group_of[class_units]):
        units, classes = np.flatnonzero(group_of == group), np.flatnonzero(group_of[class_units] == group)
        place[units] = np.arange(len(units))
        M_group = csr_array(M[units][:, units])
        # filling in may cost a few times what the blocks of classes cost to make
        most_work = max(FREE_WORK, 4 * len(classes) * len(X) / X.shape[1])
        problem = Problem(
            X,
            np.ascontiguousarray(np.where(own[:, classes].toarray().T, np.int8(1), np.int8(-1))),
            costs.positive[classes].astype(np.float64),
            costs.negative[classes].astype(np.float64),
            costs.documents.astype(np.float64),
            M_group,
            splu(M_group.tocsc()),
            place[class_units[classes]],
            order_units(M_group, most_work),
        )
        yield Group(units, classes, problem)
