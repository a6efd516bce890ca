"""Small spreadsheets for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import openpyxl


def write_xlsx(path: Path, sheets: Mapping[str, Sequence[Sequence[str]]]) -> Path:
    """A workbook with sheets of texts."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path
