"""Documents that are the same are one document with the sum of their costs, in an order that is theirs alone.

So a problem does not depend on the order in which documents came, nor on whether one came twice or with twice the weight.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

MIXERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # odd, with bits all over: products spread every bit of a word


def unite(X: csr_array, labels: NDArray[np.int32], costs: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """One of each group of equal documents with the same label, and the cost of the group; none that costs nothing.

    >>> unite(csr_array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]]), np.asarray([0, 1, 0]), np.asarray([1.0, 1.0, 3.0]))[1]
    array([4., 1.])
    """
    paid = np.flatnonzero(costs > 0)
    order = paid[np.lexsort((row_codes(X)[paid], labels[paid]))]
    begins = np.flatnonzero(_differ_from_last(X, labels, order))
    return order[begins], np.add.reduceat(costs[order], begins) if len(begins) else np.zeros(0)


def row_codes(X: csr_array) -> NDArray[np.uint64]:
    """A number for every row that depends on its features and values alone; different rows rarely share it."""
    words = (X.indices.astype(np.uint64) << np.uint64(32)) | X.data.astype(np.float32).view(np.uint32)
    for mixer in MIXERS:
        words = (words ^ (words >> np.uint64(31))) * np.uint64(mixer)
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(words, dtype=np.uint64)])
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


def _differ_from_last(X: csr_array, labels: NDArray[np.int32], order: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each document, in order, is another than the one before."""
    codes, differ = row_codes(X), np.ones(len(order), dtype=bool)
    alike = (codes[order[1:]] == codes[order[:-1]]) & (labels[order[1:]] == labels[order[:-1]])
    for k in np.flatnonzero(alike).tolist():
        a, b = (slice(X.indptr[d], X.indptr[d + 1]) for d in (order[k], order[k + 1]))
        same = np.array_equal(X.indices[a], X.indices[b]) and np.array_equal(X.data[a], X.data[b])
        differ[k + 1] = not same
    return differ
