"""Top-down linear classifiers (system ``td-svm``): at every node one classifier per child, trained on that node's documents.

    min over w_c   ½‖w_c‖² + C Σ_i L(y_ic w_c·x_i)     for every child c, over the documents i at or below its parent

Documents of the child are positive; those of its siblings, and those labelled with the parent itself, are negative. Where some
are labelled with a node itself, staying there is one more child: a branch back to the node. Roots are siblings of each other.
Source: the system TD of Gopal & Yang 2013, section 4.2 (after Liu et al. 2005).
Deviation: a softmax turns the margins of siblings into probabilities, so that paths can be compared.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ramify.errors import InputError
from ramify.features.base import check_fitted
from ramify.learners.base import Contributions
from ramify.learners.linear.dual_solver import TrainedWeights
from ramify.learners.linear.incremental import are_independent, has_same_parameters, reuse_or_train
from ramify.learners.linear.learner import LinearLearner
from ramify.learners.linear.model import check_width
from ramify.learners.linear.recursive import OneVsRestSVM
from ramify.learners.linear.select_C import cross_validate_C
from ramify.learners.linear.training import Setup, check_setup, train_subsets, weigh_classes
from ramify.learners.linear.weights import Weights
from ramify.learners.targets import Targets
from ramify.learners.top_down_base import TopDownLearner, check_branches, find_branches, only_children
from ramify.learners.warm_start import match_columns
from ramify.taxonomy import descend_by_probability, expand_to_ancestors

Nodes = NDArray[np.int64]
Scored = tuple[Nodes, Nodes, NDArray[np.float64]]  # documents, nodes, and ln P of each pair


class TopDownLinear(TopDownLearner, LinearLearner):
    """A linear classifier for every branch.

    Scores are ln P(node | parent): a document descends from the root to the likeliest child, until it stays or is at a leaf.
    """

    supports_shards: ClassVar[bool] = False
    weights_: Weights

    def _cross_validate_C(self, X: csr_array, targets: Targets, weight: Any, setup: Setup) -> tuple[float, dict[float, float]]:
        """The prediction for a held-out document is the node at which its descent ends."""

        def attempt(used: Any, held_out: Any, setup: Setup, _: Any) -> tuple[csr_array, Any]:
            rough = {"C": setup.C, "tol": setup.settings.tolerance, "max_iter": setup.settings.max_iter}
            learner = clone(self).set_params(**rough, taxonomy=targets.taxonomy)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                learner.fit(X[used], targets.own[used], weight[used])
            ends = descend_by_probability(learner.scores(X[held_out]), targets.taxonomy.tree)
            predicted = np.ones(len(ends), dtype=bool), (np.arange(len(ends)), ends)
            return csr_array(predicted, shape=(len(ends), len(targets.taxonomy))), None

        return cross_validate_C(csr_array(targets.own), setup, attempt)

    # ---- scoring ----------------------------------------------------------------------------------------------------

    def _margins(self, X: csr_array) -> NDArray[np.float64]:
        return self.weights_.score(X).astype(np.float64)

    def _class_of(self, node: int) -> int:
        """The branch that leads to a node."""
        found = np.flatnonzero((self.branch_nodes_ == node) & (self.branch_parents_ != node))
        if not len(found):
            name = self.taxonomy_.names[node]
            raise InputError(f"node {name!r} has no classifier: it has no documents or is an only child; ask for another node.")
        return int(found[0])

    def _branch_contributions(self, x: csr_array, branch: int) -> Contributions:
        return self._class_contributions(x, branch)

    def search(self, X: Any, k: int = 1, width: int = 10) -> tuple[Nodes, NDArray[np.float32]]:
        """The k likeliest end nodes of each document, by a beam search that keeps the `width` likeliest nodes of each level.

        Returns nodes (-1 where there are fewer) and their log probabilities, documents × k. Only the classifiers of nodes in
        the beam are evaluated.
        """
        check_fitted(self)
        check_width(k, width)
        return _BeamSearch(self, self._validate(X, reset=False), k, width).run()

    # ---- saving -----------------------------------------------------------------------------------------------------

    def _class_arrays(self) -> dict[str, NDArray[Any]]:
        return {"branch_nodes": self.branch_nodes_, "branch_parents": self.branch_parents_, "alone": self._only_children}

    def _restore_classes(self, arrays: dict[str, NDArray[Any]]) -> None:
        nodes, parents, alone = arrays["branch_nodes"], arrays["branch_parents"], arrays["alone"]
        check_branches(nodes, parents, alone, len(self.weights_.class_units), self.taxonomy_.tree)
        self._set_branches(nodes, parents, alone)

    def _set_branches(self, nodes: Nodes, parents: Nodes, alone: Nodes) -> None:
        super()._set_branches(nodes, parents, alone)
        self._set_classes(np.unique(np.concatenate([nodes, alone])))


class _BeamSearch:
    """A beam search level by level, over (document, node) pairs. open: the beam. ended: pairs at their end nodes."""

    def __init__(self, learner: TopDownLinear, X: csr_array, k: int, width: int) -> None:
        self.learner, self.X, self.k, self.width = learner, X, k, width
        n = X.shape[0]
        self.ended: list[Scored] = []
        self.open: Scored = np.arange(n), np.full(n, -1, dtype=np.int64), np.zeros(n)

    def run(self) -> tuple[Nodes, NDArray[np.float32]]:
        while len(self.open[0]):
            parts = [self._expand(int(node)) for node in np.unique(self.open[1])]
            documents, nodes, logs = (np.concatenate([part[i] for part in parts]) for i in range(3))
            self.open = _keep_best(documents, nodes, logs, self.width)
        none = np.zeros(0, dtype=np.int64)
        documents, nodes, logs = (np.concatenate([part[i] for part in self.ended] or [none]) for i in range(3))
        documents, nodes, logs = _keep_best(documents, nodes, logs, self.k)
        rank = np.arange(len(documents)) - np.searchsorted(documents, documents)
        found = np.full((self.X.shape[0], self.k), -1, dtype=np.int64)
        scores = np.full(found.shape, -np.inf, dtype=np.float32)
        found[documents, rank], scores[documents, rank] = nodes, logs
        return found, scores

    def _expand(self, node: int) -> Scored:
        """The children of one node for the documents that are there; documents that stay have ended."""
        learner, is_at_node = self.learner, self.open[1] == node
        documents, logs = self.open[0][is_at_node], self.open[2][is_at_node]
        branches = np.flatnonzero(learner.branch_parents_ == node)
        if not len(branches):
            tree = learner.taxonomy_.tree
            children = tree.roots if node < 0 else tree.children_of(node)
            only = np.intersect1d(children, learner._only_children)
            if not len(only):
                self.ended.append((documents, np.full(len(documents), node), logs))
            return np.repeat(documents, len(only)), np.tile(only, len(documents)), np.repeat(logs, len(only))
        weights = learner.weights_
        margins = (self.X[documents] @ weights.deltas[branches].T).toarray() + weights.bias[branches]
        margins -= margins.max(axis=1, keepdims=True)
        log_p = logs[:, None] + margins - np.log(np.exp(margins).sum(axis=1, keepdims=True))
        stays = learner.branch_nodes_[branches] == node
        if stays.any():
            self.ended.append((documents, np.full(len(documents), node), log_p[:, stays].ravel()))
        children = learner.branch_nodes_[branches][~stays]
        return np.repeat(documents, len(children)), np.tile(children, len(documents)), log_p[:, ~stays].ravel()


def _keep_best(documents: Any, nodes: Any, logs: Any, most: int) -> tuple[Any, Any, Any]:
    """The likeliest nodes of each document, in order."""
    order = np.lexsort((nodes, -logs, documents))
    documents, nodes, logs = documents[order], nodes[order], logs[order]
    best = np.arange(len(documents)) - np.searchsorted(documents, documents) < most
    return documents[best], nodes[best], logs[best]


class TopDownSVM(TopDownLinear, OneVsRestSVM):
    """Top-down support vector machines (system ``td-svm``); parameters as of :class:`OneVsRestSVM`.

    Scores and fitted attributes are those of :class:`TopDownLinear` and :class:`TopDownLearner`.

    >>> from ramify import Taxonomy
    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> fitted = TopDownSVM(taxonomy).fit([[1, 0, 0], [1, 1, 0], [0, 0, 1]], ["a/x", "a/y", "b"])
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "top-down-svm"

    def _fit(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        taxonomy = targets.taxonomy.tree
        setup = check_setup(self, self.loss, self.mode)
        closed = csc_array(expand_to_ancestors(targets.own, taxonomy))
        branches = find_branches(taxonomy, np.diff(closed.indptr) > 0, np.diff(csc_array(targets.own).indptr) > 0)
        nodes, parents = branches.T
        if self.C == "auto":
            best, self.C_scores_ = self._cross_validate_C(X, targets, sample_weight, setup)
            setup = replace(setup, C=best)
        positive, used = _branch_documents(csc_array(targets.own), closed, nodes, parents)

        def train_some(some: Nodes) -> TrainedWeights:
            mine, theirs = csc_array(positive[:, some]), csc_array(used[:, some])
            costs = weigh_classes(mine, setup, taxonomy, nodes[some], sample_weight)
            return train_subsets(X, mine, theirs, parents[some], costs, setup)

        reused = self._find_same_branches(positive, used, setup)
        if reused is None or self._warm_start is None:
            trained = train_some(np.arange(len(nodes)))
        else:
            other, self.reused_ = self._warm_start.learner, (int(np.sum(reused >= 0)), len(reused))
            trained = reuse_or_train(reused, other.weights_, other.class_figures_, train_some)
        self._store(trained, setup, targets)
        self._set_branches(nodes, parents, only_children(np.diff(closed.indptr) > 0, nodes, parents))

    def _find_same_branches(self, positive: csc_array, used: csc_array, setup: Setup) -> Nodes | None:
        """For every branch one of an earlier learner with the same documents, -1 without any; None if none can be reused."""
        warm_start = self._warm_start
        if warm_start is None or not has_same_parameters(self, warm_start, setup.C):
            return None
        other, own = warm_start.learner, csc_array(warm_start.own)
        if not are_independent(other.weights_, other.class_figures_):
            return None
        closed = csc_array(expand_to_ancestors(warm_start.own, other.taxonomy_.tree))
        old = _branch_documents(own, closed, other.branch_nodes_, other.branch_parents_)
        return match_columns([warm_start.renumber(part) for part in old], [positive, used])


def _branch_documents(own: csc_array, closed: csc_array, nodes: Nodes, parents: Nodes) -> tuple[csc_array, csc_array]:
    """Documents × branches: the positive documents of each branch, and its training documents."""
    everywhere = csc_array((np.diff(csr_array(own).indptr) > 0)[:, None])
    parts, n = (closed, own, everywhere), closed.shape[1]
    offsets = np.concatenate([[0], *[p.indptr[1:] + sum(q.nnz for q in parts[:k]) for k, p in enumerate(parts)]])
    rows = np.concatenate([p.indices for p in parts])
    stacked = csc_array((np.ones(len(rows), dtype=bool), rows, offsets), shape=(closed.shape[0], 2 * n + 1))
    positive = csc_array(stacked[:, np.where(nodes == parents, n + nodes, nodes)])
    return positive, csc_array(stacked[:, np.where(parents < 0, 2 * n, parents)])
