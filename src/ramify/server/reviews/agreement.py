"""How often reviewers agree with the model and with each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ramify.server.reviews.store import Review


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


def summarize(reviews: Iterable[Review], paths: Any = None) -> Summary:
    """Add up reviews.

    paths: returns the path of a label, or None for an unknown one; without it there is no table by level.
    """
    waiting, reviewed, pairs, same = 0, 0, 0, 0
    people = defaultdict[str, Counter[str]](Counter)
    asked, right = Counter[int](), Counter[int]()
    for review in reviews:
        current = review.current
        waiting += not current
        reviewed += bool(current)
        for decision in current:
            people[decision.reviewer][decision.action] += 1
            if paths is not None and decision.action != "reject":
                _compare_paths(review, decision.labels, paths, asked, right)
        for one, other in combinations(current, 2):
            pairs += 1
            same += set(one.labels) == set(other.labels) and one.action != "reject" != other.action
            same += one.action == other.action == "reject"
    by_level = [Agreement(depth, asked[depth], right[depth] / asked[depth]) for depth in sorted(asked)]
    by_reviewer = [
        ReviewerCounts(name, counts.total(), counts["accept"], counts["correct"], counts["reject"])
        for name, counts in sorted(people.items())
    ]
    accepted, corrected = sum(each.accepted for each in by_reviewer), sum(each.corrected for each in by_reviewer)
    rejected, judged = sum(each.rejected for each in by_reviewer), accepted + corrected
    agreement = accepted / judged if judged else None
    between = Between(pairs, same)
    return Summary(waiting, reviewed, accepted, corrected, rejected, agreement, by_level, by_reviewer, between)


def _compare_paths(review: Review, labels: list[str], paths: Any, asked: Counter[int], right: Counter[int]) -> None:
    given = {tuple(label["path"][: d + 1]) for label in review.labels for d in range(len(label.get("path", ())))}
    for label in labels:
        path = paths(label)
        for depth in range(len(path or ())):
            asked[depth] += 1
            right[depth] += tuple(path[: depth + 1]) in given
