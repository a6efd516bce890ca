"""What may sit at a node: linear classifiers of our own, naive Bayes, or any classifier that keeps to scikit-learn's rules.

A base learns one yes or no a unit, each from the documents that it is asked about, and scores documents × units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, issparse
from sklearn.base import clone

from ramify.errors import InputError, ModelError
from ramify.execution import stage
from ramify.learners.linear.forest import single_units
from ramify.learners.linear.pairs import negatives_of, pair_up
from ramify.learners.linear.taking_over import train_others
from ramify.learners.linear.training import Setup, Trained, suits, train, train_apart, train_pairs, weigh_classes
from ramify.learners.linear.weights import Weights
from ramify.native import score_rows_in_place
from ramify.taxonomy import Taxonomy

MAX_WEIGHTS = 1 << 29
AT_ONCE = 1 << 23  # weights that are counted at a time
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Questions:
    """What the classifiers are to learn.

    positive, asked: documents × units, for whom the answer is yes, and who is asked at all; None where everyone is.
    nodes: of each unit. groups: units with the same number are asked about the same documents; they stand together.
    """

    positive: csc_array
    asked: csc_array | None
    nodes: NDArray[np.int64]
    groups: NDArray[np.int64]

    def of_documents(self, documents: NDArray[np.int64]) -> Questions:
        """The same about some of the documents."""
        asked = None if self.asked is None else csc_array(csr_array(self.asked)[documents])
        return Questions(csc_array(csr_array(self.positive)[documents]), asked, self.nodes, self.groups)

    def of_units(self, units: NDArray[np.int64]) -> Questions:
        """Some of the questions."""
        asked = None if self.asked is None else self.asked[:, units]
        return Questions(self.positive[:, units], asked, self.nodes[units], self.groups[units])

    def documents_of(self, unit: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Who is asked about a unit, and whose answer is yes."""
        yes = self.positive.indices[self.positive.indptr[unit] : self.positive.indptr[unit + 1]]
        asked, n = self.asked, self.positive.shape[0]
        documents = np.arange(n) if asked is None else asked.indices[asked.indptr[unit] : asked.indptr[unit + 1]]
        return documents.astype(np.int64), np.isin(documents, yes)

    def count(self, sample_weight: Floats) -> tuple[Floats, Floats]:
        """By unit, the weight of documents whose answer is yes, and of those who are asked."""
        yes = self.positive.astype(np.float64).T @ sample_weight
        asked = self.asked
        return yes, np.full(len(yes), sample_weight.sum()) if asked is None else asked.astype(np.float64).T @ sample_weight


class Base(Protocol):
    """Fitted classifiers."""

    name: ClassVar[str]

    def score(self, X: csr_array) -> Floats:
        """Documents × units; above 0 for yes."""

    @property
    def has_weights(self) -> bool:
        """Whether scores are sums of what features add."""

    def weights_of(self, unit: int, features: NDArray[np.int64]) -> tuple[Floats, float]:
        """What each of some features adds to the score of a unit, and the bias."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file keeps."""


@dataclass(frozen=True, slots=True)
class LinearBase:
    """Support vector machines or logistic regression by the solver of this package.

    figures: objective and bound of every unit, where they are solved one by one.
    """

    weights: Weights
    gap: tuple[float, float, int]
    figures: Floats | None = None
    name: ClassVar[str] = "linear"

    @classmethod
    def fit(
        cls,
        X: csr_array,
        questions: Questions,
        taxonomy: Taxonomy,
        setup: Setup,
        sample_weight: Floats,
        taken: NDArray[np.int64] | None = None,
        known: LinearBase | None = None,
    ) -> LinearBase:
        """Solve all units; their objectives add up.

        taken: for every unit the one of `known` that is taken over as it is, -1 where it is to be solved.
        """
        if taken is None or known is None or known.figures is None:
            trained = _train(X, questions, taxonomy, setup, sample_weight)
        else:

            def train_some(some: NDArray[np.int64]) -> Trained:
                return _train(X, questions.of_units(some), taxonomy, setup, sample_weight)

            trained = train_others(taken, known.weights, known.figures, train_some)
        found = trained.certificate
        return cls(trained.weights, (found.primal, found.dual, found.rounds), trained.figures)

    def score(self, X: csr_array) -> Floats:
        """Documents × units."""
        return self.weights.score(X).astype(np.float64)

    @property
    def has_weights(self) -> bool:
        """They are."""
        return True

    def weights_of(self, unit: int, features: NDArray[np.int64]) -> tuple[Floats, float]:
        """What each of some features adds to the score of a unit, and the bias."""
        w, bias = self.weights.of_class(unit)
        return w[features], bias

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file keeps."""
        return self.weights.arrays() | ({} if self.figures is None else {"class_figures": self.figures})


def _train(X: csr_array, questions: Questions, taxonomy: Taxonomy, setup: Setup, sample_weight: Floats) -> Trained:
    positive, asked = questions.positive, questions.asked
    costs = weigh_classes(positive, setup, taxonomy, questions.nodes, sample_weight)
    if asked is None:
        return train(X, csr_array(positive), single_units(questions.nodes), costs, setup)
    if suits(X, csr_array(positive), setup):
        return train_apart(X, csr_array(positive), asked, questions.groups, costs, setup)
    pairs = pair_up(positive, negatives_of(positive, asked), costs.positive, costs.negative)
    return train_pairs(X, pairs, costs, setup)


@dataclass(frozen=True, slots=True)
class NaiveBayesBase:
    """Multinomial naive Bayes between yes and no; its log-odds are linear in the counts.

    log_odds: words × units. prior: ln P(yes) / P(no).
    """

    log_odds: NDArray[np.float32]
    prior: Floats
    name: ClassVar[str] = "naive-bayes"

    @classmethod
    def fit(cls, X: csr_array, questions: Questions, alpha: float, sample_weight: Floats) -> NaiveBayesBase:
        """Count words on both sides of every question."""
        n_words, n_units = X.shape[1], len(questions.nodes)
        if X.data.size and X.data.min() < 0:
            raise InputError("Negative values in data passed to naive Bayes; it takes counts or weights of 0 and more.")
        if n_words * n_units > MAX_WEIGHTS:
            raise InputError(
                f"naive Bayes at the nodes keeps a weight for each of {n_words:,} words and {n_units:,} nodes, "
                f"which is more than {MAX_WEIGHTS:,}; raise min_df or set max_features."
            )
        odds = np.empty((n_words, n_units), dtype=np.float32)
        weighted = csr_array(X.multiply(sample_weight[:, None])).T
        everyone = np.asarray(weighted.sum(axis=1)).reshape(-1, 1)
        with stage("counting words by node", n_units) as step:
            at_once = max(1, AT_ONCE // max(1, n_words))
            for units in np.split(np.arange(n_units), range(at_once, n_units, at_once)):
                some = questions.of_units(units)
                yes = (weighted @ some.positive.astype(np.float64)).toarray()
                all_asked = everyone if some.asked is None else (weighted @ some.asked.astype(np.float64)).toarray()
                odds[:, units] = _log_shares(yes, alpha) - _log_shares(np.maximum(all_asked - yes, 0), alpha)
                step.advance(len(units))
        n_yes, n_asked = questions.count(sample_weight)
        smallest = np.finfo(np.float64).tiny
        prior = np.log(np.maximum(n_yes, smallest)) - np.log(np.maximum(n_asked - n_yes, smallest))
        return cls(odds, np.asarray(prior, dtype=np.float64))

    def score(self, X: csr_array) -> Floats:
        """Documents × units."""
        S = np.empty((X.shape[0], len(self.prior)), dtype=np.float64)
        offsets, words = X.indptr.astype(np.int64), X.indices.astype(np.int32)
        score_rows_in_place(offsets, words, X.data, self.log_odds, self.prior, S)
        return S

    @property
    def has_weights(self) -> bool:
        """They are."""
        return True

    def weights_of(self, unit: int, features: NDArray[np.int64]) -> tuple[Floats, float]:
        """What each of some words adds to the log-odds of a unit, and the prior."""
        return self.log_odds[features, unit].astype(np.float64), float(self.prior[unit])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file keeps."""
        return {"log_odds": self.log_odds, "prior": self.prior}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], n_features: int, n_units: int) -> NaiveBayesBase:
        """Make it of what was kept, after checking."""
        odds, prior = arrays["log_odds"], arrays["prior"]
        if odds.dtype != np.float32 or prior.dtype != np.float64:
            raise ModelError("the weights are of another type than naive Bayes writes; train the model again.")
        if odds.shape != (n_features, n_units) or prior.shape != (n_units,):
            raise ModelError("the weights of naive Bayes have shapes that do not fit together; train the model again.")
        if not (np.isfinite(odds).all() and np.isfinite(prior).all()):
            raise ModelError("the weights of naive Bayes are not all finite numbers; train the model again.")
        return cls(odds, prior)


def _log_shares(counts: Floats, alpha: float) -> Floats:
    return np.asarray(np.log(counts + alpha) - np.log(counts.sum(axis=0) + alpha * len(counts)))


@dataclass(frozen=True, slots=True)
class EstimatorBase:
    """Classifiers of another kind, one a unit; they stay in memory and cannot be saved."""

    fitted: list[Any]
    name: ClassVar[str] = "estimator"

    @classmethod
    def fit(cls, X: csr_array, questions: Questions, estimator: Any, sample_weight: Floats) -> EstimatorBase:
        """Fit a copy of the estimator to every question."""
        fitted = []
        with stage("training classifiers", len(questions.nodes)) as step:
            for unit in range(len(questions.nodes)):
                documents, y = questions.documents_of(unit)
                weight = sample_weight[documents]
                weighting = {} if np.all(weight == 1) else {"sample_weight": weight}
                fitted.append(clone(estimator).fit(X[documents], y, **weighting))
                step.advance()
        return cls(fitted)

    def score(self, X: csr_array) -> Floats:
        """Documents × units: their decision functions, or the log-odds of their probabilities."""
        columns = [_margins(estimator, X) for estimator in self.fitted]
        return np.column_stack(columns) if columns else np.zeros((X.shape[0], 0))

    @property
    def has_weights(self) -> bool:
        """Whether they are linear, as far as they tell."""
        return all(hasattr(self.fitted[0], part) for part in ("coef_", "intercept_", "decision_function"))

    def weights_of(self, unit: int, features: NDArray[np.int64]) -> tuple[Floats, float]:
        """Weights of a linear classifier; there are none to tell of another."""
        estimator = self.fitted[unit]
        if not self.has_weights:
            raise InputError(f"{type(estimator).__name__} has no weights that can be shown; use base='svm' or 'lr'.")
        coefficients = estimator.coef_.toarray() if issparse(estimator.coef_) else estimator.coef_
        return np.asarray(coefficients, dtype=np.float64).ravel()[features], float(np.ravel(estimator.intercept_)[0])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Model files hold no code, so there is no safe way to keep classifiers of another package."""
        raise InputError(
            f"a model with {type(self.fitted[0]).__name__} at its nodes cannot be saved, since model files hold no code; "
            "use base='svm', 'lr' or 'nb'."
        )


def _margins(estimator: Any, X: csr_array) -> Floats:
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(X), dtype=np.float64)
    p = np.clip(np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, 1], 1e-12, 1 - 1e-12)
    return np.asarray(np.log(p) - np.log1p(-p))
