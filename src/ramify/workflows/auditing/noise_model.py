"""Noise model: how often a label was replaced by a class at each distance in the tree.

It is estimated from labels with a very low probability: below a fraction of the average for classes as far from the most
likely one. The class probabilities give the expected number of such labels; those beyond that number are noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.taxonomy import Taxonomy, expand_to_ancestors
from ramify.workflows.auditing.out_of_fold import ClassProbabilities, Floats, Ints, Sample

FAR_OFF = 0.2  # of the average probability
TRUST = 0.7  # exponent of the rates: those of close classes are too high, since a classifier confuses them as well
MAX_CLASSES = 8_000  # with more of them, all are taken as equally far from each other


def distances_between(classes: Ints, taxonomy: Taxonomy) -> NDArray[np.int16]:
    """Steps in the tree between every two nodes: the number of nodes at or above exactly one of them.

    >>> food = Taxonomy.from_paths(["fruit/apple", "fruit/pear", "bread"])
    >>> distances_between(np.arange(4), food).tolist()
    [[0, 1, 1, 2], [1, 0, 2, 3], [1, 2, 0, 3], [2, 3, 3, 0]]
    """
    above = above_classes(classes, taxonomy).astype(np.float32)
    sizes = np.diff(above.indptr).astype(np.float32)
    found = np.empty((len(classes), len(classes)), dtype=np.int16)
    for start in range(0, len(classes), 500):
        rows = slice(start, start + 500)
        found[rows] = sizes[rows, None] + sizes - 2 * (above[rows] @ above.T).toarray()
    return found


def above_classes(classes: Ints, taxonomy: Taxonomy) -> csr_array:
    """Classes × nodes: whether a node is the class or an ancestor of it."""
    ones = np.ones(len(classes), dtype=bool)
    own = csr_array((ones, classes, np.arange(len(classes) + 1)), shape=(len(classes), len(taxonomy)))
    return csr_array(expand_to_ancestors(own, taxonomy))


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """The probability that a label was replaced by one class at a distance.

    kind: of every two classes, the place of their distance in `distances`; 0 where the second is an ancestor of the first.
    rates: at each distance, to one class. fractions: at each distance, of all labels.
    """

    distances: Ints
    kind: NDArray[np.int16]
    rates: Floats
    fractions: Floats

    @classmethod
    def fit(cls, sample: Sample, probabilities: ClassProbabilities, taxonomy: Taxonomy) -> Self:
        """Estimate the rates from out-of-fold probabilities."""
        classes = probabilities.classes
        is_large = len(classes) > MAX_CLASSES
        between = 1 - np.eye(len(classes), dtype=np.int16) if is_large else distances_between(classes, taxonomy)
        distances = np.unique(between)
        kind = np.searchsorted(distances, between).astype(np.int16)
        kind[above_classes(classes, taxonomy)[:, classes].nonzero()] = 0  # a label above the right one is coarse, not wrong
        P, labels = probabilities.predict(sample.scores), (sample.rows, np.searchsorted(classes, sample.labels))
        return cls(distances.astype(np.int64), kind, *_rates(P, labels, kind, len(distances)))

    def probability(self, P: Floats, columns: Ints) -> Floats:
        """How likely a label of another class was replaced by this one, for rows of probabilities and a class each."""
        return np.asarray(np.einsum("ij,ij->i", P, (self.rates**TRUST)[self.kind.T[columns]]))


def _rates(P: Floats, labels: tuple[Ints, Ints], kind: NDArray[np.int16], n_kinds: int) -> tuple[Floats, Floats]:
    """Rates to one class, and fractions of all labels, at every distance; 0 at distance 0."""
    kinds = kind[P.argmax(axis=1)]
    of_label, p = kinds[labels], P[labels]
    pairs, given = (np.bincount(each.ravel(), minlength=n_kinds) for each in (kinds, of_label))
    bound = FAR_OFF * given / np.maximum(pairs, 1)
    is_far = bound[kinds] > P
    far = np.bincount(kinds[is_far], minlength=n_kinds)
    expected = np.bincount(kinds[is_far], P[is_far], minlength=n_kinds)
    observed = np.bincount(of_label[p < bound[of_label]], minlength=n_kinds)
    excess = np.maximum(observed - expected, 0)
    rates, fractions = (excess + 1) / (far + 1), excess * pairs / np.maximum(far, 1) / max(1, len(p))
    rates[0] = fractions[0] = 0.0
    return rates, fractions


def usual_confusions(predicted: Ints, columns: Ints, n_classes: int, smoothing: float = 10.0) -> Callable[[Ints, Ints], Floats]:
    """A function of predicted classes and labels: how common a label is there, relative to that of the class itself."""
    base = np.bincount(columns, minlength=n_classes) / max(1, len(columns))
    total = np.bincount(predicted, minlength=n_classes)
    keys, counts = np.unique(predicted * n_classes + columns, return_counts=True)

    def fraction(of: Ints, label: Ints) -> Floats:
        key = of * n_classes + label
        place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        count = np.where(keys[place] == key, counts[place], 0)
        return np.asarray((count + smoothing * base[label]) / (total[of] + smoothing))

    return lambda of, label: fraction(of, label) / fraction(of, of)
