"""Siblings that cannot be distinguished: their documents are assigned to one or the other hardly better than by guessing.

A document of one of two siblings is assigned correctly where the out-of-fold probability of its own sibling, divided by that
sibling's size, is higher. Both siblings have the same weight, so that guessing has an accuracy of one half however large they are.
Siblings are reported where the accuracy is significantly below two thirds: a one-sided test, corrected by Holm's method for all pairs
that were tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array
from scipy.stats import norm

from ramify.taxonomy import Taxonomy, expand_to_ancestors
from ramify.workflows.auditing.noise_model import above_classes
from ramify.workflows.auditing.out_of_fold import Floats, Ints, OutOfFold

USEFUL = 2 / 3  # accuracy from which on two siblings can be distinguished
LEVEL = 0.05
MIN_DOCUMENTS = 10  # of each sibling, for a test


@dataclass(frozen=True, slots=True)
class InseparablePair:
    """Two siblings that cannot be distinguished.

    first, second: nodes. documents: of each, without those of both. correct: how many of each were assigned to their own side.
    accuracy: mean of both sides. p_value: of the hypothesis that two of three are right.
    """

    first: int
    second: int
    documents: tuple[int, int]
    correct: tuple[int, int]
    accuracy: float
    p_value: float


class SiblingConfusions:
    """Counts how often siblings lose documents to each other."""

    def __init__(self, out_of_fold: OutOfFold, classes: Ints) -> None:
        self.Y = csr_array(expand_to_ancestors(out_of_fold.own, out_of_fold.taxonomy))
        self.groups = siblings_of(out_of_fold.taxonomy)
        self.above = above_classes(classes, out_of_fold.taxonomy).astype(np.float64)
        self.sizes = np.maximum(np.bincount(self.Y.indices, minlength=len(out_of_fold.taxonomy)), 1)
        self.lost = csr_array((len(out_of_fold.taxonomy),) * 2, dtype=np.int64)

    def add(self, rows: Ints, P: Floats) -> None:
        """Add some documents; P: probability of each class."""
        nodes, has = np.asarray(P @ self.above) / self.sizes, self.Y[rows].toarray().astype(bool)
        parts = [np.zeros((2, 0), dtype=np.int64), *(part for group in self.groups for part in _lost_among(group, nodes, has))]
        at = np.concatenate(parts, axis=1)
        self.lost = self.lost + csr_array((np.ones(at.shape[1], dtype=np.int64), (at[0], at[1])), shape=self.lost.shape)

    def inseparable(self) -> list[InseparablePair]:
        """All pairs of siblings that cannot be distinguished, the lowest accuracy first."""
        sizes = np.diff(csc_array(self.Y).indptr).astype(np.int64)
        n_tested = sum(int(n * (n - 1) // 2) for n in ((sizes[group] >= MIN_DOCUMENTS).sum() for group in self.groups))
        confused = coo_array(self.lost + self.lost.T)
        a, b = (each[confused.row < confused.col].astype(np.int64) for each in (confused.row, confused.col))
        both = np.asarray(_count_both(self.Y, self.groups)[a, b]).ravel()
        documents = sizes[a] - both, sizes[b] - both
        correct = (documents[0] - np.asarray(self.lost[a, b]).ravel(), documents[1] - np.asarray(self.lost[b, a]).ravel())
        enough = np.flatnonzero((documents[0] >= MIN_DOCUMENTS) & (documents[1] >= MIN_DOCUMENTS))
        rows = zip(*(each[enough].tolist() for each in (a, b, *documents, *correct)), strict=True)
        found = [compare_pair(a, b, (n, m), (r, s)) for a, b, n, m, r, s in rows]
        return _corrected(found, n_tested)


def siblings_of(taxonomy: Taxonomy) -> list[Ints]:
    """Every group of two or more siblings; the roots are one of them."""
    groups = [taxonomy.roots, *(taxonomy.children_of(node) for node in np.flatnonzero(~taxonomy.is_leaf).tolist())]
    return [np.asarray(group, dtype=np.int64) for group in groups if len(group) > 1]


def compare_pair(first: int, second: int, documents: tuple[int, int], correct: tuple[int, int]) -> InseparablePair:
    """The accuracy of two siblings and its p-value.

    >>> compare_pair(1, 2, (50, 100), (25, 50)).accuracy
    0.5
    """
    accuracy = (correct[0] / documents[0] + correct[1] / documents[1]) / 2
    error = np.sqrt(USEFUL * (1 - USEFUL) * (1 / documents[0] + 1 / documents[1])) / 2
    return InseparablePair(first, second, documents, correct, float(accuracy), float(norm.cdf((accuracy - USEFUL) / error)))


def _lost_among(group: Ints, P: Floats, has: Any) -> Iterator[Any]:
    """Pairs of siblings, once for every document that is lost to the second."""
    for k in np.flatnonzero(has[:, group].any(axis=0)).tolist():
        own = np.flatnonzero(has[:, group[k]])
        is_lost = (P[np.ix_(own, group)] >= P[own, group[k], None]) & ~has[np.ix_(own, group)]
        to = group[np.nonzero(is_lost)[1]]
        yield np.stack([np.full(len(to), group[k]), to])


def _count_both(Y: csr_array, groups: list[Ints]) -> csr_array:
    """Nodes × nodes: documents that have both of two siblings."""
    multiple = csr_array(Y[np.flatnonzero(np.diff(Y.indptr) > 1)]).astype(np.int64)
    together = csr_array((Y.shape[1], Y.shape[1]), dtype=np.int64)
    for group in groups:
        has = multiple[:, group]
        has = csr_array(has[np.flatnonzero(np.diff(has.indptr) > 1)])
        found = coo_array(has.T @ has)
        together = together + coo_array((found.data, (group[found.row], group[found.col])), shape=together.shape).tocsr()
    return csr_array(together)


def _corrected(found: list[InseparablePair], n_tested: int) -> list[InseparablePair]:
    """The significant pairs by Holm's method; pairs that lose nothing are counted, too."""
    significant, height = list[InseparablePair](), 0.0
    for place, pair in enumerate(sorted(found, key=lambda pair: (pair.p_value, pair.first, pair.second))):
        height = min(1.0, max(height, (max(n_tested, len(found)) - place) * pair.p_value))
        if height >= LEVEL:
            break
        significant.append(InseparablePair(pair.first, pair.second, pair.documents, pair.correct, pair.accuracy, height))
    return sorted(significant, key=lambda pair: (pair.accuracy, pair.first, pair.second))
