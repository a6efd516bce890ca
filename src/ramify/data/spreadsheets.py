"""Spreadsheets (Excel, OpenDocument) as streams of rows; they are read in a process of its own: see the worker."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ramify.data import limits, spreadsheet_worker
from ramify.data.corpus import BadRow
from ramify.data.csv_tables import Rows
from ramify.data.encodings import open_binary
from ramify.data.headers import FIRST_ROWS, ColumnNames, find_header, named_columns, texts_of
from ramify.errors import DataError, InputError, suggest

ZIP, OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # how .xlsx, .ods and .xlsb begin, and .xls
LONGEST_LINE = 1 << 28  # characters of a block of rows


@dataclass(frozen=True, slots=True)
class SheetLimits:
    """What the reader may take. megabytes: of memory, and so many times the size of the file. seconds: of computing."""

    megabytes: int = 1024
    by_size: int = 100
    seconds: int = 600


LIMITS = SheetLimits()


def stream_spreadsheet(path: Path, sheet: str | None = None, most: SheetLimits | None = None) -> tuple[ColumnNames, Rows]:
    """The columns and rows of a sheet: the one that is named, or the only one that has cells."""
    _refuse_password(path)
    rows = _rows(path, sheet, most or LIMITS)
    first = list(islice(((number, row) for number, row in rows if number > 1 or any(map(str.strip, row))), FIRST_ROWS))
    if not any(cell.strip() for _, row in first for cell in row):
        raise DataError(f"{path} is empty; give a sheet with a header row.")
    position = find_header([row for _, row in first])
    number, names = first[position]
    columns = named_columns(path, names, texts_of([row for _, row in first[:position]]))
    return columns, _as_dicts(path, chain(first[position + 1 :], rows), columns, number)


def _refuse_password(path: Path) -> None:
    """Refuse a workbook that Excel has encrypted: the ZIP file is in one stream of an OLE file."""
    with open_binary(path) as file:
        if file.read(len(OLE)) == OLE and "EncryptedPackage".encode("utf-16-le") in file.read(1 << 20):
            raise _problem(path, None, {"problem": "password"})


def _as_dicts(path: Path, rows: Iterator[tuple[int, list[str]]], columns: list[str], header: int) -> Rows:
    """The rows below the header; empty ones are skipped, and cells beside the header are bad."""
    width = len(columns)
    for number, cells in rows:
        if number > header and any(cells):
            named = dict(zip(columns, cells, strict=False))
            if any(map(str.strip, cells[width:])):
                yield number, BadRow(str(path), number, f"a cell beside the {width} columns", named)
            else:
                yield number, {name: named.get(name, "") for name in columns}


def _rows(path: Path, sheet: str | None, most: SheetLimits) -> Iterator[tuple[int, list[str]]]:
    """All rows with their numbers."""
    with _reader(path, sheet, most) as lines:
        next(lines)  # what the sheet is called
        number = 0
        for block in lines:
            for cells in block:
                number += 1
                if sum(map(len, cells)) > limits.MAX_LINE:
                    raise DataError(f"{path}, row {number} is longer than {limits.MAX_LINE:,} characters; cut its texts.")
                yield number, cells


@contextmanager
def _reader(path: Path, sheet: str | None, most: SheetLimits) -> Iterator[Iterator[Any]]:
    """What the reading process writes; raises what is in the way."""
    if sheet is not None and "\x00" in sheet:  # which cannot be given to a process
        raise InputError(f"{path} has no sheet {sheet[:40]!r}; no name of a sheet has a zero byte.")
    try:
        megabytes = most.megabytes + most.by_size * (path.stat().st_size >> 20)
        with open(path, "rb"):
            pass
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from None
    command = [
        sys.executable,
        "-I",
        spreadsheet_worker.__file__,
        str(path.absolute()),
        sheet or "",
        str(megabytes),
        str(most.seconds),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8") as process:
        assert process.stdout is not None
        try:
            yield _values(path, sheet, process)
        finally:
            process.stdout.close()
            process.kill()


def _values(path: Path, sheet: str | None, process: subprocess.Popen[str]) -> Iterator[Any]:
    assert process.stdout is not None
    has_told = False
    while line := process.stdout.readline(LONGEST_LINE):
        value = json.loads(line) if line.endswith("\n") else None
        if value is None or (isinstance(value, dict) and "problem" in value):
            raise _problem(path, sheet, value or {"problem": "memory"})
        has_told = has_told or value == []
        yield value
        if isinstance(value, list) and len(value) < spreadsheet_worker.ROWS:
            return
    raise _problem(path, sheet, {"problem": "memory"})  # the system has ended it


def _problem(path: Path, sheet: str | None, found: dict[str, Any]) -> DataError | InputError:
    what, sheets = found["problem"], found.get("sheets", [])
    if what == "missing":
        return InputError(
            f"{path} is a spreadsheet, and reading it needs python-calamine; install ramify[excel], or save it as CSV."
        )
    if what == "sheets":
        names = ", ".join(repr(str(name)[:40]) for name in sheets[:20])
        if sheet is not None:
            return InputError(f"{path} has no sheet {sheet!r}; its sheets are {names}.{suggest(sheet, sheets)}")
        return DataError(f"{path} has {len(sheets)} sheets with cells: {names}; name one of them with --sheet.")
    if what == "password":
        return DataError(f"{path} is protected by a password; save it without one.")
    if what == "memory":
        return DataError(f"{path} needs more memory or time than a spreadsheet of its size may take; save the sheet as CSV.")
    why = str(found.get("why") or "it is damaged").rstrip(".").replace("Cannot detect file format", "it is damaged, or none")
    return DataError(f"{path} cannot be read as a spreadsheet: {why}; save the sheet again, or as CSV.")
