"""Classes that nothing can be learnt for: without documents, with hardly any, or taken for others throughout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramify.pipeline.auditing.unseen import Ints, Unseen
from ramify.taxonomy import Taxonomy, expand_to_ancestors

KINDS = ("empty", "tiny", "never recognized")


@dataclass(frozen=True, slots=True)
class ClassTrouble:
    """A class that nothing can be learnt for.

    kind: one of KINDS. documents: at the node or below it; of the class itself where it is never recognized.
    taken_for: the node that most of them are taken for, and how many of them.
    """

    node: int
    kind: str
    documents: int
    taken_for: int | None = None
    taken: int = 0


def find_troubled(unseen: Unseen, taken: Ints, fewest: int) -> list[ClassTrouble]:
    """Classes with trouble, in the order of kinds, then of nodes. taken: the node that each document is taken for."""
    taxonomy = unseen.taxonomy
    below = np.bincount(expand_to_ancestors(unseen.own, taxonomy).indices, minlength=len(taxonomy))
    own = np.bincount(unseen.own.indices, minlength=len(taxonomy))
    is_tiny = (below < fewest) & (below > 0) & (taxonomy.is_leaf | (own > 0))
    empty = [ClassTrouble(node, "empty", 0) for node in _highest(below == 0, taxonomy)]
    tiny = [ClassTrouble(node, "tiny", int(below[node])) for node in np.flatnonzero(is_tiny).tolist()]
    return [*empty, *tiny, *_never_recognized(unseen, taken, own, fewest)]


def _highest(is_empty: NDArray[np.bool_], taxonomy: Taxonomy) -> list[int]:
    """Nodes that are empty below parents that are not; what lies below an empty node is empty, too."""
    return [node for node in np.flatnonzero(is_empty).tolist() if not is_empty[taxonomy.parents_of(node)].any()]


def _never_recognized(unseen: Unseen, taken: Ints, own: Ints, fewest: int) -> list[ClassTrouble]:
    documents, nodes = unseen.pairs
    right = np.bincount(nodes[taken[documents] == nodes], minlength=len(own))
    found = []
    for node in np.flatnonzero((own >= fewest) & (right == 0)).tolist():
        others, counts = np.unique(taken[documents[nodes == node]], return_counts=True)
        found.append(ClassTrouble(node, "never recognized", int(own[node]), int(others[counts.argmax()]), int(counts.max())))
    return found
