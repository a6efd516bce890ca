"""What a layout is, and how to find files that may be gzipped."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ramify.data import Corpus
from ramify.data.encodings import open_binary
from ramify.taxonomy import Taxonomy

Split = tuple[Corpus, Corpus, Taxonomy]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a corpus lies in a folder.

    form: what the folder holds, in words. find: the files of the corpus, none where it is not there. read: documents to learn
    from and to test on, and the taxonomy.
    """

    form: str
    find: Callable[[Path], list[Path]]
    read: Callable[[Path], Split]


def find_file(folder: Path, name: str) -> Path | None:
    """A file by name, in capitals or not, gzipped or not."""
    wanted = {name.lower(), f"{name.lower()}.gz"}
    files = (entry for entry in sorted(folder.iterdir()) if entry.name.lower() in wanted and entry.is_file())
    return next(files, None)


@contextmanager
def open_text(path: Path, encoding: str = "latin-1") -> Iterator[IO[str]]:
    """A text file, gzipped or not; trouble while reading it is a DataError."""
    with open_binary(path) as file:
        yield io.TextIOWrapper(file, encoding=encoding)
