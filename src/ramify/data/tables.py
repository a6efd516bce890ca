"""Tables as streams of rows with their lines; an unreadable row becomes a BadRow.

CSV and TSV with a header row, JSON Lines or a JSON list, Parquet; all but Parquet may be gzipped. A few bytes of gzip may hold
a line or a list of any size, so both are limited while they are read. The only file that imports polars.
"""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any

from ramify.data.corpus import BadRow
from ramify.errors import DataError, InputError

Row = dict[str, Any]
Rows = Iterator[tuple[int, Row | BadRow]]
UTF_8 = "utf-8"
MAX_CELL = 10_000_000  # characters
MAX_LINE = 20_000_000  # characters, or bytes of UTF-8
MAX_LIST = 100_000_000  # bytes of a JSON list that is gzipped
PARQUET_BATCH = 10_000
SUFFIXES = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".parquet": "parquet", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight",
}  # fmt: skip
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
VECTOR_LINE = re.compile(rb"[^\n:]*?(^|\s)\d+:[^\s:]+(\s|$)")


def list_names(names: Sequence[str]) -> str:
    """Columns in a message."""
    shown = ", ".join(repr(name if len(name) <= 40 else f"{name[:39]}…") for name in names[:20])
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def is_file_set(path: str | Path) -> bool:
    """Whether a path is a directory, or a pattern and not the name of a file."""
    return Path(path).is_dir() or (glob.has_magic(str(path)) and not Path(path).exists())


def find_kind(path: Path, encoding: str = UTF_8) -> str:
    """csv, jsonl, parquet or svmlight: by the suffix, or else by the first bytes."""
    with open_binary(path) as file:
        start = file.read(4096)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"PK\x03\x04"):
        raise DataError(f"{path} is a zip or spreadsheet file; save the table as CSV in UTF-8.")
    if b"\x00" in start and encoding == UTF_8 and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path} is a binary file; give a table as CSV, TSV, JSON Lines or Parquet.")
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    if suffixes and suffixes[-1] in SUFFIXES:
        return SUFFIXES[suffixes[-1]]
    if start.lstrip()[:1] in (b"{", b"["):
        return "jsonl"
    return "svmlight" if VECTOR_LINE.match(start) else "csv"


@contextmanager
def open_binary(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, gzipped or not; errors become DataErrors."""
    try:
        with open(path, "rb") as raw, ExitStack() as also:
            file: Any = also.enter_context(gzip.open(raw)) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
            yield file
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {(isinstance(error, OSError) and error.strerror) or error}.") from None


def numbered_lines(path: Path, file: IO[Any]) -> Iterator[tuple[int, Any]]:
    """The lines of a file, numbered from 1; a line that is too long is refused before it is whole. path: for messages."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            problem = f"{path}, line {number} is longer than {MAX_LINE:,} characters"
            raise DataError(f"{problem}; give a table with one document per row, and cut documents of that size.")
        yield number, line


def known_encoding(name: str) -> str:
    """The canonical name of a text encoding."""
    try:
        "".encode(name)
        io.TextIOWrapper(io.BytesIO(), encoding=name)
        return codecs.lookup(name).name
    except (LookupError, UnicodeError):
        raise InputError(f"encoding {name!r} is unknown; give one such as 'cp1252' or 'utf-16'.") from None


def stream_table(path: Path, kind: str, encoding: str = UTF_8) -> tuple[list[str], Rows]:
    """The columns, and the rows with their line numbers."""
    if kind == "parquet":
        return _stream_parquet(path)
    if kind != "jsonl":
        return csv_table(path, _decoded_lines(path, encoding), encoding)
    columns = read_names(path, kind, encoding)
    if not columns:
        example = '{"text": "…", "label": "…"}'
        raise DataError(f"{path} holds no JSON object in {encoding.upper()}; give one object per line, such as {example}.")
    return columns, _json_objects(path, encoding)


def stream_part(path: Path, kind: str, encoding: str, rows: range | None = None) -> Rows:
    """The rows of a table whose columns are known. rows: a range, for Parquet; None for all."""
    if rows is not None:
        return _stream_parquet(path, rows)[1]
    return _json_objects(path, encoding) if kind == "jsonl" else stream_table(path, kind, encoding)[1]


def read_names(path: Path, kind: str, encoding: str) -> list[str]:
    """The columns; for JSON Lines, the keys of all objects."""
    if kind != "jsonl":
        return stream_table(path, kind, encoding)[0]
    columns: dict[str, None] = {}
    for _, row in _json_objects(path, encoding):  # the whole file: a key may appear late
        if isinstance(row, dict):
            columns.update(dict.fromkeys(row))
    return list(columns)


# ---- CSV --------------------------------------------------------------------------------------------------------------


def csv_table(path: Path, lines: Iterator[tuple[int, str]], encoding: str = UTF_8) -> tuple[list[str], Rows]:
    """The columns and rows of numbered lines of CSV; undecodable bytes are lone surrogates. path: for messages."""
    number, first = next(((number, line) for number, line in lines if line.strip()), (0, None))
    if first is None:
        raise DataError(f"{path} is empty; give a table with a header row.")
    unquoted = re.sub(r'"[^"]*"', "", first)
    delimiter = max(("\t", ";", ",", "|"), key=lambda mark: (unquoted.count(mark), mark == ","))
    try:
        columns = [column.strip() for column in next(csv.reader([first], delimiter=delimiter))]
    except csv.Error as error:
        raise DataError(f"the first row of {path} cannot be read: {error}.") from None
    if any(map(_has_bad_bytes, columns)):
        raise DataError(f"the first row of {path} is not {encoding}; save the file as UTF-8, or give its --encoding.")
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise DataError(f"{path} has two columns named {twice[:40]!r}; rename one of them.")
    return columns, _csv_rows(path, lines, number, columns, delimiter, encoding)


def _csv_rows(
    path: Path, lines: Iterator[tuple[int, str]], header: int, columns: list[str], delimiter: str, encoding: str
) -> Rows:
    csv.field_size_limit(MAX_CELL)
    last = header  # the last line that the reader consumed

    def consumed() -> Iterator[str]:
        nonlocal last
        for number, line in lines:
            last = number
            yield line

    reader = csv.reader(consumed(), delimiter=delimiter, strict=True)
    while True:
        start = last + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                advice = "close it, or double the quotes inside it"
                raise DataError(f"{path}, line {start}: a quoted cell is never closed; {advice}.") from None
            if "field limit" in str(error):
                advice = "close its quotes if they are open, or cut documents of that size"
                raise DataError(f"{path}, line {start}: a cell has more than {MAX_CELL:,} characters; {advice}.") from None
            yield start, BadRow(str(path), start, str(error))
            continue
        row, fits = dict(zip(columns, cells, strict=False)), len(cells) == len(columns)
        if fits and not any(map(_has_bad_bytes, cells)):
            yield start, row
        elif cells:
            reason = f"not {encoding.upper()}" if fits else f"{len(cells)} cells, but {len(columns)} columns"
            yield start, BadRow(str(path), start, reason, {name: _readable(cell) for name, cell in row.items()})


def _decoded_lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; undecodable bytes become lone surrogates, which mark bad cells."""
    with open_binary(path) as raw:
        start = raw.read(2)
        if start in (b"\xff\xfe", b"\xfe\xff") and encoding == UTF_8:
            raise DataError(f"{path} is UTF-16; save it as UTF-8, or give --encoding utf-16.")
        raw.seek(0)
        errors = "strict" if encoding.replace("-", "").lower().startswith(("utf16", "utf32")) else "surrogateescape"
        name = "utf-8-sig" if encoding == UTF_8 else encoding
        text = io.TextIOWrapper(raw, encoding=name, errors=errors, newline="")
        try:
            yield from numbered_lines(path, text)
        except UnicodeError as error:
            raise DataError(f"{path} is not {encoding}: {error}.") from None


def _has_bad_bytes(cell: str) -> bool:
    return not cell.isascii() and LONE_SURROGATE.search(cell) is not None


def _readable(cell: str) -> str:
    return LONE_SURROGATE.sub("\ufffd", cell)


# ---- JSON -------------------------------------------------------------------------------------------------------------


def _json_objects(path: Path, encoding: str) -> Rows:
    """The objects of JSON Lines, or of a JSON list, numbered from 1."""
    with open_binary(path) as file:
        start = file.read(4096).replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    if not start.startswith(b"["):
        for number, line in _json_lines(path, encoding):
            if line.strip():
                yield number, json_row(path, number, line, encoding)
        return
    with open_binary(path) as file:
        is_packed = isinstance(file, gzip.GzipFile)
        data = file.read(MAX_LIST + 1 if is_packed else -1)
    if is_packed and len(data) > MAX_LIST:
        raise DataError(
            f"{path} is a gzipped JSON list of more than {MAX_LIST:,} bytes; unpack it, or give one object per line."
        )
    try:
        rows = json.loads(data.decode("utf-8-sig" if encoding == UTF_8 else encoding))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not a valid JSON list: {str(error)[:80]}.") from None
    for number, row in enumerate(rows, start=1):
        yield number, _checked_object(path, number, row)


def _json_lines(path: Path, encoding: str) -> Iterator[tuple[int, bytes]]:
    """Lines as UTF-8 bytes."""
    if encoding == UTF_8:
        with open_binary(path) as file:
            for number, raw in numbered_lines(path, file):
                yield number, raw.removeprefix(codecs.BOM_UTF8)
    else:
        for number, line in _decoded_lines(path, encoding):
            yield number, line.encode("utf-8", "surrogateescape")


def json_row(path: Path, number: int, line: bytes, encoding: str = UTF_8) -> Row | BadRow:
    """One line of JSON Lines."""
    try:
        return _checked_object(path, number, json.loads(line.decode()))
    except UnicodeDecodeError:
        return BadRow(str(path), number, f"not {encoding.upper()}")
    except (ValueError, RecursionError):
        return BadRow(str(path), number, "not valid JSON")


def _checked_object(path: Path, number: int, row: Any) -> Row | BadRow:
    if not isinstance(row, dict):
        return BadRow(str(path), number, "not a JSON object")
    if _has_bad_bytes(json.dumps(row, ensure_ascii=False)):
        cells = {_readable(name): _readable(value) for name, value in row.items() if isinstance(value, str)}
        return BadRow(str(path), number, "a lone surrogate, which is not valid text", cells)
    return row


# ---- Parquet ----------------------------------------------------------------------------------------------------------


def count_rows(path: Path) -> int:
    """The number of rows of a Parquet file, from its footer."""
    import polars

    with _parquet_errors(path):
        return int(polars.scan_parquet(path).select(polars.len()).collect().item())


def _stream_parquet(path: Path, wanted: range | None = None) -> tuple[list[str], Rows]:
    import polars

    def rows() -> Rows:
        start, stop = (0, None) if wanted is None else (wanted.start, wanted.stop)
        while stop is None or start < stop:
            with _parquet_errors(path):
                batch = table.slice(start, PARQUET_BATCH if stop is None else min(PARQUET_BATCH, stop - start)).collect()
            if not batch.height:
                return
            yield from enumerate(batch.iter_rows(named=True), start=start + 1)
            start += batch.height

    with _parquet_errors(path):
        table = polars.scan_parquet(path)
        columns = table.collect_schema().names()
    return columns, rows()


@contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    """Turn errors of polars into one sentence, also a panic, which it raises and prints where a file is damaged."""
    import polars

    try:
        with _panics_held_back():
            yield
    except (OSError, polars.exceptions.PolarsError) as error:
        first = str(error).split("\n", 1)[0][:120]
        raise DataError(f"{path} cannot be read as Parquet: {first}.") from None
    except polars.exceptions.PanicException:
        raise DataError(
            f"{path} cannot be read as Parquet: it is damaged. Restore it from a copy, or write it again."
        ) from None


_standard_error = Lock()


@contextmanager
def _panics_held_back() -> Iterator[None]:
    """Hold back what is written to standard error in this block, and write it afterwards, unless polars panics."""
    import polars

    with _standard_error, TemporaryFile() as held:
        has_panicked = False
        try:
            with _standard_error_in(held.fileno()):
                yield
        except polars.exceptions.PanicException:
            has_panicked = True
            raise
        finally:
            held.seek(0)
            if not has_panicked and (text := held.read()):
                os.write(2, text)


@contextmanager
def _standard_error_in(file: int) -> Iterator[None]:
    """Write the standard error of this process, also of native code, to a file."""
    try:
        real = os.dup(2)
    except OSError:  # there is none
        real = None
    if real is None:
        yield
        return
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(real, 2)
        os.close(real)
