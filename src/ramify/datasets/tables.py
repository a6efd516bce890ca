"""Tables as streams of rows, each with its line; a row that cannot be read comes as a BadRow in its place.

CSV and TSV (first row names the columns), JSON Lines, Parquet; all but Parquet may be gzipped.
The only file that names polars.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from ramify.datasets.corpus import BadRow
from ramify.errors import DataError

Row = dict[str, Any]
MAX_CELL = 1 << 27
PARQUET_BATCH = 10_000
SUFFIXES = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet",
    ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight",
}  # fmt: skip
VECTOR_LINE = re.compile(rb"[^\s:]*\s+\d+:[^\s:]+(\s|$)")


def find_kind(path: Path) -> str:
    """csv, jsonl, parquet or svmlight: by the ending of the name, or else by the first bytes."""
    suffixes = [suffix for suffix in path.suffixes if suffix.lower() != ".gz"]
    if suffixes and suffixes[-1].lower() in SUFFIXES:
        return SUFFIXES[suffixes[-1].lower()]
    with open_binary(path) as file:
        start = file.read(4096)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.lstrip().startswith(b"{"):
        return "jsonl"
    return "svmlight" if VECTOR_LINE.match(start) else "csv"


@contextmanager
def open_binary(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, gzipped or not; trouble while reading it is a DataError."""
    try:
        with open(path, "rb") as raw, ExitStack() as also:
            file: Any = also.enter_context(gzip.open(raw)) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
            yield file
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None


def stream_table(path: Path, kind: str) -> tuple[list[str], Iterator[tuple[int, Row | BadRow]]]:
    """The names of the columns, and the rows with their line numbers."""
    readers = {"csv": _stream_csv, "jsonl": _stream_jsonl, "parquet": _stream_parquet}
    return readers[kind](path)


def _stream_csv(path: Path) -> tuple[list[str], Iterator[tuple[int, Row | BadRow]]]:
    lines = _decoded_lines(path)
    first = next((line for line in lines if line[1].strip()), None)
    if first is None:
        raise DataError(f"{path} is empty; give a table whose first row names its columns.")
    delimiter = _find_delimiter(first[1])
    columns = next(csv.reader([first[1]], delimiter=delimiter))
    columns = [column.strip() for column in columns]
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise DataError(f"{path} has two columns named {twice!r}; rename one of them.")
    return columns, _csv_rows(path, lines, columns, delimiter)


def _csv_rows(
    path: Path, lines: Iterator[tuple[int, str]], columns: list[str], delimiter: str
) -> Iterator[tuple[int, Row | BadRow]]:
    csv.field_size_limit(MAX_CELL)
    last = 1

    def fed() -> Iterator[str]:
        nonlocal last
        for number, line in lines:
            last = number
            yield line

    reader = csv.reader(fed(), delimiter=delimiter, strict=True)
    while True:
        start = last + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                raise DataError(
                    f"{path}, line {start}: a quoted cell is never closed; close it or double the quote inside it."
                ) from None
            yield start, BadRow(str(path), start, str(error))
            continue
        if cells:
            yield start, _csv_row(path, start, columns, cells)


def _csv_row(path: Path, line: int, columns: list[str], cells: list[str]) -> Row | BadRow:
    if len(cells) != len(columns):
        return BadRow(str(path), line, f"{len(cells)} cells where the first row names {len(columns)} columns")
    if any(_has_bad_bytes(cell) for cell in cells):
        return BadRow(str(path), line, "not UTF-8")
    return dict(zip(columns, cells, strict=True))


def _decoded_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; bytes that are not UTF-8 become lone surrogates, to be found again in the cell."""
    with open_binary(path) as raw:
        start = raw.read(2)
        if start in (b"\xff\xfe", b"\xfe\xff"):
            raise DataError(f"{path} is UTF-16; save it as UTF-8.")
        raw.seek(0)
        text = io.TextIOWrapper(raw, encoding="utf-8-sig", errors="surrogateescape", newline="")
        yield from enumerate(text, start=1)


def _has_bad_bytes(cell: str) -> bool:
    return not cell.isascii() and any("\udc80" <= letter <= "\udcff" for letter in cell)


def _find_delimiter(header: str) -> str:
    bare = re.sub(r'"[^"]*"', "", header)
    return max(("\t", ";", ",", "|"), key=lambda mark: (bare.count(mark), mark == ","))


def _stream_jsonl(path: Path) -> tuple[list[str], Iterator[tuple[int, Row | BadRow]]]:
    columns: dict[str, None] = {}
    for number, (_, row) in enumerate(_json_rows(path)):
        if isinstance(row, dict):
            columns.update(dict.fromkeys(row))
        if number == 100:
            break
    if not columns:
        raise DataError(f'{path} holds no JSON object; give one object a line, such as {{"text": "…", "label": "…"}}.')
    return list(columns), _json_rows(path)


def _json_rows(path: Path) -> Iterator[tuple[int, Row | BadRow]]:
    with open_binary(path) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, _json_row(path, number, line)


def _json_row(path: Path, number: int, line: bytes) -> Row | BadRow:
    try:
        row = json.loads(line)
    except UnicodeDecodeError:
        return BadRow(str(path), number, "not UTF-8")
    except (ValueError, RecursionError):
        return BadRow(str(path), number, "not valid JSON")
    return row if isinstance(row, dict) else BadRow(str(path), number, "not a JSON object")


def _stream_parquet(path: Path) -> tuple[list[str], Iterator[tuple[int, Row | BadRow]]]:
    import polars

    try:
        table = polars.scan_parquet(path)
        columns = table.collect_schema().names()
    except (OSError, polars.exceptions.PolarsError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0][:120]}.") from None

    def rows() -> Iterator[tuple[int, Row | BadRow]]:
        start = 0
        while (batch := table.slice(start, PARQUET_BATCH).collect()).height:
            yield from enumerate(batch.iter_rows(named=True), start=start + 1)
            start += batch.height

    return columns, rows()
