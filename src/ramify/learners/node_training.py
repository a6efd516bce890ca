"""What may sit at a node: linear classifiers of our own, naive Bayes, or any classifier that keeps to scikit-learn's rules.

A base learns one yes or no a unit, each from the documents that it is asked about, and scores documents × units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, issparse, vstack
from sklearn.base import clone

from ramify.calibration import Calibration, fit_calibration
from ramify.errors import InputError, ModelError
from ramify.learners.base import Scores
from ramify.learners.linear.incremental import has_same_parameters, reuse_or_train
from ramify.learners.linear.select_C import FOLDS, assign_folds, cross_validate_C
from ramify.learners.linear.taxonomy_ties import flat_units
from ramify.learners.linear.training import (
    MOST_COST,
    Setup,
    TrainedWeights,
    seed_of,
    train,
    train_subsets,
    weigh_classes,
)
from ramify.learners.linear.weights import Weights
from ramify.learners.targets import Targets
from ramify.learners.warm_start import match_columns
from ramify.native import score_rows_in_place
from ramify.parallel import row_blocks, stage
from ramify.taxonomy import Taxonomy, expand_to_ancestors

if TYPE_CHECKING:
    from ramify.learners.node_classifiers import NodeClassifiers


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

            def train_some(some: NDArray[np.int64]) -> TrainedWeights:
                return _train(X, questions.of_units(some), taxonomy, setup, sample_weight)

            trained = reuse_or_train(taken, known.weights, known.figures, train_some)
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


def _train(X: csr_array, questions: Questions, taxonomy: Taxonomy, setup: Setup, sample_weight: Floats) -> TrainedWeights:
    positive, asked = questions.positive, questions.asked
    costs = weigh_classes(positive, setup, taxonomy, questions.nodes, sample_weight)
    if asked is None:
        return train(X, csr_array(positive), flat_units(questions.nodes), costs, setup)
    return train_subsets(X, positive, asked, questions.groups, costs, setup)


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


# --------------------------------------------------------------------------------------------------------------
# How node classifiers are trained: who is asked what, at which cost, and on which documents they are calibrated.


MAX_SCORES = 1 << 27  # held-out documents × nodes; beyond it some of the documents must do for calibration


@dataclass(frozen=True, slots=True)
class Task:
    """Questions about documents, for a learner that says how they are to be learnt."""

    learner: NodeClassifiers
    X: csr_array
    units: Questions
    targets: Targets
    weight: NDArray[np.float64]

    def fit(self, setup: Setup | None, documents: Any = None, units: Any = None, taken: Any = None) -> Base:
        """Classifiers for all units, or for some of them from some of the documents.

        taken: for every unit the one of an earlier learner that is taken over, -1 where there is none.
        """
        learner, X, questions, weight = self.learner, self.X, self.units, self.weight
        if documents is not None:
            X, questions, weight = X[documents], questions.of_documents(documents).of_units(units), weight[documents]
        if setup is not None:
            before = None if taken is None or learner._warm_start is None else learner._warm_start.learner.base_
            return LinearBase.fit(X, questions, self.targets.taxonomy, setup, weight, taken, before)
        if isinstance(learner.base, str):
            return NaiveBayesBase.fit(X, questions, float(learner.alpha), weight)
        return EstimatorBase.fit(X, questions, learner.base, weight)

    def cross_score(self, setup: Setup | None, learnt: Any, held_out: Any) -> Iterator[tuple[slice, Scores]]:
        """Scores of documents by classifiers that learnt from others, documents × units; NaN where these could not learn."""
        n_yes, n_asked = self.units.of_documents(learnt).count(np.ones(len(learnt)))
        can = np.flatnonzero((n_yes > 0) & (n_yes < n_asked))
        base = self.fit(setup, learnt, can) if len(can) else None
        for rows in row_blocks(len(held_out), 32 * len(self.units.nodes)):
            S = np.full((rows.stop - rows.start, len(self.units.nodes)), np.nan, dtype=np.float32)
            if base is not None:
                S[:, can] = base.score(self.X[held_out[rows]])
            yield rows, S

    def find_same(self, setup: Setup | None) -> NDArray[np.int64] | None:
        """For every unit one of an earlier learner that was asked about the same documents; None where none counts."""
        learner, before = self.learner, self.learner._warm_start
        if before is None or setup is None or not has_same_parameters(learner, before, setup.C):
            return None
        other = before.learner
        same = other.calibration == learner.calibration and other.negatives == learner.negatives and other.base == learner.base
        if not same or not isinstance(other.base_, LinearBase) or other.base_.figures is None:
            return None
        asked = ask_nodes(before.own, other.taxonomy_, learner.negatives == "parent")
        were = asked.of_units(np.argsort(asked.nodes)[other.unit_nodes_])
        if were.asked is None or self.units.asked is None:
            is_whole = were.asked is None and self.units.asked is None and before.has_same_documents
            return match_columns([before.now(were.positive)], [self.units.positive]) if is_whole else None
        parts = [before.now(csc_array(part)) for part in (were.positive, were.asked)]
        return match_columns(parts, [csc_array(self.units.positive), csc_array(self.units.asked)])

    def select_C(self, setup: Setup) -> tuple[float, dict[float, float]]:
        """A held-out document gets the nodes, of those that it is asked about, whose score is not below 0."""
        asked = None if self.units.asked is None else csr_array(self.units.asked)

        def attempt(learnt: Any, held_out: Any, setup: Setup, _: Any) -> tuple[csr_array, Any]:
            given = []
            for rows, S in self.cross_score(setup, learnt, held_out):
                yes = csr_array(np.nan_to_num(S, nan=-1.0) >= 0)
                given.append(yes if asked is None else csr_array(yes.multiply(asked[held_out[rows]])))
            return csr_array(vstack(given, format="csr")), None

        return cross_validate_C(csr_array(self.units.positive), setup, attempt)

    def calibrate_others(
        self, setup: Setup | None, taken: NDArray[np.int64] | None
    ) -> tuple[Calibration, tuple[NDArray[np.int64], Scores] | None]:
        """The same as :meth:`calibrate`, with the curves of units that are taken over; held-out scores are then not known."""
        if taken is None or self.learner._warm_start is None:
            return self.calibrate(setup)
        fresh, known = np.flatnonzero(taken < 0), self.learner._warm_start.learner.calibration_
        place = taken.copy()
        place[fresh] = len(known) + np.arange(len(fresh))
        if not len(fresh):
            return known.take(place), None
        return known.append(replace(self, units=self.units.of_units(fresh)).calibrate(setup)[0]).take(place), None

    def calibrate(self, setup: Setup | None) -> tuple[Calibration, tuple[NDArray[np.int64], Scores]]:
        """Curves for all units, and the held-out documents and scores that they were learnt from."""
        parts, kept, n_docs = [], [], self.X.shape[0]
        most = max(FOLDS, MAX_SCORES // max(1, len(self.targets.taxonomy)))
        with stage("calibrating", FOLDS) as step:
            for learnt, held_out in fold_documents(self.targets.own, seed_of(self.learner.random_state), most):
                # with fewer documents a higher cost, so that weights and loss stand as they do with all of them
                alike = None if setup is None else replace(setup, C=min(MOST_COST, setup.C * n_docs / len(learnt)))
                parts += [S for _, S in self.cross_score(alike, learnt, held_out)]
                kept.append(held_out)
                step.advance()
        documents, margins = np.concatenate(kept), np.concatenate(parts)
        about = self.units.of_documents(documents)
        answered = margins if about.asked is None else np.where(about.asked.toarray(), margins, np.float32(np.nan))
        curves = fit_calibration(str(self.learner.calibration), answered, about.positive.toarray(), self.weight[documents])
        return curves, (documents, margins)


def ask_nodes(own: csr_array, taxonomy: Taxonomy, among_parents: bool) -> Questions:
    """One question a node; those asked among the same documents stand together."""
    closed = csc_array(expand_to_ancestors(own, taxonomy))
    if not among_parents or taxonomy.n_levels == 1:
        nodes = np.arange(len(taxonomy), dtype=np.int64)
        return Questions(closed, None, nodes, np.zeros(len(nodes), dtype=np.int64))
    nodes = np.argsort(taxonomy.parent, kind="stable").astype(np.int64)
    parents = taxonomy.parent[nodes].astype(np.int64)
    n_docs = closed.shape[0]
    # one more column, for the roots: everyone is asked
    offsets = np.append(closed.indptr, closed.nnz + n_docs)
    documents = np.concatenate([closed.indices, np.arange(n_docs)])
    ones = np.ones(len(documents), dtype=bool)
    with_everyone = csc_array((ones, documents, offsets), shape=(n_docs, len(taxonomy) + 1))
    asked = with_everyone[:, np.where(parents < 0, len(taxonomy), parents)]
    return Questions(closed[:, nodes], csc_array(asked), nodes, parents)


def fold_documents(own: csr_array, seed: int, most: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Documents to learn from and documents held out, at most so many in all; those of a class are spread over the folds."""
    n_docs, rng = own.shape[0], np.random.default_rng(seed)
    fold = assign_folds(own, rng)
    fold[rng.permutation(n_docs)[most:]] = -1
    for k in range(FOLDS):
        held_out = np.flatnonzero(fold == k)
        if 0 < len(held_out) < n_docs:
            yield np.flatnonzero(fold != k), held_out
