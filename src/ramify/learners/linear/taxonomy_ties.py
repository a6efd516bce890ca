"""How the weights of classes are tied: flat, by their ancestors in a tree or a DAG, or by a matrix of edges.

A unit has an increment δ_v, regularized towards zero: every class is a unit, and every node above a class is one. A labelled
inner node is two units: the node itself, and below it a class for its own documents. The weights of a unit are the sum of δ
over it and all its ancestors, each once. In a tree this is δ_v = w_v − w_parent(v), the model of Gopal & Yang 2013, section 3.
In a DAG the paper has ½ Σ_edges ‖w_a − w_b‖² instead, for which see `Structure`. At the optimum, δ of an inner unit is the sum
of δ of the classes below it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array

from ramify.taxonomy import LabelGraph, Taxonomy

ANCHOR = 1e-4  # ρ of every label of a graph
PART = 1 << 20  # values that are squared at a time

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Joins:
    """Which units add δ of units elsewhere to everything below them: at offsets[v] to offsets[v + 1] the units that v adds."""

    offsets: NDArray[np.int64]
    units: NDArray[np.int32]

    @classmethod
    def of(cls, n_units: int, added: Mapping[int, Sequence[int]] | None = None) -> Joins:
        """From the units that each join adds."""
        lists = [(added or {}).get(unit, ()) for unit in range(n_units)]
        offsets = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
        return cls(offsets, np.asarray([unit for each in lists for unit in each], dtype=np.int32))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def is_join(self) -> NDArray[np.bool_]:
        """By unit, whether it adds others."""
        return np.diff(self.offsets) > 0

    def added_by(self, unit: int) -> list[int]:
        """The units that one adds."""
        return [int(other) for other in self.units[self.offsets[unit] : self.offsets[unit + 1]]]

    def part(self, units: NDArray[Any]) -> Joins:
        """Those of some units, rising, which include all that they add."""
        rows = self.matrix()[units]
        return Joins(rows.indptr.astype(np.int64), np.searchsorted(units, rows.indices).astype(np.int32))

    def matrix(self) -> csr_array:
        """Units × units: one where the first adds the second."""
        return csr_array((np.ones(len(self.units)), self.units, self.offsets), shape=(len(self), len(self)))


@dataclass(frozen=True, slots=True)
class Forest:
    """Units of a tree in preorder, the classes below a unit before its inner children.

    A DAG is a tree with joins: a node has one of its parents in the tree, and where that lacks some of its ancestors there is a
    join between the two, a unit that has no δ of its own and adds theirs.

    parent: of every unit, -1 for a root. node: of the taxonomy, for a join that of the unit above it. class_of: the number of
    the class that a unit is, -1 for an inner unit. above_offsets, above: for every class the units above it, from the root
    down, and in the place of a join those that it adds.
    """

    parent: NDArray[np.int32]
    node: NDArray[np.int64]
    class_of: NDArray[np.int32]
    above_offsets: NDArray[np.int64]
    above: NDArray[np.int32]
    joins: Joins

    @classmethod
    def numbered(
        cls, parent: NDArray[np.int32], node: NDArray[np.int64], is_class: NDArray[np.bool_], joins: Joins | None = None
    ) -> Forest:
        """Units in preorder; classes are numbered in this order."""
        joins = Joins.of(len(parent)) if joins is None else joins
        class_of = np.where(is_class, np.cumsum(is_class) - 1, -1).astype(np.int32)
        paths: list[list[int]] = [[]] * len(parent)
        for unit, above in enumerate(parent.tolist()):
            paths[unit] = [] if above < 0 else [*paths[above], *(joins.added_by(above) or [above])]
        listed = [paths[unit] for unit in np.flatnonzero(is_class).tolist()]
        offsets = np.concatenate([[0], np.cumsum([len(path) for path in listed])]).astype(np.int64)
        flat = np.asarray([unit for path in listed for unit in path], dtype=np.int32)
        return cls(parent, node, class_of, offsets, flat, joins)

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

    @property
    def is_tree(self) -> bool:
        """Whether a class has no ancestors but those on one path."""
        return len(self.joins.units) == 0

    def part(self, first: int, last: int) -> tuple[Forest, NDArray[np.int32]]:
        """A range of classes and the units above them, in the same order; and the numbers of these units."""
        above = self.above[self.above_offsets[first] : self.above_offsets[last]]
        units = np.flatnonzero(self.on_paths(slice(first, last))[1]).astype(np.int32)
        place = np.full(len(self) + 1, -1, dtype=np.int32)  # the last one stands above the roots, and above added units
        place[units] = np.arange(len(units), dtype=np.int32)
        class_of = np.where(self.class_of[units] >= 0, self.class_of[units] - first, -1).astype(np.int32)
        offsets, parent = self.above_offsets[first : last + 1], place[self.parent[units]]
        return Forest(parent, self.node[units], class_of, offsets - offsets[0], place[above], self.joins.part(units)), units

    def on_paths(self, classes: Any) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """By unit, whether it is on the path to one of some classes; and whether it is on one or a join there adds it."""
        units, on_path = np.flatnonzero(self.class_of >= 0)[classes], np.zeros(len(self), dtype=np.uint8)
        while len(units):
            on_path[units] = 1
            units = np.unique(self.parent[units])
            units = units[units >= 0]
        added = on_path.copy()
        added[self.joins.units[np.repeat(on_path > 0, np.diff(self.joins.offsets))]] = 1
        return on_path, added

    def to_increments(self) -> csr_array:
        """B with δ = B W, units × units: δ_v = w_v − w_parent(v) − Σ δ of what the join above v adds; nothing for a join."""
        is_join, rows = self.joins.is_join, dict[int, dict[int, float]]()
        for unit in np.argsort(self.node, kind="stable").tolist():  # ancestors come first in the taxonomy
            row, above = {unit: 1.0}, int(self.parent[unit])
            for added in self.joins.added_by(above) if above >= 0 else ():
                for other, value in rows[added].items():
                    row[other] = row.get(other, 0.0) - value
            if above >= 0 and is_join[above]:
                above = int(self.parent[above])
            if above >= 0:
                row[above] = row.get(above, 0.0) - 1
            rows[unit] = {} if is_join[unit] else row
        entries = [(unit, other, value) for unit, row in rows.items() for other, value in row.items() if value]
        a, b, values = zip(*entries, strict=True)
        return csr_array((values, (a, b)), shape=(len(self), len(self)))


def tie_along_paths(taxonomy: Taxonomy, labelled: Ints) -> Forest:
    """Units of a tree or a DAG: the nodes with a labelled node at or below them, in preorder, joins, and the classes.

    In the tree, a node of a DAG is below the parent with the most ancestors, so that a join has to add few.

    >>> fruit = Taxonomy.from_edges([("fruit", None), ("brand", None), ("apple", "fruit"), ("apple", "brand")])
    >>> tied = tie_along_paths(fruit, np.array([2]))
    >>> tied.parent.tolist(), tied.joins.added_by(1), tied.above.tolist()
    ([-1, 0, 1, -1], [3], [0, 3])
    """
    has_own = np.zeros(len(taxonomy), dtype=bool)
    has_own[labelled] = True
    alive = _at_or_above(taxonomy, labelled)
    children, joined = _main_children(taxonomy, alive)
    is_inner = np.zeros(len(taxonomy), dtype=bool)
    is_inner[taxonomy.parent_nodes[np.repeat(alive, np.diff(taxonomy.parent_offsets))]] = True
    parent: list[int] = []
    nodes: list[int] = []
    is_class: list[bool] = []
    added: dict[int, Sequence[int]] = {}

    def below(node: int, unit: int, key: tuple[int, ...]) -> list[Any]:
        """What comes below a unit or a join: classes, joins, inner nodes."""
        here = [child for child in children[node] if joined[child] == key]
        others = dict.fromkeys(joined[child] for child in children[node] if joined[child]) if not key else {}
        own = [(node, unit, True, ())] if has_own[node] and not key else []
        classes = [(child, unit, True, ()) for child in here if not is_inner[child]]
        inner = [(child, unit, False, ()) for child in here if is_inner[child]]
        return [*own, *classes, *((node, unit, False, other) for other in others), *inner]

    stack: list[Any] = [(int(root), -1, not is_inner[root], ()) for root in reversed(taxonomy.roots) if alive[root]]
    while stack:
        node, above, is_leaf, key = stack.pop()
        unit = len(parent)
        parent.append(above)
        nodes.append(node)
        is_class.append(is_leaf)
        if key:
            added[unit] = key
        if not is_leaf:
            stack += reversed(below(node, unit, key))
    unit_of: dict[int, int] = {}
    for unit, node in enumerate(nodes):
        unit_of.setdefault(node, unit)  # a node comes before its joins and its class
    joins = Joins.of(len(parent), {unit: [unit_of[node] for node in some] for unit, some in added.items()})
    arrays = np.asarray(parent, dtype=np.int32), np.asarray(nodes, dtype=np.int64), np.asarray(is_class, dtype=bool)
    return Forest.numbered(*arrays, joins)


def _main_children(taxonomy: Taxonomy, alive: NDArray[np.bool_]) -> tuple[list[list[int]], list[tuple[int, ...]]]:
    """By node, the children that are below it in the tree; and its ancestors that its parent in the tree lacks."""
    children: list[list[int]] = [[] for _ in range(len(taxonomy))]
    ancestors: list[frozenset[int]] = []  # and the node itself
    joined: list[tuple[int, ...]] = []
    for node in range(len(taxonomy)):  # parents come first
        parents = [int(above) for above in taxonomy.parents_of(node)] if alive[node] else []
        all_above = frozenset().union(*(ancestors[above] for above in parents))
        ancestors.append(all_above | {node})
        if parents:
            main = max(parents, key=lambda above: len(ancestors[above]))  # the first of several
            children[main].append(node)
            all_above -= ancestors[main]
        joined.append(tuple(sorted(all_above)))
    return children, joined


def tie_flat(taxonomy: Taxonomy, labelled: Ints) -> Forest:
    """Independent classes, in preorder of the taxonomy if it is a tree."""
    return flat_units(tie_along_paths(taxonomy, labelled).class_nodes if taxonomy.is_tree else np.sort(labelled))


def flat_units(nodes: Ints) -> Forest:
    """Independent classes, one for each of some nodes."""
    return Forest.numbered(np.full(len(nodes), -1, dtype=np.int32), nodes, np.ones(len(nodes), dtype=bool))


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

    visited: threads × units, whether a thread visits a unit. n_threads: how many threads update each unit.
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
    return visit_by_thread(forest, [np.flatnonzero(thread_of == thread) for thread in np.unique(thread_of)])


def visit_by_thread(forest: Forest, classes: Sequence[NDArray[Any]]) -> ThreadPartition:
    """What threads with these classes visit and update."""
    visited, updated = (np.stack(each) for each in zip(*(forest.on_paths(some) for some in classes), strict=True))
    return ThreadPartition(visited, updated.sum(axis=0).astype(np.float32))


# ---- ties as a matrix of edges, for label graphs and for DAGs on request ------------------------------------------------
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
    """The matrix of a tree, a DAG or of flat classes; units and classes keep their numbers, and joins are tied to nothing.

    ½ Σ_v ‖δ_v‖² = ½ Σ_ab (B'B)_ab w_a·w_b, δ = B W.
    """
    B = forest.to_increments()
    M = csr_array(B.T @ B + diags_array(forest.joins.is_join.astype(np.float64)))
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

    def half_squares(self) -> float:
        """½ Σ ‖δ‖² over all units, part by part: there may be hundreds of millions of values."""
        parts = (self.values[at : at + PART].astype(np.float64) for at in range(0, len(self.values), PART))
        return 0.5 * sum(float(part @ part) for part in parts)


def lay_out(parts: list[tuple[Any, ...]], has_all: NDArray[np.bool_], n_features: int) -> Deltas:
    """Zeros with the features that each thread listed.

    has_all: by unit, whether it has all features instead. Each part is freed once it is copied.
    """
    dense, listed = np.flatnonzero(has_all), sum(len(part[2]) for part in parts)
    features = np.empty(listed + len(dense) * n_features, dtype=np.int32)
    start, end, first = np.zeros(len(has_all), dtype=np.int64), np.zeros(len(has_all), dtype=np.int64), 0
    for k, (units, ends, part_features) in enumerate(parts):
        parts[k] = ()
        features[first : first + len(part_features)] = part_features
        start[units], end[units], first = first + np.concatenate([[0], ends])[:-1], first + ends, first + len(part_features)
    features[listed:].reshape(len(dense), n_features)[:] = np.arange(n_features, dtype=np.int32)
    start[dense] = listed + n_features * np.arange(len(dense))
    end[dense] = start[dense] + n_features
    return Deltas(start, end, features, np.zeros(len(features), dtype=np.float32))


def add_changes(deltas: Deltas, parts: list[tuple[Any, ...]]) -> None:
    """Add the changes of every thread to units of multiple threads, which have all features."""
    for units, ends, features, values, *_ in parts:
        for unit, start, end in zip(units.tolist(), [0, *ends.tolist()], ends.tolist(), strict=False):
            deltas.values[deltas.start[unit] + features[start:end]] += values[start:end]
