"""One table in several files: a directory, or a pattern such as ``parts/*.parquet``; files are sorted by name."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ramify.data.parquet import count_rows
from ramify.data.tables import Rows, find_kind, is_file_set, list_names, open_binary, read_names, stream_part
from ramify.errors import DataError
from ramify.parallel import choose_executor, is_distributed, stage
from ramify.persistence import is_model
from ramify.type_hints import checks_types

KINDS = {"csv": "CSV or TSV", "jsonl": "JSON", "parquet": "Parquet"}
START = 4096  # bytes to read to find out whether a file is empty
HIDDEN = (".", "_")  # prefixes of files that other programs put beside data, such as _SUCCESS


@dataclass(frozen=True, slots=True)
class FileSet:
    """Files with the same columns.

    source: the directory or pattern. n_rows: of each file, None if unknown (all but Parquet).
    names: the columns of all files; objects of JSON Lines may lack some.
    """

    source: str
    paths: tuple[Path, ...]
    n_rows: tuple[int | None, ...]
    kind: str
    names: tuple[str, ...]
    encoding: str

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
            yield from rows_of(path, self.kind, self.encoding)


def rows_of(path: Path, kind: str, encoding: str, rows: range | None = None) -> Rows:
    """The rows of a file, or a range of them, with their lines; an empty file has none."""
    return iter(()) if _is_empty(path) else stream_part(path, kind, encoding, rows)


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
def open_file_set(source: str | Path, encoding: str) -> FileSet:
    """Inspect all files; refuses files that do not form one table."""
    paths = find_files(source) if is_file_set(source) else [Path(source).absolute() if is_distributed() else Path(source)]
    inspected = []
    with stage("inspecting files", len(paths)) as step:
        for result in choose_executor(None).distribute(_inspect, encoding, paths):
            inspected.append(result)
            step.advance()
    tables = [(path, kind, names) for path, (kind, names, _) in zip(paths, inspected, strict=True) if kind is not None]
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
        example = '{"text": "…", "label": "…"}'
        raise DataError(f"{source} holds no JSON object in {encoding.upper()}; give one object per line, such as {example}.")
    return FileSet(str(source), tuple(paths), tuple(n_rows for _, _, n_rows in inspected), kind, tuple(together), encoding)


def _inspect(encoding: str, path: Path) -> tuple[str | None, Sequence[str], int | None]:
    """The kind of a table, None if the file is empty; its columns; and its number of rows, if known."""
    if _is_empty(path):
        return None, (), None
    kind = find_kind(path, encoding)
    if kind == "svmlight":
        raise DataError(f"{path} holds vectors (svmlight), which are read from one file only; put them into one.")
    return kind, read_names(path, kind, encoding), count_rows(path) if kind == "parquet" else None


def _is_empty(path: Path) -> bool:
    with open_binary(path) as file:
        start = file.read(START)
    return len(start) < START and not start.strip()


def natural_order(name: str) -> tuple[Any, ...]:
    """A sort key that compares numbers by value: part-9 comes before part-10.

    >>> sorted(["part-10", "part-9", "part-", "part"], key=natural_order)
    ['part', 'part-', 'part-9', 'part-10']
    """
    pieces = re.split(r"(\d+)", name)
    return tuple(int(piece) if k % 2 else piece for k, piece in enumerate(pieces)), name
