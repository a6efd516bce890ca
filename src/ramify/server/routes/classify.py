"""Labels for texts, and the reasons for them."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from ramify.server.dependencies import DirectRoute, allowed, refusals
from ramify.server.middleware import SHOWN
from ramify.server.predictions import answer_texts, check_texts, explain_text, queue_unsure
from ramify.server.schemas import ClassifyIn, ClassifyOut, ExplainIn, ExplainOut
from ramify.server.services import Services
from ramify.workflows import PredictOptions

router = APIRouter(prefix="/v1", tags=["answers"], route_class=DirectRoute)
_under_way: set[asyncio.Task[Any]] = set()


@router.post("/classify", responses=refusals(404, 415), response_model=ClassifyOut)
async def classify(request: Request, asked: ClassifyIn) -> Response:
    """Classify one text, or several."""
    caller, services = allowed(request, "read"), request.app.state.services
    served = services.shelf.find(asked.model)
    texts = [asked.text] if asked.text is not None else list(asked.texts or ())
    check_texts(texts, services.settings.limits)
    _note(request, services, texts)
    served.check_labels([*asked.within, *asked.without])
    promise = asked.risk, asked.nodes, asked.by_branch
    options = PredictOptions(asked.top, asked.threshold, tuple(asked.within), tuple(asked.without), *promise)
    results = await answer_texts(services, served, options, texts)
    services.measures.documents(served.name, "/v1/classify", len(texts))
    if services.settings.review_below is not None and asked.queue:
        task = asyncio.create_task(queue_unsure(services, served, texts, results, caller.name))
        _under_way.add(task)  # kept until it is done, as the event loop does not
        task.add_done_callback(_under_way.discard)
    return Response(to_json({"model": served.name, "results": results}), media_type="application/json")


@router.post("/explain", responses=refusals(404, 415), response_model=ExplainOut)
async def explain(request: Request, asked: ExplainIn) -> Response:
    """Say why a text gets its labels: words, steps on the path, and what the decision rule did."""
    allowed(request, "read")
    services = request.app.state.services
    served = services.shelf.find(asked.model)
    check_texts([asked.text], services.settings.limits)
    _note(request, services, [asked.text])
    served.check_labels([*([] if asked.label is None else [asked.label]), *(asked.true or ())])
    seconds = services.settings.limits.seconds

    def work() -> bytes:
        return to_json(explain_text(served, asked.text, asked.label, asked.true))

    return Response(await services.heavy.run(seconds, work), media_type="application/json")


def _note(request: Request, services: Services, texts: list[str]) -> None:
    """What the log is told of a request; words of documents only where that is wanted."""
    request.state.documents = len(texts)
    if services.settings.log_text:
        request.state.text = texts[0][:SHOWN]
