"""Answers as the API gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.datasets.documents import why_not_text
from ramify.pipeline.answering import Found
from ramify.server.errors import ApiError
from ramify.server.models import Served
from ramify.server.services import Services
from ramify.server.settings import Limits

DIGITS = 6


def to_labels(served: Served, found: Found, p: NDArray[np.floating[Any]]) -> list[dict[str, Any]]:
    """Labels with their paths, and the probability of every node on them."""
    return [
        {
            "label": served.label_of(node),
            "path": list(served.taxonomy.path_of(node)),
            "probabilities": [round(float(p[here]), DIGITS) for here in served.taxonomy.nodes_to(node)],
            "probability": round(chance, DIGITS),
        }
        for node, chance in found
    ]


def confidence_of(labels: list[dict[str, Any]]) -> float:
    """The probability of the least sure label; 0 where there is none."""
    return min((label["probability"] for label in labels), default=0.0)


def check_texts(texts: list[str], limits: Limits) -> None:
    """Refuse more, or longer texts than are allowed."""
    if not texts:
        raise ApiError(422, "no-texts", "there is no text; give one at least.")
    if len(texts) > limits.texts:
        raise ApiError(413, "too-many", f"there are {len(texts):,} texts; give up to {limits.texts:,}, or use /v1/batch.")
    longest = max(map(len, texts))
    if longest > limits.characters:
        raise ApiError(413, "too-long", f"a text has {longest:,} characters; up to {limits.characters:,} are allowed.")


async def answer_texts(services: Services, served: Served, wish: Any, texts: list[str]) -> list[dict[str, Any]]:
    """One result a text; empty ones get the reason why there is no answer."""
    problems = [why_not_text(text) for text in texts]
    good = [text for text, problem in zip(texts, problems, strict=True) if problem is None]
    found = iter(await services.classify(served, wish, good) if good else [])
    results: list[dict[str, Any]] = []
    for problem in problems:
        if problem is not None:
            results.append({"labels": [], "others": [], "problem": problem})
            continue
        labels, others, p = next(found)
        results.append({"labels": to_labels(served, labels, p), "others": to_labels(served, others, p), "problem": None})
    return results
