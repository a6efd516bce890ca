"""JSON Lines, or one JSON list of objects, as streams of rows with their lines."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

from ramify.data import limits
from ramify.data.corpus import BadRow
from ramify.data.csv_tables import Row, Rows, decoded_lines, numbered_lines
from ramify.data.encodings import UTF_8, has_bad_bytes, open_binary, readable
from ramify.data.json_containers import rows_in
from ramify.data.limits import has_too_many_values
from ramify.errors import DataError

CHUNK = 1 << 19  # characters of a JSON list to read at a time
ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
SPACES = re.compile(r"[ \t\r\n]*")  # of JSON
LONGEST_TOKEN = 20  # characters of JSON that make no sense without the last one, beside strings and numbers
DEEP = 100  # brackets
EXAMPLE = '{"text": "…", "label": "…"}'


def json_objects(path: Path, encoding: str) -> Rows:
    """The objects of JSON Lines, or of a JSON list, numbered from 1."""
    with open_binary(path) as file:
        start = file.read(4096).replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    if not start.startswith(b"["):
        lines = ((number, line) for number, line in _json_lines(path, encoding) if line.strip())
        first = next(lines, None)
        if first is not None and isinstance(json_row(path, *first, encoding), BadRow) and _is_open(first[1]):
            yield from _rows_of_object(path, encoding)
            return
        second = None if first is None else next(lines, None)
        row = None if first is None or second is not None else json_row(path, *first, encoding)
        if isinstance(row, dict) and (contained := rows_in(row)) is not None:
            yield from _checked_rows(path, contained)
            return
        for number, line in chain(filter(None, [first, second]), lines):
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


def _is_open(line: bytes) -> bool:
    """Whether a line begins an object that goes on below."""
    text = line.removeprefix(codecs.BOM_UTF8).strip()
    return text.startswith(b"{") and text.count(b"{") > text.count(b"}")


def _rows_of_object(path: Path, encoding: str) -> Rows:
    """The rows of a file that is one object, with the list of rows in it."""
    with open_binary(path) as file:
        text = file.read(limits.MAX_LINE + 1).decode("utf-8-sig" if encoding == UTF_8 else encoding, "replace")
    if len(text) > limits.MAX_LINE:
        raise DataError(f"{path} is one large JSON object; write one object per row, one per line (JSON Lines).")
    _refuse_many_values(str(path), text)
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON: {str(error)[:80]}.") from None
    if (rows := rows_in(whole)) is None:
        found = f"{path} is one JSON object, and not a list of rows"
        raise DataError(f"{found}; write a list of objects, or one object per line, such as {EXAMPLE}.")
    yield from _checked_rows(path, rows)


def _checked_rows(path: Path, rows: list[dict[str, Any]]) -> Rows:
    for number, row in enumerate(rows, start=1):
        yield number, _checked_object(path, number, row, json.dumps(row))


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
        raise ValueError("something follows the list; give one list of objects, or one object per line")


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
        for number, line in decoded_lines(path, encoding):
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
    if _may_be_bad(text) and has_bad_bytes(json.dumps(row, ensure_ascii=False)):
        cells = {readable(name): readable(value) for name, value in row.items() if isinstance(value, str)}
        return BadRow(str(path), number, "a lone surrogate, which is not valid text", cells)
    return row


def _may_be_bad(text: str) -> bool:
    """Whether an object may hold a lone surrogate, or may be nested so deeply that it cannot be written again."""
    has_surrogate = ("\\u" in text and ESCAPED_SURROGATE.search(text) is not None) or has_bad_bytes(text)
    return has_surrogate or text.count("[") + text.count("{") > DEEP
