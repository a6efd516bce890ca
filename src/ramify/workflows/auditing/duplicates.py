"""Duplicates and near-duplicates with different labels.

Two texts are near-duplicates where the fraction of terms that both have (Jaccard similarity) is large enough. Pairs are
found by prefix filtering (Chaudhuri et al. 2006, Bayardo et al. 2007): with terms in order of rising frequency, two sets
with similarity s or more have a common term among the first |x| − ⌈s |x|⌉ + 1 terms of each, so that only documents with a
common rare term are compared. All pairs are found, except those whose only common terms are in the prefixes of very many
documents. Sketches exclude most other pairs: every bit of a sketch is the parity of the terms that are hashed to it. A term
that only one of two documents has changes one bit, so documents with more different bits than terms they may differ in are
not similar.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from ramify.parallel import stage
from ramify.workflows.auditing.out_of_fold import Ints

MAX_COMMON = 1000  # documents with a term in their prefix; terms of more documents lead to no comparison
AT_ONCE = 1 << 18  # pairs that are compared together
EXACT = 1e-9
SKETCH = 256  # bits
BITS = np.unpackbits(np.arange(1 << 16, dtype=np.uint16).view(np.uint8)).reshape(1 << 16, 16).sum(axis=1).astype(np.uint8)


def find_groups(X: csr_array, own: csr_array, similarity: float, are_texts: bool = True) -> list[tuple[list[int], bool]]:
    """Groups of duplicates whose labels differ: their positions, and whether all have the same terms.

    X: documents × terms. own: labels. are_texts: else rows are the same only where all values are. In the order of the first
    documents; each is a duplicate or near-duplicate of some other of its group.
    """
    first = _first_of_equals(X, are_texts)
    pairs = similar_pairs(X, first, similarity) if are_texts else np.zeros((0, 2), dtype=np.int64)
    n = X.shape[0]
    edges = np.concatenate([np.stack([np.arange(n), first], axis=1), pairs])
    graph = coo_array((np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(n, n))
    group = connected_components(graph, directed=False)[1]
    order = np.argsort(group, kind="stable")
    bounds = np.flatnonzero(np.diff(group[order])) + 1
    groups = [part for part in np.split(order, bounds) if len(part) > 1]
    labels = [own.indices[start:end].tobytes() for start, end in pairwise(own.indptr.tolist())]
    differing = [part for part in groups if len({labels[i] for i in part.tolist()}) > 1]
    return sorted((part.tolist(), len(np.unique(first[part])) == 1) for part in differing)


def similar_pairs(X: csr_array, first: Ints, similarity: float) -> Ints:
    """Pairs of rows whose sets of columns have at least this Jaccard similarity, without rows that equal an earlier one."""
    sizes = np.diff(X.indptr).astype(np.int64)
    rows = np.flatnonzero((first == np.arange(len(first))) & (sizes > 0))
    sets = csr_array((np.ones(len(X.indices), dtype=np.float32), X.indices, X.indptr), shape=X.shape)
    term, row = _prefixes(sets, rows, sizes, similarity)
    sketches, differing = _sketches(sets), (1 - similarity) / (1 + similarity)
    found = [np.zeros((0, 2), dtype=np.int64)]
    with stage("finding duplicates"):
        for a, b in _candidates(term, row, sizes, similarity):
            few = BITS[sketches[a] ^ sketches[b]].sum(axis=1) <= differing * (sizes[a] + sizes[b]) + EXACT
            a, b = a[few], b[few]
            shared = np.asarray(sets[a].multiply(sets[b]).sum(axis=1)).ravel()
            is_similar = shared >= similarity * (sizes[a] + sizes[b] - shared) - EXACT
            found.append(np.stack([np.minimum(a, b), np.maximum(a, b)], axis=1)[is_similar])
    return np.unique(np.concatenate(found), axis=0)


def _sketches(sets: csr_array) -> NDArray[np.uint16]:
    """For every row, the parities of the terms that are hashed to each bit."""
    bits = np.random.default_rng(0).integers(0, SKETCH, sets.shape[1])
    hashed = csr_array((np.ones(len(bits), dtype=np.float32), bits, np.arange(len(bits) + 1)), shape=(len(bits), SKETCH))
    found = np.zeros((sets.shape[0], SKETCH // 16), dtype=np.uint16)
    for start in range(0, sets.shape[0], AT_ONCE // 16):
        counts = (sets[start : start + AT_ONCE // 16] @ hashed).toarray().astype(np.int64)
        found[start : start + len(counts)] = np.packbits(counts % 2 == 1, axis=1).view(np.uint16)
    return found


def _first_of_equals(X: csr_array, are_texts: bool) -> Ints:
    """For every row the first one that has the same columns, and also the same values where they are not texts."""
    X = csr_array(X)
    X.sort_indices()
    seen: dict[Any, int] = {}
    first = np.arange(X.shape[0])
    for i, (start, end) in enumerate(pairwise(X.indptr.tolist())):
        if end > start:
            values = b"" if are_texts else X.data[start:end].tobytes()
            first[i] = seen.setdefault((X.indices[start:end].tobytes(), values), i)
    return first


def _prefixes(sets: csr_array, rows: Ints, sizes: Ints, similarity: float) -> tuple[Ints, Ints]:
    """The terms in the prefixes of rows, each with its row; by term, then by size, then by row."""
    some = csr_array(sets[rows])
    rank = np.empty(sets.shape[1], dtype=np.int64)
    rank[np.argsort(np.bincount(some.indices, minlength=sets.shape[1]), kind="stable")] = np.arange(sets.shape[1])
    ranked = csr_array((some.data, rank[some.indices], some.indptr), shape=some.shape)
    ranked.sort_indices()
    of = np.repeat(np.arange(len(rows)), np.diff(ranked.indptr))
    place, size = np.arange(len(of)) - ranked.indptr[:-1][of], sizes[rows][of]
    is_prefix = place < size - np.ceil(similarity * size - EXACT).astype(np.int64) + 1
    term, row = ranked.indices[is_prefix].astype(np.int64), rows[of[is_prefix]]
    is_rare = np.bincount(term, minlength=sets.shape[1])[term] <= MAX_COMMON
    term, row = term[is_rare], row[is_rare]
    order = np.lexsort((row, sizes[row], term))
    return term[order], row[order]


def _candidates(term: Ints, row: Ints, sizes: Ints, similarity: float) -> Iterator[tuple[Ints, Ints]]:
    """Pairs of rows with a common term in their prefixes and compatible sizes, in blocks; a pair may come twice."""
    first, waiting, apart = np.arange(len(term)), list[NDArray[np.int64]](), 1
    while len(first) or waiting:
        first = first[first + apart < len(term)]
        other = first + apart
        # sizes rise within a term: after one that is too large, all are too large
        is_candidate = (term[first] == term[other]) & (similarity * sizes[row[other]] <= sizes[row[first]] + EXACT)
        first = first[is_candidate]
        waiting.append(np.stack([row[first], row[first + apart]]))
        apart += 1
        if not len(first) or sum(part.shape[1] for part in waiting) >= AT_ONCE:
            a, b = np.concatenate(waiting, axis=1)
            keys = np.unique(a * len(sizes) + b)
            waiting = []
            for k in range(0, len(keys), AT_ONCE):
                yield keys[k : k + AT_ONCE] // len(sizes), keys[k : k + AT_ONCE] % len(sizes)
