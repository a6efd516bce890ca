"""What a value consists of: its arrays, its size in bytes, and its fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

PLAIN = (bool, int, float, complex, str, bytes, np.generic, range, slice)


@dataclass(frozen=True, slots=True)
class Placed:
    """A value that a cluster holds once on each node; its fingerprint is that of the value."""

    value: Any
    reference: Any = field(compare=False)


def arrays_in(value: Any) -> Iterator[NDArray[Any]]:
    """All arrays that a value consists of.

    >>> [array.tolist() for array in arrays_in({"a": np.arange(2), "b": [np.ones(1), 3]})]
    [[0, 1], [1.0]]
    """
    if isinstance(value, np.ndarray):
        yield value
    elif issparse(value):
        yield from _sparse_parts(value)
    else:
        for part in _parts_of(value) or ():
            yield from arrays_in(part)


def size_of(value: Any) -> int:
    """Bytes of the arrays and texts in a value, and 8 for everything else, such as a placed value.

    >>> size_of({"a": np.zeros(10), "b": [np.zeros(5, dtype=np.float32), 1]})
    110
    """
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, (str, bytes)):
        return len(value)
    if issparse(value):
        return sum(int(part.nbytes) for part in _sparse_parts(value))
    parts = None if isinstance(value, Placed) else _parts_of(value)
    if parts is None:
        return 8
    return sum(map(size_of, parts)) + (sum(map(size_of, value)) if isinstance(value, Mapping) else 0)


def digest_of(*values: Any) -> str:
    """A fingerprint: the same for equal values, and with near certainty different for different ones.

    >>> digest_of([1, "a"], np.arange(3)) == digest_of([1, "a"], np.arange(3)) != digest_of([1, "b"], np.arange(3))
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        for piece in _pieces(value):
            digest.update(piece)
    return digest.hexdigest()


def _parts_of(value: Any) -> list[Any] | None:
    """The items of a container, the values of a mapping, the compared fields of a dataclass; None for other values."""
    if isinstance(value, (Mapping, list, tuple)):
        return list(value.values() if isinstance(value, Mapping) else value)
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, each.name) for each in fields(value) if each.compare]
    return None


def _sparse_parts(value: Any) -> tuple[NDArray[Any], ...]:
    compressed = value if value.format in ("csr", "csc") else value.tocsr()
    return compressed.indptr, compressed.indices, compressed.data


def _pieces(value: Any) -> Iterator[Any]:
    """A value as bytes, each part with its type, so that different parts never give the same bytes."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield f"array {value.dtype.str} {value.shape} ".encode()
        yield np.ascontiguousarray(value).view(np.uint8).reshape(-1).data if value.size else b""
    elif issparse(value):
        yield f"sparse {value.format} {value.shape} ".encode()
        for part in _sparse_parts(value):
            yield from _pieces(part)
    elif isinstance(value, Placed):
        yield from _pieces(value.value)
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)} ".encode()
        for item in value.items():
            yield from _pieces(item)
    elif isinstance(value, (set, frozenset)):
        yield f"set {len(value)} ".encode()
        yield from sorted(digest_of(each).encode() for each in value)
    elif (parts := _parts_of(value)) is not None:
        yield f"{'list' if isinstance(value, (list, tuple)) else type(value).__name__} {len(parts)} ".encode()
        for part in parts:
            yield from _pieces(part)
    elif isinstance(value, (FunctionType, BuiltinFunctionType, type)):
        yield f"{value.__module__}.{value.__qualname__} ".encode()
    elif value is None or isinstance(value, PLAIN):
        yield f"{type(value).__name__} {value!r} ".encode()
    elif isinstance(value, np.ndarray):
        yield from _pieces(["array of objects", value.shape, value.tolist()])
    else:  # what pickle would send: how an object is built, and from what; its repr may hide all of that
        made = value.__reduce_ex__(4)
        built = [made] if isinstance(made, str) else [*made[1:3], *(list(each) for each in made[3:5] if each is not None)]
        yield from _pieces([type(value), *built])
