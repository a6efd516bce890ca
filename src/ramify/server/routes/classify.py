"""Predict labels and explain them."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from ramify.server.dependencies import DirectRoute, allowed, refusals
from ramify.server.middleware import SHOWN
from ramify.server.predictions import (
    check_explainable,
    check_texts,
    confidence_of,
    explain_text,
    predict_texts,
    queue_in_background,
)
from ramify.server.schemas import ClassifyIn, ClassifyOut, ExplainIn, ExplainOut
from ramify.server.services import Services
from ramify.workflows import PredictOptions

router = APIRouter(prefix="/v1", tags=["predictions"], route_class=DirectRoute)

MOST_LABELS = 2_000  # that are written at a time
LABEL_BYTES = 700  # of memory for a label with its path, until the answer is written


@router.post("/classify", responses=refusals(404, 415), response_model=ClassifyOut)
async def classify(request: Request, asked: ClassifyIn) -> Response:
    """Classify one text or a list of texts."""
    caller, services = allowed(request, "read"), request.app.state.services
    served = services.registry.find(asked.model)
    texts = [asked.text] if asked.text is not None else list(asked.texts or ())
    check_texts(texts, services.settings.limits)
    _note(request, services, texts)
    served.check_labels([*asked.within, *asked.without])
    guarantee = asked.risk, asked.nodes, asked.by_branch
    options = PredictOptions(asked.top, asked.threshold, tuple(asked.within), tuple(asked.without), *guarantee)
    decided = served
    if asked.rule is not None:
        limit = services.settings.limits.seconds
        decided = await services.slow_pool.run(limit, served.with_rule, asked.rule, asked.rule_params)
    request.state.reserve(LABEL_BYTES * len(texts) * min(asked.top, len(served.taxonomy)))
    results = await predict_texts(services, decided, options, texts)
    services.metrics.documents.labels(served.name, "/v1/classify").inc(len(texts))
    least = (services.settings.review_below or 0.0) if asked.queue else 0.0
    answered = ((text, result) for text, result in zip(texts, results, strict=True) if result["problem"] is None)
    if uncertain := [(text, None) for text, result in answered if confidence_of(result) < least]:
        queue_in_background(services, served, uncertain, caller.name)
    return Response(await _to_json(served.name, results), media_type="application/json")


@router.post("/explain", responses=refusals(404, 415), response_model=ExplainOut)
async def explain(request: Request, asked: ExplainIn) -> Response:
    """Explain the labels of a text: words, steps on the path, and the decision rule."""
    allowed(request, "read")
    services = request.app.state.services
    served = services.registry.find(asked.model)
    check_explainable(asked.text, services.settings.limits)
    _note(request, services, [asked.text])
    served.check_labels([*([] if asked.label is None else [asked.label]), *(asked.true or ())])
    seconds = services.settings.limits.seconds
    work = partial(explain_text, served, asked.text, asked.label, asked.true)
    made = await services.explain_pool.run(seconds, lambda: to_json(work()))
    return Response(made, media_type="application/json")


async def _to_json(model: str, results: list[dict[str, Any]]) -> bytes:
    """The answer, written in parts of so many labels: all at once, a large one would keep other requests waiting."""
    parts: list[bytes] = []
    start = n_labels = 0
    for end, result in enumerate(results, start=1):
        n_labels += len(result["labels"]) + len(result["others"])
        if n_labels >= MOST_LABELS or end == len(results):
            parts.append(to_json(results[start:end])[1:-1])
            start, n_labels = end, 0
            if end < len(results):
                await asyncio.sleep(0)  # others come first
    return b'{"model":%b,"results":[%b]}' % (to_json(model), b",".join(parts))


def _note(request: Request, services: Services, texts: list[str]) -> None:
    """Note what the log shows of a request; document text only with --log-text."""
    request.state.documents = len(texts)
    if services.settings.log_text:
        request.state.text = texts[0][:SHOWN]
