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

from ramify.data import BadRow, Corpus, is_file_set, open_file_set
from ramify.data.columns import Columns
from ramify.data.corpus import HASH_BYTES, DocumentLocations, hash_text
from ramify.data.documents import SAMPLE, RowCollector, check_corpus, read_labels, training_columns
from ramify.data.file_sets import rows_of
from ramify.data.tables import known_encoding
from ramify.features import Vectorizer
from ramify.features.streaming import CountSettings, Shard, ShardedTexts
from ramify.parallel import choose_executor, stage

HASH = np.dtype(f"V{HASH_BYTES}")
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
        return self.collect(RowCollector(self.columns))

    def collect(self, collected: RowCollector) -> Iterator[str]:
        """Read the file, and note what else its rows say."""
        return collected.texts(self.path, rows_of(self.path, self.kind, self.encoding, self.rows))


@dataclass(frozen=True, slots=True)
class FileRows:
    """What a file says beside its texts. cells: different ones with labels; cell_of: which one each document has."""

    cells: list[Any]
    cell_of: NDArray[np.int32]
    lines: NDArray[np.int64]
    hashes: NDArray[np.void]
    bad: list[BadRow]


def needs_shards(path: str | Path) -> bool:
    """Whether documents are better read in shards: those of several files, or of one large Parquet file."""
    path = Path(path)
    return is_file_set(path) or (path.suffix.lower() == ".parquet" and path.is_file() and path.stat().st_size >= LARGE)


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
    parts = open_file_set(path, known_encoding(encoding))
    columns = training_columns(parts.source, list(parts.names), list(islice(parts.rows(), SAMPLE)), text, label, like)
    counting = vectorizer.count_settings if isinstance(vectorizer, Vectorizer) else Vectorizer().count_settings
    folder = None if scratch is None else Path(tempfile.mkdtemp(dir=Path(scratch).absolute()))
    sources = [FileTexts(part, rows, parts.kind, parts.encoding, columns) for part, rows in parts.blocks(ROWS)]
    shards = [Shard(source, folder and folder / f"{number}.counts") for number, source in enumerate(sources)]
    found = _read_all(parts.source, counting, shards, n_jobs)
    labels, about = _labels_of(found, columns, label_separator, is_label)
    texts = ShardedTexts.of(counting, shards, [collected.hashes for collected in found])
    locations = DocumentLocations.of([str(source.path) for source in sources], [collected.lines for collected in found])
    corpus = Corpus(parts.source, texts, labels, (), [bad for collected in found for bad in collected.bad], about, locations)
    check_corpus(corpus, strict)
    return corpus


def _read_all(source: str, counting: CountSettings, shards: list[Shard], n_jobs: int | None) -> list[FileRows]:
    executor, found = choose_executor(n_jobs), []
    with stage(f"reading files of {source}", len(shards)) as step:
        for collected in executor.distribute(_read, executor.place(counting), shards):
            found.append(collected)
            step.advance()
    return found


def _read(counting: CountSettings, shard: Shard) -> FileRows:
    """Read a file, and leave its counted rows where its shard says, if that is seen from here."""
    source = shard.source
    assert isinstance(source, FileTexts)
    collected, hashes = RowCollector(source.columns), bytearray()

    def marked() -> Iterator[str]:
        for text in source.collect(collected):
            hashes.extend(hash_text(text))
            yield text

    if shard.file is not None and shard.file.parent.is_dir():
        shard.save_counts(counting.count(marked()))
    else:
        deque(marked(), maxlen=0)
    cells, cell_of = _numbered(collected.cells)
    bad = [replace(row, cells={}) for row in collected.bad]
    return FileRows(cells, cell_of, np.array(collected.lines, dtype=np.int64), np.frombuffer(bytes(hashes), dtype=HASH), bad)


def _numbered(cells: list[Any]) -> tuple[list[Any], NDArray[np.int32]]:
    """The different cells, each once, and the number of each cell among them; a cell is a text or a list of texts."""
    numbers: dict[Any, int] = {}
    keys = (cell if isinstance(cell, str) else tuple(cell) for cell in cells)
    cell_of = np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), dtype=np.int32, count=len(cells))
    return [key if isinstance(key, str) else list(key) for key in numbers], cell_of


def _labels_of(
    found: list[FileRows], columns: Columns, separator: str | None, is_label: Callable[[str], bool] | None
) -> tuple[list[list[str]], dict[str, Any]]:
    """The labels of all documents; what stands between labels is found from the cells of all files."""
    read, about = read_labels([cell for collected in found for cell in collected.cells], columns, separator, is_label)
    labels: list[list[str]] = []
    start = 0
    for collected in found:
        here = read[start : start + len(collected.cells)]
        labels += [here[number] for number in collected.cell_of.tolist()]
        start += len(here)
    return labels, about
