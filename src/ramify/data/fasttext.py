"""Training files of fastText: ``__label__tea __label__drink the text``, one document per line, without a header."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ramify.data.corpus import BadRow
from ramify.data.csv_tables import Row, Rows, decoded_lines
from ramify.data.encodings import has_bad_bytes

COLUMNS = ["text", "label"]
PREFIX = "__label__"


def is_fasttext(start: bytes) -> bool:
    r"""Whether the first line of a file, as far as it was read, begins with a label.

    >>> is_fasttext(b"__label__tea black tea\n"), is_fasttext(b"text,label\n__label__tea,a\n")
    (True, False)
    """
    return start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(PREFIX.encode())


def stream_fasttext(path: Path, encoding: str) -> tuple[list[str], Rows]:
    """The columns, and the documents with their lines."""
    return list(COLUMNS), _documents(path, encoding)


def _documents(path: Path, encoding: str) -> Iterator[tuple[int, Row | BadRow]]:
    for number, line in decoded_lines(path, encoding):
        if has_bad_bytes(line):
            yield number, BadRow(str(path), number, f"not {encoding.upper()}")
        elif line.strip():
            yield number, split_line(line)


def split_line(line: str) -> Row:
    """The labels, wherever they stand, and the other words of a line.

    >>> split_line("__label__tea __label__drink black tea, hot")
    {'text': 'black tea, hot', 'label': ['tea', 'drink']}
    """
    words = line.split()
    labels = dict.fromkeys(word.removeprefix(PREFIX) for word in words if word.startswith(PREFIX) and word != PREFIX)
    return {"text": " ".join(word for word in words if not word.startswith(PREFIX)), "label": list(labels)}
