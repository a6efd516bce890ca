"""The search: which candidate to try next, the final round of the best ones, and an end in time.

The default, which would be trained without tuning, is tried first, and takes part in the final round. Then every system is
tried once, and steps around the best candidates of the systems that are close to the best. The order is that of the expected
gain for the cost. Both are known before anything is measured, or come from scores, so the same scores
always give the same order, however fast the computer is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ramify.errors import InputError
from ramify.formatting import duration
from ramify.parallel.progress import SingleStage
from ramify.workflows.tuning.candidates import Candidate, Fixed, relative_cost
from ramify.workflows.tuning.evaluator import Evaluator
from ramify.workflows.tuning.trials import Trial, problem_with

SCALE = 0.02  # of the measure: a system this far behind the best has a third of the expected gain
MIN_GAIN = 0.05  # relative to the best system; systems below are not searched further
STEP, CHANGE = 0.6, 0.5  # expected gain of another parameter value, and of other features; of a new system: 1


def propose(fixed: Fixed, scores: Mapping[Candidate, float], closed: Collection[Candidate]) -> list[Candidate]:
    """Candidates without a trial or `closed`, the one to try next first. scores: of those with a trial, higher is better."""
    gains: dict[Candidate, float] = {start: fixed.prior(start.system).merit for start in fixed.starts()}
    highest = max(scores.values(), default=0.0)
    for system in dict.fromkeys(candidate.system for candidate in scores):
        tried = [candidate for candidate in scores if candidate.system == system]
        best = min(tried, key=lambda each: (-scores[each], relative_cost(each, fixed.priors)))  # of ties the cheapest
        closeness = math.exp((scores[best] - highest) / SCALE)
        worth = closeness * fixed.prior(system).merit
        if closeness >= MIN_GAIN:
            for other in fixed.steps(best):
                gains.setdefault(other, STEP * worth)
            for other in fixed.changes(best) if fixed.has_texts else ():
                gains.setdefault(other, CHANGE * worth)
    left = [candidate for candidate in gains if candidate not in scores and candidate not in closed]
    return sorted(left, key=lambda each: (each != fixed.default, -gains[each] / relative_cost(each, fixed.priors)))


# ---- final round: the best candidates on all folds and all documents, as far as there is time ---------------------------

MAX_FINALISTS, MAX_OF_SYSTEM = 4, 2

Announce = Callable[[Candidate, int], None]  # reports which candidate runs on which fold


def select_finalists(ranked: Sequence[Trial], default: Candidate | None = None) -> list[Trial]:
    """The best trials, but not too many of one system, and the default as the second unless it is the best.

    A trial that is not among them never will be, whatever follows.
    """
    chosen: list[Trial] = []
    for trial in ranked:
        if sum(other.candidate.system == trial.candidate.system for other in chosen) < MAX_OF_SYSTEM:
            chosen.append(trial)
    chosen = chosen[:MAX_FINALISTS]
    own = [trial for trial in ranked[1:] if trial.candidate == default]
    return [*chosen[:1], *own, *(trial for trial in chosen[1:] if trial.candidate != default)]


def final_round(evaluator: Evaluator, entered: Sequence[Trial], reserve: float, announce: Announce) -> list[Trial]:
    """The finalists on the same folds, best first.

    entered: those that take part, the most important first. reserve: seconds that must be left. All finalists run on a fold
    before any runs on the next; folds that are not done in time do not count.
    """
    # those that can run on one more fold; at least two, or there is nothing to compare
    first = [evaluator.predict(trial.candidate, _missing(evaluator, trial)[:1], 1.0) for trial in entered]
    n_chosen = next((n for n in range(len(entered), 1, -1) if sum(first[:n]) <= evaluator.budget.left - reserve), 0)
    # a trial on a fraction of the documents starts again on all of them
    chosen = [trial if trial.fraction == 1.0 else Trial(trial.candidate, 1.0, trial.rules) for trial in entered[:n_chosen]]
    for number in range(evaluator.folds.n_folds):
        waiting = [trial for trial in chosen if number not in trial.results]
        if sum(evaluator.predict(trial.candidate, [number], 1.0) for trial in waiting) > evaluator.budget.left - reserve:
            break
        for trial in waiting:
            announce(trial.candidate, number)
            if not evaluator.extend(trial, [number], evaluator.budget.end - reserve):
                chosen.remove(trial)
    return _comparable(evaluator, chosen) or _comparable(evaluator, entered)


def _comparable(evaluator: Evaluator, chosen: Sequence[Trial]) -> list[Trial]:
    """Trials reduced to the folds that all of them have, best first; empty where there are none."""
    shared = set(range(evaluator.folds.n_folds)).intersection(*(trial.results for trial in chosen))
    if not shared:
        return []
    for trial in chosen:
        if set(trial.results) != shared:
            trial.results = {number: trial.results[number] for number in sorted(shared)}
            trial.score_rules(evaluator.folds, evaluator.by)
    return sorted(chosen, key=lambda trial: -trial.score)


def _missing(evaluator: Evaluator, trial: Trial) -> list[int]:
    """The folds that a trial lacks; folds with a fraction of the documents do not count."""
    done = trial.results if trial.fraction == 1.0 else {}
    return [number for number in range(evaluator.folds.n_folds) if number not in done]


# ---- search -------------------------------------------------------------------------------------------------------------
# First many candidates on one fold or a few and, where there are many documents, on a fraction of them; then the final
# round. A trial starts only if it is expected to end in time, with all that must follow; one that takes much longer than
# expected is stopped. The time reserved for the final training is never used.

TEST_DOCUMENTS = 2000  # of a trial, if there are so many
PILOT_DOCUMENTS = 1000  # training documents of the pilot trials
TRAINING_DOCUMENTS = 10_000  # of a trial, unless that takes very long
TRIAL_TIME = 0.12  # fraction of the time that a trial of the default may take to train on more documents
FOLDS_TIME = 0.2  # fraction of the time that a trial of the default may take to run on more than one fold
ALMOST_ALL = 0.7  # fraction of the documents from which on all are used
LONGEST_TRIAL, LONGEST_DEFAULT = 0.25, 0.5  # fraction of the time left, and the same for the default
FINAL_ROUND_TIME = 0.25  # fraction of the time that is reserved for the final round at most
TYPICAL_COST = 2.0  # of systems that stand in for a default that cannot be used; a flat SVM on words is 1


@dataclass(slots=True)
class Search:
    """The state of a search.

    reserve: seconds for the final training of a candidate. pilots: trials on few documents, which measure the speed.
    fraction, n_folds: training documents and folds of a trial. finalists: compared in the final round, on the same folds, best
    first. reported: seconds of the progress bar so far.
    """

    evaluator: Evaluator
    fixed: Fixed
    reserve: Callable[[Trial], float]
    trials: dict[Candidate, Trial] = field(default_factory=dict)
    pilots: dict[Candidate, Trial] = field(default_factory=dict)
    fraction: float = 1.0
    n_folds: int = 1
    finalists: list[Trial] = field(default_factory=list)
    reported: float = 0.0

    def run(self, whole: SingleStage) -> None:
        """Try candidates, then compare the best in the final round."""
        self._begin(whole)
        while (candidate := self._next()) is not None:
            self._tell(whole, candidate)
            latest = self.evaluator.budget.end - self._reserved()
            trial = self._try(candidate, latest)
            if trial is not None:
                self.trials[candidate] = trial
                finalists = {each.candidate for each in self._entered()}
                for each in (each for each in self.trials.values() if each.candidate not in finalists):
                    # values for fitting rules are no longer needed
                    each.results = {number: replace(result, values={}) for number, result in each.results.items()}
        self.trials = self.trials or self.pilots  # better than nothing
        self.finalists = final_round(self.evaluator, self._entered(), self._reserved(), partial(self._tell, whole))

    def _try(self, candidate: Candidate, latest: float) -> Trial | None:
        """A trial of a candidate, which starts from its pilot trial if that was on as many documents."""
        pilot = self.pilots.get(candidate)
        if pilot is None or pilot.fraction != self.fraction:
            return self.evaluator.evaluate(candidate, range(self.n_folds), self.fraction, latest)
        return pilot if self.evaluator.extend(pilot, range(1, self.n_folds), latest) else None

    def ranked(self) -> list[Trial]:
        """Trials, the best first; of ties the one that was tried first, which had the higher expected gain."""
        return sorted(self.trials.values(), key=lambda trial: -trial.score)

    def _entered(self) -> list[Trial]:
        return select_finalists(self.ranked(), self.fixed.default)

    def untried(self) -> list[tuple[Candidate, float]]:
        """Candidates without a complete trial, in the order of the search, and their expected seconds."""
        untried = (*self._proposals(), *self.evaluator.slow)
        return [(each, self.evaluator.predict(each, range(self.n_folds), self.fraction)) for each in untried]

    def _begin(self, whole: SingleStage) -> None:
        """Measure the speed by pilot trials, and plan the size of the other trials."""
        folds, budget = self.evaluator.folds, self.evaluator.budget
        starts = self.fixed.starts()
        for start in starts:
            if problem := problem_with(start, folds):
                self.evaluator.refused[start] = problem
        n_training = max(1, len(folds.positions(0, 1.0)[0]))
        few, cost = min(1.0, PILOT_DOCUMENTS / n_training), partial(relative_cost, priors=self.fixed.priors)
        quickest = self._first_usable(sorted(starts, key=cost), few, whole)
        needed = self.evaluator.predict(quickest, [0], 1.0)
        if needed > budget.left:
            fastest = f"{quickest.system}, the fastest system here, would take about {duration(needed)}"
            left_of = f"of {duration(budget.seconds)} there are {duration(max(0.0, budget.left))} left"
            raise InputError(f"{fastest}, and {left_of}; give more time.")
        typical = [start for start in starts if cost(start) <= TYPICAL_COST]
        typical.sort(key=lambda start: -self.fixed.prior(start.system).merit)
        # training documents and folds of a trial
        measured = self._first_usable([self.fixed.default, *typical, quickest], few, whole)
        left, fold = budget.left, max(self.evaluator.predict(measured, [0], 1.0), 1e-9)
        wanted = math.ceil(TEST_DOCUMENTS / len(folds.positions(0, 1.0)[1]))
        self.n_folds = max(1, min(folds.n_folds, wanted, math.floor(FOLDS_TIME * left / fold)))
        seconds = self.n_folds * fold
        fraction = min(max(TRIAL_TIME * left / seconds, TRAINING_DOCUMENTS / n_training), LONGEST_TRIAL * left / seconds)
        self.fraction = 1.0 if fraction > ALMOST_ALL else max(fraction, PILOT_DOCUMENTS / n_training)

    def _first_usable(self, starts: Sequence[Candidate], fraction: float, whole: SingleStage) -> Candidate:
        """The first of some candidates that can be used on the documents, after a pilot trial."""
        for start in starts:
            if start in self.pilots:
                return start
            is_open = start not in self.evaluator.refused and start not in self.evaluator.slow
            if is_open and self.evaluator.budget.left > 0:
                self._tell(whole, start)
                latest = self.evaluator.budget.end - (1 - LONGEST_TRIAL) * self.evaluator.budget.left
                trial = self.evaluator.evaluate(start, [0], fraction, latest)
                if trial is not None:
                    self.pilots[start] = trial
                    return start
        if self.evaluator.refused.keys() >= set(self.fixed.starts()):
            raise InputError(next(iter(self.evaluator.refused.values())))
        seconds = duration(self.evaluator.budget.seconds)
        raise InputError(f"no system could be tried within {seconds}; give more time, or fewer documents.")

    def _next(self) -> Candidate | None:
        """The first of the proposals that can be tried in time."""
        evaluator, left, numbers = self.evaluator, self.evaluator.budget.left, range(self.n_folds)
        entered, seconds = self._entered(), 0.0
        if len(entered) >= MAX_FINALISTS:  # then the final round needs time
            seconds = sum(evaluator.predict(trial.candidate, _missing(evaluator, trial), 1.0) for trial in entered)
        needed = min(seconds, FINAL_ROUND_TIME * evaluator.budget.seconds) + self._reserved()

        def fits(candidate: Candidate) -> bool:
            longest = LONGEST_DEFAULT if candidate == self.fixed.default else LONGEST_TRIAL
            return evaluator.predict(candidate, numbers, self.fraction) <= min(longest * left, left - needed)

        return next(filter(fits, self._proposals()), None)

    def _proposals(self) -> list[Candidate]:
        scores = {candidate: trial.score for candidate, trial in self.trials.items()}
        closed = {*self.evaluator.refused, *self.evaluator.slow}
        return propose(self.fixed, scores, closed)

    def _reserved(self) -> float:
        """Seconds for the final training of the best so far or of the default, whichever takes longer."""
        known = self.trials or self.pilots
        winners = [*self.ranked()[:1], *(known[each] for each in (self.fixed.default,) if each in known)]
        return max(map(self.reserve, winners), default=0.0)

    def _tell(self, whole: SingleStage, candidate: Candidate, number: int | None = None) -> None:
        where = "" if number is None else f", fold {number + 1} of {self.evaluator.folds.n_folds}"
        best = f"; best of {len(self.trials)} so far: {self.ranked()[0].candidate}" if self.trials else ""
        whole.advance(self.evaluator.budget.used - self.reported)
        self.reported = self.evaluator.budget.used
        whole.describe(f"{candidate}{where}{best}")
