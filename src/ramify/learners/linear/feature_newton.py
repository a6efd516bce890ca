"""Newton's method in feature space: halved steps over all classes of a group of units at once, certified at every step.

    α = −U L'(z) is dual feasible at any W, and there U h(α/U) = U L(z) + α z

The squared hinge has no second derivative at z = 1; either of its two values will do (semi-smooth Newton, Qi & Sun 1993).

The hinge has no first one. Steps are made on s ln(1 + e^((1−z)/s)) (Lee & Mangasarian 2001), whose α = U / (1 + e^((z−1)/s)) is
feasible for the hinge as well, and s shrinks whenever it is to blame for more of the gap than W is. This is a path like that
of an interior point, with the entropy of α for a barrier: unlike the logarithm's, its force on documents far from the margin
vanishes, so that a handful of steps reach a solution where most of very many documents are far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ramify.learners.linear.feature_problem import Best, Problem
from ramify.learners.linear.unit_blocks import Floats

NEGLECT = 1e-2
SUFFICIENT = 1e-4  # of the decrease that the slope promises
HALVINGS = 40
FIRST_WIDTH = 0.3
SHARPEN_AT = 0.5
FASTEST, SLOWEST = 0.2, 0.6


@dataclass(frozen=True, slots=True)
class Loss:
    """L(z), −L'(z) and L''(z); the hinge's are those of a curve around it of some width, other losses have none."""

    value: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    curvature: Callable[[Floats], Floats]
    width: float = 0.0


def soft_hinge(width: float) -> Loss:
    """The hinge with its corner rounded."""
    return Loss(
        lambda z: width * np.logaddexp(0, (1 - z) / width),
        lambda z: expit((1 - z) / width),
        lambda z: expit((1 - z) / width) * expit((z - 1) / width) / width,
        width,
    )


LOSSES = {
    "hinge": soft_hinge(FIRST_WIDTH),
    "squared_hinge": Loss(lambda z: np.maximum(0, 1 - z) ** 2, lambda z: 2 * np.maximum(0, 1 - z), lambda z: 2.0 * (z < 1)),
    "logistic": Loss(lambda z: np.logaddexp(0, -z), lambda z: expit(-z), lambda z: expit(z) * expit(-z)),
}


@dataclass(frozen=True, slots=True)
class Look:
    """What is seen at some W: the value that steps decrease, its gradient, and who is to blame for how much of the gap."""

    value: float
    gradient: Floats
    blame_of_weights: float
    blame_of_width: float


def descend(problem: Problem, loss: Loss, tolerance: float, max_iter: int, start: Floats) -> Best:
    """Newton steps from `start` until the relative gap is small, or nothing improves any more."""
    best, W, Z, neglect = Best.nothing(problem), start, problem.margins(start), NEGLECT
    for _ in range(max_iter):
        gap = best.gap
        look = _look(problem, loss, W, Z, best)
        if (best.gap <= tolerance and not loss.width) or not np.isfinite(look.value):
            break
        if best.gap > 0.3 * gap:
            neglect *= 0.1

        def curvature(k: int, Z: Floats = Z, loss: Loss = loss) -> Floats:
            return problem.costs_of(k) * loss.curvature(Z[k])

        try:
            dW = problem.factor(curvature, neglect).solve(-look.gradient)
        except np.linalg.LinAlgError:
            break
        if loss.width and -0.5 * float(np.vdot(look.gradient, dW)) < tolerance * look.value:
            break
        dZ = problem.margins(dW)
        step = _step(problem, loss, (W, dW), (Z, dZ), look)
        best.iterations += 1
        if DEBUG: DEBUG.append(f"  w={loss.width:.1e} V={look.value:.6g} dec={-np.vdot(look.gradient,dW)/look.value:.1e} gap={best.gap:.1e} bW={look.blame_of_weights/best.primal:.1e} step={step:.2g} neglect={neglect:.0e}")
        if step == 0.0:
            break
        W, Z = W + step * dW, Z + step * dZ
    if loss.width: best.W = W
    return best
DEBUG=[]

def _look(problem: Problem, loss: Loss, W: Floats, Z: Floats, best: Best) -> Look:
    """The objective at W and its gradient; notes W and its dual variables if they are the best."""
    U, value, losses, promised = np.zeros(problem.shape), 0.0, 0.0, 0.0
    alphas = np.empty(Z.shape)
    for part in problem.parts():
        costs, z = problem.costs_of(part), Z[part]
        alphas[part] = costs * loss.slope(z)
        value += (lost := float(np.vdot(costs, loss.value(z))))
        losses += float(np.vdot(costs, np.maximum(0, 1 - z))) if loss.width else lost
        promised += float(alphas[part].sum()) if loss.width else lost + float(np.vdot(alphas[part], z))
        problem.gather_in_place(U, part, alphas[part])
    square, gradient = problem.half_square(W), problem.M @ W - U
    dual = promised - problem.half_inverse_square(U)
    best.note(square + losses, W, dual, alphas)
    blame = problem.half_inverse_square(gradient)
    return Look(square + value, gradient, blame, square + losses - dual - blame)


def _losses(problem: Problem, loss: Loss, Z: Floats, dZ: Floats, step: float) -> float:
    return sum(float(np.vdot(problem.costs_of(p), loss.value(Z[p] + step * dZ[p]))) for p in problem.parts())


def _step(problem: Problem, loss: Loss, along: tuple[Floats, Floats], margins: tuple[Floats, Floats], look: Look) -> float:
    """The first of 1, ½, ¼, … that decreases the objective sufficiently; 0 if none does."""
    W, dW = along
    square, mixed, second = problem.half_square(W), float(np.vdot(dW, problem.M @ W)), problem.half_square(dW)
    slope, step = float(np.vdot(look.gradient, dW)), 1.0
    for _ in range(HALVINGS):
        value = square + step * mixed + step**2 * second + _losses(problem, loss, *margins, step)
        if value <= look.value + SUFFICIENT * step * slope + 1e-15 * abs(look.value):
            return step
        step /= 2
    return 0.0
