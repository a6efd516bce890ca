"""How many rounds: as many as wanted, or as many as serve documents that were held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

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
    held_out, learnt = _split(problem, settings) if settings.early_stopping else (None, problem)
    watched, problem = (None, problem) if held_out is None else (Watch(held_out), learnt)
    made = Committee.empty(problem.node, problem.classes)
    for committee in boost(problem, settings.variant, settings.n_rounds):
        goes_on = after(committee.n_rounds - made.n_rounds)
        if watched is not None:
            goes_on = watched.look(committee, made.n_rounds) < settings.patience and goes_on
        made = committee
        if not goes_on:
            break
    return made if watched is None else made.first(watched.best_round)


def _split(problem: Problem, settings: Settings) -> tuple[Problem | None, Problem]:
    """Documents to hold out, drawn by the seed, and the others; none where they are few, or would have none of the classes."""
    n = problem.shape[0]
    if n < FEWEST_DOCUMENTS:
        return None, problem
    order = np.random.default_rng((settings.seed, problem.node + 1)).permutation(n).astype(np.int32)
    count = min(n - 1, max(1, round(settings.validation_fraction * n)))
    held_out, others = problem.of(np.sort(order[:count])), problem.of(np.sort(order[count:]))
    has_classes = len(held_out.labels.items) and len(others.labels.items)
    return (held_out, others) if has_classes else (None, problem)


class Watch:
    """Follows how well held-out documents are served, round by round."""

    def __init__(self, held_out: Problem) -> None:
        self.documents, self.true = held_out.terms.turned(held_out.n_terms), held_out.is_true()
        self.sums: Floats = np.zeros(self.true.shape) if held_out.votes is None else held_out.votes.copy()
        # where there were no rounds yet, the first is better than none
        self.best_round, self.best = 0, (-1.0, 0.0) if held_out.votes is None else self._quality()

    def look(self, committee: Committee, since: int) -> int:
        """Take in the rounds that came since; gives how many rounds ago the best one was."""
        for s in range(since, committee.n_rounds):
            first, last = self.documents.offsets[committee.pivots[s] : committee.pivots[s] + 2]
            self.sums += committee.absent[s]
            self.sums[self.documents.items[first:last]] += committee.present[s] - committee.absent[s]
            quality = self._quality()
            if quality > self.best:
                self.best_round, self.best = s + 1, quality
        return committee.n_rounds - self.best_round

    def _quality(self) -> tuple[float, float]:
        """Micro F1 and, where that is equal, how small the loss is that boosting lowers."""
        given = self.sums > 0
        loss = np.exp(np.where(self.true, -self.sums, self.sums)).sum()
        return float(f1((given & self.true).sum(), self.true.sum(), given.sum())), -float(loss)
