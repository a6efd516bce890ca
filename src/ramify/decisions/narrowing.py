"""How far down to go: ever smaller sets of nodes, the mass that each keeps, and which of them still hold the truth.

A document begins with all roots. Step by step the nodes of its set give way to their children, of which at most `size` stay,
the most probable; at the end, when only leaves are left, the least probable leaf goes until one is left. With size 1 this is
the way from the most probable root to the most probable child. The mass of a set, the probability that the truth is at or below
one of its nodes, never rises on the way. So a threshold on the mass says where to stop, and a lower one never stops earlier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.decisions.bayes import read_probabilities
from ramify.taxonomy import Taxonomy, expand_to_ancestors, levels_of

NEVER = -1.0  # the mass at which a truth is lost that is never lost

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The sets of some documents, step by step.

    masses: documents × steps. nodes: documents × steps × size, -1 where a set has fewer.
    """

    masses: Floats
    nodes: Ints

    def stops(self, threshold: Any) -> Ints:
        """The nodes of the last set with a mass above a threshold, -1 where there are fewer or none; one a document, or all."""
        n_steps = (self.masses > np.reshape(threshold, (-1, 1))).sum(axis=1)
        last = self.nodes[np.arange(len(self.nodes)), np.maximum(n_steps, 1) - 1]
        return np.where((n_steps > 0)[:, None], last, -1)

    def losses(self, truth: csr_array) -> Floats:
        """The mass of the first set without a true node, -1 where there is none. truth: closed upward."""
        rows = np.arange(len(self.nodes))[:, None, None]
        is_true = np.asarray(truth.toarray(), dtype=bool)[rows, self.nodes] & (self.nodes >= 0)
        is_lost = ~np.any(is_true, axis=2)
        first = np.where(is_lost.any(axis=1), is_lost.argmax(axis=1), 0)
        return np.where(is_lost.any(axis=1), self.masses[np.arange(len(first)), first], NEVER)


def narrow_down(probabilities: Any, taxonomy: Taxonomy, size: int = 1) -> Narrowing:
    """Go down a tree with at most so many nodes at a time. probabilities: documents × nodes, no child's above its parent's.

    >>> tree = Taxonomy.from_paths(["a/b", "a/c", "d"])
    >>> found = narrow_down([[0.9, 0.6, 0.3, 0.1]], tree)
    >>> found.masses.tolist(), [tree.names[node] for node in found.nodes[0, :, 0]]
    ([[0.9, 0.6]], ['a', 'a/b'])
    """
    taxonomy.require_tree("backing off to an ancestor")
    P = np.nan_to_num(read_probabilities(probabilities, taxonomy).astype(np.float64), nan=0.0)
    here, steps = np.full((len(P), 0), -1, dtype=np.int64), []
    for level in levels_of(taxonomy):
        here = _go_down(P, here, level, taxonomy, size)
        steps.append(here)
    steps += [np.where(np.arange(size) < kept, here, -1) for kept in range(size - 1, 0, -1)]
    nodes = np.stack(steps, axis=1)
    masses = np.where(nodes >= 0, P[np.arange(len(P))[:, None, None], nodes], 0.0).sum(axis=2)
    return Narrowing(np.minimum.accumulate(masses.clip(0, 1), axis=1), nodes)


def _go_down(P: Floats, here: Ints, level: Ints, taxonomy: Taxonomy, size: int) -> Ints:
    """Of the nodes of a level below those of a set, and its leaves, the most probable: first the most probable of all."""
    rows = np.arange(len(P))[:, None]
    parent = taxonomy.parent[level]
    is_here = np.zeros((len(P), len(taxonomy) + 1), dtype=bool)
    is_here[rows, here] = True  # -1 marks the last column, which is nobody's
    is_here[:, -1] = True  # above the roots, all are
    leaves = np.where((here >= 0) & taxonomy.is_leaf[here], here, -1)
    nodes = np.concatenate([np.broadcast_to(level, (len(P), len(level))), leaves], axis=1)
    chances = np.where(is_here[:, parent], P[:, level], NEVER)
    chances = np.concatenate([chances, np.where(leaves >= 0, P[rows, leaves], NEVER)], axis=1)
    order = np.argsort(-chances, axis=1, kind="stable")[:, :size] if size > 1 else chances.argmax(axis=1)[:, None]
    best = np.where(chances[rows, order] > NEVER, nodes[rows, order], -1)
    return np.pad(best, ((0, 0), (0, size - best.shape[1])), constant_values=-1)


def to_labels(nodes: Ints, taxonomy: Taxonomy) -> csr_array:
    """Nodes of each document, -1 for none, as labels with their ancestors."""
    rows, columns = np.nonzero(nodes >= 0)
    chosen = nodes[rows, columns]
    shape = len(nodes), len(taxonomy)
    return expand_to_ancestors(csr_array((np.ones(len(chosen), dtype=bool), (rows, chosen)), shape=shape), taxonomy)
