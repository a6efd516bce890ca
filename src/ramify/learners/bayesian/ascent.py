"""Rounds of updates, each of which raises the bound or leaves it, until it hardly grows."""

from __future__ import annotations

from threadpoolctl import threadpool_limits

from ramify.execution import Executor, stage
from ramify.learners.bayesian.approximation import Approximation
from ramify.learners.bayesian.means import update_means
from ramify.learners.bayesian.problem import Problem

ENOUGH = 0.1  # of the growth that ends the rounds: what a step of the means must promise


def ascend(problem: Problem, executor: Executor, tolerance: float, max_iter: int) -> tuple[Approximation, list[float]]:
    """Raise the bound until it grows by no more than `tolerance` of itself in a round; it, after every round."""
    q = Approximation.start(problem, executor)
    before, found = q.evidence(), list[float]()
    with stage("evidence", max_iter) as step, threadpool_limits(1, "blas"):  # the executor shares work out instead
        for _ in range(max_iter):
            q.update_covariances()
            update_means(q, ENOUGH * tolerance * abs(before))
            q.update_precisions()
            found.append(q.evidence())
            step.advance()
            if has_settled(found[-1], before, tolerance):
                break
            before = found[-1]
    return q, found


def has_settled(now: float, before: float, tolerance: float) -> bool:
    """Whether the bound has hardly grown."""
    return now - before <= tolerance * abs(now)
