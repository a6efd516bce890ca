"""Answers of a system as a few characters, so that a step of a study can keep them."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


def pack(numbers: Any) -> str:
    """Whole numbers as text.

    >>> unpack(pack([3, 1, 4])).tolist()
    [3, 1, 4]
    """
    return b64encode(zlib.compress(np.asarray(numbers, dtype="<i4").tobytes())).decode("ascii")


def unpack(text: str) -> NDArray[np.int64]:
    """The numbers of :func:`pack`."""
    return np.frombuffer(zlib.decompress(b64decode(text)), dtype="<i4").astype(np.int64)


def pack_labels(Y: csr_array) -> dict[str, str]:
    """Labels, documents × nodes, as text.

    >>> unpack_labels(pack_labels(csr_array([[True, False], [True, True]])), 2).toarray()
    array([[ True, False],
           [ True,  True]])
    """
    return {"offsets": pack(Y.indptr), "nodes": pack(Y.indices)}


def unpack_labels(packed: dict[str, str], n_nodes: int) -> csr_array:
    """The labels of :func:`pack_labels`."""
    offsets, nodes = unpack(packed["offsets"]), unpack(packed["nodes"])
    return csr_array((np.ones(len(nodes), dtype=bool), nodes, offsets), shape=(len(offsets) - 1, n_nodes))
