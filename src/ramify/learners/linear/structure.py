"""How the weights of units are tied to each other, as one sparse matrix: for DAGs, label graphs, trees and flat classes.

    ½ Σ_ab M_ab w_a·w_b = ½ Σ_edges ‖w_a − w_b‖² + ½ Σ_n anchor_n ‖w_n‖²        (Gopal & Yang 2013, section 3)

In a hierarchy edges lead from every node to all of its parents, and roots are anchored with 1. In a graph every label is
anchored a little, because a part of it has no root that draws it to zero; a label without neighbours is anchored with 1 more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from ramify.learners.linear.forest import Forest
from ramify.taxonomy import LabelGraph, Taxonomy

ANCHOR = 1e-4  # ρ of every label of a graph

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Structure:
    """Units, tied to each other and to zero.

    M: units × units, float64, symmetric and positive definite.
    class_units: the unit of every class; the other units have no loss. node: the node or label of every unit.
    """

    M: csr_array
    class_units: Ints
    node: Ints

    def __len__(self) -> int:
        return len(self.node)

    @property
    def class_nodes(self) -> Ints:
        """The node or label of every class."""
        return self.node[self.class_units]

    @property
    def free_units(self) -> Ints:
        """The units that are no class."""
        return np.setdiff1d(np.arange(len(self)), self.class_units)


def tie_dag(taxonomy: Taxonomy, labelled: Ints) -> Structure:
    """Every node with a labelled node at or below it, tied to all its parents; a labelled inner node gets a class below it.

    >>> fruit = Taxonomy.from_edges([("fruit", None), ("brand", None), ("apple", "fruit"), ("apple", "brand")])
    >>> tie_dag(fruit, np.array([2])).M.toarray().tolist()
    [[2.0, 0.0, -1.0], [0.0, 2.0, -1.0], [-1.0, -1.0, 2.0]]
    """
    child = np.repeat(np.arange(len(taxonomy)), np.diff(taxonomy.parent_offsets))
    parent = taxonomy.parent_nodes.astype(np.int64)
    labelled, alive = np.unique(labelled), _at_or_above(taxonomy, labelled)
    kept = alive[child]
    is_inner = np.zeros(len(taxonomy), dtype=bool)
    is_inner[parent[kept]] = True
    unit = np.cumsum(alive) - 1
    below = labelled[is_inner[labelled]]
    extra = int(alive.sum()) + np.arange(len(below))
    class_units = unit[labelled]
    class_units[is_inner[labelled]] = extra
    node = np.concatenate([np.flatnonzero(alive), below])
    lower, upper = np.concatenate([unit[child[kept]], extra]), np.concatenate([unit[parent[kept]], unit[below]])
    is_root = np.ones(len(node))
    is_root[lower] = 0
    return Structure(_tie(lower, upper, is_root), class_units, node)


def tie_graph(graph: LabelGraph, labelled: Ints) -> Structure:
    """Every label, tied to its neighbours; labelled ones are classes themselves.

    >>> tie_graph(LabelGraph.from_edges([("wine", "grape")], ["tea"]), np.array([0, 1])).M.diagonal().tolist()
    [1.0001, 1.0001, 1.0001]
    """
    a, b = graph.adjacency.nonzero()
    alone = np.diff(graph.adjacency.indptr) == 0
    return Structure(_tie(a[a < b], b[a < b], ANCHOR + alone), np.unique(labelled), np.arange(len(graph)))


def matrix_of(forest: Forest) -> Structure:
    """A tree's units, or flat classes, as a matrix; units and classes keep their numbers."""
    tied = forest.parent >= 0
    M = _tie(np.flatnonzero(tied), forest.parent[tied].astype(np.int64), np.where(tied, 0.0, 1.0))
    return Structure(M, np.flatnonzero(forest.class_of >= 0), forest.node)


def _at_or_above(taxonomy: Taxonomy, labelled: Ints) -> NDArray[np.bool_]:
    alive = np.zeros(len(taxonomy), dtype=bool)
    alive[labelled] = True
    for node in range(len(taxonomy) - 1, -1, -1):  # parents come first, so a backward sweep sees children first
        if alive[node]:
            alive[taxonomy.parents_of(node)] = True
    return alive


def _tie(a: Ints, b: Ints, anchor: NDArray[np.float64]) -> csr_array:
    """M of edges between a and b, each once, and anchors."""
    n, ones, own = len(anchor), np.ones(len(a)), np.arange(len(anchor))
    rows, columns = np.concatenate([own, a, b, a, b]), np.concatenate([own, a, b, b, a])
    M = csr_array(coo_array((np.concatenate([anchor, ones, ones, -ones, -ones]), (rows, columns)), shape=(n, n)))
    M.sum_duplicates()
    return M
