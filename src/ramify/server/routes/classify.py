"""Labels for texts, and the reasons for them."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request

from ramify.datasets.documents import why_not_text
from ramify.pipeline import Wish
from ramify.server.answers import answer_texts, check_texts
from ramify.server.door import Parts, Reader, refusals
from ramify.server.errors import ApiError
from ramify.server.explanations import explain_text
from ramify.server.logs import SHOWN
from ramify.server.queueing import queue_unsure
from ramify.server.schemas import ClassifyIn, ClassifyOut, ExplainIn, ExplainOut
from ramify.server.services import Services

router = APIRouter(prefix="/v1", tags=["answers"])
_under_way: set[asyncio.Task[Any]] = set()


@router.post("/classify", responses=refusals(404))
async def classify(request: Request, services: Parts, caller: Reader, asked: ClassifyIn) -> ClassifyOut:
    """Classify one text, or several."""
    served = services.shelf.find(asked.model)
    texts = [asked.text] if asked.text is not None else list(asked.texts or ())
    check_texts(texts, services.settings.limits)
    _note(request, services, texts)
    wish = Wish(asked.top, asked.threshold, tuple(asked.within), tuple(asked.without))
    results = await answer_texts(services, served, wish, texts)
    services.measures.documents(served.name, "/v1/classify", len(texts))
    if services.settings.review_below is not None:
        task = asyncio.create_task(queue_unsure(services, served.name, texts, results, caller.name))
        _under_way.add(task)  # kept until it is done, as the event loop does not
        task.add_done_callback(_under_way.discard)
    return ClassifyOut(model=served.name, results=results)  # type: ignore[arg-type]


@router.post("/explain", responses=refusals(404))
async def explain(request: Request, services: Parts, caller: Reader, asked: ExplainIn) -> ExplainOut:
    """Say why a text gets its labels: words, steps on the path, and what the decision rule did."""
    served = services.shelf.find(asked.model)
    check_texts([asked.text], services.settings.limits)
    if problem := why_not_text(asked.text):
        raise ApiError(422, "no-text", f"{problem}; give some words to classify.")
    _note(request, services, [asked.text])
    made = await services.heavy.run(services.settings.limits.seconds, explain_text, served, asked.text, asked.label, asked.true)
    return ExplainOut(**made)


def _note(request: Request, services: Services, texts: list[str]) -> None:
    """What the log is told of a request; words of documents only where that is wanted."""
    request.state.documents = len(texts)
    if services.settings.log_text:
        request.state.text = texts[0][:SHOWN]
