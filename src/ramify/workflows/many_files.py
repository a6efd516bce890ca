"""Train on documents in many files: each is read and counted by a worker, and texts are not held in memory.

A worker returns what a corpus needs besides the texts: label cells, lines, bad rows, and a hash of each text, to hold out
documents and to find duplicates. Counted rows stay where the file was read, until a vectorizer needs them.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.data import BadRow, Corpus, open_file_set
from ramify.data.columns import Columns, GivenColumns, training_columns
from ramify.data.corpus import HASH_BYTES, DocumentLocations, hash_text
from ramify.data.documents import RowCollector, check_corpus, first_remarks, first_rows, found_columns, label_remarks
from ramify.data.encodings import known_encoding
from ramify.data.file_sets import wanted_of
from ramify.data.labels import read_labels
from ramify.data.tables import TableFormat, export_remarks
from ramify.features import Vectorizer
from ramify.features.streaming import CountSettings, Shard, ShardedTexts
from ramify.parallel import choose_executor, stage

HASH = np.dtype(f"V{HASH_BYTES}")
ROWS = 100_000  # of a Parquet file that are one shard


@dataclass(frozen=True, slots=True)
class FileTexts:
    """The texts of one file, or of some of its rows, to train on."""

    path: Path
    rows: range | None
    format: TableFormat
    columns: Columns

    def texts(self, collector: RowCollector | None = None) -> Iterator[str]:
        """Read the file. collector: stores labels, lines and bad rows."""
        items = wanted_of(self.path, self.format, self.columns.wanted, self.rows)
        return (collector or RowCollector(self.columns)).texts(str(self.path), items)


@dataclass(frozen=True, slots=True)
class FileRows:
    """What a file holds besides texts. cells: distinct label cells. cell_of: the cell of each document."""

    cells: list[Any]
    cell_of: NDArray[np.int32]
    lines: NDArray[np.int64]
    hashes: NDArray[np.void]
    bad: list[BadRow]


def read_sharded(
    path: str | Path,
    vectorizer: Any,
    *,
    scratch: str | Path | None = None,
    n_jobs: int | None = None,
    text: str | Sequence[str] | None = None,
    label: str | Sequence[str] | None = None,
    label_separator: str | None = None,
    is_label: Callable[[str], bool] | None = None,
    like: dict[str, Any] | None = None,
    strict: bool = False,
    encoding: str | None = None,
    merge_spellings: bool = False,
) -> Corpus:
    """A corpus of the files of a directory or pattern, each a shard or more; texts are not held in memory.

    vectorizer: its settings count the words. scratch: a directory for counted rows, best on storage that all machines share;
    without it, or where a worker cannot access it, files are read again whenever their rows are needed. The others are those
    of :func:`~ramify.data.read_corpus`, which gives the same documents and labels.
    """
    parts = open_file_set(path, known_encoding(encoding))
    columns = training_columns(parts.source, list(parts.names), first_rows(parts.rows()), GivenColumns(text, label, like=like))
    counting = vectorizer.count_settings if isinstance(vectorizer, Vectorizer) else Vectorizer().count_settings
    folder = None if scratch is None else Path(tempfile.mkdtemp(dir=Path(scratch).absolute()))
    sources = [FileTexts(part, block, parts.format, columns) for part, block in parts.blocks(ROWS)]
    shards = [Shard(source, folder and folder / f"{number}.counts") for number, source in enumerate(sources)]
    executor, found = choose_executor(n_jobs), list[FileRows]()
    with stage(f"reading files of {parts.source}", len(shards)) as step:
        for rows in executor.distribute(_read, executor.place(counting), shards):
            found.append(rows)
            step.advance()
    # the separator of labels is detected from the cells of all files
    cells = read_labels([cell for rows in found for cell in rows.cells], label_separator, is_label, merge_spellings)
    labels: list[list[str]] = []
    start = 0
    for rows in found:
        labels += [cells.labels[start + number] for number in rows.cell_of.tolist()]
        start += len(rows.cells)
    texts = ShardedTexts.of(counting, shards, [rows.hashes for rows in found])
    locations = DocumentLocations.of([str(source.path) for source in sources], [rows.lines for rows in found])
    bad = [bad for rows in found for bad in rows.bad]
    told = [*first_remarks(parts.remarks), *export_remarks((part, parts.format) for part in parts.paths)]
    remarks = [*told, *label_remarks(cells, merge_spellings)]
    corpus = Corpus(parts.source, texts, labels, (), bad, found_columns(columns, cells), locations, remarks)
    check_corpus(corpus, strict)
    return corpus


def _read(counting: CountSettings, shard: Shard) -> FileRows:
    """Read a file, and save its counted rows where its shard says, if this worker can access the place."""
    source = shard.source
    assert isinstance(source, FileTexts)
    collector, hashes = RowCollector(source.columns), bytearray()

    def hashed() -> Iterator[str]:
        for text in source.texts(collector):
            hashes.extend(hash_text(text))
            yield text

    if shard.file is not None and shard.file.parent.is_dir():
        shard.save_counts(counting.count(hashed()))
    else:
        deque(hashed(), maxlen=0)
    # distinct cells, each once, and the number of each document's cell; a cell is a text or a list of texts
    numbers: dict[Any, int] = {}
    keys = (cell if isinstance(cell, str) else tuple(cell) for cell in collector.cells)
    cell_of = np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), dtype=np.int32, count=len(collector.cells))
    cells = [key if isinstance(key, str) else list(key) for key in numbers]
    bad = [replace(row, cells={}) for row in collector.bad]
    return FileRows(cells, cell_of, np.array(collector.lines, dtype=np.int64), np.frombuffer(bytes(hashes), dtype=HASH), bad)
