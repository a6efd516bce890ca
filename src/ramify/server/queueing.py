"""Documents for the review queue, with what a model says of them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ramify.errors import RamifyError
from ramify.pipeline import Wish
from ramify.server.answers import answer_texts, confidence_of
from ramify.server.logs import tell
from ramify.server.services import Services

SHOWN = 5  # labels that a reviewer sees


async def queue_documents(
    services: Services, model: str, documents: Sequence[tuple[str, dict[str, Any], str | None]], by: str
) -> tuple[list[int], int]:
    """Queue texts with their results and sources; gives their numbers, and how many were known."""
    rows = [
        (text, result["labels"], result["others"], confidence_of(result["labels"]), source)
        for text, result, source in documents
        if result.get("problem") is None
    ]
    queued, known = await services.on_reviews(services.require_reviews().queue, model, rows, by)
    services.measures.review("queued", len(queued) - known)
    return queued, known


async def queue_unsure(services: Services, model: str, texts: list[str], results: list[dict[str, Any]], by: str) -> None:
    """Queue the documents whose answers are less sure than the server wants them."""
    least = services.settings.review_below or 0.0
    chosen = [
        (text, result, None)
        for text, result in zip(texts, results, strict=True)
        if result["problem"] is None and confidence_of(result["labels"]) < least
    ]
    if not chosen:
        return
    try:
        again = await answer_texts(services, services.shelf.find(model), Wish(top=SHOWN), [text for text, _, _ in chosen])
        rows = [(text, result, None) for (text, _, _), result in zip(chosen, again, strict=True)]
        await queue_documents(services, model, rows, by)
    except RamifyError as error:
        tell("not queued", logging.WARNING, documents=len(chosen), problem=str(error))
