"""Tables as streams of rows with their lines; an unreadable row becomes a BadRow.

CSV and TSV with a header row, JSON Lines or a JSON list, Parquet, spreadsheets, fastText, and folders of text files; files of
text may be gzipped. A few bytes of gzip may hold a line, a row or an object of any size, so all have limits.
"""

from __future__ import annotations

import codecs
import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ramify.data.annotations.exports import annotation_remarks, read_objects
from ramify.data.csv_blocks import Items, stream_blocks
from ramify.data.csv_tables import Rows, decoded_lines, read_csv
from ramify.data.encodings import START, encoding_of_start, find_encoding, known_encoding, open_binary
from ramify.data.fasttext import is_fasttext, stream_fasttext
from ramify.data.folders import is_document_folder, stream_folder
from ramify.data.json_tables import EXAMPLE
from ramify.data.limits import UnpackedSize, size_of
from ramify.data.parquet import stream_parquet
from ramify.data.spreadsheets import OLE, ZIP, stream_spreadsheet
from ramify.errors import DataError, InputError

SUFFIXES = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".parquet": "parquet", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight",
}  # fmt: skip
TEXT_KINDS = ("csv", "jsonl", "fasttext")  # that have an encoding
DOCUMENTS = {  # other files that begin like a text
    b"%pdf": "a PDF document", b"{\\rtf": "an RTF document", b"<!doctype html": "a web page", b"<html": "a web page",
    b"<?xml": "an XML file", b"<table": "a web page",
}  # fmt: skip
SHOWN_NAME = 60  # characters
MOST_NAMED = 600  # characters of all names in a message
VECTOR_LINE = re.compile(rb"[^\n:]*?(^|\s)\d+:[^\s:]+(\s|$)")


@dataclass(frozen=True, slots=True)
class TableFormat:
    """How to read a table. kind: csv, jsonl, parquet, spreadsheet, folder, fasttext or svmlight. encoding: None to find it.
    sheet: of a spreadsheet; None for the only one that has cells.
    """

    kind: str
    encoding: str | None = None
    sheet: str | None = None


def list_names(names: Sequence[str]) -> str:
    """Columns in a message."""
    named = [repr(name if len(name) <= 40 else f"{name[:39]}…") for name in names[:20]]
    while sum(map(len, named)) > MOST_NAMED:
        named.pop()
    return ", ".join(named) + (f" and {len(names) - len(named)} more" if len(names) > len(named) else "")


def is_file_set(path: str | Path) -> bool:
    """Whether a path is a directory of tables, or a pattern and not the name of a file."""
    if Path(path).is_dir():
        return not is_document_folder(Path(path))
    return glob.has_magic(str(path)) and not Path(path).exists()


def find_format(path: Path, encoding: str | None = None, sheet: str | None = None) -> TableFormat:
    """The kind of a table, by its suffix or else by its first bytes, and its encoding.

    encoding, sheet: as the user gives them; None to find them.
    """
    found = TableFormat(find_kind(path, encoding := known_encoding(encoding)), encoding, sheet)
    if sheet is not None and found.kind != "spreadsheet":
        raise InputError(f"{path} is no spreadsheet, so it has no sheet {sheet!r}; leave out --sheet.")
    return with_encoding(path, found)


def with_encoding(path: Path, given: TableFormat) -> TableFormat:
    """The format with the encoding of a file, where the user gives none."""
    if given.encoding is not None or given.kind not in TEXT_KINDS:
        return given
    return replace(given, encoding=find_encoding(path))


def find_kind(path: Path, encoding: str | None = None) -> str:
    """csv, jsonl, parquet, spreadsheet, folder, fasttext or svmlight: by the suffix, or else by the first bytes."""
    if is_document_folder(path):
        return "folder"
    with open_binary(path) as file:
        start = file.read(START)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((ZIP, OLE)):
        return "spreadsheet"
    if b"\x00" in start and encoding is None and encoding_of_start(start) is None:
        raise DataError(f"{path} is a binary file; give a table as CSV, TSV, JSON Lines, Parquet or a spreadsheet.")
    if is_fasttext(start):
        return "fasttext"
    head = start.removeprefix(codecs.BOM_UTF8).lstrip()[:20].lower()
    for prefix, what in DOCUMENTS.items():
        if head.startswith(prefix):
            advice = "open it in a spreadsheet program, and save the table as .xlsx or CSV"
            raise DataError(f"{path} is {what}, not a table; {advice}.")
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    if suffixes and suffixes[-1] in SUFFIXES:
        return SUFFIXES[suffixes[-1]]
    if start.replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")[:1] in (b"{", b"["):
        return "jsonl"
    return "svmlight" if VECTOR_LINE.match(start) else "csv"


def format_remarks(given: TableFormat | None, wanted: str | None, names: Sequence[str] = ()) -> list[str]:
    """What to say of how a file was read."""
    remarks = []
    if given is not None and given.encoding not in (None, wanted, "utf-8"):
        remarks.append(f"read as {given.encoding}, which was detected; --encoding overrules it")
    if above := getattr(names, "above", ()):
        remarks.append(f"left out above the column names: {'; '.join(repr(cells[:SHOWN_NAME]) for cells in above[:3])}")
    return remarks


def stream_table(path: Path, given: TableFormat) -> tuple[list[str], Rows]:
    """The columns, and the rows with their line numbers."""
    if given.kind == "parquet":
        return stream_parquet(path)
    if given.kind == "spreadsheet":
        return stream_spreadsheet(path, given.sheet)
    if given.kind == "folder":
        return stream_folder(path, given.encoding)
    encoding = with_encoding(path, given).encoding or ""
    if given.kind == "fasttext":
        return stream_fasttext(path, encoding)
    if given.kind != "jsonl":
        return read_csv(path, decoded_lines(path, encoding), encoding)
    columns = read_names(path, given)
    if not columns:
        raise DataError(f"{path} holds no JSON object in {encoding.upper()}; give one object per line, such as {EXAMPLE}.")
    return columns, read_objects(path, encoding)


def stream_part(path: Path, given: TableFormat, rows: range | None = None) -> Rows:
    """The rows of a table whose columns are known. rows: a range, for Parquet; None for all."""
    if rows is not None:
        return stream_parquet(path, rows)[1]
    if given.kind == "jsonl":
        return read_objects(path, with_encoding(path, given).encoding or "")
    return stream_table(path, given)[1]


def stream_wanted(path: Path, given: TableFormat, wanted: Sequence[str], rows: range | None = None) -> Items:
    """The rows of a table whose columns are known: in blocks of the wanted columns where that is faster, as in CSV."""
    if given.kind == "csv":
        return stream_blocks(path, with_encoding(path, given).encoding or "", wanted)
    return stream_part(path, given, rows)


def read_names(path: Path, given: TableFormat) -> list[str]:
    """The columns; for JSON Lines, the keys of all objects."""
    if given.kind != "jsonl":
        return stream_table(path, given)[0]
    columns: dict[str, None] = {}
    held = UnpackedSize.of(path, [path])
    for _, row in read_objects(path, with_encoding(path, given).encoding or ""):  # the whole file: a key may appear late
        if isinstance(row, dict) and not columns.keys() >= row.keys():
            new = {key: None for key in row if key not in columns}
            held.add(size_of(new))
            columns |= new
    return list(columns)


def export_remarks(files: Iterable[tuple[Path, TableFormat]]) -> list[str]:
    """What to say of those files that are exports of annotation tools."""
    return annotation_remarks(
        (path, with_encoding(path, given).encoding or "") for path, given in files if given.kind == "jsonl"
    )
