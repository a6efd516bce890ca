"""Folders of text files by category: the folders that a file lies in are the path of its label.

tickets/Orders/Late/17.txt    is a document with the label Orders > Late
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ramify.data import limits
from ramify.data.corpus import BadRow
from ramify.data.csv_tables import Row, Rows
from ramify.data.encodings import START, encoding_of_start, find_encoding, has_bad_bytes
from ramify.errors import DataError
from ramify.taxonomy import ARROW

COLUMNS = ["file", "text", "label"]
TABLE_SUFFIXES = {
    ".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet", ".svm", ".svmlight", ".libsvm", ".xlsx", ".xls", ".xlsb",
    ".ods", ".gz",
}  # fmt: skip
HIDDEN = (".", "_")  # prefixes of files and folders that other programs put beside data
SEEN = 200  # files that tell whether a folder holds documents


def is_document_folder(path: Path) -> bool:
    """Whether a directory holds documents by category: folders, with files that are no tables."""
    if not path.is_dir():
        return False
    has_folders = False
    for file in islice(_files(path), SEEN):
        if file.suffix.lower() in TABLE_SUFFIXES:
            return False
        has_folders = has_folders or file.parent != path
    return has_folders


def stream_folder(path: Path, encoding: str | None = None) -> tuple[list[str], Rows]:
    """The columns and documents of a folder, numbered in the order of their names."""
    return list(COLUMNS), _documents(path, encoding)


def file_names(path: Path) -> list[str]:
    """The files of a folder, in the order of their documents."""
    return [str(file) for file in _files(path)]


def _documents(root: Path, encoding: str | None) -> Rows:
    for number, file in enumerate(_files(root), start=1):
        name = str(file.relative_to(root))
        label = ARROW.join(file.relative_to(root).parts[:-1])
        yield number, _document(root, file, name, label, encoding)


def _document(root: Path, file: Path, name: str, label: str, encoding: str | None) -> Row | BadRow:
    try:
        if file.is_symlink() and not file.resolve().is_relative_to(root.resolve()):
            return BadRow(str(file), 1, "it is a link that leads out of the folder")
        if not file.is_file():
            return BadRow(str(file), 1, "it is no regular file")
        with open(file, "rb") as opened:
            found = opened.read(limits.MAX_LINE + 1)
    except OSError as error:
        return BadRow(str(file), 1, f"it cannot be read: {error.strerror}")
    if len(found) > limits.MAX_LINE:
        return BadRow(str(file), 1, f"it has more than {limits.MAX_LINE:,} bytes")
    try:
        name_of = encoding or find_encoding(file)
        text = found.decode("utf-8-sig" if name_of == "utf-8" else name_of, "surrogateescape")
    except (DataError, UnicodeError):
        return BadRow(str(file), 1, "it is no text in a known encoding")
    if has_bad_bytes(text) or (b"\0" in found[:START] and encoding_of_start(found[:START]) is None):
        return BadRow(str(file), 1, "it is no text in UTF-8" if encoding is None else f"it is not {encoding.upper()}")
    return {"file": name, "text": text, "label": label}


def _files(root: Path) -> Iterator[Path]:
    """All files, folder by folder, in the order of their names and numbers; hidden ones are skipped, links not followed."""
    for folder, below, names in os.walk(root, onerror=_refuse):
        below[:] = sorted((name for name in below if not name.startswith(HIDDEN)), key=natural_order)
        for name in sorted(names, key=natural_order):
            if not name.startswith(HIDDEN):
                yield Path(folder) / name


def _refuse(error: OSError) -> None:
    raise DataError(f"{error.filename} cannot be read: {error.strerror}; change its permissions, or move it away.")


def natural_order(name: str) -> tuple[Any, ...]:
    """A sort key that compares numbers by value: part-9 comes before part-10.

    >>> sorted(["part-10", "part-9", "part-", "part"], key=natural_order)
    ['part', 'part-', 'part-9', 'part-10']
    """
    pieces = re.split(r"(\d+)", name)
    return tuple(int(piece) if k % 2 else piece for k, piece in enumerate(pieces)), name
