"""What a learner is: ``fit(X, Y)``, then scores for every node of the taxonomy, row by row the same in any batch.

A learner says in `_learn` how it learns and in `_score` how it scores a block of rows; this class does the rest: it
checks what comes in, cuts rows into blocks, runs them where it is told, and gives predictions in the form in which the
labels came.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ramify.execution import choose_executor, row_blocks, stage
from ramify.learners.targets import Targets, read_targets
from ramify.taxonomy import Taxonomy, expand_to_ancestors

Scores = NDArray[np.float32]


class Learner(ClassifierMixin, BaseEstimator):
    """The common part of all learners.

    Labels come as a matrix over the taxonomy's nodes, one name a document, or a list of names a document. Without a
    taxonomy, plain class values are taken as a forest of single nodes, and the learner behaves as scikit-learn's
    classifiers do.
    """

    kind: ClassVar[str]
    taxonomy: Taxonomy | None
    n_jobs: int | None

    # ---- what each learner says -------------------------------------------------------------------------------------

    def _learn(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        raise NotImplementedError

    def _score(self, X: csr_array) -> Scores:
        """Scores of a block of rows, documents × nodes; NaN where a node has no classifier."""
        raise NotImplementedError

    def _probabilities(self, scores: Scores) -> Scores:
        """Probabilities of a block of scores, documents × nodes."""
        raise NotImplementedError

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays from which `from_state` makes the same learner."""
        raise NotImplementedError

    # ---- what all learners share ------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from documents × features and labels."""
        X = self._check(X, reset=True)
        targets = read_targets(y, self.taxonomy, X.shape[0])
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self.taxonomy_, self.form_ = targets.taxonomy, targets.form
        self.classes_ = np.asarray(targets.taxonomy.names) if targets.classes is None else targets.classes
        self._learn(X, targets, weights)
        return self

    def scores(self, X: Any) -> Scores:
        """Scores over all nodes, documents × nodes; NaN where a node has no classifier."""
        return self._by_blocks(X, self._score)

    def decision_function(self, X: Any) -> Scores:
        """Scores over all nodes; with two plain classes and no taxonomy, one score for the second against the first."""
        S = self.scores(X)
        return S[:, 1] - S[:, 0] if self.form_ == "classes" and len(self.classes_) == 2 else S

    def predict_proba(self, X: Any) -> Scores:
        """Probabilities over all nodes; a parent's is never below a child's."""
        return self._by_blocks(X, lambda rows: self._probabilities(self._score(rows)))

    def predict(self, X: Any) -> Any:
        """The best-scoring node of each document, in the form in which the labels came."""
        best = self._by_blocks(X, lambda rows: np.nanargmax(self._score(rows), axis=1)[:, None], np.int64, 1)[:, 0]
        if self.form_ == "classes":
            return self.classes_[best]
        own = csr_array(
            (np.ones(len(best), dtype=bool), best, np.arange(len(best) + 1)), shape=(len(best), len(self.taxonomy_))
        )
        if self.form_ == "matrix":
            return expand_to_ancestors(own, self.taxonomy_)
        names = self.taxonomy_.decode(own)
        return names if self.form_ == "lists" else np.asarray([name for row in names for name in row])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check(self, X: Any, reset: bool) -> csr_array:
        """Sparse and dense documents by one way: CSR float32 with sorted columns."""
        X = csr_array(validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=reset))
        X.sum_duplicates()
        return X

    def _by_blocks(self, X: Any, work: Any, dtype: Any = np.float32, width: int | None = None) -> NDArray[Any]:
        check_is_fitted(self, "taxonomy_")
        X = self._check(X, reset=False)
        width = len(self.taxonomy_) if width is None else width
        blocks = row_blocks(X.shape[0], 8 * len(self.taxonomy_))
        out = np.empty((X.shape[0], width), dtype=dtype)
        with stage("scoring", X.shape[0]) as step:
            results = choose_executor(self.n_jobs).map(lambda rows: work(X[rows]), blocks)
            for rows, result in zip(blocks, results, strict=True):
                out[rows] = result
                step.advance(rows.stop - rows.start)
        return out
