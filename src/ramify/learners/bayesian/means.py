"""The means of all units at once: Newton's steps on the bound, its β and ξ always at their best.

With Ψ and α held, the bound is concave in the means. Its gradient and its curvature along a direction p, t_k = p_k·x_i, are

    Σ_i s_i ([y_i = k] − slope_ik) x_i − pull(μ),      Σ_i s_i (c_ik t_ik − c_ik Σ_l c_il t_il / Σ_l c_il) x_i + pull(p)

The second term with t is what β gives way, so that classes move together as in a softmax; pull(·) ties levels. A step is
solved by conjugate gradients and halved until the bound rises. They are preconditioned by a system that is block-diagonal
but for the tree, which one sweep up and one down solve: the diagonal of the curvature, or, where Ψ is full, Ψ, which is at
hand and has 2 λ for c.

The paper solves class after class with λ for c, and level after level, by coordinate ascent on the same bound. Where
documents are sure of their class, λ is many times c, and steps are that much too short.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ramify.execution import heed_deadline
from ramify.learners.bayesian.approximation import Approximation
from ramify.learners.bayesian.covariance import Floats, covariances, invert
from ramify.learners.bayesian.problem import Problem
from ramify.learners.bayesian.softmax import settle

STEPS = 2  # in one round
PRODUCTS = 100  # in one step
CLOSE = 0.3  # of the gradient that a step may leave
LEAST = 1e-4  # of the gain that the gradient promises
HALVINGS = 40
TINY = 1e-300


def update_means(q: Approximation, enough: float) -> None:
    """Take steps until the next one promises to raise the bound by no more than `enough`."""
    for _ in range(STEPS):
        heed_deadline()
        gradient = _gradient(q)
        direction = _direction(q, gradient, Elimination.of(q.problem, q.precisions(), _blocks(q)))
        promised = float(np.vdot(gradient, direction))
        if not promised > enough or not _step(q, direction, promised):
            break


def _blocks(q: Approximation) -> Floats:
    """The inverse of what stands for the curvature of every class."""
    if q.tables.ndim == 3:
        return q.tables
    problem, curvatures = q.problem, q.softmax.curvatures
    alone = curvatures * (1 - curvatures / np.maximum(curvatures.sum(axis=1, keepdims=True), TINY))
    return covariances(q.precisions()[problem.class_units], problem.documents.measure(problem.weights[:, None] * alone))[0]


def _gradient(q: Approximation) -> Floats:
    problem = q.problem
    misses = -q.softmax.slopes
    misses[np.arange(len(misses)), problem.labels] += 1
    gradient = -problem.pull(q.precisions(), q.means)
    gradient[problem.class_units] += problem.documents.gather(problem.weights[:, None] * misses)
    return gradient


def _curve(q: Approximation, direction: Floats) -> Floats:
    problem, curvatures = q.problem, q.softmax.curvatures
    T = problem.documents.score(direction[problem.class_units])
    T *= curvatures
    T -= curvatures * (T.sum(axis=1) / np.maximum(curvatures.sum(axis=1), TINY))[:, None]
    T *= problem.weights[:, None]
    curved = problem.pull(q.precisions(), direction)
    curved[problem.class_units] += problem.documents.gather(T)
    return curved


def _direction(q: Approximation, gradient: Floats, tree: Elimination) -> Floats:
    """Conjugate gradients, until little is left of the gradient."""
    direction, left = np.zeros_like(gradient), gradient.copy()
    solved = tree.solve(left)
    way, size = solved.copy(), float(np.vdot(left, solved))
    least = CLOSE**2 * size
    for _ in range(PRODUCTS):
        heed_deadline()
        if not size > least:
            break
        curved = _curve(q, way)
        curvature = float(np.vdot(way, curved))
        if not curvature > 0:
            break
        direction += size / curvature * way
        left -= size / curvature * curved
        solved = tree.solve(left)
        before, size = size, float(np.vdot(left, solved))
        way *= size / before
        way += solved
    return direction


def _step(q: Approximation, direction: Floats, promised: float) -> bool:
    """Go so far along a direction that the bound rises; whether it did."""
    problem, alpha = q.problem, q.precisions()
    change = problem.documents.score(direction[problem.class_units])
    held, holds = (float(np.vdot(problem.pull(alpha, table), direction)) for table in (q.means, direction))
    before, length, scores, softmax = q.likelihood(), 1.0, q.scores, q.softmax
    for _ in range(HALVINGS):
        q.scores = scores + length * change
        q.softmax = settle(q.scores, q.spreads, softmax.betas, q.executor)
        if q.likelihood() - before - length * held - 0.5 * length**2 * holds >= LEAST * length * promised:
            q.means = q.means + length * direction
            return True
        length /= 2
    q.scores, q.softmax = scores, softmax
    return False


@dataclass(frozen=True, slots=True)
class Elimination:
    """The factors of a system that is block-diagonal but for the tree: of every unit H⁻¹, once all below it are eliminated.

    inverses: vectors where blocks are diagonal, else matrices.
    """

    parent: list[int]
    alpha: Floats
    inverses: list[Floats]

    @classmethod
    def of(cls, problem: Problem, alpha: Floats, tables: Floats) -> Elimination:
        """tables: H⁻¹ of the classes, the prior's α in it."""
        parent, class_of = problem.forest.parent.tolist(), problem.forest.class_of.tolist()
        wide = np.broadcast_to(alpha, (len(parent), problem.n_features))
        inverses: list[Floats] = [np.zeros(0)] * len(parent)
        below: list[Floats] = [np.zeros(tables.shape[1:])] * len(parent)
        for unit in reversed(range(len(parent))):  # parents come first, so a backward sweep sees children first
            is_class = class_of[unit] >= 0
            inverses[unit] = tables[class_of[unit]] if is_class else _invert(wide[unit], below[unit])
            if parent[unit] >= 0:
                below[parent[unit]] = below[parent[unit]] + _fold(wide[unit], inverses[unit])
            below[unit] = np.zeros(0)
        return cls(parent, wide, inverses)

    def solve(self, right: Floats) -> Floats:
        """Up with what is left of the right side, down with the solution."""
        found = right.copy()
        for unit in reversed(range(len(self.parent))):
            if self.parent[unit] >= 0:
                found[self.parent[unit]] += self.alpha[unit] * self._apply(unit, found[unit])
        for unit, above in enumerate(self.parent):
            if above >= 0:
                found[unit] += self.alpha[unit] * found[above]
            found[unit] = self._apply(unit, found[unit])
        return found

    def _apply(self, unit: int, vector: Floats) -> Floats:
        inverse = self.inverses[unit]
        return inverse * vector if inverse.ndim == 1 else inverse @ vector


def _invert(alpha: Floats, below: Floats) -> Floats:
    return 1 / (alpha + below) if below.ndim == 1 else invert(below + np.diag(alpha))[0]


def _fold(alpha: Floats, inverse: Floats) -> Floats:
    """What a unit holds the one above it by, once it is eliminated: α − α H⁻¹ α."""
    if inverse.ndim == 1:
        return np.maximum(alpha - alpha**2 * inverse, 0.0)
    return np.diag(alpha) - alpha[:, None] * inverse * alpha
