"""Named arrays in safetensors files, memory-mapped on load or read into memory, and checks of arrays that were read.

The safetensors library writes the file. It cannot map a file that is already open, so this module reads the header: 8 bytes of
length, then JSON with type, shape and offsets of each array. Arrays must be contiguous and aligned, and fill the file.

Mapped arrays change with their file; arrays that were read do not. A map is no np.memmap, which joblib would send to other
processes as a file name.
"""

from __future__ import annotations

import errno
import hashlib
import json
import mmap
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from ramify.errors import ModelError
from ramify.persistence import atomic

MAX_HEADER = 1 << 24
MAX_NESTED = 1 << 20  # lists and objects of a header: an array has three of at least 20 bytes each
MAX_DIMENSIONS = 32
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
    return open_arrays(path, file).arrays


def open_arrays(path: Path, file: IO[bytes], sha256: str | None = None, private: bool = False) -> OpenedArrays:
    """The arrays of an open file after checking its header, and its hash if given.

    private: read them into memory, and check what was read, so that they stay as they are whatever happens to the file.
    """
    try:
        found = os.fstat(file.fileno())
        if private:
            if found.st_size > (free := free_memory()):  # a file may say that it has bytes which are nowhere on the disk
                raise MemoryError(f"{found.st_size / 1e6:,.0f} MB, and {free / 1e6:,.0f} MB are free")
            data = np.fromfile(file, dtype=np.uint8, count=found.st_size)
            data.flags.writeable = False
        else:
            data = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.uint8)
        is_same = sha256 is None or _digest(file, data, private) == sha256
        arrays = _parse(data) if is_same else {}
    except MemoryError as error:
        raise ModelError(f"{path} does not fit into memory ({str(error)[:80]}); load it where there is more.") from None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ModelError(f"{path} is not a valid array file ({str(error)[:80]}); train the model again.") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be mapped: {error.strerror}. {remedy(error, 'Free some memory.')}") from None
    if not is_same:
        raise ModelError(f"{path} was changed after it was saved. Train the model again, or restore it from a copy.")
    stamp = FileStamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
    return OpenedArrays(path, arrays, data, None if private else stamp, sha256)


def free_memory() -> float:
    """Bytes of memory that are free on this computer; infinite where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return float(next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")))
    except (OSError, ValueError, IndexError, StopIteration):
        return float("inf")


def _digest(file: IO[bytes], data: NDArray[np.uint8], private: bool) -> str:
    """The SHA-256 of private data, or of the file: a map would end the process if another one truncated the file."""
    if private:
        return hashlib.sha256(data.data).hexdigest()
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _parse(data: NDArray[np.uint8]) -> Arrays:
    """Views of the arrays in the bytes of a file."""
    size, length = len(data), int.from_bytes(data[:8].tobytes(), "little")
    if not 2 <= length <= min(MAX_HEADER, size - 8):
        raise ValueError(f"its header has {length} bytes")
    text = data[8 : 8 + length].tobytes()
    if text.count(b"[") + text.count(b"{") > MAX_NESTED:  # a few bytes each, but 50 times as much in memory
        raise ValueError(f"its header has more than {MAX_NESTED:,} lists and objects")
    header = json.loads(text)
    if not isinstance(header, dict) or not all(isinstance(entry, dict) for entry in header.values()):
        raise ValueError("its header is not an object of objects")
    header.pop("__metadata__", None)
    arrays, position = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape = np.dtype(DTYPES[entry["dtype"]]), entry["shape"]
        begin, end = entry["data_offsets"]
        if len(shape) > MAX_DIMENSIONS or not all(type(n) is int and 0 <= n <= size for n in (*shape, begin, end)):
            raise ValueError("a size is not possible")
        if begin != position or end - begin != prod(shape) * dtype.itemsize or 8 + length + end > size:
            raise ValueError("its arrays overlap, leave gaps or exceed the file")
        arrays[name] = data[8 + length + begin : 8 + length + end].view(dtype).reshape(shape)
        if not arrays[name].flags.aligned:
            raise ValueError("an array is not aligned")
        if dtype == np.bool_ and prod(shape) and arrays[name].view(np.uint8).max() > 1:  # NumPy counts on 0 and 1
            raise ValueError("an array of true and false holds other values")
        position = end
    if 8 + length + position != size:
        raise ValueError("some bytes belong to no array")
    return arrays


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


def are_indices(values: NDArray[Any], n: int, *, first: int = 0) -> bool:
    """Whether an array is a vector of integers from `first` to n - 1.

    >>> are_indices(np.array([0, 2]), 3), are_indices(np.array([0, 3]), 3), are_indices(np.array([-1, 2]), 3, first=-1)
    (True, False, True)
    """
    is_vector = values.ndim == 1 and values.dtype.kind == "i"
    return is_vector and (not len(values) or bool(values.min() >= first and values.max() < n))


def are_finite(numbers: NDArray[np.floating[Any]]) -> bool:
    """Whether all numbers are finite; makes no copy, since they may be memory-mapped."""
    return not len(numbers) or bool(np.isfinite([numbers.min(), numbers.max()]).all())


def checked_number(values: dict[str, Any], name: str, low: float, high: float) -> float:
    """A number of a model file; refuses other values, such as the text "nan", and numbers outside a range.

    >>> checked_number({"slack": 0.5}, "slack", 0, 1)
    0.5
    """
    value = values[name]
    if type(value) not in (int, float) or not low <= value <= high:
        found = f"{name.replace('_', ' ')} of the model is {repr(value)[:80]}, not a number from {low:g} to {high:g}"
        raise ModelError(f"{found}; train the model again.")
    return float(value)


def checked_count(values: dict[str, Any], name: str, low: int, high: int) -> int:
    """The same for a whole number.

    >>> checked_count({"n_features": 5}, "n_features", 1, 9)
    5
    """
    value = values[name]
    if type(value) is not int or not low <= value <= high:
        found = f"{name.replace('_', ' ')} of the model is {repr(value)[:80]}, not a whole number from {low:,} to {high:,}"
        raise ModelError(f"{found}; train the model again.")
    return value


class FileStamp(NamedTuple):
    """What tells whether a file is another one, or was changed, since it was opened."""

    device: int
    inode: int
    size: int
    changed_ns: int


@dataclass(frozen=True, slots=True, eq=False)
class LazyArrays:
    """Arrays that are computed when they are written, and not kept. sha256: the hash that the file must have, if known."""

    make: Callable[[], Arrays]
    sha256: str | None = None

    def write_to(self, target: Path) -> None:
        """Compute the arrays, and write them to a path that does not exist yet."""
        write_arrays(target, self.make())


@dataclass(frozen=True, slots=True, eq=False)
class OpenedArrays:
    """An array file that was mapped or read; a mapping outlives a change of the file's name.

    arrays: views of `data`, which is all its bytes. stamp: which file was mapped, None if it was read. sha256: its hash when it
    was opened, None if not computed.
    """

    path: Path
    arrays: Arrays
    data: NDArray[np.uint8]
    stamp: FileStamp | None
    sha256: str | None = None

    def __reduce__(self) -> Any:
        """Another process gets the bytes."""
        return _from_bytes, (self.path, np.asarray(self.data), self.sha256)

    def write_to(self, target: Path) -> None:
        """Make a hard link to the file, if its path still is the file that was mapped; or copy its bytes."""
        if self.stamp is not None and self._link(target):
            return
        with open(target, "xb") as file:
            for start in range(0, len(self.data), CHUNK):
                file.write(self.data[start : start + CHUNK])  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        target.chmod(_mode_of_directory(target))

    def _link(self, target: Path) -> bool:
        try:
            os.link(self.path, target)
            found = os.lstat(target)
            if self.stamp is not None and (found.st_dev, found.st_ino) == self.stamp[:2]:
                if (wanted := _mode_of_directory(target)) & ~found.st_mode:
                    target.chmod((found.st_mode & 0o777) | wanted)
                return True
        except OSError:  # another disk, no hard links there, another owner's file, or it is gone
            pass
        with suppress(FileNotFoundError):
            target.unlink()
        return False


def _from_bytes(path: Path, data: NDArray[np.uint8], sha256: str | None) -> OpenedArrays:
    data.flags.writeable = False
    return OpenedArrays(path, _parse(data), data, None, sha256)


ArrayFile = LazyArrays | OpenedArrays  # can be written to a new file


def write_array_file(path: str | Path, arrays: Arrays) -> None:
    """Write a single array file atomically."""
    path = Path(path)
    try:
        atomic.clear_leftovers(path)
        with atomic.temporary_beside(path, Path.mkdir) as beside:
            write_arrays(beside / "arrays", arrays)
            atomic.replace_file(beside / "arrays", path)
    except OSError as error:
        raise ModelError(f"cannot write {path}: {error.strerror}; the old file is unchanged.") from error
