"""One table in several files: a directory, or a pattern such as ``parts/*.parquet``; files are sorted by name."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ramify.data.csv_blocks import Items
from ramify.data.csv_tables import Rows
from ramify.data.encodings import open_binary
from ramify.data.folders import HIDDEN, natural_order
from ramify.data.json_tables import EXAMPLE
from ramify.data.parquet import count_rows
from ramify.data.tables import (
    TableFormat,
    find_format,
    format_remarks,
    is_file_set,
    list_names,
    read_names,
    stream_part,
    stream_wanted,
)
from ramify.errors import DataError
from ramify.parallel import choose_executor, is_distributed, stage
from ramify.persistence import is_model
from ramify.type_hints import checks_types

KINDS = {"csv": "CSV or TSV", "jsonl": "JSON", "parquet": "Parquet", "spreadsheet": "a spreadsheet", "fasttext": "fastText"}
START = 4096  # bytes to read to find out whether a file is empty


@dataclass(frozen=True, slots=True)
class FileSet:
    """Files with the same columns.

    source: the directory or pattern. n_rows: of each file, None if unknown (all but Parquet). remarks: how files were read.
    names: the columns of all files; objects of JSON Lines may lack some. format: of all; each file may have its own encoding.
    """

    source: str
    paths: tuple[Path, ...]
    n_rows: tuple[int | None, ...]
    names: tuple[str, ...]
    format: TableFormat
    remarks: tuple[str, ...] = ()

    def blocks(self, size: int) -> list[tuple[Path, range | None]]:
        """Files and ranges of at most `size` rows; None for a whole file."""
        blocks: list[tuple[Path, range | None]] = []
        for path, n_rows in zip(self.paths, self.n_rows, strict=True):
            if n_rows is None or n_rows <= size:
                blocks.append((path, None))
            else:
                blocks += [(path, range(start, min(start + size, n_rows))) for start in range(0, n_rows, size)]
        return blocks

    def rows(self) -> Rows:
        """The rows of all files."""
        for path in self.paths:
            yield from rows_of(path, self.format)


def rows_of(path: Path, given: TableFormat, rows: range | None = None) -> Rows:
    """The rows of a file, or a range of them, with their lines; an empty file has none."""
    return iter(()) if _is_empty(path) else stream_part(path, given, rows)


def wanted_of(path: Path, given: TableFormat, wanted: Sequence[str], rows: range | None = None) -> Items:
    """The same in blocks of some columns, where that is faster."""
    return iter(()) if given.kind != "folder" and _is_empty(path) else stream_wanted(path, given, wanted, rows)


@checks_types
def find_files(source: str | Path) -> list[Path]:
    """The files of a directory or pattern, sorted by name, with numbers in numeric order.

    Names that begin with a dot or an underscore are skipped, as other programs do; subdirectories are not searched.
    """
    source = Path(source)
    if source.is_dir():
        if is_model(source):
            raise DataError(f"{source} is a model directory; give documents.")
        found, seen = list(source.iterdir()), ""
    else:
        found, seen = [Path(name) for name in glob.glob(str(source), recursive=True)], source.name[:1]
    found = [path for path in found if not path.name.startswith(HIDDEN) or path.name[0] == seen]
    found.sort(key=lambda path: [natural_order(name) for name in path.parts])
    below = next((path for path in found if path.is_dir()), None)
    if below is not None and "**" not in source.parts:
        raise DataError(f"{below} is a directory; give files only, for example with a pattern such as '{source}/**/*.csv'.")
    files = [path for path in found if not path.is_dir()]
    if not files:
        what = "holds no file" if source.is_dir() else "is a pattern that no file matches"
        raise DataError(f"{source} {what}; give a directory or a pattern with CSV, TSV, JSON Lines or Parquet files.")
    return [path.absolute() for path in files] if is_distributed() else files


@checks_types
def open_file_set(source: str | Path, encoding: str | None = None) -> FileSet:
    """Inspect all files; refuses files that do not form one table."""
    paths = find_files(source) if is_file_set(source) else [Path(source).absolute() if is_distributed() else Path(source)]
    inspected = []
    with stage("inspecting files", len(paths)) as step:
        for result in choose_executor(None).distribute(_inspect, encoding, paths):
            inspected.append(result)
            step.advance()
    tables = [(path, kind, names) for path, (kind, names, _, _) in zip(paths, inspected, strict=True) if kind is not None]
    if not tables:
        raise DataError(f"{source}: all {len(paths):,} files are empty; give tables with a header row.")
    first, kind, names = tables[0]
    for path, other, columns in tables:
        if other != kind:
            raise DataError(f"{path} is {KINDS[other]}, but {first} is {KINDS[kind]}; give files of one kind.")
        if kind != "jsonl" and set(columns) != set(names):
            which = f"{path} has the columns {list_names(columns)}, but {first} has {list_names(names)}"
            raise DataError(f"{which}; give files with the same columns.")
    together = dict.fromkeys(name for _, _, columns in tables for name in columns) if kind == "jsonl" else dict.fromkeys(names)
    if not together:
        raise DataError(f"{source} holds no JSON object; give one object per line, such as {EXAMPLE}.")
    n_rows = tuple(n_rows for _, _, n_rows, _ in inspected)
    remarks = tuple(f"{path}: {remark}" for path, (_, _, _, some) in zip(paths, inspected, strict=True) for remark in some)
    return FileSet(str(source), tuple(paths), n_rows, tuple(together), TableFormat(kind, encoding), remarks)


def _inspect(encoding: str | None, path: Path) -> tuple[str | None, Sequence[str], int | None, list[str]]:
    """The kind of a table, None if the file is empty; its columns; its number of rows, if known; what to say of it."""
    if _is_empty(path):
        return None, (), None, []
    found = find_format(path, encoding)
    if found.kind == "svmlight":
        raise DataError(f"{path} holds vectors (svmlight), which are read from one file only; put them into one.")
    names, n_rows = read_names(path, found), count_rows(path) if found.kind == "parquet" else None
    return found.kind, names, n_rows, format_remarks(found, encoding, names)


def _is_empty(path: Path) -> bool:
    with open_binary(path) as file:
        start = file.read(START)
    return len(start) < START and not start.strip()
