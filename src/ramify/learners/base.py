"""What speaks for a node at one step on the way down to it, feature by feature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ramify.calibration import LogPotentials
from ramify.errors import InputError
from ramify.features.vectors import check_documents
from ramify.learners.path_probabilities import SURE
from ramify.learners.targets import Targets, read_targets
from ramify.learners.warm_start import WarmStart
from ramify.parallel import SerialExecutor, choose_executor, row_blocks, stage
from ramify.taxonomy import Taxonomy, expand_to_ancestors

Floats = NDArray[np.float64]
Contributions = tuple[NDArray[np.int64], Floats, float]  # features of a document, what each adds, and what is there without


@dataclass(frozen=True, slots=True)
class Evidence:
    """How far a node is ahead of its best rival, or of 0, and what each feature of the document adds to that.

    score: by how much it is ahead. features, added: of the document, and what each adds. prior: what no feature has a say in.
    rival: the node that comes next, which is the parent where a document might have stayed there; None where a classifier says
    yes or no by itself, or nothing is asked. remark: what else there is to say, such as why nothing is asked.
    """

    score: float
    features: NDArray[np.int64]
    added: Floats
    prior: float
    rival: int | None = None
    remark: str = ""


def no_question(remark: str) -> Evidence:
    """A step at which there is nothing to decide."""
    return Evidence(0.0, np.zeros(0, dtype=np.int64), np.zeros(0), 0.0, None, remark)


def answer_of(contributions: Contributions, remark: str = "") -> Evidence:
    """The answer of a node's own classifier.

    >>> answer_of((np.array([3, 7]), np.array([0.5, 1.0]), -1.0)).score
    0.5
    """
    features, added, prior = contributions
    return Evidence(float(added.sum() + prior), features, added, prior, None, remark)


def lead_over(rival: int, of_node: Contributions, of_rival: Contributions) -> Evidence:
    """By how much one of two answers to the same document is ahead of the other."""
    features, added, prior = of_node[0], of_node[1] - of_rival[1], of_node[2] - of_rival[2]
    return Evidence(float(added.sum() + prior), features, added, prior, rival)


def classes_under(nodes_above: Any, node: int) -> NDArray[np.int64]:
    """The numbers of the classes at or below a node. nodes_above: classes × nodes, one where a class is at or below a node."""
    places = np.flatnonzero(nodes_above.indices == node)
    return np.unique(np.searchsorted(nodes_above.indptr, places, side="right") - 1)


def best_of(scores: Any, nodes: NDArray[np.int64]) -> int | None:
    """The node with the highest score, the first of equals; None where no node has one.

    >>> best_of(np.array([1.0, np.nan, 3.0]), np.array([0, 1])), best_of(np.array([np.nan]), np.array([0]))
    (0, None)
    """
    known = nodes[~np.isnan(scores[nodes])]
    return int(known[np.argmax(scores[known])]) if len(known) else None


# --------------------------------------------------------------------------------------------------------------
# What a learner is: ``fit(X, Y)``, then scores for every node of the taxonomy, row by row the same in any batch.
#
# A learner says in `_learn` how it learns, in `_score` how it scores a block of rows, and in `to_probabilities` what scores
# mean; this class does the rest: it checks what comes in, cuts rows into blocks, runs them where it is told, and gives
# predictions in the form in which the labels came.


BLOCK_BYTES = 1 << 24  # of scores and what is made of them, few enough to stay near the processor

Scores = NDArray[np.float32]
Result = TypeVar("Result")


class Learner(ClassifierMixin, BaseEstimator, ABC):
    """The common part of all learners.

    Labels come as a matrix over the taxonomy's nodes, one name a document, or a list of names a document. Without a
    taxonomy, plain class values are taken as a forest of single nodes, and the learner behaves as scikit-learn's
    classifiers do.
    """

    kind: ClassVar[str]
    takes_several: ClassVar[bool] = True  # whether documents may have several labels, or none
    taxonomy: Taxonomy | None
    n_jobs: int | None
    held_out_: tuple[NDArray[np.int64], Scores] | None = (
        None  # training documents with scores by learners that had not seen them
    )
    keeps_warm_start: bool = False  # whether to keep what a later training can start from
    reused_: tuple[int, int] | None = None  # classifiers reused from an earlier learner, and classifiers in all
    warm_started_: bool = False  # whether training started from the solution of an earlier learner
    _warm_start: WarmStart | None = None

    # ---- what each learner says -------------------------------------------------------------------------------------

    @abstractmethod
    def _learn(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        """Learn from checked documents and labels."""

    @abstractmethod
    def _score(self, X: csr_array) -> Scores:
        """Scores of a block of rows, documents × nodes; NaN where a node has no classifier."""

    @abstractmethod
    def to_probabilities(self, scores: Scores) -> Scores:
        """Probabilities over all nodes that belong to scores over all nodes."""

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays from which `from_state` makes the same learner."""

    # ---- what explanations take -------------------------------------------------------------------------------------

    @abstractmethod
    def contributions(self, x: csr_array, node: int) -> Contributions:
        """Features of one document, what each adds to the score of a node, and what is there without them."""

    @abstractmethod
    def evidence(self, x: csr_array, scores: NDArray[Any], node: int, end: int) -> Evidence:
        """What speaks for a node, at this step on the way from the top down to `end`. scores: of the document, one a node."""

    def spokesman(self, scores: NDArray[Any], node: int) -> int | None:
        """The node whose contributions speak for a node; None where none do."""
        return None if np.isnan(scores[node]) else node

    @property
    def is_additive(self) -> bool:
        """Whether contributions add up to scores."""
        return True

    # ---- what decision rules take -----------------------------------------------------------------------------------

    def label_scores(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """How well each node fits as a most specific label, comparable across all nodes; the scores, where these are that."""
        return scores

    def memberships(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """P(node) over all nodes, NaN where a node has no classifier; unlike probabilities they may contradict the tree."""
        return self.to_probabilities(scores)

    def conditionals(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """P(node | parent) over all nodes of a tree; 0 where the parent is impossible."""
        P = self.to_probabilities(scores).astype(np.float64)
        self.taxonomy_.require_tree("the chance of a node given its parent")
        inner = np.flatnonzero(self.taxonomy_.parent >= 0)
        above = P[:, self.taxonomy_.parent[inner]]
        shares = P.copy()
        shares[:, inner] = np.divide(P[:, inner], above, out=np.zeros_like(above), where=above > 0).clip(0, 1)
        return shares

    def margins(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """How clearly each node is answered with yes, once its parent is: 0 in the middle, NaN where nobody answers."""
        return np.asarray(logit(self.conditionals(scores).clip(SURE, 1 - SURE)))

    # ---- what calibration takes -------------------------------------------------------------------------------------

    def log_potentials(self, scores: Scores) -> LogPotentials:
        """How likely documents are to end at nodes, or to go on to them, in logarithms up to a factor."""
        return LogPotentials(self.label_scores(scores))

    # ---- what all learners share ------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from documents × features and labels."""
        with self._restore_on_error():
            X = self._check(X, reset=True)
            targets = self._read_targets(y, X.shape[0])
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            self.taxonomy_, self.form_ = targets.taxonomy, targets.form
            self.classes_ = np.asarray(targets.taxonomy.names) if targets.classes is None else targets.classes
            self.reused_, self.warm_started_ = None, False
            self._learn(X, targets, weights)
        return self

    def refit_from(self, X: Any, y: Any, warm_start: WarmStart) -> Self:
        """Fit, and reuse the classifiers of an earlier learner with the same parameters whose documents did not change.

        ``reused_``: how many were reused, of how many. ``warm_started_``: whether the others started from its dual variables.
        """
        self._warm_start = warm_start
        try:
            return self.fit(X, y)
        finally:
            del self._warm_start

    @contextmanager
    def _restore_on_error(self) -> Iterator[None]:
        """Where learning fails, everything is as it was: an earlier model stays whole."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def scores(self, X: Any) -> Scores:
        """Scores over all nodes, documents × nodes; NaN where a node has no classifier."""
        return self._stacked(X, lambda S: S, np.float32)

    def decision_function(self, X: Any) -> Scores:
        """Scores over all nodes; with two plain classes and no taxonomy, one score for the second against the first."""
        S = self.scores(X)
        return S[:, 1] - S[:, 0] if self.form_ == "classes" and len(self.classes_) == 2 else S

    def predict_proba(self, X: Any) -> Scores:
        """Probabilities over all nodes; a parent's is never below a child's."""
        return self._stacked(X, self.to_probabilities, np.float32)

    def predict(self, X: Any) -> Any:
        """The best-scoring node of each document, in the form in which the labels came."""
        best = self._find_best(X)
        if self.form_ == "classes":
            return self.classes_[best]
        ones, ends = np.ones(len(best), dtype=bool), np.arange(len(best) + 1)
        own = csr_array((ones, best, ends), shape=(len(best), len(self.taxonomy_)))
        if self.form_ == "matrix":
            return expand_to_ancestors(own, self.taxonomy_)
        names = self.taxonomy_.decode(own)
        return names if self.form_ == "lists" else np.asarray([name for row in names for name in row])

    def _find_best(self, X: Any) -> NDArray[np.int64]:
        return self._stacked(X, self._best, np.int64)

    def top_k(self, X: Any, k: int = 5) -> tuple[NDArray[np.int64], Scores]:
        """The k best-scoring nodes of each document and their scores, best first; -1 where there are fewer.

        Exact; scores of all nodes exist for a block of documents at a time only.
        """
        if not isinstance(k, (int, np.integer)) or k < 1:
            raise InputError(f"k is {k!r}; give a whole number of 1 or more.")
        parts = [best for _, best in self.map_scores(X, lambda S: _k_best(S, k))]
        parts = parts or [(np.empty((0, k), dtype=np.int64), np.empty((0, k), dtype=np.float32))]
        return np.concatenate([nodes for nodes, _ in parts]), np.concatenate([scores for _, scores in parts])

    def map_scores(self, X: Any, work: Callable[[Scores], Result]) -> Iterator[tuple[slice, Result]]:
        """Apply `work` to the scores of one block of rows after the other; documents × nodes is never held whole."""
        return self._map_blocks(X, lambda block: work(self._score(block)))

    def _map_blocks(
        self, X: Any, work: Callable[[csr_array], Result], bytes_a_row: int | None = None
    ) -> Iterator[tuple[slice, Result]]:
        """Apply `work` to one block of rows after the other, none with more scores than fit."""
        check_is_fitted(self, "taxonomy_")
        X = self._check(X, reset=False)
        blocks = row_blocks(X.shape[0], bytes_a_row or 16 * len(self.taxonomy_), BLOCK_BYTES)
        with stage("scoring", X.shape[0]) as step:
            executor = choose_executor(self.n_jobs) if len(blocks) > 1 else SerialExecutor()
            results = executor.map(lambda rows: work(X[rows] if len(blocks) > 1 else X), blocks)
            for rows, result in zip(blocks, results, strict=True):
                yield rows, result
                step.advance(rows.stop - rows.start)

    def _read_targets(self, y: Any, n_documents: int) -> Targets:
        return read_targets(y, self.taxonomy, n_documents)

    def _best(self, scores: Scores) -> NDArray[np.int64]:
        """The node that :meth:`predict` takes."""
        return np.asarray(np.nanargmax(scores, axis=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check(self, X: Any, reset: bool) -> csr_array:
        """Sparse and dense documents by one way: CSR float32 with sorted columns; what was given stays as it is."""
        X = check_documents(self, X, reset)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X

    def _stacked(self, X: Any, work: Callable[[Scores], NDArray[Any]], dtype: Any) -> NDArray[Any]:
        parts = [part for _, part in self.map_scores(X, work)]
        parts = parts or [work(np.empty((0, len(self.taxonomy_)), dtype=np.float32))]
        return np.concatenate(parts).astype(dtype, copy=False)


def _k_best(scores: Scores, k: int) -> tuple[NDArray[np.int64], Scores]:
    """Of each row the k highest scores; equal ones in node order."""
    S = np.where(np.isnan(scores), -np.inf, scores)
    kept = min(k, S.shape[1])
    lowest = -np.partition(-S, kept - 1, axis=1)[:, [kept - 1]] if kept < S.shape[1] else np.full((len(S), 1), -np.inf)
    nodes, best = np.full((len(S), k), -1, dtype=np.int64), np.full((len(S), k), -np.inf, dtype=np.float32)
    for row, (line, bound) in enumerate(zip(S, lowest, strict=True)):
        there = np.flatnonzero((line >= bound) & (line > -np.inf))
        there = there[np.argsort(-line[there], kind="stable")[:k]]
        nodes[row, : len(there)], best[row, : len(there)] = there, line[there]
    return nodes, best


# --------------------------------------------------------------------------------------------------------------
# What learners share whose classes compete: one score each, of which the highest is the best.


class CompetingClasses(Learner):
    """A learner with a score for every node that has documents of its own.

    ``class_nodes_``: these nodes, the classes.
    """

    class_nodes_: NDArray[np.int64]
    _nodes_above: csr_array

    def spokesman(self, scores: NDArray[Any], node: int) -> int | None:
        """The class whose score is a node's: its own, or else the best below it; None where no class is."""
        return node if node in self.class_nodes_ else best_of(scores, self._classes_under(node))

    def evidence(self, x: csr_array, scores: NDArray[Any], node: int, end: int) -> Evidence:
        """What speaks for the class at the end, against the best of those that part from it at a node on the way.

        These lie at or below the node's parent, the one above it on the way, and not at or below the node.
        """
        speaker = self.spokesman(scores, end)
        if speaker is None:
            return no_question("no training document was here")
        way = self.taxonomy_.nodes_to(end)
        place = way.index(node)
        around = self.class_nodes_ if place == 0 else self._classes_under(way[place - 1])
        rival = best_of(scores, np.setdiff1d(around, self._classes_under(node)))
        if rival is None:
            return no_question("the only way on")
        return lead_over(rival, self.contributions(x, speaker), self.contributions(x, rival))

    def _classes_under(self, node: int) -> NDArray[np.int64]:
        return self.class_nodes_[classes_under(self._nodes_above, node)]


# --------------------------------------------------------------------------------------------------------------
# The features that speak most for a node, by number or by name.


def find_node(taxonomy: Taxonomy, node: int | str) -> int:
    """The number of a node that is given by number or by name."""
    place = taxonomy.index(node) if isinstance(node, str) else int(node)
    if not 0 <= place < len(taxonomy):
        raise InputError(f"node {place} is not one of the {len(taxonomy)} of the taxonomy; count from 0.")
    return place


def top_features(weights: NDArray[np.float64], n: int, feature_names: Any = None) -> list[tuple[Any, float]]:
    """The n features with the largest weights above 0, largest first.

    >>> top_features(np.array([0.5, -1.0, 2.0]), 3, ["apple", "bread", "cake"])
    [('cake', 2.0), ('apple', 0.5)]
    """
    names = np.arange(len(weights)) if feature_names is None else np.asarray(feature_names)
    if len(names) != len(weights):
        raise InputError(f"there are {len(names)} feature names for {len(weights)} features; give one a feature.")
    best = [f for f in np.argsort(-weights, kind="stable")[: max(0, n)] if weights[f] > 0]
    return [(names[f : f + 1].tolist()[0], float(weights[f])) for f in best]
