"""What a table looks like before it is used: its encoding, its columns and first rows, and which columns a model would read."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ramify.data import BadRow
from ramify.data.columns import Columns, GivenColumns, Sample, text_columns, training_columns
from ramify.data.csv_tables import read_csv
from ramify.data.encodings import decode_errors, encoding_of_bytes, readable
from ramify.errors import DataError
from ramify.server.batches import TABLE, columns_of_labels, json_values, plain_lines, without_options
from ramify.server.errors import refuse_packed
from ramify.server.model_registry import ServedModel
from ramify.server.schemas import TablePreview

SAMPLE = 200  # rows to find the columns from
SHOWN_ROWS, SHOWN_CELL = 5, 300  # rows, and characters of a cell


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """The beginning of a table. kind: csv, tsv or jsonl. is_cut: whether the table goes on. encoding: None to find it."""

    content: bytes
    kind: str
    is_cut: bool = False
    encoding: str | None = None


def preview_table(served: ServedModel, ask: PreviewRequest) -> TablePreview:
    """The preview of a table for a model."""
    refuse_packed(ask.content[:4])
    encoding = ask.encoding or encoding_of_bytes(ask.content, TABLE)
    lines = plain_lines(_lines(ask, encoding), "jsonl" if ask.kind == "jsonl" else "csv")
    if ask.kind == "jsonl":
        sample = _first(json_values(lines, encoding), ask.is_cut)
        names = list(dict.fromkeys(name for _, row in sample if isinstance(row, dict) for name in row)) or ["text"]
        sample = [(number, {names[0]: row} if isinstance(row, str) else row) for number, row in sample]
    else:
        names, rows = read_csv(TABLE, ((number, line.decode("utf-8", "surrogateescape")) for number, line in lines), encoding)
        sample = _first(rows, ask.is_cut)
    if not sample:
        raise DataError("the table has no rows; choose one with a row of column names and a row for each text.")
    columns, problem = _columns(served, names, sample)
    return TablePreview(
        encoding=encoding,
        columns=[readable(name) for name in names],
        rows=[_cells(names, row) for _, row in sample[:SHOWN_ROWS]],
        text=list(columns.texts),
        label=list(columns.labels),
        problem=problem,
    )


def _lines(ask: PreviewRequest, encoding: str) -> Iterator[bytes]:
    """The lines in UTF-8; the last one of a table that goes on may be incomplete, and is left out."""
    decoder = codecs.getincrementaldecoder(encoding)(decode_errors(encoding))
    try:
        text = decoder.decode(ask.content, final=not ask.is_cut)
    except UnicodeError as error:
        raise DataError(f"the table is not {encoding}: {error}.") from None
    if ask.is_cut:
        text = text[: text.rfind("\n") + 1] or text
    errors = "surrogateescape" if _has_escapes(encoding) else "surrogatepass"
    return (line.encode("utf-8", errors) for line in io.StringIO(text, newline="\n"))  # lines one by one: many take memory


def _has_escapes(encoding: str) -> bool:
    """Whether bytes that could not be decoded are lone surrogates."""
    return decode_errors(encoding) == "surrogateescape"


def _first(rows: Iterator[tuple[int, Any]], is_cut: bool) -> list[tuple[int, Any]]:
    """The first rows; where a table was cut, the last one may be broken."""
    found: list[tuple[int, Any]] = []
    try:
        for numbered in islice(rows, SAMPLE):
            found.append(numbered)
    except DataError:
        if not (is_cut and found):
            raise
    return found


def _columns(served: ServedModel, names: list[str], sample: Sample) -> tuple[Columns, str | None]:
    """The columns with the texts, and those with the labels if there are any; or why there are none."""
    like = served.classifier.figures_.get("columns", {})
    rows = [row for _, row in sample if isinstance(row, dict)]
    known = columns_of_labels(names, rows, served.taxonomy.__contains__)
    is_like = bool(like.get("label")) and all(name in names for name in like["label"])
    try:
        given = GivenColumns(label=known[:1] if known and not is_like else None, like=like)
        return training_columns(str(TABLE), names, sample, given), None
    except DataError:
        pass  # it has no labels, which only an evaluation needs
    free = [name for name in names if name not in known] or names
    try:
        return text_columns(str(TABLE), free, sample, None, like), None
    except DataError as error:
        return Columns((), ()), without_options(str(error))


def _cells(names: Sequence[str], row: Any) -> list[str]:
    """The cells of a row, cut."""
    cells = row.cells if isinstance(row, BadRow) else row if isinstance(row, dict) else {}
    return [readable(_as_text(cells.get(name))[:SHOWN_CELL]) for name in names]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
