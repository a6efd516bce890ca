"""The relevance of a term to a class: information gain, χ², and mutual information.

t: term, c: class. Documents are counted for "information-gain" and "chi2", word occurrences for "mutual-information".

    information gain       Σ P(t', c') ln(P(t', c') / (P(t') P(c')))   over t' in {t, not t}, c' in {c, not c}
    χ²                     N (AD - CB)² / ((A + C)(B + D)(A + B)(C + D))
    mutual information     Σ P(t', c) ln(P(t', c) / (P(t') P(c)))      over t' in {t, not t}; sums up over classes

A, B: documents with the term inside and outside the class. C, D: those without it. N: all documents.
Sources: Yang and Pedersen, "A Comparative Study on Feature Selection in Text Categorization" (ICML 1997), for the first two
(their information gain is over all classes; here it is one-versus-rest);
McCallum and Nigam, "A Comparison of Event Models for Naive Bayes Text Classification" (AAAI-98 workshop), for the third.

Deviations: a document may have several classes or none; for the third measure its words count once for each of its classes.
Sums are computed as Σ E ((1 + u) ln(1 + u) - u), where E is the expected proportion if term and class are independent, and
E (1 + u) the observed one. This equals the formulas, is never negative, and is accurate for small u.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array

from ramify.errors import InputError, first_sentence, suggest
from ramify.parallel import row_blocks

FloatArray = NDArray[np.float64]
ARRAYS_PER_BLOCK = 8  # arrays of classes × terms in memory at a time
BLOCK_BYTES = 1 << 24  # fits the cache
ROUNDING = 1e-12  # relative difference from the expected count that is rounding error


@dataclass(frozen=True, slots=True, eq=False)
class ContingencyCounts:
    """Counts of classes and terms, alone and together.

    counts: documents × terms. class_documents: classes × documents.
    of_class, of_term, of_all: documents (or word occurrences) with each class, with each term, and in all.
    """

    counts: csr_array
    class_documents: csr_array
    of_class: FloatArray
    of_term: FloatArray
    of_all: float

    def excess(self, classes: slice) -> FloatArray:
        """N² (P(t, c) - P(t) P(c)) for some classes × terms: the AD - CB of the table."""
        together = (self.class_documents[classes] @ self.counts).toarray()
        expected = np.outer(self.of_class[classes], self.of_term)
        excess = together * self.of_all - expected
        excess[np.abs(excess) <= ROUNDING * expected] = 0
        return np.asarray(excess)


def term_relevance(X: Any, M: Any, measure: str = "information-gain") -> FloatArray:
    """The relevance of each term to each class, as a matrix of classes × terms.

    X: documents × terms, counts or weights of 0 or more; a term is in a document where its value is above 0.
    M: documents × classes, true where a document belongs to a class. It may belong to several, or to none.
    measure: "information-gain", "chi2" or "mutual-information".

    The relevance is 0 for a class without documents or with all of them, and for a term in no document.

    >>> X = [[1, 0, 1], [2, 0, 1], [0, 1, 1], [0, 3, 1]]
    >>> term_relevance(X, [[1, 0], [1, 0], [0, 1], [0, 1]], "chi2")
    array([[4., 4., 0.], [4., 4., 0.]])
    """
    X, M = as_count_matrix(X), as_class_matrix(M)
    refuse_other_length(X, M)
    blocks = [block for _, block in relevance_blocks(count_contingencies(X, M, measure), measure)]
    return np.vstack(blocks) if blocks else np.zeros((0, X.shape[1]))


def relevance_blocks(contingency: ContingencyCounts, measure: str) -> Iterator[tuple[slice, FloatArray]]:
    """The relevance, one block of classes at a time."""
    evaluate = MEASURES[measure]
    for classes in row_blocks(len(contingency.of_class), ARRAYS_PER_BLOCK * 8 * len(contingency.of_term), BLOCK_BYTES):
        yield classes, evaluate(contingency, classes)


def count_contingencies(X: csr_array, M: csr_array, measure: str) -> ContingencyCounts:
    """Count what the measure needs, documents or word occurrences, in checked X and M."""
    refuse_unknown("measure", measure, MEASURES)
    class_documents = csr_array(M.T).astype(np.float64)
    if measure == "mutual-information":
        labels_per_document = np.asarray(M.sum(axis=1), dtype=np.float64)
        of_class, of_term = class_documents @ X.sum(axis=1), labels_per_document @ X
        return ContingencyCounts(X, class_documents, of_class, of_term, float(of_class.sum()))
    presence = csr_array((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape)
    return ContingencyCounts(presence, class_documents, class_documents.sum(axis=1), presence.sum(axis=0), float(X.shape[0]))


def _information_gain(contingency: ContingencyCounts, classes: slice) -> FloatArray:
    inside, has = contingency.of_class[classes, None], contingency.of_term
    outside, lacks = contingency.of_all - inside, contingency.of_all - has
    excess = contingency.excess(classes)  # the same in all four cells, but for its sign
    cells = _cell(excess, inside * has) + _cell(excess, outside * lacks)
    return (cells + (_cell(-excess, outside * has) + _cell(-excess, inside * lacks))) / (contingency.of_all or 1.0) ** 2


def _chi2(contingency: ContingencyCounts, classes: slice) -> FloatArray:
    inside, has = contingency.of_class[classes, None], contingency.of_term
    margins = (inside * (contingency.of_all - inside)) * (has * (contingency.of_all - has))
    return _divide(contingency.of_all * contingency.excess(classes) ** 2, margins)


def _mutual_information(contingency: ContingencyCounts, classes: slice) -> FloatArray:
    inside, has = contingency.of_class[classes, None], contingency.of_term
    excess = contingency.excess(classes)
    cells = _cell(excess, inside * has) + _cell(-excess, inside * (contingency.of_all - has))
    return cells / (contingency.of_all or 1.0) ** 2


MEASURES = {"information-gain": _information_gain, "chi2": _chi2, "mutual-information": _mutual_information}


def _cell(excess: FloatArray, expected: FloatArray) -> FloatArray:
    """E ((1 + u) ln(1 + u) - u) with u = excess / E: the contribution of one cell, never negative."""
    u = np.maximum(_divide(excess, expected), -1.0)
    value = np.where(u == -1, 1.0, u * u * (1 / 2 - u * (1 / 6 - u * (1 / 12 - u / 20))))
    far = (np.abs(u) >= 1e-3) & (u > -1)  # rare, so few logarithms are needed
    value[far] = (1 + u[far]) * np.log1p(u[far]) - u[far]
    return expected * value


def _divide(above: FloatArray, below: FloatArray) -> FloatArray:
    """above / below, or 0 if below is 0."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def as_count_matrix(X: Any) -> csr_array:
    """A copy of any matrix of numbers of 0 or more, as CSR float64 that stores no zero."""
    try:
        X = check_array(X, accept_sparse="csr", dtype=np.float64, copy=True, ensure_min_samples=0, ensure_min_features=0)
    except ValueError as error:
        raise InputError(first_sentence(error)) from None
    X = csr_array(X)
    X.sum_duplicates()
    X.eliminate_zeros()
    if X.nnz and X.data.min() < 0:
        row = int(np.searchsorted(X.indptr, np.argmax(X.data < 0), side="right"))
        raise InputError(f"Negative values in data: document {row} has one; give counts, or weights of 0 or more.")
    return X


def as_class_matrix(M: Any) -> csr_array:
    """Any 0/1 matrix of documents × classes as boolean CSR that stores no zero."""
    if not issparse(M):
        M = np.asarray(M)
    if M.ndim != 2:
        raise InputError(f"a class matrix has documents as rows and classes as columns, not {M.ndim} dimensions.")
    M = csr_array(M).astype(bool)
    M.sum_duplicates()
    M.eliminate_zeros()
    return M


def refuse_other_length(X: csr_array, M: csr_array) -> None:
    """Refuse different numbers of documents and labels."""
    if X.shape[0] != M.shape[0]:
        raise InputError(f"X has {X.shape[0]} documents, but labels are given for {M.shape[0]}; give labels for each document.")


def refuse_unknown(name: str, value: Any, known: Iterable[str]) -> None:
    """Refuse a setting that is not one of the allowed values."""
    if not isinstance(value, str) or value not in known:
        words = list(known)
        raise InputError(f"{name} is {value!r}; give one of {', '.join(map(repr, words))}.{suggest(str(value), words)}")
