"""Evaluate a model on a labelled table."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request

from ramify.data import read_corpus
from ramify.data.columns import split_names
from ramify.data.tables import find_format
from ramify.errors import RamifyError
from ramify.metrics.evaluation import MAX_DENSE
from ramify.server.batches import (
    BODY,
    SEPARATORS,
    LabelColumns,
    TextColumns,
    check_columns,
    content_kind,
    told_columns,
    without_options,
)
from ramify.server.dependencies import ModelWithRule, NodeNumbers, Parts, parse_object, refusals
from ramify.server.errors import ApiError, refuse_packed
from ramify.server.model_registry import ServedModel
from ramify.server.schemas import EvaluateOut
from ramify.server.table_encodings import EncodingQuery
from ramify.workflows.evaluation import PredictionError, evaluate_with_errors

router = APIRouter(prefix="/v1/evaluate", tags=["evaluation"])

PIECE = 1 << 20  # bytes that are written at a time
# memory for each byte, row, pair of row and node with a probability, and mark between cells, as measured
BYTE_COST, ROW_BYTES, PAIR_BYTES = 4, 1_000, 40
CELL_BYTES = {"csv": 64, "jsonl": 100}
LIST_BYTES = 80  # for each opening bracket
OBJECT_BYTES = 250  # for each opening brace
WHOLE_COST = 6  # for each byte of a JSON list, which is read at once
SPACE = b"\xef\xbb\xbf \t\r\n"
SHOWN = 2_000  # characters of a wrongly classified document


@router.post("", responses=refusals(404, 415), openapi_extra={"requestBody": BODY})
async def evaluate(
    request: Request,
    services: Parts,
    served: ModelWithRule,
    text: TextColumns = [],  # noqa: B006 - FastAPI copies it
    label: LabelColumns = [],  # noqa: B006
    label_separator: Annotated[str | None, Query(min_length=1, max_length=10)] = None,
    hierarchy: Literal["original", "modified"] = "original",
    costs: Annotated[
        NodeNumbers, Query(description="Costs of the H-loss by node name, as a JSON object; other nodes have 1.")
    ] = None,
    examples: Annotated[int, Query(ge=0, le=200, description="How many wrong predictions to show.")] = 20,
    encoding: EncodingQuery = None,
) -> EvaluateOut:
    """Compare predictions with the labels of a table; columns are found if not given."""
    kind, counted = content_kind(request), parse_object("costs", costs) or None
    slot = await services.uploads.enter("other tables are being processed")
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"table.{kind}"
            seconds = services.settings.limits.upload_seconds
            await _save_body(request, path, kind, seconds, len(served.taxonomy))
            columns = {"text": told_columns(text), "label": told_columns(label), "label_separator": label_separator}
            columns["encoding"] = encoding
            made = await services.table_pool.run(seconds, _evaluate, served, path, columns, hierarchy, examples, counted)
            return EvaluateOut(**made)
    except asyncio.CancelledError:
        if crowded_out := slot.refusal():
            raise crowded_out from None
        raise
    finally:
        services.uploads.leave(slot)


async def _save_body(request: Request, path: Path, kind: str, seconds: float, nodes: int) -> None:
    """Write the body to a file, and reserve the memory that it will need; refuse compressed data, which may expand."""
    held, rows, is_list = bytearray(), 0, False
    stream = aiter(request.stream())
    with open(path, "wb") as file:
        while True:
            try:
                async with asyncio.timeout(seconds):
                    piece = await anext(stream)
            except TimeoutError:
                raise ApiError(504, "too-slow", f"no data arrived for {seconds:g} seconds.") from None
            except StopAsyncIteration:
                break
            is_list = is_list or (kind == "jsonl" and not rows and piece.lstrip(SPACE).startswith(b"["))
            lines, before = count_rows(piece, kind), min(rows * nodes, MAX_DENSE)
            rows += lines
            pairs = min(rows * nodes, MAX_DENSE) - before
            whole = WHOLE_COST * len(piece) if is_list else 0
            request.state.reserve(parsed_bytes(piece, kind) + whole + ROW_BYTES * lines + PAIR_BYTES * pairs)
            held += piece
            if len(held) >= PIECE:
                await asyncio.to_thread(file.write, bytes(held))
                held.clear()
        file.write(held)
    with open(path, "rb") as file:
        head = file.read(PIECE)
    refuse_packed(head[:4])
    if kind != "jsonl":
        check_columns(head.lstrip().splitlines()[0] if head.strip() else b"")


def count_rows(piece: bytes, kind: str) -> int:
    """At most so many rows begin in a piece of a table: lines, however they end, or objects.

    >>> count_rows(b"a,b\\r\\nc,d\\re,f\\n", "csv"), count_rows(b'[{"a": 1}, {"a": 2}]', "jsonl")
    (3, 2)
    """
    lines = piece.count(b"\n") + piece.count(b"\r") - piece.count(b"\r\n")
    return lines if kind != "jsonl" else max(lines, piece.count(b"{"))


def parsed_bytes(piece: bytes, kind: str) -> int:
    """The memory for the cells of a piece of a table; marks in its texts count as if they were between cells."""
    if kind != "jsonl":
        return BYTE_COST * len(piece) + CELL_BYTES["csv"] * sum(piece.count(mark) for mark in SEPARATORS)
    inner = LIST_BYTES * piece.count(b"[") + OBJECT_BYTES * piece.count(b"{")
    return BYTE_COST * len(piece) + CELL_BYTES["jsonl"] * piece.count(b",") + inner


def _evaluate(
    served: ServedModel, path: Path, columns: dict[str, Any], hierarchy: str, examples: int, costs: dict[str, float] | None
) -> dict[str, Any]:
    classifier = served.classifier
    try:
        found = classifier.figures_.get("columns", {})
        columns["label_separator"] = columns["label_separator"] or found.get("label_separator")
        columns["encoding"] = find_format(path, columns["encoding"]).encoding
        corpus = read_corpus(path, **columns, like=found, is_label=served.taxonomy.__contains__)
        report, errors = evaluate_with_errors(classifier, corpus.labelled(), hierarchy, examples, costs)
    except RamifyError as error:
        raise ApiError(422, "table", without_options(str(error).replace(str(path), "the table"))) from None
    return {
        "model": served.name,
        "text": split_names(corpus.found["text"], [corpus.found["text"]], "text"),
        "label": corpus.found["label"],
        "encoding": columns["encoding"],
        "documents": report.documents,
        "left_out": len(corpus) - report.documents + len(corpus.bad_rows),
        "report": report.as_dict(),
        "errors": [_to_schema(served, error) for error in errors],
    }


def _to_schema(served: ServedModel, error: PredictionError) -> dict[str, Any]:
    nodes = zip(error.predicted, error.probabilities or [0.0] * len(error.predicted), strict=True)
    return {
        "line": error.line,
        "text": str(error.document or "")[:SHOWN],
        "true": [served.label_of(node) for node in error.true],
        "predicted": [{"label": served.label_of(node), "probability": p} for node, p in nodes],
        "distance": error.distance,
    }
