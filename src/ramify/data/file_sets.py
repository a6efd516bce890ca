"""One table in several files, those of a directory or a pattern such as ``parts/*.parquet``, in the order of their names."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ramify.data.columns import list_names
from ramify.data.tables import Rows, count_rows, find_kind, open_binary, read_names, stream_part
from ramify.errors import DataError
from ramify.parallel import choose_executor, is_distributed, stage
from ramify.persistence import is_model

START = 4096  # bytes that tell whether a file is empty
UNSEEN = (".", "_")  # how names begin that other programs put beside data, such as _SUCCESS


@dataclass(frozen=True, slots=True)
class FileSet:
    """Files with the same columns.

    source: what the user calls them. n_rows: of each file, where it can be told without reading it, as of Parquet.
    names: the columns of all; objects of JSON Lines may lack some.
    """

    source: str
    paths: tuple[Path, ...]
    n_rows: tuple[int | None, ...]
    kind: str
    names: tuple[str, ...]
    encoding: str

    def blocks(self, size: int) -> list[tuple[Path, range | None]]:
        """Files and the rows in them, so many at a time where rows can be read from any place; None for all rows."""
        blocks: list[tuple[Path, range | None]] = []
        for path, n_rows in zip(self.paths, self.n_rows, strict=True):
            if n_rows is None or n_rows <= size:
                blocks.append((path, None))
            else:
                blocks += [(path, range(start, min(start + size, n_rows))) for start in range(0, n_rows, size)]
        return blocks

    def rows_of(self, path: Path) -> Rows:
        """The rows of one of the files, with their lines in it."""
        return rows_of(path, self.kind, self.encoding)

    def rows(self) -> Rows:
        """The rows of all files."""
        for path in self.paths:
            yield from self.rows_of(path)


def rows_of(path: Path, kind: str, encoding: str, rows: range | None = None) -> Rows:
    """The rows of one of several files, or some of them, with their lines in it; an empty file has none."""
    return iter(()) if _is_empty(path) else stream_part(path, kind, encoding, rows)


def is_file_set(path: str | Path) -> bool:
    """Whether a path means several files: a directory, or a pattern which is not itself the name of a file."""
    return Path(path).is_dir() or (glob.has_magic(str(path)) and not Path(path).exists())


def find_files(source: str | Path) -> list[Path]:
    """The files of a directory, or those that a pattern matches, in the order of their names, numbers by their value.

    What begins with a dot or an underscore is passed over, as other programs do; files of directories below are not looked for.
    """
    source = Path(source)
    if source.is_dir():
        _refuse_model(source)
        found, seen = list(source.iterdir()), ""
    else:
        found, seen = [Path(name) for name in glob.glob(str(source), recursive=True)], source.name[:1]
    found = sorted((path for path in found if not path.name.startswith(UNSEEN) or path.name[0] == seen), key=_order)
    below = next((path for path in found if path.is_dir()), None)
    if below is not None and "**" not in source.parts:
        raise DataError(f"{below} is a directory; give files only, for example with a pattern such as '{source}/**/*.csv'.")
    files = [path for path in found if not path.is_dir()]
    if not files:
        what = "holds no file" if source.is_dir() else "is a pattern that no file matches"
        raise DataError(f"{source} {what}; give a directory or a pattern with CSV, TSV, JSON Lines or Parquet files.")
    return [path.absolute() for path in files] if is_distributed() else files


def open_file_set(source: str | Path, encoding: str) -> FileSet:
    """Look at every file of a directory or pattern, or at one file; refuses those that are not of one table."""
    paths = find_files(source) if is_file_set(source) else [Path(source).absolute() if is_distributed() else Path(source)]
    looks = []
    with stage("looking at files", len(paths)) as step:
        for look in choose_executor(None).distribute(_look, encoding, paths):
            looks.append(look)
            step.advance()
    told = [(path, kind, names) for path, (kind, names, _) in zip(paths, looks, strict=True) if kind is not None]
    if not told:
        raise DataError(f"{source}: all {len(paths):,} files are empty; give tables whose first row names their columns.")
    first, kind, names = told[0]
    for path, other, columns in told:
        if other != kind:
            raise DataError(f"{path} is {_spelt(other)}, but {first} is {_spelt(kind)}; give files of one kind.")
        if kind != "jsonl" and set(columns) != set(names):
            which = f"{path} has the columns {list_names(columns)}, but {first} has {list_names(names)}"
            raise DataError(f"{which}; give files with the same columns.")
    together = dict.fromkeys(name for _, _, columns in told for name in columns) if kind == "jsonl" else dict.fromkeys(names)
    if not together:
        example = '{"text": "…", "label": "…"}'
        raise DataError(f"{source} holds no JSON object in {encoding.upper()}; give one object a line, such as {example}.")
    return FileSet(str(source), tuple(paths), tuple(n_rows for _, _, n_rows in looks), kind, tuple(together), encoding)


def _look(encoding: str, path: Path) -> tuple[str | None, Sequence[str], int | None]:
    """What kind of table a file is, None for an empty one; its columns, and its rows where it tells them."""
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


def _refuse_model(source: Path) -> None:
    if is_model(source):
        raise DataError(f"{source} is a model directory; give documents.")


def _order(path: Path) -> list[tuple[Any, ...]]:
    return [natural_order(name) for name in path.parts]


def natural_order(name: str) -> tuple[Any, ...]:
    """Names in this order have their numbers in order: part-9 comes before part-10.

    >>> sorted(["part-10", "part-9", "part-", "part"], key=natural_order)
    ['part', 'part-', 'part-9', 'part-10']
    """
    pieces = re.split(r"(\d+)", name)
    return tuple(int(piece) if k % 2 else piece for k, piece in enumerate(pieces)), name


def _spelt(kind: str) -> str:
    return {"csv": "CSV or TSV", "jsonl": "JSON", "parquet": "Parquet"}[kind]
