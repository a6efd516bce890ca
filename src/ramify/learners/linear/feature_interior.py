"""The hinge loss in feature space: a primal-dual interior point over all classes of a group of units (Mehrotra 1992).

    min ½ tr(W' M W) + Σ U ξ   with   t = z + ξ − 1 ≥ 0,  ξ ≥ 0,  and their multipliers U a and U b,  a + b = 1

At the optimum M W = U(A), A = U a, and a t = b ξ = 0; on the way all products shrink together.

Deviations. Multipliers are measured in costs, so a pair weighs as much in the barrier as in the objective. Products do not
shrink towards one common μ, but each towards μ times its own share, and shares are the products of a soft hinge, which vanish
for documents far from the margin: the common path of so many documents is a long detour, this one begins near its end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ramify.execution import heed_deadline
from ramify.learners.linear.feature_newton import SMOOTH, Descent, descend, soft_hinge
from ramify.learners.linear.feature_problem import Best, Problem
from ramify.learners.linear.unit_blocks import Floats

NEGLECT = 1e-6  # of the curvature: more of it would let M W and U(A) part
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
        heed_deadline()
        mu, U = _look(problem, now, best)
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


def _look(problem: Problem, now: Interior, best: Best) -> tuple[float, Floats]:
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
    factor = problem.factor(lambda k: problem.costs_of(k) / _theta(*now.pairs(k)), NEGLECT)
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
