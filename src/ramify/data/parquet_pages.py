"""What the rows of a Parquet file take when they are unpacked, from the headers of its pages.

The footer tells sizes too, but they may be wrong, whereas a page is unpacked into as many bytes as its header says. polars
tells neither. So the footer and the headers are decoded here: structs in Thrift's compact protocol, with the field numbers of
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from ramify.data.limits import MAX_RATIO
from ramify.errors import DataError

MAX_UNPACKED = 1 << 29  # bytes of a row group whose pages are far smaller
VALUE_SIZE = 16  # bytes of a value in a list, at most, beside the text itself
HEADER_SIZES = (1 << 12, 1 << 16, 1 << 20, 1 << 26)  # bytes of a page to read for its header, which may hold long statistics
Fields = dict[int, Any]  # a struct, by the number of each field
# what decoding damaged bytes raises
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, RecursionError, struct.error)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Neighbouring rows of a file, from `start` on. size: the bytes of their unpacked pages."""

    start: int
    n_rows: int
    size: int


def read_row_groups(path: Path) -> tuple[RowGroup, ...] | None:
    """The row groups of a file; None if its footer is damaged. Refuses pages that unpack to far more than their size."""
    try:
        about = path.stat()
        return _read_row_groups(path, about.st_size, about.st_mtime_ns)
    except DataError:
        raise
    except (OSError, *DAMAGE):
        return None


@lru_cache(maxsize=16)  # a large file is read in many blocks
def _read_row_groups(path: Path, size: int, time: int) -> tuple[RowGroup, ...]:
    groups: list[RowGroup] = []
    start = 0
    with open(path, "rb") as file:
        for fields in _footer(file)[4]:
            sizes = [_chunk_sizes(file, column[3], fields[3], size) for column in fields[1]]
            packed, unpacked = (sum(each[k] for each in sizes) for k in (0, 1))
            if unpacked > max(MAX_UNPACKED, MAX_RATIO * packed):
                found = f"{path}: {packed:,} bytes of {fields[3]:,} rows unpack to {unpacked:,}"
                raise DataError(f"{found}; write the file again in smaller row groups, or as CSV.")
            groups.append(RowGroup(start, fields[3], unpacked))
            start += fields[3]
    return tuple(groups)


def _chunk_sizes(file: IO[bytes], meta: Fields, n_rows: int, file_size: int) -> tuple[int, int]:
    """The bytes of one column of a row group, packed and unpacked."""
    start = meta.get(11) or meta[9]  # the page of a dictionary comes first, if there is one
    packed = min(meta[7], file_size)
    size = n_values = 0
    for header in _page_headers(file, start, start + packed):
        size += header[2]
        n_values += _n_values(header)
    if n_values < n_rows:
        raise ValueError(n_values)
    return packed, size + (VALUE_SIZE * n_values if n_values > n_rows else 0)  # more values than rows are those of lists


def _page_headers(file: IO[bytes], start: int, end: int) -> Iterator[Fields]:
    """The headers of the pages between two places of a file, up to what is none."""
    while start < end:
        try:
            header, size = _page_header(file, start, end)
            if min(header[2], header[3], _n_values(header)) < 0:
                return
        except DAMAGE:
            return  # polars stops here too
        yield header
        start += size + header[3]


def _page_header(file: IO[bytes], start: int, end: int) -> tuple[Fields, int]:
    """The header of a page, and its length."""
    for length in HEADER_SIZES:
        file.seek(start)
        try:
            return _Decoder(file.read(min(length, end - start))).fields()
        except IndexError:  # it is longer, or damaged
            if length >= end - start:
                break
    raise ValueError(start)


def _n_values(header: Fields) -> int:
    """The values of a page: of data in the first or second version, or none."""
    return int((header.get(5) or header.get(8) or {1: 0})[1])


def _footer(file: IO[bytes]) -> Fields:
    file.seek(-8, 2)
    length, mark = struct.unpack("<I4s", file.read(8))
    if mark != b"PAR1":
        raise ValueError(mark)
    file.seek(-8 - length, 2)
    return _Decoder(file.read(length)).fields()[0]


class _Decoder:
    """Decodes the compact protocol of Thrift; raises an IndexError where the bytes end too early."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def fields(self) -> tuple[Fields, int]:
        """The fields of the struct that begins here, and the place after it."""
        found: Fields = {}
        number = 0
        while (head := self._byte()) & 15:
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            found[number] = kind == 1 if kind in (1, 2) else self._value(kind)  # the head of a field holds a Boolean itself
        return found, self.place

    def _value(self, kind: int) -> Any:
        if kind in (1, 2, 3):
            return self._byte()
        if kind in (4, 5, 6):
            return self._integer()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._length())
        if kind in (9, 10):
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._length()
            return [self._value(head & 15) for _ in range(size)]
        if kind == 11:
            size = self._length()
            kinds = self._byte() if size else 0
            return [(self._value(kinds >> 4), self._value(kinds & 15)) for _ in range(size)]
        if kind == 12:
            return self.fields()[0]
        raise ValueError(kind)

    def _byte(self) -> int:
        self.place += 1
        return self.data[self.place - 1]

    def _bytes(self, size: int) -> bytes:
        self.place += size
        if self.place > len(self.data):
            raise IndexError
        return self.data[self.place - size : self.place]

    def _length(self) -> int:
        """Seven bits in each byte, the lowest ones first; the eighth bit says that another byte follows."""
        value = shift = 0
        while (byte := self._byte()) & 128:
            value |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise ValueError(shift)
        return value | byte << shift

    def _integer(self) -> int:
        """A length that is twice the number, or twice minus one of a negative number turned round."""
        value = self._length()
        return value >> 1 ^ -(value & 1)
