"""The review queue: documents for people to check, and their decisions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from ramify.server.dependencies import DirectRoute, Parts, Reviewer, SmallRoute, allowed, refusals
from ramify.server.errors import ApiError
from ramify.server.predictions import check_texts, queue_texts
from ramify.server.reviews import Review, Summary, Tally, export_rows, training_rows
from ramify.server.schemas import DecisionIn, QueueIn, QueueOut, ReviewOut, ReviewPage
from ramify.server.services import Services

router = APIRouter(prefix="/v1/reviews", tags=["reviews"], route_class=SmallRoute)

MOST = (1 << 63) - 1
PIECE = 1 << 18  # characters of an export at a time
EXPORT_BYTES = 1 << 24  # of memory for an export: a piece, and the documents that it is made of
ModelName = Annotated[str | None, Query(max_length=64, description="Only documents of this model.")]
Number = Annotated[int, Path(ge=1, le=MOST, description="The number of a document.")]
KINDS = {"csv": "text/csv", "jsonl": "application/x-ndjson"}


async def queue(request: Request, asked: QueueIn) -> Response:
    """Queue documents; a text is queued once per model."""
    caller, services = allowed(request, "review"), request.app.state.services
    services.require_reviews()
    served = services.registry.find(asked.model)
    check_texts([document.text for document in asked.documents], services.settings.limits)
    documents = [(document.text, document.source) for document in asked.documents]
    queued, known = await queue_texts(services, served, documents, caller.name)
    return Response(to_json({"queued": queued, "known": known}), 201, media_type="application/json")


QUEUE: dict[str, Any] = {"status_code": 201, "responses": refusals(404, 415, 507), "response_model": QueueOut}
router.add_api_route("", queue, methods=["POST"], route_class_override=DirectRoute, **QUEUE)


@router.get("", responses=refusals(404), response_model=ReviewPage)
async def list_reviews(
    services: Parts,
    caller: Reviewer,
    status: Literal["open", "done", "all"] = "open",
    model: ModelName = None,
    order: Literal["uncertain", "recent"] = "uncertain",
    offset: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:
    """Some documents of the queue, least certain first; fewer than asked for if they are long."""
    store = services.require_reviews()

    def made() -> bytes:
        found, total = store.page(status, model, order, offset, limit)
        return to_json({"documents": found, "total": total, "open": store.count("open", model)})

    return Response(await services.on_reviews(made), media_type="application/json")


@router.get("/summary", responses=refusals(404))
async def summary(services: Parts, caller: Reviewer, model: ModelName = None) -> Summary:
    """How often reviewers agree with the model and with each other."""
    store = services.require_reviews()
    taxonomies = [served.taxonomy for served in services.registry if model in (None, served.name)]

    def path_of(label: str) -> list[str] | None:
        return next((list(known.path_of(known.index(label))) for known in taxonomies if label in known), None)

    tally, reviews, seconds = Tally(path_of), store.all(model=model), services.settings.limits.seconds
    try:
        async with asyncio.timeout(seconds), services.summing:
            while await services.on_reviews(tally.add_some, reviews):
                pass  # decisions of others come in between
    except TimeoutError:
        advice = "name a model, or use 'ramify reviews summary'"
        raise ApiError(504, "too-slow", f"the summary took longer than {seconds:g} seconds; {advice}.") from None
    return tally.summary()


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={**refusals(404), 200: {"content": {kind: {"schema": {"type": "string"}} for kind in KINDS.values()}}},
)
async def export(
    request: Request,
    services: Parts,
    caller: Reviewer,
    format: Literal["csv", "jsonl"] = "csv",
    model: ModelName = None,
    escape_formulas: Annotated[bool, Query(description="For a spreadsheet: cells of CSV that are no formulas.")] = False,
) -> StreamingResponse:
    """Decided documents as rows for 'ramify train --add'."""
    store = services.require_reviews()
    request.state.reserve(EXPORT_BYTES)
    lines = export_rows(training_rows(store.all("done", model)), format, escape_formulas)
    first = await services.on_reviews(_some, lines)  # an error here is a refusal

    async def pieces() -> AsyncIterator[str]:
        piece = first
        while piece:
            yield piece
            piece = await services.on_reviews(_some, lines)

    headers = {"content-disposition": f'attachment; filename="reviews.{format}"'}
    return StreamingResponse(pieces(), media_type=KINDS[format], headers=headers)


def _some(lines: Iterator[str]) -> str:
    """The next lines, of about the size of a piece; empty at the end."""
    found, size = [], 0
    for line in lines:
        found.append(line)
        size += len(line)
        if size >= PIECE:
            break
    return "".join(found)


@router.get("/{number}", responses=refusals(404), response_model=ReviewOut)
async def get_review(services: Parts, caller: Reviewer, number: Number) -> Review:
    """One document with all decisions."""
    review = await services.on_reviews(services.require_reviews().get, number)
    if review is None:
        raise ApiError(404, "unknown-review", f"there is no document number {number} in the queue.")
    return review


@router.post("/{number}/decisions", status_code=201, responses=refusals(404, 409), response_model=ReviewOut)
async def decide(services: Parts, caller: Reviewer, number: Number, asked: DecisionIn) -> Review:
    """Accept, correct or reject; a later decision of the same reviewer replaces an earlier one."""
    labels = _labels_for(services, await get_review(services, caller, number), asked)
    if asked.reviewer is not None and services.keys is not None:
        raise ApiError(409, "reviewer", "the key says who decides; leave `reviewer` out.")
    decision = (number, asked.reviewer or caller.name, asked.action, labels, asked.comment)
    decided = await services.on_reviews(services.require_reviews().decide, *decision)
    services.metrics.reviews.labels(asked.action).inc()
    return decided or await get_review(services, caller, number)  # which says that there is no such document


def _labels_for(services: Services, review: Review, asked: DecisionIn) -> list[str]:
    """The right labels according to a decision, in the form of the model."""
    if asked.action == "reject":
        return []
    if asked.action == "accept":
        if not review.labels:
            raise ApiError(409, "no-label", "the model gave no label that could be accepted; correct or reject it.")
        return [label["label"] for label in review.labels]
    if not asked.labels:
        raise ApiError(422, "no-labels", "a correction needs the right labels; give one at least.")
    served = services.registry.find(review.model)
    return list(dict.fromkeys(served.label_of(served.find(label)) for label in asked.labels))
