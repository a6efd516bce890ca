"""Named arrays in a safetensors file, mapped into memory on load instead of copied.

The library writes the file. It cannot map one that is already open, so the header is read here: 8 bytes of length, then JSON
with type, shape and place of each array, which must lie one after the other, aligned, and fill the file.
"""

from __future__ import annotations

import errno
import json
import os
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from ramify.errors import ModelError

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
