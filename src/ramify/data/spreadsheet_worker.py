"""A process of its own that reads one sheet of a spreadsheet, and writes its rows as JSON to standard output.

A spreadsheet is packed XML: a small file may stand for any number of cells, and may be made to break the reader. So it is read
here, with a limit of memory and time that the system enforces, and not in the process that asked for it. Run as a script, so
that it starts without Ramify; python-calamine, the reader, is imported nowhere else.

    python spreadsheet_worker.py FILE SHEET MEGABYTES SECONDS     SHEET is empty for the only one that has cells

The first line is an object: {"sheet", "rows"}, or {"problem", "sheets"}; each other line is a list of rows.
"""

import json
import sys
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Any

ROWS = 500  # of a line


def main(path: str, wanted: str, megabytes: int, seconds: int) -> None:
    """Write the rows of a sheet, or what is in the way."""
    _limit(megabytes << 20, seconds)
    try:
        import python_calamine
    except ImportError:
        _write({"problem": "missing"})
        return
    try:
        with open(path, "rb") as file:  # its name may say another format
            book = python_calamine.CalamineWorkbook.from_filelike(file)
        names = [name for name in book.sheet_names if name == wanted] if wanted else _visible(book)
        sheets = {name: book.get_sheet_by_name(name) for name in names}
        full = [name for name, sheet in sheets.items() if sheet.start is not None] or list(sheets)[:1]
    except MemoryError:
        _write({"problem": "memory"})
        return
    except Exception as error:  # the reader has many kinds, and all mean a damaged file
        is_locked = isinstance(error, python_calamine.PasswordError)
        _write({"problem": "password" if is_locked else "damaged", "why": str(error)[:200]})
        return
    if len(full) != 1:
        _write({"problem": "sheets", "sheets": full or book.sheet_names})
        return
    sheet = sheets[full[0]]
    _write({"sheet": full[0], "rows": 0 if sheet.start is None else sheet.total_height + 1})
    _write_rows(sheet)


def _visible(book: Any) -> list[str]:
    """The sheets that a person sees; all, where all are hidden."""
    shown = [sheet.name for sheet in book.sheets_metadata if str(sheet.visible).endswith(".Visible")]
    return shown or list(book.sheet_names)


def _write_rows(sheet: Any) -> None:
    """Write the rows in blocks; a cell that spans rows is the cell of each of them."""
    tall: dict[tuple[int, int], int] = {}  # the top row of the cells that others above them cover
    for (top, column), (bottom, _) in sheet.merged_cell_ranges or ():
        tall |= {(row, column): top for row in range(top + 1, min(bottom, sheet.total_height) + 1)}
    above: dict[tuple[int, int], str] = {}
    starts = {(top, column) for (_, column), top in tall.items()}
    block: list[list[str]] = []
    for number, row in enumerate(sheet.iter_rows() if sheet.start is not None else ()):
        cells = [_as_text(cell) for cell in row]
        for column in range(len(cells)) if tall else ():
            if (number, column) in starts:
                above[number, column] = cells[column]
            elif (number, column) in tall:
                cells[column] = above.get((tall[number, column], column), "")
        block.append(cells)
        if len(block) == ROWS:
            _write(block)
            block = []
    _write(block)


def _limit(size: int, seconds: int) -> None:
    """Let the system end this process when it takes too much; not every system can."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _as_text(cell: Any) -> str:
    """A cell as a person reads it."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ")
    return cell.isoformat() if isinstance(cell, (date, time)) else str(cell) if isinstance(cell, (int, timedelta)) else ""


def _write(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
