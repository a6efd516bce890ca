"""Descend a tree by conditional probabilities or scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.taxonomy.hierarchy import Taxonomy


def levels_of(taxonomy: Taxonomy) -> list[NDArray[np.int64]]:
    """The nodes of each depth, from the top; parents are in earlier levels.

    >>> [level.tolist() for level in levels_of(Taxonomy.from_paths(["a/b", "c"]))]
    [[0, 2], [1]]
    """
    ends = np.cumsum(np.bincount(taxonomy.depth))
    return np.split(np.argsort(taxonomy.depth, kind="stable"), ends[:-1]) if len(taxonomy) else []


def descend_by_probability(log_probabilities: NDArray[np.float32], taxonomy: Taxonomy) -> NDArray[np.int64]:
    """The node where each document stops if it always goes to the most probable child; -1 if no root has a score.

    log_probabilities: documents × nodes, ln P(node | parent); NaN or -inf for nodes that cannot be entered. The rest to 1 of
    the children is the probability of stopping; a document stops when that exceeds every child's.

    >>> tree = Taxonomy.from_paths(["a/b", "c"])
    >>> descend_by_probability(np.log(np.asarray([[0.7, 0.2, 0.3], [0.7, 0.6, 0.3]], dtype=np.float32)), tree).tolist()
    [0, 1]
    """
    current = np.full(len(log_probabilities), -1, dtype=np.int64)
    waiting = [(-1, np.arange(len(log_probabilities)))]  # nodes, and the documents that have come there
    while waiting:
        node, documents = waiting.pop()
        children = np.asarray(taxonomy.roots if node < 0 else taxonomy.children_of(node), dtype=np.int64)
        if not len(children) or not len(documents):
            continue
        probabilities = np.exp(log_probabilities[np.ix_(documents, children)].astype(np.float64))
        probabilities[~(probabilities > 0)] = -1
        best = probabilities.argmax(axis=1)
        most = probabilities[np.arange(len(documents)), best]
        left = 1 - np.where(probabilities > 0, probabilities, 0).sum(axis=1)
        goes = (most >= 0) & ((most >= left - 1e-6) | (node < 0))
        for k in np.unique(best[goes]).tolist():
            gone = documents[goes & (best == k)]
            current[gone] = children[k]
            waiting.append((int(children[k]), gone))
    return current


def descend_by_score(keys: NDArray[np.floating[Any]], taxonomy: Taxonomy) -> NDArray[np.int64]:
    """The node where each document stops if it goes from the best root to the best child as long as one can be entered.

    keys: documents × nodes of a tree; -inf or NaN for nodes that cannot be entered. -1 if no root can.

    >>> tree = Taxonomy.from_paths(["a/b", "c"])
    >>> descend_by_score(np.asarray([[2.0, 1.0, 3.0], [2.0, 1.0, -np.inf]]), tree).tolist()
    [2, 1]
    """
    K = np.where(np.isnan(keys), -np.inf, keys)
    current = np.full(len(K), -1, dtype=np.int64)
    for node in [-1, *np.flatnonzero(~taxonomy.is_leaf).tolist()]:  # parents come first
        children = taxonomy.roots if node < 0 else taxonomy.children_of(node)
        at = np.flatnonzero(current == node)
        if not len(at) or not len(children):
            continue
        best = children[K[np.ix_(at, children)].argmax(axis=1)]
        goes = K[at, best] > -np.inf
        current[at[goes]] = best[goes]
    return current
