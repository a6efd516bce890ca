"""Dual ascent, one document after the other, until the duality gap is small enough."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ramify.learners.linear.problem import Certificate, Settings
from ramify.learners.structured.problem import Floats, Problem
from ramify.native import ascend_answers_in_place, measure_answers_in_place
from ramify.parallel import stage

FEWEST, MOST = 3, 10  # passes over the documents that still move between two looks at all of them: one more in every round
STEPS = 10  # between the answers of one document, at most
QUIET = 0.1  # of the mean distance between answers: documents that are closer than that rest until the next look
CLOSEST = 0.01  # of the tolerance: answers of a document that are so close need no step


class Metric(Protocol):
    """What weights cost (W: features × units).

    inverse: M⁻¹; an empty matrix for the identity.
    """

    inverse: Floats

    def penalty(self, W: Floats) -> float:
        """The regularizer."""

    def form(self, W: Floats) -> float:
        """½ tr(Wᵀ M W), which is no larger."""

    def matrix(self, n_units: int) -> Floats:
        """M."""

    def turn_in_place(self, W: Floats) -> None:
        """Change M to what is better for the shares that W belongs to, and W with it."""


class Euclid:
    """The sum of squares, M = 1."""

    inverse = np.zeros((0, 0))

    def penalty(self, W: Floats) -> float:
        """½ ‖W‖²."""
        return 0.5 * float(np.vdot(W, W))

    form = penalty

    def matrix(self, n_units: int) -> Floats:
        """1."""
        return np.eye(n_units)

    def turn_in_place(self, W: Floats) -> None:
        """There is nothing to change."""


@dataclass(slots=True)
class Ascent:
    """Where the ascent stands: the shares α of all documents, and the weights W (features × units) that belong to them.

    products: φ_a·φ_b of all answers where M = 1; empty for others, whose answers may be far more than their units.
    """

    problem: Problem
    metric: Metric
    alphas: Floats
    weights: Floats
    rng: np.random.Generator
    products: Floats

    @classmethod
    def start(cls, problem: Problem, metric: Metric, seed: int) -> Self:
        """Every document's cost on its own answer, and all weights 0."""
        alphas = np.zeros(problem.alpha_offsets[-1])
        alphas[problem.alpha_offsets[:-1]] = problem.costs
        weights = np.zeros((problem.rows.n_features, problem.n_units))
        products = np.zeros((0, 0)) if metric.inverse.size else problem.answers.products(problem.n_units)
        return cls(problem, metric, alphas, weights, np.random.default_rng(seed), products)

    def go_on(self, problem: Problem) -> Self:
        """The same shares for the same documents at another cost."""
        if len(problem) != len(self.problem):  # some cost so little that at the lower cost it was nothing
            return replace(self.start(problem, self.metric, 0), rng=self.rng)
        factor = float((problem.costs / self.problem.costs).mean()) if len(problem) else 1.0
        return replace(self, problem=problem, alphas=factor * self.alphas, weights=factor * self.weights)

    def climb(self, closest: float, n_passes: int = MOST) -> None:
        """Visit all documents once, then those that still move a few times more; then let the metric follow."""
        moving = np.flatnonzero(self.problem.costs > 0)
        for _ in range(n_passes):
            if not len(moving):
                break
            order = self.rng.permutation(moving)
            furthest = self._visit(order, closest)
            mean = float((furthest * self.problem.costs[order]).sum() / self.problem.costs.sum())
            moving = np.sort(order[furthest > max(closest, QUIET * mean)])
        self.metric.turn_in_place(self.weights)

    def _visit(self, documents: NDArray[np.int64], closest: float) -> Floats:
        furthest, where = np.empty(len(documents)), self.problem.alpha_offsets
        ascend_answers_in_place(
            *self.problem.arrays,
            self.products,
            self.metric.inverse,
            documents,
            STEPS,
            closest,
            where,
            self.alphas,
            self.weights,
            furthest,
        )
        return furthest

    def certify(self, rounds: int) -> Certificate:
        """The objective of the weights, and the bound that no weights go below."""
        losses, _ = measure(self.problem, self.weights)
        primal = self.metric.penalty(self.weights) + float(losses @ self.problem.costs)
        return Certificate(primal, float(self.alphas @ self.problem.margins) - self.metric.form(self.weights), rounds)


def measure(problem: Problem, weights: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """What every document loses, and the place of the answer by which it loses most among the answers of its label."""
    losses, worst = np.empty(len(problem)), np.empty(len(problem), dtype=np.int32)
    measure_answers_in_place(*problem.arrays, weights, losses, worst)
    return losses, worst


def ascend(found: Ascent, settings: Settings) -> Certificate:
    """Climb until the relative gap is within the tolerance, or for so many rounds."""
    with stage("margins between answers", settings.max_iter) as step:
        for done in range(1, settings.max_iter + 1):
            found.climb(CLOSEST * settings.tolerance, min(MOST, FEWEST - 1 + done))
            certificate = found.certify(done)
            step.advance()
            if certificate.gap <= settings.tolerance:
                break
    return certificate
