"""Read files of documents, whole for training or row by row for prediction: which columns hold the text and the labels, and
how a cell lists several labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from sys import getsizeof
from types import NoneType
from typing import Any

from ramify.arguments import as_path, check_flag, check_kind, describe
from ramify.data.corpus import MAX_BAD_FRACTION, BadRow, Corpus, DocumentLocations
from ramify.data.file_sets import open_file_set, rows_of
from ramify.data.limits import BAD_ROW_SIZE, ROW_SIZE, UnpackedSize, size_of
from ramify.data.svmlight import read_vectors
from ramify.data.tables import Row, Rows, find_kind, is_file_set, known_encoding, list_names, stream_table
from ramify.errors import DataError, InputError, suggest
from ramify.parallel import stage
from ramify.taxonomy import ARROW

SAMPLE, SAMPLE_SIZE = 1_000, 1 << 26  # rows to find the columns from, and the bytes of them in memory
COUNTED = 1 << 16  # bytes that are held before they are counted; one row after the other would take time
OPTIONAL_TEXT = (str, NoneType)
# the fraction of pieces that must be known labels for a mark to be a separator; commas are common inside names
SEPARATORS = {"|": 0.5, ";": 0.5, ",": 0.9}
TEXT_NAMES = (
    "text", "body", "message", "description", "content", "document", "request", "question", "review", "abstract", "comment",
    "title", "subject",
)  # fmt: skip
LABEL_NAMES = (
    "label", "labels", "category", "categories", "class", "classes", "topic", "topics", "path", "target", "node", "code",
    "tag", "tags", "type",
)  # fmt: skip
LEVEL_NAME = re.compile(r"(?:level|lvl|l|cat|category|tier)[ _-]?(\d+)", re.IGNORECASE)

Sample = list[tuple[int, Row | BadRow]]  # the first rows of a table


def read_corpus(
    path: str | Path, *, text: str | None = None, label: str | None = None, label_separator: str | None = None,
    is_label: Callable[[str], bool] | None = None, like: dict[str, Any] | None = None, strict: bool = False,
    encoding: str = "utf-8", may_be_empty: bool = False,
) -> Corpus:  # fmt: skip
    """Read documents and labels from CSV, TSV, JSON Lines, Parquet or svmlight.

    path: a file; or a directory or a pattern such as ``parts/*.csv`` for all its files, sorted by name.
    text, label: column names (default: detected); `label` may list level columns: "level1,level2".
    label_separator: between labels of one cell (default: detected).
    is_label: whether a string is a known label, if there is a taxonomy.
    like: `found` of an earlier corpus; its columns are preferred if the table has them.
    strict: refuse any bad row. Otherwise bad rows are left out and listed, unless more than one in ten is bad.
    may_be_empty: accept a table without rows.
    """
    path, encoding = as_path(path, "path"), known_encoding(encoding)
    check_flag(strict, "strict")
    is_set = is_file_set(path)
    if is_set:
        parts = open_file_set(path, encoding)
        names, sample = list(parts.names), first_rows(parts.rows())
        streams = [(part, rows_of(part, parts.kind, encoding)) for part in parts.paths]
    elif (kind := find_kind(path, encoding)) == "svmlight":
        corpus = read_vectors(path)
        check_corpus(corpus, strict, may_be_empty)
        return corpus
    else:
        names, rows = stream_table(path, kind, encoding)
        sample = first_rows(rows)
        streams = [(path, chain(sample, rows))]
    columns = training_columns(str(path), names, sample, text, label, like)
    texts: list[str] = []
    held = UnpackedSize.of(path, [part for part, _ in streams])
    each = [RowCollector(columns, held) for _ in streams]
    with stage(f"reading {path if is_set else path.name}") as step:
        for collected, (part, rows) in zip(each, streams, strict=True):
            for found_text in collected.texts(part, rows):
                texts.append(found_text)
                step.advance()
    labels, found = read_labels([cell for collected in each for cell in collected.cells], columns, label_separator, is_label)
    bad, lines = [bad for collected in each for bad in collected.bad], [collected.lines for collected in each]
    locations = DocumentLocations.of([str(part) for part, _ in streams], lines) if is_set else None
    corpus = Corpus(str(path), texts, labels, () if is_set else lines[0], bad, found, locations)
    check_corpus(corpus, strict, may_be_empty)
    return corpus


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
    path, encoding = as_path(path, "path"), known_encoding(encoding)
    names, rows = stream_table(path, find_kind(path, encoding), encoding)
    sample = first_rows(rows)
    return names, text_column(str(path), names, sample, text, like), chain(sample, rows)


def first_rows(rows: Rows) -> Sample:
    """The first rows of a table, to find its columns; fewer where they are long."""
    sample: Sample = []
    size = 0
    for line, row in islice(rows, SAMPLE):
        sample.append((line, row))
        size += size_of(row.cells if isinstance(row, BadRow) else row)
        if size > SAMPLE_SIZE:
            break
    return sample


def why_not_text(value: Any) -> str | None:
    """Why a cell cannot be classified, or None if it is a text."""
    if value is None:
        return "the text is null"
    if not isinstance(value, str):
        return f"the text is {str(value)[:40]}, not a string"
    return None if value.strip() else "the text is empty"


# ---- columns --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns in use; more than one label column are the levels of a path, from the top."""

    text: str
    labels: tuple[str, ...]


def training_columns(
    source: str, names: list[str], sample: Sample, text: str | None, label: str | None, like: dict[str, Any] | None
) -> Columns:
    """The columns for training; refuses a table without labels, with the text as label, or without a header row."""
    rows = _readable_rows(sample)
    columns = find_columns(source, names, rows, *_preferred(names, text, label, like))
    if not columns.labels:
        raise DataError(f"{source}: no column looks like labels; name it with --label. The columns are {list_names(names)}.")
    if columns.text in columns.labels:
        raise DataError(f"{source}: column {columns.text!r} cannot be both text and label; name two different columns.")
    first = columns.labels[0]
    if len(columns.labels) == 1 and first.lower() not in LABEL_NAMES and any(row.get(first) == first for row in rows):
        found = f"the first row looks like a document, since its {first[:40]!r} is a label of other rows too"
        raise DataError(f"{source}: {found}; put a row with column names first.")
    return columns


def text_column(source: str, names: list[str], sample: Sample, text: str | None, like: dict[str, Any] | None) -> str:
    """The column with the text to classify, from the first rows of a table."""
    return find_columns(source, names, _readable_rows(sample), *_preferred(names, text, None, like)).text


def _preferred(
    names: list[str], text: str | None, label: str | None, like: dict[str, Any] | None
) -> tuple[str | None, Sequence[str] | None]:
    """The columns that the user names, or else those of an earlier corpus that this table has too."""
    check_kind(text, OPTIONAL_TEXT, "text", "the name of a column, or None")
    check_kind(label, OPTIONAL_TEXT, "label", "the name of a column, or None")
    check_kind(like, (Mapping, NoneType), "like", "what was found in an earlier corpus, or None")
    known = like or {}
    if text is None and known.get("text") in names:
        text = known["text"]
    if label is not None:  # a column, or a list of columns
        return text, [label] if label in names else [part.strip() for part in label.split(",")]
    labels = known.get("label") or []
    return text, labels if labels and all(name in names for name in labels) else None


def _readable_rows(sample: Sample) -> list[Row]:
    return [row for _, row in sample if isinstance(row, dict)]


def find_columns(
    source: str, names: Sequence[str], sample: Sequence[Row], text: str | None = None, labels: Sequence[str] | None = None
) -> Columns:
    """The named columns, or else columns that look like text and labels; `labels` may be empty."""
    for option, wanted in (("--text", [text] if text is not None else []), ("--label", labels or ())):
        for column in wanted:
            if column not in names:
                found = f"{source} has no column {column!r}; its columns are {list_names(names)}"
                raise DataError(f"{found}. Name one of them with {option}.{suggest(column, names)}")
    free = [name for name in names if name not in (labels or ())]
    text = text or next((name for wanted in TEXT_NAMES for name in free if name.lower() == wanted), None)
    if text is None and (len(free) > 1 or labels):  # the column with the longest texts; numbers do not count
        lengths = {}
        for name in free:
            texts = [row[name] for row in sample if isinstance(row.get(name), str) and not _is_number(row[name])]
            lengths[name] = sum(map(len, texts)) / len(texts) if texts else 0.0
        text = max((name for name in free if lengths[name] > 0), key=lambda name: lengths[name], default=None)
    if text is None:
        raise DataError(f"{source}: no column looks like text; name it with --text. The columns are {list_names(names)}.")
    return Columns(text, tuple(labels) if labels else _guess_labels([name for name in names if name != text], sample))


def _guess_labels(names: Sequence[str], sample: Sequence[Row]) -> tuple[str, ...]:
    """A column with a usual name, or level columns, or the only column that repeats its values; numbers do not count."""
    usual = next((name for wanted in LABEL_NAMES for name in names if name.lower() == wanted), None)
    if usual is not None:
        return (usual,)
    levels = sorted((int(match[1]), name) for name in names if (match := LEVEL_NAME.fullmatch(name)))
    if len(levels) > 1:
        return tuple(name for _, name in levels)
    repeated = []
    for name in names:
        cells = [str(row.get(name)) for row in sample if row.get(name) not in (None, "")]
        if len(cells) > 3 and 1 < len(set(cells)) <= 0.5 * len(cells) and not all(map(_is_number, cells)):
            repeated.append(name)
    return (repeated[0],) if len(repeated) == 1 else ()


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


# ---- rows and labels ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class RowCollector:
    """Collects label cells, lines and bad rows while the texts of a table are streamed."""

    columns: Columns
    held: UnpackedSize | None = None  # counts what is held, also by other collectors, if there is a limit
    cells: list[Any] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)

    def texts(self, path: Path, rows: Rows) -> Iterator[str]:
        """Stream the texts of usable rows."""
        source, size = str(path), 0  # of what was held since it was last counted
        for line, row in rows:
            if size > COUNTED and self.held is not None:
                self.held.add(size)
                size = 0
            if isinstance(row, BadRow):
                size += BAD_ROW_SIZE + sum(map(getsizeof, row.cells.values()))
                self.bad.append(row)
                continue
            reason, cell = _read_label(row, self.columns)
            reason = why_not_text(row.get(self.columns.text)) or reason
            if reason is not None:
                size += BAD_ROW_SIZE
                self.bad.append(BadRow(source, line, reason))
                continue
            self.cells.append(cell)
            self.lines.append(line)
            found = row[self.columns.text]
            size += ROW_SIZE + getsizeof(found) + (getsizeof(cell) if isinstance(cell, str) else size_of(cell))
            yield found


def _read_label(row: Row, columns: Columns) -> tuple[str | None, Any]:
    """What is wrong with the label of a row, if anything is; and the label: a string, or a list of strings."""
    cells = [row.get(name) for name in columns.labels]
    if len(cells) > 1:  # a path, up to the first empty cell
        odd = [cell for cell in cells if isinstance(cell, (list, dict, bool))]
        parts = ["" if cell is None else str(cell).strip() for cell in cells]
        path = ARROW.join(parts[: parts.index("")] if "" in parts else parts)
        return (f"the level {str(odd[0])[:40]} is not a string", None) if odd else (None, path)
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
    check_kind(separator, OPTIONAL_TEXT, "label_separator", "a string, or None")
    if is_label is not None and not callable(is_label):
        raise InputError(f"is_label is {describe(is_label)}; give a function of a name, or None.")
    separator = separator or find_label_separator((cell for cell in cells if isinstance(cell, str)), is_label)
    known: dict[Hashable, list[str]] = {}
    for cell in cells:
        if isinstance(cell, str) and cell not in known:
            known[cell] = split_cell(cell, separator, is_label)
    labels = [known[cell] if isinstance(cell, str) else cell for cell in cells]
    return labels, {"text": columns.text, "label": list(columns.labels), "label_separator": separator}


def find_label_separator(cells: Iterable[str], is_label: Callable[[str], bool] | None = None) -> str | None:
    """The separator between labels in a cell, or None if every cell holds one label.

    The pieces of split cells must be labels themselves: of the taxonomy, or else whole cells of other rows.

    >>> find_label_separator(["food|drink", "food", "drink"]), find_label_separator(["TV, audio", "phones"])
    ('|', None)
    """
    distinct = {cell.strip() for cell in cells if cell.strip()}
    known = is_label or distinct.__contains__
    for mark, fraction in SEPARATORS.items():
        joined = [cell for cell in distinct if mark in cell and not (is_label and is_label(cell))]
        pieces = [piece for cell in joined for piece in split_cell(cell, mark)]
        if pieces and sum(map(known, pieces)) >= fraction * len(pieces):
            return mark
    return None


def split_cell(cell: str, separator: str | None, is_label: Callable[[str], bool] | None = None) -> list[str]:
    """The distinct labels of a cell, stripped; a known label is not split."""
    pieces = cell.split(separator) if separator and not (is_label and is_label(cell.strip())) else [cell]
    return list(dict.fromkeys(piece.strip() for piece in pieces if piece.strip()))
