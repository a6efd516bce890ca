"""How long candidates took, and how long others will take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import nsmallest
from statistics import median

from ramify.decisions import DecisionRule
from ramify.errors import RamifyError
from ramify.parallel import Clock, OutOfTime, deadline_at
from ramify.workflows.compare_trials import NO_MEMORY
from ramify.workflows.tuning.candidates import ON_WORDS, Candidate, Prospects, relative_cost
from ramify.workflows.tuning.folds import Ground
from ramify.workflows.tuning.trials import Look, Tried, rules_for, try_out

POWER = 1.1  # time grows with so high a power of the number of documents
CAUTION = 1.5  # times as long as others suggest is what a system may take that was never tried
NEAREST = 3  # measurements of which the middle one counts, since any of them may have met a busy moment
LEAST = 0.02  # seconds that everything takes


@dataclass(frozen=True, slots=True)
class Allowance:
    """Seconds that may be used from a moment on."""

    seconds: float
    begun: float
    clock: Clock = time.monotonic

    @property
    def end(self) -> float:
        """The moment by which all must be done."""
        return self.begun + self.seconds

    @property
    def used(self) -> float:
        """Seconds that are gone."""
        return self.clock() - self.begun

    @property
    def left(self) -> float:
        """Seconds that remain; below zero when it is late."""
        return self.seconds - self.used


@dataclass(slots=True)
class Times:
    """What was measured: candidate, documents that it learnt from or answered, seconds. prospects: what was known before."""

    prospects: Prospects = field(default_factory=lambda: ON_WORDS)
    seen: list[tuple[Candidate, int, float]] = field(default_factory=list)

    def note(self, candidate: Candidate, n_documents: int, seconds: float) -> None:
        """Remember how long one training and its answers took."""
        self.seen.append((candidate, n_documents, max(seconds, LEAST)))

    def knows(self, system: str) -> bool:
        """Whether a system was measured."""
        return any(candidate.system == system for candidate, _, _ in self.seen)

    def predict(self, candidate: Candidate, n_documents: int) -> float:
        """Seconds that a candidate will take: by the nearest of its system that were measured, or else by other systems.

        >>> times = Times()
        >>> times.note(Candidate("svm", (("C", 1.0),)), 1000, 2.0)
        >>> times.predict(Candidate("svm", (("C", 1.0),)), 1000), times.predict(Candidate("hr-svm", (("C", 1.0),)), 1000)
        (2.0, 12.0)
        """
        own = [each for each in self.seen if each[0].system == candidate.system]
        if own:
            nearest = nsmallest(NEAREST, reversed(own), key=lambda each: self._distance(each, candidate, n_documents))
            nearest = [each for each in nearest if _is_far(each[1], n_documents) == _is_far(nearest[0][1], n_documents)]
            return median(seconds * self._ratio(candidate, like) * _growth(n_documents, n) for like, n, seconds in nearest)
        others = [seconds * self._ratio(candidate, like) * _growth(n_documents, size) for like, size, seconds in self.seen]
        return CAUTION * median(others) if others else 0.0

    def _ratio(self, candidate: Candidate, other: Candidate) -> float:
        return relative_cost(candidate, self.prospects) / relative_cost(other, self.prospects)

    def _distance(self, seen: tuple[Candidate, int, float], candidate: Candidate, n_documents: int) -> tuple[bool, float, bool]:
        """How unlike something that was measured is: another number of documents, then other settings."""
        like, size, _ = seen
        return _is_far(size, n_documents), abs(math.log(self._ratio(candidate, like))), like != candidate


def _is_far(size: int, n_documents: int) -> bool:
    """Whether something was measured on a very different number of documents."""
    return abs(size - n_documents) > 0.2 * n_documents


def _growth(n_documents: int, other: int) -> float:
    return float((n_documents / max(1, other)) ** POWER)


# --------------------------------------------------------------------------------------------------------------
# Trials that are timed, that end in time, and that say why they could not be made.


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
            with deadline_at(min(latest, began + self._patience(candidate, size)), clock):
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
