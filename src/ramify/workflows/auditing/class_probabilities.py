"""How likely it is that a document ends at each class, where it ends at one of them.

    P(class | document) ∝ exp(γ fit + b(class))

γ has the highest likelihood on documents that were not learnt from; b gives every class as many documents as it has. Two
numbers are all there is for a fit, so what is far off stays far off: labels that are wrong are found in that tail.
Probabilities of nodes are sums of those of the classes at or below them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from ramify.calibration import MultiLabelCalibration
from ramify.taxonomy import Taxonomy, expand_to_ancestors
from ramify.workflows.auditing.out_of_fold import Floats, Ints, Unseen

SPREAD = 10.0  # between the best and the worst class, at the sharpness from which the search begins
REACH = 6.0  # how far the logarithm of the sharpness may go from there
TURNS, SMOOTHING = 10, 5.0  # for the offsets, and documents that are added to those of every class
FAINTEST = -30.0  # logarithm of the least probability


@dataclass(frozen=True, slots=True)
class Competition:
    """Probabilities of classes. classes: their nodes, in order. sharpness: γ. offsets: b of every class."""

    classes: Ints
    sharpness: float
    offsets: Floats

    @classmethod
    def learn(cls, sample: Sample, classes: Ints) -> Self:
        """From what learners say of some documents that they have not seen."""
        columns = np.searchsorted(classes, sample.labels)
        known = np.isfinite(sample.fits[sample.rows, columns])
        rows, columns, weights = sample.rows[known], columns[known], sample.weights[known]
        sharpness = _sharpest(sample.fits, rows, columns, weights)
        return cls(classes, sharpness, _offsets(sharpness * sample.fits, columns, weights))

    def __call__(self, learner: Any, scores: NDArray[np.float32]) -> Floats:
        """P(class), documents × classes."""
        return self.of(fits_of(learner, scores, self.classes))

    def of(self, fits: Floats) -> Floats:
        """P(class), from how well each fits."""
        return np.exp(np.maximum(_logarithms(self.sharpness * fits + self.offsets), FAINTEST))


@dataclass(frozen=True, slots=True)
class Sample:
    """Some documents that learners have not seen.

    fits: how well each class fits each. rows, labels: every label with its document. weights: one with several labels counts
    once for all together.
    """

    fits: Floats
    rows: Ints
    labels: Ints
    weights: Floats

    @classmethod
    def of(cls, unseen: Unseen) -> Self:
        """Documents of all folds."""
        classes = unseen.classes
        blocks = list(unseen.judged(unseen.sample(), lambda learner, scores: fits_of(learner, scores, classes)))
        own = unseen.own[np.concatenate([rows for rows, _ in blocks])]
        counts = np.diff(own.indptr)
        rows = np.repeat(np.arange(len(counts)), counts)
        weights = 1 / np.repeat(counts, counts).astype(np.float64)
        return cls(np.concatenate([block for _, block in blocks]), rows, own.indices.astype(np.int64), weights)


def fits_of(learner: Any, scores: NDArray[np.float32], classes: Ints) -> Floats:
    """How well each class fits, documents × classes; -inf where a learner does not know it."""
    fits = np.asarray(learner.label_scores(scores)[:, classes], dtype=np.float64)
    return np.where(np.isnan(fits), -np.inf, fits)


def _sharpest(fits: Floats, rows: Ints, columns: Ints, weights: Floats) -> float:
    finite = np.isfinite(fits)
    spread = float(np.mean(np.max(fits, axis=1, initial=-np.inf) - np.min(np.where(finite, fits, np.inf), axis=1)))
    unit = SPREAD / spread if spread > 0 else 1.0

    def loss(at: float) -> float:
        logs = unit * np.exp(at) * fits
        return float(weights @ (_log_sums(logs)[rows] - logs[rows, columns]))

    found = minimize_scalar(loss, bounds=(-REACH, REACH), method="bounded", options={"xatol": 0.01})
    return float(unit * np.exp(found.x))


def _offsets(logs: Floats, columns: Ints, weights: Floats) -> Floats:
    there = np.bincount(columns, weights, minlength=logs.shape[1])
    offsets = np.zeros(logs.shape[1])
    for _ in range(TURNS):
        given = np.exp(_logarithms(logs + offsets)).sum(axis=0)
        offsets += np.log((there + SMOOTHING) / (given + SMOOTHING))
    return offsets


def _logarithms(logs: Floats) -> Floats:
    return np.asarray(logs - _log_sums(logs)[:, None])


def _log_sums(logs: Floats) -> Floats:
    """Logarithms of sums, one a row; in every row something is finite."""
    top = logs.max(axis=1)
    parts = logs - top[:, None]
    return np.asarray(top + np.log(np.exp(parts, out=parts).sum(axis=1)))


# --------------------------------------------------------------------------------------------------------------
# How likely each class is a label of a document, where it may have any number of them.


@dataclass(frozen=True, slots=True)
class Memberships:
    """Probabilities of classes, each for itself; of an inner node, that no child is right."""

    classes: Ints
    calibration: MultiLabelCalibration
    taxonomy: Taxonomy

    @classmethod
    def learn(cls, unseen: Unseen) -> Self:
        """From what learners say of some documents that they have not seen."""
        blocks = list(unseen.judged(unseen.sample(), lambda learner, scores: learner.memberships(scores)))
        P = np.concatenate([block for _, block in blocks])
        Y = expand_to_ancestors(unseen.own[np.concatenate([rows for rows, _ in blocks])], unseen.taxonomy)
        return cls(unseen.classes, MultiLabelCalibration.fit(P, Y, unseen.taxonomy), unseen.taxonomy)

    def __call__(self, learner: Any, scores: NDArray[np.float32]) -> Floats:
        """P(a document has the class as a most specific label), documents × classes."""
        P = self.calibration.apply(learner.memberships(scores), self.taxonomy)
        found = P[:, self.classes]
        for place, node in enumerate(self.classes.tolist()):
            below = self.taxonomy.children_of(node)
            if len(below):
                found[:, place] -= P[:, below].max(axis=1)
        return found
