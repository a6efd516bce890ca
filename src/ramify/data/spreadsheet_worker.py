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
        book = python_calamine.CalamineWorkbook.from_path(path)
        sheets = {name: book.get_sheet_by_name(name) for name in book.sheet_names if wanted in ("", name)}
        full = [name for name, sheet in sheets.items() if sheet.end is not None] or list(sheets)[:1]
    except MemoryError:
        _write({"problem": "memory"})
        return
    except Exception as error:  # the reader has many kinds, and all mean a damaged file
        _write(
            {"problem": "password" if isinstance(error, python_calamine.PasswordError) else "damaged", "why": str(error)[:200]}
        )
        return
    if len(full) != 1:
        _write({"problem": "sheets", "sheets": full if full else book.sheet_names})
        return
    sheet = sheets[full[0]]
    _write({"sheet": full[0], "rows": 0 if sheet.end is None else sheet.end[0] + 1})
    block: list[list[str]] = []
    for row in sheet.iter_rows() if sheet.end is not None else ():
        block.append([_as_text(cell) for cell in row])
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
