"""Fingerprints of values and arrays, by which work that is taken up again knows that it is the same work."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse


def digest_of(*values: Any) -> str:
    """The same for the same values, and in all likelihood for no others.

    >>> digest_of([1, "a"], np.arange(3)) == digest_of([1, "a"], np.arange(3)) != digest_of([1, "b"], np.arange(3))
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        for piece in _pieces(value):
            digest.update(piece)
    return digest.hexdigest()


def _pieces(value: Any) -> Iterator[Any]:
    """A value as bytes, each part with what it is, so that parts cannot be mistaken for each other."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield f"array {value.dtype.str} {value.shape} ".encode()
        yield np.ascontiguousarray(value).view(np.uint8).reshape(-1).data if value.size else b""
    elif issparse(value):
        yield f"sparse {value.format} {value.shape} ".encode()
        compressed = value if value.format in ("csr", "csc") else value.tocsr()
        for part in (compressed.indptr, compressed.indices, compressed.data):
            yield from _pieces(part)
    elif is_dataclass(value) and not isinstance(value, type):
        yield f"{type(value).__name__} ".encode()
        for field in fields(value):
            if field.compare:
                yield from _pieces(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)} ".encode()
        for key, each in value.items():
            yield from _pieces(key)
            yield from _pieces(each)
    elif isinstance(value, (list, tuple)):
        yield f"list {len(value)} ".encode()
        for each in value:
            yield from _pieces(each)
    else:
        yield f"{type(value).__name__} {value!r} ".encode()
