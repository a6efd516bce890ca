"""Out-of-fold scores and class probabilities: every document is scored by a model that was not trained on it.

    P(class | document) ∝ exp(γ score + b(class))

γ maximizes the likelihood of held-out documents; b makes the expected number of documents of every class the observed one. With
only two numbers per score, outliers stay outliers: wrong labels are found in that tail. The probability of an inner node is
the sum over the classes at or below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from sklearn.base import clone

from ramify.calibration import MultiLabelCalibration
from ramify.classifier.fitting import fit_features, selector_for, unfitted_copy
from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.parallel import stage
from ramify.systems import find_system
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_specific

BLOCK_VALUES = 1 << 22  # documents × nodes of one block
SAMPLE_VALUES = 1 << 22  # documents × nodes that probabilities are fitted on
MIN_SAMPLE = 1000  # documents of a sample, however many nodes there are

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
ScoreFunction = Callable[[Any, NDArray[np.float32]], Any]  # of a learner and the scores of some documents


@dataclass(frozen=True, slots=True)
class OutOfFold:
    """Documents in folds, and for each fold a learner that was trained on the others.

    X: documents × features. own: documents × nodes, the most specific labels. fold: of every document. learners: one per fold.
    """

    X: csr_array
    own: csr_array
    taxonomy: Taxonomy
    vectorizer: Any
    fold: Ints
    learners: tuple[Any, ...]

    @property
    def classes(self) -> Ints:
        """The nodes that are most specific labels of documents."""
        return np.unique(self.own.indices).astype(np.int64)

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """Every label with its document: documents, and nodes."""
        return np.repeat(np.arange(self.own.shape[0]), np.diff(self.own.indptr)), self.own.indices.astype(np.int64)

    def has_training_documents(self) -> NDArray[np.bool_]:
        """For every pair: whether the learner of the document's fold was trained on documents with this label."""
        documents, nodes = self.pairs
        counts = np.zeros((len(self.learners), len(self.taxonomy)), dtype=np.int64)
        np.add.at(counts, (self.fold[documents], nodes), 1)
        return np.asarray((counts.sum(axis=0) - counts)[self.fold[documents], nodes] > 0)

    def sample(self, function: ScoreFunction) -> tuple[Any, csr_array]:
        """Some documents of all folds, or all of them: the function of their out-of-fold scores, and their labels."""
        n, enough = self.own.shape[0], max(MIN_SAMPLE, SAMPLE_VALUES // len(self.taxonomy))
        documents = np.arange(n) if n <= enough else np.sort(np.random.default_rng(0).permutation(n)[:enough])
        rows, values = zip(*self.blocks(documents, function), strict=True)
        return np.concatenate(values), self.own[np.concatenate(rows)]

    def blocks(self, documents: Ints, function: ScoreFunction) -> Iterator[tuple[Ints, Any]]:
        """The documents in blocks, each with the function of its out-of-fold scores."""
        at_once = max(1, BLOCK_VALUES // len(self.taxonomy))
        for k, learner in enumerate(self.learners):
            in_fold = documents[self.fold[documents] == k]
            for start in range(0, len(in_fold), at_once):
                rows = in_fold[start : start + at_once]
                yield rows, function(learner, learner.scores(self.X[rows]))


def fit_folds(classifier: TextClassifier, corpus: Corpus, parts: list[Ints]) -> OutOfFold:
    """Make features once, and train one learner per fold on the other folds."""
    system, taxonomy = find_system(classifier.system), classifier.taxonomy
    assert isinstance(taxonomy, Taxonomy)
    Y = taxonomy.encode(corpus.labels)
    taxonomy = taxonomy.with_main_parents(np.bincount(Y.indices, minlength=len(taxonomy)))
    vectorizer, learner = classifier.new_parts(system, taxonomy)
    X = fit_features(vectorizer, corpus.documents, selector_for(classifier.selector, learner), Y)
    fold, learners = np.zeros(len(corpus), dtype=np.int64), list[Any]()
    with stage("cross-validation", len(parts)) as step:
        for k, held_out in enumerate(parts):
            fold[held_out] = k
            rest = np.setdiff1d(np.arange(len(corpus)), held_out)
            made = unfitted_copy(learners[0]) if learners else clone(learner)
            learners.append(made.fit(X[rest], Y[rest]))
            step.advance()
    return OutOfFold(X, csr_array(most_specific(Y, taxonomy)), taxonomy, vectorizer, fold, tuple(learners))


# ---- one label per document ---------------------------------------------------------------------------------------------

SPREAD = 10.0  # between the best and the worst class, at the sharpness where the search starts
REACH = 6.0  # how far the logarithm of the sharpness may go from there
N_ROUNDS, SMOOTHING = 10, 5.0  # for the offsets, and documents that are added to those of every class
LOWEST_LOG = -30.0  # logarithm of the smallest probability


@dataclass(frozen=True, slots=True)
class Sample:
    """Some documents with out-of-fold scores.

    scores: documents × classes. rows, labels: every label with its document. weights: the labels of one document sum to 1.
    """

    scores: Floats
    rows: Ints
    labels: Ints
    weights: Floats

    @classmethod
    def of(cls, out_of_fold: OutOfFold) -> Self:
        """Documents of all folds."""
        classes = out_of_fold.classes
        scores, own = out_of_fold.sample(lambda learner, scores: class_scores(learner, scores, classes))
        counts = np.diff(own.indptr)
        rows = np.repeat(np.arange(len(counts)), counts)
        weights = 1 / np.repeat(counts, counts).astype(np.float64)
        return cls(scores, rows, own.indices.astype(np.int64), weights)


@dataclass(frozen=True, slots=True)
class ClassProbabilities:
    """Probabilities of classes, of which exactly one is right. classes: nodes. sharpness: γ. offsets: b of every class."""

    classes: Ints
    sharpness: float
    offsets: Floats

    @classmethod
    def fit(cls, sample: Sample, classes: Ints) -> Self:
        """Fit γ and b on out-of-fold scores."""
        columns = np.searchsorted(classes, sample.labels)
        is_finite = np.isfinite(sample.scores[sample.rows, columns])
        rows, columns, weights = sample.rows[is_finite], columns[is_finite], sample.weights[is_finite]
        lowest = np.min(np.where(np.isfinite(sample.scores), sample.scores, np.inf), axis=1)
        spread = float(np.mean(np.max(sample.scores, axis=1, initial=-np.inf) - lowest))
        unit = SPREAD / spread if spread > 0 else 1.0

        def loss(at: float) -> float:
            logs = unit * np.exp(at) * sample.scores
            return float(weights @ (_log_sums(logs)[rows] - logs[rows, columns]))

        found = minimize_scalar(loss, bounds=(-REACH, REACH), method="bounded", options={"xatol": 0.01})
        sharpness = float(unit * np.exp(found.x))
        logs, offsets = sharpness * sample.scores, np.zeros(len(classes))
        observed = np.bincount(columns, weights, minlength=len(classes))
        for _ in range(N_ROUNDS):
            expected = np.exp(_log_softmax(logs + offsets)).sum(axis=0)
            offsets += np.log((observed + SMOOTHING) / (expected + SMOOTHING))
        return cls(classes, sharpness, offsets)

    def __call__(self, learner: Any, scores: NDArray[np.float32]) -> Floats:
        """P(class), documents × classes, from the scores of a learner."""
        return self.predict(class_scores(learner, scores, self.classes))

    def predict(self, scores: Floats) -> Floats:
        """P(class), from the score of each class."""
        return np.exp(np.maximum(_log_softmax(self.sharpness * scores + self.offsets), LOWEST_LOG))


def class_scores(learner: Any, scores: NDArray[np.float32], classes: Ints) -> Floats:
    """The score of each class as a label, documents × classes; -inf where the learner was not trained on it."""
    found = np.asarray(learner.label_scores(scores)[:, classes], dtype=np.float64)
    return np.where(np.isnan(found), -np.inf, found)


def _log_softmax(logs: Floats) -> Floats:
    return np.asarray(logs - _log_sums(logs)[:, None])


def _log_sums(logs: Floats) -> Floats:
    """Logarithms of sums, one per row; every row has a finite value."""
    top = logs.max(axis=1)
    parts = logs - top[:, None]
    return np.asarray(top + np.log(np.exp(parts, out=parts).sum(axis=1)))


# ---- any number of labels per document ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Memberships:
    """Probabilities of classes, each on its own; for an inner node, that no child is a label."""

    classes: Ints
    calibration: MultiLabelCalibration
    taxonomy: Taxonomy

    @classmethod
    def fit(cls, out_of_fold: OutOfFold) -> Self:
        """Calibrate the out-of-fold probabilities."""
        P, own = out_of_fold.sample(lambda learner, scores: learner.memberships(scores))
        Y = expand_to_ancestors(own, out_of_fold.taxonomy)
        return cls(out_of_fold.classes, MultiLabelCalibration.fit(P, Y, out_of_fold.taxonomy), out_of_fold.taxonomy)

    def __call__(self, learner: Any, scores: NDArray[np.float32]) -> Floats:
        """P(the class is a most specific label of the document), documents × classes."""
        P = self.calibration.apply(learner.memberships(scores), self.taxonomy)
        found = P[:, self.classes]
        for place, node in enumerate(self.classes.tolist()):
            below = self.taxonomy.children_of(node)
            if len(below):
                found[:, place] -= P[:, below].max(axis=1)
        return found
