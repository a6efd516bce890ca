"""Tables as data frames: of pandas if it is installed, else of polars, which Ramify needs anyway."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def library() -> str:
    """The library whose data frames users get."""
    return "pandas" if find_spec("pandas") is not None else "polars"


def frame(rows: Iterable[Mapping[str, Any]]) -> Any:
    """A data frame with one row per mapping; a column that a row lacks is empty there."""
    listed = list(rows)
    names = dict.fromkeys(name for row in listed for name in row)
    columns = {name: [_cell(row.get(name)) for row in listed] for name in names}
    if library() == "polars":
        return import_module("polars").DataFrame(columns, strict=False)
    return import_module("pandas").DataFrame(columns)


def _cell(value: Any) -> Any:
    """A value that both libraries store: tuples become lists."""
    return list(value) if isinstance(value, tuple) else value
