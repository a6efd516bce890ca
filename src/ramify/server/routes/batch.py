"""Classify a table while it is uploaded."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ramify.data.columns import Columns
from ramify.errors import RamifyError
from ramify.server.batches import (
    BODY,
    BatchRequest,
    Column,
    TextColumns,
    content_kind,
    predict_lines,
    told_columns,
    without_options,
)
from ramify.server.bounds import Slot
from ramify.server.dependencies import ModelWithRule, Parts, Reader, refusals
from ramify.server.errors import ApiError, defect, gone
from ramify.server.middleware import refusal, send_refusal
from ramify.server.model_registry import ServedModel
from ramify.server.predictions import queue_texts, queue_uncertain
from ramify.server.schemas import LabelName, Probability, Risk
from ramify.server.services import Services
from ramify.server.streams import ByteInput, ByteOutput
from ramify.server.table_encodings import EncodingQuery
from ramify.workflows import Prediction, PredictOptions
from ramify.workflows.predictor import MOST, Predictor

router = APIRouter(prefix="/v1/batch", tags=["predictions"])

STREAM_BYTES = 3 << 26  # of memory for a table that is classified while it comes: lines, texts and answers that wait
SENT = {"csv": "text/csv", "ndjson": "application/x-ndjson"}
Labels = Annotated[list[LabelName], Query(max_length=100)]
PLAIN = {kind: {"schema": {"type": "string"}} for kind in SENT.values()}
MOST_NAMES = 4_000  # bytes of the header that names the text columns
HEADERS = {
    "Ramify-Encoding": {"schema": {"type": "string"}, "description": "The encoding that was told or found."},
    "Ramify-Text": {"schema": {"type": "string"}, "description": "The text columns, percent-encoded, comma-separated."},
}
PREDICTIONS = {"content": PLAIN, "headers": HEADERS, "description": "Predictions, row by row."}


@router.post(
    "", response_class=Response, responses={**refusals(404, 415), 200: PREDICTIONS}, openapi_extra={"requestBody": BODY}
)
async def batch(
    request: Request,
    services: Parts,
    served: ModelWithRule,
    caller: Reader,
    top: Annotated[int, Query(ge=1, le=MOST)] = 1,
    threshold: Annotated[Probability | None, Query()] = None,
    within: Labels = [],  # noqa: B006 - FastAPI copies it
    without: Labels = [],  # noqa: B006
    risk: Annotated[Risk | None, Query()] = None,
    nodes: Annotated[int, Query(ge=1, le=10)] = 1,
    by_branch: Annotated[bool, Query()] = False,
    text: TextColumns = [],  # noqa: B006
    id: Annotated[Column, Query(description="A column to return with each prediction (default: id).")] = None,
    echo: Annotated[bool, Query(description="Return the rows with their predictions, in NDJSON.")] = False,
    paths: Annotated[bool, Query(description="Return labels with their paths, in NDJSON.")] = False,
    queue_below: Annotated[Probability | None, Query(description="Queue documents with a lower confidence for review.")] = None,
    encoding: EncodingQuery = None,
) -> Response:
    """Classify a table row by row; predictions are sent while the table is still uploaded."""
    input_format = "ndjson" if content_kind(request) == "jsonl" else "csv"
    if queue_below is not None:
        services.require_reviews()
        if not caller.may("review"):
            raise ApiError(403, "role", f"{caller.name!r} has the role {caller.role!r}; queueing needs 'review'.")
    served.check_labels([*within, *without])
    options = PredictOptions(top, threshold, tuple(within), tuple(without), risk, nodes, by_branch)
    predictor = await services.slow_pool.run(services.settings.limits.seconds, served.predictor, options)
    like = served.classifier.figures_.get("columns")
    accepted = request.headers.get("accept", "")
    output_format = next((kind for kind, name in SENT.items() if name in accepted), input_format)
    longest = services.settings.limits.characters
    ask = BatchRequest(input_format, output_format, told_columns(text), id, echo, paths, like, longest, encoding)
    request.state.reserve(STREAM_BYTES)
    slot = await services.uploads.enter("other tables are being processed")  # the response frees it
    return _Duplex(services, slot, served, predictor, ask, queue_below, caller.name)


class _Duplex(Response):
    """A response that is sent while the request body is still read."""

    def __init__(
        self,
        services: Services,
        slot: Slot,
        served: ServedModel,
        predictor: Predictor,
        ask: BatchRequest,
        queue_below: float | None,
        by: str,
    ) -> None:
        super().__init__(media_type=SENT[ask.output_format])
        self._services, self._slot, self._served, self._predictor = services, slot, served, predictor
        self._ask, self._is_asked = ask, queue_below is not None
        self._queue_below = queue_below if self._is_asked else services.settings.review_below
        self._caller, self._seconds = by, services.settings.limits.upload_seconds
        self._loop = asyncio.get_running_loop()
        self._documents = 0
        self._layout: list[tuple[bytes, bytes]] = []
        self._has_begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read, classify and send at the same time."""
        source, sink = ByteInput(), ByteOutput(self._services.settings.limits.upload_bytes)
        reading = asyncio.create_task(self._read(receive, source))
        working = asyncio.create_task(self._run(source, sink))
        try:
            await self._send(send, sink, scope["state"])
            await working
        except TimeoutError:  # whoever reads nothing for so long has gone
            scope["state"]["code"] = "unread"
        except asyncio.CancelledError:
            crowded_out = self._slot.refusal()
            if crowded_out is None:  # the server has waited long enough, and stops
                scope["state"]["code"] = "stopped"
                await self._break_off(send, ApiError(503, "stopped", "the server stops; send the rest again."))
                return
            scope["state"]["code"] = crowded_out.code
            if not self._has_begun:  # otherwise the client reads nothing, or is told by the missing end
                await send_refusal(send, crowded_out)
        finally:
            scope["state"]["documents"] = self._documents
            source.end(gone())  # a new error each time: it keeps the frames through which it went
            reading.cancel()
            sink.close()
            self._services.uploads.leave(self._slot)

    async def _read(self, receive: Receive, source: ByteInput) -> None:
        """Read the body until it ends, breaks off, or no data arrives for too long."""
        try:
            while True:
                async with asyncio.timeout(self._seconds):
                    message = await receive()
                if message["type"] == "http.disconnect":
                    source.end(gone())  # a new error each time: it keeps the frames through which it went
                    return
                if message.get("body"):
                    await source.put(message["body"])
                if not message.get("more_body"):
                    source.end()
                    return
        except TimeoutError:
            source.end(ApiError(504, "too-slow", f"no data arrived for {self._seconds:g} seconds."))
        except RamifyError as error:
            source.end(error)

    async def _run(self, source: ByteInput, sink: ByteOutput) -> None:
        """Classify in a thread; whatever happens there ends the answer."""
        threads = self._services.settings.threads
        failure: ApiError | None = defect()
        try:
            request = (source, self._predictor, self._ask, threads, sink.put, self)
            await self._services.table_pool.run(None, predict_lines, *request)
            failure = None
        except ApiError as error:
            failure = error
        except RamifyError as error:
            failure = ApiError(422, "table", without_options(str(error)))
        finally:
            sink.end(failure)

    async def _send(self, send: Send, sink: ByteOutput, state: dict[str, Any]) -> None:
        """Send the predictions; an error before anything was sent is a refusal, and later the last line."""
        while (piece := await sink.take()) is not None:
            if not self._has_begun:
                kind = SENT[self._ask.output_format].encode()
                headers = [(b"content-type", kind), (b"cache-control", b"no-store"), *self._layout]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                self._has_begun = True
            async with asyncio.timeout(self._seconds):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        failure = sink.failure
        state["code"] = None if failure is None else failure.code
        if failure is None and self._has_begun:
            await send({"type": "http.response.body", "body": b""})
        else:
            await self._break_off(send, failure or ApiError(422, "table", "there is no row in the table."))

    async def _break_off(self, send: Send, failure: ApiError) -> None:
        """End with an error, or with an error line; CSV is cut off, so that nobody takes it for complete."""
        if not self._has_begun:
            await send_refusal(send, failure)
        elif self._ask.output_format == "ndjson":
            await send({"type": "http.response.body", "body": bytes(refusal(failure).body) + b"\n"})

    def note_layout(self, text: Columns, encoding: str) -> None:
        """Called in a thread before anything is sent: tell it in headers."""
        self._layout = [(b"ramify-encoding", encoding.encode())]
        names = ",".join(quote(name, safe="") for name in text.texts).encode()
        if len(names) <= MOST_NAMES:
            self._layout.append((b"ramify-text", names))

    def note_batch(self, predictions: list[Prediction], text: Columns) -> None:
        """Called in a thread for each batch: count it and queue uncertain predictions."""
        self._documents += len(predictions)
        self._services.metrics.documents.labels(self._served.name, "/v1/batch").inc(len(predictions))
        least, uncertain = self._queue_below or 0.0, []
        for each in predictions:
            if each.problem is None and min((p for _, p in each.labels), default=0.0) < least:
                uncertain.append((text.read_text(each.row), f"line {each.line}"))
        if uncertain:  # a failure to queue is an error of this request if it asked for that
            queue: Any = queue_texts if self._is_asked else queue_uncertain
            work = queue(self._services, self._served, uncertain, self._caller)
            asyncio.run_coroutine_threadsafe(work, self._loop).result()
