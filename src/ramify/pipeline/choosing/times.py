"""How long candidates took, and how long others will take."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from heapq import nsmallest
from statistics import median

from ramify.execution import Clock
from ramify.pipeline.choosing.candidates import ON_WORDS, Candidate, Prospects, relative_cost

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
