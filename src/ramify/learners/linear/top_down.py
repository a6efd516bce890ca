"""What linear learners share that go from the top down: margins of branches, a beam search over them, and how they are kept."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ramify.errors import InputError
from ramify.learners.base import Contributions
from ramify.learners.linear.incremental import has_same_parameters, reuse_or_train
from ramify.learners.linear.learner import LinearLearner
from ramify.learners.linear.model import check_width
from ramify.learners.linear.problem import negatives_of, pair_up
from ramify.learners.linear.recursive import OneVsRestSVM
from ramify.learners.linear.select_C import cross_validate_C
from ramify.learners.linear.training import Setup, TrainedWeights, check_setup, suits, train_groups, train_pairs, weigh_classes
from ramify.learners.linear.weights import Weights
from ramify.learners.targets import Targets
from ramify.learners.top_down_base import TopDownLearner, check_branches, find_branches, only_ways
from ramify.learners.warm_start import match_columns
from ramify.taxonomy import descend_by_probability, expand_to_ancestors


class TopDownLinear(TopDownLearner, LinearLearner):
    """A linear classifier for every branch.

    Scores are ln P(node | parent): a document goes from the top to the likeliest child until it stays or ends at a leaf.
    """

    supports_shards: ClassVar[bool] = False
    weights_: Weights

    # ---- learning ---------------------------------------------------------------------------------------------------

    def _cross_validate_C(self, X: csr_array, targets: Targets, weight: Any, setup: Setup) -> tuple[float, dict[float, float]]:
        """A held-out document is given the node at which it ends."""

        def attempt(learnt: Any, held_out: Any, setup: Setup, _: Any) -> tuple[csr_array, Any]:
            rough = {"C": setup.C, "tol": setup.settings.tolerance, "max_iter": setup.settings.max_iter}
            tried = clone(self).set_params(**rough, taxonomy=targets.taxonomy)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                tried.fit(X[learnt], targets.own[learnt], weight[learnt])
            ends = descend_by_probability(tried.scores(X[held_out]), targets.taxonomy)
            given = np.ones(len(ends), dtype=bool), (np.arange(len(ends)), ends)
            return csr_array(given, shape=(len(ends), len(targets.taxonomy))), None

        return cross_validate_C(csr_array(targets.own), setup, attempt)

    # ---- scoring ----------------------------------------------------------------------------------------------------

    def _margins(self, X: csr_array) -> NDArray[np.float64]:
        return self.weights_.score(X).astype(np.float64)

    def _class_of(self, node: int) -> int:
        """The classifier that is asked whether a document goes on to a node."""
        found = np.flatnonzero((self.branch_nodes_ == node) & (self.branch_parents_ != node))
        if not len(found):
            name = self.taxonomy_.names[node]
            raise InputError(f"node {name!r} has no classifier: it has no documents, or is the only way on; ask for another.")
        return int(found[0])

    def _branch_contributions(self, x: csr_array, branch: int) -> Contributions:
        return self.weights_.contributions(x, branch)

    def search(self, X: Any, k: int = 1, width: int = 10) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The k likeliest end nodes of each document, going on from the `width` likeliest nodes of each level only.

        Gives nodes (-1 where there are fewer) and the logarithms of their probabilities, documents × k. Only classifiers
        of nodes that a document reaches are asked.
        """
        check_is_fitted(self, "taxonomy_")
        check_width(k, width)
        return _Search(self, self._validate(X, reset=False), k, width).run()

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def _class_arrays(self) -> dict[str, NDArray[Any]]:
        return {"branch_nodes": self.branch_nodes_, "branch_parents": self.branch_parents_, "alone": self._alone}

    def _restore_classes(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.taxonomy_.require_tree("a model of branches")
        nodes, parents, alone = arrays["branch_nodes"], arrays["branch_parents"], arrays["alone"]
        check_branches(nodes, parents, alone, len(self.weights_.class_units), self.taxonomy_)
        self._set_branches(nodes, parents, alone)

    def _set_branches(self, nodes: NDArray[np.int64], parents: NDArray[np.int64], alone: NDArray[np.int64]) -> None:
        super()._set_branches(nodes, parents, alone)
        self._set_classes(np.unique(np.concatenate([nodes, alone])))


class _Search:
    """A beam search, one level after the other, over the (document, node) pairs that are still in it."""

    def __init__(self, learner: TopDownLinear, X: csr_array, k: int, beam: int) -> None:
        self.learner, self.X, self.k, self.beam = learner, X, k, beam
        n = X.shape[0]
        self.ended: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
        self.open = np.arange(n), np.full(n, -1, dtype=np.int64), np.zeros(n)

    def run(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        while len(self.open[0]):
            parts = [self._expand(int(node)) for node in np.unique(self.open[1])]
            documents, nodes, logs = (np.concatenate([part[i] for part in parts]) for i in range(3))
            self.open = _keep_best(documents, nodes, logs, self.beam)
        return self._collect()

    def _expand(self, node: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Go on from one node with the documents that are there; documents that stay are done."""
        learner = self.learner
        here = self.open[1] == node
        documents, logs = self.open[0][here], self.open[2][here]
        branches = np.flatnonzero(learner.branch_parents_ == node)
        if not len(branches):
            children = learner.taxonomy_.roots if node < 0 else learner.taxonomy_.children_of(node)
            only = np.intersect1d(children, learner._alone)
            if not len(only):
                self.ended.append((documents, np.full(len(documents), node), logs))
            return np.repeat(documents, len(only)), np.tile(only, len(documents)), np.repeat(logs, len(only))
        weights = learner.weights_
        margins = (self.X[documents] @ weights.deltas[branches].T).toarray() + weights.bias[branches]
        margins -= margins.max(axis=1, keepdims=True)
        shares = logs[:, None] + margins - np.log(np.exp(margins).sum(axis=1, keepdims=True))
        stays = learner.branch_nodes_[branches] == node
        if stays.any():
            self.ended.append((documents, np.full(len(documents), node), shares[:, stays].ravel()))
        ways = learner.branch_nodes_[branches][~stays]
        return np.repeat(documents, len(ways)), np.tile(ways, len(documents)), shares[:, ~stays].ravel()

    def _collect(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        documents, nodes, logs = (
            np.concatenate([part[i] for part in self.ended] or [np.zeros(0, dtype=np.int64)]) for i in range(3)
        )
        documents, nodes, logs = _keep_best(documents, nodes, logs, self.k)
        rank = np.arange(len(documents)) - np.searchsorted(documents, documents)
        found = np.full((self.X.shape[0], self.k), -1, dtype=np.int64)
        scores = np.full(found.shape, -np.inf, dtype=np.float32)
        found[documents, rank], scores[documents, rank] = nodes, logs
        return found, scores


def _keep_best(documents: Any, nodes: Any, logs: Any, most: int) -> tuple[Any, Any, Any]:
    """Of each document the likeliest nodes, in order."""
    order = np.lexsort((nodes, -logs, documents))
    documents, nodes, logs = documents[order], nodes[order], logs[order]
    kept = np.arange(len(documents)) - np.searchsorted(documents, documents) < most
    return documents[kept], nodes[kept], logs[kept]


# --------------------------------------------------------------------------------------------------------------
# Top-down support vector machines: at every node one classifier a child, learnt from the documents of that node alone.
#
#     min over w_c   ½‖w_c‖² + C Σ_i L(y_ic w_c·x_i)     for every child c, over the documents i at or below its parent
#
# Documents of the child are positive, those of its siblings, and those that stay at the parent, negative; where documents stay
# at a node, staying is one more child. Roots are siblings of each other.
# Source: the system TD of Gopal & Yang 2013, section 4.2 (after Liu et al. 2005).
# Deviation: the margins of siblings are turned into shares by a softmax, so that paths can be compared.


Nodes = NDArray[np.int64]


class TopDownSVM(TopDownLinear, OneVsRestSVM):
    """Support vector machines from the top down (system ``td-svm``); parameters as of :class:`OneVsRestSVM`.

    Scores and fitted attributes are those of :class:`TopDownLinear` and :class:`TopDownLearner`.

    >>> from ramify import Taxonomy
    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> fitted = TopDownSVM(taxonomy).fit([[1, 0, 0], [1, 1, 0], [0, 0, 1]], ["a/x", "a/y", "b"])
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "top-down-svm"

    def _fit(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        taxonomy = targets.taxonomy
        taxonomy.require_tree("a top-down SVM")
        setup = check_setup(self, self.loss, self.mode)
        closed = csc_array(expand_to_ancestors(targets.own, taxonomy))
        branches = find_branches(taxonomy, np.diff(closed.indptr) > 0, np.diff(csc_array(targets.own).indptr) > 0)
        nodes, parents = branches.T
        if self.C == "auto":
            best, self.C_scores_ = self._cross_validate_C(X, targets, sample_weight, setup)
            setup = replace(setup, C=best)
        positive, asked = _members(csc_array(targets.own), closed, nodes, parents)

        def train_some(some: Nodes) -> TrainedWeights:
            mine, theirs = csc_array(positive[:, some]), csc_array(asked[:, some])
            costs = weigh_classes(mine, setup, taxonomy, nodes[some], sample_weight)
            if suits(X, csr_array(mine), setup):
                return train_groups(X, csr_array(mine), theirs, parents[some], costs, setup)
            return train_pairs(X, pair_up(mine, negatives_of(mine, theirs), costs.positive, costs.negative), costs, setup)

        taken = self._same_branches(positive, asked, setup)
        if taken is None or self._warm_start is None:
            trained = train_some(np.arange(len(nodes)))
        else:
            other, self.reused_ = self._warm_start.learner, (int(np.sum(taken >= 0)), len(taken))
            trained = reuse_or_train(taken, other.weights_, other.class_figures_, train_some)
        self._store(trained, setup, targets)
        self._set_branches(nodes, parents, only_ways(np.diff(closed.indptr) > 0, nodes, parents))

    def _same_branches(self, positive: csc_array, asked: csc_array, setup: Setup) -> Nodes | None:
        """For every branch one of an earlier learner with the same documents, -1 without any; None where none counts."""
        before = self._warm_start
        if before is None or not has_same_parameters(self, before, setup.C) or before.learner.class_figures_ is None:
            return None
        other, own = before.learner, csc_array(before.own)
        closed = csc_array(expand_to_ancestors(before.own, other.taxonomy_))
        were = _members(own, closed, other.branch_nodes_, other.branch_parents_)
        return match_columns([before.now(part) for part in were], [positive, asked])


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
