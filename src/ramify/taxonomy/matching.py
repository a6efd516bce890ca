"""Which node of a new taxonomy is which node of an old one.

Nodes of the same name are the same. Names that are whole paths change with every node above them, so nodes named by their paths
are matched by where they stand, and then by what surrounds them, as far as that leaves no doubt:

    renamed   under the same parent, another title, the same titles of children, and no second node like it
    moved     another parent, the same title and mostly the same children; of a leaf, a title that no second node has
    follows   the same title, under a node that was matched

What is not certain is left unmatched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray

from ramify.taxonomy.hierarchy import Taxonomy

NOBODY = -1
Key = Callable[[Taxonomy, int, bool], Hashable | None]  # of a node, and whether it is an old one; None where it has none


def match_nodes(old: Taxonomy, new: Taxonomy) -> NDArray[np.int64]:
    """For every old node the new one that is the same, -1 where none is.

    >>> old, new = Taxonomy.from_paths(["a/x", "a/y", "b/z"]), Taxonomy.from_paths(["a/x", "b/y", "b/z"])
    >>> [new.names[node] for node in match_nodes(old, new)]
    ['a', 'a/x', 'b/y', 'b', 'b/z']
    """
    if not (is_named_by_paths(old) and is_named_by_paths(new)):
        place = {name: node for node, name in enumerate(new.names)}
        return np.asarray([place.get(name, NOBODY) for name in old.names], dtype=np.int64)
    matching = _Matching(old, new)
    matching.run()
    return matching.successor


def is_named_by_paths(taxonomy: Taxonomy) -> bool:
    """Whether every node's name is its whole path, as in taxonomies that are made of paths; a flat list of names counts."""
    if not taxonomy.is_tree:
        return False
    above = [f"{taxonomy.names[parent]}{taxonomy.separator}" if parent >= 0 else "" for parent in taxonomy.parent.tolist()]
    parts = zip(taxonomy.names, above, taxonomy.titles, strict=True)
    return all(name == before + title for name, before, title in parts)


class _Matching:
    """The work on two taxonomies whose nodes are named by their paths."""

    def __init__(self, old: Taxonomy, new: Taxonomy) -> None:
        self.old, self.new = old, new
        self.successor = np.full(len(old), NOBODY, dtype=np.int64)
        self.predecessor = np.full(len(new), NOBODY, dtype=np.int64)
        self.parent = {id(old): old.parent, id(new): new.parent}  # made anew whenever a taxonomy is asked

    def run(self) -> None:
        """Match by place, and then by surroundings until nothing more is certain."""
        place = {self.new.path_of(node): node for node in range(len(self.new))}
        for node in range(len(self.old)):
            if (same := place.get(self.old.path_of(node))) is not None:
                self._take(node, same)
        while self._match_by(self._surroundings) or self._match_by(self._subtree) or self._match_by(self._lone_title):
            self._follow()

    def _take(self, node: int, same: int) -> None:
        self.successor[node], self.predecessor[same] = same, node

    def _follow(self) -> None:
        """Match what stands below matched nodes under the same title; parents come first, so one sweep is enough."""
        for node in np.flatnonzero(self.successor < 0).tolist():
            parent = int(self.parent[id(self.old)][node])
            if parent < 0 or self.successor[parent] < 0:
                continue
            for child in self.new.children_of(int(self.successor[parent])).tolist():
                if self.predecessor[child] < 0 and self.new.titles[child] == self.old.titles[node]:
                    self._take(node, child)

    def _match_by(self, key: Key) -> bool:
        """Match unmatched nodes that alone have a key, on both sides; says whether there were any."""
        ours, theirs = self._by_key(self.old, self.successor, key, True), self._by_key(self.new, self.predecessor, key, False)
        found = [(nodes[0], theirs[it][0]) for it, nodes in ours.items() if len(nodes) == len(theirs.get(it, ())) == 1]
        certain = [(node, same) for node, same in found if self._fits(node, same)]
        for node, same in certain:
            if self.successor[node] < 0 and self.predecessor[same] < 0:
                self._take(node, same)
        return bool(certain)

    def _by_key(self, taxonomy: Taxonomy, matched: NDArray[np.int64], key: Key, is_old: bool) -> dict[Hashable, list[int]]:
        found: dict[Hashable, list[int]] = defaultdict(list)
        for node in np.flatnonzero(matched < 0).tolist():
            if (it := key(taxonomy, node, is_old)) is not None:
                found[it].append(node)
        return found

    # ---- by what nodes are known ------------------------------------------------------------------------------------

    def _surroundings(self, taxonomy: Taxonomy, node: int, is_old: bool) -> Hashable | None:
        """The parent, as a node of the new taxonomy, and the titles of the children; of inner nodes."""
        parent = int(self.parent[id(taxonomy)][node])
        above = int(self.successor[parent]) if is_old and parent >= 0 else parent
        is_certain = not taxonomy.is_leaf[node] and (parent < 0 or above >= 0)
        return (above, _titles_below(taxonomy, node)) if is_certain else None

    def _subtree(self, taxonomy: Taxonomy, node: int, is_old: bool) -> Hashable | None:
        """The title of an inner node."""
        return None if taxonomy.is_leaf[node] else taxonomy.titles[node]

    def _lone_title(self, taxonomy: Taxonomy, node: int, is_old: bool) -> Hashable | None:
        """The title of a leaf, where no other node has it, matched or not."""
        title = taxonomy.titles[node]
        return title if taxonomy.is_leaf[node] and len(taxonomy.bearers_of(title)) == 1 else None

    def _fits(self, node: int, same: int) -> bool:
        """Whether two nodes have most of their children in common."""
        ours, theirs = _titles_below(self.old, node), _titles_below(self.new, same)
        return 2 * len(ours & theirs) > len(ours | theirs) or not (ours or theirs)


def _titles_below(taxonomy: Taxonomy, node: int) -> frozenset[str]:
    return frozenset(taxonomy.titles[child] for child in taxonomy.children_of(node).tolist())
