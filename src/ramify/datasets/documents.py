"""Files of documents, read whole for learning and row by row for classifying."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ramify.datasets.columns import Columns, find_columns, refuse_without_labels, split_names
from ramify.datasets.corpus import MAX_BAD_SHARE, BadRow, Corpus
from ramify.datasets.labels import find_label_separator, join_levels, split_cell
from ramify.datasets.svmlight import read_vectors
from ramify.datasets.tables import Row, Rows, find_kind, known_encoding, stream_table
from ramify.errors import DataError
from ramify.execution import stage

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

    text, label: column names, found from the table when not given; `label` may list level columns: "level1,level2".
    label_separator: what stands between several labels of one cell; found from the cells when not given.
    is_label: whether a word is a known label, when there is a taxonomy already.
    like: what an earlier corpus of the kind had `found`; its columns are preferred where the table has them.
    may_be_empty: take a table that has no rows.
    strict: refuse the file at the first bad row. Otherwise bad rows are left out and named, unless one in ten is bad.
    """
    path, encoding = Path(path), known_encoding(encoding)
    kind = find_kind(path, encoding)
    if kind == "svmlight":
        corpus = read_vectors(path)
    else:
        names, rows = stream_table(path, kind, encoding)
        sample = list(islice(rows, SAMPLE))
        columns = find_columns(str(path), names, _readable_rows(sample), *_preferred(names, text, label, like))
        refuse_without_labels(str(path), names, columns, _readable_rows(sample))
        corpus = _collect(path, chain(sample, rows), columns, label_separator, is_label)
        if not len(corpus) and not corpus.bad_rows and not may_be_empty:
            raise DataError(f"{path} has no rows below its column names; give at least two documents.")
    _judge_bad_rows(corpus, strict)
    return corpus


def stream_rows(
    path: str | Path, text: str | None = None, *, like: dict[str, Any] | None = None, encoding: str = "utf-8"
) -> tuple[list[str], str, Rows]:
    """The columns, the text column, and every row with its line, without holding the file in memory."""
    path, encoding = Path(path), known_encoding(encoding)
    names, rows = stream_table(path, find_kind(path, encoding), encoding)
    sample = list(islice(rows, SAMPLE))
    columns = find_columns(str(path), names, _readable_rows(sample), *_preferred(names, text, None, like))
    return names, columns.text, chain(sample, rows)


def _preferred(
    names: list[str], text: str | None, label: str | None, like: dict[str, Any] | None
) -> tuple[str | None, Sequence[str] | None]:
    """The columns that the user names, or else those of an earlier corpus that are here too."""
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
    """The reason why a cell cannot be classified, or None when it is a text."""
    if value is None:
        return "the text is null"
    if not isinstance(value, str):
        return f"the text is {str(value)[:40]}, not a string"
    return None if value.strip() else "the text is empty"


def _collect(path: Path, rows: Rows, columns: Columns, separator: str | None, is_label: Callable[[str], bool] | None) -> Corpus:
    texts: list[str] = []
    cells: list[Any] = []
    lines: list[int] = []
    bad: list[BadRow] = []
    with stage(f"reading {path.name}") as step:
        for line, row in rows:
            problem = row if isinstance(row, BadRow) else _problem(path, line, row, columns)
            if problem is not None:
                bad.append(problem)
            elif isinstance(row, dict):
                texts.append(row[columns.text])
                cells.append(_label_cell(row, columns))
                lines.append(line)
            step.advance()
    separator = separator or find_label_separator((cell for cell in cells if isinstance(cell, str)), is_label)
    labels = [split_cell(cell, separator, is_label) if isinstance(cell, str) else cell for cell in cells]
    found = {"text": columns.text, "label": list(columns.labels), "label_separator": separator}
    return Corpus(str(path), texts, labels, lines, bad, found)


def _problem(path: Path, line: int, row: Row, columns: Columns) -> BadRow | None:
    reason = why_not_text(row.get(columns.text)) or _why_not_label(row, columns)
    return None if reason is None else BadRow(str(path), line, reason)


def _why_not_label(row: Row, columns: Columns) -> str | None:
    cells = [row.get(name) for name in columns.labels]
    if len(cells) > 1:
        odd = [cell for cell in cells if isinstance(cell, (list, dict, bool))]
        return f"the level {str(odd[0])[:40]} is no word" if odd else None
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
    if n_bad and (strict or n_bad > MAX_BAD_SHARE * (n_bad + len(corpus))):
        rule = "--strict allows none" if strict else "more than one in ten is too many to leave out"
        raise DataError(
            f"{n_bad} of {n_bad + len(corpus)} rows are bad, and {rule}; put them right. The first: {corpus.bad_rows[0]}."
        )
