"""The contract of all learners: ``fit(X, Y)``, then scores over every node of the taxonomy.

A subclass implements `_fit`, `_score` (scores of a block of rows), `to_probabilities`, `contributions` and its state. This
class checks the input, cuts rows into blocks, runs the blocks in parallel, and returns predictions in the form of the labels.
The scores of a document never depend on the batch that it came in. What only some learners can do is declared here with a
default, so that callers need not ask which learner they have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_sample_weight

from ramify.calibration import LogPotentials
from ramify.errors import InputError
from ramify.features.base import check_documents, check_fitted
from ramify.learners.path_probabilities import MIN_PROBABILITY
from ramify.learners.targets import Targets, read_targets
from ramify.learners.warm_start import WarmStart
from ramify.parallel import SerialExecutor, choose_executor, count_workers, row_blocks, stage
from ramify.persistence import ArrayFile
from ramify.taxonomy import Taxonomy, expand_to_ancestors

BLOCK_BYTES = 1 << 24  # of scores and what is computed from them: small enough to stay in the cache

Floats = NDArray[np.float64]
Scores = NDArray[np.float32]
Contributions = tuple[NDArray[np.int64], Floats, float]  # features of a document, what each adds to a score, and the bias
State = tuple[dict[str, Any], dict[str, NDArray[Any]]]  # plain values, and arrays
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a node was chosen at one step of its path: its lead over the runner-up (or over 0), feature by feature.

    score: the lead. features, added: of the document, and what each adds to the lead. prior: the part that no feature explains.
    rival: the runner-up, which is the parent where a document could have stayed there; None for a binary classifier and where
    there was no choice. remark: a note, such as why there was no choice.
    """

    score: float
    features: NDArray[np.int64]
    added: Floats
    prior: float
    rival: int | None = None
    remark: str = ""

    @classmethod
    def none(cls, remark: str) -> Evidence:
        """A step without a choice."""
        return cls(0.0, np.zeros(0, dtype=np.int64), np.zeros(0), 0.0, None, remark)

    @classmethod
    def of(cls, contributions: Contributions, remark: str = "") -> Evidence:
        """The score of a binary classifier, feature by feature.

        >>> Evidence.of((np.array([3, 7]), np.array([0.5, 1.0]), -1.0)).score
        0.5
        """
        features, added, prior = contributions
        return cls(float(added.sum() + prior), features, added, prior, None, remark)

    @classmethod
    def against(cls, rival: int, of_node: Contributions, of_rival: Contributions) -> Evidence:
        """The lead of a node over a rival for the same document."""
        added, prior = of_node[1] - of_rival[1], of_node[2] - of_rival[2]
        return cls(float(added.sum() + prior), of_node[0], added, prior, rival)


class Learner(ClassifierMixin, BaseEstimator, ABC):
    """Base class of all learners.

    Labels are a matrix over the taxonomy's nodes, one name per document, or a list of names per document. Without a taxonomy,
    class values form a flat forest, and the learner behaves like a scikit-learn classifier.

    ``taxonomy_``, ``classes_``: the nodes, and their names or the class values. ``class_nodes_``: the nodes that have a class
    of their own, where a learner has such. ``held_out_``: training documents, and scores by models that were not trained on
    them. ``reused_``: after `refit_from`, how many of how many classifiers were reused; ``warm_started_``: whether the others
    started from the earlier solution. ``n_rounds_``: boosting rounds, None for other learners.
    """

    kind: ClassVar[str]  # its name in model files
    supports_multi_label: ClassVar[bool] = True  # whether a document may have no label, or more than one
    supports_shards: ClassVar[bool] = False  # whether weights can be saved in shards
    uses_main_parents: ClassVar[bool] = False  # whether it learns over the main-parent tree of a DAG, ``taxonomy_.tree``
    taxonomy: Taxonomy | None
    n_jobs: int | None
    calibration: str | None = None  # of the classifiers of nodes, where a learner calibrates these by itself
    keeps_warm_start: bool = False  # whether `fit` keeps what a later `refit_from` can start from
    keeps_held_out: bool = False  # whether `fit` sets `held_out_` where that takes no further training
    block_ends: Sequence[int] | None = None  # where the columns of blocks of features end that are normalized on their own
    class_nodes_: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    held_out_: tuple[NDArray[np.int64], Scores] | None = None
    reused_: tuple[int, int] | None = None
    warm_started_: bool = False
    n_rounds_: int | None = None
    _warm_start: WarmStart | None = None

    # ---- to be implemented --------------------------------------------------------------------------------------------

    @abstractmethod
    def _fit(self, X: csr_array, targets: Targets, sample_weight: Floats) -> None:
        """Train on checked documents and labels."""

    @abstractmethod
    def _score(self, X: csr_array) -> Scores:
        """Scores of a block of rows, documents × nodes, filled into what :meth:`_no_scores` gives."""

    @abstractmethod
    def to_probabilities(self, scores: Scores) -> Scores:
        """Probabilities over all nodes, from scores over all nodes."""

    @abstractmethod
    def contributions(self, x: csr_array, node: int) -> Contributions:
        """Features of one document, what each adds to the score of a node, and the bias."""

    @abstractmethod
    def evidence(self, x: csr_array, scores: NDArray[Any], node: int, end: int) -> Evidence:
        """Why `node` was chosen on the path from its root to `end`. scores: of the document, one per node."""

    @abstractmethod
    def top_terms(self, node: int | str, n: int = 10, feature_names: Any = None) -> list[tuple[Any, float]]:
        """The features that speak most for a node, with their weights, largest first; by number, or by name if given."""

    @abstractmethod
    def state(self) -> State:
        """Plain values and arrays from which `from_state` makes the same learner."""

    @classmethod
    @abstractmethod
    def from_state(cls, taxonomy: Taxonomy, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make a learner from its state, after checking shapes, types and ranges."""

    # ---- nodes without documents ----------------------------------------------------------------------------------------

    @property
    def is_empty_(self) -> NDArray[np.bool_]:
        """Whether each node is empty: no training document is at or below it. Its score is -inf, its probability 0."""
        one_row = csr_array(
            (np.ones(len(self.class_nodes_), dtype=bool), self.class_nodes_, [0, len(self.class_nodes_)]),
            shape=(1, len(self.taxonomy_)),
        )
        empty = np.ones(len(self.taxonomy_), dtype=bool)
        empty[expand_to_ancestors(one_row, self.taxonomy_).indices] = False
        return empty

    def _no_scores(self, n_documents: int) -> Scores:
        """Scores before any classifier is asked: NaN, and -inf for empty nodes."""
        S = np.full((n_documents, len(self.taxonomy_)), np.nan, dtype=np.float32)
        S[:, self.is_empty_] = -np.inf
        return S

    # ---- what only some learners have ---------------------------------------------------------------------------------

    @property
    def is_additive(self) -> bool:
        """Whether contributions add up to scores."""
        return True

    @property
    def scores_candidates_only(self) -> bool:
        """Whether only the likeliest classes of a document are scored; all others have NaN."""
        return False

    @property
    def n_warm_start_documents(self) -> int:
        """How many training documents the kept dual variables refer to."""
        return 0

    @property
    def shard_bytes(self) -> int:
        """The size of the weights that are saved in shards."""
        return 0

    def shard_files(self) -> list[ArrayFile]:
        """The files of a model in shards; none by default."""
        return []

    def selected_params(self) -> dict[str, Any]:
        """Parameters that training selected by itself, such as C."""
        return {}

    def training_facts(self) -> dict[str, Any]:
        """Figures on the training, by name, for people to read."""
        return {}

    def mixture_weights(self, node: str | int) -> list[tuple[str, float]]:
        """The mixture weights of a class, where its estimate is a mixture: names of the parts, and weights."""
        return []

    def with_used_features(self) -> tuple[NDArray[np.int64], Learner] | None:
        """The columns that the learner uses, and the same learner over these columns alone; None where it uses all."""
        return None

    def predict_sets(self, X: Any) -> csr_array | None:
        """The nodes with positive scores and positive ancestors, where they are found without scoring all nodes; or None."""
        return None

    def map_positive_scores(self, X: Any, work: Callable[[Scores], Result]) -> Iterator[tuple[slice, Result]]:
        """As :meth:`map_scores`, where nodes below one with a score of 0 or less may be left out, as NaN."""
        return self.map_scores(X, work)

    # ---- what decision rules and calibrations take --------------------------------------------------------------------

    def convert_scores(self, scores: Scores, quantity: str) -> Any:
        """Scores as a decision rule or a calibration takes them.

        quantity: "scores" (label scores), "memberships", "conditionals", "margins" or "log_potentials".
        """
        convert: dict[str, Callable[[Scores], Any]] = {
            "scores": self.label_scores,
            "memberships": self.memberships,
            "conditionals": self.conditionals,
            "margins": self.margins,
            "log_potentials": self.log_potentials,
        }
        return convert[quantity](scores)

    def label_scores(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """How well each node fits as a most specific label, comparable across all nodes; by default the scores."""
        return scores

    def memberships(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """P(node), NaN where a node has no classifier, -inf where it is empty; a child's may exceed its parent's."""
        return np.where(scores == -np.inf, scores, self.to_probabilities(scores))

    def tree_probabilities(self, scores: Scores) -> Scores:
        """P(node) over the main-parent tree of a DAG, where a learner works over that tree; otherwise all probabilities."""
        return self.to_probabilities(scores)

    def conditionals(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """P(node | parent) over all nodes, in a DAG of the main parent; 0 where the node is empty or the parent impossible."""
        P, parent = self.tree_probabilities(scores).astype(np.float64), self.taxonomy_.tree.parent
        inner = np.flatnonzero(parent >= 0)
        above = P[:, parent[inner]]
        conditional = P.copy()
        conditional[:, inner] = np.divide(P[:, inner], above, out=np.zeros_like(above), where=above > 0).clip(0, 1)
        return conditional

    def margins(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """Log-odds of each node given its parent: positive for yes, NaN where there is no classifier, -inf where empty."""
        odds = logit(self.conditionals(scores).clip(MIN_PROBABILITY, 1 - MIN_PROBABILITY))
        return np.where(scores == -np.inf, -np.inf, odds)

    def log_potentials(self, scores: Scores) -> LogPotentials:
        """Unnormalized log-probabilities that a document ends at a node, or goes on to it."""
        return LogPotentials(self.label_scores(scores))

    def explaining_node(self, scores: NDArray[Any], node: int) -> int | None:
        """The node whose contributions explain a node's score; None where there are none."""
        return node if np.isfinite(scores[node]) else None

    # ---- training -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on documents × features and labels."""
        with self._restore_on_error():
            count_workers(self.n_jobs)  # refuses what is no number of threads
            X = self._validate(X, reset=True)
            targets = self._read_targets(y, X.shape[0])
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            self.taxonomy_, self.form_ = targets.taxonomy, targets.form
            self.classes_ = np.asarray(targets.taxonomy.names) if targets.classes is None else targets.classes
            self.reused_, self.warm_started_ = None, False
            self._fit(X, targets, weights)
        return self

    def refit_from(self, X: Any, y: Any, warm_start: WarmStart) -> Self:
        """Train as :meth:`fit` does, and reuse what an earlier learner with the same parameters has learned."""
        self._warm_start = warm_start
        try:
            return self.fit(X, y)
        finally:
            del self._warm_start

    def _model_params(self) -> dict[str, Any]:
        """The parameters that determine the model, as plain values."""
        given = {name: value for name, value in self.get_params(deep=False).items() if name not in ("taxonomy", "n_jobs")}
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}

    @contextmanager
    def _restore_on_error(self) -> Iterator[None]:
        """Where training fails, the learner is as it was."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _read_targets(self, y: Any, n_documents: int) -> Targets:
        return read_targets(y, self.taxonomy, n_documents)

    def _validate(self, X: Any, reset: bool) -> csr_array:
        """Documents, sparse or dense, as CSR float32 with sorted columns; what was given is not changed."""
        X = check_documents(self, X, reset)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X

    # ---- predicting ---------------------------------------------------------------------------------------------------

    def scores(self, X: Any) -> Scores:
        """Scores over all nodes, documents × nodes; NaN where a node has no classifier, -inf where it is empty."""
        return self._stack_blocks(X, lambda S: S, np.float32)

    def decision_function(self, X: Any) -> Scores:
        """Scores over all nodes; with two plain classes and no taxonomy, one score for the second against the first."""
        S = self.scores(X)
        return S[:, 1] - S[:, 0] if self.form_ == "classes" and len(self.classes_) == 2 else S

    def predict_proba(self, X: Any) -> Scores:
        """Probabilities over all nodes; a parent's is never below a child's."""
        return self._stack_blocks(X, self.to_probabilities, np.float32)

    def predict(self, X: Any) -> Any:
        """The best-scoring node of each document, in the form of the training labels."""
        best = self._predict_nodes(X)
        if self.form_ == "classes":
            return self.classes_[best]
        ones, ends = np.ones(len(best), dtype=bool), np.arange(len(best) + 1)
        own = csr_array((ones, best, ends), shape=(len(best), len(self.taxonomy_)))
        if self.form_ == "matrix":
            return expand_to_ancestors(own, self.taxonomy_)
        names = self.taxonomy_.decode(own)
        return names if self.form_ == "lists" else np.asarray([name for row in names for name in row])

    def _predict_nodes(self, X: Any) -> NDArray[np.int64]:
        return self._stack_blocks(X, self._best_nodes, np.int64)

    def _best_nodes(self, scores: Scores) -> NDArray[np.int64]:
        """The node that :meth:`predict` chooses."""
        return np.asarray(np.nanargmax(scores, axis=1))

    def top_k(self, X: Any, k: int = 5) -> tuple[NDArray[np.int64], Scores]:
        """The k best-scoring nodes of each document and their scores, best first; -1 where there are fewer.

        Exact; scores of all nodes exist for one block of documents at a time.
        """
        if not isinstance(k, (int, np.integer)) or k < 1:
            raise InputError(f"k is {k!r}; give a whole number of 1 or more.")
        parts = [best for _, best in self.map_scores(X, lambda S: _k_best(S, k))]
        parts = parts or [(np.empty((0, k), dtype=np.int64), np.empty((0, k), dtype=np.float32))]
        return np.concatenate([nodes for nodes, _ in parts]), np.concatenate([scores for _, scores in parts])

    def map_scores(self, X: Any, work: Callable[[Scores], Result]) -> Iterator[tuple[slice, Result]]:
        """Apply `work` to the scores of one block of rows after the other; documents × nodes never exists as a whole."""
        return self._map_blocks(X, lambda block: work(self._score(block)))

    def _map_blocks(
        self, X: Any, work: Callable[[csr_array], Result], bytes_per_row: int | None = None
    ) -> Iterator[tuple[slice, Result]]:
        """Apply `work` to one block of rows after the other, none with more scores than BLOCK_BYTES."""
        check_fitted(self)
        X = self._validate(X, reset=False)
        blocks = row_blocks(X.shape[0], bytes_per_row or 16 * len(self.taxonomy_), BLOCK_BYTES)
        with stage("scoring", X.shape[0]) as step:
            executor = choose_executor(self.n_jobs) if len(blocks) > 1 else SerialExecutor()
            results = executor.map(lambda rows: work(X[rows] if len(blocks) > 1 else X), blocks)
            for rows, result in zip(blocks, results, strict=True):
                yield rows, result
                step.advance(rows.stop - rows.start)

    def _stack_blocks(self, X: Any, work: Callable[[Scores], NDArray[Any]], dtype: Any) -> NDArray[Any]:
        parts = [part for _, part in self.map_scores(X, work)]
        parts = parts or [work(np.empty((0, len(self.taxonomy_)), dtype=np.float32))]
        return np.concatenate(parts).astype(dtype, copy=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _k_best(scores: Scores, k: int) -> tuple[NDArray[np.int64], Scores]:
    """The k highest scores of each row; equal ones in node order."""
    S = np.where(np.isnan(scores), -np.inf, scores)
    most = min(k, S.shape[1])
    lowest = -np.partition(-S, most - 1, axis=1)[:, [most - 1]] if most < S.shape[1] else np.full((len(S), 1), -np.inf)
    nodes, best = np.full((len(S), k), -1, dtype=np.int64), np.full((len(S), k), -np.inf, dtype=np.float32)
    for row, (line, bound) in enumerate(zip(S, lowest, strict=True)):
        found = np.flatnonzero((line >= bound) & (line > -np.inf))
        found = found[np.argsort(-line[found], kind="stable")[:k]]
        nodes[row, : len(found)], best[row, : len(found)] = found, line[found]
    return nodes, best


class PartialFitLearner(Learner):
    """A learner that can be trained further on new documents."""

    @abstractmethod
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, taxonomy: Taxonomy | None = None
    ) -> Self:
        """Train further on more documents.

        classes: class values that may come later, where there is no taxonomy. taxonomy: the one so far with nodes added, where
        labels need them.
        """

    @abstractmethod
    def widen(self, columns: NDArray[np.int64], n_features: int) -> None:
        """Make room for new features: each old one moves to its entry of `columns`."""


class MulticlassLearner(Learner):
    """A learner with one score per class, the highest of which wins. The classes are the nodes with documents of their own."""

    _nodes_above: csr_array  # classes × nodes: one where a class is at or below a node

    @property
    def is_empty_(self) -> NDArray[np.bool_]:
        """Whether each node had no training document at or below it."""
        empty = np.ones(len(self.taxonomy_), dtype=bool)
        empty[self._nodes_above.indices] = False
        return empty

    def explaining_node(self, scores: NDArray[Any], node: int) -> int | None:
        """The class whose score is a node's: the node itself, or else the best class below it; None where there is none."""
        return node if node in self.class_nodes_ else best_of(scores, self._classes_under(node))

    def evidence(self, x: csr_array, scores: NDArray[Any], node: int, end: int) -> Evidence:
        """The lead of the class at the end of the path over the best class that leaves the path at a node.

        Those classes are at or below the node's parent, and not at or below the node.
        """
        chosen = self.explaining_node(scores, end)
        if chosen is None:
            return Evidence.none("no training document was here")
        path = self.taxonomy_.nodes_to(end)
        place = path.index(node)
        around = self.class_nodes_ if place == 0 else self._classes_under(path[place - 1])
        rival = best_of(scores, np.setdiff1d(around, self._classes_under(node)))
        if rival is None:
            return Evidence.none("the only way on")
        return Evidence.against(rival, self.contributions(x, chosen), self.contributions(x, rival))

    def _classes_under(self, node: int) -> NDArray[np.int64]:
        entries = np.flatnonzero(self._nodes_above.indices == node)
        return self.class_nodes_[np.unique(np.searchsorted(self._nodes_above.indptr, entries, side="right") - 1)]


def is_fitted(learner: Learner) -> bool:
    """Whether a learner has been trained."""
    return "taxonomy_" in vars(learner)


def best_of(scores: Any, nodes: NDArray[np.int64]) -> int | None:
    """The node with the highest score, the first of equals; None where no node has one.

    >>> best_of(np.array([1.0, np.nan, 3.0]), np.array([0, 1])), best_of(np.array([np.nan]), np.array([0]))
    (0, None)
    """
    known = nodes[np.isfinite(scores[nodes])]
    return int(known[np.argmax(scores[known])]) if len(known) else None


def find_node(taxonomy: Taxonomy, node: int | str) -> int:
    """The index of a node that is given by index or by name."""
    index = taxonomy.index(node) if isinstance(node, str) else int(node)
    if not 0 <= index < len(taxonomy):
        raise InputError(f"node {index} is not one of the {len(taxonomy)} of the taxonomy; count from 0.")
    return index


def top_features(weights: Floats, n: int, feature_names: Any = None) -> list[tuple[Any, float]]:
    """The n features with the largest weights above 0, largest first.

    >>> top_features(np.array([0.5, -1.0, 2.0]), 3, ["apple", "bread", "cake"])
    [('cake', 2.0), ('apple', 0.5)]
    """
    names = np.arange(len(weights)) if feature_names is None else np.asarray(feature_names)
    if len(names) != len(weights):
        raise InputError(f"there are {len(names)} feature names for {len(weights)} features; give one per feature.")
    best = [f for f in np.argsort(-weights, kind="stable")[: max(0, n)] if weights[f] > 0]
    return [(names[f : f + 1].tolist()[0], float(weights[f])) for f in best]
