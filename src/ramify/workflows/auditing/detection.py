"""Detection of label issues, ranked by how likely they are.

The score of a label g of document x is

    ln Σ_t P(t | x) noise(t → g) − ln P(g | x) − ln usual(s, g)

It compares how likely it is that another label was replaced by g with how likely g is right, and subtracts how common g is among
documents predicted as the same class s as x: classes that are always confused are reported by siblings.py instead. An inner node is
right where a class below it is. Each label of a document is scored without the others. In multi-label corpora a label may also be
missing; its score is its log odds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.workflows.auditing.noise_model import NoiseModel, above_classes, usual_confusions
from ramify.workflows.auditing.out_of_fold import Floats, Ints, OutOfFold

KINDS = ("wrong", "extra", "missing")
NO_NODE = -1  # where no label is suggested, or none is given
TINY = 1e-13


@dataclass(frozen=True, slots=True)
class RankedIssues:
    """Label issues as arrays, the most likely first.

    documents: positions. given, suggested: nodes, or NO_NODE. kinds: places in KINDS.
    p_given, p_suggested: their probabilities. scores: what issues are ranked by.
    """

    documents: Ints
    given: Ints
    suggested: Ints
    kinds: Ints
    p_given: Floats
    p_suggested: Floats
    scores: Floats

    def __len__(self) -> int:
        return len(self.documents)

    def arrays(self) -> list[Any]:
        """All arrays, in the order of the fields."""
        return [self.documents, self.given, self.suggested, self.kinds, self.p_given, self.p_suggested, self.scores]

    def ranked(self, is_issue: NDArray[np.bool_]) -> RankedIssues:
        """Those that are issues, by score, then by position."""
        order = np.lexsort((self.documents, -self.scores))
        order = order[is_issue[order]]
        return RankedIssues(*(array[order] for array in self.arrays()))


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
        pairs = _ranges(self.starts[rows], self.starts[rows + 1])
        row = np.repeat(np.arange(len(rows)), self.starts[rows + 1] - self.starts[rows])
        every, columns = np.arange(len(pairs)), self.columns[pairs]
        Q, highest_other = _without_others(P, row, columns)
        self.p_given[pairs] = self._take_given(Q, columns)
        self.p_noise[pairs] = self.noise.probability(Q, columns)
        best = Q.argmax(axis=1)
        self.best[pairs], self.p_best[pairs] = best, Q[every, best]
        self.kinds[pairs] = highest_other > P[row, best]

    def _take_given(self, Q: Floats, columns: Ints) -> Floats:
        """The probability of the given label or a class below it, which is then set to 0."""
        every = np.arange(len(columns))
        found = Q[every, columns]
        Q[every, columns] = 0.0
        for column in np.intersect1d(columns, self.inner).tolist():
            rows, below = (
                np.flatnonzero(columns == column),
                self.within.indices[slice(*self.within.indptr[column : column + 2])],
            )
            found[rows] += Q[np.ix_(rows, below)].sum(axis=1)
            Q[np.ix_(rows, below)] = 0.0
        return found

    def issues(self) -> RankedIssues:
        """Labels that are less likely than another class."""
        usual = usual_confusions(self.predicted[self.documents], self.columns, len(self.classes))(self.best, self.columns)
        scores = np.log(self.p_noise + TINY) - np.log(self.p_given + TINY) - np.log(usual + TINY)
        suggested = np.where(self.kinds == 1, NO_NODE, self.classes[self.best])
        found = RankedIssues(self.documents, self.nodes, suggested, self.kinds, self.p_given, self.p_best, scores)
        return found.ranked((self.p_best > self.p_given) & self.out_of_fold.has_training_documents())


def _ranges(starts: Ints, ends: Ints) -> Ints:
    """All places from each start to its end, one range after the other."""
    counts = ends - starts
    return np.asarray(np.arange(counts.sum()) + np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts))


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
        n = len(self.best)
        none, ones = np.full(n, NO_NODE), np.ones(n)
        p = np.clip(self.p_best, 1e-6, 1 - 1e-6)
        scores = np.log(p) - np.log1p(-p)
        kinds = np.full(n, KINDS.index("missing"))
        every = RankedIssues(np.arange(n), none, self.classes[self.best], kinds, ones, self.p_best, scores)
        missing = every.ranked((scores > 0) & ~np.isin(np.arange(n), others.documents))
        joined = RankedIssues(*(np.concatenate(both) for both in zip(others.arrays(), missing.arrays(), strict=True)))
        return joined.ranked(np.ones(len(joined), dtype=bool))
