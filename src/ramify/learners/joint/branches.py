"""Branches against their siblings: what competes for a document is, at every node on its way, each branch not taken.

An answer is a pair of branches of one node, the one that a document takes and another: φ is the other minus the taken one. A
document's own answer is that nothing is wrong, φ = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramify.learners.joint.problem import Answers
from ramify.taxonomy import Taxonomy

Nodes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of all nodes that have more than one, those of a node side by side.

    nodes, parents: the node of every branch, and the node at which it is asked about (-1 above the roots); both are the same
    where it says that a document stays.
    """

    nodes: Nodes
    parents: Nodes
    taxonomy: Taxonomy

    def __len__(self) -> int:
        return len(self.nodes)

    def taken_to(self, end: int) -> Nodes:
        """The branches that a document takes on its way to the node where it ends."""
        stays = self.nodes == self.parents
        on_path = np.isin(self.nodes, self.taxonomy.nodes_to(end))
        return np.flatnonzero(np.where(stays, self.nodes == end, on_path))

    def rivals_of(self, branch: int) -> Nodes:
        """The other branches of the same node."""
        first, last = np.searchsorted(self.parents, [self.parents[branch], self.parents[branch] + 1])
        return np.delete(np.arange(first, last), branch - first)

    def count_pairs(self) -> int:
        """How many pairs of a branch and a rival there are."""
        sizes = np.unique(self.parents, return_counts=True)[1]
        return int((sizes * (sizes - 1)).sum())

    def above(self) -> tuple[Nodes, Nodes]:
        """All pairs of a branch and one on the way from its node down."""
        branch_to = {int(node): b for b, node in enumerate(self.nodes) if node != self.parents[b]}
        pairs = []
        for b, parent in enumerate(self.parents.tolist()):
            ways = self.taxonomy.nodes_to(parent) if parent >= 0 else ()
            pairs += [(branch_to[int(node)], b) for node in ways if int(node) in branch_to]
        upper, lower = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
        return upper, lower


def branch_answers(branches: Branches, ends: Nodes) -> Answers:
    """The answers for documents that end at each of some nodes; every margin is 1."""
    # the pair of a branch and a rival is the same answer for all who take that branch
    rivals = [branches.rivals_of(branch) for branch in range(len(branches))]
    lengths = np.asarray([len(others) for others in rivals])
    firsts = 1 + np.concatenate([[0], np.cumsum(lengths)])
    listed = [
        np.concatenate([[0], *(np.arange(firsts[taken], firsts[taken + 1]) for taken in branches.taken_to(end))])
        for end in ends.tolist()
    ]
    answers = np.concatenate(listed)
    units = np.column_stack([np.repeat(np.arange(len(branches)), lengths), np.concatenate(rivals)])
    return Answers(
        offsets=np.concatenate([[0], np.cumsum([len(each) for each in listed])]).astype(np.int64),
        answers=answers.astype(np.int32),
        margins=(answers > 0).astype(np.float64),
        unit_offsets=np.concatenate([[0, 0], 2 * np.arange(1, len(units) + 1)]).astype(np.int64),
        units=units.ravel().astype(np.int32),
        signs=np.tile([-1.0, 1.0], len(units)),
    )
