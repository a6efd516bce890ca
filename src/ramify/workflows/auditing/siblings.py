"""Siblings that cannot be told apart: their documents are given to one or the other hardly better than by guessing.

A document of one of two siblings is right where its own side is likelier than the other for its size, by a learner that has not
seen it. Each side counts as much as the other, so that guessing is right in half of the cases however large the two are.
Siblings are named where it is sure that fewer than two of three are right: a one-sided test, corrected after Holm for all
pairs that were tested.
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
from ramify.workflows.auditing.out_of_fold import Floats, Ints, Unseen

USEFUL = 2 / 3  # right answers from which on two siblings can be told apart
LEVEL = 0.05
ENOUGH = 10  # documents of each, for a test


@dataclass(frozen=True, slots=True)
class Inseparable:
    """Two siblings that cannot be told apart.

    first, second: nodes. documents: of each, without those of both. right: how many of each were given to their side.
    share: of right answers, both sides counting alike. p_value: that so few are right where two of three should be.
    """

    first: int
    second: int
    documents: tuple[int, int]
    right: tuple[int, int]
    share: float
    p_value: float


class Rivals:
    """Counts, some documents at a time, how often siblings lose documents to each other."""

    def __init__(self, unseen: Unseen, classes: Ints) -> None:
        self.Y = csr_array(expand_to_ancestors(unseen.own, unseen.taxonomy))
        self.sides = siblings_of(unseen.taxonomy)
        self.above = above_classes(classes, unseen.taxonomy).astype(np.float64)
        self.sizes = np.maximum(np.bincount(self.Y.indices, minlength=len(unseen.taxonomy)), 1)
        self.lost = csr_array((len(unseen.taxonomy),) * 2, dtype=np.int64)

    def look(self, rows: Ints, P: Floats) -> None:
        """Take in some documents; P: how likely each class is."""
        nodes, has = np.asarray(P @ self.above) / self.sizes, self.Y[rows].toarray().astype(bool)
        parts = [np.zeros((2, 0), dtype=np.int64), *(part for group in self.sides for part in _lost_among(group, nodes, has))]
        at = np.concatenate(parts, axis=1)
        self.lost = self.lost + csr_array((np.ones(at.shape[1], dtype=np.int64), (at[0], at[1])), shape=self.lost.shape)

    def find(self) -> list[Inseparable]:
        """All pairs of siblings that cannot be told apart, worst first."""
        sizes = np.diff(csc_array(self.Y).indptr).astype(np.int64)
        n_tested = sum(int(n * (n - 1) // 2) for n in ((sizes[group] >= ENOUGH).sum() for group in self.sides))
        met = coo_array(self.lost + self.lost.T)
        a, b = (each[met.row < met.col].astype(np.int64) for each in (met.row, met.col))
        both = np.asarray(_count_both(self.Y, self.sides)[a, b]).ravel()
        documents = sizes[a] - both, sizes[b] - both
        right = (documents[0] - np.asarray(self.lost[a, b]).ravel(), documents[1] - np.asarray(self.lost[b, a]).ravel())
        enough = np.flatnonzero((documents[0] >= ENOUGH) & (documents[1] >= ENOUGH))
        rows = zip(*(each[enough].tolist() for each in (a, b, *documents, *right)), strict=True)
        found = [tell_apart(a, b, (n, m), (r, s)) for a, b, n, m, r, s in rows]
        return _corrected(found, n_tested)


def siblings_of(taxonomy: Taxonomy) -> list[Ints]:
    """Every group of two or more siblings; the roots are one of them."""
    groups = [taxonomy.roots, *(taxonomy.children_of(node) for node in np.flatnonzero(~taxonomy.is_leaf).tolist())]
    return [np.asarray(group, dtype=np.int64) for group in groups if len(group) > 1]


def tell_apart(first: int, second: int, documents: tuple[int, int], right: tuple[int, int]) -> Inseparable:
    """What the counts of two siblings say.

    >>> tell_apart(1, 2, (50, 100), (25, 50)).share
    0.5
    """
    share = (right[0] / documents[0] + right[1] / documents[1]) / 2
    spread = np.sqrt(USEFUL * (1 - USEFUL) * (1 / documents[0] + 1 / documents[1])) / 2
    return Inseparable(first, second, documents, right, float(share), float(norm.cdf((share - USEFUL) / spread)))


def _lost_among(group: Ints, P: Floats, has: Any) -> Iterator[Any]:
    """Pairs of siblings, once for every document that is lost to the second."""
    for k in np.flatnonzero(has[:, group].any(axis=0)).tolist():
        mine = np.flatnonzero(has[:, group[k]])
        is_lost = (P[np.ix_(mine, group)] >= P[mine, group[k], None]) & ~has[np.ix_(mine, group)]
        to = group[np.nonzero(is_lost)[1]]
        yield np.stack([np.full(len(to), group[k]), to])


def _count_both(Y: csr_array, sides: list[Ints]) -> csr_array:
    """Nodes × nodes: documents that have both of two siblings."""
    several = csr_array(Y[np.flatnonzero(np.diff(Y.indptr) > 1)]).astype(np.int64)
    together = csr_array((Y.shape[1], Y.shape[1]), dtype=np.int64)
    for group in sides:
        has = several[:, group]
        has = csr_array(has[np.flatnonzero(np.diff(has.indptr) > 1)])
        found = coo_array(has.T @ has)
        together = together + coo_array((found.data, (group[found.row], group[found.col])), shape=together.shape).tocsr()
    return csr_array(together)


def _corrected(found: list[Inseparable], n_tested: int) -> list[Inseparable]:
    """Those that are sure, after Holm; pairs that lose nothing count, too."""
    named, height = list[Inseparable](), 0.0
    for place, pair in enumerate(sorted(found, key=lambda pair: (pair.p_value, pair.first, pair.second))):
        height = min(1.0, max(height, (max(n_tested, len(found)) - place) * pair.p_value))
        if height >= LEVEL:
            break
        named.append(Inseparable(pair.first, pair.second, pair.documents, pair.right, pair.share, height))
    return sorted(named, key=lambda pair: (pair.share, pair.first, pair.second))
