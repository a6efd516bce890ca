"""How many rounds: as many as wanted, or as many as serve documents that were held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array

from ramify.learners.boosting.committee import Committee, Floats
from ramify.learners.boosting.problems import Problem
from ramify.learners.boosting.rounds import boost
from ramify.metrics.counting import f1

FEWEST_DOCUMENTS = 20  # with fewer of them none is held out


@dataclass(frozen=True, slots=True)
class Settings:
    """What boosting is told: see :class:`~ramify.learners.AdaBoostMH`."""

    variant: str
    n_rounds: int
    early_stopping: bool
    validation_fraction: float
    patience: int
    seed: int


def boost_well(problem: Problem, settings: Settings, after: Callable[[int], bool]) -> Committee:
    """The rounds that boosting comes to; `after` hears of every few of them, and ends it by saying no."""
    held_out = None
    if settings.early_stopping and problem.labels.shape[0] >= FEWEST_DOCUMENTS:
        held_out, problem = _split(problem, settings)
    watched = None if held_out is None else Watch(held_out)
    made = Committee.empty(problem.node, problem.classes)
    for committee in boost(problem, settings.variant, settings.n_rounds):
        goes_on = after(committee.n_rounds - made.n_rounds)
        if watched is not None:
            goes_on = watched.look(committee, made.n_rounds) < settings.patience and goes_on
        made = committee
        if not goes_on:
            break
    return made if watched is None else made.first(watched.best_round)


def _split(problem: Problem, settings: Settings) -> tuple[Problem, Problem]:
    """Documents to hold out, drawn by the seed, and the others."""
    n = problem.labels.shape[0]
    order = np.random.default_rng((settings.seed, problem.node + 1)).permutation(n)
    count = min(n - 1, max(1, round(settings.validation_fraction * n)))
    return problem.of(np.sort(order[:count])), problem.of(np.sort(order[count:]))


class Watch:
    """Follows micro F1 on held-out documents, round by round."""

    def __init__(self, held_out: Problem) -> None:
        self.terms = csc_array(held_out.X)
        self.true = held_out.labels.toarray().astype(bool)
        self.sums: Floats = held_out.votes.copy()
        self.best_round, self.best = 0, self._quality()

    def look(self, committee: Committee, since: int) -> int:
        """Take in the rounds that came since; gives how many rounds ago the best one was."""
        for s in range(since, committee.n_rounds):
            first, last = self.terms.indptr[committee.pivots[s]], self.terms.indptr[committee.pivots[s] + 1]
            self.sums += committee.absent[s]
            self.sums[self.terms.indices[first:last]] += committee.present[s] - committee.absent[s]
            quality = self._quality()
            if quality > self.best:
                self.best_round, self.best = s + 1, quality
        return committee.n_rounds - self.best_round

    def _quality(self) -> float:
        given = self.sums > 0
        return float(f1((given & self.true).sum(), self.true.sum(), given.sum()))
