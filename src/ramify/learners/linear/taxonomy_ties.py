"""How the weights of classes are tied: flat, along the paths of a tree, or by a matrix for DAGs and graphs.

A unit has a weight vector: every class is a unit, and every node above a class is one. A labelled inner node is two units: the
node itself, and below it a class for its own documents. With δ_v = w_v − w_parent(v), the weights of a class are the sum of δ
along its path, and at the optimum δ of an inner unit is the sum of δ of its children (Gopal & Yang 2013, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from ramify.taxonomy import LabelGraph, Taxonomy

ANCHOR = 1e-4  # ρ of every label of a graph
PART = 1 << 20  # values that are squared at a time

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Forest:
    """Units of a tree in preorder, the classes below a unit before its inner children.

    parent: of every unit, -1 for a root. node: of the taxonomy. class_of: the number of the class that a unit is, -1 for an
    inner unit. above_offsets, above: for every class the units above it, from the root down.
    """

    parent: NDArray[np.int32]
    node: NDArray[np.int64]
    class_of: NDArray[np.int32]
    above_offsets: NDArray[np.int64]
    above: NDArray[np.int32]

    @classmethod
    def numbered(cls, parent: NDArray[np.int32], node: NDArray[np.int64], is_class: NDArray[np.bool_]) -> Forest:
        """Units in preorder; classes are numbered in this order."""
        class_of = np.where(is_class, np.cumsum(is_class) - 1, -1).astype(np.int32)
        paths: list[list[int]] = [[]] * len(parent)
        for unit, above in enumerate(parent.tolist()):
            paths[unit] = [] if above < 0 else [*paths[above], above]
        listed = [paths[unit] for unit in np.flatnonzero(is_class).tolist()]
        offsets = np.concatenate([[0], np.cumsum([len(path) for path in listed])]).astype(np.int64)
        return cls(parent, node, class_of, offsets, np.asarray([unit for path in listed for unit in path], dtype=np.int32))

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def class_nodes(self) -> NDArray[np.int64]:
        """The taxonomy's node of every class."""
        return self.node[self.class_of >= 0]

    @property
    def is_flat(self) -> bool:
        """Whether no class has a unit above it."""
        return len(self.above) == 0

    def part(self, first: int, last: int) -> tuple[Forest, NDArray[np.int32]]:
        """A range of classes and the units above them, in the same order; and the numbers of these units."""
        above = self.above[self.above_offsets[first] : self.above_offsets[last]]
        units = np.union1d(np.flatnonzero((self.class_of >= first) & (self.class_of < last)), above).astype(np.int32)
        has_parent = self.parent[units] >= 0
        parent = np.where(has_parent, np.searchsorted(units, self.parent[units]), -1).astype(np.int32)
        class_of = np.where(self.class_of[units] >= 0, self.class_of[units] - first, -1).astype(np.int32)
        offsets = self.above_offsets[first : last + 1] - self.above_offsets[first]
        return Forest(parent, self.node[units], class_of, offsets, np.searchsorted(units, above).astype(np.int32)), units


def tie_along_paths(taxonomy: Taxonomy, labelled: Ints) -> Forest:
    """Units of a tree: the nodes with a labelled node at or below them, in preorder, and the classes."""
    has_own = np.zeros(len(taxonomy), dtype=bool)
    has_own[labelled] = True
    alive, has_inner = _at_or_above(taxonomy, labelled), np.zeros(len(taxonomy), dtype=bool)
    has_inner[taxonomy.parent[np.flatnonzero(alive & (taxonomy.parent >= 0))]] = True
    parent: list[int] = []
    nodes: list[int] = []
    is_class: list[bool] = []
    stack = [(int(root), -1, not has_inner[root]) for root in reversed(taxonomy.roots) if alive[root]]
    while stack:
        node, above, leaf = stack.pop()
        unit = len(parent)
        parent.append(above)
        nodes.append(node)
        is_class.append(leaf)
        if leaf:
            continue
        children = [int(child) for child in taxonomy.children_of(node) if alive[child]]
        inner = [(child, unit, False) for child in children if has_inner[child]]
        classes = [(child, unit, True) for child in children if not has_inner[child]]
        stack += reversed(inner)
        stack += reversed(([(node, unit, True)] if has_own[node] else []) + classes)
    arrays = np.asarray(parent, dtype=np.int32), np.asarray(nodes, dtype=np.int64), np.asarray(is_class, dtype=bool)
    return Forest.numbered(*arrays)


def tie_flat(taxonomy: Taxonomy, labelled: Ints) -> Forest:
    """Independent classes, in preorder of the taxonomy if it is a tree."""
    return flat_units(tie_along_paths(taxonomy, labelled).class_nodes if taxonomy.is_tree else np.sort(labelled))


def flat_units(nodes: Ints) -> Forest:
    """Independent classes, one for each of some nodes."""
    n = len(nodes)
    offsets, classes = np.zeros(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32)
    return Forest(np.full(n, -1, dtype=np.int32), nodes, classes, offsets, np.zeros(0, dtype=np.int32))


def _at_or_above(taxonomy: Taxonomy, labelled: Ints) -> NDArray[np.bool_]:
    """By node, whether it is labelled or has a labelled descendant."""
    alive = np.zeros(len(taxonomy), dtype=bool)
    alive[labelled] = True
    for node in range(len(taxonomy) - 1, -1, -1):  # parents come first, so a backward sweep sees children first
        if alive[node]:
            alive[taxonomy.parents_of(node)] = True
    return alive


@dataclass(frozen=True, slots=True)
class ThreadPartition:
    """Which thread updates which units of a tree.

    visited: threads × units, whether a thread updates a unit. n_threads: how many threads update each unit.
    """

    visited: NDArray[np.uint8]
    n_threads: NDArray[np.float32]

    def classes(self, forest: Forest) -> list[tuple[int, int]]:
        """The class range of every thread."""
        found = [forest.class_of[(visited > 0) & (forest.class_of >= 0)] for visited in self.visited]
        return [(int(classes[0]), int(classes[-1]) + 1) for classes in found]


def partition_by_thread(forest: Forest, work: Ints, n_threads: int) -> ThreadPartition:
    """Give each thread a range of classes with about the same work, and the units above them."""
    done = np.cumsum(work)
    thread_of = np.minimum(((done - work / 2) * n_threads / max(1, done[-1])).astype(np.int64), n_threads - 1)
    visited = np.zeros((n_threads, len(forest)), dtype=np.uint8)
    visited[thread_of, np.flatnonzero(forest.class_of >= 0)] = 1
    for unit in range(len(forest) - 1, -1, -1):  # parents come first
        if forest.parent[unit] >= 0:
            visited[:, forest.parent[unit]] |= visited[:, unit]
    visited = visited[visited.any(axis=1)]
    return ThreadPartition(visited, visited.sum(axis=0).astype(np.float32))


# ---- ties as a matrix, for DAGs and label graphs ------------------------------------------------------------------------
#
#     ½ Σ_ab M_ab w_a·w_b = ½ Σ_edges ‖w_a − w_b‖² + ½ Σ_n anchor_n ‖w_n‖²        (Gopal & Yang 2013, section 3)
#
# In a hierarchy, edges lead from every node to all of its parents, and roots are anchored with 1. In a graph every label is
# anchored with ρ, since no root is regularized towards zero; a label without neighbours is anchored with 1 + ρ.


@dataclass(frozen=True, slots=True)
class Structure:
    """Units tied by a symmetric, positive definite matrix.

    M: units × units, float64. class_units: the unit of every class; the other units have no loss. node: of every unit.
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


def tie_dag(taxonomy: Taxonomy, labelled: Ints) -> Structure:
    """Every node with a labelled node at or below it, tied to all its parents.

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
    """Every label, tied to its neighbours; labelled ones are classes.

    >>> tie_graph(LabelGraph.from_edges([("wine", "grape")], ["tea"]), np.array([0, 1])).M.diagonal().tolist()
    [1.0001, 1.0001, 1.0001]
    """
    a, b = graph.adjacency.nonzero()
    alone = np.diff(graph.adjacency.indptr) == 0
    return Structure(_tie(a[a < b], b[a < b], ANCHOR + alone), np.unique(labelled), np.arange(len(graph)))


def matrix_of(forest: Forest) -> Structure:
    """The matrix of a tree or of flat classes; units and classes keep their numbers."""
    tied = forest.parent >= 0
    M = _tie(np.flatnonzero(tied), forest.parent[tied].astype(np.int64), np.where(tied, 0.0, 1.0))
    return Structure(M, np.flatnonzero(forest.class_of >= 0), forest.node)


def _tie(a: Ints, b: Ints, anchor: NDArray[np.float64]) -> csr_array:
    """M of edges between a and b, each once, and anchors."""
    n, ones, own = len(anchor), np.ones(len(a)), np.arange(len(anchor))
    rows, columns = np.concatenate([own, a, b, a, b]), np.concatenate([own, a, b, b, a])
    M = csr_array(coo_array((np.concatenate([anchor, ones, ones, -ones, -ones]), (rows, columns)), shape=(n, n)))
    M.sum_duplicates()
    return M


# ---- δ of the inner units -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Deltas:
    """One sparse vector per unit, from start to end.

    It has every feature of the documents of the classes below the unit, zeros included, so that values can change in place.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    features: NDArray[np.int32]
    values: NDArray[np.float32]

    @classmethod
    def zero(cls, n_units: int) -> Deltas:
        """All zeros."""
        nowhere = np.zeros(n_units, dtype=np.int64)
        return cls(nowhere, nowhere, np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All of its arrays."""
        return self.start, self.end, self.features, self.values

    def of(self, units: NDArray[np.int32]) -> Deltas:
        """Those of some units; vectors are not copied."""
        return Deltas(self.start[units], self.end[units], self.features, self.values)

    def with_first(self, weights: NDArray[np.float32]) -> Deltas:
        """The same with given weights of the first unit, over all features."""
        start, end = self.start.copy(), self.end.copy()
        self.values[start[0] : end[0]] = 0
        start[0], end[0] = len(self.values), len(self.values) + len(weights)
        features = np.concatenate([self.features, np.arange(len(weights), dtype=np.int32)])
        return Deltas(start, end, features, np.concatenate([self.values, weights]))

    def half_squares(self) -> float:
        """½ Σ ‖δ‖² over all units, part by part: there may be hundreds of millions of values."""
        parts = (self.values[at : at + PART].astype(np.float64) for at in range(0, len(self.values), PART))
        return 0.5 * sum(float(part @ part) for part in parts)


def join(parts: list[tuple[Any, ...]], n_units: int) -> Deltas:
    """Concatenate the vectors of all threads; a unit of multiple threads has all features in each, and gets the sum.

    Each part is freed once it is copied.
    """
    size = sum(len(part[2]) for part in parts)
    features, values = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.float32)
    joined, first = Deltas(np.zeros(n_units, dtype=np.int64), np.zeros(n_units, dtype=np.int64), features, values), 0
    for k, (units, ends, part_features, part_values, *_) in enumerate(parts):
        parts[k] = ()
        copied = slice(first, first + len(part_features))
        features[copied], values[copied] = part_features, part_values
        starts, ends, first = first + np.concatenate([[0], ends])[:-1], first + ends, copied.stop
        again = joined.end[units] > joined.start[units]
        joined.start[units[~again]], joined.end[units[~again]] = starts[~again], ends[~again]
        for unit, start, end in zip(units[again], starts[again], ends[again], strict=True):
            values[joined.start[unit] : joined.end[unit]] += values[start:end]
            values[start:end] = 0
    return joined


def add_changes(deltas: Deltas, parts: list[tuple[Any, ...]]) -> None:
    """Add the changes of every thread to units of multiple threads, which have all features."""
    for units, ends, features, values, *_ in parts:
        for unit, start, end in zip(units.tolist(), [0, *ends.tolist()], ends.tolist(), strict=False):
            deltas.values[deltas.start[unit] + features[start:end]] += values[start:end]
