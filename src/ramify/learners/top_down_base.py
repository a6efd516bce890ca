"""The base class of top-down learners: at every node one margin per branch, normalized by a softmax.

A branch leads from a node to one of its children, or means that a document stays at the node. In a DAG these are the children
in the main-parent tree.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.calibration import LogPotentials
from ramify.errors import ModelError
from ramify.learners.base import Contributions, Evidence, Learner, Scores, best_of
from ramify.learners.path_probabilities import MIN_PROBABILITY, path_products
from ramify.persistence import are_indices
from ramify.taxonomy import Taxonomy, descend_by_probability, spread_over_dag


class TopDownLearner(Learner):
    """A learner whose scores are ln P(node | parent).

    ``branch_nodes_``, ``branch_parents_``: of every branch its node, and the node above (-1 above the roots); both are the same
    for staying there.
    """

    uses_main_parents: ClassVar[bool] = True

    @abstractmethod
    def _margins(self, X: csr_array) -> NDArray[np.float64]:
        """Margins, documents × branches; of the branches of one node the highest wins."""

    def _score(self, X: csr_array) -> Scores:
        S = self._no_scores(X.shape[0])
        S[:, self._only_children] = 0
        if len(self.branch_nodes_):
            margins = self._margins(X)
            lengths = np.diff(np.append(self._starts, len(self.branch_nodes_)))
            margins = margins - np.repeat(np.maximum.reduceat(margins, self._starts, axis=1), lengths, axis=1)
            totals = np.log(np.add.reduceat(np.exp(margins), self._starts, axis=1))
            log_conditional = margins - np.repeat(totals, lengths, axis=1)  # of the softmax over the branches of each node
            enters = self.branch_nodes_ != self.branch_parents_
            S[:, self.branch_nodes_[enters]] = log_conditional[:, enters]
        return S

    @abstractmethod
    def _branch_contributions(self, x: csr_array, branch: int) -> Contributions:
        """Features of one document, what each adds to the margin of a branch, and the bias."""

    def contributions(self, x: csr_array, node: int) -> Contributions:
        """Features of one document, what each adds to the margins on the path to a node, and the biases."""
        added, prior = np.zeros(len(x.indices)), 0.0
        parent = self.taxonomy_.tree.parent
        for step in self.taxonomy_.nodes_to(node):
            if (branch := self._branch_to(step, int(parent[step]))) is not None:
                _, more, bias = self._branch_contributions(x, branch)
                added, prior = added + more, prior + bias
        return x.indices.astype(np.int64), added, prior

    def explaining_node(self, scores: NDArray[Any], node: int) -> int | None:
        """The node itself, where it has a score."""
        return Learner.explaining_node(self, scores, node)

    def evidence(self, x: csr_array, scores: NDArray[Any], node: int, end: int) -> Evidence:
        """The lead of a node over its best sibling, or over staying at their parent where that is likelier."""
        tree = self.taxonomy_.tree
        parent = int(tree.parent[node])
        branch, stay = self._branch_to(node, parent), self._branch_to(parent, parent)
        if branch is None:
            return Evidence.none("the only way on" if np.isfinite(scores[node]) else "no training document was here")
        own = self._branch_contributions(x, branch)
        siblings = np.setdiff1d(tree.roots if parent < 0 else tree.children_of(parent), node)
        rival = best_of(scores, siblings)
        if stay is not None:
            over_staying = Evidence.against(parent, own, self._branch_contributions(x, stay))
            if rival is None or scores[node] - over_staying.score > scores[rival]:
                return over_staying
        if rival is None or (to_rival := self._branch_to(rival, parent)) is None:
            return Evidence.none("the only way on")
        return Evidence.against(rival, own, self._branch_contributions(x, to_rival))

    def _branch_to(self, node: int, parent: int) -> int | None:
        """The branch from a parent to a node, or of staying where both are the same; None without one."""
        first, last = np.searchsorted(self.branch_parents_, [parent, parent + 1])
        found = np.flatnonzero(self.branch_nodes_[first:last] == node)
        return int(first + found[0]) if len(found) else None

    def to_probabilities(self, scores: Scores) -> Scores:
        """The product of P(node | parent) on the path to a node; in a DAG, the sum of what ends at and below the node."""
        return spread_over_dag(self.tree_probabilities(scores), self.taxonomy_)

    def tree_probabilities(self, scores: Scores) -> Scores:
        """The product of P(node | parent) on the path to a node."""
        return path_products(np.exp(scores.astype(np.float64)), self.taxonomy_.tree).astype(np.float32)

    def label_scores(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """ln P(a document ends at a node)."""
        P, parent = self.tree_probabilities(scores).astype(np.float64), self.taxonomy_.tree.parent
        inner = np.flatnonzero(parent >= 0)
        ends = P.copy()
        np.subtract.at(ends.T, parent[inner], P.T[inner])
        return np.where(np.isfinite(scores), np.log(ends.clip(MIN_PROBABILITY, 1)), scores)

    def log_potentials(self, scores: Scores) -> LogPotentials:
        """ln P(node | parent), and of what the children leave for staying."""
        left, parent = np.ones(scores.shape), self.taxonomy_.tree.parent
        inner = np.flatnonzero(parent >= 0)
        np.subtract.at(left.T, parent[inner], np.exp(scores.astype(np.float64)).T[inner])
        return LogPotentials(np.log(left.clip(MIN_PROBABILITY, 1)), scores)

    def conditionals(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """P(node | parent); 0 for nodes without training documents."""
        return np.exp(scores.astype(np.float64))

    def _best_nodes(self, scores: Scores) -> NDArray[np.int64]:
        return descend_by_probability(scores, self.taxonomy_.tree)

    def _set_branches(self, nodes: NDArray[np.int64], parents: NDArray[np.int64], alone: NDArray[np.int64]) -> None:
        self.branch_nodes_, self.branch_parents_, self._only_children = nodes.copy(), parents.copy(), alone
        self._starts = np.flatnonzero(np.diff(parents, prepend=-2) != 0)


def find_branches(taxonomy: Taxonomy, alive: NDArray[np.bool_], has_own: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(node, parent) of every branch of nodes that have more than one."""
    found: list[tuple[int, int]] = []
    for parent in [-1, *np.flatnonzero(alive & ~taxonomy.is_leaf).tolist()]:
        children = taxonomy.roots if parent < 0 else taxonomy.children_of(parent)
        branches = [int(child) for child in children if alive[child]]
        if parent >= 0 and has_own[parent]:
            branches.append(parent)
        if len(branches) > 1:
            found += [(node, parent) for node in branches]
    return np.asarray(found, dtype=np.int64).reshape(-1, 2)


def only_children(alive: NDArray[np.bool_], nodes: NDArray[np.int64], parents: NDArray[np.int64]) -> NDArray[np.int64]:
    """The nodes with documents that have no branch: each is the only one of its parent."""
    return np.setdiff1d(np.flatnonzero(alive), nodes[nodes != parents])


def check_branches(nodes: Any, parents: Any, alone: Any, n_classes: int, taxonomy: Taxonomy) -> None:
    """Refuse branches of a model file that do not lead down the taxonomy."""
    if any(array.dtype != np.int64 or array.ndim != 1 for array in (nodes, parents, alone)):
        raise ModelError("the branches of the top-down model are of another type than it writes; train the model again.")
    if len(nodes) != n_classes or len(parents) != n_classes or np.any(parents[1:] < parents[:-1]):
        raise ModelError("the branches of the top-down model do not fit its weights; train the model again.")
    every = np.concatenate([nodes, alone])
    if not are_indices(every, len(taxonomy)):
        raise ModelError("a branch of the top-down model is no node of the taxonomy; train the model again.")
    stays = nodes == parents
    entered = np.concatenate([nodes[~stays], alone])
    leads = np.array_equal(taxonomy.parent[nodes[~stays]], parents[~stays])
    if not leads or len(np.unique(entered)) < len(entered) or len(np.unique(nodes[stays])) < int(stays.sum()):
        raise ModelError("the branches of the top-down model do not lead down the taxonomy; train the model again.")
