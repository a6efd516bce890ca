"""How labels go wrong: how often they slip to a class at each distance in the tree, learnt from labels that nearly cannot be.

A label is far off where the probability of its class is below a fraction of what is usual for classes as far from the likeliest
one. Probabilities say how many such labels there should be; those beyond that number slipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.taxonomy import Taxonomy, expand_to_ancestors
from ramify.workflows.auditing.class_probabilities import Competition, Sample
from ramify.workflows.auditing.out_of_fold import Floats, Ints

FAR_OFF = 0.2  # of what is usual
TRUST = 0.7  # the power to which rates count: those of neighbours are too high, since neighbours are confused as well
MOST_CLASSES = 8_000  # beyond them, all are taken to be equally far from each other


def distances_between(classes: Ints, taxonomy: Taxonomy) -> NDArray[np.int16]:
    """Steps in the tree between every two nodes: those at or above one of them and not the other.

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
    """Classes × nodes: whether a node is the class or lies above it."""
    ones = np.ones(len(classes), dtype=bool)
    own = csr_array((ones, classes, np.arange(len(classes) + 1)), shape=(len(classes), len(taxonomy)))
    return csr_array(expand_to_ancestors(own, taxonomy))


@dataclass(frozen=True, slots=True)
class Slips:
    """The chance that a label slips to one class at a distance.

    kind: of every two classes, the place of their distance in `distances`; 0 where the second lies above the first.
    rates: at each distance, to one class. shares: at each distance, of all labels.
    """

    distances: Ints
    kind: NDArray[np.int16]
    rates: Floats
    shares: Floats

    @classmethod
    def learn(cls, sample: Sample, competition: Competition, taxonomy: Taxonomy) -> Self:
        """From some documents that learners have not seen."""
        classes = competition.classes
        is_large = len(classes) > MOST_CLASSES
        between = 1 - np.eye(len(classes), dtype=np.int16) if is_large else distances_between(classes, taxonomy)
        distances = np.unique(between)
        kind = np.searchsorted(distances, between).astype(np.int16)
        kind[above_classes(classes, taxonomy)[:, classes].nonzero()] = 0  # a label above the right one is coarse, not wrong
        labels = sample.rows, np.searchsorted(classes, sample.labels)
        return cls(distances.astype(np.int64), kind, *_rates(competition.of(sample.fits), labels, kind, len(distances)))

    def onto(self, P: Floats, columns: Ints) -> Floats:
        """How likely a label slips to this class from any other, for rows of probabilities and a class each."""
        return np.asarray(np.einsum("ij,ij->i", P, (self.rates**TRUST)[self.kind.T[columns]]))


def _rates(P: Floats, labels: tuple[Ints, Ints], kind: NDArray[np.int16], n_kinds: int) -> tuple[Floats, Floats]:
    """Rates to one class, and shares of labels, at every distance; none slips to where it is."""
    kinds = kind[P.argmax(axis=1)]
    of_label, p = kinds[labels], P[labels]
    pairs, there = (np.bincount(each.ravel(), minlength=n_kinds) for each in (kinds, of_label))
    bound = FAR_OFF * there / np.maximum(pairs, 1)
    is_far = bound[kinds] > P
    far = np.bincount(kinds[is_far], minlength=n_kinds)
    expected = np.bincount(kinds[is_far], P[is_far], minlength=n_kinds)
    seen = np.bincount(of_label[p < bound[of_label]], minlength=n_kinds)
    beyond = np.maximum(seen - expected, 0)
    rates, shares = (beyond + 1) / (far + 1), beyond * pairs / np.maximum(far, 1) / max(1, len(p))
    rates[0] = shares[0] = 0.0
    return rates, shares


def usual_confusions(taken: Ints, columns: Ints, n_classes: int, smoothing: float = 10.0) -> Any:
    """Of documents that are taken for a class: how many bear a label, for one that bears the class's own.

    Gives a function of two arrays: what documents are taken for, and labels.
    """
    base = np.bincount(columns, minlength=n_classes) / max(1, len(columns))
    total = np.bincount(taken, minlength=n_classes)
    keys, counts = np.unique(taken * n_classes + columns, return_counts=True)

    def share(of: Ints, label: Ints) -> Floats:
        key = of * n_classes + label
        place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        count = np.where(keys[place] == key, counts[place], 0)
        return np.asarray((count + smoothing * base[label]) / (total[of] + smoothing))

    return lambda of, label: share(of, label) / share(of, of)
