"""Classify a table while it is uploaded: lines in, predictions out, in order.

A batch ends when it is full or when no more input is waiting. So a slow sender gets each prediction at once, and a fast one
gets batches that keep all threads busy.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Protocol

from fastapi import Query, Request
from pydantic import Field

from ramify.data import BadRow
from ramify.data.columns import Columns, find_columns, split_names, with_others
from ramify.data.csv_tables import read_csv
from ramify.data.encodings import UTF_8
from ramify.data.json_tables import json_row
from ramify.data.labels import IsLabel
from ramify.errors import DataError
from ramify.server.errors import ApiError
from ramify.server.json_bounds import has_more_values
from ramify.server.streams import LONGEST, ByteInput, line_too_long, lines_of
from ramify.server.table_encodings import decoded_chunks
from ramify.taxonomy import Taxonomy
from ramify.workflows import Prediction, Predictor
from ramify.workflows.predict_stream import PredictionTable, predict_batch

CHARACTERS = 1 << 20  # of the texts of a batch
BATCH_BYTES = 1 << 22  # of memory for the other cells of a batch
CELLS = 5_000  # columns of a table, and values in a row of NDJSON
CELL_BYTES = 100  # of memory for a cell beside its text
SEPARATORS = (b",", b";", b"\t", b"|")  # between cells
LABEL_MARKS = re.compile(r"\s*[|;]\s*")  # between labels of a cell
TABLE = Path("the table")
BOM = b"\xef\xbb\xbf"

Rows = list[tuple[int, Any]]
Numbered = Iterator[tuple[int, Any]]


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """The format of an uploaded table and of its predictions.

    input_format, output_format: "csv" or "ndjson". text, id: columns; the text columns are found if not given, and several may
    be one string: "title,body". echo: send rows back. paths: send labels with their paths. like: the columns that the
    model was trained on. characters: the longest text allowed. encoding: None to find it.
    """

    input_format: str
    output_format: str
    text: str | list[str] | None = None
    id: str | None = None
    echo: bool = False
    paths: bool = False
    like: dict[str, Any] | None = None
    characters: int = 1 << 20
    encoding: str | None = None


class BatchListener(Protocol):
    """Hears how a table is read, before anything is emitted, and of each batch of predictions."""

    def note_layout(self, text: Columns, encoding: str) -> None:
        """The text columns and the encoding."""

    def note_batch(self, predictions: list[Prediction], text: Columns) -> None:
        """Predictions of some rows."""


def predict_lines(
    source: ByteInput,
    predictor: Predictor,
    ask: BatchRequest,
    threads: int,
    emit: Callable[[bytes], None],
    listener: BatchListener,
) -> None:
    """Classify the rows of a table; `emit` gets the output piece by piece, in the order of the rows."""
    meter = _RowMeter(min(LONGEST, ask.characters + CELLS) if ask.input_format == "csv" else LONGEST)
    encoding, chunks = decoded_chunks(TABLE, source.chunks(), ask.encoding)
    lines = meter.measured(plain_lines(lines_of(chunks), ask.input_format))
    is_label = predictor.classifier.taxonomy_.__contains__
    columns: list[str]
    if ask.input_format == "csv":
        columns, found = read_csv(TABLE, ((number, as_text(line)) for number, line in lines), encoding, n_first=1)
        text, rows = _find_text(columns, found, ask, is_label)
        if ask.id is not None:
            find_columns(str(TABLE), columns, [], [ask.id])
    else:
        columns, text, rows = _read_json(lines, ask, encoding, is_label)
    listener.note_layout(text, encoding)
    kept = None if ask.echo or ask.output_format == "csv" else {*text.wanted, ask.id or "id"}  # other cells are not returned
    table, write_json = PredictionTable(columns, predictor.options.top), _json_writer(ask, predictor.classifier.taxonomy_)
    emit(_csv([table.head]) if ask.output_format == "csv" else b"")

    def work(batch: Rows) -> bytes:
        predictions = predict_batch(predictor, batch, text)
        listener.note_batch(predictions, text)
        if ask.output_format == "csv":
            return _csv(map(table.cells, predictions))
        return "".join(map(write_json, predictions)).encode()

    with ThreadPoolExecutor(threads, thread_name_prefix="batch") as pool:
        batches = _OrderedBatches(pool, threads, work, emit)
        source.on_wait = batches.drain
        try:
            for number, row in rows:
                row, n_characters = _needed(row, text, kept, ask.characters)
                batches.add(number, row, n_characters, 0 if kept is not None else meter.cost_of(row), predictor.batch_size)
                meter.begin_row()
            batches.drain()
        finally:
            source.on_wait = lambda: None
            for future in batches.waiting:
                future.cancel()


class _OrderedBatches:
    """Runs batches in parallel and emits their results in order."""

    def __init__(
        self, pool: ThreadPoolExecutor, threads: int, work: Callable[[Rows], bytes], emit: Callable[[bytes], None]
    ) -> None:
        self._pool, self._threads, self._work, self._emit = pool, threads, work, emit
        self._batch: Rows = []
        self._characters = self._cost = 0
        self.waiting: deque[Future[bytes]] = deque()

    def add(self, number: int, row: Any, n_characters: int, cost: int, most: int) -> None:
        """Add a row; start a full batch and emit finished results. cost: bytes of its other cells."""
        self._batch.append((number, row))
        self._characters += n_characters
        self._cost += cost
        if len(self._batch) >= most or self._characters >= CHARACTERS or self._cost >= BATCH_BYTES:
            self._begin()
            while self.waiting and (len(self.waiting) > 2 * self._threads or self.waiting[0].done()):
                self._emit(self.waiting.popleft().result())

    def drain(self) -> None:
        """Emit all results so far."""
        self._begin()
        while self.waiting:
            self._emit(self.waiting.popleft().result())

    def _begin(self) -> None:
        if self._batch:
            self.waiting.append(self._pool.submit(self._work, self._batch))
            self._batch, self._characters, self._cost = [], 0, 0


class _RowMeter:
    """Measures the lines of each row before they are parsed. most: marks between cells, more than any text may have."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._marks = self._bytes = 0
        self._line = b""

    def measured(self, lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """The same lines; a row that would take too much memory ends the table."""
        for number, line in lines:
            self._line = line
            self._bytes += len(line)
            if self._bytes > self._most:  # seldom; fewer bytes cannot be more marks
                self._refuse_if_large(number)
            yield number, line

    def _refuse_if_large(self, number: int) -> None:
        if self._bytes > LONGEST:
            raise line_too_long()
        self._marks += sum(map(self._line.count, SEPARATORS))
        if self._marks > self._most:
            raise ApiError(413, "too-many-values", f"line {number} has more cells than its text may have characters.")

    def cost_of(self, row: Any) -> int:
        """About the bytes of memory of the row that was read last, without its text."""
        n_values = self._line.count(b",") + self._line.count(b"{") + self._line.count(b"[")  # of one line, or of the last one
        return self._bytes + CELL_BYTES * max(n_values, len(row) if isinstance(row, dict) else 0)

    def begin_row(self) -> None:
        """The next lines are those of another row."""
        self._marks = self._bytes = 0


def check_columns(head: bytes) -> None:
    """Refuse a table with too many columns by its first row."""
    if max(map(head.count, SEPARATORS)) >= CELLS:
        raise ApiError(413, "too-many-values", f"the table has more than {CELLS:,} columns; send those that are needed.")


def _needed(row: Any, text: Columns, kept: set[str] | None, most: int) -> tuple[Any, int]:
    """The row without what is not returned, or a BadRow if its text is too long; and the characters of the text."""
    if not isinstance(row, dict):
        return (row, 0) if kept is None or not isinstance(row, BadRow) else (_narrowed(row, kept), 0)
    if kept is not None:
        row = {name: cell for name, cell in row.items() if name in kept}
    cell = text.read_text(row)
    if not isinstance(cell, str):
        return row, 0
    if len(cell) <= most:
        return row, len(cell)
    problem = f"the text has {len(cell):,} characters; up to {most:,} are allowed"
    return BadRow(str(TABLE), 0, problem, {**row, text.texts[0]: cell[:100]}), 0


def _narrowed(row: BadRow, kept: set[str]) -> BadRow:
    return replace(row, cells={name: cell for name, cell in row.cells.items() if name in kept})


def as_text(line: bytes) -> str:
    """A line; bytes that are not UTF-8 become lone surrogates."""
    return line.decode("utf-8", "surrogateescape")


def plain_lines(lines: Iterable[bytes], kind: str) -> Iterator[tuple[int, bytes]]:
    """Numbered lines without a byte order mark."""
    has_head = False
    for number, line in enumerate(lines, start=1):
        line = line.removeprefix(BOM) if number == 1 else line
        if kind == "csv" and not has_head and line.strip():
            check_columns(line)
            has_head = True
        yield number, line


def _read_json(
    lines: Iterator[tuple[int, bytes]], ask: BatchRequest, encoding: str, is_label: IsLabel
) -> tuple[list[str], Columns, Numbered]:
    rows = json_values(lines, encoding)
    first = next(rows, None)
    if first is None:
        raise DataError('the body is empty; send one JSON object per line, such as {"text": "…"}.')
    columns = list(first[1]) if isinstance(first[1], dict) else _names_of_bare_texts(ask)
    text, numbered = _find_text(columns, chain([first], rows), ask, is_label)
    return columns, text, ((number, {text.texts[0]: row} if isinstance(row, str) else row) for number, row in numbered)


def _names_of_bare_texts(ask: BatchRequest) -> list[str]:
    """The columns of rows that are texts without names."""
    trained_on = (ask.like or {}).get("text")
    known = ask.text or (trained_on if isinstance(trained_on, str) else None) or "text"
    return [known] if isinstance(known, str) else known


def json_values(lines: Iterator[tuple[int, bytes]], encoding: str = UTF_8) -> Numbered:
    """Lines as rows; a plain string is a row with only a text."""
    for number, line in lines:
        if bare := line.strip():
            if number == 1 and bare[:1] not in (b"{", b'"', b"["):
                wanted = "send one object per line, or a table as CSV with 'Content-Type: text/csv'"
                raise DataError(f"the first line is not JSON; {wanted}.")
            if has_more_values(bare, CELLS):
                yield number, BadRow(str(TABLE), number, f"the row has more than {CELLS:,} values")
                continue
            row = json_row(TABLE, number, b'{"": %b}' % bare if bare.startswith(b'"') else bare, encoding)
            yield number, row[""] if isinstance(row, dict) and list(row) == [""] else row


def _find_text(columns: list[str], rows: Numbered, ask: BatchRequest, is_label: IsLabel) -> tuple[Columns, Numbered]:
    """The text columns by their names, or else the one with the longest cell in the first row; waits for no more rows.

    A cell that is a label is no text.
    """
    trained_on = (ask.like or {}).get("text") or []
    like = [trained_on] if isinstance(trained_on, str) else trained_on
    named = split_names(ask.text, columns, "text") or (like if like and all(name in columns for name in like) else None)
    if named is None and "text" in columns:
        named = ["text"]
    if named is not None:
        return with_others(find_columns(str(TABLE), columns, [], named, wants_labels=False), ask.like), rows
    first = next(rows, None)
    sample = [first[1]] if first is not None and isinstance(first[1], dict) else []
    labels = columns_of_labels(columns, sample, is_label)
    found = find_columns(str(TABLE), columns, sample, None, labels if len(labels) < len(columns) else None, wants_labels=False)
    return with_others(found, ask.like), rows if first is None else chain([first], rows)


def columns_of_labels(columns: list[str], sample: Sequence[dict[str, Any]], is_label: IsLabel) -> list[str]:
    """The columns in which most cells are labels of the taxonomy, or several with marks between them."""
    found = []
    for name in columns:
        cells = [row[name] for row in sample if isinstance(row.get(name), str) and row[name].strip()]
        known = [is_label(cell) or all(map(is_label, LABEL_MARKS.split(cell))) for cell in cells]
        if 2 * sum(known) > len(known):
            found.append(name)
    return found


def _json_writer(ask: BatchRequest, taxonomy: Taxonomy) -> Callable[[Prediction], str]:
    """Writes a prediction as a JSON object on one line."""

    @cache
    def quoted(label: str) -> str:
        if not ask.paths:
            return _json(label)
        path = taxonomy.path_of(taxonomy.index(label)) if label in taxonomy else (label,)
        return f'{_json(label)}, "path": {_json(path)}'

    def listed(labels: list[tuple[str, float]]) -> str:
        return "[" + ", ".join([f'{{"label": {quoted(label)}, "probability": {p:.6g}}}' for label, p in labels]) + "]"

    def write(prediction: Prediction) -> str:
        row, name = prediction.row, ask.id or "id"
        parts = [f'{{"line": {prediction.line}']
        if name in row:
            parts.append(f'"id": {_json(row[name])}')
        if ask.echo:
            parts.append(f'"row": {_json(row)}')
        parts.append(f'"labels": {listed(prediction.labels)}')
        if prediction.others:
            parts.append(f'"others": {listed(prediction.others)}')
        if prediction.problem is not None:
            parts.append(f'"problem": {_json(prediction.problem)}')
        return ", ".join(parts) + "}\n"

    return write


def _json(value: Any) -> str:
    """A value as JSON; NaN and infinity become null."""
    try:
        return json.dumps(value, ensure_ascii=True, allow_nan=False)
    except ValueError:
        return json.dumps(json.loads(json.dumps(value), parse_constant=lambda name: None), ensure_ascii=True)


def _csv(rows: Iterable[list[Any]]) -> bytes:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue().encode("utf-8", "replace")


KINDS = {"text/csv": "csv", "text/tab-separated-values": "tsv", "application/x-ndjson": "jsonl", "application/jsonl": "jsonl"}
BINARY = {"schema": {"type": "string", "format": "binary"}}
BODY: dict[str, Any] = {"required": True, "content": dict.fromkeys(KINDS, BINARY)}
Column = Annotated[str | None, Query(min_length=1, max_length=200)]
ColumnName = Annotated[str, Field(min_length=1, max_length=200)]
ABOUT_TEXT = "The column with the text; several as title,body or as text=title&text=body; found when left out."
TextColumns = Annotated[list[ColumnName], Query(max_length=100, description=ABOUT_TEXT)]
ABOUT_LABEL = "The column with the labels; several are the levels of a path, from the top; found when left out."
LabelColumns = Annotated[list[ColumnName], Query(max_length=100, description=ABOUT_LABEL)]


def told_columns(given: list[str]) -> str | list[str] | None:
    """Columns as a client names them: one string may name several."""
    return None if not given else given[0] if len(given) == 1 else given


def content_kind(request: Request) -> str:
    """The format of the body, by its Content-Type: csv, tsv or jsonl."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in KINDS:
        raise ApiError(415, "content-type", f"the content type is {given[:80]!r}; send {', '.join(KINDS)}.")
    return KINDS[given]


def without_options(message: str) -> str:
    """An error message without the dashes of command line options.

    >>> without_options("name it with --text; column 'no--such' is none.")
    "name it with text; column 'no--such' is none."
    """
    return re.sub(r"(?<![\w-])--(?=[a-z])", "", message)
