"""One JSON object that holds a whole table: a list of rows under a key, or what pandas writes with ``orient``."""

from __future__ import annotations

from typing import Any

BESIDE = ("count", "total", "next", "version")  # keys of plain values beside a list of rows
Rows = list[dict[str, Any]]


def rows_in(whole: dict[str, Any]) -> Rows | None:
    """The rows of a table in one object; None if the object is none.

    >>> rows_in({"columns": ["text", "label"], "data": [["late", "Orders"]]})
    [{'text': 'late', 'label': 'Orders'}]
    >>> rows_in({"text": {"0": "late"}, "label": {"0": "Orders"}}) == rows_in({"0": {"text": "late", "label": "Orders"}})
    True
    >>> rows_in({"data": [{"text": "late"}], "schema": {}}), rows_in({"text": "late", "data": [{}]})
    ([{'text': 'late'}], None)
    """
    if any(isinstance(value, (str, int, float)) for key, value in whole.items() if key not in BESIDE):
        return None
    return _split(whole) or _list_of_rows(whole) or _nested(whole)


def _split(whole: dict[str, Any]) -> Rows | None:
    """pandas' orient="split": names, and rows that are lists."""
    names, data = whole.get("columns"), whole.get("data")
    if not isinstance(names, list) or not isinstance(data, list) or not all(isinstance(name, str) for name in names):
        return None
    if not all(isinstance(row, list) and len(row) == len(names) for row in data):
        return None
    return [dict(zip(names, row, strict=True)) for row in data]


def _list_of_rows(whole: dict[str, Any]) -> Rows | None:
    """The only list of objects."""
    lists = [value for value in whole.values() if isinstance(value, list) and value and isinstance(value[0], dict)]
    return lists[0] if len(lists) == 1 else None


def _nested(whole: dict[str, Any]) -> Rows | None:
    """pandas' orient="columns", an object of cells for each column; or orient="index", an object of cells for each row."""
    parts = list(whole.values())
    if not parts or not all(isinstance(part, dict) and part.keys() == parts[0].keys() for part in parts):
        return None
    if any(isinstance(cell, (dict, list)) for part in parts for cell in part.values()):
        return None
    if whole.keys() and all(key.isdecimal() for key in whole):
        return parts
    if parts[0] and all(key.isdecimal() for key in parts[0]):
        return [{name: part[key] for name, part in whole.items()} for key in parts[0]]
    return None
