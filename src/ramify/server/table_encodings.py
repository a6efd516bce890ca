"""Encodings of uploaded tables: told by the client, or found from the first line, since later ones may take long to arrive."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from fastapi import Query

from ramify.data.encodings import START, UTF_8, encoding_of_start, to_utf_8
from ramify.server.errors import refuse_packed

Encoding = Literal[
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1", "iso8859-2", "iso8859-15", "cp1250", "cp1251",
    "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874", "cp437", "cp850", "koi8-r", "mac-roman", "shift_jis",
    "cp932", "euc-jp", "gb18030", "big5", "euc-kr", "cp949",
]  # fmt: skip
ABOUT = "The encoding of the body; found when left out."
EncodingQuery = Annotated[Encoding | None, Query(description=ABOUT)]


def decoded_chunks(path: Path, chunks: Iterator[bytes], encoding: str | None) -> tuple[str, Iterator[bytes]]:
    """The encoding of a stream, and its chunks in UTF-8; waits for the first line. path: for messages."""
    start = _until_line_end(chunks)
    refuse_packed(start[:4])
    # no more than the first line, so that it does not matter how the stream is cut
    encoding = encoding or encoding_of_start(start[: start.find(b"\n") + 1] or start) or UTF_8
    whole = chain([start], chunks)
    return encoding, whole if encoding == UTF_8 else to_utf_8(path, whole, encoding)


def _until_line_end(chunks: Iterator[bytes]) -> bytes:
    """The first chunks, up to a line end or enough bytes to tell."""
    held = b""
    for chunk in chunks:
        held += chunk
        if b"\n" in held or len(held) >= START:
            break
    return held
