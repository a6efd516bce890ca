"""Rounds of updates, each of which raises the bound or leaves it, until it hardly grows."""

from __future__ import annotations

from typing import NamedTuple

from threadpoolctl import threadpool_limits

from ramify.execution import Executor, stage
from ramify.learners.bayesian.approximation import Approximation
from ramify.learners.bayesian.means import update_means
from ramify.learners.bayesian.problem import Problem

ALTERNATIONS = 10  # of α and Ψ in a round, with ξ held
ENOUGH = 0.1  # of the growth that ends the rounds: what a step of the means must promise


class Climbed(NamedTuple):
    """The approximation, the bound after every round, and by what share of itself it grew in the last."""

    q: Approximation
    evidence: list[float]
    growth: float


def ascend(problem: Problem, executor: Executor, tolerance: float, max_iter: int) -> Climbed:
    """Raise the bound until it grows by no more than `tolerance` of itself in a round, or for so many rounds."""
    q = Approximation.start(problem, executor)
    found = list[float]()
    with stage("evidence", max_iter) as step, threadpool_limits(1, "blas"):  # the executor shares work out instead
        q.update_spreads(0)  # α goes by the means, and there are none yet
        before = q.evidence()
        for _ in range(max_iter):
            update_means(q, ENOUGH * tolerance * abs(before))
            q.update_spreads(ALTERNATIONS)
            found.append(q.evidence())
            step.advance()
            growth = (found[-1] - before) / abs(found[-1])
            if growth <= tolerance:
                break
            before = found[-1]
    return Climbed(q, found, growth)
