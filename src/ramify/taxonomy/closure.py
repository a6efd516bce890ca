"""Label matrices: encode and decode labels, add and remove ancestors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ramify.errors import InputError, LabelError
from ramify.native import Pattern, close_upward, keep_most_general, keep_most_specific

if TYPE_CHECKING:
    from ramify.taxonomy.hierarchy import Taxonomy


def encode(taxonomy: Taxonomy, labels: Iterable[str | Iterable[str] | None]) -> csr_array:
    """Label sets of documents as a boolean CSR matrix over nodes, closed upward."""
    known: dict[str, int] = {}
    offsets, nodes = [0], []
    for document, given in enumerate(labels, 1):
        listed = () if given is None else given if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
        for label in listed:
            if not isinstance(label, str):
                raise LabelError(f"document {document} has label {label!r}; labels are names or paths, as strings.")
            if label not in known:
                try:
                    known[label] = taxonomy.index(label)
                except LabelError as error:
                    raise LabelError(f"document {document}: {error}") from None
            nodes.append(known[label])
        offsets.append(len(nodes))
    return _apply(close_upward, np.asarray(offsets), np.asarray(nodes, dtype=np.int32), taxonomy)


def decode(taxonomy: Taxonomy, Y: Any) -> list[list[str]]:
    """The most specific names of each row of a label matrix."""
    own = most_specific(Y, taxonomy)
    nodes, ends = own.indices.tolist(), own.indptr.tolist()
    return [[taxonomy.names[node] for node in nodes[a:b]] for a, b in pairwise(ends)]


def expand_to_ancestors(Y: Any, taxonomy: Taxonomy) -> csr_array:
    """Y with all ancestors of its labels added."""
    Y = as_label_matrix(Y, taxonomy)
    return _apply(close_upward, Y.indptr, Y.indices, taxonomy)


def most_specific(Y: Any, taxonomy: Taxonomy) -> csr_array:
    """The nodes of each row that have no child in the row, after closing the row upward."""
    Y = expand_to_ancestors(Y, taxonomy)
    return _apply(keep_most_specific, Y.indptr, Y.indices, taxonomy)


def most_general(Y: Any, taxonomy: Taxonomy) -> csr_array:
    """The nodes of each row that have no parent in the row; nothing is added."""
    Y = as_label_matrix(Y, taxonomy)
    return _apply(keep_most_general, Y.indptr, Y.indices, taxonomy)


def as_label_matrix(Y: Any, taxonomy: Taxonomy) -> csr_array:
    """Any 0/1 matrix over the taxonomy's nodes as boolean CSR with sorted columns; nothing is added."""
    if not issparse(Y):
        Y = np.asarray(Y)
        if Y.ndim != 2:
            raise InputError(f"a label matrix has documents as rows and nodes as columns, not {Y.ndim} dimensions.")
    if Y.shape[1] != len(taxonomy):
        raise InputError(f"the label matrix has {Y.shape[1]} columns, but the taxonomy has {len(taxonomy)} nodes.")
    if isinstance(Y, csr_array) and Y.dtype == bool and Y.has_canonical_format and Y.data.all():
        return Y
    matrix = csr_array(Y).astype(bool)
    matrix.eliminate_zeros()
    matrix.sum_duplicates()
    return matrix


def ancestor_matrix(taxonomy: Taxonomy) -> csr_array:
    """nodes × nodes: row i holds node i and all its ancestors."""
    return _apply(close_upward, np.arange(len(taxonomy) + 1), np.arange(len(taxonomy), dtype=np.int32), taxonomy)


def _apply(kernel: Callable[..., Any], offsets: NDArray[Any], nodes: NDArray[Any], taxonomy: Taxonomy) -> csr_array:
    n_nodes = len(taxonomy)
    parents = Pattern(taxonomy.parent_offsets, taxonomy.parent_nodes, n_nodes)
    ends, found = kernel(Pattern(offsets.astype(np.int64), nodes.astype(np.int32), n_nodes), parents)
    return csr_array((np.ones(len(found), dtype=bool), found, ends), shape=(len(ends) - 1, n_nodes))
