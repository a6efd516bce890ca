"""Look at a table before it is used: a preview, and a spreadsheet as CSV."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from ramify.errors import RamifyError
from ramify.server import spreadsheets
from ramify.server.batches import BINARY, BODY, content_kind, without_options
from ramify.server.bounds import CURRENT
from ramify.server.dependencies import Parts, Reader, RequestedModel, refusals
from ramify.server.errors import ApiError
from ramify.server.previews import PreviewRequest, preview_table
from ramify.server.schemas import TablePreview
from ramify.server.table_encodings import EncodingQuery

router = APIRouter(prefix="/v1/tables", tags=["tables"])

PREVIEW_BYTES = 1 << 20
STREAM_BYTES = 1 << 20  # of memory while a sheet is sent
SHEET_TYPES = (
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.oasis.opendocument.spreadsheet",
    "application/vnd.ms-excel",
    "application/octet-stream",
)
SHEET: dict[str, Any] = {"required": True, "content": dict.fromkeys(SHEET_TYPES, BINARY)}
AS_CSV: dict[str, Any] = {"content": {"text/csv": {"schema": {"type": "string"}}}, "description": "The sheet, in UTF-8."}


@router.post("/preview", responses=refusals(404, 415), openapi_extra={"requestBody": BODY})
async def preview(
    request: Request,
    services: Parts,
    served: RequestedModel,
    encoding: EncodingQuery = None,
    cut: Annotated[bool, Query(description="The body is the beginning of a table that goes on.")] = False,
) -> TablePreview:
    """The encoding, columns and first rows of a table, and the columns that the model would read."""
    kind = content_kind(request)
    content = await _body(request, PREVIEW_BYTES, "send the beginning of the table, with cut=true")
    try:
        ask = PreviewRequest(content, kind, cut, encoding)
        return await services.slow_pool.run(services.settings.limits.seconds, preview_table, served, ask)
    except ApiError:
        raise
    except RamifyError as error:
        raise ApiError(422, "table", without_options(str(error))) from None


@router.post("/csv", response_class=Response, responses={**refusals(415), 200: AS_CSV}, openapi_extra={"requestBody": SHEET})
async def convert(
    request: Request,
    services: Parts,
    caller: Reader,
    sheet: Annotated[
        str | None, Query(min_length=1, max_length=200, description="The only one with cells if left out.")
    ] = None,
) -> Response:
    """A sheet of a spreadsheet (.xlsx, .xls, .ods) as CSV."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in SHEET_TYPES:
        raise ApiError(415, "content-type", f"the content type is {given[:80]!r}; send {', '.join(SHEET_TYPES)}.")
    slot = await services.uploads.enter("other tables are being processed")
    try:
        request.state.reserve(spreadsheets.LIMITS.megabytes << 20)
        content = await _body(request, spreadsheets.MOST_BYTES, "save the sheet as CSV")
        file = await services.table_pool.run(services.settings.limits.upload_seconds, _as_csv, services, content, sheet)
    except asyncio.CancelledError:
        if crowded_out := slot.refusal():
            raise crowded_out from None
        raise
    finally:
        services.uploads.leave(slot)
    if (call := CURRENT.get()) is not None:
        call.reserve_response(STREAM_BYTES)  # the reader has ended
    return StreamingResponse(spreadsheets.pieces_of(file), media_type="text/csv", headers={"cache-control": "no-store"})


def _as_csv(services: Any, content: bytes, sheet: str | None) -> Any:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the response closes it
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table"
            path.write_bytes(content)
            spreadsheets.write_sheet(path, sheet, file, services.settings.limits.upload_bytes)
    except ApiError:
        file.close()
        raise
    except RamifyError as error:
        file.close()
        said = str(error).replace(str(path), "the table")
        raise ApiError(422, "table", without_options(said)) from None
    return file


async def _body(request: Request, most: int, advice: str) -> bytes:
    """The whole body, up to a limit."""
    held, seconds = bytearray(), request.app.state.services.settings.limits.upload_seconds
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                held += piece
                if len(held) > most:
                    raise ApiError(413, "too-large", f"the body has more than {most:,} bytes; {advice}.")
    except TimeoutError:
        raise ApiError(504, "too-slow", f"the body did not arrive in {seconds:g} seconds.") from None
    return bytes(held)
