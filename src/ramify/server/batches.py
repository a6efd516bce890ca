"""A table classified while it comes: lines in, pieces of the answer out, in order.

A batch ends when it is full, or when more would have to be waited for; so a slow sender gets every answer at once, and a fast
one gets batches that keep all threads busy.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query, Request

from ramify.data import BadRow
from ramify.data.columns import find_columns
from ramify.data.tables import csv_table, json_row
from ramify.errors import DataError
from ramify.server.errors import ApiError, refuse_packed
from ramify.server.streams import Inlet
from ramify.taxonomy import Taxonomy
from ramify.workflows import Prediction, Predictor
from ramify.workflows.predict_stream import PredictionTable, answer_rows

CHARACTERS = 1 << 20  # of a batch
TABLE = Path("the table")
BOM = b"\xef\xbb\xbf"

Rows = list[tuple[int, Any]]
Numbered = Iterator[tuple[int, Any]]


@dataclass(frozen=True, slots=True)
class Ask:
    """How a table comes, and how answers go.

    comes, goes: "csv" or "ndjson". text, id: columns; the text is found when not named. echo: whether rows go back, too.
    paths: whether labels come with the titles of their paths. like: the text column that the model learnt from.
    characters: of the longest text. seen: is told every answered batch.
    """

    comes: str
    goes: str
    text: str | None = None
    id: str | None = None
    echo: bool = False
    paths: bool = False
    like: str | None = None
    characters: int = 1 << 20
    seen: Callable[[list[Prediction], str], None] = field(default=lambda answers, text: None)


def classify_lines(inlet: Inlet, answering: Predictor, ask: Ask, threads: int, emit: Callable[[bytes], None]) -> None:
    """Give pieces of the answer to a table to `emit`, in the order of its rows."""
    lines = enumerate(_unpacked(inlet.lines()), start=1)
    columns, text, rows = _read_csv(lines, ask) if ask.comes == "csv" else _read_json(lines, ask)
    if ask.id is not None and ask.comes == "csv":
        find_columns(str(TABLE), columns, [], ask.id)
    taxonomy = answering.classifier.taxonomy_
    write = _CsvOut(PredictionTable(columns, answering.options.top)) if ask.goes == "csv" else _JsonOut(ask, taxonomy)
    emit(write.head())

    def work(batch: Rows) -> bytes:
        answers = answer_rows(answering, [(line, _checked(row, text, ask.characters)) for line, row in batch], text)
        ask.seen(answers, text)
        return write.rows(answers)

    with ThreadPoolExecutor(threads, thread_name_prefix="batch") as pool:
        turns = _Turns(pool, threads, work, emit)
        inlet.on_wait = turns.drain
        most = answering.batch_size
        try:
            for number, row in rows:
                turns.add(number, row, text, most)
            turns.drain()
        finally:
            inlet.on_wait = lambda: None
            turns.give_up()


class _Turns:
    """Batches side by side, their results in order."""

    def __init__(
        self, pool: ThreadPoolExecutor, threads: int, work: Callable[[Rows], bytes], emit: Callable[[bytes], None]
    ) -> None:
        self._pool, self._threads, self._work, self._emit = pool, threads, work, emit
        self._batch: Rows = []
        self._characters = 0
        self._waiting: deque[Future[bytes]] = deque()

    def add(self, number: int, row: Any, text: str, most: int) -> None:
        """One more row; a full batch is begun, and results that are ready go out."""
        self._batch.append((number, row))
        cell = row.get(text) if isinstance(row, dict) else None
        self._characters += len(cell) if isinstance(cell, str) else 0
        if len(self._batch) >= most or self._characters >= CHARACTERS:
            self._begin()
            while self._waiting and (len(self._waiting) > 2 * self._threads or self._waiting[0].done()):
                self._emit(self._waiting.popleft().result())

    def drain(self) -> None:
        """Everything so far goes out."""
        self._begin()
        while self._waiting:
            self._emit(self._waiting.popleft().result())

    def give_up(self) -> None:
        """Begin nothing more."""
        for future in self._waiting:
            future.cancel()

    def _begin(self) -> None:
        if self._batch:
            self._waiting.append(self._pool.submit(self._work, self._batch))
            self._batch, self._characters = [], 0


def _checked(row: Any, text: str, most: int) -> Any:
    """A row, or what is wrong with it: a text that is too long."""
    cell = row.get(text) if isinstance(row, dict) else None
    if not isinstance(cell, str) or len(cell) <= most:
        return row
    return BadRow(
        str(TABLE), 0, f"the text has {len(cell):,} characters; up to {most:,} are allowed", {**row, text: cell[:100]}
    )


# ---- reading ----------------------------------------------------------------------------------------------------------


def _unpacked(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The same lines, unless they are those of a packed file, which may unpack to any size."""
    first = next(lines, None)
    if first is not None:
        refuse_packed(first[:4])
        yield first
    yield from lines


def _read_csv(lines: Iterator[tuple[int, bytes]], ask: Ask) -> tuple[list[str], str, Numbered]:
    columns, rows = csv_table(TABLE, _decoded(lines))
    return columns, *_find_text(columns, rows, ask)


def _decoded(lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, str]]:
    for number, line in lines:
        if number == 1:
            if line[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise DataError("the table is in UTF-16; send it in UTF-8.")
            line = line.removeprefix(BOM)
        yield number, line.decode("utf-8", "surrogateescape")


def _read_json(lines: Iterator[tuple[int, bytes]], ask: Ask) -> tuple[list[str], str, Numbered]:
    rows = _objects(lines)
    first = next(rows, None)
    if first is None:
        raise DataError('there is no line in the body; send one JSON object a line, such as {"text": "…"}.')
    columns = list(first[1]) if isinstance(first[1], dict) else [ask.text or ask.like or "text"]
    text, numbered = _find_text(columns, chain([first], rows), ask)
    return columns, text, ((number, {text: row} if isinstance(row, str) else row) for number, row in numbered)


def _objects(lines: Iterator[tuple[int, bytes]]) -> Numbered:
    """Lines as rows; a plain string stands for a row that has nothing but a text."""
    for number, line in lines:
        bare = line.removeprefix(BOM).strip() if number == 1 else line.strip()
        if bare:
            if number == 1 and bare[:1] not in (b"{", b'"', b"["):
                raise DataError(
                    "the first line is no JSON; send one object a line, or a table as CSV with 'Content-Type: text/csv'."
                )
            row = json_row(TABLE, number, b'{"": %b}' % bare if bare.startswith(b'"') else bare)
            yield number, row[""] if isinstance(row, dict) and list(row) == [""] else row


def _find_text(columns: list[str], rows: Numbered, ask: Ask) -> tuple[str, Numbered]:
    """The text column by its name, or else the one with the longest cell in the first row; never waits for more than that."""
    named = ask.text or (ask.like if ask.like in columns else None) or ("text" if "text" in columns else None)
    if named is not None:
        return find_columns(str(TABLE), columns, [], named).text, rows
    first = next(rows, None)
    sample = [first[1]] if first is not None and isinstance(first[1], dict) else []
    return find_columns(str(TABLE), columns, sample).text, rows if first is None else chain([first], rows)


# ---- writing ----------------------------------------------------------------------------------------------------------


class _JsonOut:
    """One JSON object a row."""

    def __init__(self, ask: Ask, taxonomy: Taxonomy) -> None:
        self._echo, self._id = ask.echo, ask.id or "id"
        self._taxonomy = taxonomy if ask.paths else None
        self._labels: dict[str, str] = {}

    def head(self) -> bytes:
        """There is none."""
        return b""

    def rows(self, answers: list[Prediction]) -> bytes:
        """Some rows."""
        return "".join([self._row(answer) for answer in answers]).encode()

    def _row(self, answer: Prediction) -> str:
        parts = [f'{{"line": {answer.line}']
        if self._id in answer.row:
            parts.append(f'"id": {_json(answer.row[self._id])}')
        if self._echo:
            parts.append(f'"row": {_json(answer.row)}')
        parts.append(f'"labels": {self._listed(answer.labels)}')
        if answer.others:
            parts.append(f'"others": {self._listed(answer.others)}')
        if answer.problem is not None:
            parts.append(f'"problem": {_json(answer.problem)}')
        return ", ".join(parts) + "}\n"

    def _listed(self, labels: list[tuple[str, float]]) -> str:
        return "[" + ", ".join([f'{{"label": {self._quoted(label)}, "probability": {p:.6g}}}' for label, p in labels]) + "]"

    def _quoted(self, label: str) -> str:
        """A label as JSON, with its path where that is wanted; written once."""
        if label not in self._labels:
            self._labels[label] = _json(label)
            if self._taxonomy is not None:
                known = label in self._taxonomy
                path = self._taxonomy.path_of(self._taxonomy.index(label)) if known else (label,)
                self._labels[label] += f', "path": {_json(path)}'
        return self._labels[label]


def _json(value: Any) -> str:
    """A value as JSON; numbers that JSON does not have become null."""
    try:
        return json.dumps(value, ensure_ascii=True, allow_nan=False)
    except ValueError:
        return json.dumps(json.loads(json.dumps(value), parse_constant=lambda name: None), ensure_ascii=True)


class _CsvOut:
    """The columns that came, and behind them those of 'ramify predict'."""

    def __init__(self, table: PredictionTable) -> None:
        self._table = table

    def head(self) -> bytes:
        """The names of the columns."""
        return _csv([self._table.head])

    def rows(self, answers: list[Prediction]) -> bytes:
        """Some rows."""
        return _csv(map(self._table.cells, answers))


def _csv(rows: Iterable[list[Any]]) -> bytes:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue().encode("utf-8", "replace")


# --------------------------------------------------------------------------------------------------------------
# Tables that are sent to the server: of which kinds they may be, and what is said of them.


KINDS = {
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
}
BODY: dict[str, Any] = {
    "required": True,
    "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in KINDS},
}

Column = Annotated[str | None, Query(min_length=1, max_length=200)]


def content_kind(request: Request) -> str:
    """What the body is, by its Content-Type: csv, tsv or jsonl."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in KINDS:
        raise ApiError(415, "content-type", f"the content type is {given[:80]!r}; send {', '.join(KINDS)}.")
    return KINDS[given]


def without_options(message: str) -> str:
    """A message of the core without the dashes of the command line's options.

    >>> without_options("name it with --text; column 'no--such' is none.")
    "name it with text; column 'no--such' is none."
    """
    return re.sub(r"(?<![\w-])--(?=[a-z])", "", message)
