"""Named arrays in safetensors files, memory-mapped on load, and checks of arrays that were read.

The safetensors library writes the file. It cannot map a file that is already open, so this module reads the header: 8 bytes of
length, then JSON with type, shape and offsets of each array. Arrays must be contiguous and aligned, and fill the file.
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
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from ramify.errors import ModelError
from ramify.persistence import atomic

MAX_HEADER = 1 << 24
CHUNK = 1 << 24  # bytes to copy at a time
DTYPES = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "I16": np.int16, "I32": np.int32, "I64": np.int64,
    "U16": np.uint16, "U32": np.uint32, "U64": np.uint64, "F16": np.float16, "F32": np.float32, "F64": np.float64,
}  # fmt: skip

Arrays = dict[str, NDArray[Any]]


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write arrays and flush them to disk."""
    try:
        save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, path)
    except SafetensorError as error:
        raise OSError(0, str(error)[:120]) from error
    path.chmod(_mode_of_directory(path))  # the library makes it private
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _mode_of_directory(path: Path) -> int:
    """The read and write permissions of a file's directory."""
    return path.parent.stat().st_mode & 0o666


def map_arrays(path: Path, file: IO[bytes]) -> Arrays:
    """Read-only views of the arrays in an open file; the system loads pages on access."""
    return map_file(path, file).arrays


def map_file(path: Path, file: IO[bytes], sha256: str | None = None) -> MappedFile:
    """Map an open array file after checking its header."""
    try:
        found = os.fstat(file.fileno())
        size = found.st_size
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(MAX_HEADER, size - 8):
            raise ValueError(f"its header has {length} bytes")
        header = json.loads(file.read(length))
        if not isinstance(header, dict) or not all(isinstance(entry, dict) for entry in header.values()):
            raise ValueError("its header is not an object of objects")
        header.pop("__metadata__", None)
        data, arrays, position = np.memmap(file, dtype=np.uint8, mode="r"), {}, 0
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            dtype, shape = np.dtype(DTYPES[entry["dtype"]]), entry["shape"]
            begin, end = entry["data_offsets"]
            if not all(type(n) is int and n >= 0 for n in (*shape, begin, end)):
                raise ValueError("a size is negative")
            if begin != position or end - begin != prod(shape) * dtype.itemsize or 8 + length + end > size:
                raise ValueError("its arrays overlap, leave gaps or exceed the file")
            arrays[name] = np.asarray(data[8 + length + begin : 8 + length + end]).view(dtype).reshape(shape)
            if not arrays[name].flags.aligned:
                raise ValueError("an array is not aligned")
            position = end
        if 8 + length + position != size:
            raise ValueError("some bytes belong to no array")
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ModelError(f"{path} is not a valid array file ({str(error)[:80]}); train the model again.") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be mapped: {error.strerror}. {remedy(error, 'Free some memory.')}") from None
    return MappedFile(path, arrays, data, (found.st_dev, found.st_ino), sha256)


def remedy(error: OSError, usual: str) -> str:
    """What to do when a file cannot be opened; a model with many shards needs many open files."""
    return "Let the process open more files ('ulimit -n')." if error.errno == errno.EMFILE else usual


def is_increasing(values: NDArray[Any], *, strictly: bool = False) -> bool:
    """Whether a vector increases; compares neighbours, because differences of hostile int64 values wrap around.

    >>> is_increasing(np.array([0, 2, 2])), is_increasing(np.array([0, 2, 2]), strictly=True)
    (True, False)
    """
    return bool(np.all(values[1:] > values[:-1] if strictly else values[1:] >= values[:-1]))


def are_offsets(offsets: NDArray[Any], n_rows: int, n_entries: int) -> bool:
    """Whether an array holds the int64 offsets of so many rows over so many entries, as in a CSR matrix.

    >>> are_offsets(np.array([0, 2, 2, 5]), 3, 5), are_offsets(np.array([0, 3, 2, 5]), 3, 5)
    (True, False)
    """
    fits = offsets.dtype == np.int64 and offsets.shape == (n_rows + 1,)
    return fits and bool(offsets[0] == 0) and bool(offsets[-1] == n_entries) and is_increasing(offsets)


def are_finite(numbers: NDArray[np.floating[Any]]) -> bool:
    """Whether all numbers are finite; makes no copy, since they may be memory-mapped."""
    return not len(numbers) or bool(np.isfinite([numbers.min(), numbers.max()]).all())


@dataclass(frozen=True, slots=True, eq=False)
class LazyArrays:
    """Arrays that are computed when they are written, and not kept. sha256: the hash that the file must have, if known."""

    make: Callable[[], Arrays]
    sha256: str | None = None

    def write_to(self, target: Path) -> None:
        """Compute the arrays, and write them to a path that does not exist yet."""
        write_arrays(target, self.make())


@dataclass(frozen=True, slots=True, eq=False)
class MappedFile:
    """A memory-mapped array file; the mapping outlives a change of the file's name.

    arrays: views of `data`, which is all its bytes. inode: device and inode of the file. sha256: its hash when it was opened,
    None if not computed.
    """

    path: Path
    arrays: Arrays
    data: NDArray[np.uint8]
    inode: tuple[int, int]
    sha256: str | None = None

    def write_to(self, target: Path) -> None:
        """Make a hard link to the file, if its path still is the file that was mapped; or copy its bytes."""
        try:
            os.link(self.path, target)
            found = os.lstat(target)
            if (found.st_dev, found.st_ino) == self.inode:
                if (wanted := _mode_of_directory(target)) & ~found.st_mode:
                    target.chmod((found.st_mode & 0o777) | wanted)
                return
        except OSError:  # another disk, no hard links there, another owner's file, or it is gone
            pass
        with suppress(FileNotFoundError):
            target.unlink()
        with open(target, "xb") as file:
            for start in range(0, len(self.data), CHUNK):
                file.write(self.data[start : start + CHUNK])  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        target.chmod(_mode_of_directory(target))


ArrayFile = LazyArrays | MappedFile  # can be written to a new file


def write_array_file(path: str | Path, arrays: Arrays) -> None:
    """Write a single array file atomically."""
    path = Path(path)
    try:
        atomic.clear_leftovers(path)
        with atomic.temporary_beside(path, Path.mkdir) as beside:
            write_arrays(beside / "arrays", arrays)
            os.replace(beside / "arrays", path)
        atomic.sync_directory(path.parent)
    except OSError as error:
        raise ModelError(f"cannot write {path}: {error.strerror}; the old file is unchanged.") from error
