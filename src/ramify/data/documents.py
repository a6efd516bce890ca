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
from ramify.data.file_sets import FileSet, is_file_set, open_file_set
from ramify.data.svmlight import read_vectors
from ramify.data.tables import Row, Rows, find_kind, known_encoding, stream_table
from ramify.errors import DataError
from ramify.parallel import Stage, stage

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
    if is_file_set(path):
        parts = open_file_set(path, encoding)
        columns = training_columns(str(path), list(parts.names), list(islice(parts.rows(), SAMPLE)), text, label, like)
        corpus = _read_file_set(parts, columns, label_separator, is_label)
    elif (kind := find_kind(path, encoding)) == "svmlight":
        corpus = read_vectors(path)
    else:
        names, rows = stream_table(path, kind, encoding)
        sample = list(islice(rows, SAMPLE))
        columns = training_columns(str(path), names, sample, text, label, like)
        corpus = _read_table(path, chain(sample, rows), columns, label_separator, is_label)
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
    _judge_bad_rows(corpus, strict)


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
            problem = row if isinstance(row, BadRow) else _problem(path, line, row, self.columns)
            if problem is not None:
                self.bad.append(problem)
            elif isinstance(row, dict):
                self.cells.append(_label_cell(row, self.columns))
                self.lines.append(line)
                yield row[self.columns.text]


def _read_table(
    path: Path, rows: Rows, columns: Columns, separator: str | None, is_label: Callable[[str], bool] | None
) -> Corpus:
    collected = RowCollector(columns)
    with stage(f"reading {path.name}") as step:
        texts = list(_with_progress(collected.texts(path, rows), step))
    labels, found = read_labels(collected.cells, columns, separator, is_label)
    return Corpus(str(path), texts, labels, collected.lines, collected.bad, found)


def _read_file_set(parts: FileSet, columns: Columns, separator: str | None, is_label: Callable[[str], bool] | None) -> Corpus:
    texts: list[str] = []
    each = [RowCollector(columns) for _ in parts.paths]
    with stage(f"reading {parts.source}") as step:
        for collected, path in zip(each, parts.paths, strict=True):
            texts += _with_progress(collected.texts(path, parts.rows_of(path)), step)
    labels, found = read_labels([cell for collected in each for cell in collected.cells], columns, separator, is_label)
    locations = DocumentLocations.of([str(path) for path in parts.paths], [collected.lines for collected in each])
    return Corpus(parts.source, texts, labels, (), [bad for collected in each for bad in collected.bad], found, locations)


def _with_progress(texts: Iterator[str], step: Stage) -> Iterator[str]:
    for text in texts:
        step.advance()
        yield text


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


def _problem(path: Path, line: int, row: Row, columns: Columns) -> BadRow | None:
    reason = why_not_text(row.get(columns.text)) or _why_not_label(row, columns)
    return None if reason is None else BadRow(str(path), line, reason)


def _why_not_label(row: Row, columns: Columns) -> str | None:
    cells = [row.get(name) for name in columns.labels]
    if len(cells) > 1:
        odd = [cell for cell in cells if isinstance(cell, (list, dict, bool))]
        return f"the level {str(odd[0])[:40]} is not a string" if odd else None
    cell = cells[0]
    if isinstance(cell, list) and not all(isinstance(label, str) for label in cell):
        return f"the label list {str(cell)[:40]} holds something other than strings"
    if isinstance(cell, (dict, bool)):
        return f"the label is {str(cell)[:40]}, not a string or a list of strings"
    return None


def _label_cell(row: Row, columns: Columns) -> Any:
    if len(columns.labels) > 1:
        return join_levels(row.get(name) for name in columns.labels)
    cell = row.get(columns.labels[0])
    if isinstance(cell, list):
        return [label.strip() for label in cell if label.strip()]
    return "" if cell is None else str(cell)


def _judge_bad_rows(corpus: Corpus, strict: bool) -> None:
    n_bad = len(corpus.bad_rows)
    if n_bad and (strict or n_bad > MAX_BAD_FRACTION * (n_bad + len(corpus))):
        rule = "--strict allows none" if strict else "more than one in ten is too many"
        raise DataError(
            f"{n_bad} of {n_bad + len(corpus)} rows are bad, and {rule}; fix them. The first: {corpus.bad_rows[0]}."
        )
