"""Top-down support vector machines: at every node one classifier a child, learnt from the documents of that node alone.

    min over w_c   ½‖w_c‖² + C Σ_i L(y_ic w_c·x_i)     for every child c, over the documents i at or below its parent

Documents of the child are positive, those of its siblings, and those that stay at the parent, negative; where documents stay
at a node, staying is one more child. Roots are siblings of each other.
Source: the system TD of Gopal & Yang 2013, section 4.2 (after Liu et al. 2005).
Deviation: the margins of siblings are turned into shares by a softmax, so that paths can be compared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from ramify.learners.before import same_columns
from ramify.learners.branch_machines import BranchMachines
from ramify.learners.branches import find_branches, only_ways
from ramify.learners.linear.pairs import negatives_of, pair_up
from ramify.learners.linear.taking_over import is_alike, train_others
from ramify.learners.linear.training import Setup, Trained, check_setup, suits, train_apart, train_pairs, weigh_classes
from ramify.learners.one_vs_rest import OneVsRestSVM
from ramify.learners.targets import Targets
from ramify.taxonomy import expand_to_ancestors

Nodes = NDArray[np.int64]


class TopDownSVM(BranchMachines, OneVsRestSVM):
    """Support vector machines from the top down (system ``td-svm``); parameters as of :class:`OneVsRestSVM`.

    Scores and fitted attributes are those of :class:`BranchMachines` and :class:`BranchLearner`.

    >>> from ramify import Taxonomy
    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> fitted = TopDownSVM(taxonomy).fit([[1, 0, 0], [1, 1, 0], [0, 0, 1]], ["a/x", "a/y", "b"])
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "top-down-svm"

    def _learn(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        taxonomy = targets.taxonomy
        taxonomy.require_tree("a top-down SVM")
        setup = check_setup(self, self.loss)
        closed = csc_array(expand_to_ancestors(targets.own, taxonomy))
        branches = find_branches(taxonomy, np.diff(closed.indptr) > 0, np.diff(csc_array(targets.own).indptr) > 0)
        nodes, parents = branches.T
        if self.C == "auto":
            best, self.C_scores_ = self._choose_cost(X, targets, sample_weight, setup)
            setup = replace(setup, C=best)
        positive, asked = _members(csc_array(targets.own), closed, nodes, parents)

        def train_some(some: Nodes) -> Trained:
            mine, theirs = csc_array(positive[:, some]), csc_array(asked[:, some])
            costs = weigh_classes(mine, setup, taxonomy, nodes[some], sample_weight)
            if suits(X, csr_array(mine), setup):
                return train_apart(X, csr_array(mine), theirs, parents[some], costs, setup)
            return train_pairs(X, pair_up(mine, negatives_of(mine, theirs), costs.positive, costs.negative), costs, setup)

        taken = self._same_branches(positive, asked, setup)
        if taken is None or self._before is None:
            trained = train_some(np.arange(len(nodes)))
        else:
            other, self.taken_over_ = self._before.learner, (int(np.sum(taken >= 0)), len(taken))
            trained = train_others(taken, other.weights_, other.class_figures_, train_some)
        self._take(trained, setup, targets)
        self._set_branches(nodes, parents, only_ways(np.diff(closed.indptr) > 0, nodes, parents))

    def _same_branches(self, positive: csc_array, asked: csc_array, setup: Setup) -> Nodes | None:
        """For every branch one of an earlier learner with the same documents, -1 without any; None where none counts."""
        before = self._before
        if before is None or not is_alike(self, before, setup.C) or before.learner.class_figures_ is None:
            return None
        other, own = before.learner, csc_array(before.own)
        closed = csc_array(expand_to_ancestors(before.own, other.taxonomy_))
        were = _members(own, closed, other.branch_nodes_, other.branch_parents_)
        return same_columns([before.now(part) for part in were], [positive, asked])


def _members(
    own: csc_array, closed: csc_array, nodes: NDArray[np.int64], parents: NDArray[np.int64]
) -> tuple[csc_array, csc_array]:
    """Documents × branches: whose documents are of a branch, and whose are asked about it."""
    stays = nodes == parents
    everywhere = csc_array((np.diff(csr_array(own).indptr) > 0)[:, None])
    stacked = csc_array(_beside(csc_array(closed), csc_array(own), everywhere))
    n = closed.shape[1]
    positive = csc_array(stacked[:, np.where(stays, n + nodes, nodes)])
    return positive, csc_array(stacked[:, np.where(parents < 0, 2 * n, parents)])


def _beside(*parts: csc_array) -> csc_array:
    offsets = np.concatenate([[0], *[p.indptr[1:] + sum(q.nnz for q in parts[:k]) for k, p in enumerate(parts)]])
    rows = np.concatenate([p.indices for p in parts])
    shape = (parts[0].shape[0], sum(p.shape[1] for p in parts))
    return csc_array((np.ones(len(rows), dtype=bool), rows, offsets), shape=shape)
