"""How often reviewers agree with the model and with each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import comb
from typing import Any

from ramify.server.reviews.store import Review

SOME, SOME_CHARACTERS = 200, 1 << 22  # reviews, and characters of their texts, that are added at a time


@dataclass(frozen=True, slots=True)
class Agreement:
    """At one depth: the labels of reviewers, and the fraction that the model predicted."""

    depth: int
    documents: int
    agreement: float


@dataclass(frozen=True, slots=True)
class ReviewerCounts:
    """The decisions of one reviewer."""

    reviewer: str
    decisions: int
    accepted: int
    corrected: int
    rejected: int


@dataclass(frozen=True, slots=True)
class Between:
    """Pairs of reviewers on one document, and how many of them agree."""

    pairs: int
    same: int


@dataclass(frozen=True, slots=True)
class Summary:
    """How often reviewers agree with the model (without the documents that they rejected) and with each other."""

    open: int
    reviewed: int
    accepted: int
    corrected: int
    rejected: int
    agreement: float | None
    by_level: list[Agreement]
    by_reviewer: list[ReviewerCounts]
    between_reviewers: Between


class Tally:
    """Adds up reviews, a few at a time.

    paths: returns the path of a label, or None for an unknown one; without it there is no table by level.
    """

    def __init__(self, paths: Any = None) -> None:
        self._paths = paths
        self._open = self._reviewed = self._pairs = self._same = 0
        self._people = defaultdict[str, Counter[str]](Counter)
        self._asked, self._right = Counter[int](), Counter[int]()

    def add(self, review: Review) -> None:
        """Add one review."""
        current = review.current
        self._open += not current
        self._reviewed += bool(current)
        for decision in current:
            self._people[decision.reviewer][decision.action] += 1
            if self._paths is not None and decision.action != "reject":
                _compare_paths(review, decision.labels, self._paths, self._asked, self._right)
        # pairs are counted by groups that agree: one by one, the pairs of 10,000 reviewers would take minutes
        groups = Counter(None if each.action == "reject" else frozenset(each.labels) for each in current)
        self._pairs += comb(len(current), 2)
        self._same += sum(comb(size, 2) for size in groups.values())

    def add_some(self, reviews: Iterator[Review]) -> bool:
        """Add the next reviews; whether there may be more."""
        has_any, size = False, 0
        for review in islice(reviews, SOME):
            self.add(review)
            has_any, size = True, size + len(review.text)
            if size >= SOME_CHARACTERS:
                break
        return has_any

    def summary(self) -> Summary:
        """What was added."""
        asked, right = self._asked, self._right
        by_level = [Agreement(depth, asked[depth], right[depth] / asked[depth]) for depth in sorted(asked)]
        by_reviewer = [
            ReviewerCounts(name, counts.total(), counts["accept"], counts["correct"], counts["reject"])
            for name, counts in sorted(self._people.items())
        ]
        accepted, corrected = sum(each.accepted for each in by_reviewer), sum(each.corrected for each in by_reviewer)
        rejected, judged = sum(each.rejected for each in by_reviewer), accepted + corrected
        agreement = accepted / judged if judged else None
        counts = self._open, self._reviewed, accepted, corrected, rejected
        return Summary(*counts, agreement, by_level, by_reviewer, Between(self._pairs, self._same))


def summarize(reviews: Iterable[Review], paths: Any = None) -> Summary:
    """Add up reviews."""
    tally = Tally(paths)
    for review in reviews:
        tally.add(review)
    return tally.summary()


def _compare_paths(review: Review, labels: list[str], paths: Any, asked: Counter[int], right: Counter[int]) -> None:
    given = {tuple(label["path"][: d + 1]) for label in review.labels for d in range(len(label.get("path", ())))}
    for label in labels:
        path = paths(label)
        for depth in range(len(path or ())):
            asked[depth] += 1
            right[depth] += tuple(path[: depth + 1]) in given
