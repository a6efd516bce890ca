"""Encodings of text files: which one a file has, and what is no text at all.

A byte order mark tells, and so do the zero bytes of UTF-16. Most other files are UTF-8. What is not is read as cp1252, the
Windows form of Latin-1, if its letters look western European; it is refused otherwise, because a wrong encoding gives wrong
words without an error.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from encodings.aliases import aliases
from pathlib import Path
from typing import IO, Any

from ramify.arguments import describe
from ramify.errors import DataError, InputError, suggest

UTF_8 = "utf-8"
MARKS = {codecs.BOM_UTF8: UTF_8, codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}  # before those of UTF-16
MARKS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
BLOCK = 1 << 22  # bytes to look at at a time
START = 4096  # bytes that tell text from other content
UNDEFINED = b"\x81\x8d\x8f\x90\x9d"  # bytes that cp1252 has no character for
MOST_HIGH = 0.3  # fraction of the letters of western European text that are not ASCII
FEW_ZEROS, MANY_ZEROS = 0.05, 0.4  # fractions of the even and odd bytes of UTF-16 that are zero
CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f]")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
ASCII = bytes(range(128))
NOT_LETTERS = bytes(set(range(128)) - set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))


@contextmanager
def open_binary(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, gzipped or not; errors become DataErrors."""
    try:
        with open(path, "rb") as raw, ExitStack() as also:
            file: Any = also.enter_context(gzip.open(raw)) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
            yield file
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {(isinstance(error, OSError) and error.strerror) or error}.") from None


def known_encoding(name: str | None) -> str | None:
    """The canonical name of a text encoding; None, to find it, stays None."""
    if name is None:
        return None
    try:
        "".encode(name)
        io.TextIOWrapper(io.BytesIO(), encoding=name)
        return codecs.lookup(name).name
    except (LookupError, TypeError, ValueError):
        hint = suggest(str(name), sorted(set(aliases.values())))
        raise InputError(f"encoding {describe(name)} is unknown; give one such as 'cp1252' or 'utf-16'.{hint}") from None


def find_encoding(path: Path) -> str:
    """The encoding of a text file, from all of its bytes."""
    with open_binary(path) as file:
        block = file.read(BLOCK)
        if (marked := encoding_of_start(block[:START])) is not None:
            return marked
        tally = _Tally()
        while block:
            tally.add(block)
            block = file.read(BLOCK)
    return tally.judge(path)


def encoding_of_bytes(content: bytes, path: Path) -> str:
    """The encoding of the first part of a text file. path: for messages."""
    if (marked := encoding_of_start(content[:START])) is not None:
        return marked
    tally = _Tally()
    tally.add(content)
    return tally.judge(path)


def encoding_of_start(start: bytes) -> str | None:
    r"""UTF-8, UTF-16 or UTF-32, where a byte order mark or zero bytes tell.

    >>> encoding_of_start("text".encode("utf-16")), encoding_of_start("text".encode("utf-16-be")), encoding_of_start(b"text")
    ('utf-16', 'utf-16-be', None)
    """
    for mark, name in MARKS.items():
        if start.startswith(mark):
            return name
    even, odd = start[::2], start[1::2]
    for name, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        is_likely = zeros.count(0) > MANY_ZEROS * len(zeros) and others.count(0) <= FEW_ZEROS * len(others)
        if is_likely and CONTROL.search(start[: len(start) // 2 * 2].decode(name, "replace")) is None:
            return name
    return None


class _Tally:
    """What the bytes of a file say about its encoding."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder(UTF_8)("surrogateescape")
        self._n_good = self._n_bad = 0  # characters of UTF-8 beyond ASCII, and bytes that belong to none
        self._n_high = self._n_letters = 0
        self._seen: set[int] = set()

    def add(self, block: bytes) -> None:
        """Count the characters of a block."""
        if block.isascii() and not self._decoder.getstate()[0]:
            return
        text = self._decoder.decode(block)
        bad = len(LONE_SURROGATE.findall(text))
        self._n_bad, self._n_good = self._n_bad + bad, self._n_good + len(text) - len(text.encode("ascii", "ignore")) - bad
        if not bad:
            return
        letters = block.translate(None, NOT_LETTERS)
        high = letters.translate(None, ASCII)
        self._n_letters, self._n_high = self._n_letters + len(letters), self._n_high + len(high)
        self._seen.update(high)

    def judge(self, path: Path) -> str:
        """UTF-8 unless most bytes beyond ASCII are none of it."""
        if self._n_bad <= self._n_good:
            return UTF_8
        if self._n_high > MOST_HIGH * self._n_letters:
            advice = "give its --encoding, such as cp1251, gb18030 or shift_jis"
            raise DataError(f"{path} is not UTF-8, and not a western European text in cp1252 either; {advice}.")
        return "latin-1" if self._seen & set(UNDEFINED) else "cp1252"


def decode_errors(encoding: str) -> str:
    """How to treat bytes that cannot be decoded: as lone surrogates, where an encoding allows it."""
    return "strict" if encoding.replace("-", "").lower().startswith(("utf16", "utf32")) else "surrogateescape"


def to_utf_8(path: Path, blocks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Blocks of a text in UTF-8; what cannot be decoded stays invalid. path: for messages."""
    decoder = codecs.getincrementaldecoder(encoding)(decode_errors(encoding))
    try:
        for block in blocks:
            yield decoder.decode(block).encode(UTF_8, "surrogatepass")
        yield decoder.decode(b"", True).encode(UTF_8, "surrogatepass")
    except UnicodeError as error:
        raise DataError(f"{path} is not {encoding}: {error}.") from None


def has_bad_bytes(cell: str) -> bool:
    """Whether a text has bytes that could not be decoded, as lone surrogates."""
    return not cell.isascii() and LONE_SURROGATE.search(cell) is not None


def readable(cell: str) -> str:
    """A text with a mark in place of what could not be decoded."""
    return LONE_SURROGATE.sub("\ufffd", cell)
