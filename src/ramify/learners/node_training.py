"""Training of one binary classifier per node: linear ones by our solver, naive Bayes, or any scikit-learn classifier.

A unit is a node with a classifier. Its training set is all documents, or those of the node's parent. Base classifiers are
fitted for all units at once and score documents × units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, issparse, vstack
from sklearn.base import clone

from ramify.calibration import Calibration, fit_calibration
from ramify.errors import InputError, ModelError
from ramify.learners.base import Scores
from ramify.learners.linear.dual_solver import TrainedWeights
from ramify.learners.linear.incremental import are_independent, has_same_parameters, reuse_or_train
from ramify.learners.linear.select_C import FOLDS, assign_folds, cross_validate_C
from ramify.learners.linear.taxonomy_ties import flat_units
from ramify.learners.linear.training import MOST_COST, Setup, seed_of, train, train_subsets, weigh_classes
from ramify.learners.linear.weights import Weights, are_moderate
from ramify.learners.targets import Targets
from ramify.learners.warm_start import match_columns
from ramify.native import rows_of, score_rows_in_place
from ramify.parallel import row_blocks, stage
from ramify.taxonomy import Taxonomy, expand_to_ancestors

if TYPE_CHECKING:
    from ramify.learners.node_classifiers import NodeClassifiers


MAX_WEIGHTS = 1 << 29  # of naive Bayes, words × nodes
BLOCK_WEIGHTS = 1 << 23  # that naive Bayes computes at a time
MAX_SCORES = 1 << 27  # held-out documents × nodes; beyond it calibration uses a part of the documents
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BinaryProblems:
    """The training sets of all units.

    positive, included: documents × units, the positive documents, and those in the training set; None where all are.
    nodes: of each unit. groups: units with the same number have the same training set; they are adjacent.
    """

    positive: csc_array
    included: csc_array | None
    nodes: NDArray[np.int64]
    groups: NDArray[np.int64]

    def of_documents(self, documents: NDArray[np.int64]) -> BinaryProblems:
        """The same with some of the documents."""
        included = None if self.included is None else csc_array(csr_array(self.included)[documents])
        return BinaryProblems(csc_array(csr_array(self.positive)[documents]), included, self.nodes, self.groups)

    def of_units(self, units: NDArray[np.int64]) -> BinaryProblems:
        """Some of the units."""
        included = None if self.included is None else self.included[:, units]
        return BinaryProblems(self.positive[:, units], included, self.nodes[units], self.groups[units])

    def documents_of(self, unit: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The training set of a unit, and whether each document is positive."""
        positive = self.positive.indices[self.positive.indptr[unit] : self.positive.indptr[unit + 1]]
        included, n = self.included, self.positive.shape[0]
        documents = np.arange(n) if included is None else included.indices[included.indptr[unit] : included.indptr[unit + 1]]
        return documents.astype(np.int64), np.isin(documents, positive)

    def count(self, sample_weight: Floats) -> tuple[Floats, Floats]:
        """By unit, the weight of its positive documents, and of its training set."""
        positive = self.positive.astype(np.float64).T @ sample_weight
        if self.included is None:
            return positive, np.full(len(positive), sample_weight.sum())
        return positive, self.included.astype(np.float64).T @ sample_weight


@dataclass(frozen=True, slots=True)
class LinearBase:
    """Linear SVMs or logistic regression by our solver.

    figures: objective and bound of every unit, where they are solved one by one.
    """

    weights: Weights
    gap: tuple[float, float, int]
    figures: Floats | None = None
    has_weights: ClassVar[bool] = True

    def score(self, X: csr_array) -> Floats:
        """Documents × units."""
        return self.weights.score(X).astype(np.float64)

    def weights_of(self, unit: int, features: NDArray[np.int64]) -> tuple[Floats, float]:
        """What each of some features adds to the score of a unit, and the bias."""
        return self.weights.at_features(unit, features)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As stored in a model file."""
        return self.weights.arrays() | ({} if self.figures is None else {"class_figures": self.figures})


@dataclass(frozen=True, slots=True)
class NaiveBayesBase:
    """Binary multinomial naive Bayes; its log-odds are linear in the counts.

    log_odds: words × units. prior: ln P(positive) / P(negative).
    """

    log_odds: NDArray[np.float32]
    prior: Floats
    has_weights: ClassVar[bool] = True

    @classmethod
    def fit(cls, X: csr_array, problems: BinaryProblems, alpha: float, sample_weight: Floats) -> NaiveBayesBase:
        """Count the words of positive and negative documents of every unit."""
        n_words, n_units = X.shape[1], len(problems.nodes)
        if X.data.size and X.data.min() < 0:
            raise InputError("Negative values in data passed to naive Bayes; it takes counts or weights of 0 and more.")
        if n_words * n_units > MAX_WEIGHTS:
            raise InputError(
                f"naive Bayes at the nodes has a weight for each of {n_words:,} words and {n_units:,} nodes, "
                f"which is more than {MAX_WEIGHTS:,}; raise min_df or set max_features."
            )
        odds = np.empty((n_words, n_units), dtype=np.float32)
        weighted = csr_array(X.multiply(sample_weight[:, None])).T
        in_all = np.asarray(weighted.sum(axis=1)).reshape(-1, 1)
        with stage("counting words by node", n_units) as step:
            at_once = max(1, BLOCK_WEIGHTS // max(1, n_words))
            for units in np.split(np.arange(n_units), range(at_once, n_units, at_once)):
                some = problems.of_units(units)
                positive = (weighted @ some.positive.astype(np.float64)).toarray()
                every = in_all if some.included is None else (weighted @ some.included.astype(np.float64)).toarray()
                negative = np.maximum(every - positive, 0)
                odds[:, units] = _log_probabilities(positive, alpha) - _log_probabilities(negative, alpha)
                step.advance(len(units))
        n_positive, n_included = problems.count(sample_weight)
        smallest = np.finfo(np.float64).tiny
        prior = np.log(np.maximum(n_positive, smallest)) - np.log(np.maximum(n_included - n_positive, smallest))
        return cls(odds, np.asarray(prior, dtype=np.float64))

    def score(self, X: csr_array) -> Floats:
        """Documents × units."""
        S = np.empty((X.shape[0], len(self.prior)), dtype=np.float64)
        score_rows_in_place(rows_of(X), self.log_odds, self.prior, S)
        return S

    def weights_of(self, unit: int, features: NDArray[np.int64]) -> tuple[Floats, float]:
        """What each of some words adds to the log-odds of a unit, and the prior."""
        return self.log_odds[features, unit].astype(np.float64), float(self.prior[unit])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As stored in a model file."""
        return {"log_odds": self.log_odds, "prior": self.prior}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], n_features: int, n_units: int) -> NaiveBayesBase:
        """Restore from a model file, after checking."""
        odds, prior = arrays["log_odds"], arrays["prior"]
        if odds.dtype != np.float32 or prior.dtype != np.float64:
            raise ModelError("the weights are of another type than naive Bayes writes; train the model again.")
        if odds.shape != (n_features, n_units) or prior.shape != (n_units,):
            raise ModelError("the weights of naive Bayes have shapes that do not fit together; train the model again.")
        if not (are_moderate(odds) and are_moderate(prior)):
            raise ModelError("the weights of naive Bayes are not all numbers that training gives; train the model again.")
        return cls(odds, prior)


def _log_probabilities(counts: Floats, alpha: float) -> Floats:
    return np.asarray(np.log(counts + alpha) - np.log(counts.sum(axis=0) + alpha * len(counts)))


@dataclass(frozen=True, slots=True)
class EstimatorBase:
    """Classifiers of scikit-learn's kind, one per unit; they cannot be saved."""

    fitted: list[Any]

    @classmethod
    def fit(cls, X: csr_array, problems: BinaryProblems, estimator: Any, sample_weight: Floats) -> EstimatorBase:
        """Fit a clone of the estimator for every unit."""
        fitted = []
        with stage("training classifiers", len(problems.nodes)) as step:
            for unit in range(len(problems.nodes)):
                documents, y = problems.documents_of(unit)
                weight = sample_weight[documents]
                weighting = {} if np.all(weight == 1) else {"sample_weight": weight}
                fitted.append(clone(estimator).fit(X[documents], y, **weighting))
                step.advance()
        return cls(fitted)

    def score(self, X: csr_array) -> Floats:
        """Documents × units: decision functions, or log-odds of probabilities."""
        S = np.zeros((X.shape[0], len(self.fitted)))
        for unit, estimator in enumerate(self.fitted):
            if hasattr(estimator, "decision_function"):
                S[:, unit] = np.ravel(estimator.decision_function(X))
            else:
                p = np.clip(np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, 1], 1e-12, 1 - 1e-12)
                S[:, unit] = np.log(p) - np.log1p(-p)
        return S

    @property
    def has_weights(self) -> bool:
        """Whether they are linear."""
        return all(hasattr(self.fitted[0], part) for part in ("coef_", "intercept_", "decision_function"))

    def weights_of(self, unit: int, features: NDArray[np.int64]) -> tuple[Floats, float]:
        """Weights of a linear classifier; refuses others."""
        estimator = self.fitted[unit]
        if not self.has_weights:
            raise InputError(f"{type(estimator).__name__} has no weights that can be shown; use base='svm' or 'lr'.")
        coefficients = estimator.coef_.toarray() if issparse(estimator.coef_) else estimator.coef_
        return np.asarray(coefficients, dtype=np.float64).ravel()[features], float(np.ravel(estimator.intercept_)[0])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Refused: model files hold no code."""
        raise InputError(
            f"a model with {type(self.fitted[0]).__name__} at its nodes cannot be saved, since model files hold no code; "
            "use base='svm', 'lr' or 'nb'."
        )


Base = LinearBase | NaiveBayesBase | EstimatorBase


@dataclass(frozen=True, slots=True)
class NodeTraining:
    """Documents, binary problems, and the learner whose parameters say how to train."""

    learner: NodeClassifiers
    X: csr_array
    units: BinaryProblems
    targets: Targets
    weight: NDArray[np.float64]

    def fit(self, setup: Setup | None, documents: Any = None, units: Any = None, reused: Any = None) -> Base:
        """Train classifiers for all units, or for some of them on some of the documents.

        reused: for every unit the one of an earlier learner to reuse, -1 where there is none.
        """
        learner, X, problems, weight = self.learner, self.X, self.units, self.weight
        if documents is not None:
            X, problems, weight = X[documents], problems.of_documents(documents).of_units(units), weight[documents]
        if setup is None and isinstance(learner.base, str):
            return NaiveBayesBase.fit(X, problems, float(learner.alpha), weight)
        if setup is None:
            return EstimatorBase.fit(X, problems, learner.base, weight)

        def train_all(problems: BinaryProblems) -> TrainedWeights:  # the objectives of units add up
            positive, included = problems.positive, problems.included
            costs = weigh_classes(positive, setup, self.targets.taxonomy, problems.nodes, weight)
            if included is None:
                return train(X, csr_array(positive), flat_units(problems.nodes), costs, setup)
            return train_subsets(X, positive, included, problems.groups, costs, setup)

        if reused is None or learner._warm_start is None:
            trained = train_all(problems)
        else:
            known = learner._warm_start.learner.base_
            trained = reuse_or_train(reused, known.weights, known.figures, lambda some: train_all(problems.of_units(some)))
        found = trained.certificate
        return LinearBase(trained.weights, (found.primal, found.dual, found.rounds), trained.figures)

    def cross_score(self, setup: Setup | None, training: Any, held_out: Any) -> Iterator[tuple[slice, Scores]]:
        """Scores of held-out documents, documents × units; -inf where a unit has no positive document, NaN where no other."""
        n_positive, n_included = self.units.of_documents(training).count(np.ones(len(training)))
        can = np.flatnonzero((n_positive > 0) & (n_positive < n_included))
        base = self.fit(setup, training, can) if len(can) else None
        for rows in row_blocks(len(held_out), 32 * len(self.units.nodes)):
            S = np.full((rows.stop - rows.start, len(self.units.nodes)), np.nan, dtype=np.float32)
            S[:, n_positive == 0] = -np.inf
            if base is not None:
                S[:, can] = base.score(self.X[held_out[rows]])
            yield rows, S

    def find_reusable(self, setup: Setup | None) -> NDArray[np.int64] | None:
        """For every unit one of an earlier learner with the same training set, or -1; None if none can be reused."""
        learner, before = self.learner, self.learner._warm_start
        if before is None or setup is None or not has_same_parameters(learner, before, setup.C):
            return None
        other = before.learner
        same = other.calibration == learner.calibration and other.negatives == learner.negatives and other.base == learner.base
        if not same or not isinstance(other.base_, LinearBase) or not are_independent(other.base_.weights, other.base_.figures):
            return None
        every = node_problems(before.own, other.taxonomy_.tree, learner.negatives == "parent")
        were = every.of_units(np.argsort(every.nodes)[other.unit_nodes_])
        if were.included is None or self.units.included is None:
            is_whole = were.included is None and self.units.included is None and before.has_same_documents
            return match_columns([before.renumber(were.positive)], [self.units.positive]) if is_whole else None
        parts = [before.renumber(csc_array(part)) for part in (were.positive, were.included)]
        return match_columns(parts, [csc_array(self.units.positive), csc_array(self.units.included)])

    def select_C(self, setup: Setup) -> tuple[float, dict[float, float]]:
        """Cross-validate C; a held-out document gets the nodes with scores of 0 or more, of those that include it."""
        included = None if self.units.included is None else csr_array(self.units.included)

        def attempt(training: Any, held_out: Any, setup: Setup, _: Any) -> tuple[csr_array, Any]:
            predicted = []
            for rows, S in self.cross_score(setup, training, held_out):
                positive = csr_array(np.nan_to_num(S, nan=-1.0) >= 0)
                predicted.append(positive if included is None else csr_array(positive.multiply(included[held_out[rows]])))
            return csr_array(vstack(predicted, format="csr")), None

        return cross_validate_C(csr_array(self.units.positive), setup, attempt)

    def calibrate_new(
        self, setup: Setup | None, reused: NDArray[np.int64] | None
    ) -> tuple[Calibration, tuple[NDArray[np.int64], Scores] | None]:
        """As :meth:`calibrate`, with the curves of reused units; held-out scores are then not known."""
        if reused is None or self.learner._warm_start is None:
            return self.calibrate(setup)
        fresh, known = np.flatnonzero(reused < 0), self.learner._warm_start.learner.calibration_
        place = reused.copy()
        place[fresh] = len(known) + np.arange(len(fresh))
        if not len(fresh):
            return known.take(place), None
        return known.append(replace(self, units=self.units.of_units(fresh)).calibrate(setup)[0]).take(place), None

    def calibrate(self, setup: Setup | None) -> tuple[Calibration, tuple[NDArray[np.int64], Scores]]:
        """Calibration curves for all units, and the held-out documents and scores that they were fitted on."""
        parts, listed, (n_docs, n_nodes) = [], [], self.targets.own.shape
        rng = np.random.default_rng(seed_of(self.learner.random_state))
        fold = assign_folds(self.targets.own, rng)
        fold[rng.permutation(n_docs)[max(FOLDS, MAX_SCORES // max(1, n_nodes)) :]] = -1  # never held out
        with stage("calibrating", FOLDS) as step:
            for training, held_out in ((np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(FOLDS)):
                if not 0 < len(held_out) < n_docs:
                    continue
                # a higher C for fewer documents keeps the balance of regularizer and loss
                scaled = None if setup is None else replace(setup, C=min(MOST_COST, setup.C * n_docs / len(training)))
                parts += [S for _, S in self.cross_score(scaled, training, held_out)]
                listed.append(held_out)
                step.advance()
        documents, margins = np.concatenate(listed), np.concatenate(parts)
        about = self.units.of_documents(documents)
        is_used = np.isfinite(margins) & (True if about.included is None else about.included.toarray())
        known = np.where(is_used, margins, np.float32(np.nan))
        curves = fit_calibration(str(self.learner.calibration), known, about.positive.toarray(), self.weight[documents])
        return curves, (documents, margins)


def node_problems(own: csr_array, taxonomy: Taxonomy, among_parents: bool) -> BinaryProblems:
    """One binary problem per node of a tree; those with the same training set are adjacent."""
    closed = csc_array(expand_to_ancestors(own, taxonomy))
    if not among_parents or taxonomy.n_levels == 1:
        nodes = np.arange(len(taxonomy), dtype=np.int64)
        return BinaryProblems(closed, None, nodes, np.zeros(len(nodes), dtype=np.int64))
    nodes = np.argsort(taxonomy.parent, kind="stable").astype(np.int64)
    parents, n_docs = taxonomy.parent[nodes].astype(np.int64), closed.shape[0]
    # one more column, for the roots: all documents
    offsets = np.append(closed.indptr, closed.nnz + n_docs)
    documents = np.concatenate([closed.indices, np.arange(n_docs)])
    with_all = csc_array((np.ones(len(documents), dtype=bool), documents, offsets), shape=(n_docs, len(taxonomy) + 1))
    included = with_all[:, np.where(parents < 0, len(taxonomy), parents)]
    return BinaryProblems(closed[:, nodes], csc_array(included), nodes, parents)
