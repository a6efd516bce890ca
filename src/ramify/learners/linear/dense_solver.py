"""The solver for few, dense, correlated features, where dual coordinate ascent stalls: second-order steps on W itself.

    min over W   ½ Σ_ab M_ab w_a·w_b + Σ_n Σ_i U_in L(y_in w_n·x_i)

over units a, b and classes n (Gopal & Yang 2013, section 3). With u_n = Σ_i α_in y_in x_i the dual is
Σ U h(α/U) − ½ tr(U' M⁻¹ U), and training stops when it and the objective differ by at most the tolerance.

Deviations from the paper: it uses coordinate descent and L-BFGS. Here an interior point method solves the hinge, and Newton's
method the smooth losses, over all units of a group at once. Groups of units that M does not connect are solved one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu
from scipy.special import expit
from threadpoolctl import threadpool_limits

from ramify.learners.linear.dense_problem import Best, DenseProblem, Floats, order_units
from ramify.learners.linear.problem import Costs
from ramify.parallel import Executor, SerialExecutor, check_deadline

Ints = NDArray[np.intp]
FREE_WORK = 1000.0  # products of blocks that are always worthwhile

# Newton's method
NEGLECT = 1e-2  # fraction of the curvature that is left out while steps shrink well without it
SUFFICIENT = 1e-4  # fraction of the decrease that the slope predicts
LONGEST, SHORTEST = 64.0, 1e-12  # steps

# the interior point method
NEGLIGIBLE_STEP = 1e-6  # fraction of the curvature that is left out; more would separate M W from U(A)
SHORT_OF_THE_BOUND = 0.99
LEAST_MU, LEAST_STEP = 1e-15, 1e-8  # below these there is only rounding
FLOOR = 1e-3  # of the first products of a pair
WIDTH, NARROWER, NARROWEST = 0.3, 0.3, 1e-3  # of soft hinges
BLUR, MOST_BLUR = 0.1, 0.2  # relative difference allowed between a soft hinge and the hinge; more for hard problems
EASY = 6  # steps
ROUGH, FINE = 1e-2, 1e-4  # predicted relative decrease at which a soft hinge is solved
FIRST_STEPS, SOFT_STEPS = 3, 50


def solve_dense(
    X: Floats, own: csc_array, M: csr_array, class_units: NDArray[np.integer], costs: Costs, loss: str = "hinge",
    tolerance: float = 1e-3, max_iter: int = 200, start: Floats | None = None, executor: Executor | None = None,
) -> Best:  # fmt: skip
    """Solve a problem with few features. start: the weights of a solution for other costs.

    Threads work on different groups of units, since the blocks of one group are too small to share.
    """
    W, alphas = np.zeros((M.shape[0], X.shape[1])), np.zeros((own.shape[1], X.shape[0]))
    primal, dual, iterations = 0.0, 0.0, 0

    def work(group: tuple[Ints, Ints, DenseProblem]) -> tuple[Ints, Ints, Best]:
        units, classes, problem = group
        first = np.zeros(problem.shape) if start is None else np.nan_to_num(start[units])
        return units, classes, _solve_group(problem, loss, tolerance, max_iter, first)

    groups = _groups(np.ascontiguousarray(X, dtype=np.float64), own, M, class_units, costs)
    with threadpool_limits(1, "blas"):
        for units, classes, best in (executor or SerialExecutor()).map(work, groups):
            W[units], alphas[classes] = best.W, best.alphas
            primal, dual, iterations = primal + best.primal, dual + best.dual, max(iterations, best.iterations)
    return Best(W, alphas.T, primal, dual, iterations)


def _solve_group(problem: DenseProblem, loss: str, tolerance: float, max_iter: int, start: Floats) -> Best:
    with np.errstate(all="ignore"):  # a step that overflows is detected, and the best point is returned
        if loss == "hinge":
            best = follow_path(problem, tolerance, max_iter, start)
        else:
            best = descend(problem, SMOOTH[loss], start, max_iter, tolerance).best
    if np.isfinite(best.primal) or not start.any():
        return best
    return _solve_group(problem, loss, tolerance, max_iter, np.zeros(problem.shape))  # the start was too far off


def _groups(
    X: Floats, own: csc_array, M: csr_array, class_units: NDArray[np.integer], costs: Costs
) -> Iterator[tuple[Ints, Ints, DenseProblem]]:
    """All groups of units that M connects and that have classes: units, classes, and their problem."""
    M = csr_array(M, dtype=np.float64, copy=True)
    M.sum_duplicates()
    M.eliminate_zeros()
    _, group_of = connected_components(M, directed=False)
    place = np.zeros(M.shape[0], dtype=np.intp)
    for group in np.unique(group_of[class_units]):
        units, classes = np.flatnonzero(group_of == group), np.flatnonzero(group_of[class_units] == group)
        place[units] = np.arange(len(units))
        M_group = csr_array(M[units][:, units])
        # fill-in may cost a few times as much as the blocks of the classes
        most_work = max(FREE_WORK, 4 * len(classes) * len(X) / X.shape[1])
        signs = np.ascontiguousarray(np.where(own[:, classes].toarray().T, np.int8(1), np.int8(-1)))
        some = costs.positive[classes], costs.negative[classes], costs.documents
        positive, negative, weights = (each.astype(np.float64) for each in some)
        ties = M_group, splu(M_group.tocsc()), place[class_units[classes]], order_units(M_group, most_work)
        yield units, classes, DenseProblem(X, signs, positive, negative, weights, *ties)


# ---- smooth losses: Newton's method with a line search ------------------------------------------------------------------
#
#     α = −U L'(z) is dual feasible at any W, and there U h(α/U) = U L(z) + α z: every step certifies itself
#
# The squared hinge has no second derivative at z = 1; either of its two values will do (semi-smooth Newton, Qi & Sun 1993).
# The soft hinge, s ln(1 + e^((1−z)/s)), is where the interior point method starts (Lee & Mangasarian 2001).


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
    """The state of Newton's method: weights and margins, the best point so far, and the fraction of curvature left out."""

    W: Floats
    Z: Floats
    best: Best
    neglect: float = NEGLECT
    decrement: float = np.inf


def descend(
    problem: DenseProblem, loss: Loss, start: Floats, max_iter: int, tolerance: float = 0.0, rough: float = 0.0
) -> Descent:
    """Steps until the gap is at most the tolerance, a step predicts a relative decrease below `rough`, or none improves."""
    now = Descent(start, problem.margins(start), Best.nothing(problem))
    for k in range(max_iter + 1):
        check_deadline()
        value, gradient = _measure_newton(problem, loss, now)
        if k == max_iter or now.best.gap <= tolerance or not np.isfinite(value):
            break
        try:
            factor = problem.factor(lambda k: problem.costs_of(k) * loss.curvature(now.Z[k]), now.neglect)
            dW = factor.solve(-gradient)
        except np.linalg.LinAlgError:
            break
        last, now.decrement = now.decrement, -float(np.vdot(gradient, dW))
        if now.decrement > 0.5 * last:
            now.neglect *= 0.1
        dZ = problem.margins(dW)
        step = _step(problem, loss, now, (dW, dZ), value, -now.decrement)
        now.best.iterations += 1
        if step == 0.0:
            break
        now.W, now.Z = now.W + step * dW, now.Z + step * dZ
        if now.decrement <= rough * value:
            break
    return now


def _measure_newton(problem: DenseProblem, loss: Loss, now: Descent) -> tuple[float, Floats]:
    """The objective and its gradient; records W and its dual variables if they are the best."""
    U, losses, conjugate = np.zeros(problem.shape), 0.0, 0.0
    alphas = np.empty(now.Z.shape)
    for part in problem.parts():
        costs, z = problem.costs_of(part), now.Z[part]
        np.multiply(costs, loss.slope(z), out=alphas[part])
        losses += (lost := float(np.vdot(costs, loss.value(z))))
        conjugate += lost + float(np.vdot(alphas[part], z))
        problem.gather_in_place(U, part, alphas[part])
    value = problem.half_square(now.W) + losses
    now.best.note(value, now.W, conjugate - problem.half_inverse_square(U), alphas)
    return value, problem.M @ now.W - U


def _step(problem: DenseProblem, loss: Loss, now: Descent, change: tuple[Floats, Floats], start: float, slope: float) -> float:
    """The longest of …, 4, 2, 1, ½, … that decreases the objective sufficiently, before it rises again; or 0."""
    (dW, dZ), square, second = change, problem.half_square(now.W), problem.half_square(change[0])
    mixed = float(np.vdot(dW, problem.M @ now.W))

    def value(step: float) -> float:
        losses = (np.vdot(problem.costs_of(p), loss.value(now.Z[p] + step * dZ[p])) for p in problem.parts())
        return square + step * mixed + step**2 * second + float(sum(losses))

    step, reached = 1.0, value(1.0)
    while not reached <= start + SUFFICIENT * step * slope + 1e-15 * start:  # NaN is no decrease
        step /= 2
        if step < SHORTEST:
            return 0.0
        reached = value(step)
    while 1.0 <= step < LONGEST and (further := value(2 * step)) < reached:
        step, reached = 2 * step, further
    return step


# ---- the hinge: a primal-dual interior point method (Mehrotra 1992) -----------------------------------------------------
#
#     min ½ tr(W' M W) + Σ U ξ   with   t = z + ξ − 1 ≥ 0,  ξ ≥ 0,  and their multipliers U a and U b,  a + b = 1
#
# At the optimum M W = U(A), A = U a, and a t = b ξ = 0; along the central path all products shrink together.
#
# Deviations. Multipliers are measured in costs, so a pair weighs as much in the barrier as in the objective. Products do not
# shrink towards one common μ, but each towards μ times a target of its own: the products of a soft hinge, which vanish for
# documents far from the margin. The usual central path of so many documents is a long detour; this one starts near its end.


@dataclass(slots=True)
class Interior:
    """A point of the path; all but W are classes × documents. target_t, target_xi: targets of the products a t and b ξ."""

    W: Floats
    a: Floats
    b: Floats
    t: Floats
    xi: Floats
    target_t: Floats
    target_xi: Floats

    def pairs(self, part: slice | int) -> tuple[Floats, Floats, Floats, Floats]:
        """a, b, t and ξ of some classes."""
        return self.a[part], self.b[part], self.t[part], self.xi[part]


def follow_path(problem: DenseProblem, tolerance: float, max_iter: int, start: Floats) -> Best:
    """Follow the path until the gap is at most the tolerance; if that gets stuck, once more on the usual central path."""
    best = Best.nothing(problem)
    _follow(problem, _begin(problem, start), best, tolerance, max_iter)
    if best.gap > tolerance and best.iterations < max_iter:
        far = _first_point(np.zeros(problem.shape), np.ones(problem.signs.shape), 1.0)
        _follow(problem, far, best, tolerance, max_iter)
    return best


def _follow(problem: DenseProblem, now: Interior, best: Best, tolerance: float, max_iter: int) -> None:
    """Predictor and corrector steps; records the best point."""
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


def _begin(problem: DenseProblem, start: Floats) -> Interior:
    """On the path of a soft hinge so narrow that it differs from the hinge by a small fraction of the objective."""
    W, width = start, WIDTH
    if not start.any():
        W = descend(problem, SMOOTH["squared_hinge"], start, FIRST_STEPS).W
    while True:
        now = descend(problem, soft_hinge(width), W, SOFT_STEPS, rough=ROUGH)
        W, blur = now.W, _blur(problem, now.W, width)
        if blur <= BLUR or (blur <= MOST_BLUR and now.best.iterations > EASY) or width < NARROWEST:
            break
        width *= NARROWER
    now = descend(problem, soft_hinge(width), W, SOFT_STEPS, rough=FINE)
    return _first_point(now.W, (1 - now.Z) / width, width)


def _blur(problem: DenseProblem, W: Floats, width: float) -> float:
    """The gap of a soft hinge's α for the hinge at W, Σ U |1−z| / (1 + e^(|1−z|/s)), relative to the objective."""
    lacking, losses, Z = 0.0, 0.0, problem.margins(W)
    for part in problem.parts():
        costs, distance = problem.costs_of(part), 1 - Z[part]
        losses += float(np.vdot(costs, np.maximum(0, distance)))
        lacking += float(np.vdot(costs, np.abs(distance) * expit(-np.abs(distance) / width)))
    return lacking / max(problem.half_square(W) + losses, 1e-300)


def _first_point(W: Floats, x: Floats, width: float) -> Interior:
    """The α of a soft hinge at 1 − z = width · x, and for t and ξ the soft hinge on either side of the corner.

    If W minimizes that hinge, M W = U(A) nearly holds; after the first full step it holds exactly.
    """
    t, xi = np.logaddexp(0, -x), np.logaddexp(0, x)
    lift = np.maximum(0, FLOOR - np.minimum(t, xi))  # for both, since t − ξ = z − 1 must hold
    t, xi = t + lift, xi + lift
    least = FLOOR / (t + xi)
    a, b = np.maximum(least, expit(x)), np.maximum(least, expit(-x))
    a, b, t, xi = a / (a + b), b / (a + b), width * t, width * xi
    return Interior(W, a, b, t, xi, a * t, b * xi)


def _measure_interior(problem: DenseProblem, now: Interior, best: Best) -> tuple[float, Floats]:
    """Mean of the weighted products and U(A); records W and the dual variables if they are the best."""
    U, losses, conjugate, products, total = np.zeros(problem.shape), 0.0, 0.0, 0.0, 0.0
    Z, alphas = problem.margins(now.W), np.empty(now.a.shape)
    for part in problem.parts():
        costs, (a, b, t, xi) = problem.costs_of(part), now.pairs(part)
        alphas[part] = costs * np.minimum(a, 1.0)
        losses += float(np.vdot(costs, np.maximum(0, 1 - Z[part])))
        conjugate += float(alphas[part].sum())
        products += float(np.vdot(costs, a * t + b * xi))
        total += float(np.vdot(costs, now.target_t[part] + now.target_xi[part]))
        problem.gather_in_place(U, part, alphas[part])
    best.note(problem.half_square(now.W) + losses, now.W, conjugate - problem.half_inverse_square(U), alphas)
    return products / total if total else 0.0, U


def _advance(problem: DenseProblem, now: Interior, mu: float, U: Floats) -> float:
    """One step in place; returns its length."""
    factor = problem.factor(lambda k: problem.costs_of(k) / _theta(*now.pairs(k)), NEGLIGIBLE_STEP)
    still = U - problem.M @ now.W
    # predictor: products of 0
    first = problem.margins(factor.solve(still + _pull(problem, now, None, 0.0)))
    step, left = _room(problem, now, None, first, 0.0)
    # corrector: larger products where the predictor fell short, minus its second-order error
    aim = (left / mu) ** 3 * mu
    dW = factor.solve(still + _pull(problem, now, first, aim))
    dZ = problem.margins(dW)
    step, _ = _room(problem, now, first, dZ, aim)
    step = min(1.0, SHORT_OF_THE_BOUND * step)
    for part in problem.parts():
        da, dt, dxi = _changes(now, part, first, dZ[part], aim)
        now.a[part] += step * da
        now.b[part] -= step * da
        now.t[part] += step * dt
        now.xi[part] += step * dxi
    now.W = now.W + step * dW
    return step


def _theta(a: Floats, b: Floats, t: Floats, xi: Floats) -> Floats:
    return t / a + xi / b


def _lift(now: Interior, part: slice, first: Floats | None, aim: float) -> tuple[Floats, Floats | float, Floats | float]:
    """The lift of margins by the aims, and the aimed products a t and b ξ. first: the predictor's change of margins."""
    a, b, t, xi = now.pairs(part)
    aim_t: Floats | float = 0.0
    aim_xi: Floats | float = 0.0
    if first is not None:
        da, dt, dxi = _changes(now, part, None, first[part], 0.0)
        aim_t, aim_xi = aim * now.target_t[part] - da * dt, aim * now.target_xi[part] + da * dxi
    return (aim_t / a - t) - (aim_xi / b - xi), aim_t, aim_xi


def _changes(now: Interior, part: slice, first: Floats | None, dZ: Floats, aim: float) -> tuple[Floats, Floats, Floats]:
    """Newton steps of a (and −b), t and ξ for a change of margins."""
    a, b, t, xi = now.pairs(part)
    lift, aim_t, aim_xi = _lift(now, part, first, aim)
    da = (lift - dZ) / _theta(a, b, t, xi)
    return da, aim_t / a - t - t * da / a, aim_xi / b - xi + xi * da / b


def _pull(problem: DenseProblem, now: Interior, first: Floats | None, aim: float) -> Floats:
    """The term of the aims in the right-hand side of the Newton system."""
    U = np.zeros(problem.shape)
    for part in problem.parts():
        lift, _, _ = _lift(now, part, first, aim)
        problem.gather_in_place(U, part, problem.costs_of(part) * lift / _theta(*now.pairs(part)))
    return U


def _room(problem: DenseProblem, now: Interior, first: Floats | None, dZ: Floats, aim: float) -> tuple[float, float]:
    """The step, at most 1, at which the first variable reaches 0, and the mean product there."""
    shrink, sums, total = 1.0, np.zeros(3), 0.0
    for part in problem.parts():
        (a, b, t, xi), costs = now.pairs(part), problem.costs_of(part)
        da, dt, dxi = _changes(now, part, first, dZ[part], aim)
        shrink = max(shrink, *(float((-d / x).max(initial=0)) for d, x in ((da, a), (-da, b), (dt, t), (dxi, xi))))
        sums += [float(np.vdot(costs, p)) for p in (a * t + b * xi, da * t + a * dt - da * xi + b * dxi, da * dt - da * dxi)]
        total += float(np.vdot(costs, now.target_t[part] + now.target_xi[part]))
    step = 1 / shrink
    return step, max(0.0, float(sums @ [1, step, step**2])) / max(total, 1e-300)
