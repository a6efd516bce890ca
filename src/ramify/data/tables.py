"""Tables as streams of rows with their lines; an unreadable row becomes a BadRow.

CSV and TSV with a header row, JSON Lines or a JSON list, Parquet; all but Parquet may be gzipped. A few bytes of gzip may hold
a line, a row or an object of any size, so all are limited while they are read.
"""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from encodings.aliases import aliases
from pathlib import Path
from typing import IO, Any

from ramify.arguments import describe
from ramify.data import limits
from ramify.data.corpus import BadRow
from ramify.data.limits import UnpackedSize, has_too_many_values, size_of
from ramify.data.parquet import stream_parquet
from ramify.errors import DataError, InputError, suggest

Row = dict[str, Any]
Rows = Iterator[tuple[int, Row | BadRow]]
UTF_8 = "utf-8"
CHUNK = 1 << 19  # characters of a JSON list to read at a time
SUFFIXES = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".parquet": "parquet", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight",
}  # fmt: skip
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
SPACES = re.compile(r"[ \t\r\n]*")  # of JSON
LONGEST_TOKEN = 20  # characters of JSON that make no sense without the last one, beside strings and numbers
DEEP = 100  # brackets
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
    while line := file.readline(limits.MAX_LINE + 1):
        number += 1
        if len(line) > limits.MAX_LINE:
            problem = f"{path}, line {number} is longer than {limits.MAX_LINE:,} characters"
            raise DataError(f"{problem}; give a table with one document per row, and cut documents of that size.")
        yield number, line


def known_encoding(name: str) -> str:
    """The canonical name of a text encoding."""
    try:
        "".encode(name)
        io.TextIOWrapper(io.BytesIO(), encoding=name)
        return codecs.lookup(name).name
    except (LookupError, TypeError, ValueError):
        hint = suggest(str(name), sorted(set(aliases.values())))
        raise InputError(f"encoding {describe(name)} is unknown; give one such as 'cp1252' or 'utf-16'.{hint}") from None


def stream_table(path: Path, kind: str, encoding: str = UTF_8) -> tuple[list[str], Rows]:
    """The columns, and the rows with their line numbers."""
    if kind == "parquet":
        return stream_parquet(path)
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
        return stream_parquet(path, rows)[1]
    return _json_objects(path, encoding) if kind == "jsonl" else stream_table(path, kind, encoding)[1]


def read_names(path: Path, kind: str, encoding: str) -> list[str]:
    """The columns; for JSON Lines, the keys of all objects."""
    if kind != "jsonl":
        return stream_table(path, kind, encoding)[0]
    columns: dict[str, None] = {}
    held = UnpackedSize.of(path, [path])
    for _, row in _json_objects(path, encoding):  # the whole file: a key may appear late
        if isinstance(row, dict) and not columns.keys() >= row.keys():
            new = {key: None for key in row if key not in columns}
            held.add(size_of(new))
            columns |= new
    return list(columns)


# ---- CSV --------------------------------------------------------------------------------------------------------------


def csv_table(path: Path, lines: Iterator[tuple[int, str]], encoding: str = UTF_8) -> tuple[list[str], Rows]:
    """The columns and rows of numbered lines of CSV; undecodable bytes are lone surrogates. path: for messages."""
    number, first = next(((number, line) for number, line in lines if line.strip()), (0, None))
    if first is None:
        raise DataError(f"{path} is empty; give a table with a header row.")
    unquoted = re.sub(r'"[^"]*"', "", first)
    delimiter = max(("\t", ";", ",", "|"), key=lambda mark: (unquoted.count(mark), mark == ","))
    if unquoted.count(delimiter) >= limits.MAX_VALUES:
        raise DataError(f"{path} has more than {limits.MAX_VALUES:,} columns; leave out those that are not needed.")
    try:
        columns = [column.strip() for column in next(csv.reader([first], delimiter=delimiter))]
    except csv.Error as error:
        raise DataError(f"the first row of {path} cannot be read: {error}.") from None
    if any(map(_has_bad_bytes, columns)):
        raise DataError(f"the first row of {path} is not {encoding}; save the file as UTF-8, or give its --encoding.")
    if len(set(columns)) < len(columns):
        twice = next(column for column, n_times in Counter(columns).items() if n_times > 1)
        raise DataError(f"{path} has two columns named {twice[:40]!r}; rename one of them.")
    return columns, _csv_rows(path, lines, number, columns, delimiter, encoding)


def _csv_rows(
    path: Path, lines: Iterator[tuple[int, str]], header: int, columns: list[str], delimiter: str, encoding: str
) -> Rows:
    csv.field_size_limit(limits.MAX_CELL)
    source, last = str(path), header  # the last line that the reader consumed
    size = n_cells = 0  # of the row so far; cells are counted once there may be many

    def consumed() -> Iterator[str]:
        nonlocal last, size, n_cells
        for number, line in lines:
            last = number
            size += len(line)
            if size > limits.MAX_VALUES:
                n_cells += line.count(delimiter)
                _refuse_long_row(path, start, size, n_cells)
            yield line

    reader = csv.reader(consumed(), delimiter=delimiter, strict=True)
    while True:
        start, size, n_cells = last + 1, 0, 0
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
                raise DataError(
                    f"{path}, line {start}: a cell has more than {limits.MAX_CELL:,} characters; {advice}."
                ) from None
            yield start, BadRow(source, start, str(error))
            continue
        row, fits = dict(zip(columns, cells, strict=False)), len(cells) == len(columns)
        if fits and not any(map(_has_bad_bytes, cells)):
            yield start, row
        elif cells:
            reason = f"not {encoding.upper()}" if fits else f"{len(cells)} cells, but {len(columns)} columns"
            yield start, BadRow(source, start, reason, {name: _readable(cell) for name, cell in row.items()})


def _refuse_long_row(path: Path, start: int, size: int, n_cells: int) -> None:
    """Refuse a row that a cell may continue on the next line for ever. start: its first line."""
    if size > limits.MAX_LINE or n_cells > limits.MAX_VALUES:
        most = f"{limits.MAX_LINE:,} characters" if size > limits.MAX_LINE else f"{limits.MAX_VALUES:,} cells"
        advice = "close its quotes if they are open, or cut documents of that size"
        raise DataError(f"{path}, line {start}: a row has more than {most}; {advice}.")


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
        text = io.TextIOWrapper(file, encoding="utf-8-sig" if encoding == UTF_8 else encoding, newline="")
        try:
            for number, (row, as_text) in enumerate(_list_elements(path, text), start=1):
                yield number, _checked_object(path, number, row, as_text)
        except DataError:
            raise
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path} is not a valid JSON list: {str(error)[:80]}.") from None


def _list_elements(path: Path, file: IO[str]) -> Iterator[tuple[Any, str]]:
    """The elements of a JSON list, each with its text; only a part of the list is in memory. path: for messages."""
    decode = json.JSONDecoder().raw_decode
    text, place, number, mark = file.read(CHUNK).lstrip(), 1, 1, ","  # the bracket that opens the list comes first
    if not text.startswith("["):
        raise ValueError("it does not begin with a bracket")
    while mark == ",":
        place = _end_of_spaces(text, place)
        try:
            row, end = decode(text, place)
            stop = _end_of_spaces(text, end)
            mark, problem = text[stop : stop + 1], "neither a comma nor a bracket follows"
        except json.JSONDecodeError as error:
            mark, problem = "", error.msg
            stop = len(text) if error.msg.startswith("Unterminated") else error.pos
        if mark in (",", "]"):
            yield row, text[place:end]
            place, number = stop + 1, number + 1
        elif number == 1 and text.startswith("]", place):
            place, mark = place + 1, "]"
        else:  # what is wrong at the end of the text may be right with more text
            is_at_end, text, place, mark = stop > len(text) - LONGEST_TOKEN, text[place:], 0, ","
            if not is_at_end or not (more := _next_text(path, file, number, len(text))):
                raise ValueError(f"{problem} in element {number}")
            text += more
            _refuse_many_values(f"{path}: object {number}", text)
    if text[place:].strip() or any(chunk.strip() for chunk in iter(lambda: file.read(CHUNK), "")):
        raise ValueError("something follows the list")


def _next_text(path: Path, file: IO[str], number: int, length: int) -> str:
    """More text of an element that is cut: as much again, so that it is not decoded too often. length: of what is there."""
    if length > limits.MAX_LINE:
        problem = f"{path}: object {number} is longer than {limits.MAX_LINE:,} characters"
        raise DataError(f"{problem}; cut documents of that size, and see that the list is valid JSON.")
    return file.read(max(CHUNK, length))


def _end_of_spaces(text: str, place: int) -> int:
    return SPACES.match(text, place).end()  # type: ignore[union-attr]  # it matches anything


def _refuse_many_values(place: str, text: str) -> None:
    """Refuse an object that would take far more memory than its text, before it is decoded."""
    if has_too_many_values(text):
        raise DataError(f"{place} has more than {limits.MAX_VALUES:,} values; leave out those that are not needed.")


def _json_lines(path: Path, encoding: str) -> Iterator[tuple[int, bytes]]:
    """Lines as UTF-8 bytes."""
    if encoding == UTF_8:
        with open_binary(path) as file:
            for number, raw in numbered_lines(path, file):
                yield number, raw.removeprefix(codecs.BOM_UTF8)
    else:
        for number, line in _decoded_lines(path, encoding):
            yield number, line.encode("utf-8", "surrogatepass")  # which decoding refuses, so that the row is a bad one


def json_row(path: Path, number: int, line: bytes, encoding: str = UTF_8) -> Row | BadRow:
    """One line of JSON Lines."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return BadRow(str(path), number, f"not {encoding.upper()}")
    _refuse_many_values(f"{path}, line {number}", text)
    try:
        return _checked_object(path, number, json.loads(text), text)
    except (ValueError, RecursionError):
        return BadRow(str(path), number, "not valid JSON")


def _checked_object(path: Path, number: int, row: Any, text: str) -> Row | BadRow:
    """The row, if it is an object of valid text. text: what it was decoded from."""
    if not isinstance(row, dict):
        return BadRow(str(path), number, "not a JSON object")
    if _may_be_bad(text) and _has_bad_bytes(json.dumps(row, ensure_ascii=False)):
        cells = {_readable(name): _readable(value) for name, value in row.items() if isinstance(value, str)}
        return BadRow(str(path), number, "a lone surrogate, which is not valid text", cells)
    return row


def _may_be_bad(text: str) -> bool:
    """Whether an object may hold a lone surrogate, or may be nested so deeply that it cannot be written again."""
    has_surrogate = ("\\u" in text and ESCAPED_SURROGATE.search(text) is not None) or _has_bad_bytes(text)
    return has_surrogate or text.count("[") + text.count("{") > DEEP
