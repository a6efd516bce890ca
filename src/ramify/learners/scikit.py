"""Any classifier of scikit-learn as a learner, flat over the most specific labels.

The score of a label is the logarithm of its probability, or where the classifier has none, its value of `decision_function`;
probabilities are the softmax of scores, and a node has the sum of the labels at and below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from ramify.arguments import describe
from ramify.errors import InputError, ModelError, first_sentence
from ramify.learners.base import Contributions, Evidence, MulticlassLearner, Scores, State
from ramify.learners.path_probabilities import MIN_PROBABILITY, aggregate_upward, log_softmax, softmax_rows
from ramify.learners.targets import Targets, require_one_label
from ramify.persistence import are_indices, is_increasing
from ramify.persistence.skops_parts import dump_estimator, load_estimator
from ramify.taxonomy import Taxonomy, ancestor_matrix


@dataclass(eq=False, repr=False)
class ScikitLearner(MulticlassLearner):
    """A classifier of scikit-learn, or of another library that follows it; saving needs ``ramify[skops]``.

    estimator: a classifier with `predict_proba` or `decision_function` (default: LogisticRegression).

    ``estimator_``: the fitted one.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> ScikitLearner(estimator=GaussianNB()).fit([[2, 0], [2, 1], [0, 3], [1, 3]], ["a", "a", "b", "b"]).predict([[3, 0]])
    array(['a'], dtype='<U1')
    """

    kind: ClassVar[str] = "scikit-learn"
    supports_multi_label: ClassVar[bool] = False
    taxonomy: Taxonomy | None = None
    n_jobs: int | None = None
    estimator: Any = None

    @property
    def is_additive(self) -> bool:
        """Whether contributions add up to scores; of a classifier of somebody else that is not known."""
        return False

    def _fit(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        require_one_label(targets, "a classifier of scikit-learn", "svm or another learner for multi-label documents")
        default = LogisticRegression(tol=1e-9, max_iter=1000)
        estimator = default if self.estimator is None else checked_classifier(self.estimator)
        weights = {}
        if (sample_weight != 1).any():
            if not has_fit_parameter(estimator, "sample_weight"):
                advice = "leave sample_weight out, or use a system of Ramify; all of them take weights"
                raise InputError(f"{type(estimator).__name__} takes no weights of documents; {advice}.")
            weights = {"sample_weight": sample_weight}
        nodes = np.unique(targets.own.indices).astype(np.int64)
        y = np.searchsorted(nodes, targets.own.indices)
        try:
            estimator.fit(_readable(estimator, X), y, **weights)
        except ValueError as error:
            raise InputError(f"{type(estimator).__name__} cannot be trained on this: {first_sentence(error)}") from None
        self.estimator_ = estimator
        self._set_classes(nodes, targets.taxonomy)

    def _set_classes(self, nodes: NDArray[np.int64], taxonomy: Taxonomy) -> None:
        self.class_nodes_ = nodes
        self._nodes_above = ancestor_matrix(taxonomy)[nodes].astype(np.float64)

    def _score(self, X: csr_array) -> Scores:
        S = self._no_scores(X.shape[0])
        if X.shape[0]:
            S[:, self.class_nodes_] = self._class_scores(_readable(self.estimator_, X))
        return S

    def _class_scores(self, X: Any) -> NDArray[np.floating[Any]]:
        if hasattr(self.estimator_, "predict_proba"):
            return np.asarray(np.log(np.clip(self.estimator_.predict_proba(X), MIN_PROBABILITY, 1)))
        found = np.asarray(self.estimator_.decision_function(X), dtype=np.float64)
        return log_softmax(np.column_stack([-found, found]) / 2 if found.ndim == 1 else found)

    def to_probabilities(self, scores: Scores) -> Scores:
        """The softmax of the scores of the labels, added up along the paths."""
        return aggregate_upward(softmax_rows(scores[:, self.class_nodes_]), self._nodes_above, False)

    def contributions(self, x: csr_array, node: int) -> Contributions:
        """No feature is known to add anything; everything is the prior."""
        score = float(self._score(x)[0, node])
        return np.zeros(0, dtype=np.int64), np.zeros(0), score if np.isfinite(score) else 0.0

    def evidence(self, x: csr_array, scores: NDArray[Any], node: int, end: int) -> Evidence:
        """The lead over the best class that leaves the path at a node, without features."""
        found = super().evidence(x, scores, node, end)
        if found.rival is None:
            return found
        chosen = self.explaining_node(scores, end)
        lead = float(scores[chosen] - scores[found.rival]) if chosen is not None else 0.0
        return Evidence(lead, found.features, found.added, lead, found.rival)

    def top_terms(self, node: int | str, n: int = 10, feature_names: Any = None) -> list[tuple[Any, float]]:
        """No weights are known."""
        return []

    def state(self) -> State:
        """Plain values and arrays from which :meth:`from_state` makes the same learner."""
        arrays: dict[str, NDArray[Any]] = {"estimator": dump_estimator(self.estimator_), "class_nodes": self.class_nodes_}
        return {"features": int(self.n_features_in_)}, arrays

    @classmethod
    def from_state(cls, taxonomy: Taxonomy, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make a learner from its state, after checking it."""
        fitted, nodes, n_features = load_estimator(arrays["estimator"]), arrays["class_nodes"], values["features"]
        if not isinstance(fitted, BaseEstimator) or not is_classifier(fitted) or not _has_scores(fitted):
            raise ModelError("the learner is not a classifier of scikit-learn; train the model again.")
        are_nodes = nodes.dtype == np.int64 and are_indices(nodes, len(taxonomy)) and is_increasing(nodes, strictly=True)
        fits = are_nodes and len(nodes) >= 2 and np.array_equal(getattr(fitted, "classes_", []), np.arange(len(nodes)))
        if not fits or n_features != getattr(fitted, "n_features_in_", None):
            raise ModelError("the classes of the classifier do not fit the taxonomy; train the model again.")
        made = cls(taxonomy, estimator=clone(fitted))
        made.taxonomy_, made.form_, made.classes_ = taxonomy, "matrix", np.asarray(taxonomy.names)
        made.n_features_in_, made.estimator_ = n_features, fitted
        made._set_classes(nodes, taxonomy)
        return made


def checked_classifier(given: Any) -> Any:
    """An unfitted copy of a classifier; refuses what is none, or has no scores."""
    if isinstance(given, type) or not isinstance(given, BaseEstimator) or not is_classifier(given):
        raise InputError(f"estimator is {describe(given)}; give a classifier of scikit-learn, such as LogisticRegression().")
    if not _has_scores(given):
        advice = "use one that has, or wrap it in CalibratedClassifierCV"
        raise InputError(f"{type(given).__name__} has neither predict_proba nor decision_function; {advice}.")
    return clone(given)


def _has_scores(estimator: Any) -> bool:
    return hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")


def _readable(estimator: Any, X: csr_array) -> Any:
    """The matrix in double precision, which solvers need to converge; dense for a classifier that takes no sparse one."""
    X = X.astype(np.float64)
    return X if get_tags(estimator).input_tags.sparse else X.toarray()
