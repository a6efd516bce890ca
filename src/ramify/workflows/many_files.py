"""Learning from documents in many files: each is read and counted on a worker, and texts of all are never held.

What comes back of a file is what a corpus needs beside the texts: label cells, lines, bad rows, and a mark for each text, so
that documents can be held out and equal ones found. Its counted rows stay where it was read, until a vectorizer asks.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.data import BadRow, Corpus, is_several, open_parts
from ramify.data.columns import Columns
from ramify.data.corpus import KEY_BYTES, Places, key_of
from ramify.data.documents import SAMPLE, Notes, judge, learning_columns, read_labels
from ramify.data.parts import rows_of
from ramify.data.tables import known_encoding
from ramify.features import Vectorizer
from ramify.features.streaming import CountedTexts, Counting, Shard
from ramify.parallel import choose_executor, stage

MARK = np.dtype(f"V{KEY_BYTES}")
ROWS = 100_000  # of a Parquet file that are one shard
LARGE = 1 << 26  # bytes from which one Parquet file is read in shards


@dataclass(frozen=True, slots=True)
class FileTexts:
    """The texts of one file, or of some of its rows, as they are learnt from."""

    path: Path
    rows: range | None
    kind: str
    encoding: str
    columns: Columns

    def texts(self) -> Iterator[str]:
        """Read the file."""
        return self.noted(Notes(self.columns))

    def noted(self, notes: Notes) -> Iterator[str]:
        """Read the file, and note what else its rows say."""
        return notes.texts(self.path, rows_of(self.path, self.kind, self.encoding, self.rows))


@dataclass(frozen=True, slots=True)
class FileNotes:
    """What a file says beside its texts. cells: different ones with labels; cell_of: which one each document has."""

    cells: list[Any]
    cell_of: NDArray[np.int32]
    lines: NDArray[np.int64]
    marks: NDArray[np.void]
    bad: list[BadRow]


def needs_shards(path: str | Path) -> bool:
    """Whether documents are better read in shards: those of several files, or of one large Parquet file."""
    path = Path(path)
    return is_several(path) or (path.suffix.lower() == ".parquet" and path.is_file() and path.stat().st_size >= LARGE)


def read_sharded(
    path: str | Path,
    vectorizer: Any,
    *,
    scratch: str | Path | None = None,
    n_jobs: int | None = None,
    text: str | None = None,
    label: str | None = None,
    label_separator: str | None = None,
    is_label: Callable[[str], bool] | None = None,
    like: dict[str, Any] | None = None,
    strict: bool = False,
    encoding: str = "utf-8",
) -> Corpus:
    """A corpus of the files of a directory or pattern, for a vectorizer to learn from or to read; texts are not held.

    Every file is a shard; large Parquet files are several, also where there is but one file.

    scratch: a directory for counted rows until they are needed, best on storage that all machines see. Whoever does not see
    it, or without any, files are read again whenever their rows are needed. The others are those of
    :func:`~ramify.data.read_corpus`, which gives the same documents and labels.
    """
    parts = open_parts(path, known_encoding(encoding))
    columns = learning_columns(parts.source, list(parts.names), list(islice(parts.rows(), SAMPLE)), text, label, like)
    counting = vectorizer.counting if isinstance(vectorizer, Vectorizer) else Vectorizer().counting
    folder = None if scratch is None else Path(tempfile.mkdtemp(dir=Path(scratch).absolute()))
    sources = [FileTexts(part, rows, parts.kind, parts.encoding, columns) for part, rows in parts.blocks(ROWS)]
    shards = [Shard(source, folder and folder / f"{number}.counts") for number, source in enumerate(sources)]
    found = _read_all(parts.source, counting, shards, n_jobs)
    labels, about = _labels_of(found, columns, label_separator, is_label)
    texts = CountedTexts.of(counting, shards, [notes.marks for notes in found])
    places = Places.of([str(source.path) for source in sources], [notes.lines for notes in found])
    corpus = Corpus(parts.source, texts, labels, (), [bad for notes in found for bad in notes.bad], about, places)
    judge(corpus, strict)
    return corpus


def _read_all(source: str, counting: Counting, shards: list[Shard], n_jobs: int | None) -> list[FileNotes]:
    executor, found = choose_executor(n_jobs), []
    with stage(f"reading files of {source}", len(shards)) as step:
        for notes in executor.distribute(_read, executor.place(counting), shards):
            found.append(notes)
            step.advance()
    return found


def _read(counting: Counting, shard: Shard) -> FileNotes:
    """Read a file, and leave its counted rows where its shard says, if that is seen from here."""
    source = shard.source
    assert isinstance(source, FileTexts)
    notes, marks = Notes(source.columns), bytearray()

    def marked() -> Iterator[str]:
        for text in source.noted(notes):
            marks.extend(key_of(text))
            yield text

    if shard.file is not None and shard.file.parent.is_dir():
        shard.leave(counting.count(marked()))
    else:
        deque(marked(), maxlen=0)
    cells, cell_of = _numbered(notes.cells)
    bad = [replace(row, cells={}) for row in notes.bad]
    return FileNotes(cells, cell_of, np.array(notes.lines, dtype=np.int64), np.frombuffer(bytes(marks), dtype=MARK), bad)


def _numbered(cells: list[Any]) -> tuple[list[Any], NDArray[np.int32]]:
    """The different cells, each once, and the number of each cell among them; a cell is a text or a list of texts."""
    numbers: dict[Any, int] = {}
    keys = (cell if isinstance(cell, str) else tuple(cell) for cell in cells)
    cell_of = np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), dtype=np.int32, count=len(cells))
    return [key if isinstance(key, str) else list(key) for key in numbers], cell_of


def _labels_of(
    found: list[FileNotes], columns: Columns, separator: str | None, is_label: Callable[[str], bool] | None
) -> tuple[list[list[str]], dict[str, Any]]:
    """The labels of all documents; what stands between labels is found from the cells of all files."""
    read, about = read_labels([cell for notes in found for cell in notes.cells], columns, separator, is_label)
    labels: list[list[str]] = []
    start = 0
    for notes in found:
        here = read[start : start + len(notes.cells)]
        labels += [here[number] for number in notes.cell_of.tolist()]
        start += len(here)
    return labels, about
