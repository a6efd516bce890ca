"""Evaluation of candidates on folds within a time budget, and estimates of how long candidates take."""

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
from ramify.workflows.folds import TuningFolds
from ramify.workflows.tuning.candidates import TEXT_PRIORS, Candidate, Priors, relative_cost
from ramify.workflows.tuning.trials import FoldResult, Trial, rules_for, run_fold

POWER = 1.1  # time grows with this power of the number of documents
CAUTION = 1.5  # factor for systems without a measurement of their own
CLOSEST = 3  # measurements of which the median counts, since any of them may come from a busy moment
MIN_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """A number of seconds from a start."""

    seconds: float
    started: float
    clock: Clock = time.monotonic

    @property
    def end(self) -> float:
        """When everything must be done."""
        return self.started + self.seconds

    @property
    def used(self) -> float:
        """Seconds used so far."""
        return self.clock() - self.started

    @property
    def left(self) -> float:
        """Seconds left; negative when it is late."""
        return self.seconds - self.used


@dataclass(slots=True)
class Timings:
    """Measured times: candidate, training and test documents, seconds. priors: what was known before."""

    priors: Priors = field(default_factory=lambda: TEXT_PRIORS)
    measured: list[tuple[Candidate, int, float]] = field(default_factory=list)

    def add(self, candidate: Candidate, n_documents: int, seconds: float) -> None:
        """Add the time of one training with its predictions."""
        self.measured.append((candidate, n_documents, max(seconds, MIN_SECONDS)))

    def predict(self, candidate: Candidate, n_documents: int) -> float:
        """Expected seconds of a candidate: from the closest measurements of its system, or else from other systems.

        >>> timings = Timings()
        >>> timings.add(Candidate("svm", (("C", 1.0),)), 1000, 2.0)
        >>> timings.predict(Candidate("svm", (("C", 1.0),)), 1000), timings.predict(Candidate("hsvm", (("C", 1.0),)), 1000)
        (2.0, 15.0)
        """
        cost = relative_cost(candidate, self.priors)

        def is_far(size: int) -> bool:  # from a very different number of documents
            return abs(size - n_documents) > 0.2 * n_documents

        def distance(one: tuple[Candidate, int, float]) -> tuple[bool, float, bool]:
            return is_far(one[1]), abs(math.log(cost / relative_cost(one[0], self.priors))), one[0] != candidate

        def expected(like: Candidate, size: int, seconds: float) -> float:
            return float(seconds * (cost / relative_cost(like, self.priors)) * (n_documents / max(1, size)) ** POWER)

        own = [each for each in self.measured if each[0].system == candidate.system]
        if own:
            closest = nsmallest(CLOSEST, reversed(own), key=distance)
            return median(expected(*each) for each in closest if is_far(each[1]) == is_far(closest[0][1]))
        return CAUTION * median(expected(*each) for each in self.measured) if self.measured else 0.0


# ---- trials -------------------------------------------------------------------------------------------------------------

PATIENCE, SHORTEST = 4.0, 1.0  # a trial is stopped after this many times the expected time, and not before these seconds
FIRST = 0.1  # fraction of the time left that the first trial of a system may take in any case

RunFold = Callable[[Candidate, TuningFolds, int, float, list[DecisionRule]], FoldResult]


@dataclass(slots=True)
class Evaluator:
    """Evaluates candidates on folds.

    by: the measure. rule: set by the user, if any. run: runs a candidate on one fold. refused: candidates that cannot be used
    on the documents, with reasons. slow: those that were stopped, and after how many seconds.
    """

    folds: TuningFolds
    by: str
    is_multi_label: bool
    rule: DecisionRule | None
    budget: TimeBudget
    run: RunFold = run_fold
    timings: Timings = field(default_factory=Timings)
    refused: dict[Candidate, str] = field(default_factory=dict)
    slow: dict[Candidate, float] = field(default_factory=dict)

    def evaluate(self, candidate: Candidate, numbers: Iterable[int], fraction: float, latest: float) -> Trial | None:
        """A candidate on some folds; None if it cannot be used on the documents, or is not done in time."""
        n_scores = len(self.folds.corpus) * len(self.folds.taxonomy)
        trial = Trial(candidate, fraction, rules_for(candidate, self.is_multi_label, n_scores, self.rule))
        return trial if self.extend(trial, numbers, latest) else None

    def extend(self, trial: Trial, numbers: Iterable[int], latest: float) -> bool:
        """Run a trial on more folds; gives whether that was possible in time."""
        candidate, clock = trial.candidate, self.budget.clock
        for number in numbers:
            size, patience = self.folds.size(number, trial.fraction), math.inf
            began, saved = clock(), self.folds.seconds_saved(candidate, number, trial.fraction)
            if self.timings.measured:  # the first trial of a system has some time in any case
                is_new = all(other.system != candidate.system for other, _, _ in self.timings.measured)
                least = FIRST * self.budget.left if is_new else SHORTEST
                patience = max(least, PATIENCE * self.timings.predict(candidate, size))
            try:
                with deadline_at(min(latest, began + patience), clock):
                    trial.results[number] = self.run(candidate, self.folds, number, trial.fraction, trial.rules)
            except OutOfTime:
                self.slow[candidate] = clock() - began
                self.timings.add(candidate, size, clock() - began + saved)
                return False
            except (RamifyError, MemoryError) as error:
                self.refused[candidate] = NO_MEMORY if isinstance(error, MemoryError) else str(error)
                return False
            trial.seconds += clock() - began
            self.timings.add(candidate, size, clock() - began + saved)
        trial.score_rules(self.folds, self.by)
        return True

    def predict(self, candidate: Candidate, numbers: Iterable[int], fraction: float) -> float:
        """Expected seconds of a candidate on some folds."""
        return sum(self.timings.predict(candidate, self.folds.size(number, fraction)) for number in numbers)
