"""Smooth losses in feature space: Newton's method with a line search, over all classes of a group of units at once.

    α = −U L'(z) is dual feasible at any W, and there U h(α/U) = U L(z) + α z: every step certifies itself

The squared hinge has no second derivative at z = 1; either of its two values will do (semi-smooth Newton, Qi & Sun 1993).
The soft hinge, s ln(1 + e^((1−z)/s)), is where the interior point of the hinge begins (Lee & Mangasarian 2001).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ramify.execution import heed_deadline
from ramify.learners.linear.feature_problem import Best, Problem
from ramify.learners.linear.unit_blocks import Floats

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
        heed_deadline()
        value, gradient = _look(problem, loss, now)
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


def _look(problem: Problem, loss: Loss, now: Descent) -> tuple[float, Floats]:
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
