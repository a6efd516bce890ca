"""Tables in memory: data frames of pandas and polars, tables of pyarrow, data sets of Hugging Face, and dictionaries of lists.

They are known by what they can do, and none of the libraries is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ramify.data.class_names import class_names_of, name_classes
from ramify.data.csv_tables import Row
from ramify.errors import DataError, InputError

BLOCK = 1 << 14  # rows whose cells are made at a time
SOURCE = "the table"
LIBRARIES = ("pandas", "polars", "pyarrow", "datasets")


class _FrameKind(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return library_of(value) is not None


class Frame(metaclass=_FrameKind):
    """Any table in memory, for type hints."""


def library_of(value: Any) -> str | None:
    """pandas, polars, pyarrow, datasets or dict for a table with columns; None for anything else."""
    if isinstance(value, Mapping):
        is_table = type(value).__module__.partition(".")[0] != "scipy" and len(value) > 0
        is_table = is_table and all(isinstance(name, str) for name in value) and all(map(_is_column, value.values()))
        return "dict" if is_table else None
    library = type(value).__module__.partition(".")[0]
    has_columns = hasattr(value, "columns") or hasattr(value, "column_names")
    return library if library in LIBRARIES and has_columns and len(getattr(value, "shape", (0, 0))) == 2 else None


def refuse_splits(value: Any) -> None:
    """Refuse a collection of tables, such as the splits of a data set, with their names."""
    if isinstance(value, dict) and value and all(library_of(each) is not None for each in value.values()):
        first = next(iter(value))
        raise InputError(
            f"there are {len(value)} tables: {', '.join(map(repr, value))}; give one of them, such as [{first!r}]."
        )


def raw_names(frame: Any) -> list[Any]:
    """The columns, as the table names them."""
    if library_of(frame) == "dict":
        return list(frame)
    return list(frame.column_names) if hasattr(frame, "column_names") else list(frame.columns)


def column_names(frame: Any) -> list[str]:
    """The columns; refuses names that are no strings, and those that come twice."""
    names = raw_names(frame)
    if odd := [name for name in names if not isinstance(name, str)]:
        raise DataError(f"column {str(odd[0])[:40]!r} of the table has no string as its name; rename it.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"the table has two columns named {twice[:40]!r}; rename one of them.")
    return names


def n_rows(frame: Any) -> int:
    """The number of rows; refuses a dictionary with columns of different lengths."""
    if library_of(frame) != "dict":
        return int(frame.num_rows if hasattr(frame, "num_rows") else len(frame))
    lengths = {name: len(column) for name, column in frame.items()}
    if len(set(lengths.values())) > 1:
        (one, n), (other, m) = list({length: name for name, length in lengths.items()}.items())[:2]
        raise DataError(f"column {n!r} has {one} rows, but column {m!r} has {other}; give columns of one length.")
    return next(iter(lengths.values()))


def stream_frame(frame: Any, wanted: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """The rows with the wanted columns, numbered from 1."""
    total = n_rows(frame)
    for start in range(0, total, BLOCK):
        columns = [_cells(frame, name, start, min(start + BLOCK, total)) for name in wanted]
        for number, cells in enumerate(zip(*columns, strict=True), start=start + 1):
            yield number, dict(zip(wanted, cells, strict=True))


def like_frame(frame: Any, columns: dict[str, list[Any]]) -> Any:
    """A table of the same library with other columns; that of pandas has the same index.

    >>> like_frame({"text": ["a"]}, {"predicted": ["b"]})
    {'predicted': ['b']}
    """
    library, kind = library_of(frame), type(frame)
    if library == "pandas":
        return kind(columns, index=frame.index)
    if library == "pyarrow":
        return kind.from_pydict(columns)
    return kind.from_dict(columns) if library == "datasets" else kind(columns)


def with_columns(frame: Any, columns: dict[str, list[Any]]) -> Any:
    """The table with further columns behind its own; of a data set, a dictionary of all columns."""
    library = library_of(frame)
    if library == "pandas":
        return frame.assign(**columns)
    if library == "polars":
        return frame.with_columns(**{name: _as_series(frame, name, cells) for name, cells in columns.items()})
    given = {name: _cells(frame, name, 0, n_rows(frame)) for name in column_names(frame)}
    return like_frame(frame, given | columns)


def _as_series(frame: Any, name: str, cells: list[Any]) -> Any:
    return type(frame)({name: cells})[name]


def _cells(frame: Any, name: str, start: int, stop: int) -> list[Any]:
    """Some cells of a column as plain values; NaN becomes None."""
    library = library_of(frame)
    if library == "dict":
        cells = list(frame[name][start:stop])
    elif library == "pandas":
        cells = frame[name].iloc[start:stop].tolist()
    elif library == "polars":
        cells = frame[name].slice(start, stop - start).to_list()
    elif library == "pyarrow":
        cells = frame.column(name).slice(start, stop - start).to_pylist()
    else:
        cells = list(frame[start:stop][name])
        if (names := class_names_of(frame, name)) is not None:
            return [name_classes(cell, names) for cell in cells]
    return [None if _is_nan(cell) else cell for cell in cells]


def _is_nan(cell: Any) -> bool:
    """Whether a cell is NaN, NaT or pandas' NA."""
    return (isinstance(cell, float) and cell != cell) or type(cell).__name__ in ("NAType", "NaTType")


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and hasattr(value, "__getitem__") and not isinstance(value, (str, bytes, Mapping))
