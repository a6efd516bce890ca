"""The base class of naive Bayes: words by class and documents by class. Counts add up, so `partial_fit` is exact."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight

from ramify.errors import InputError, ModelError
from ramify.features.base import check_fitted
from ramify.learners.base import MulticlassLearner, PartialFitLearner, Scores, find_node, is_fitted, top_features
from ramify.learners.targets import Targets, read_further_targets, refuse_single_class
from ramify.parallel import stage
from ramify.persistence import are_indices, are_offsets, is_increasing
from ramify.taxonomy import Taxonomy, ancestor_matrix

Floats = NDArray[np.float64]
SMALLEST = 1e-150  # count above 0 of a model; float32 values and weights of documents give larger ones


@dataclass(eq=False, repr=False)
class WordCountLearner(MulticlassLearner, PartialFitLearner):
    """A learner whose model is word counts.

    ``class_nodes_``: the nodes that have documents of their own, in node order; the classes. ``counts_``: words × classes,
    sparse; how often each word occurs in the documents of each class. ``class_weight_``: documents by class. ``log_prior_``: ln
    P(class).
    """

    taxonomy: Taxonomy | None = None
    _: KW_ONLY
    fit_prior: bool = True
    n_jobs: int | None = None

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense."""

    @abstractmethod
    def _prepare(self) -> None:
        """Compute from the counts what scoring needs."""

    # ---- training ---------------------------------------------------------------------------------------------------

    def _fit(self, X: csr_array, targets: Targets, sample_weight: Floats) -> None:
        self._check_all(X)
        self._set_counts(*count_words(X, targets.own, sample_weight), targets.taxonomy)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, taxonomy: Taxonomy | None = None
    ) -> Self:
        """Train further on more documents; equal to one `fit` on all of them. Parameters as of :class:`PartialFitLearner`."""
        is_first = not is_fitted(self)
        with self._restore_on_error():
            X = self._validate(X, reset=is_first)
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            self._check_all(X)
            known = None if is_first else self.taxonomy_
            given = taxonomy if taxonomy is not None else self.taxonomy if is_first else None
            plain = None if is_first or self.form_ != "classes" else self.classes_
            targets = read_further_targets(y, X.shape[0], known, given, plain, classes)
            self._partial_fit(X, targets, weights, is_first)
            self.taxonomy_, self.form_ = targets.taxonomy, targets.form if is_first else self.form_
            self.classes_ = np.asarray(targets.taxonomy.names) if targets.classes is None else targets.classes
        return self

    def _partial_fit(self, X: csr_array, targets: Targets, sample_weight: Floats, is_first: bool) -> None:
        nodes, counts, weight = count_words(X, targets.own, sample_weight)
        if is_first and targets.classes is not None:  # classes may still be without documents
            every = np.arange(len(targets.taxonomy))
            counts, weight, nodes = place_columns(counts, nodes, every), place(weight, nodes, every), every
        elif not is_first:
            known = translate_nodes(self.class_nodes_, self.taxonomy_, targets.taxonomy)
            every = np.union1d(known, nodes)
            counts = csr_array(place_columns(self.counts_, known, every) + place_columns(counts, nodes, every))
            weight, nodes = place(self.class_weight_, known, every) + place(weight, nodes, every), every
        refuse_single_class(nodes, targets.taxonomy)
        self._set_counts(nodes, counts, weight, targets.taxonomy)

    def widen(self, columns: NDArray[np.int64], n_features: int) -> None:
        """Make room for new words: each old one moves to its entry of `columns`."""
        counts = self.counts_.tocoo()
        moved = csr_array((counts.data, (columns[counts.row], counts.col)), shape=(n_features, counts.shape[1]))
        self.n_features_in_ = n_features
        self._set_counts(self.class_nodes_, moved, self.class_weight_, self.taxonomy_)

    def _check_all(self, X: csr_array) -> None:
        if X.data.size and X.data.min() < 0:
            raise InputError("Negative values in data passed to naive Bayes; it takes counts or weights of 0 and more.")
        if not isinstance(self.fit_prior, (bool, np.bool_)):
            raise InputError(f"fit_prior is {self.fit_prior!r}; give true or false.")
        self._check_parameters()

    def _set_counts(self, nodes: NDArray[np.int64], counts: csr_array, weight: Floats, taxonomy: Taxonomy) -> None:
        counts.sort_indices()
        self.class_nodes_, self.counts_, self.class_weight_, self.taxonomy_ = nodes, counts, weight, taxonomy
        self.log_prior_ = log_priors(weight, self.fit_prior)
        self._nodes_above = ancestor_matrix(taxonomy)[nodes].astype(np.float64)
        self._prepare()

    # ---- scoring ----------------------------------------------------------------------------------------------------

    def to_probabilities(self, scores: Scores) -> Scores:
        """Add up the posteriors of the classes at and below each node."""
        posterior = np.exp(scores[:, self.class_nodes_].astype(np.float64))
        posterior /= posterior.sum(axis=1, keepdims=True)
        return np.asarray(posterior @ self._nodes_above, dtype=np.float32).clip(0, 1)

    @available_if(lambda self: self.taxonomy is not None)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Scores:
        """Scores over all nodes; only with a taxonomy, since scikit-learn's naive Bayes has none either."""
        return super().decision_function(X)

    def top_terms(self, node: int | str, n: int = 10, feature_names: Any = None) -> list[tuple[Any, float]]:
        """The words that speak most for a node, largest first, by number or by name.

        The weight of a word is its contribution to the Kullback-Leibler divergence between the words of the node and those of
        all documents, in nats per thousand words.

        >>> from ramify.learners import MultinomialNaiveBayes
        >>> fitted = MultinomialNaiveBayes().fit([[3, 0, 1], [0, 3, 1]], ["a", "b"])
        >>> fitted.top_terms("a", n=1, feature_names=["apple", "bread", "the"])[0][0]
        'apple'
        """
        check_fitted(self)
        everywhere = np.asarray(self.counts_.sum(axis=1), dtype=np.float64)
        theta, expected = self._probabilities_of(find_node(self.taxonomy_, node), everywhere / max(everywhere.sum(), 1.0))
        both = (theta > 0) & (expected > 0)
        divergence = 1000 * theta * np.log(np.divide(theta, expected, out=np.ones_like(theta), where=both))
        return top_features(divergence, n, feature_names)

    @abstractmethod
    def _probabilities_of(self, node: int, everywhere: Floats) -> tuple[Floats, Floats]:
        """The probability of every word at a node, and what it would be if the node had the words of all documents."""

    def _class_of(self, node: int) -> int:
        """The column of the class of a node."""
        column = int(np.searchsorted(self.class_nodes_, node))
        if column == len(self.class_nodes_) or self.class_nodes_[column] != node:
            name = self.taxonomy_.names[node]
            raise InputError(f"node {name!r} is no class: it has no documents of its own; ask for one that has.")
        return column

    # ---- state ------------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays from which :meth:`from_state` makes the same learner."""
        return {"parameters": self._model_params(), "words": int(self.n_features_in_)}, {
            "class_nodes": self.class_nodes_,
            "count_offsets": self.counts_.indptr.astype(np.int64, copy=False),
            "count_classes": self.counts_.indices.astype(np.int32, copy=False),
            "counts": self.counts_.data,
            "class_weight": self.class_weight_,
        }

    @classmethod
    def from_state(cls, taxonomy: Taxonomy, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make a learner from its state, after checking shapes, types and index ranges."""
        made, words = cls(taxonomy, **values["parameters"]), values["words"]
        try:
            made._check_all(csr_array((0, 1)))
        except InputError:
            raise ModelError("the parameters of naive Bayes are not ones that it takes; train the model again.") from None
        counts = _checked_counts(arrays, words, len(taxonomy))
        made.taxonomy_, made.form_, made.classes_ = taxonomy, "matrix", np.asarray(taxonomy.names)
        made.n_features_in_ = words
        made._restore(arrays)
        made._set_counts(arrays["class_nodes"], counts, arrays["class_weight"], taxonomy)
        return made

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore what a subclass stores beside the counts."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True
        return tags


def count_words(X: csr_array, own: csr_array, sample_weight: Floats) -> tuple[NDArray[np.int64], csr_array, Floats]:
    """The classes, their words (words × classes), and the documents of each."""
    nodes = np.unique(own.indices).astype(np.int64)
    members = csr_array(diags_array(sample_weight) @ own[:, nodes].astype(np.float64))
    return nodes, words_of(X, members), np.asarray(members.sum(axis=0), dtype=np.float64)


def words_of(X: csr_array, members: csr_array) -> csr_array:
    """Words × classes, from documents × classes."""
    with stage("counting words by class", 1) as step:
        counts = csr_array(X.T.astype(np.float64) @ members)
        step.advance()
    return counts


def place(values: Floats, columns: NDArray[np.int64], every: NDArray[np.int64]) -> Floats:
    """Values of some columns among all, 0 elsewhere."""
    placed = np.zeros(len(every))
    placed[np.searchsorted(every, columns)] = values
    return placed


def place_columns(matrix: csr_array, columns: NDArray[np.int64], every: NDArray[np.int64]) -> csr_array:
    """The same for the columns of a matrix."""
    moved = np.searchsorted(every, columns)[matrix.indices]
    placed = csr_array((matrix.data, moved, matrix.indptr), shape=(matrix.shape[0], len(every)))
    placed.sort_indices()
    return placed


def translate_nodes(nodes: NDArray[np.int64], before: Taxonomy, after: Taxonomy) -> NDArray[np.int64]:
    """The indices of nodes in a larger taxonomy, in which all their ancestors must be the same."""
    if before is after:
        return nodes
    position = {name: node for node, name in enumerate(after.names)}
    with_ancestors = {int(above) for node in nodes for above in [node, *before.ancestors_of(node)]}
    for node in sorted(with_ancestors):
        name = before.names[node]
        if name not in position:
            raise InputError(f"node {name!r} is missing from the new taxonomy; nodes can be added, not taken away.")
        parents = {before.names[parent] for parent in before.parents_of(node)}
        if parents != {after.names[parent] for parent in after.parents_of(position[name])}:
            raise InputError(f"node {name!r} has another parent in the new taxonomy; nodes can be added, not moved.")
    return np.asarray([position[before.names[node]] for node in nodes], dtype=np.int64)


def log_priors(class_weight: Floats, fit_prior: bool) -> Floats:
    """ln P(class) from the documents of each class, or equal ones."""
    if not fit_prior:
        return np.full(len(class_weight), -np.log(len(class_weight)))
    # a class whose documents all have weight 0 is nearly impossible, not undefined
    smallest = np.finfo(np.float64).tiny
    prior = class_weight / max(class_weight.sum(), smallest)
    return np.asarray(np.log(np.maximum(prior, smallest)), dtype=np.float64)


def is_positive(value: Any) -> bool:
    """Whether a parameter is a finite number above 0."""
    return isinstance(value, Real) and value is not True and 0 < float(value) < np.inf


def is_count(value: Any) -> bool:
    """Whether a parameter is a whole number of 1 or more."""
    return isinstance(value, Integral) and value is not True and int(value) >= 1


def _checked_counts(arrays: dict[str, NDArray[Any]], n_words: Any, n_nodes: int) -> csr_array:
    kinds = {"class_nodes": "i8", "count_offsets": "i8", "count_classes": "i4", "counts": "f8", "class_weight": "f8"}
    if any(arrays[name].dtype != kind or arrays[name].ndim != 1 for name, kind in kinds.items()):
        raise ModelError("the counts are of another type than naive Bayes writes; train the model again.")
    nodes, offsets, columns, counts, weight = (arrays[name] for name in kinds)
    fits = isinstance(n_words, int) and n_words >= 1 and len(columns) == len(counts)
    fits = fits and len(nodes) >= 2 and weight.shape == nodes.shape
    if not fits or not are_offsets(offsets, n_words, len(counts)):
        raise ModelError("the counts of naive Bayes have shapes that do not fit together; train the model again.")
    if not are_indices(nodes, n_nodes) or not is_increasing(nodes, strictly=True):
        message = f"the classes of naive Bayes are not nodes of the taxonomy (0 to {n_nodes - 1}, rising)"
        raise ModelError(f"{message}; train the model again.")
    rises, starts = columns[1:] > columns[:-1], offsets[1:-1]
    rises[starts[(starts > 0) & (starts < len(columns))] - 1] = True
    if not are_indices(columns, len(nodes)) or not rises.all():
        raise ModelError(f"a count of naive Bayes is of no class (0 to {len(nodes) - 1}, rising); train the model again.")
    if not all(np.isfinite(part.sum()) and ((part == 0) | (part >= SMALLEST)).all() for part in (counts, weight)):
        raise ModelError("the counts of naive Bayes are not all finite numbers of 0 and more; train the model again.")
    return csr_array((counts, columns, offsets), shape=(n_words, len(nodes)))
