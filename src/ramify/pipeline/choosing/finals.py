"""The best few candidates on all folds, with all documents, as far as there is time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ramify.pipeline.choosing.candidates import Candidate
from ramify.pipeline.choosing.examiner import Examiner
from ramify.pipeline.choosing.looks import Look

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
