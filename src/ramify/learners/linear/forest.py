"""The units whose weights are tied: the nodes above the classes, and the classes as leaves, in the order of a walk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True)
class Forest:
    """Units in preorder, a parent's classes before its inner children.

    parent: the unit above each, -1 above a root. node: the taxonomy's node of each unit.
    class_of: the number of the class that a unit is, -1 for an inner unit; classes are numbered in this order.
    above_offsets, above: for every class the units above it, from the root down.
    """

    parent: NDArray[np.int32]
    node: NDArray[np.int64]
    class_of: NDArray[np.int32]
    above_offsets: NDArray[np.int64]
    above: NDArray[np.int32]

    @classmethod
    def numbered(cls, parent: NDArray[np.int32], node: NDArray[np.int64], is_class: NDArray[np.bool_]) -> Forest:
        """Units in order, some of which are classes."""
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
        """Neighbouring classes and the units above them, in the same order; and which of the units these are."""
        above = self.above[self.above_offsets[first] : self.above_offsets[last]]
        units = np.union1d(np.flatnonzero((self.class_of >= first) & (self.class_of < last)), above).astype(np.int32)
        has_parent = self.parent[units] >= 0
        parent = np.where(has_parent, np.searchsorted(units, self.parent[units]), -1).astype(np.int32)
        class_of = np.where(self.class_of[units] >= 0, self.class_of[units] - first, -1).astype(np.int32)
        offsets = self.above_offsets[first : last + 1] - self.above_offsets[first]
        return Forest(parent, self.node[units], class_of, offsets, np.searchsorted(units, above).astype(np.int32)), units


def tie_along_paths(taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest:
    """A tree's units: nodes with a labelled node at or below them; a labelled inner node gets a class of its own below it."""
    has_own = np.zeros(len(taxonomy), dtype=bool)
    has_own[labelled] = True
    alive, parent = has_own.copy(), taxonomy.parent
    for node in range(len(taxonomy) - 1, -1, -1):  # parents come first, so a backward sweep sees children first
        if alive[node] and parent[node] >= 0:
            alive[parent[node]] = True
    has_inner = np.zeros(len(taxonomy), dtype=bool)
    has_inner[parent[np.flatnonzero(alive & (parent >= 0))]] = True
    return _walk(taxonomy, has_own, alive, has_inner)


def stand_alone(taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest:
    """Classes with nothing above them, in the order in which a walk over the taxonomy meets them."""
    return single_units(tie_along_paths(taxonomy, labelled).class_nodes if taxonomy.is_tree else np.sort(labelled))


def single_units(nodes: NDArray[np.int64]) -> Forest:
    """One class for each of some nodes, and nothing above them."""
    n = len(nodes)
    nothing, classes = np.zeros(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32)
    return Forest(np.full(n, -1, dtype=np.int32), nodes, classes, nothing, np.zeros(0, dtype=np.int32))


def _walk(taxonomy: Taxonomy, has_own: Any, alive: Any, has_inner: Any) -> Forest:
    parent: list[int] = []
    node: list[int] = []
    is_class: list[bool] = []
    stack = [(int(root), -1, not has_inner[root]) for root in reversed(taxonomy.roots) if alive[root]]
    while stack:
        here, above, leaf = stack.pop()
        unit = len(parent)
        parent.append(above)
        node.append(here)
        is_class.append(leaf)
        if leaf:
            continue
        children = [int(child) for child in taxonomy.children_of(here) if alive[child]]
        inner = [(child, unit, False) for child in children if has_inner[child]]
        classes = [(child, unit, True) for child in children if not has_inner[child]]
        stack += reversed(inner)
        stack += reversed(([(here, unit, True)] if has_own[here] else []) + classes)
    arrays = np.asarray(parent, dtype=np.int32), np.asarray(node, dtype=np.int64), np.asarray(is_class, dtype=bool)
    return Forest.numbered(*arrays)


@dataclass(frozen=True, slots=True)
class Walks:
    """Shares of the classes, for walks side by side.

    visited: walks × units, whether a walk passes a unit. share: how many walks pass each unit.
    """

    visited: NDArray[np.uint8]
    share: NDArray[np.float32]

    def classes(self, forest: Forest) -> list[tuple[int, int]]:
        """The first class of every walk, and the one after its last."""
        found = [forest.class_of[(visited > 0) & (forest.class_of >= 0)] for visited in self.visited]
        return [(int(classes[0]), int(classes[-1]) + 1) for classes in found]


def share_out(forest: Forest, work: NDArray[np.int64], n_walks: int) -> Walks:
    """Give each walk a stretch of neighbouring classes with about the same work."""
    done = np.cumsum(work)
    walk_of = np.minimum(((done - work / 2) * n_walks / max(1, done[-1])).astype(np.int64), n_walks - 1)
    visited = np.zeros((n_walks, len(forest)), dtype=np.uint8)
    visited[walk_of, np.flatnonzero(forest.class_of >= 0)] = 1
    for unit in range(len(forest) - 1, -1, -1):  # parents come first
        if forest.parent[unit] >= 0:
            visited[:, forest.parent[unit]] |= visited[:, unit]
    visited = visited[visited.any(axis=1)]
    return Walks(visited, visited.sum(axis=0).astype(np.float32))
