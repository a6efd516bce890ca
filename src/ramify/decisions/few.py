"""Scores of the few nodes that a learner looked at, as a sparse matrix, documents × nodes: what is absent has no score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import InputError
from ramify.taxonomy import Taxonomy, expand_to_ancestors


def read_few(scores: Any, taxonomy: Taxonomy) -> csr_array:
    """Sparse scores with the nodes of each document in order; NaN and -inf are no scores."""
    S = csr_array(scores).sorted_indices()
    if S.ndim != 2 or S.shape[1] != len(taxonomy):
        raise InputError(f"scores have shape {S.shape}; the taxonomy has {len(taxonomy)} nodes, one column each.")
    if S.nnz and np.fmax.reduce(S.data) == np.inf:
        raise InputError("a score is infinite; give finite scores, and none where a node has no classifier.")
    return S if np.isfinite(S.data).all() else keep_entries(S, np.isfinite(S.data))


def keep_entries(S: csr_array, kept: NDArray[np.bool_]) -> csr_array:
    """The same without some entries."""
    offsets = np.concatenate([[0], np.cumsum(kept)])[S.indptr]
    return csr_array((S.data[kept], S.indices[kept], offsets), shape=S.shape)


def are_highest(S: csr_array) -> NDArray[np.bool_]:
    """For every entry, whether it is the highest of its document; of equal ones the first.

    >>> are_highest(csr_array([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0], [0.0, -2.0, -1.0]])).tolist()
    [False, True, False, False, True]
    """
    row_of = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    order = np.lexsort((S.indices, -S.data, row_of))
    first = np.zeros(S.nnz, dtype=bool)
    first[order[S.indptr[:-1][np.diff(S.indptr) > 0]]] = True
    return first


def few_to_labels(chosen: NDArray[np.bool_], S: csr_array, taxonomy: Taxonomy, at_least_one: bool) -> csr_array:
    """The chosen entries with their ancestors; with `at_least_one`, the highest where none is chosen."""
    if at_least_one:
        row_of = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
        has_some = np.zeros(S.shape[0], dtype=bool)
        has_some[row_of[chosen]] = True
        chosen = chosen | (are_highest(S) & ~has_some[row_of])
    own = keep_entries(S, chosen)
    return expand_to_ancestors(csr_array((np.ones(own.nnz, dtype=bool), own.indices, own.indptr), shape=S.shape), taxonomy)
