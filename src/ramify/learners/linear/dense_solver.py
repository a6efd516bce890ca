"""Smooth losses in feature space: Newton's method with a line search, over all classes of a group of units at once.

    α = −U L'(z) is dual feasible at any W, and there U h(α/U) = U L(z) + α z: every step certifies itself

The squared hinge has no second derivative at z = 1; either of its two values will do (semi-smooth Newton, Qi & Sun 1993).
The soft hinge, s ln(1 + e^((1−z)/s)), is where the interior point of the hinge begins (Lee & Mangasarian 2001).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu
from scipy.special import expit
from threadpoolctl import threadpool_limits

from ramify.learners.linear.dense_problem import Best, Floats, Problem, order_units
from ramify.learners.linear.problem import Costs
from ramify.parallel import Executor, SerialExecutor, check_deadline

NEGLECT = 1e-2  # of the curvature, as long as steps shrink well without it
SUFFICIENT = 1e-4  # of the decrease that the slope promises
LONGEST, SHORTEST = 64.0, 1e-12  # steps


@dataclass(frozen=True, slots=True)
class Loss:
    """L(z), −L'(z) and L''(z)."""

    value: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    curvature: Callable[[Floats], Floats]


def soft_hinge(width: float) -> Loss:
    """The hinge with its corner rounded."""
    return Loss(
        lambda z: width * np.logaddexp(0, (1 - z) / width),
        lambda z: expit((1 - z) / width),
        lambda z: expit((1 - z) / width) * expit((z - 1) / width) / width,
    )


SMOOTH = {
    "squared_hinge": Loss(
        lambda z: np.maximum(0, 1 - z) ** 2, lambda z: 2 * np.maximum(0, 1 - z), lambda z: np.where(z < 1, 2.0, 0.0)
    ),
    "logistic": Loss(lambda z: np.logaddexp(0, -z), lambda z: expit(-z), lambda z: expit(z) * expit(-z)),
}


@dataclass(slots=True)
class Descent:
    """Where Newton's method stands: weights and margins, the best point so far, and the share of curvature left out."""

    W: Floats
    Z: Floats
    best: Best
    neglect: float = NEGLECT
    decrement: float = np.inf


def descend(problem: Problem, loss: Loss, start: Floats, max_iter: int, tolerance: float = 0.0, rough: float = 0.0) -> Descent:
    """Steps until the gap is small, or what a step promises, both relative to the objective, or nothing improves."""
    now = Descent(start, problem.margins(start), Best.nothing(problem))
    for k in range(max_iter + 1):
        check_deadline()
        value, gradient = _measure_newton(problem, loss, now)
        if k == max_iter or now.best.gap <= tolerance or not np.isfinite(value):
            break
        try:
            dW = _direction(problem, loss, now, gradient)
        except np.linalg.LinAlgError:
            break
        dZ = problem.margins(dW)
        step = _step(problem, loss, now, (dW, dZ), value, -now.decrement)
        now.best.iterations += 1
        if step == 0.0:
            break
        now.W, now.Z = now.W + step * dW, now.Z + step * dZ
        if now.decrement <= rough * value:
            break
    return now


def _measure_newton(problem: Problem, loss: Loss, now: Descent) -> tuple[float, Floats]:
    """The objective and its gradient; notes W and its dual variables if they are the best."""
    U, losses, promised = np.zeros(problem.shape), 0.0, 0.0
    alphas = np.empty(now.Z.shape)
    for part in problem.parts():
        costs, z = problem.costs_of(part), now.Z[part]
        np.multiply(costs, loss.slope(z), out=alphas[part])
        losses += (lost := float(np.vdot(costs, loss.value(z))))
        promised += lost + float(np.vdot(alphas[part], z))
        problem.gather_in_place(U, part, alphas[part])
    value = problem.half_square(now.W) + losses
    now.best.note(value, now.W, promised - problem.half_inverse_square(U), alphas)
    return value, problem.M @ now.W - U


def _direction(problem: Problem, loss: Loss, now: Descent, gradient: Floats) -> Floats:
    def curvature(k: int) -> Floats:
        return problem.costs_of(k) * loss.curvature(now.Z[k])

    dW = problem.factor(curvature, now.neglect).solve(-gradient)
    before, now.decrement = now.decrement, -float(np.vdot(gradient, dW))
    if now.decrement > 0.5 * before:
        now.neglect *= 0.1
    return dW


def _step(problem: Problem, loss: Loss, now: Descent, change: tuple[Floats, Floats], before: float, slope: float) -> float:
    """Of …, 4, 2, 1, ½, … the longest step before the objective rises again that decreases it sufficiently; or 0."""
    (dW, dZ), square, second = change, problem.half_square(now.W), problem.half_square(change[0])
    mixed = float(np.vdot(dW, problem.M @ now.W))

    def value(step: float) -> float:
        losses = (np.vdot(problem.costs_of(p), loss.value(now.Z[p] + step * dZ[p])) for p in problem.parts())
        return square + step * mixed + step**2 * second + float(sum(losses))

    step, here = 1.0, value(1.0)
    # not a number is not a decrease
    while not here <= before + SUFFICIENT * step * slope + 1e-15 * before:
        step /= 2
        if step < SHORTEST:
            return 0.0
        here = value(step)
    while 1.0 <= step < LONGEST and (further := value(2 * step)) < here:
        step, here = 2 * step, further
    return step


# --------------------------------------------------------------------------------------------------------------
# The hinge loss in feature space: a primal-dual interior point over all classes of a group of units (Mehrotra 1992).
#
#     min ½ tr(W' M W) + Σ U ξ   with   t = z + ξ − 1 ≥ 0,  ξ ≥ 0,  and their multipliers U a and U b,  a + b = 1
#
# At the optimum M W = U(A), A = U a, and a t = b ξ = 0; on the way all products shrink together.
#
# Deviations. Multipliers are measured in costs, so a pair weighs as much in the barrier as in the objective. Products do not
# shrink towards one common μ, but each towards μ times its own share, and shares are the products of a soft hinge, which vanish
# for documents far from the margin: the common path of so many documents is a long detour, this one begins near its end.


NEGLIGIBLE_STEP = 1e-6  # of the curvature: more of it would let M W and U(A) part
SHORT_OF_THE_BOUND = 0.99
LEAST_MU, LEAST_STEP = 1e-15, 1e-8  # where rounding is all that is left
FLOOR = 1e-3  # of the products of a pair to begin with
WIDTH, NARROWER, NARROWEST = 0.3, 0.3, 1e-3  # of soft hinges
BLUR, MOST_BLUR = 0.1, 0.2  # the share of the objective by which a soft hinge may differ from the hinge; where it is hard, more
EASY = 6  # steps
ROUGH, FINE = 1e-2, 1e-4  # what a step may still promise when a soft hinge is left
FIRST_STEPS, SOFT_STEPS = 3, 50


@dataclass(slots=True)
class Interior:
    """Where the path stands; all but W are classes × documents, shares those of the products a t and b ξ."""

    W: Floats
    a: Floats
    b: Floats
    t: Floats
    xi: Floats
    share_t: Floats
    share_xi: Floats

    def pairs(self, part: slice | int) -> tuple[Floats, Floats, Floats, Floats]:
        """a, b, t and ξ of some classes."""
        return self.a[part], self.b[part], self.t[part], self.xi[part]


def follow_path(problem: Problem, tolerance: float, max_iter: int, start: Floats) -> Best:
    """Steps along the path until the relative gap is small; if that got stuck, once more from far away, on the common path."""
    best = Best.nothing(problem)
    _follow(problem, _begin(problem, start), best, tolerance, max_iter)
    if best.gap > tolerance and best.iterations < max_iter:
        far = _widen(np.zeros(problem.shape), np.ones(problem.signs.shape), 1.0)
        _follow(problem, far, best, tolerance, max_iter)
    return best


def _follow(problem: Problem, now: Interior, best: Best, tolerance: float, max_iter: int) -> None:
    """Predictor and corrector steps; notes the best point."""
    while True:
        check_deadline()
        mu, U = _measure_interior(problem, now, best)
        if best.iterations >= max_iter or best.gap <= tolerance or not mu > LEAST_MU:
            break
        try:
            step = _advance(problem, now, mu, U)
        except np.linalg.LinAlgError:
            break
        best.iterations += 1
        if not step > LEAST_STEP:
            break


def _begin(problem: Problem, start: Floats) -> Interior:
    """On the path of a soft hinge so narrow that the difference to the hinge is a small share of the objective."""
    W, width = start, WIDTH
    if not start.any():
        W = descend(problem, SMOOTH["squared_hinge"], start, FIRST_STEPS).W
    while True:
        now = _soften(problem, W, width, ROUGH)
        W, blur = now.W, _blur(problem, now.W, width)
        if blur <= BLUR or (blur <= MOST_BLUR and now.best.iterations > EASY) or width < NARROWEST:
            break
        width *= NARROWER
    now = _soften(problem, W, width, FINE)
    return _widen(now.W, (1 - now.Z) / width, width)


def _soften(problem: Problem, W: Floats, width: float, rough: float) -> Descent:
    return descend(problem, soft_hinge(width), W, SOFT_STEPS, rough=rough)


def _blur(problem: Problem, W: Floats, width: float) -> float:
    """What the α of a soft hinge lack of the hinge at W, Σ U |1−z| / (1 + e^(|1−z|/s)), relative to the objective."""
    lacking, losses, Z = 0.0, 0.0, problem.margins(W)
    for part in problem.parts():
        costs, distance = problem.costs_of(part), 1 - Z[part]
        losses += float(np.vdot(costs, np.maximum(0, distance)))
        lacking += float(np.vdot(costs, np.abs(distance) * expit(-np.abs(distance) / width)))
    return lacking / max(problem.half_square(W) + losses, 1e-300)


def _widen(W: Floats, x: Floats, width: float) -> Interior:
    """The α of a soft hinge at 1 − z = width · x, and for t and ξ the soft hinge on either side of the corner.

    M W = U(A) nearly holds there if W is where that hinge is least, and will hold exactly after the first full step.
    """
    t, xi = np.logaddexp(0, -x), np.logaddexp(0, x)
    lift = np.maximum(0, FLOOR - np.minimum(t, xi))  # of both, as t − ξ = z − 1 must hold
    t, xi = t + lift, xi + lift
    least = FLOOR / (t + xi)
    a, b = np.maximum(least, expit(x)), np.maximum(least, expit(-x))
    a, b, t, xi = a / (a + b), b / (a + b), width * t, width * xi
    return Interior(W, a, b, t, xi, a * t, b * xi)


def _measure_interior(problem: Problem, now: Interior, best: Best) -> tuple[float, Floats]:
    """Mean of the weighted products and U(A); notes W and the dual variables if they are the best."""
    U, losses, promised, products, total = np.zeros(problem.shape), 0.0, 0.0, 0.0, 0.0
    Z, alphas = problem.margins(now.W), np.empty(now.a.shape)
    for part in problem.parts():
        costs, (a, b, t, xi) = problem.costs_of(part), now.pairs(part)
        alphas[part] = costs * np.minimum(a, 1.0)
        losses += float(np.vdot(costs, np.maximum(0, 1 - Z[part])))
        promised += float(alphas[part].sum())
        products += float(np.vdot(costs, a * t + b * xi))
        total += float(np.vdot(costs, now.share_t[part] + now.share_xi[part]))
        problem.gather_in_place(U, part, alphas[part])
    best.note(problem.half_square(now.W) + losses, now.W, promised - problem.half_inverse_square(U), alphas)
    return products / total if total else 0.0, U


def _advance(problem: Problem, now: Interior, mu: float, U: Floats) -> float:
    """One step in place; gives its length."""
    factor = problem.factor(lambda k: problem.costs_of(k) / _theta(*now.pairs(k)), NEGLIGIBLE_STEP)
    still = U - problem.M @ now.W
    # predictor: straight at 0
    first = problem.margins(factor.solve(still + _pull(problem, now, None, 0.0)))
    step, left = _room(problem, now, None, first, 0.0)
    # corrector: as far from 0 as that went wrong, with the second-order error taken off
    aim = (left / mu) ** 3 * mu
    dW = factor.solve(still + _pull(problem, now, first, aim))
    dZ = problem.margins(dW)
    step, _ = _room(problem, now, first, dZ, aim)
    step = min(1.0, SHORT_OF_THE_BOUND * step)
    _move_in_place(problem, now, first, dZ, aim, step)
    now.W = now.W + step * dW
    return step


def _theta(a: Floats, b: Floats, t: Floats, xi: Floats) -> Floats:
    return t / a + xi / b


def _aims(now: Interior, part: slice, first: Floats | None, aim: float) -> tuple[Floats | float, Floats | float]:
    """What the products a t and b ξ shall be, once the predictor, that moved margins by `first`, is known."""
    if first is None:
        return 0.0, 0.0
    da, dt, dxi = _changes(now, part, None, first[part], 0.0)
    return aim * now.share_t[part] - da * dt, aim * now.share_xi[part] + da * dxi


def _lift(now: Interior, part: slice, first: Floats | None, aim: float) -> tuple[Floats, Floats | float, Floats | float]:
    a, b, t, xi = now.pairs(part)
    aim_t, aim_xi = _aims(now, part, first, aim)
    return (aim_t / a - t) - (aim_xi / b - xi), aim_t, aim_xi


def _changes(now: Interior, part: slice, first: Floats | None, dZ: Floats, aim: float) -> tuple[Floats, Floats, Floats]:
    """Newton steps of a (and −b), t and ξ that belong to a change of margins."""
    a, b, t, xi = now.pairs(part)
    lift, aim_t, aim_xi = _lift(now, part, first, aim)
    da = (lift - dZ) / _theta(a, b, t, xi)
    return da, aim_t / a - t - t * da / a, aim_xi / b - xi + xi * da / b


def _pull(problem: Problem, now: Interior, first: Floats | None, aim: float) -> Floats:
    """What the aims add to the right-hand side of the Newton system."""
    U = np.zeros(problem.shape)
    for part in problem.parts():
        lift, _, _ = _lift(now, part, first, aim)
        problem.gather_in_place(U, part, problem.costs_of(part) * lift / _theta(*now.pairs(part)))
    return U


def _room(problem: Problem, now: Interior, first: Floats | None, dZ: Floats, aim: float) -> tuple[float, float]:
    """The step, at most 1, at which the first variable reaches 0, and the mean product there."""
    shrink, sums, total = 1.0, np.zeros(3), 0.0
    for part in problem.parts():
        (a, b, t, xi), costs = now.pairs(part), problem.costs_of(part)
        da, dt, dxi = _changes(now, part, first, dZ[part], aim)
        shrink = max(shrink, *(float((-d / x).max(initial=0)) for d, x in ((da, a), (-da, b), (dt, t), (dxi, xi))))
        sums += [float(np.vdot(costs, p)) for p in (a * t + b * xi, da * t + a * dt - da * xi + b * dxi, da * dt - da * dxi)]
        total += float(np.vdot(costs, now.share_t[part] + now.share_xi[part]))
    step = 1 / shrink
    return step, max(0.0, float(sums @ [1, step, step**2])) / max(total, 1e-300)


def _move_in_place(problem: Problem, now: Interior, first: Floats, dZ: Floats, aim: float, step: float) -> None:
    for part in problem.parts():
        da, dt, dxi = _changes(now, part, first, dZ[part], aim)
        now.a[part] += step * da
        now.b[part] -= step * da
        now.t[part] += step * dt
        now.xi[part] += step * dxi


# --------------------------------------------------------------------------------------------------------------
# Linear learners on few, dense, correlated features, where dual coordinate descent stalls: second-order steps on W itself.
#
#     min over W   ½ Σ_ab M_ab w_a·w_b + Σ_n Σ_i U_in L(y_in w_n·x_i)
#
# over units a, b and classes n, each of them one unit (Gopal & Yang 2013, section 3). With u_n = Σ_i α_in y_in x_i the dual is
# Σ U h(α/U) − ½ tr(U' M⁻¹ U), and training stops when it and the objective differ by no more than the tolerance.
#
# Deviations from the paper. It uses coordinate descent and L-BFGS; here the hinge is solved by an interior point and the smooth
# losses by Newton steps, each over all units at once. Units that M does not connect are solved one group after the other, each
# to the tolerance: classes on their own, where M is diagonal.


FEW, DENSE = 256, 0.25  # features, and the share of them that a document has
VERY_FEW = 64
FREE_WORK = 1000.0  # products of blocks that are always worth it
BLOCKS = 1 << 27  # numbers in the blocks of all classes: a gigabyte


@dataclass(frozen=True, slots=True)
class DenseSolution:
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


def suits_dense_solver(n_docs: int, n_features: int, nnz: int, n_classes: int) -> bool:
    """Whether features are few and documents dense: at most 64, or at most 256 of which a document has a quarter.

    A step costs documents × features² for every class, and features² numbers are kept of it: no more than a gigabyte.

    >>> suits_dense_solver(10_000, 81, 700_000, 63), suits_dense_solver(10_000, 40_000, 700_000, 63)
    (True, False)
    """
    dense = n_features <= FEW and nnz >= DENSE * n_docs * n_features
    return (n_features <= VERY_FEW or dense) and n_classes * n_features**2 <= BLOCKS


def solve_dense(
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
) -> DenseSolution:
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
    return DenseSolution(W, alphas.T, primal, dual, iterations)


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
