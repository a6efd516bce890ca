"""CSV and TSV with a header row, as streams of rows with their lines."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, takewhile
from pathlib import Path
from typing import IO, Any

from ramify.data import limits
from ramify.data.corpus import BadRow
from ramify.data.encodings import UTF_8, decode_errors, has_bad_bytes, open_binary, readable
from ramify.data.headers import DELIMITERS, FIRST_ROWS, ColumnNames, find_csv_header, named_columns
from ramify.errors import DataError

DELIMITER_LINE = re.compile(r"\ufeff?\"?sep=([,;|\t])\"?\s*", re.IGNORECASE)
MOST_FIRST = 1 << 16  # characters of the lines that the header is looked for in
Row = dict[str, Any]
Rows = Iterator[tuple[int, Row | BadRow]]


def numbered_lines(path: Path, file: IO[Any]) -> Iterator[tuple[int, Any]]:
    """The lines of a file, numbered from 1; a line that is too long is refused before it is whole. path: for messages."""
    number = 0
    while line := file.readline(limits.MAX_LINE + 1):
        number += 1
        if len(line) > limits.MAX_LINE:
            problem = f"{path}, line {number} is longer than {limits.MAX_LINE:,} characters"
            raise DataError(f"{problem}; give a table with one document per row, and cut documents of that size.")
        yield number, line


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """How a table is written. header: the line of the header row, or any other behind which rows are read."""

    columns: ColumnNames
    delimiter: str
    header: int


def read_csv(
    path: Path, lines: Iterator[tuple[int, str]], encoding: str = UTF_8, n_first: int = FIRST_ROWS
) -> tuple[ColumnNames, Rows]:
    """The columns and rows of numbered lines of CSV; undecodable bytes are lone surrogates. path: for messages.

    n_first: lines that may be read to find the header; 1 where lines come one by one, and the header first.
    """
    layout, rest = csv_layout(path, lines, encoding, n_first)
    return layout.columns, csv_rows(path, rest, layout, encoding)


def csv_layout(
    path: Path, lines: Iterator[tuple[int, str]], encoding: str = UTF_8, n_first: int = FIRST_ROWS
) -> tuple[CsvLayout, Iterator[tuple[int, str]]]:
    """The layout of a table, from its first lines, and the lines behind the header."""
    first = _first_lines(lines, n_first)
    told = DELIMITER_LINE.fullmatch(first[0][1]) if first else None
    if told is not None:  # as Excel writes it
        first = _first_lines(chain(first[1:], lines), n_first)
    if not first:
        raise DataError(f"{path} is empty; give a table with a header row.")
    if len(first[0][1]) > limits.MAX_VALUES and _count_columns(first[0][1]) > limits.MAX_VALUES:
        raise DataError(f"{path} has more than {limits.MAX_VALUES:,} columns; leave out those that are not needed.")
    short = list(takewhile(lambda line: len(line) <= MOST_FIRST, (line for _, line in first)))
    try:
        header = find_csv_header(short or [first[0][1]], told and told[1])
    except csv.Error as error:
        raise DataError(f"the first row of {path} cannot be read: {error}.") from None
    if any(map(has_bad_bytes, header.cells)):
        raise DataError(f"the first row of {path} is not {encoding}; save the file as UTF-8, or give its --encoding.")
    columns = named_columns(path, header.cells, header.above)
    rest = chain(first[header.n_lines :], lines)
    return CsvLayout(columns, header.delimiter, first[header.n_lines - 1][0]), rest


def _count_columns(line: str) -> int:
    unquoted = re.sub(r'"[^"]*"', "", line)
    return max(unquoted.count(mark) for mark in DELIMITERS) + 1


def _first_lines(lines: Iterator[tuple[int, str]], most: int) -> list[tuple[int, str]]:
    """The first lines that are not blank, and those that follow, to find the header in; fewer where they are long."""
    first: list[tuple[int, str]] = []
    size = 0
    for number, line in lines:
        if first or line.strip():
            first.append((number, line))
            size += len(line)
        if len(first) == most or size > MOST_FIRST:
            break
    return first


def csv_rows(path: Path, lines: Iterator[tuple[int, str]], layout: CsvLayout, encoding: str) -> Rows:
    """The rows in numbered lines behind the header; no more lines are used than a row needs."""
    csv.field_size_limit(limits.MAX_CELL)
    columns, delimiter = layout.columns, layout.delimiter
    source, last = str(path), layout.header  # the last line that the reader consumed
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
        while len(cells) > len(columns) and not cells[-1]:  # empty cells beside the table
            cells.pop()
        row, fits = dict(zip(columns, cells, strict=False)), len(cells) == len(columns)
        if fits and not any(map(has_bad_bytes, cells)):
            yield start, row
        elif cells:
            reason = f"not {encoding.upper()}" if fits else f"{len(cells)} cells, but {len(columns)} columns"
            yield start, BadRow(source, start, reason, {name: readable(cell) for name, cell in row.items()})


def _refuse_long_row(path: Path, start: int, size: int, n_cells: int) -> None:
    """Refuse a row that a cell may continue on the next line for ever. start: its first line."""
    if size > limits.MAX_LINE or n_cells > limits.MAX_VALUES:
        most = f"{limits.MAX_LINE:,} characters" if size > limits.MAX_LINE else f"{limits.MAX_VALUES:,} cells"
        advice = "close its quotes if they are open, or cut documents of that size"
        raise DataError(f"{path}, line {start}: a row has more than {most}; {advice}.")


def decoded_lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; undecodable bytes become lone surrogates, which mark bad cells."""
    with open_binary(path) as raw:
        name = "utf-8-sig" if encoding == UTF_8 else encoding
        text = io.TextIOWrapper(raw, encoding=name, errors=decode_errors(encoding), newline="")
        try:
            yield from numbered_lines(path, text)
        except UnicodeError as error:
            why = error.reason if isinstance(error, UnicodeDecodeError) else error
            raise DataError(
                f"{path} is not valid {encoding.upper()}: {why}; save it again as UTF-8, or give its --encoding."
            ) from None
