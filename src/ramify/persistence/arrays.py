"""Named arrays in a safetensors file, mapped into memory on load instead of copied.

The library writes the file. It cannot map one that is already open, so the header is read here: 8 bytes of length, then JSON
with type, shape and place of each array, which must lie one after the other, aligned, and fill the file.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from ramify.errors import ModelError
from ramify.persistence import atomic

MAX_HEADER = 1 << 24
DTYPES = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "I16": np.int16, "I32": np.int32, "I64": np.int64,
    "U16": np.uint16, "U32": np.uint32, "U64": np.uint64, "F16": np.float16, "F32": np.float32, "F64": np.float64,
}  # fmt: skip


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays and flush them to the disk."""
    try:
        save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, path)
    except SafetensorError as error:
        raise OSError(0, str(error)[:120]) from error
    path.chmod(wanted_mode(path))  # the library makes it private
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def wanted_mode(path: Path) -> int:
    """Who may read and write a file: whoever may do so in its directory."""
    return path.parent.stat().st_mode & 0o666


def open_to_readers(path: Path, mode: int) -> None:
    """Let whoever may read a directory read a file that has come to it; nobody loses a right that he had."""
    if wanted_mode(path) & ~mode:
        path.chmod((mode & 0o777) | wanted_mode(path))


def map_arrays(path: Path, file: IO[bytes]) -> dict[str, NDArray[Any]]:
    """Read-only views of the arrays in an open file; the system loads what is touched."""
    return map_bytes(path, file)[1]


def map_bytes(path: Path, file: IO[bytes]) -> tuple[NDArray[np.uint8], dict[str, NDArray[Any]]]:
    """All bytes of an open array file, and the arrays in them as read-only views."""
    try:
        return _map(file)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ModelError(f"{path} is not a valid array file ({str(error)[:80]}); train the model again.") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be mapped: {error.strerror}. {remedy(error, 'Free some memory.')}") from None


def remedy(error: OSError, usual: str) -> str:
    """What to do about a file that cannot be opened: a model of many shards needs many open files."""
    return "Let the process open more files ('ulimit -n')." if error.errno == errno.EMFILE else usual


def _map(file: IO[bytes]) -> tuple[NDArray[np.uint8], dict[str, NDArray[Any]]]:
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(MAX_HEADER, size - 8):
        raise ValueError(f"a header of {length} bytes")
    header = json.loads(file.read(length))
    if not isinstance(header, dict) or not all(isinstance(entry, dict) for entry in header.values()):
        raise ValueError("a header that is no object of objects")
    entries = sorted(
        ((name, entry) for name, entry in header.items() if name != "__metadata__"), key=lambda e: e[1]["data_offsets"]
    )
    data = np.memmap(file, dtype=np.uint8, mode="r")
    arrays, position = {}, 0
    for name, entry in entries:
        arrays[name], position = _view(data[8 + length :], entry, position)
    if 8 + length + position != size:
        raise ValueError("bytes that belong to no array")
    return data, arrays


def _view(data: NDArray[np.uint8], entry: dict[str, Any], position: int) -> tuple[NDArray[Any], int]:
    """One array that begins where the last one ended, and where it ends itself."""
    dtype, shape = np.dtype(DTYPES[entry["dtype"]]), entry["shape"]
    begin, end = entry["data_offsets"]
    if not all(type(n) is int and n >= 0 for n in (*shape, begin, end)):
        raise ValueError("a size below 0")
    if begin != position or end - begin != prod(shape) * dtype.itemsize or end > len(data):
        raise ValueError("arrays that overlap, leave holes or reach beyond the end")
    array = np.asarray(data[begin:end]).view(dtype).reshape(shape)
    if not array.flags.aligned:
        raise ValueError("an array that is not aligned")
    return array, end


# --------------------------------------------------------------------------------------------------------------
# Array files that go from place to place without going through memory: mapped ones, and ones that are made when written.


CHUNK = 1 << 24  # bytes that are copied at a time

Arrays = dict[str, NDArray[Any]]


class ArrayFile(Protocol):
    """Named arrays that can be put into a new file."""

    @property
    def sha256(self) -> str | None:
        """The hash that the new file must have; None where nobody knows it yet."""

    def put(self, target: Path) -> None:
        """Write them to a place where nothing is."""


@dataclass(frozen=True, slots=True, eq=False)
class LazyArrays:
    """Arrays that exist only while they are written."""

    make: Callable[[], Arrays]
    sha256: str | None = None

    def put(self, target: Path) -> None:
        """Make the arrays, write them, and give them up."""
        write_arrays(target, self.make())


@dataclass(frozen=True, slots=True, eq=False)
class MappedFile:
    """An array file that is mapped into memory; what was mapped stays, whatever happens to its name.

    path: where it was. arrays: views of the map. data: all its bytes. place: device and number of the file.
    sha256: what its hash was when it was opened, where that was asked.
    """

    path: Path
    arrays: Arrays
    data: NDArray[np.uint8]
    place: tuple[int, int]
    sha256: str | None = None

    def put(self, target: Path) -> None:
        """Give the same bytes a second name; where that cannot be, copy them from the map to the disk."""
        if not self._link(target):
            self._copy(target)

    def _link(self, target: Path) -> bool:
        """Make a hard link, if under the old name there still is the file that was mapped."""
        try:
            os.link(self.path, target)
            found = os.lstat(target)
            if (found.st_dev, found.st_ino) == self.place:
                open_to_readers(target, found.st_mode)
                return True
        except OSError:  # another disk, no hard links there, somebody else's file, or it is gone
            pass
        with suppress(FileNotFoundError):
            target.unlink()
        return False

    def _copy(self, target: Path) -> None:
        with open(target, "xb") as file:
            for start in range(0, len(self.data), CHUNK):
                file.write(self.data[start : start + CHUNK])  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        target.chmod(wanted_mode(target))


def map_file(path: Path, file: IO[bytes], sha256: str | None = None) -> MappedFile:
    """Map an open array file after checking its header."""
    data, arrays = map_bytes(path, file)
    found = os.fstat(file.fileno())
    return MappedFile(path, arrays, data, (found.st_dev, found.st_ino), sha256)


def write_array_file(path: str | Path, arrays: Arrays) -> None:
    """Write an array file that stands alone: it is there whole or not at all."""
    path = Path(path)
    try:
        atomic.clear_leftovers(path)
        with atomic.claimed(path, Path.mkdir) as beside:
            write_arrays(beside / "arrays", arrays)
            os.replace(beside / "arrays", path)
        atomic.sync_directory(path.parent)
    except OSError as error:
        raise ModelError(f"cannot write {path}: {error.strerror}; what was there before is untouched.") from error
