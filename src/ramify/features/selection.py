"""Feature selection: the terms most relevant to the classes, globally or at each inner node.

Sources: Yang and Pedersen (ICML 1997) for aggregating classes by maximum and average; Forman, "A Pitfall and Solution in
Multi-Class Feature Selection for Text Classification" (ICML 2004), for round robin; McCallum, Rosenfeld, Mitchell and Ng,
"Improving Text Classification by Shrinkage in a Hierarchy of Classes" (ICML 1998), for an equal number of terms at every
inner node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ramify.errors import InputError
from ramify.features import relevance
from ramify.features.base import check_documents
from ramify.features.relevance import FloatArray
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_specific

IntArray = NDArray[np.int64]
JOINS = ("max", "weighted-average", "sum", "round-robin")
SCOPES = ("flat", "hierarchical", "glocal")
VIRTUAL_ROOT = -1
TIE_BITS = 34  # scores that agree in so many bits, about ten decimal digits, are ties


class TermSelector(TransformerMixin, BaseEstimator):
    """Select the most relevant columns of a document matrix.

    n_features: the number of terms; for "glocal", the number at each inner node.
    measure: the relevance of a term to a class: "information-gain", "chi2" or "mutual-information".
    join: how to aggregate over classes: "max", "sum", "weighted-average" (Σ P(c) · relevance), or "round-robin": each class in
    turn picks its best term that is not yet picked.
    scope: "flat" uses all documents; a class is a node that is some document's most specific label. The others use the
    documents of each inner node (and of a virtual root above several roots); classes are its children, and the node itself for
    documents that end there. "hierarchical" is the union of equally many terms per inner node, at most n_features in all;
    "glocal" gives each inner node its own set.
    taxonomy: the nodes that the columns of Y are. Without one, Y holds a class for each document, or a column for each class.

    Ties go to the first column. Irrelevant terms are never selected, even if fewer than n_features remain; if no term is
    relevant, the most frequent ones are. An inner node with fewer than two classes that have documents selects nothing. If
    "hierarchical" has not even one term per inner node, it takes the most relevant of their first terms.

    ``columns_``: the selected columns, increasing. ``scores_``: the aggregated relevance of each term; the maximum over inner
    nodes, and for round robin over classes. ``sets_``: for "glocal", the columns of each inner node; -1 is the virtual root.

    >>> X = [[1, 0, 1], [2, 0, 1], [0, 1, 1], [0, 3, 0]]
    >>> selector = TermSelector(2, measure="chi2").fit(X, ["tea", "tea", "bread", "bread"])
    >>> selector.columns_, selector.transform([[7, 8, 9]]).toarray()
    (array([0, 1]), array([[7., 8.]], dtype=float32))
    """

    def __init__(
        self,
        n_features: int = 2000,
        *,
        measure: str = "information-gain",
        join: str = "max",
        scope: str = "flat",
        taxonomy: Taxonomy | None = None,
    ) -> None:
        self.n_features, self.measure, self.join = n_features, measure, join
        self.scope, self.taxonomy = scope, taxonomy

    def fit(self, X: Any, Y: Any = None) -> Self:
        """Select terms. X: documents × terms, counts or weights of 0 or more. Y: documents × nodes, or a class per document."""
        self.check_settings()
        counts = relevance.as_count_matrix(check_documents(self, X, reset=True))
        if Y is None:
            raise InputError("TermSelector requires y to be passed, but the target y is None.")
        Y = class_matrix(Y) if self.taxonomy is None else expand_to_ancestors(Y, self.taxonomy)
        relevance.refuse_other_length(counts, Y)
        self.scores_ = np.zeros(counts.shape[1])
        self.__dict__.pop("sets_", None)  # of an earlier fit
        if self.scope == "flat":
            ranking, self.scores_ = self._rank(counts, Y if self.taxonomy is None else most_specific(Y, self.taxonomy))
            chosen = np.sort(ranking)
        else:
            chosen = self._select_by_node(counts, Y)
        self.columns_ = chosen if len(chosen) else np.sort(most_frequent(counts, self.n_features))
        return self

    def transform(self, X: Any) -> csr_array:
        """The selected columns of a document matrix, as CSR float32."""
        check_is_fitted(self, "columns_")
        return check_documents(self, X, reset=False)[:, self.columns_]

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """The selected columns as a boolean mask, or as numbers."""
        check_is_fitted(self, "columns_")
        return self.columns_.copy() if indices else np.isin(np.arange(len(self.scores_)), self.columns_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the selected columns."""
        check_is_fitted(self, "columns_")
        if input_features is None:
            input_features = vars(self).get("feature_names_in_", [f"x{column}" for column in range(len(self.scores_))])
        names = np.asarray(input_features, dtype=object)
        if names.shape != self.scores_.shape:
            raise InputError(f"input_features has {names.size} names, but there are {len(self.scores_)} columns; name each.")
        return np.asarray(names[self.columns_], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def check_settings(self) -> None:
        """Refuse invalid settings."""
        relevance.refuse_unknown("measure", self.measure, relevance.MEASURES)
        relevance.refuse_unknown("join", self.join, JOINS)
        relevance.refuse_unknown("scope", self.scope, SCOPES)
        is_whole = isinstance(self.n_features, (int, np.integer)) and not isinstance(self.n_features, bool)
        if not is_whole or self.n_features < 1:
            raise InputError(f"n_features is {self.n_features!r}; give a whole number of 1 or more.")
        if self.taxonomy is None and self.scope != "flat":
            raise InputError(f"scope {self.scope!r} selects at inner nodes and needs a taxonomy; give one, or scope='flat'.")

    def _select_by_node(self, X: csr_array, Y: csr_array) -> IntArray:
        assert self.taxonomy is not None
        n_terms, sets = X.shape[1], {}
        first_rank = np.full(n_terms, n_terms)  # the best rank of each term at any inner node
        for node, rows, classes in local_problems(Y, self.taxonomy):
            documents, ranking = X[rows], np.zeros(0, dtype=np.int64)
            if classes.shape[1] > 1:
                columns, narrow = drop_empty_columns(documents)
                ranking, scores = self._rank(narrow, classes)
                self.scores_[columns] = np.maximum(self.scores_[columns], scores)
                ranking = columns[ranking]
                first_rank[ranking] = np.minimum(first_rank[ranking], np.arange(len(ranking)))
                ranking = ranking if len(ranking) else most_frequent(documents, self.n_features)
            sets[node] = np.sort(ranking)
        if self.scope == "glocal":
            self.sets_ = sets
            return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *sets.values()]))
        return allocate_equally(first_rank, self.scores_, self.n_features)

    def _rank(self, X: csr_array, M: csr_array) -> tuple[IntArray, FloatArray]:
        """The best n_features terms, best first, and the score of each term."""
        contingency = relevance.count_contingencies(X, drop_empty_columns(M)[1], self.measure)
        scores, rankings = np.zeros(len(contingency.of_term)), []
        weights = np.ones(len(contingency.of_class))
        if self.join == "weighted-average":
            weights = contingency.of_class / (contingency.of_all or 1.0)
        for classes, block in relevance.relevance_blocks(contingency, self.measure):
            if self.join in ("max", "round-robin"):
                scores = np.maximum(scores, block.max(axis=0))  # relevances are 0 or more
            else:
                scores += weights[classes] @ block
            if self.join == "round-robin":
                rankings += [rank(row, self.n_features).astype(np.int32) for row in block]
        return round_robin(rankings, self.n_features) if self.join == "round-robin" else rank(scores, self.n_features), scores


def rank(scores: FloatArray, at_most: int) -> IntArray:
    """The columns with a score above 0, highest first; ties in column order."""
    columns = np.flatnonzero(scores > 0)
    # round scores: their last digits depend on the order of summation
    mantissa, exponent = np.frexp(scores[columns])
    scores = np.ldexp(np.rint(np.ldexp(mantissa, TIE_BITS)), exponent - TIE_BITS)
    if len(columns) > at_most:
        good = scores >= np.partition(scores, -at_most)[-at_most]
        columns, scores = columns[good], scores[good]
    return columns[np.argsort(-scores, kind="stable")][:at_most]


def round_robin(rankings: Sequence[NDArray[Any]], at_most: int) -> IntArray:
    """Pick the next unpicked term of each ranking in turn, until there are enough or none is left.

    >>> round_robin([np.array([5, 3, 1]), np.array([5, 3])], 3)
    array([5, 3, 1])
    """
    taken: dict[int, None] = {}
    waiting = [iter(ranking.tolist()) for ranking in rankings]
    while waiting and len(taken) < at_most:
        still = []
        for terms in waiting:
            term = next((term for term in terms if term not in taken), None)
            if term is not None:
                taken[term] = None
                still.append(terms)
        waiting = still
    return np.asarray(list(taken)[:at_most], dtype=np.int64)


def allocate_equally(first_rank: IntArray, scores: FloatArray, at_most: int) -> IntArray:
    """The first k terms of each ranking, for the largest k with a union of at most `at_most` terms.

    first_rank: the best rank of each term in any ranking, the number of terms if it is in none.
    """
    ranks = np.sort(first_rank[first_rank < len(first_rank)])
    if len(ranks) <= at_most:
        return np.flatnonzero(first_rank < len(first_rank))
    if ranks[at_most] > 0:  # the first term that exceeds the limit has rank k
        return np.flatnonzero(first_rank < ranks[at_most])
    firsts = np.flatnonzero(first_rank == 0)
    return np.sort(firsts[rank(scores[firsts], at_most)])


def most_frequent(X: csr_array, at_most: int) -> IntArray:
    """The terms in the most documents; ties in column order."""
    documents = np.bincount(X.indices, minlength=X.shape[1])
    return np.argsort(-documents, kind="stable")[:at_most]


def class_matrix(Y: Any) -> csr_array:
    """Classes, one per document or as a matrix, as a boolean matrix of documents × classes."""
    Y = Y if issparse(Y) else np.asarray(Y)
    if issparse(Y) or not (Y.ndim == 1 or (Y.ndim == 2 and Y.shape[1] == 1)):
        return relevance.as_class_matrix(Y)
    try:
        classes, of_document = np.unique(Y.ravel(), return_inverse=True)
    except TypeError:
        raise InputError("the classes of Y cannot be put in order; make them all strings, or all numbers.") from None
    n = Y.size
    return csr_array((np.ones(n, dtype=bool), of_document, np.arange(n + 1)), shape=(n, len(classes)))


def local_problems(Y: csr_array, taxonomy: Taxonomy) -> Iterator[tuple[int, IntArray, csr_array]]:
    """Each inner node, or -1 above several roots, with its documents, and their classes that are not empty."""
    own, by_node = most_specific(Y, taxonomy), Y.tocsc()
    if len(taxonomy.roots) > 1:
        rows = np.flatnonzero(np.diff(Y.indptr))
        yield VIRTUAL_ROOT, rows, drop_empty_columns(Y[rows][:, taxonomy.roots])[1]
    for node in np.flatnonzero(~taxonomy.is_leaf).tolist():
        rows = by_node.indices[by_node.indptr[node] : by_node.indptr[node + 1]]
        classes = hstack([Y[rows][:, taxonomy.children_of(node)], own[rows][:, [node]]], format="csr")
        yield node, rows, drop_empty_columns(classes)[1]


def drop_empty_columns(matrix: csr_array) -> tuple[IntArray, csr_array]:
    """The columns with stored values, and the matrix of these columns."""
    columns, indices = np.unique(matrix.indices, return_inverse=True)
    shape = (matrix.shape[0], len(columns))
    return columns.astype(np.int64), csr_array((matrix.data, indices, matrix.indptr), shape=shape)
