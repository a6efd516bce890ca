"""Read files of documents: whole for training, row by row for prediction."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ramify.data.columns import (
    Columns,
    find_columns,
    find_label_separator,
    join_levels,
    refuse_without_labels,
    split_cell,
    split_names,
)
from ramify.data.corpus import MAX_BAD_FRACTION, BadRow, Corpus, DocumentLocations
from ramify.data.file_sets import open_file_set
from ramify.data.svmlight import read_vectors
from ramify.data.tables import Row, Rows, find_kind, is_file_set, known_encoding, stream_table
from ramify.errors import DataError
from ramify.parallel import stage

SAMPLE = 1_000


def read_corpus(
    path: str | Path,
    *,
    text: str | None = None,
    label: str | None = None,
    label_separator: str | None = None,
    is_label: Callable[[str], bool] | None = None,
    like: dict[str, Any] | None = None,
    strict: bool = False,
    encoding: str = "utf-8",
    may_be_empty: bool = False,
) -> Corpus:
    """Read documents and labels from CSV, TSV, JSON Lines, Parquet or svmlight.

    path: a file; or a directory or a pattern such as ``parts/*.csv`` for all its files, sorted by name.
    text, label: column names (default: detected); `label` may list level columns: "level1,level2".
    label_separator: between labels of one cell (default: detected).
    is_label: whether a string is a known label, if there is a taxonomy.
    like: `found` of an earlier corpus; its columns are preferred if the table has them.
    strict: refuse any bad row. Otherwise bad rows are left out and listed, unless more than one in ten is bad.
    may_be_empty: accept a table without rows.
    """
    path, encoding = Path(path), known_encoding(encoding)
    is_set = is_file_set(path)
    if is_set:
        parts = open_file_set(path, encoding)
        names, sample = list(parts.names), list(islice(parts.rows(), SAMPLE))
        streams = [(part, parts.rows_of(part)) for part in parts.paths]
    elif (kind := find_kind(path, encoding)) == "svmlight":
        corpus = read_vectors(path)
        check_corpus(corpus, strict, may_be_empty)
        return corpus
    else:
        names, rows = stream_table(path, kind, encoding)
        sample = list(islice(rows, SAMPLE))
        streams = [(path, chain(sample, rows))]
    columns = training_columns(str(path), names, sample, text, label, like)
    texts: list[str] = []
    each = [RowCollector(columns) for _ in streams]
    with stage(f"reading {path if is_set else path.name}") as step:
        for collected, (part, rows) in zip(each, streams, strict=True):
            for found_text in collected.texts(part, rows):
                texts.append(found_text)
                step.advance()
    labels, found = read_labels([cell for collected in each for cell in collected.cells], columns, label_separator, is_label)
    bad, lines = [bad for collected in each for bad in collected.bad], [collected.lines for collected in each]
    if is_set:
        locations = DocumentLocations.of([str(part) for part, _ in streams], lines)
        corpus = Corpus(str(path), texts, labels, (), bad, found, locations)
    else:
        corpus = Corpus(str(path), texts, labels, lines[0], bad, found)
    check_corpus(corpus, strict, may_be_empty)
    return corpus


def training_columns(
    source: str, names: list[str], sample: list[tuple[int, Row | BadRow]], text: str | None, label: str | None, like: Any
) -> Columns:
    """The columns for training, from the first rows of a table; refuses a table without labels."""
    columns = find_columns(source, names, _readable_rows(sample), *_preferred(names, text, label, like))
    refuse_without_labels(source, names, columns, _readable_rows(sample))
    return columns


def check_corpus(corpus: Corpus, strict: bool, may_be_empty: bool = False) -> None:
    """Refuse an empty corpus, and one with too many bad rows."""
    if not len(corpus) and not corpus.bad_rows and not may_be_empty and not corpus.has_vectors:
        raise DataError(f"{corpus.source} has column names but no rows; give at least two documents.")
    n_bad, n_rows = len(corpus.bad_rows), len(corpus.bad_rows) + len(corpus)
    if n_bad and (strict or n_bad > MAX_BAD_FRACTION * n_rows):
        rule = "--strict allows none" if strict else "more than one in ten is too many"
        raise DataError(f"{n_bad} of {n_rows} rows are bad, and {rule}; fix them. The first: {corpus.bad_rows[0]}.")


def stream_rows(
    path: str | Path, text: str | None = None, *, like: dict[str, Any] | None = None, encoding: str = "utf-8"
) -> tuple[list[str], str, Rows]:
    """The columns, the text column, and a stream of rows with their lines."""
    path, encoding = Path(path), known_encoding(encoding)
    names, rows = stream_table(path, find_kind(path, encoding), encoding)
    sample = list(islice(rows, SAMPLE))
    return names, text_column(str(path), names, sample, text, like), chain(sample, rows)


def text_column(
    source: str, names: list[str], sample: list[tuple[int, Row | BadRow]], text: str | None, like: dict[str, Any] | None
) -> str:
    """The column with the text to classify, from the first rows of a table."""
    return find_columns(source, names, _readable_rows(sample), *_preferred(names, text, None, like)).text


def _preferred(
    names: list[str], text: str | None, label: str | None, like: dict[str, Any] | None
) -> tuple[str | None, Sequence[str] | None]:
    """The columns that the user names, or else those of an earlier corpus that this table has too."""
    known = like or {}
    if text is None and known.get("text") in names:
        text = known["text"]
    labels = split_names(label, names) if label is not None else known.get("label") or []
    if label is None and not all(name in names for name in labels):
        labels = []
    return text, labels or None


def _readable_rows(sample: list[tuple[int, Row | BadRow]]) -> list[Row]:
    return [row for _, row in sample if isinstance(row, dict)]


def why_not_text(value: Any) -> str | None:
    """Why a cell cannot be classified, or None if it is a text."""
    if value is None:
        return "the text is null"
    if not isinstance(value, str):
        return f"the text is {str(value)[:40]}, not a string"
    return None if value.strip() else "the text is empty"


@dataclass(slots=True)
class RowCollector:
    """Collects label cells, lines and bad rows while the texts of a table are streamed."""

    columns: Columns
    cells: list[Any] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)

    def texts(self, path: Path, rows: Rows) -> Iterator[str]:
        """Stream the texts of usable rows."""
        for line, row in rows:
            if isinstance(row, BadRow):
                self.bad.append(row)
                continue
            reason, cell = _read_label(row, self.columns)
            reason = why_not_text(row.get(self.columns.text)) or reason
            if reason is not None:
                self.bad.append(BadRow(str(path), line, reason))
                continue
            self.cells.append(cell)
            self.lines.append(line)
            yield row[self.columns.text]


def _read_label(row: Row, columns: Columns) -> tuple[str | None, Any]:
    """What is wrong with the label of a row, if anything is; and the label: a string, or a list of strings."""
    cells = [row.get(name) for name in columns.labels]
    if len(cells) > 1:
        odd = [cell for cell in cells if isinstance(cell, (list, dict, bool))]
        return (f"the level {str(odd[0])[:40]} is not a string", None) if odd else (None, join_levels(cells))
    cell = cells[0]
    if isinstance(cell, (dict, bool)):
        return f"the label is {str(cell)[:40]}, not a string or a list of strings", None
    if not isinstance(cell, list):
        return None, "" if cell is None else str(cell)
    if not all(isinstance(label, str) for label in cell):
        return f"the label list {str(cell)[:40]} holds something other than strings", None
    return None, [label.strip() for label in cell if label.strip()]


def read_labels(
    cells: Sequence[Any], columns: Columns, separator: str | None, is_label: Callable[[str], bool] | None
) -> tuple[list[list[str]], dict[str, Any]]:
    """The labels of each cell, and the detected layout of the table; equal cells share one list."""
    separator = separator or find_label_separator((cell for cell in cells if isinstance(cell, str)), is_label)
    known: dict[Hashable, list[str]] = {}
    labels = []
    for cell in cells:
        if not isinstance(cell, str):
            labels.append(cell)
            continue
        if cell not in known:
            known[cell] = split_cell(cell, separator, is_label)
        labels.append(known[cell])
    return labels, {"text": columns.text, "label": list(columns.labels), "label_separator": separator}
