"""Tables classified while they come."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ramify.errors import RamifyError
from ramify.server.batches import BODY, Ask, Column, classify_lines, content_kind, without_options
from ramify.server.dependencies import AskedModel, Parts, Reader, refusals
from ramify.server.errors import ApiError
from ramify.server.middleware import error_body, send_refusal, tell
from ramify.server.model_registry import Served
from ramify.server.predictions import queue_texts
from ramify.server.schemas import LabelName, Probability, Risk
from ramify.server.services import Services
from ramify.server.streams import Inlet, Outlet
from ramify.workflows import Prediction, PredictOptions
from ramify.workflows.predictor import MOST, Predictor

router = APIRouter(prefix="/v1/batch", tags=["answers"])

SENT = {"csv": "text/csv", "ndjson": "application/x-ndjson"}
Labels = Annotated[list[LabelName], Query(max_length=100)]
ANSWER = {"content": {kind: {"schema": {"type": "string"}} for kind in SENT.values()}, "description": "Answers, row by row."}


@router.post(
    "",
    response_class=Response,
    responses={**refusals(404, 415), 200: ANSWER},
    openapi_extra={"requestBody": BODY},
)
async def batch(
    request: Request,
    services: Parts,
    served: AskedModel,
    caller: Reader,
    top: Annotated[int, Query(ge=1, le=MOST)] = 1,
    threshold: Annotated[Probability | None, Query()] = None,
    within: Labels = [],  # noqa: B006 - FastAPI copies it
    without: Labels = [],  # noqa: B006
    risk: Annotated[Risk | None, Query()] = None,
    nodes: Annotated[int, Query(ge=1, le=10)] = 1,
    by_branch: Annotated[bool, Query()] = False,
    text: Annotated[Column, Query(description="The column with the text; found when left out.")] = None,
    id: Annotated[Column, Query(description="A column that goes back with each answer; 'id' when left out.")] = None,
    echo: Annotated[bool, Query(description="Whether rows go back with their answers, in NDJSON.")] = False,
    paths: Annotated[bool, Query(description="Whether labels come with the titles of their paths, in NDJSON.")] = False,
    queue_below: Annotated[
        Probability | None, Query(description="Queue documents for review whose answers are less sure than this.")
    ] = None,
) -> Response:
    """Classify a table row by row; answers are sent while the table still comes."""
    comes = "ndjson" if content_kind(request) == "jsonl" else "csv"
    if queue_below is not None:
        services.require_reviews()
        if not caller.may("review"):
            raise ApiError(403, "role", f"{caller.name!r} has the role {caller.role!r}; queueing needs 'review'.")
    served.check_labels([*within, *without])
    options = PredictOptions(top, threshold, tuple(within), tuple(without), risk, nodes, by_branch)
    answering = await services.heavy.run(services.settings.limits.seconds, served.answering, options)
    like = served.classifier.figures_.get("columns", {}).get("text")
    ask = Ask(comes, _goes(request, comes), text, id, echo, paths, like, services.settings.limits.characters)
    services.uploads.enter("other tables are being worked on")  # the answer leaves
    return _Duplex(services, served, answering, ask, queue_below, caller.name)


def _goes(request: Request, comes: str) -> str:
    """The kind of answer that is asked for; that of the body where none is."""
    accepted = request.headers.get("accept", "")
    return next((kind for kind, name in SENT.items() if name in accepted), comes)


class _Duplex(Response):
    """An answer that is sent while the body is still read; nothing else reads the body meanwhile."""

    def __init__(
        self, services: Services, served: Served, answering: Predictor, ask: Ask, queue_below: float | None, caller: str
    ) -> None:
        super().__init__(media_type=SENT[ask.goes])
        self._services, self._served, self._answering = services, served, answering
        self._ask = replace(ask, seen=self._note)
        self._is_asked = queue_below is not None  # otherwise what cannot be queued is nobody's trouble here
        self._queue_below = queue_below if self._is_asked else services.settings.review_below
        self._caller, self._seconds = caller, services.settings.limits.upload_seconds
        self._loop = asyncio.get_running_loop()
        self._documents = 0
        self._has_begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read, classify and send at the same time."""
        inlet, outlet = Inlet(), Outlet(self._services.settings.limits.upload_bytes)
        reading = asyncio.create_task(self._read(receive, inlet))
        working = asyncio.create_task(self._run(inlet, outlet))
        try:
            await self._send(send, outlet, scope["state"])
            await working
        except TimeoutError:  # whoever reads nothing for so long has gone
            scope["state"]["code"] = "unread"
        except asyncio.CancelledError:  # the server has waited long enough, and stops
            scope["state"]["code"] = "stopped"
            await self._break_off(send, ApiError(503, "stopped", "the server stops; send the rest again."))
        finally:
            scope["state"]["documents"] = self._documents
            inlet.end(GONE)
            reading.cancel()
            outlet.close()
            self._services.uploads.leave()

    async def _read(self, receive: Receive, inlet: Inlet) -> None:
        """Take what comes, until it ends, breaks off, or nothing comes for too long."""
        try:
            while True:
                async with asyncio.timeout(self._seconds):
                    message = await receive()
                if message["type"] == "http.disconnect":
                    inlet.end(GONE)
                    return
                if message.get("body"):
                    await inlet.put(message["body"])
                if not message.get("more_body"):
                    inlet.end()
                    return
        except TimeoutError:
            inlet.end(ApiError(504, "too-slow", f"nothing more came for {self._seconds:g} seconds."))
        except RamifyError as error:
            inlet.end(error)

    async def _run(self, inlet: Inlet, outlet: Outlet) -> None:
        """Classify in a thread; whatever happens there ends the answer."""
        threads = self._services.settings.threads
        failure: ApiError | None = ApiError(500, "defect", "something went wrong inside the server; its log says more.")
        try:
            await self._services.tables.run(None, classify_lines, inlet, self._answering, self._ask, threads, outlet.put)
            failure = None
        except ApiError as error:
            failure = error
        except RamifyError as error:
            failure = ApiError(422, "table", without_options(str(error)))
        finally:
            outlet.end(failure)

    async def _send(self, send: Send, outlet: Outlet, state: dict[str, Any]) -> None:
        """Send what comes out; what goes wrong before anything was sent is a refusal, and later the last line."""
        while (piece := await outlet.take()) is not None:
            if not self._has_begun:
                headers = [(b"content-type", SENT[self._ask.goes].encode()), (b"cache-control", b"no-store")]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                self._has_begun = True
            async with asyncio.timeout(self._seconds):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        failure = outlet.failure
        state["code"] = None if failure is None else failure.code
        if failure is None and self._has_begun:
            await send({"type": "http.response.body", "body": b""})
        else:
            await self._break_off(send, failure or ApiError(422, "table", "there is no row in the table."))

    async def _break_off(self, send: Send, failure: ApiError) -> None:
        """End with a refusal, or with a last line; CSV is left without its end, so that nobody takes it for complete."""
        if not self._has_begun:
            await send_refusal(send, failure)
        elif self._ask.goes == "ndjson":
            await send({"type": "http.response.body", "body": error_body(failure.code, str(failure)) + b"\n"})

    def _note(self, answers: list[Prediction], text: str) -> None:
        """In a thread, of every batch: count it, and queue what is not sure enough."""
        self._documents += len(answers)
        self._services.measures.documents(self._served.name, "/v1/batch", len(answers))
        least = self._queue_below
        if least is None:
            return
        answered = (answer for answer in answers if answer.problem is None)
        unsure = [(answer.row[text], f"line {answer.line}") for answer in answered if _sureness(answer) < least]
        if unsure:
            asyncio.run_coroutine_threadsafe(self._queue(unsure), self._loop).result()

    async def _queue(self, unsure: Sequence[tuple[str, str]]) -> None:
        try:
            await queue_texts(self._services, self._served, unsure, self._caller)
        except RamifyError as error:
            if self._is_asked:
                raise
            tell("not queued", logging.WARNING, documents=len(unsure), problem=str(error))


GONE = ApiError(499, "gone", "the client has gone.")


def _sureness(answer: Prediction) -> float:
    return min((p for _, p in answer.labels), default=0.0)
