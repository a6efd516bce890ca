"""Dual ascent, one document after the other, until the duality gap is small enough."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ramify.execution import stage
from ramify.learners.joint.problem import Floats, Problem
from ramify.learners.linear.solver import Certificate, Settings
from ramify.native import ascend_answers_in_place, measure_answers_in_place

PASSES = 10  # over the documents that still move, between two looks at all of them
STEPS = 30  # between the answers of one document, at most
QUIET = 0.1  # of the mean distance between answers: documents that are closer than that rest until the next look


@dataclass(slots=True)
class Ascent:
    """Where the ascent stands: the shares α of all documents, and the weights W (features × units) that belong to them.

    metric, inverse: M and M⁻¹; None and an empty matrix for the identity.
    """

    problem: Problem
    alphas: Floats
    weights: Floats
    rng: np.random.Generator
    metric: Floats | None = None
    inverse: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def start(cls, problem: Problem, seed: int) -> Ascent:
        """Every document's cost on its own answer, and all weights 0."""
        offsets = problem.alpha_offsets()
        alphas = np.zeros(offsets[-1])
        alphas[offsets[:-1]] = problem.costs
        weights = np.zeros((problem.rows.n_features, problem.n_units))
        return cls(problem, alphas, weights, np.random.default_rng(seed))

    def climb(self, closest: float) -> None:
        """Visit all documents once, then those that still move a few times more."""
        moving = np.flatnonzero(self.problem.costs > 0)
        for _ in range(PASSES):
            order = self.rng.permutation(moving)
            furthest = self._visit(order, closest)
            mean = float((furthest * self.problem.costs[order]).sum() / self.problem.costs.sum())
            moving = np.sort(order[furthest > max(closest, QUIET * mean)])
            if not len(moving):
                break

    def _visit(self, documents: NDArray[np.int64], closest: float) -> Floats:
        furthest = np.empty(len(documents))
        where = self.problem.alpha_offsets()
        ascend_answers_in_place(
            *self.problem.arrays, self.inverse, documents, STEPS, closest, where, self.alphas, self.weights, furthest
        )
        return furthest

    def certify(self, rounds: int) -> Certificate:
        """The objective of the weights, and the bound that no weights go below."""
        return Certificate(self.half_square() + self.loss(), self.gain() - self.half_square(), rounds)

    def half_square(self) -> float:
        """½ tr(Wᵀ M W)."""
        if self.metric is None:
            return 0.5 * float(np.vdot(self.weights, self.weights))
        return 0.5 * float(((self.weights.T @ self.weights) * self.metric).sum())

    def loss(self) -> float:
        """What all documents lose, in cost."""
        everyone = np.arange(len(self.problem))
        losses = np.empty(len(everyone))
        measure_answers_in_place(*self.problem.arrays, self.inverse, everyone, self.weights, losses)
        return float(losses @ self.problem.costs)

    def gain(self) -> float:
        """Σ α × margin."""
        answers, labels = self.problem.answers, self.problem.labels
        starts, lengths = answers.offsets[labels], np.diff(answers.offsets)[labels]
        total = 0.0
        where = self.problem.alpha_offsets()
        for label in np.unique(labels):
            of_label = np.flatnonzero(labels == label)
            shares = self.alphas[where[of_label][:, None] + np.arange(lengths[of_label[0]])]
            total += float(shares.sum(axis=0) @ answers.margins[starts[of_label[0]] :][: lengths[of_label[0]]])
        return total


def ascend(problem: Problem, settings: Settings, start: Ascent | None = None) -> tuple[Ascent, Certificate]:
    """Climb until the relative gap is within the tolerance, or for so many rounds."""
    found = Ascent.start(problem, settings.seed) if start is None else start
    closest = 0.01 * settings.tolerance
    with stage("margins between answers", settings.max_iter) as step:
        for done in range(1, settings.max_iter + 1):
            found.climb(closest)
            certificate = found.certify(done)
            step.advance()
            if certificate.gap <= settings.tolerance:
                break
    return found, certificate
