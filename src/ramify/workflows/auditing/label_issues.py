"""Detection of label issues, ranked by how likely they are.

The score of a label g of document x is

    ln Σ_t P(t | x) noise(t → g) − ln P(g | x) − ln usual(s, g)

It compares how likely it is that another label was replaced by g with how likely g is right, and subtracts how common g is
among documents predicted as the same class s as x: classes that are always confused are reported as siblings that cannot be
distinguished. An inner node is right where a class below it is. Each label of a document is scored without the others. In
multi-label corpora a label may also be missing; its score is its log odds.

Siblings that cannot be distinguished are those whose documents are assigned to one or the other hardly better than by guessing.
A document of one of two siblings is assigned correctly where the out-of-fold probability of its own sibling, divided by that
sibling's size, is higher. Both siblings have the same weight, so that guessing has an accuracy of one half however large
they are. Siblings are reported where the accuracy is significantly below two thirds: a one-sided test, corrected by Holm's
method for all pairs that were tested.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array
from scipy.stats import norm

from ramify.taxonomy import Taxonomy, expand_to_ancestors
from ramify.workflows.auditing.noise_model import NoiseModel, above_classes, usual_confusions
from ramify.workflows.auditing.out_of_fold import Floats, Ints, OutOfFold

KINDS = ("wrong", "extra", "missing")
NO_NODE = -1  # where no label is suggested, or none is given
TINY = 1e-13


@dataclass(frozen=True, slots=True)
class RankedIssues:
    """Label issues as arrays, the most likely first. given, suggested: nodes, or NO_NODE. kinds: places in KINDS."""

    documents: Ints
    given: Ints
    suggested: Ints
    kinds: Ints
    p_given: Floats
    p_suggested: Floats
    scores: Floats

    def __len__(self) -> int:
        return len(self.documents)

    def ranked(self, is_issue: NDArray[np.bool_]) -> RankedIssues:
        """Those that are issues, by score, then by position."""
        order = np.lexsort((self.documents, -self.scores))
        order = order[is_issue[order]]
        return RankedIssues(*(array[order] for array in astuple(self)))


# ---- labels that are given ------------------------------------------------------------------------------------------------


class GivenLabels:
    """Compares every label with the most likely other class; only labels that learners were trained on can be issues."""

    def __init__(self, out_of_fold: OutOfFold, classes: Ints, noise: NoiseModel) -> None:
        self.out_of_fold, self.classes, self.noise = out_of_fold, classes, noise
        self.documents, self.nodes = out_of_fold.pairs
        self.columns = np.searchsorted(classes, self.nodes)
        self.within = csr_array(above_classes(classes, out_of_fold.taxonomy)[:, classes].T)  # classes at or below each
        self.inner = np.flatnonzero(np.diff(self.within.indptr) > 1)
        self.starts = out_of_fold.own.indptr.astype(np.int64)
        self.predicted = np.zeros(out_of_fold.own.shape[0], dtype=np.int64)
        self.best, self.kinds = (np.zeros(len(self.nodes), dtype=np.int64) for _ in range(2))
        self.p_given, self.p_best, self.p_noise = (np.zeros(len(self.nodes)) for _ in range(3))

    def add(self, rows: Ints, P: Floats) -> None:
        """Add some documents; P: probability of each class."""
        self.predicted[rows] = P.argmax(axis=1)
        counts = self.starts[rows + 1] - self.starts[rows]
        row, every = np.repeat(np.arange(len(rows)), counts), np.arange(counts.sum())
        pairs = every + np.repeat(self.starts[rows] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        columns = self.columns[pairs]
        Q, highest_other = _without_others(P, row, columns)
        # the probability of the given label or a class below it, which is then set to 0
        self.p_given[pairs] = Q[every, columns]
        Q[every, columns] = 0.0
        for column in np.intersect1d(columns, self.inner).tolist():
            is_at, below = columns == column, self.within.indices[slice(*self.within.indptr[column : column + 2])]
            places = np.ix_(np.flatnonzero(is_at), below)
            self.p_given[pairs[is_at]] += Q[places].sum(axis=1)
            Q[places] = 0.0
        self.p_noise[pairs] = self.noise.probability(Q, columns)
        best = Q.argmax(axis=1)
        self.best[pairs], self.p_best[pairs] = best, Q[every, best]
        self.kinds[pairs] = highest_other > P[row, best]

    def issues(self) -> RankedIssues:
        """Labels that are less likely than another class."""
        usual = usual_confusions(self.predicted[self.documents], self.columns, len(self.classes))(self.best, self.columns)
        scores = np.log(self.p_noise + TINY) - np.log(self.p_given + TINY) - np.log(usual + TINY)
        suggested = np.where(self.kinds == 1, NO_NODE, self.classes[self.best])
        found = RankedIssues(self.documents, self.nodes, suggested, self.kinds, self.p_given, self.p_best, scores)
        return found.ranked((self.p_best > self.p_given) & self.out_of_fold.has_training_documents())


def _without_others(P: Floats, row: Ints, columns: Ints) -> tuple[Floats, Floats]:
    """One row per label, without the other labels of its document, and the highest probability of those."""
    is_given = np.zeros(P.shape, dtype=bool)
    is_given[row, columns] = True
    is_other = is_given[row]
    is_other[np.arange(len(row)), columns] = False
    Q = P[row]
    highest = np.where(is_other, Q, 0.0).max(axis=1, initial=0.0)
    Q[is_other] = 0.0
    has_others = is_other.any(axis=1)
    Q[has_others] /= np.maximum(Q[has_others].sum(axis=1, keepdims=True), TINY)
    return Q, highest


# ---- labels that are missing --------------------------------------------------------------------------------------------


class MissingLabels:
    """Finds, in multi-label corpora, the most likely class that each document lacks."""

    def __init__(self, out_of_fold: OutOfFold, classes: Ints) -> None:
        self.own, self.classes = out_of_fold.own, classes
        self.above = above_classes(classes, out_of_fold.taxonomy)[:, classes].astype(np.int32)
        self.best, self.p_best = np.zeros(self.own.shape[0], dtype=np.int64), np.zeros(self.own.shape[0])
        self.likely = csr_array(self.own.shape, dtype=bool)

    def add(self, rows: Ints, M: Floats) -> None:
        """Add some documents; M: probability that each class is a label."""
        given = self.own[rows][:, self.classes].astype(np.int32)
        # ancestors are given with a label, and descendants would only make it more specific
        is_related = (given @ self.above + given @ self.above.T).toarray() > 0
        lacking = np.where(is_related, 0.0, M)
        self.best[rows], self.p_best[rows] = lacking.argmax(axis=1), lacking.max(axis=1)
        row, column = np.nonzero(np.where(given.toarray() > 0, M, 0.0) >= 0.5)
        ones = np.ones(len(row), dtype=bool)
        self.likely = self.likely + csr_array((ones, (rows[row], self.classes[column])), shape=self.likely.shape)

    def issues(self, others: RankedIssues) -> RankedIssues:
        """Missing labels of documents without other issues, together with those others whose labels are unlikely."""
        others = others.ranked(~np.asarray(self.likely[others.documents, others.given]).ravel())
        n, p = len(self.best), np.clip(self.p_best, 1e-6, 1 - 1e-6)
        none, kinds, scores = np.full(n, NO_NODE), np.full(n, KINDS.index("missing")), np.log(p) - np.log1p(-p)
        every = RankedIssues(np.arange(n), none, self.classes[self.best], kinds, np.ones(n), self.p_best, scores)
        missing = every.ranked((scores > 0) & ~np.isin(np.arange(n), others.documents))
        joined = RankedIssues(*(np.concatenate(both) for both in zip(astuple(others), astuple(missing), strict=True)))
        return joined.ranked(np.ones(len(joined), dtype=bool))


# ---- siblings ---------------------------------------------------------------------------------------------------------

USEFUL = 2 / 3  # accuracy from which on two siblings can be distinguished
LEVEL = 0.05
MIN_DOCUMENTS = 10  # of each sibling, for a test


@dataclass(frozen=True, slots=True)
class InseparableSiblings:
    """Two siblings that the classifier cannot distinguish.

    first, second: their labels; nodes, while they are searched. documents: of each, without those of both. correct: how many of
    these were assigned to the right one of the two. accuracy: mean of both. p_value: of the hypothesis that two of three are
    right; corrected.
    """

    first: Any
    second: Any
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
        parts = [np.zeros((2, 0), dtype=np.int64)]  # pairs of siblings, once for every document that is lost to the second
        for group in self.groups:
            for node in group[has[:, group].any(axis=0)].tolist():
                own = np.flatnonzero(has[:, node])
                is_lost = (nodes[np.ix_(own, group)] >= nodes[own, node, None]) & ~has[np.ix_(own, group)]
                to = group[np.nonzero(is_lost)[1]]
                parts.append(np.stack([np.full(len(to), node), to]))
        at = np.concatenate(parts, axis=1)
        self.lost = self.lost + csr_array((np.ones(at.shape[1], dtype=np.int64), (at[0], at[1])), shape=self.lost.shape)

    def inseparable(self) -> list[InseparableSiblings]:
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
        # Holm's method; pairs that lose nothing are counted, too
        significant, height = list[InseparableSiblings](), 0.0
        for place, pair in enumerate(sorted(found, key=lambda pair: (pair.p_value, pair.first, pair.second))):
            height = min(1.0, max(height, (max(n_tested, len(found)) - place) * pair.p_value))
            if height >= LEVEL:
                break
            significant.append(replace(pair, p_value=height))
        return sorted(significant, key=lambda pair: (pair.accuracy, pair.first, pair.second))


def siblings_of(taxonomy: Taxonomy) -> list[Ints]:
    """Every group of two or more siblings; the roots are one of them."""
    groups = [taxonomy.roots, *(taxonomy.children_of(node) for node in np.flatnonzero(~taxonomy.is_leaf).tolist())]
    return [np.asarray(group, dtype=np.int64) for group in groups if len(group) > 1]


def compare_pair(first: int, second: int, documents: tuple[int, int], correct: tuple[int, int]) -> InseparableSiblings:
    """The accuracy of two siblings and its p-value.

    >>> compare_pair(1, 2, (50, 100), (25, 50)).accuracy
    0.5
    """
    accuracy = (correct[0] / documents[0] + correct[1] / documents[1]) / 2
    error = np.sqrt(USEFUL * (1 - USEFUL) * (1 / documents[0] + 1 / documents[1])) / 2
    p_value = float(norm.cdf((accuracy - USEFUL) / error))
    return InseparableSiblings(first, second, documents, correct, float(accuracy), p_value)


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
