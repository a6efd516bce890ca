"""From vectors of documents to groups of categories: centroids, their distances, and cuts of a dendrogram."""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

DECIMALS = 12  # what rounding adds to a distance is gone, so that equal distances are equal in any order of documents
BLOCK = 256

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def unit_rows(matrix: csr_array) -> csr_array:
    """Rows of length 1; empty ones stay empty."""
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    unit = matrix.copy()
    unit.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(matrix.indptr))
    return unit


def centroids_of(X: csr_array, Y: csr_array) -> csr_array:
    """categories × features: the direction of the mean of each category's documents."""
    return unit_rows(csr_array(Y.T.astype(np.float64) @ X))


def draw(X: csr_array, Y: csr_array, sample: int, seed: int) -> csr_array:
    """The labels of at most so many documents of each category.

    Documents are drawn by a hash of the seed and what is in them, so that their order does not matter.
    """
    ranks = np.argsort(np.argsort(_lots(X, seed), kind="stable"), kind="stable")
    columns = Y.tocsc()
    kept = []
    for a, b in pairwise(columns.indptr.tolist()):
        documents = columns.indices[a:b]
        kept.append(documents[np.argsort(ranks[documents])[:sample]])
    places = np.repeat(np.arange(len(kept)), [len(documents) for documents in kept])
    rows = np.concatenate(kept)
    return csr_array((np.ones(len(rows), dtype=bool), (rows, places)), shape=Y.shape)


def _lots(X: csr_array, seed: int) -> NDArray[np.uint64]:
    """A number for each document that its content and the seed determine."""
    columns, values = X.indices.astype(np.int32), X.data.astype(np.float32)
    start = f"{int(seed)}:".encode()
    digests = b"".join(
        blake2b(start + columns[a:b].tobytes() + values[a:b].tobytes(), digest_size=8).digest()
        for a, b in pairwise(X.indptr.tolist())
    )
    return np.frombuffer(digests, dtype="<u8")


def join(centroids: csr_array, linkage: str) -> Floats:
    """What is joined with what, nearest first: the dendrogram as scipy writes it."""
    from scipy.cluster import hierarchy  # a tenth of a second that every other use of Ramify is spared

    return np.asarray(hierarchy.linkage(distances_between(centroids, linkage), linkage), dtype=np.float64)


def distances_between(centroids: csr_array, linkage: str) -> Floats:
    """Cosine distances of all pairs, row after row; for Ward's linkage, which needs them, the Euclidean ones.

    Between vectors of length 1 these are √(2 · cosine distance). A category without any feature is at 1 from all others.
    """
    n, end = centroids.shape[0], 0
    distances = np.empty(n * (n - 1) // 2)  # a table of them may be large, so there is only this one
    for start in range(0, n, BLOCK):
        products = (centroids[start : start + BLOCK] @ centroids.T).toarray()
        for first, row in enumerate(products, start + 1):
            distances[end : end + n - first] = 1.0 - row[first:]
            end += n - first
    np.clip(np.round(distances, DECIMALS, out=distances), 0.0, 2.0, out=distances)
    return np.sqrt(2.0 * distances) if linkage == "ward" else distances


def cut(merges: Floats, n_categories: int, n_groups: int) -> Ints:
    """The group of each category when so many groups are left, numbered by their first category."""
    group = np.arange(n_categories)
    members = {category: [category] for category in range(n_categories)}
    # merges come nearest first, so those before the last n_groups - 1 leave just n_groups
    for step, (a, b) in enumerate(merges[: n_categories - n_groups, :2].astype(np.int64).tolist()):
        members[n_categories + step] = members.pop(a) + members.pop(b)
    for joined in members.values():
        group[joined] = min(joined)
    return np.unique(group, return_inverse=True)[1].astype(np.int64)
