"""Large pages for arrays in shared memory.

Kernels read documents here and there, and with small pages spend part of their time on looking up where these are. Arrays of a
process get large pages when they are made; what comes out of an object store does not, unless the system is asked for it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

LARGE_PAGE = 1 << 21
COLLAPSE = 25  # linux/mman.h: make large pages of small ones, now, also of shared memory; since Linux 6.1


def use_large_pages(value: Any) -> None:
    """Have the system gather the pages of all large arrays in a value; where it cannot, small pages serve, too."""
    if sys.platform != "linux":
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for array in arrays_in(value):
        first = -(-array.ctypes.data // LARGE_PAGE) * LARGE_PAGE
        last = (array.ctypes.data + array.nbytes) // LARGE_PAGE * LARGE_PAGE
        if last > first and array.flags.c_contiguous and advise(first, last - first, COLLAPSE):
            return  # it cannot, or has none to spare


def arrays_in(value: Any) -> Iterator[NDArray[Any]]:
    """All arrays that a value consists of.

    >>> [array.tolist() for array in arrays_in({"a": np.arange(2), "b": [np.ones(1), 3]})]
    [[0, 1], [1.0]]
    """
    if isinstance(value, np.ndarray):
        yield value
    elif issparse(value):
        yield from (getattr(value, part) for part in ("data", "indices", "indptr") if hasattr(value, part))
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from arrays_in(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from arrays_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from arrays_in(each)
