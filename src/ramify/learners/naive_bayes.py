"""Multinomial naive Bayes over the labelled nodes, flat: the taxonomy only says which nodes lie above a class.

For class c, words w and a document with counts x_w,

    score(c) = ln P(c) + Σ_w x_w ln θ_cw − ln Σ_c' (the same),     θ_cw = (α + N_cw) / (α V + Σ_w N_cw)

N_cw counts word w in the documents of class c; V is the number of words.
Source: McCallum et al. 1998, section 2, with Laplace smoothing (α = 1).
Deviations: a document with several labels counts once in each of its most specific classes, and an inner node with
documents of its own is a class of its own.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.special import logsumexp
from sklearn.utils.metaestimators import available_if

from ramify.errors import InputError, ModelError
from ramify.execution import stage
from ramify.learners.contract import Learner, Scores
from ramify.learners.targets import Targets
from ramify.native import score_rows_in_place
from ramify.taxonomy import Taxonomy, ancestor_matrix

MAX_WEIGHTS = 1 << 29


class MultinomialNaiveBayes(Learner):
    """Flat multinomial naive Bayes (system ``nb``).

    alpha: the count added to every word of every class, above 0.
    fit_prior: learn class priors from the data; otherwise all classes are equally likely.

    ``class_nodes_``: the nodes that have documents of their own, in node order; the classes.
    ``log_theta_``: words × classes, ln θ.
    ``log_prior_``: ln P(c).

    >>> MultinomialNaiveBayes().fit([[2, 0], [0, 3]], ["a", "b"]).predict([[1, 0]])
    array(['a'], dtype='<U1')
    """

    kind: ClassVar[str] = "multinomial-naive-bayes"
    class_nodes_: NDArray[np.int64]
    log_theta_: NDArray[np.float32]
    log_prior_: NDArray[np.float64]

    def __init__(
        self, taxonomy: Taxonomy | None = None, *, alpha: float = 1.0, fit_prior: bool = True, n_jobs: int | None = None
    ) -> None:
        self.taxonomy = taxonomy
        self.alpha = alpha
        self.fit_prior = fit_prior
        self.n_jobs = n_jobs

    def _learn(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        if X.data.size and X.data.min() < 0:
            raise InputError("Negative values in data passed to naive Bayes; it takes counts or weights of 0 and more.")
        if not _is_positive(self.alpha):
            raise InputError(f"alpha is {self.alpha!r}; give a number above 0, such as 1 or 0.1.")
        if not isinstance(self.fit_prior, (bool, np.bool_)):
            raise InputError(f"fit_prior is {self.fit_prior!r}; give true or false.")
        self._set_classes(np.unique(targets.own.indices).astype(np.int64))
        _refuse_too_large(X.shape[1], len(self.class_nodes_))
        with stage("counting words by class", 1) as step:
            members = diags_array(sample_weight) @ targets.own[:, self.class_nodes_].astype(np.float64)
            N = (X.T @ members).toarray()
            step.advance()
        totals = N.sum(axis=0) + self.alpha * X.shape[1]
        N += self.alpha
        N /= totals
        self.log_theta_ = np.ascontiguousarray(np.log(N, out=N), dtype=np.float32)
        self.log_prior_ = _log_priors(np.asarray(members.sum(axis=0)), self.fit_prior)

    def _score(self, X: csr_array) -> Scores:
        joint = np.empty((X.shape[0], len(self.class_nodes_)), dtype=np.float64)
        score_rows_in_place(
            X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, self.log_theta_, self.log_prior_, joint
        )
        S = np.full((X.shape[0], len(self.taxonomy_)), np.nan, dtype=np.float32)
        S[:, self.class_nodes_] = joint - logsumexp(joint, axis=1, keepdims=True)
        return S

    def to_probabilities(self, scores: Scores) -> Scores:
        """Add up the posteriors of the classes at and below each node."""
        posterior = np.exp(scores[:, self.class_nodes_].astype(np.float64))
        posterior /= posterior.sum(axis=1, keepdims=True)
        return np.asarray(posterior @ self._nodes_above, dtype=np.float32).clip(0, 1)

    @available_if(lambda self: self.taxonomy is not None)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Scores:
        """Scores over all nodes; only with a taxonomy, since scikit-learn's naive Bayes has none either."""
        return super().decision_function(X)

    def contributions(self, x: csr_array, node: int) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
        """Words of one document, what each adds to the unnormalized score of a class, and what the prior adds."""
        column = int(np.searchsorted(self.class_nodes_, node))
        added = x.data.astype(np.float64) * self.log_theta_[x.indices, column]
        return x.indices.astype(np.int64), added, float(self.log_prior_[column])

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays from which :meth:`from_state` makes the same learner."""
        values = {"alpha": float(self.alpha), "fit_prior": bool(self.fit_prior)}
        return values, {"class_nodes": self.class_nodes_, "log_theta": self.log_theta_, "log_prior": self.log_prior_}

    @classmethod
    def from_state(cls, taxonomy: Taxonomy, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> MultinomialNaiveBayes:
        """Make a learner from its state, after checking shapes, types and index ranges."""
        made = cls(taxonomy, alpha=values["alpha"], fit_prior=values["fit_prior"])
        made.class_nodes_, made.log_theta_, made.log_prior_ = (arrays[n] for n in ("class_nodes", "log_theta", "log_prior"))
        if not _is_positive(made.alpha) or not isinstance(made.fit_prior, bool):
            raise ModelError("the parameters of naive Bayes are not ones that it takes; train the model again.")
        _check_arrays(made.class_nodes_, made.log_theta_, made.log_prior_, len(taxonomy))
        made.taxonomy_, made.form_, made.classes_ = taxonomy, "matrix", np.asarray(taxonomy.names)
        made.n_features_in_ = made.log_theta_.shape[0]
        made._set_classes(made.class_nodes_)
        return made

    def _set_classes(self, nodes: NDArray[np.int64]) -> None:
        self.class_nodes_ = nodes
        self._nodes_above = ancestor_matrix(self.taxonomy_)[nodes].astype(np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True
        return tags


def _is_positive(value: Any) -> bool:
    return isinstance(value, Real) and 0 < float(value) < np.inf


def _log_priors(class_weight: NDArray[np.float64], fit_prior: bool) -> NDArray[np.float64]:
    if not fit_prior:
        return np.full(len(class_weight), -np.log(len(class_weight)))
    # a class whose documents all weigh nothing is as good as impossible, not undefined
    smallest = np.finfo(np.float64).tiny
    share = class_weight / max(class_weight.sum(), smallest)
    return np.asarray(np.log(np.maximum(share, smallest)), dtype=np.float64)


def _refuse_too_large(n_features: int, n_classes: int) -> None:
    if n_features * n_classes > MAX_WEIGHTS:
        raise InputError(
            f"nb keeps a weight for each of {n_features:,} words and {n_classes:,} classes, "
            f"which is more than {MAX_WEIGHTS:,}; raise min_df or set max_features."
        )


def _check_arrays(class_nodes: NDArray[Any], log_theta: NDArray[Any], log_prior: NDArray[Any], n_nodes: int) -> None:
    types = [array.dtype for array in (class_nodes, log_theta, log_prior)]
    if types != [np.dtype(np.int64), np.dtype(np.float32), np.dtype(np.float64)]:
        raise ModelError("the weights are of another type than naive Bayes writes; train the model again.")
    if class_nodes.ndim != 1 or log_theta.ndim != 2 or log_prior.shape != class_nodes.shape:
        raise ModelError("the weights of naive Bayes have shapes that do not fit together; train the model again.")
    if log_theta.shape[1] != len(class_nodes) or len(class_nodes) < 2:
        raise ModelError("the weights of naive Bayes have shapes that do not fit together; train the model again.")
    if class_nodes.min() < 0 or class_nodes.max() >= n_nodes or np.any(np.diff(class_nodes) <= 0):
        raise ModelError(
            f"the classes of naive Bayes are not nodes of the taxonomy (0 to {n_nodes - 1}, rising); train the model again."
        )
    if not (np.isfinite(log_theta).all() and np.isfinite(log_prior).all()):
        raise ModelError("the weights of naive Bayes are not all finite numbers; train the model again.")
