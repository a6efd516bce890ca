"""Trials that are timed, that end in time, and that say why they could not be made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ramify.decisions import DecisionRule
from ramify.errors import RamifyError
from ramify.execution import OutOfTime, ending_by
from ramify.pipeline.choosing.candidates import Candidate
from ramify.pipeline.choosing.ground import Ground
from ramify.pipeline.choosing.looks import Look
from ramify.pipeline.choosing.times import Allowance, Times
from ramify.pipeline.choosing.trying import Tried, rules_for, try_out
from ramify.pipeline.trials import NO_MEMORY

PATIENCE, SHORTEST = 4.0, 1.0  # times as long as was thought, and seconds, after which a trial is broken off
FIRST = 0.1  # of what is left: what the first trial of a system may take, whatever was thought

Attempt = Callable[[Candidate, Ground, int, float, list[DecisionRule]], Tried]


@dataclass(slots=True)
class Examiner:
    """Tries candidates on folds.

    by: the measure. several: whether documents have several labels. rule: the one that was given, if any. attempt: makes a
    trial. refused: why candidates cannot take the documents. slow: those that were broken off, and after how many seconds.
    """

    ground: Ground
    by: str
    several: bool
    rule: DecisionRule | None
    allowance: Allowance
    attempt: Attempt = try_out
    times: Times = field(default_factory=Times)
    refused: dict[Candidate, str] = field(default_factory=dict)
    slow: dict[Candidate, float] = field(default_factory=dict)

    def look(self, candidate: Candidate, numbers: Iterable[int], share: float, latest: float) -> Look | None:
        """A candidate on some folds, judged; None where it cannot take the documents, or is not done by the latest moment."""
        n_scores = len(self.ground.corpus) * len(self.ground.taxonomy)
        look = Look(candidate, share, rules_for(candidate, self.several, n_scores, self.rule))
        return look if self.go_on(look, numbers, latest) else None

    def go_on(self, look: Look, numbers: Iterable[int], latest: float) -> bool:
        """Some more folds of a look, judged with those that it has; gives whether they could be tried."""
        for number in numbers:
            try:
                self._try(look, number, latest)
            except OutOfTime:
                return False
            except RamifyError as error:
                self.refused[look.candidate] = str(error)
                return False
            except MemoryError:
                self.refused[look.candidate] = NO_MEMORY
                return False
        look.judge(self.ground, self.by)
        return True

    def predict(self, candidate: Candidate, numbers: Iterable[int], share: float) -> float:
        """Seconds that a candidate will take on some folds."""
        return sum(self.times.predict(candidate, self.ground.size(number, share)) for number in numbers)

    def _try(self, look: Look, number: int, latest: float) -> None:
        candidate, clock, size = look.candidate, self.allowance.clock, self.ground.size(number, look.share)
        began, spared = clock(), self.ground.spared(candidate, number, look.share)
        try:
            with ending_by(min(latest, began + self._patience(candidate, size)), clock):
                look.folds[number] = self.attempt(candidate, self.ground, number, look.share, look.rules)
        except OutOfTime:
            self.slow[candidate] = clock() - began
            self.times.note(candidate, size, clock() - began + spared)
            raise
        look.seconds += clock() - began
        self.times.note(candidate, size, clock() - began + spared)

    def _patience(self, candidate: Candidate, size: int) -> float:
        """Seconds after which a trial is broken off; a system that was never tried is given some time in any case."""
        if not self.times.seen:
            return math.inf
        least = SHORTEST if self.times.knows(candidate.system) else FIRST * self.allowance.left
        return max(least, PATIENCE * self.times.predict(candidate, size))
