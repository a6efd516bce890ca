"""Evaluate a model on a labelled table."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request

from ramify.data import read_corpus
from ramify.errors import RamifyError
from ramify.metrics.evaluation import MAX_DENSE
from ramify.server.batches import BODY, Column, content_kind, without_options
from ramify.server.dependencies import ModelWithRule, NodeNumbers, Parts, parse_object, refusals
from ramify.server.errors import ApiError, refuse_packed
from ramify.server.model_registry import ServedModel
from ramify.server.schemas import EvaluateOut
from ramify.workflows.evaluation import PredictionError, evaluate_with_errors

router = APIRouter(prefix="/v1/evaluate", tags=["evaluation"])

PIECE = 1 << 20  # bytes that are written at a time
# memory for each byte, row, and pair of row and node with a probability, as measured
BYTE_COST, ROW_BYTES, PAIR_BYTES = 4, 1_000, 40
SHOWN = 2_000  # characters of a wrongly classified document


@router.post("", responses=refusals(404, 415), openapi_extra={"requestBody": BODY})
async def evaluate(
    request: Request,
    services: Parts,
    served: ModelWithRule,
    text: Column = None,
    label: Column = None,
    label_separator: Annotated[str | None, Query(min_length=1, max_length=10)] = None,
    hierarchy: Literal["original", "modified"] = "original",
    costs: Annotated[
        NodeNumbers, Query(description="Costs of the H-loss by node name, as a JSON object; other nodes have 1.")
    ] = None,
    examples: Annotated[int, Query(ge=0, le=200, description="How many wrong predictions to show.")] = 20,
) -> EvaluateOut:
    """Compare predictions with the labels of a table; columns are found if not given."""
    kind, counted = content_kind(request), parse_object("costs", costs) or None
    services.uploads.enter("other tables are being processed")
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"table.{kind}"
            seconds = services.settings.limits.upload_seconds
            await _save_body(request, path, seconds, len(served.taxonomy))
            columns = {"text": text, "label": label, "label_separator": label_separator}
            made = await services.table_pool.run(seconds, _evaluate, served, path, columns, hierarchy, examples, counted)
            return EvaluateOut(**made)
    finally:
        services.uploads.leave()


async def _save_body(request: Request, path: Path, seconds: float, nodes: int) -> None:
    """Write the body to a file, and reserve the memory that it will need; refuse compressed data, which may expand."""
    held, rows = bytearray(), 0
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
            lines, before = piece.count(b"\n"), min(rows * nodes, MAX_DENSE)
            rows += lines
            pairs = min(rows * nodes, MAX_DENSE) - before
            request.state.reserve(BYTE_COST * len(piece) + ROW_BYTES * lines + PAIR_BYTES * pairs)
            held += piece
            if len(held) >= PIECE:
                await asyncio.to_thread(file.write, bytes(held))
                held.clear()
        file.write(held)
    with open(path, "rb") as file:
        refuse_packed(file.read(4))


def _evaluate(
    served: ServedModel, path: Path, columns: dict[str, Any], hierarchy: str, examples: int, costs: dict[str, float] | None
) -> dict[str, Any]:
    classifier = served.classifier
    try:
        found = classifier.figures_.get("columns", {})
        columns["label_separator"] = columns["label_separator"] or found.get("label_separator")
        corpus = read_corpus(path, **columns, like=found, is_label=served.taxonomy.__contains__)
        report, errors = evaluate_with_errors(classifier, corpus.labelled(), hierarchy, examples, costs)
    except RamifyError as error:
        raise ApiError(422, "table", without_options(str(error).replace(str(path), "the table"))) from None
    return {
        "model": served.name,
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
