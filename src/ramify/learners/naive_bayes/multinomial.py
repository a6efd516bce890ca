"""Flat multinomial naive Bayes over the labelled nodes; the taxonomy only adds up probabilities of ancestors.

For class c, words w and a document with counts x_w,

    score(c) = ln P(c) + Σ_w x_w ln θ_cw − ln Σ_c' (the same),     θ_cw = (α + N_cw) / (α V + Σ_w N_cw)

N_cw counts word w in the documents of class c; V is the number of words. Since ln θ_cw = ln(1 + N_cw/α) + a constant of the
class, only the words of a class cost memory and time.
Source: McCallum et al. 1998, section 2, with Laplace smoothing (α = 1).
Deviations: a document with multiple labels counts once in each of its most specific classes, and an inner node with
documents of its own is a class of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import InputError
from ramify.learners.base import Contributions, Scores
from ramify.learners.naive_bayes.word_counts import Floats, WordCountLearner, is_positive
from ramify.learners.path_probabilities import log_softmax
from ramify.native import Rows, rows_of, score_units_in_place


@dataclass(frozen=True)
class LaplaceScorer:
    """ln P(c) + Σ_w x_w ln θ_cw for sparse counts.

    surplus: words × classes, sparse; by how much ln θ of a word of the class exceeds that of a word that it does not have.
    absent: ln θ of a word that a class does not have.
    """

    surplus: csr_array
    absent: Floats
    log_prior: Floats

    @classmethod
    def from_counts(cls, counts: csr_array, alpha: float, log_prior: Floats, n_words: NDArray[Any] | int) -> LaplaceScorer:
        """Smooth counts, words × classes. n_words: the size of the vocabulary, of every class or of all."""
        surplus = counts.copy()
        surplus.data = np.log1p(counts.data / alpha).astype(np.float32)
        totals = np.bincount(counts.indices, counts.data, minlength=counts.shape[1])
        return cls(surplus, np.log(alpha) - np.log(alpha * n_words + totals), log_prior)

    @cached_property
    def _surplus(self) -> Rows:
        return rows_of(self.surplus)

    def score(self, X: csr_array, lengths: Floats | None = None) -> Floats:
        """Documents × classes. lengths: the number of words of each document that count (default: all)."""
        S = np.empty((X.shape[0], len(self.absent)))
        alone = np.full(len(self.absent), -1, dtype=np.int32)
        score_units_in_place(rows_of(X), self._surplus, alone, self.log_prior, S)
        S += (np.asarray(X.sum(axis=1, dtype=np.float64))[:, None] if lengths is None else lengths) * self.absent
        return S

    def log_theta(self, words: NDArray[Any], column: int) -> Floats:
        """ln θ of some words in one class."""
        return np.asarray(self.surplus[words][:, [column]].toarray().ravel().astype(np.float64) + self.absent[column])

    def thetas(self, column: int, everywhere: Floats) -> tuple[Floats, Floats]:
        """θ of all words in one class, and what it would be if they were distributed as `everywhere`."""
        absent = np.exp(self.absent[column])  # α / (α V + words)
        n_words = np.count_nonzero(everywhere)
        expected = absent + max(0.0, 1 - n_words * absent) * everywhere
        return np.exp(self.log_theta(np.arange(len(everywhere)), column)), expected


@dataclass(eq=False, repr=False, kw_only=True)
class MultinomialNaiveBayes(WordCountLearner):
    """Flat multinomial naive Bayes (system ``nb``).

    alpha: the count added to every word of every class, above 0 (Laplace smoothing).
    fit_prior: learn class priors from the data; otherwise all classes are equally likely.

    Fitted attributes are those of :class:`WordCountLearner`.

    >>> MultinomialNaiveBayes().fit([[2, 0], [0, 3]], ["a", "b"]).predict([[1, 0]])
    array(['a'], dtype='<U1')
    """

    kind: ClassVar[str] = "multinomial-naive-bayes"
    alpha: float = 1.0

    def _check_parameters(self) -> None:
        check_alpha(self.alpha)

    def _prepare(self) -> None:
        self._scorer = LaplaceScorer.from_counts(self.counts_, self.alpha, self.log_prior_, self.counts_.shape[0])

    def _score(self, X: csr_array) -> Scores:
        S = self._no_scores(X.shape[0])
        S[:, self.class_nodes_] = log_softmax(self._scorer.score(X))
        return S

    def _probabilities_of(self, node: int, everywhere: Floats) -> tuple[Floats, Floats]:
        return self._scorer.thetas(self._class_of(node), everywhere)

    def contributions(self, x: csr_array, node: int) -> Contributions:
        """Words of one document, what each adds to the unnormalized score of a class, and what the prior adds."""
        column = self._class_of(node)
        added = x.data.astype(np.float64) * self._scorer.log_theta(x.indices, column)
        return x.indices.astype(np.int64), added, float(self.log_prior_[column])


def check_alpha(alpha: Any) -> None:
    """Refuse a smoothing that is no number above 0, or so small or large that logarithms fail."""
    if not is_positive(alpha) or not 1e-100 <= float(alpha) <= 1e100:
        raise InputError(f"alpha is {alpha!r}; give a number above 0, such as 1 or 0.1.")
