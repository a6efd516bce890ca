"""How large cells, rows and tables may be. A few bytes of gzip, zstd or a dictionary may stand for gigabytes, so whatever is
read is measured before it is held; a small file never fills the memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from sys import getsizeof
from typing import Any

from ramify.errors import DataError

MAX_CELL = 10_000_000  # characters
MAX_LINE = 20_000_000  # characters of a line, of a row on several lines or of an object; or bytes of UTF-8
MAX_VALUES = 1_000_000  # cells of a row, and values nested in an object
# what a file may take in memory: so many bytes, or so many times its size; files of real documents unpack to ten times theirs
USUAL_SIZE, MAX_RATIO = 1 << 28, 200
ROW_SIZE, BAD_ROW_SIZE = 100, 250  # bytes that a row takes beside its cells

# a string, or a mark that begins, separates or ends values; possessive, so that no length of a string takes memory
JSON_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{,\]}]', re.DOTALL)


@dataclass(slots=True)
class UnpackedSize:
    """Adds up the bytes of what is held of some files; refuses files that unpack to far more than their size. source: for
    the message.
    """

    source: str
    most: int
    size: int = 0

    @classmethod
    def of(cls, source: object, paths: Iterable[Path]) -> UnpackedSize:
        """With the limit for these files."""
        return cls(str(source), max(USUAL_SIZE, MAX_RATIO * sum(os.path.getsize(path) for path in paths)))

    def add(self, size: int) -> None:
        """Count some bytes."""
        self.size += size
        if self.size > self.most:
            found = f"{self.source} unpacks to more than {self.most:,} bytes, which is over {MAX_RATIO} times its size"
            raise DataError(f"{found}; if that is what you want to read, write it as plain CSV.")


def size_of(value: Any) -> int:
    """The bytes of a row, cell or other plain value, with all that it holds."""
    size, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        size += getsizeof(each)
        if isinstance(each, dict):
            waiting += each.keys()
            waiting += each.values()
        elif isinstance(each, (list, tuple)):
            waiting += each
    return size


def has_too_many_values(text: str, start: int = 0) -> bool:
    """Whether the JSON value that begins at `start` holds more than MAX_VALUES; looks at the text only.

    >>> has_too_many_values('[[], "a,[,b", {"a": 1}]')
    False
    """
    if len(text) - start <= MAX_VALUES or sum(text.count(mark, start) for mark in ",[{") <= MAX_VALUES:
        return False
    n_values = depth = 0
    for token in JSON_TOKEN.finditer(text, start):
        mark = text[token.start()]
        if mark in "]}":
            depth -= 1
            if depth <= 0:  # what follows belongs to no value, or to the next one
                return False
        elif mark != '"':
            depth += mark != ","
            n_values += 1
            if n_values > MAX_VALUES:
                return True
    return False
