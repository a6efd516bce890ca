"""Chances on the way from the roots to the leaves, as several learners reckon with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.taxonomy import Taxonomy, levels_of, walk_best

SURE = 1e-12  # no probability is so near to 0 or 1 that its log-odds are infinite
LOWEST = float(np.finfo(np.float32).max)

Floats = NDArray[np.float64]


def along_paths(shares: NDArray[np.floating[Any]], taxonomy: Taxonomy, missing: float = 0.0) -> Floats:
    """P(node) over a tree, from P(node | parent) that may have gaps: the product of all on the path."""
    P = np.nan_to_num(shares.astype(np.float64), nan=missing)
    parent = taxonomy.parent
    for level in levels_of(taxonomy)[1:]:
        P[:, level] *= P[:, parent[level]]
    return P


def log_ends(P: Floats, shares: NDArray[np.floating[Any]], taxonomy: Taxonomy) -> Floats:
    """ln P(node and none of its children), children taken for independent given their parent."""
    ends: Floats = np.log(P.clip(SURE, 1))
    leaves_none = np.log1p(-np.nan_to_num(shares.astype(np.float64), nan=0.0).clip(0, 1 - SURE))
    for node in np.flatnonzero(~taxonomy.is_leaf).tolist():
        ends[:, node] += leaves_none[:, taxonomy.children_of(node)].sum(axis=1)
    return ends


def walk_passing(scores: NDArray[np.floating[Any]], taxonomy: Taxonomy) -> NDArray[np.int64]:
    """From the best root to the best child, as long as a child's score is not below 0."""
    is_root = np.isin(np.arange(len(taxonomy)), taxonomy.roots)
    S = np.where(np.isnan(scores), -LOWEST, scores)
    return walk_best(np.where(is_root | (S >= 0), S, -np.inf), taxonomy)


def soften(scores: NDArray[np.floating[Any]]) -> Floats:
    """A softmax over each row.

    >>> soften(np.asarray([[0.0, np.log(3)]]))
    array([[0.25, 0.75]])
    """
    shares = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def log_shares(joint: Floats) -> Floats:
    """Logarithms, each row shifted so that the shares that they stand for add up to 1.

    >>> np.exp(log_shares(np.asarray([[0.0, np.log(3)]])))
    array([[0.25, 0.75]])
    """
    shifted = joint - joint.max(axis=1, keepdims=True, initial=-np.inf)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def spread_upward(each: Floats, nodes_above: csr_array, several_labels: bool) -> NDArray[np.float32]:
    """P(node) over all nodes from that of each class.

    nodes_above: classes × nodes, one where a class is at or below a node. Where every document has one label, chances are
    made to add up to one, and a node gets the sum of the classes at and below it; otherwise it gets the largest of them.
    """
    if several_labels:
        P = np.zeros((len(each), nodes_above.shape[1]))
        for column, above in enumerate(np.split(nodes_above.indices, nodes_above.indptr[1:-1])):
            P[:, above] = np.maximum(P[:, above], each[:, [column]])
        return P.astype(np.float32)
    each = each / np.maximum(each.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return np.asarray(each @ nodes_above, dtype=np.float32).clip(0, 1)
