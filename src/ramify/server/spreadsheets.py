"""A spreadsheet as CSV; it is read in a process of its own, with a limit of memory and time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ramify.data import BadRow
from ramify.data.spreadsheets import SheetLimits, stream_spreadsheet
from ramify.server.errors import ApiError

MOST_BYTES = 1 << 25  # of a spreadsheet
LIMITS = SheetLimits(megabytes=512, by_size=0, seconds=120)
PIECE = 1 << 16  # bytes of an answer that are sent at a time


def write_sheet(path: Path, sheet: str | None, file: IO[bytes], most: int) -> None:
    """Write a sheet as CSV in UTF-8. most: bytes that it may have."""
    columns, rows = stream_spreadsheet(path, sheet, LIMITS)
    file.write(_line(columns))
    for _, row in rows:
        cells = row.cells if isinstance(row, BadRow) else row
        file.write(_line([cells.get(name, "") for name in columns]))
        if file.tell() > most:
            raise ApiError(413, "too-large", f"the sheet has more than {most:,} bytes as CSV; save it as CSV, in parts.")


def pieces_of(file: IO[bytes]) -> Iterator[bytes]:
    """The content of a file, which is closed afterwards."""
    with file:
        file.seek(0)
        while piece := file.read(PIECE):
            yield piece


def _line(cells: list[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue().encode("utf-8", "replace")
