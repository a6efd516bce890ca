"""Named arrays in a safetensors file, mapped into memory on load instead of copied."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ramify.errors import ModelError

DTYPES = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "I16": np.int16, "I32": np.int32, "I64": np.int64,
    "U16": np.uint16, "U32": np.uint32, "U64": np.uint64, "F16": np.float16, "F32": np.float32, "F64": np.float64,
}  # fmt: skip


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays and flush them to the disk."""
    try:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)
    except SafetensorError as error:
        raise OSError(0, str(error)[:120]) from error
    path.chmod(path.parent.stat().st_mode & 0o666)  # the library makes it private; follow the directory instead
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def map_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read-only views of the arrays in a file; the system loads what is touched."""
    try:
        with safe_open(path, framework="np") as file:  # checks the header: offsets, shapes, sizes, no holes
            names = list(file.keys())
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path} is not a valid array file ({str(error)[:80]}); train the model again.") from None
    if not names:
        return {}
    with open(path, "rb") as raw:
        length = int.from_bytes(raw.read(8), "little")
        header = json.loads(raw.read(length))
    data = np.memmap(path, dtype=np.uint8, mode="r", offset=0)
    return {name: _view(data, header[name], 8 + length, path) for name in names}


def _view(data: NDArray[np.uint8], entry: dict[str, Any], start: int, path: Path) -> NDArray[Any]:
    if entry["dtype"] not in DTYPES:
        raise ModelError(
            f"{path} holds an array of type {entry['dtype']!r}, which no Ramify writes; do not trust this model."
        )
    begin, end = entry["data_offsets"]
    return np.asarray(data[start + begin : start + end]).view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
