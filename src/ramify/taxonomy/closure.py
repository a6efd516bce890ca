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

LabelKernel = Callable[..., tuple[NDArray[np.int64], NDArray[np.int32]]]


def encode(taxonomy: Taxonomy, labels: Iterable[str | Iterable[str] | None]) -> csr_array:
    """Label sets of documents as a boolean CSR matrix over nodes, closed upward."""
    known: dict[str, int] = {}
    offsets, nodes = [0], []
    for document, given in enumerate(labels):
        for label in _as_labels(given, document):
            if not isinstance(label, str) or label not in known:
                known[label] = _find(taxonomy, label, document)
            nodes.append(known[label])
        offsets.append(len(nodes))
    own = np.asarray(offsets, dtype=np.int64), np.asarray(nodes, dtype=np.int32)
    return _from_rows(taxonomy, close_upward, *own)


def decode(taxonomy: Taxonomy, Y: Any) -> list[list[str]]:
    """The most specific names of each row of a label matrix."""
    own = most_specific(Y, taxonomy)
    nodes, ends = own.indices.tolist(), own.indptr.tolist()
    return [[taxonomy.names[node] for node in nodes[a:b]] for a, b in pairwise(ends)]


def expand_to_ancestors(Y: Any, taxonomy: Taxonomy) -> csr_array:
    """Y with all ancestors of its labels added."""
    return _on_rows(close_upward, as_label_matrix(Y, taxonomy), taxonomy)


def most_specific(Y: Any, taxonomy: Taxonomy) -> csr_array:
    """The nodes of each row that have no child in the row, after closing the row upward."""
    return _on_rows(keep_most_specific, expand_to_ancestors(Y, taxonomy), taxonomy)


def most_general(Y: Any, taxonomy: Taxonomy) -> csr_array:
    """The nodes of each row that have no parent in the row; nothing is added."""
    return _on_rows(keep_most_general, as_label_matrix(Y, taxonomy), taxonomy)


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
    n_nodes = len(taxonomy)
    every = np.arange(n_nodes + 1, dtype=np.int64), np.arange(n_nodes, dtype=np.int32)
    return _from_rows(taxonomy, close_upward, *every)


def _as_labels(given: str | Iterable[str] | None, document: int) -> Iterable[str]:
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable):
        raise LabelError(f"document {document + 1} has label {given!r}; labels are names or paths, as strings.")
    return given


def _find(taxonomy: Taxonomy, label: str, document: int) -> int:
    if not isinstance(label, str):
        raise LabelError(f"document {document + 1} has label {label!r}; labels are names or paths, as strings.")
    try:
        return taxonomy.index(label)
    except LabelError as error:
        raise LabelError(f"document {document + 1}: {error}") from None


def _on_rows(kernel: LabelKernel, Y: csr_array, taxonomy: Taxonomy) -> csr_array:
    return _from_rows(taxonomy, kernel, Y.indptr.astype(np.int64), Y.indices.astype(np.int32))


def _from_rows(taxonomy: Taxonomy, kernel: LabelKernel, offsets: NDArray[np.int64], nodes: NDArray[np.int32]) -> csr_array:
    n_nodes = len(taxonomy)
    parents = Pattern(taxonomy.parent_offsets, taxonomy.parent_nodes, n_nodes)
    offsets, nodes = kernel(Pattern(offsets, nodes, n_nodes), parents)
    shape = (len(offsets) - 1, n_nodes)
    return csr_array((np.ones(len(nodes), dtype=bool), nodes, offsets), shape=shape)
