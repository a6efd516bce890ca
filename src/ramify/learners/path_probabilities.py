"""Probabilities along the paths of a taxonomy: products, sums and maxima that learners share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.taxonomy import Taxonomy, descend_by_score, levels_of

MIN_PROBABILITY = 1e-12  # probabilities are clipped to it, so that log-odds are finite
LOWEST = float(np.finfo(np.float32).max)

Floats = NDArray[np.float64]


def path_products(conditional: NDArray[np.floating[Any]], taxonomy: Taxonomy, missing: float = 0.0) -> Floats:
    """P(node) over a tree: the product of P(node | parent) on the path. missing: the factor for NaN."""
    P = np.nan_to_num(conditional.astype(np.float64), nan=missing)
    parent = taxonomy.parent
    for level in levels_of(taxonomy)[1:]:
        P[:, level] *= P[:, parent[level]]
    return P


def log_end_probabilities(P: Floats, conditional: NDArray[np.floating[Any]], taxonomy: Taxonomy) -> Floats:
    """ln P(node and none of its children), children independent given their parent."""
    ends: Floats = np.log(P.clip(MIN_PROBABILITY, 1))
    log_none = np.log1p(-np.nan_to_num(conditional.astype(np.float64), nan=0.0).clip(0, 1 - MIN_PROBABILITY))
    for node in np.flatnonzero(~taxonomy.is_leaf).tolist():
        ends[:, node] += log_none[:, taxonomy.children_of(node)].sum(axis=1)
    return ends


def descend_positive(scores: NDArray[np.floating[Any]], taxonomy: Taxonomy) -> NDArray[np.int64]:
    """From the best root to the best child, as long as its score is 0 or more; gives the last node."""
    is_root = np.isin(np.arange(len(taxonomy)), taxonomy.roots)
    S = np.where(np.isnan(scores), -LOWEST, scores)
    return descend_by_score(np.where(is_root | (S >= 0), S, -np.inf), taxonomy)


def softmax_rows(scores: NDArray[np.floating[Any]]) -> Floats:
    """The softmax of each row.

    >>> softmax_rows(np.asarray([[0.0, np.log(3)]]))
    array([[0.25, 0.75]])
    """
    exponentials = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


def log_softmax(joint: Floats) -> Floats:
    """The logarithm of the softmax of each row.

    >>> np.exp(log_softmax(np.asarray([[0.0, np.log(3)]])))
    array([[0.25, 0.75]])
    """
    shifted = joint - joint.max(axis=1, keepdims=True, initial=-np.inf)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def aggregate_upward(each: Floats, nodes_above: csr_array, is_multi_label: bool) -> NDArray[np.float32]:
    """P(node) over all nodes from that of each class.

    nodes_above: classes × nodes, one where a class is at or below a node. Where every document has one label, classes are
    normalized to sum to one, and a node gets the sum of the classes at and below it; otherwise it gets the largest of them.
    """
    if is_multi_label:
        P = np.zeros((len(each), nodes_above.shape[1]))
        for column, above in enumerate(np.split(nodes_above.indices, nodes_above.indptr[1:-1])):
            P[:, above] = np.maximum(P[:, above], each[:, [column]])
        return P.astype(np.float32)
    each = each / np.maximum(each.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return np.asarray(each @ nodes_above, dtype=np.float32).clip(0, 1)


def aggregate_sparse_upward(each: csr_array, nodes_above: csr_array, is_multi_label: bool) -> csr_array:
    """As :func:`aggregate_upward`, for sparse probabilities of classes, documents × classes.

    >>> each, above = csr_array([[0.2, 0, 0.6]]), csr_array([[1.0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])
    >>> aggregate_sparse_upward(each, above, is_multi_label=False).toarray()
    array([[0.25, 0.25, 0.  , 0.75]], dtype=float32)
    """
    if not is_multi_label:
        each = csr_array((each.data, each.indices, each.indptr), shape=each.shape)
        each.data = each.data / np.repeat(np.maximum(each.sum(axis=1), np.finfo(np.float64).tiny), np.diff(each.indptr))
        P = csr_array(each @ nodes_above)
        P.sort_indices()
        P.data = P.data.clip(0, 1)
        return P.astype(np.float32)
    # for every node the largest of the classes at and below it: the first, once they are sorted by row, node and size
    lengths = np.diff(nodes_above.indptr)[each.indices]
    starts = np.repeat(nodes_above.indptr[:-1][each.indices] - np.cumsum(lengths) + lengths, lengths)
    nodes = nodes_above.indices[starts + np.arange(len(starts))].astype(np.int64)
    rows = np.repeat(np.repeat(np.arange(each.shape[0]), np.diff(each.indptr)), lengths)
    probabilities = np.repeat(each.data, lengths)
    order = np.lexsort((-probabilities, nodes, rows))
    rows, nodes, probabilities = rows[order], nodes[order], probabilities[order]
    is_first = np.ones(len(rows), dtype=bool)
    is_first[1:] = (rows[1:] != rows[:-1]) | (nodes[1:] != nodes[:-1])
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows[is_first], minlength=each.shape[0]))])
    largest = probabilities[is_first].astype(np.float32)
    return csr_array((largest, nodes[is_first], ends), shape=(each.shape[0], nodes_above.shape[1]))
