"""Walking down a tree by conditional scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.taxonomy.hierarchy import Taxonomy


def levels_of(taxonomy: Taxonomy) -> list[NDArray[np.int64]]:
    """The nodes of each depth, from the top, so that a whole level can be worked on at once; parents lie in earlier levels.

    >>> [level.tolist() for level in levels_of(Taxonomy.from_paths(["a/b", "c"]))]
    [[0, 2], [1]]
    """
    ends = np.cumsum(np.bincount(taxonomy.depth))
    return np.split(np.argsort(taxonomy.depth, kind="stable"), ends[:-1]) if len(taxonomy) else []


def descend_by_probability(log_shares: NDArray[np.float32], taxonomy: Taxonomy) -> NDArray[np.int64]:
    """The node at which each document ends that always goes to the likeliest child; -1 where no root has a score.

    log_shares: documents × nodes, ln P(node | parent); NaN for nodes that cannot be entered. What the children of a node
    leave of 1 is the chance to stay there; a document stays when that exceeds every child's.

    >>> tree = Taxonomy.from_paths(["a/b", "c"])
    >>> descend_by_probability(np.log(np.asarray([[0.7, 0.2, 0.3], [0.7, 0.6, 0.3]], dtype=np.float32)), tree).tolist()
    [0, 1]
    """
    here = np.full(len(log_shares), -1, dtype=np.int64)
    moving = {-1: np.arange(len(log_shares))}
    while moving:
        following: dict[int, NDArray[np.int64]] = {}
        for node, documents in moving.items():
            children = taxonomy.roots if node < 0 else taxonomy.children_of(node)
            for child, gone in _choose(log_shares, documents, np.asarray(children, dtype=np.int64), node >= 0):
                here[gone] = child
                following[child] = gone
        moving = following
    return here


def descend_by_score(keys: NDArray[np.floating[Any]], taxonomy: Taxonomy) -> NDArray[np.int64]:
    """The node at which each document ends that goes from the best root to the best child as long as one has a key.

    keys: documents × nodes of a tree; -inf or NaN where a node cannot be entered. -1 where no root can.

    >>> tree = Taxonomy.from_paths(["a/b", "c"])
    >>> descend_by_score(np.asarray([[2.0, 1.0, 3.0], [2.0, 1.0, -np.inf]]), tree).tolist()
    [2, 1]
    """
    K = np.where(np.isnan(keys), -np.inf, keys)
    here = np.full(len(K), -1, dtype=np.int64)
    for node in [-1, *np.flatnonzero(~taxonomy.is_leaf).tolist()]:  # parents come first
        children = taxonomy.roots if node < 0 else taxonomy.children_of(node)
        at = np.flatnonzero(here == node)
        if not len(at) or not len(children):
            continue
        best = children[K[np.ix_(at, children)].argmax(axis=1)]
        goes = K[at, best] > -np.inf
        here[at[goes]] = best[goes]
    return here


def _choose(
    log_shares: NDArray[np.float32], documents: NDArray[np.int64], children: NDArray[np.int64], may_stay: bool
) -> list[tuple[int, NDArray[np.int64]]]:
    """Which documents go on to which child."""
    if not len(children) or not len(documents):
        return []
    shares = np.exp(log_shares[np.ix_(documents, children)].astype(np.float64))
    shares[np.isnan(shares)] = -1
    best = shares.argmax(axis=1)
    most = shares[np.arange(len(documents)), best]
    left = 1 - np.where(shares > 0, shares, 0).sum(axis=1)
    goes = (most >= 0) & ((most >= left - 1e-6) | (not may_stay))
    return [(int(children[k]), documents[goes & (best == k)]) for k in np.unique(best[goes]).tolist()]
