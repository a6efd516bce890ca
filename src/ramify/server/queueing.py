"""Documents for the review queue, with what a model says of them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ramify.errors import RamifyError
from ramify.pipeline import Wish
from ramify.server.answers import answer_texts
from ramify.server.errors import ApiError
from ramify.server.logs import tell
from ramify.server.models import Served
from ramify.server.services import Services

SHOWN = 5  # labels that a reviewer sees


async def queue_texts(
    services: Services, served: Served, documents: Sequence[tuple[str, str | None]], by: str
) -> tuple[list[int], int]:
    """Classify texts, each with its source, and queue them; gives their numbers, and how many were known."""
    texts = [text for text, _ in documents]
    results = await answer_texts(services, served, Wish(top=SHOWN), texts)
    if problem := next((result["problem"] for result in results if result["problem"]), None):
        raise ApiError(422, "no-text", f"{problem}; give documents with words in them.")
    rows = [
        (text, result["labels"], result["others"], confidence_of(result), source)
        for (text, source), result in zip(documents, results, strict=True)
    ]
    queued, known = await services.on_reviews(services.require_reviews().queue, served.name, rows, by)
    services.measures.review("queued", len(queued) - known)
    return queued, known


async def queue_unsure(services: Services, served: Served, texts: list[str], results: list[dict[str, Any]], by: str) -> None:
    """Queue the documents whose answers are less sure than the server wants them."""
    least = services.settings.review_below or 0.0
    answered = ((text, result) for text, result in zip(texts, results, strict=True) if result["problem"] is None)
    unsure = [(text, None) for text, result in answered if confidence_of(result) < least]
    if not unsure:
        return
    try:
        await queue_texts(services, served, unsure, by)
    except RamifyError as error:
        tell("not queued", logging.WARNING, documents=len(unsure), problem=str(error))


def confidence_of(result: dict[str, Any]) -> float:
    """The probability of the least sure label; 0 where there is none."""
    return min((label["probability"] for label in result["labels"]), default=0.0)
