"""Read files of documents, whole for training or row by row for prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from sys import getsizeof
from types import NoneType
from typing import Any

from ramify.arguments import as_path, check_flag, check_kind
from ramify.data.columns import SHOWN, Columns, GivenColumns, Sample, read_cell, text_columns, training_columns
from ramify.data.corpus import MAX_BAD_FRACTION, BadRow, Corpus, DocumentLocations
from ramify.data.csv_blocks import Items, RowBlock
from ramify.data.csv_tables import Row, Rows
from ramify.data.encodings import known_encoding
from ramify.data.file_sets import open_file_set, wanted_of
from ramify.data.folders import file_names
from ramify.data.frames import SOURCE, Frame, column_names, refuse_splits, stream_frame
from ramify.data.labels import LabelCells, read_labels
from ramify.data.limits import BAD_ROW_SIZE, ROW_SIZE, UnpackedSize, size_of
from ramify.data.svmlight import read_vectors
from ramify.data.tables import export_remarks, find_format, format_remarks, is_file_set, stream_table
from ramify.errors import DataError
from ramify.parallel import note, stage

SAMPLE, SAMPLE_SIZE = 1_000, 1 << 26  # rows to find the columns from, and the bytes of them in memory
COUNTED = 1 << 16  # bytes that are held before they are counted; one row after the other would take time
SHOWN_SPELLINGS = SHOWN_REMARKS = 3
EMPTY = "the text is empty"
WIDEST = 2  # bytes in Python for one in UTF-8: of few texts all characters take four
MERGE = "--merge-spellings takes each for one label"


def read_corpus(
    path: str | Path | Frame, *, text: str | Sequence[str] | None = None, label: str | Sequence[str] | None = None,
    label_separator: str | None = None, is_label: Callable[[str], bool] | None = None, like: dict[str, Any] | None = None,
    columns: Sequence[str] = (), separate: bool = False, strict: bool = False, encoding: str | None = None,
    sheet: str | None = None, merge_spellings: bool = False, may_be_empty: bool = False,
) -> Corpus:  # fmt: skip
    """Read documents and labels from CSV, TSV, JSON, Parquet, a spreadsheet, svmlight, or a folder of text files.

    path: a file; or a directory or a pattern such as ``parts/*.csv`` for all its files, sorted by name; or a directory with
    text files in folders, which are their labels; or a data frame or another table in memory.
    text, label: column names (default: detected). The texts of several columns are joined: "title,body"; several label columns
    are levels: "level1,level2".
    label_separator: between labels of one cell (default: detected).
    is_label: whether a string is a known label, if there is a taxonomy.
    like: `found` of an earlier corpus; its columns are preferred if the table has them.
    columns: further columns, of numbers or categories, that are features, too. Documents are then tuples of cells.
    separate: give each text column features of its own, rather than joining the texts.
    strict: refuse any bad row. Otherwise bad rows are left out and listed, unless more than one in ten is bad.
    encoding: of CSV, JSON and text files (default: detected). sheet: of a spreadsheet (default: the only one with cells).
    merge_spellings: take labels that differ in case or white space for one, and an inner node for its own path.
    may_be_empty: accept a table without rows.
    """
    encoding = known_encoding(encoding)
    check_flag(strict, "strict")
    check_flag(merge_spellings, "merge_spellings")
    check_kind(like, (Mapping, NoneType), "like", "what was found in an earlier corpus, or None")
    refuse_splits(path)
    opened = _open_frame(path) if isinstance(path, Frame) else _open_files(as_path(path, "path"), encoding, sheet)
    if isinstance(opened, Corpus):
        check_corpus(opened, strict, may_be_empty)
        return opened
    given = GivenColumns(text, label, columns, separate, like)
    used = training_columns(opened.source, opened.names, opened.sample, given)
    texts: list[Any] = []
    held = UnpackedSize.of(opened.source, opened.packed)
    each = [RowCollector(used, held) for _ in opened.parts]
    with stage(f"reading {Path(opened.source).name}") as step:
        for collected, part in zip(each, opened.parts, strict=True):
            for some in collected.batches(part.source, part.stream(used.wanted)):
                texts += some
                step.advance(len(some))
    cells = [cell for collected in each for cell in collected.cells]
    labels = read_labels(cells, label_separator, is_label, merge_spellings)
    lines = [collected.lines for collected in each]
    locations = opened.locate(lines)
    bad, remarks = (
        [bad for collected in each for bad in collected.bad],
        [*opened.remarks, *label_remarks(labels, merge_spellings)],
    )
    found, numbers = found_columns(used, labels), () if locations else lines[0]
    corpus = Corpus(opened.source, texts, labels.labels, numbers, bad, found, locations, remarks)
    check_corpus(corpus, strict, may_be_empty)
    return corpus


@dataclass(frozen=True, slots=True)
class _Part:
    """One file of a table, or a table in memory. stream: gives its rows with some columns."""

    source: str
    stream: Callable[[Sequence[str]], Items]


@dataclass(frozen=True, slots=True)
class _OpenTable:
    """A table whose columns and first rows are known. packed: its files. locate: where documents are, by lines of each part."""

    source: str
    names: list[str]
    sample: Sample
    parts: list[_Part]
    packed: Sequence[Path] = ()
    remarks: Sequence[str] = ()
    locate: Callable[[list[list[int]]], DocumentLocations | None] = lambda lines: None


def _open_frame(frame: Any) -> _OpenTable:
    names = column_names(frame)
    sample = first_rows(stream_frame(frame, names))
    return _OpenTable(SOURCE, names, sample, [_Part(SOURCE, lambda wanted: stream_frame(frame, wanted))])


def _open_files(path: Path, encoding: str | None, sheet: str | None) -> _OpenTable | Corpus:
    """The table in a file, in many files, or in a folder; a corpus for a file of vectors."""
    if is_file_set(path):
        files = open_file_set(path, encoding)
        parts = [_Part(str(part), partial(wanted_of, part, files.format)) for part in files.paths]
        locate = partial(DocumentLocations.of, [str(part) for part in files.paths])
        told = [*first_remarks(files.remarks), *export_remarks((part, files.format) for part in files.paths)]
        return _OpenTable(str(path), list(files.names), first_rows(files.rows()), parts, files.paths, told, locate)
    given = find_format(path, encoding, sheet)
    if given.kind == "svmlight":
        return read_vectors(path)
    names, rows = stream_table(path, given)
    parts, remarks = [_Part(str(path), partial(wanted_of, path, given))], format_remarks(given, encoding, names)
    remarks += export_remarks([(path, given)])
    if given.kind == "folder":
        return _OpenTable(str(path), names, first_rows(rows), parts, locate=partial(_locate_files, path))
    return _OpenTable(str(path), names, first_rows(rows), parts, [path], remarks)


def _locate_files(folder: Path, lines: list[list[int]]) -> DocumentLocations:
    """The file of each document of a folder; its number is its line."""
    files = file_names(folder)
    return DocumentLocations.of([files[number - 1] for number in lines[0]], [[1]] * len(lines[0]))


def found_columns(columns: Columns, labels: LabelCells) -> dict[str, Any]:
    """The layout of a table, as plain values."""
    found = {"text": columns.text, "label": list(columns.labels), "label_separator": labels.separator}
    found |= {"columns": list(columns.others)} if columns.others else {}
    return found | ({"separate": True} if columns.is_separate and len(columns.texts) > 1 else {})


def first_remarks(remarks: Sequence[str]) -> list[str]:
    """A few of the remarks about many files."""
    more = len(remarks) - SHOWN_REMARKS
    return [*remarks[:SHOWN_REMARKS], *([f"and {more:,} more remarks of this kind"] if more > 0 else [])]


def label_remarks(labels: LabelCells, is_merged: bool) -> list[str]:
    """What to say of how labels are written."""
    remarks = []
    if labels.missing:
        marks = ", ".join(f"{n_times:,} × {mark[:SHOWN]!r}" for mark, n_times in sorted(labels.missing.items())[:5])
        remarks.append(f"taken for no label: {marks}")
    if labels.list_cell is not None:
        remarks.append(f"read as lists of labels: cells such as {labels.list_cell[:SHOWN]!r}")
    if labels.spellings:
        shown = "; ".join(map(str, labels.spellings[:SHOWN_SPELLINGS]))
        more = f"; and {len(labels.spellings) - SHOWN_SPELLINGS:,} more" if len(labels.spellings) > SHOWN_SPELLINGS else ""
        merged = "taken for one label" if is_merged else "probably one label"
        remarks.append(f"{merged}: {shown}{more}" + ("" if is_merged else f"; {MERGE}"))
    return remarks


def check_corpus(corpus: Corpus, strict: bool, may_be_empty: bool = False) -> None:
    """Refuse an empty corpus, and one with too many bad rows."""
    if not len(corpus) and not corpus.bad_rows and not may_be_empty and not corpus.has_vectors:
        raise DataError(f"{corpus.source} has column names but no rows; give at least two documents.")
    n_bad, n_rows = len(corpus.bad_rows), len(corpus.bad_rows) + len(corpus)
    if n_bad and (strict or n_bad > MAX_BAD_FRACTION * n_rows):
        rule = "--strict allows none" if strict else "more than one in ten is too many"
        first = corpus.bad_rows[0]
        hint = f" Texts are taken from {corpus.found['text']!r}; --text names other columns." if first.reason == EMPTY else ""
        raise DataError(f"{n_bad} of {n_rows} rows are bad, and {rule}; fix them. The first: {first}.{hint}")


def stream_rows(
    path: str | Path, text: str | Sequence[str] | None = None, *, like: dict[str, Any] | None = None,
    encoding: str | None = None, sheet: str | None = None,
) -> tuple[list[str], Columns, Rows]:  # fmt: skip
    """The columns, those with the text, and a stream of rows with their lines."""
    path = as_path(path, "path")
    given = find_format(path, encoding, sheet)
    names, rows = stream_table(path, given)
    for remark in format_remarks(given, encoding, names):
        note(f"{path}: {remark}")
    sample = first_rows(rows)
    return names, text_columns(str(path), names, sample, text, like), chain(sample, rows)


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
    return None if value.strip() else EMPTY


@dataclass(slots=True)
class RowCollector:
    """Collects label cells, lines and bad rows while the texts of a table are streamed."""

    columns: Columns
    held: UnpackedSize | None = None  # counts what is held, also by other collectors, if there is a limit
    cells: list[Any] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    _size: int = 0  # of what was held since it was last counted

    def texts(self, source: str, items: Items) -> Iterator[Any]:
        """Stream the texts of usable rows."""
        return chain.from_iterable(self.batches(source, items))

    def batches(self, source: str, items: Items) -> Iterator[list[Any]]:
        """The texts of usable rows, some at a time."""
        for item in items:
            texts = self._take_block(item) if isinstance(item, RowBlock) else None
            if texts is None:
                rows = item.rows() if isinstance(item, RowBlock) else (item,)
                texts = [text for line, row in rows if (text := self._take(source, line, row)) is not None]
            yield texts

    def _take_block(self, block: RowBlock) -> list[str] | None:
        """The texts of a block, if every row has one; only of one column of texts and one of labels."""
        if len(self.columns.wanted) != 2:
            return None
        texts, cells = block.cells[self.columns.texts[0]], block.cells[self.columns.labels[0]]
        if block.may_have_blanks and not all(map(str.strip, texts)):
            return None
        self.cells += cells
        self.lines += block.lines.tolist()
        self._count(2 * ROW_SIZE * len(texts) + WIDEST * block.n_bytes)
        return texts

    def _take(self, source: str, line: int, row: Row | BadRow) -> Any:
        """The document of a row; None if the row cannot be used."""
        if isinstance(row, BadRow):
            self._count(BAD_ROW_SIZE + sum(map(getsizeof, row.cells.values())))
            self.bad.append(row)
            return None
        reason, cell = read_cell(row, self.columns)
        found = self.columns.read_text(row)
        reason = why_not_text(found) or reason
        if reason is not None:
            if len(row) > 1 and all(
                value == "" for value in row.values()
            ):  # an empty row below or between others, as Excel writes them
                return None
            self._count(BAD_ROW_SIZE)
            self.bad.append(BadRow(source, line, reason))
            return None
        self.cells.append(cell)
        self.lines.append(line)
        self._count(ROW_SIZE + getsizeof(found) + (getsizeof(cell) if isinstance(cell, str) else size_of(cell)))
        return self.columns.read_document(row)

    def _count(self, size: int) -> None:
        """Count what is held, now and then."""
        self._size += size
        if self._size > COUNTED and self.held is not None:
            self.held.add(self._size)
            self._size = 0
