"""How often reviewers agree with the model and with each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from ramify.server.reviews.store import Review


@dataclass(slots=True)
class Summary:
    """Counts of reviews.

    agreement: the fraction of decisions that accept the model's labels, without rejected documents.
    by_level: the same at each depth: of the labels that deep, the fraction that the model predicted.
    between_reviewers: pairs of reviewers on one document, and how many of them agree.
    """

    open: int = 0
    reviewed: int = 0
    accepted: int = 0
    corrected: int = 0
    rejected: int = 0
    agreement: float | None = None
    by_level: list[dict[str, Any]] = field(default_factory=list)
    by_reviewer: list[dict[str, Any]] = field(default_factory=list)
    between_reviewers: dict[str, int] = field(default_factory=lambda: {"pairs": 0, "same": 0})


def summarize(reviews: Iterable[Review], paths: Any = None) -> Summary:
    """Add up reviews.

    paths: returns the path of a label, or None for an unknown one; without it there is no table by level.
    """
    made, people = Summary(), defaultdict[str, Counter[str]](Counter)
    asked, same = Counter[int](), Counter[int]()
    for review in reviews:
        current = review.current
        made.open += not current
        made.reviewed += bool(current)
        for decision in current:
            people[decision.reviewer][decision.action] += 1
            if paths is not None and decision.action != "reject":
                _compare_paths(review, decision.labels, paths, asked, same)
        for one, other in combinations(current, 2):
            made.between_reviewers["pairs"] += 1
            made.between_reviewers["same"] += set(one.labels) == set(other.labels) and one.action != "reject" != other.action
            made.between_reviewers["same"] += one.action == other.action == "reject"
    made.accepted, made.corrected, made.rejected = (
        sum(counts[action] for counts in people.values()) for action in ("accept", "correct", "reject")
    )
    judged = made.accepted + made.corrected
    made.agreement = made.accepted / judged if judged else None
    made.by_level = [{"depth": d, "documents": asked[d], "agreement": same[d] / asked[d]} for d in sorted(asked)]
    for name, counts in sorted(people.items()):
        counted = {"accepted": counts["accept"], "corrected": counts["correct"], "rejected": counts["reject"]}
        made.by_reviewer.append({"reviewer": name, "decisions": sum(counted.values()), **counted})
    return made


def _compare_paths(review: Review, labels: list[str], paths: Any, asked: Counter[int], same: Counter[int]) -> None:
    given = {tuple(label["path"][: d + 1]) for label in review.labels for d in range(len(label.get("path", ())))}
    for label in labels:
        path = paths(label)
        for depth in range(len(path or ())):
            asked[depth] += 1
            same[depth] += tuple(path[: depth + 1]) in given
