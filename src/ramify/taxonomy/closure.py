"""A DAG and its main-parent tree: labels of the one on the other, and values of the tree carried over to the whole DAG."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.taxonomy.hierarchy import Taxonomy, ancestor_matrix, expand_to_ancestors, most_specific

Float = TypeVar("Float", bound=np.floating[Any])


def labels_on_tree(Y: csr_array, taxonomy: Taxonomy) -> csr_array:
    """Labels closed over a DAG as labels closed over its main-parent tree: the most specific ones and what is above them there.

    >>> dag = Taxonomy.from_edges([("a", None), ("b", None), ("x", "a"), ("x", "b")])
    >>> labels_on_tree(dag.encode(["x", "b"]), dag).toarray().astype(int).tolist()
    [[1, 0, 1], [0, 1, 0]]
    """
    return Y if taxonomy.is_tree else expand_to_ancestors(most_specific(Y, taxonomy), taxonomy.tree)


def largest_below(values: NDArray[Float], taxonomy: Taxonomy) -> NDArray[Float]:
    """The largest value at or below each node, documents × nodes; NaN counts as none.

    The nodes that reach a threshold afterwards are those that reached it before, and all their ancestors.

    >>> dag = Taxonomy.from_edges([("a", None), ("b", None), ("x", "a"), ("x", "b")])
    >>> largest_below(np.array([[0.9, 0.2, 0.6]]), dag).tolist()
    [[0.9, 0.6, 0.6]]
    """
    found = values.T.copy()  # nodes × documents
    for node in range(len(taxonomy) - 1, -1, -1):  # parents come first, so a backward sweep sees children first
        for parent in taxonomy.parents_of(node).tolist():
            np.fmax(found[parent], found[node], out=found[parent])
    return np.ascontiguousarray(found.T)


def spread_over_dag(P: NDArray[Float], taxonomy: Taxonomy) -> NDArray[Float]:
    """P(node) over a DAG from P(node) over its main-parent tree, where every document ends at one node.

    A node gets the sum of what ends at and below it: on the tree, what ends at a node is what its children leave of it.

    >>> dag = Taxonomy.from_edges([("a", None), ("b", None), ("x", "a"), ("x", "b")])
    >>> spread_over_dag(np.array([[0.7, 0.3, 0.6]]), dag).round(3).tolist()
    [[0.7, 0.9, 0.6]]
    """
    if taxonomy.is_tree:
        return P
    parent, ends = taxonomy.tree.parent, P.astype(np.float64)
    below = np.flatnonzero(parent >= 0)
    np.subtract.at(ends.T, parent[below], P.T[below])
    return np.asarray(ends.clip(0) @ ancestor_matrix(taxonomy).astype(np.float64)).clip(0, 1).astype(P.dtype)
