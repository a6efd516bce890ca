"""What to try next: every system once, then steps around the best of those that are near the best of all.

The order is that of what a trial may gain for what it costs. Both are known before anything is measured, or come from scores,
so the same scores always give the same order, however fast the machine is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ramify.errors import InputError
from ramify.formatting import duration
from ramify.parallel.progress import SingleStage
from ramify.workflows.tuning.candidates import Candidate, Fixed, Prospects, relative_cost
from ramify.workflows.tuning.evaluator import Examiner
from ramify.workflows.tuning.trials import Look, problem_with

NEAR = 0.02  # of the measure: a system so far behind the best gains a third as much from another step
FAR = 0.05  # of what the best gains: systems that gain less are left as they are
STEP, CHANGE = 0.6, 0.5  # what another number of the learner gains, and other features; trying the system itself is 1


def propose(fixed: Fixed, scores: Mapping[Candidate, float], closed: Collection[Candidate], has_texts: bool) -> list[Candidate]:
    """Candidates that were not tried, the one to try next first.

    scores: of those that were tried, higher is better. closed: others that are not to be tried, or not again.
    """
    gains: dict[Candidate, float] = {start: fixed.prospect(start.system).promise for start in fixed.starts()}
    highest = max(scores.values(), default=0.0)
    for system in dict.fromkeys(candidate.system for candidate in scores):
        best = _best(system, scores, fixed.prospects)
        near = math.exp((scores[best] - highest) / NEAR)
        worth = near * fixed.prospect(system).promise
        if near >= FAR:
            for other in fixed.steps(best):
                gains.setdefault(other, STEP * worth)
            for other in fixed.changes(best) if has_texts else ():
                gains.setdefault(other, CHANGE * worth)
    left = [candidate for candidate in gains if candidate not in scores and candidate not in closed]
    return sorted(left, key=lambda candidate: -gains[candidate] / relative_cost(candidate, fixed.prospects))


def _best(system: str, scores: Mapping[Candidate, float], prospects: Prospects) -> Candidate:
    """The best candidate of a system; of equals the cheapest, and of equally cheap ones the first."""
    tried = [candidate for candidate in scores if candidate.system == system]
    return min(tried, key=lambda candidate: (-scores[candidate], relative_cost(candidate, prospects)))


# --------------------------------------------------------------------------------------------------------------
# The best few candidates on all folds, with all documents, as far as there is time.


FINALISTS, OF_EACH = 4, 2  # how many in all, and of one system

Tell = Callable[[Candidate, int], None]  # says what is tried, on which fold


def few_of_each(ranked: Sequence[Look]) -> list[Look]:
    """Who takes part: the best, but not too many of one system. Whoever is not among them never will be, whatever is tried."""
    chosen: list[Look] = []
    for look in ranked:
        if sum(other.candidate.system == look.candidate.system for other in chosen) < OF_EACH:
            chosen.append(look)
    return chosen[:FINALISTS]


def cost_of_final(examiner: Examiner, look: Look) -> float:
    """Seconds that the folds take that a look has not seen; what was seen with fewer documents does not count."""
    return examiner.predict(look.candidate, _missing(examiner, look), 1.0)


def play_finals(examiner: Examiner, entered: Sequence[Look], last: float, tell: Tell) -> list[Look]:
    """The best few looks, on the same folds, best first.

    entered: those that take part, best first. last: seconds that must be left over. All finalists take a fold before any takes
    the next; what is not done when time is up does not count.
    """
    chosen = [_begun(look) for look in entered[: _affordable(examiner, entered, last)]]
    for number in range(examiner.ground.n_folds):
        waiting = [look for look in chosen if number not in look.folds]
        if sum(examiner.predict(look.candidate, [number], 1.0) for look in waiting) > examiner.allowance.left - last:
            break
        for look in waiting:
            tell(look.candidate, number)
            if not examiner.go_on(look, [number], examiner.allowance.end - last):
                chosen.remove(look)
    return _comparable(examiner, chosen) or _comparable(examiner, entered)


def _affordable(examiner: Examiner, entered: Sequence[Look], last: float) -> int:
    """How many of the best can be tried on one fold more; one alone would have nobody to beat."""
    for n in range(len(entered), 1, -1):
        seconds = sum(examiner.predict(look.candidate, _missing(examiner, look)[:1], 1.0) for look in entered[:n])
        if seconds <= examiner.allowance.left - last:
            return n
    return 0


def _comparable(examiner: Examiner, chosen: Sequence[Look]) -> list[Look]:
    """Looks on the folds that all of them have seen, best first; nothing where there are no such folds."""
    shared = set(range(examiner.ground.n_folds)).intersection(*(look.folds for look in chosen))
    if not shared:
        return []
    for look in chosen:
        if set(look.folds) != shared:
            look.folds = {number: look.folds[number] for number in sorted(shared)}
            look.judge(examiner.ground, examiner.by)
    return sorted(chosen, key=lambda look: -look.score)


def _begun(look: Look) -> Look:
    """A look that goes on; one that learnt from fewer documents begins anew."""
    return look if look.share == 1.0 else Look(look.candidate, 1.0, look.rules)


def _missing(examiner: Examiner, look: Look) -> list[int]:
    done = look.folds if look.share == 1.0 else {}
    return [number for number in range(examiner.ground.n_folds) if number not in done]


# --------------------------------------------------------------------------------------------------------------
# A search that knows when it must end.
#
# First looks: many candidates on one fold or a few, and where documents are many on a part of them. Then finals: the best
# few on
# all folds. A trial is begun only if what similar ones took says that it ends in time, with what must follow; one that takes
# much
# longer than was thought is broken off. Time for the last training is never touched.


ENOUGH = 2000  # documents that are tested in a look, if there are so many
FEW = 1000  # documents that the very first look learns from
MANY = 10_000  # documents that a look learns from, unless that takes very long
LOOK = 0.04  # of the time: what a look of flat machines may take, if it is to learn from more
FOLDS = 0.08  # of the time: what a look of flat machines may take, if it is to be tested on more than one fold
NEARLY = 0.7  # share of the documents from which on all of them can be taken as well
LONGEST = 0.25  # of what is left: what a look may take at most
FINALS = 0.25  # of the time: what is kept back for finals at most
USUAL = 2.0  # what a system may cost by which the time of looks is judged; flat machines on words are 1


@dataclass(slots=True)
class Search:
    """What is being searched, and what was found so far.

    ending: says how many seconds the last training of a candidate takes. looks: of candidates that were tried.
    first: looks at few documents, which tell how fast this is.
    share, n_folds: what a look learns from, and on how many folds. finalists: those that were compared at the end, on
    the same folds, best first. shown: seconds that a listener has heard of.
    """

    examiner: Examiner
    fixed: Fixed
    ending: Callable[[Look], float]
    looks: dict[Candidate, Look] = field(default_factory=dict)
    first: dict[Candidate, Look] = field(default_factory=dict)
    share: float = 1.0
    n_folds: int = 1
    finalists: list[Look] = field(default_factory=list)
    shown: float = 0.0

    def run(self, whole: SingleStage) -> None:
        """Look around, and put the best to the test."""
        self._begin(whole)
        while (candidate := self._next()) is not None:
            self._tell(whole, candidate)
            self._look(candidate)
        self.looks = self.looks or self.first  # better than nothing
        tell = lambda candidate, number: self._tell(whole, candidate, number)  # noqa: E731
        self.finalists = play_finals(self.examiner, few_of_each(self.ranked()), self._last(), tell)

    def ranked(self) -> list[Look]:
        """Looks, the best first; of equals the one that was tried first, which is the one that promised more."""
        return sorted(self.looks.values(), key=lambda look: -look.score)

    def left(self) -> list[tuple[Candidate, float]]:
        """What was not tried, or not to its end, in the order in which it would be; and seconds that it would take."""
        folds = range(self.n_folds)
        return [(each, self.examiner.predict(each, folds, self.share)) for each in (*self._proposals(), *self.examiner.slow)]

    def _begin(self, whole: SingleStage) -> None:
        """First looks at few documents tell how fast this is, and so how many of them other looks may have."""
        ground, allowance = self.examiner.ground, self.examiner.allowance
        starts = self.fixed.starts()
        for start in starts:
            if problem := problem_with(start, ground):
                self.examiner.refused[start] = problem
        n_learnt = max(1, len(ground.positions(0, 1.0)[0]))
        quickest = self._first_able(sorted(starts, key=self._cost), min(1.0, FEW / n_learnt), whole)
        needed = self.examiner.predict(quickest, [0], 1.0)
        if needed > allowance.left:
            raise InputError(
                f"{quickest.system}, the quickest system here, would take about {duration(needed)}, and of "
                f"{duration(allowance.seconds)} there are {duration(max(0.0, allowance.left))} left; give more time."
            )
        usual = [start for start in starts if self._cost(start) <= USUAL]
        usual.sort(key=lambda start: -self.fixed.prospect(start.system).promise)
        self._plan(self._first_able([*usual, quickest], min(1.0, FEW / n_learnt), whole), n_learnt)

    def _first_able(self, starts: Sequence[Candidate], share: float, whole: SingleStage) -> Candidate:
        """The first of some candidates that can take the documents."""
        for start in starts:
            if start in self.first:
                return start
            if start not in self.examiner.refused and start not in self.examiner.slow:
                self._tell(whole, start)
                latest = self.examiner.allowance.end - (1 - LONGEST) * self.examiner.allowance.left
                look = self.examiner.look(start, [0], share, latest)
                if look is not None:
                    self.first[start] = look
                    return start
        raise self._refusal()

    def _cost(self, candidate: Candidate) -> float:
        return relative_cost(candidate, self.fixed.prospects)

    def _plan(self, usual: Candidate, n_learnt: int) -> None:
        """How many documents a look learns from, and on how many folds it is tested."""
        ground, left = self.examiner.ground, self.examiner.allowance.left
        fold = max(self.examiner.predict(usual, [0], 1.0), 1e-9)
        wished = math.ceil(ENOUGH / len(ground.positions(0, 1.0)[1]))
        self.n_folds = max(1, min(ground.n_folds, wished, math.floor(FOLDS * left / fold)))
        seconds = self.n_folds * fold
        wanted = max(LOOK * left / seconds, MANY / n_learnt)
        share = min(wanted, LONGEST * left / seconds)
        self.share = 1.0 if share > NEARLY else max(share, FEW / n_learnt)

    def _next(self) -> Candidate | None:
        """The first of the proposals that can be looked at in time."""
        left, folds = self.examiner.allowance.left, range(self.n_folds)
        room = min(LONGEST * left, left - self._kept_back())
        return next((each for each in self._proposals() if self.examiner.predict(each, folds, self.share) <= room), None)

    def _look(self, candidate: Candidate) -> None:
        latest = self.examiner.allowance.end - self._last()
        look = self.examiner.look(candidate, range(self.n_folds), self.share, latest)
        if look is not None:
            self.looks[candidate] = look
            kept = {each.candidate for each in few_of_each(self.ranked())}
            for each in self.looks.values():
                if each.candidate not in kept:
                    each.forget()

    def _proposals(self) -> list[Candidate]:
        scores = {candidate: look.score for candidate, look in self.looks.items()}
        closed = {*self.examiner.refused, *self.examiner.slow}
        return propose(self.fixed, scores, closed, not self.examiner.ground.corpus.has_vectors)

    def _kept_back(self) -> float:
        """Seconds for finals, once there are candidates enough for them, and for the last training."""
        entered = few_of_each(self.ranked())
        finals = sum(cost_of_final(self.examiner, look) for look in entered) if len(entered) == FINALISTS else 0.0
        return min(finals, FINALS * self.examiner.allowance.seconds) + self._last()

    def _last(self) -> float:
        """Seconds for the last training of the best so far."""
        return self.ending(self.ranked()[0]) if self.looks else 0.0

    def _tell(self, whole: SingleStage, candidate: Candidate, number: int | None = None) -> None:
        where = "" if number is None else f", fold {number + 1} of {self.examiner.ground.n_folds}"
        best = f"; best of {len(self.looks)} so far: {self.ranked()[0].candidate}" if self.looks else ""
        whole.advance(self.examiner.allowance.used - self.shown)
        self.shown = self.examiner.allowance.used
        whole.describe(f"{candidate}{where}{best}")

    def _refusal(self) -> InputError:
        """Nothing was tried to its end: what the first of them says, or that there was no time."""
        if self.examiner.refused.keys() >= set(self.fixed.starts()):
            return InputError(next(iter(self.examiner.refused.values())))
        seconds = duration(self.examiner.allowance.seconds)
        return InputError(f"no system could be tried within {seconds}; give more time, or fewer documents.")
