"""Whole blocks of CSV rows at once, for the columns that are wanted; a row that is not plain is read as in csv_tables."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ramify.data import limits
from ramify.data.corpus import BadRow
from ramify.data.csv_tables import Row, csv_layout, csv_rows, decoded_lines
from ramify.data.encodings import UTF_8, open_binary, to_utf_8
from ramify.errors import DataError
from ramify.native import read_csv_rows

BLOCK = 1 << 18  # bytes to read at a time; as short rows in Python, they take 25 times as much
MOST_HELD = 4 * limits.MAX_LINE  # bytes of a row, before the reader of single rows judges it
LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows of a table, column by column.

    lines: where they begin. cells: of the wanted columns, by name; equal ones may be one string. n_bytes: of all columns.
    may_have_blanks: False where no cell is empty or only white space.
    """

    lines: NDArray[np.int64]
    cells: dict[str, list[str]]
    n_bytes: int
    may_have_blanks: bool

    def rows(self) -> Iterator[tuple[int, Row | BadRow]]:
        """The same, row by row."""
        for line, cells in zip(self.lines.tolist(), zip(*self.cells.values(), strict=True), strict=True):
            yield line, dict(zip(self.cells, cells, strict=True))


Items = Iterator[RowBlock | tuple[int, Row | BadRow]]


def stream_blocks(path: Path, encoding: str, wanted: Sequence[str]) -> Items:
    """The rows of a CSV file in their order: blocks of plain ones, and others one by one.

    wanted: columns of the blocks. Rows of several cells that are all empty are left out of blocks.
    """
    layout, _ = csv_layout(path, decoded_lines(path, encoding), encoding)
    numbers = np.asarray([layout.columns.index(name) for name in wanted], dtype=np.int32)
    delimiter, width = layout.delimiter.encode(), len(layout.columns)
    with open_binary(path) as raw:
        held = _Held(path, _utf_8_blocks(path, raw, encoding))
        for _ in zip(range(layout.header), held.lines(), strict=False):
            pass
        while True:
            given = (held.data, held.start, delimiter, width, numbers, limits.MAX_CELL, held.is_last)
            columns, lines, size, n_lines, is_odd, has_blank = read_csv_rows(*given)
            if len(lines):
                yield RowBlock(lines + held.line, dict(zip(wanted, columns, strict=True)), size, has_blank)
            held.skip(size, n_lines)
            if is_odd or held.n_bytes > MOST_HELD:
                odd = next(csv_rows(path, held.lines(), replace(layout, header=held.line - 1), encoding), None)
                if odd is None:
                    return
                yield odd
            elif held.is_last:
                yield from csv_rows(path, held.lines(), replace(layout, header=held.line - 1), encoding)  # a quote left open
                return
            else:
                held.fill()


class _Held:
    """Bytes of a table that were read and not yet used. line: the number of the first."""

    def __init__(self, path: Path, blocks: Iterator[bytes]) -> None:
        self._path, self._blocks = path, blocks
        self.data, self.start, self.line, self.is_last = b"", 0, 1, False
        self.fill()

    @property
    def n_bytes(self) -> int:
        """How many are held."""
        return len(self.data) - self.start

    def fill(self) -> None:
        """Read one block more."""
        more = next(self._blocks, None)
        self.is_last = more is None
        self.data, self.start = self.data[self.start :] + (more or b""), 0

    def skip(self, size: int, n_lines: int) -> None:
        """Some bytes were used."""
        self.start, self.line = self.start + size, self.line + n_lines

    def lines(self) -> Iterator[tuple[int, str]]:
        """Lines with their numbers, which are used as soon as they are given."""
        while True:
            end = LINE_END.search(self.data, self.start)
            is_sure = end is not None and (end.end() < len(self.data) or end[0] != b"\r")
            if not is_sure and not self.is_last:
                if self.n_bytes > MOST_HELD:
                    problem = f"{self._path}, line {self.line} is longer than {limits.MAX_LINE:,} characters"
                    raise DataError(f"{problem}; give a table with one document per row, and cut documents of that size.")
                self.fill()
                continue
            stop = len(self.data) if end is None else end.end()
            if stop == self.start:
                return
            number, text = self.line, self.data[self.start : stop].decode(UTF_8, "surrogateescape")
            self.skip(stop - self.start, 1)
            yield number, text


def _utf_8_blocks(path: Path, raw: IO[bytes], encoding: str) -> Iterator[bytes]:
    """The bytes of a file, in UTF-8; what cannot be decoded stays invalid."""
    if encoding == UTF_8:
        first = raw.read(BLOCK)
        yield first.removeprefix(codecs.BOM_UTF8)
        while block := raw.read(BLOCK):
            yield block
        return
    yield from to_utf_8(path, iter(lambda: raw.read(BLOCK), b""), encoding)
