"""Parquet files as streams of rows, in batches that fit into memory. The only file that imports polars.

A few bytes may stand for many: pages are packed, and equal texts share one copy in polars, but not in Python. So a batch is
chosen by the bytes of its pages, and measured before its rows are made.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, takewhile
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.data import limits
from ramify.data.parquet_pages import RowGroup, read_row_groups
from ramify.errors import DataError

MOST_ROWS, FEW_ROWS = 10_000, 32  # of a batch; and of one whose size is unknown
BATCH_SIZE = 1 << 26  # bytes of a batch in polars, and of the rows that are made from it at a time
CELL_SIZE, VALUE_SIZE = 40, 100  # bytes of a cell, and of a value in a list, beside the text itself
MAX_ROW = VALUE_SIZE * limits.MAX_VALUES  # bytes


def count_rows(path: Path) -> int:
    """The number of rows of a Parquet file, from its footer."""
    import polars

    with _parquet_errors(path):
        return int(polars.scan_parquet(path).select(polars.len()).collect().item())


def stream_parquet(path: Path, wanted: range | None = None) -> tuple[list[str], Iterator[tuple[int, dict[str, Any]]]]:
    """The columns, and the rows with their numbers from 1. wanted: a range of rows (default: all)."""
    import polars

    with _parquet_errors(path):
        table = polars.scan_parquet(path)
        columns = table.collect_schema().names()
    return columns, _rows(path, table, wanted)


def _rows(path: Path, table: Any, wanted: range | None) -> Iterator[tuple[int, dict[str, Any]]]:
    start, stop = (0, None) if wanted is None else (wanted.start, wanted.stop)
    groups = read_row_groups(path)
    while stop is None or start < stop:
        n_rows = FEW_ROWS if groups is None else _batch_length(groups, start)
        with _parquet_errors(path):
            batch = table.slice(start, n_rows if stop is None else min(n_rows, stop - start)).collect()
            ends = _part_ends(_row_sizes(path, batch, start))
        if not batch.height:
            return
        for first, end in zip([0, *ends], ends, strict=False):
            part = batch.slice(first, end - first)
            yield from enumerate(part.iter_rows(named=True), start=start + first + 1)
        start += batch.height


def _batch_length(groups: tuple[RowGroup, ...], start: int) -> int:
    """The number of rows from `start` that fit into a batch, if all rows of a row group have one size."""
    length = MOST_ROWS
    first = bisect_right(groups, start, key=lambda group: group.start + group.n_rows)  # that ends after the row
    for group in takewhile(lambda group: group.start < start + MOST_ROWS, islice(groups, first, None)):
        length = min(length, max(1, BATCH_SIZE * group.n_rows // max(1, group.size)))
    return length


def _part_ends(sizes: NDArray[np.int64]) -> list[int]:
    """Where to cut rows, so that those of a part have at most BATCH_SIZE together, or are one."""
    totals = np.cumsum(sizes)
    ends, before = [0], 0
    while ends[-1] < len(sizes):
        ends.append(max(ends[-1] + 1, int(np.searchsorted(totals, before + BATCH_SIZE, side="right"))))
        before = int(totals[ends[-1] - 1])
    return ends[1:]


def _row_sizes(path: Path, batch: Any, start: int) -> NDArray[np.int64]:
    """The bytes that each row takes in Python; refuses cells and rows that are too long."""
    import polars

    sizes = np.full(batch.height, CELL_SIZE * batch.width, dtype=np.int64)
    for column in batch.iter_columns():
        found = _cell_sizes(column)
        if found is None:
            continue
        sizes += found
        if column.dtype == polars.String and found.max(initial=0) > limits.MAX_CELL:  # bytes; there may be fewer characters
            lengths = column.str.len_chars().fill_null(0).to_numpy()
            _refuse_any(lengths > limits.MAX_CELL, path, start, f"has a cell of more than {limits.MAX_CELL:,} characters")
    _refuse_any(sizes > MAX_ROW, path, start, f"takes more than {MAX_ROW:,} bytes")
    return sizes


def _refuse_any(is_long: NDArray[np.bool_], path: Path, start: int, problem: str) -> None:
    if is_long.any():
        raise DataError(f"{path}, row {start + int(is_long.argmax()) + 1} {problem}; cut documents of that size.")


def _cell_sizes(column: Any) -> NDArray[np.int64] | None:
    """The bytes that each cell takes in Python beside CELL_SIZE; None if it takes no more."""
    import polars

    kind = column.dtype
    if kind == polars.Categorical or kind == polars.Enum:
        column, kind = column.cast(polars.String), polars.String
    if kind == polars.String or kind == polars.Binary:
        n_bytes = column.str.len_bytes() if kind == polars.String else column.bin.size()
        return np.asarray(n_bytes.fill_null(0).to_numpy(), dtype=np.int64)
    if kind == polars.Array:
        column, kind = column.arr.to_list(), polars.List
    if kind == polars.List:
        lengths: NDArray[np.int64] = column.list.len().fill_null(0).to_numpy().astype(np.int64)
        inner = _cell_sizes(column.filter(lengths > 0).explode())  # of their values, one after the other
        if inner is None:
            return VALUE_SIZE * lengths
        ends, totals = np.cumsum(lengths), np.append(np.int64(0), np.cumsum(inner))
        return np.asarray(VALUE_SIZE * lengths + totals[ends] - totals[ends - lengths])
    if kind == polars.Struct:
        sizes = np.full(len(column), VALUE_SIZE * len(column.struct.fields), dtype=np.int64)
        for name in column.struct.fields:
            found = _cell_sizes(column.struct.field(name))
            sizes += 0 if found is None else found
        return sizes
    return None


@contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    """Turn errors of polars into one sentence, also a panic, which it raises and prints where a file is damaged."""
    import polars

    try:
        with _panics_held_back():
            yield
    except (OSError, polars.exceptions.PolarsError) as error:
        first = str(error).split("\n", 1)[0][:120]
        raise DataError(f"{path} cannot be read as Parquet: {first}.") from None
    except polars.exceptions.PanicException:
        raise DataError(
            f"{path} cannot be read as Parquet: it is damaged. Restore it from a copy, or write it again."
        ) from None


_standard_error = Lock()


@contextmanager
def _panics_held_back() -> Iterator[None]:
    """Hold back what is written to standard error in this block, and write it afterwards, unless polars panics."""
    import polars

    with _standard_error, TemporaryFile() as held:
        has_panicked = False
        try:
            with _standard_error_in(held.fileno()):
                yield
        except polars.exceptions.PanicException:
            has_panicked = True
            raise
        finally:
            held.seek(0)
            if not has_panicked and (text := held.read()):
                os.write(2, text)


@contextmanager
def _standard_error_in(file: int) -> Iterator[None]:
    """Write the standard error of this process, also of native code, to a file."""
    try:
        real = os.dup(2)
    except OSError:  # there is none
        real = None
    if real is None:
        yield
        return
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(real, 2)
        os.close(real)
