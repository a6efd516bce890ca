"""The hinge loss in feature space: a primal-dual interior point over all classes of a group of units (Mehrotra 1992).

    min ½ tr(W' M W) + Σ U ξ   with   t = z + ξ − 1 ≥ 0,  ξ ≥ 0,  and their multipliers U a and U b,  a + b = 1

At the optimum M W = U(A), A = U a, and a t = b ξ = 0; on the way both products shrink together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ramify.learners.linear.feature_newton import LOSSES, descend, soft_hinge
from ramify.learners.linear.feature_problem import Best, Problem
from ramify.learners.linear.unit_blocks import Floats

NEGLECT = 0.0
SHORT_OF_THE_BOUND = 0.99
ROUGH, ROUGH_STEPS = 0.02, 30
WIDTH = 0.3
SQ = 4
FLOOR = 1e-3
DEBUG = []

@dataclass(slots=True)
class Interior:
    """Where the path stands; a, b, t and xi are classes × documents."""

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
    """Predictor and corrector steps until the relative gap is small, or nothing improves any more."""
    best, now = Best.nothing(problem), _begin(problem, start)
    for _ in range(max_iter):
        mu, U = _look(problem, now, best)
        if DEBUG:
            r=problem.half_inverse_square(U-problem.M@now.W)
            DEBUG.append(f"   mu={mu:.2e} P={best.primal:.5g} D={best.dual:.5g} gap={best.gap:.2e} res={r/best.primal:.2e}")
        if best.gap <= tolerance or not np.isfinite(mu):
            break
        try:
            step = _advance(problem, now, mu, U)
        except np.linalg.LinAlgError:
            break
        best.iterations += 1
        if DEBUG: DEBUG[-1]+=f' step {step:.3f}'
        if not step > 1e-8:
            break
    return best


def _begin(problem: Problem, start: Floats) -> Interior:
    """On the centre of the path where the margins of roughly solved smooth losses are: a t = b ξ = μ for all pairs."""
    if not start.any():
        start = descend(problem, LOSSES["squared_hinge"], 0.5, SQ, start).W
    rough = descend(problem, soft_hinge(WIDTH), ROUGH, ROUGH_STEPS, start)
    x = (1 - problem.margins(rough.W)) / WIDTH
    t, xi = WIDTH * np.logaddexp(0, -x), WIDTH * np.logaddexp(0, x)
    t, xi = np.maximum(t, FLOOR*WIDTH), np.maximum(xi, FLOOR*WIDTH)
    a, b = expit(x), expit(-x)
    low=FLOOR*WIDTH/(t+xi)
    a, b = np.maximum(a, low), np.maximum(b, low)
    a, b = a/(a+b), b/(a+b)
    if DEBUG: DEBUG.append(f'begin its={rough.iterations}')
    return Interior(rough.W, a, b, t, xi, a*t, b*xi)


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
    return products / max(total, 1e-300), U


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
