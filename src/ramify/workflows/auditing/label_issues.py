"""Labels that seem wrong, most doubtful first.

A label g of document x is as doubtful as

    ln Σ_t P(t | x) slip(t → g) − ln P(g | x) − ln usual(s, g)

says: how much likelier it is that the label slipped to g from any other class than that g is right, and how rare it is among
documents that are taken for the same class s as x. Classes that are always confused are a matter of their own; see
siblings.py. An inner node is right where a class below it is. Of several labels each is judged without the others. Where
documents have several labels, one may also be missing; it counts by its odds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.workflows.auditing.class_probabilities import Competition
from ramify.workflows.auditing.noise_model import Slips, above_classes, usual_confusions
from ramify.workflows.auditing.out_of_fold import Floats, Ints, Unseen

KINDS = ("wrong", "too many", "missing")
NOBODY = -1  # where no label is suggested, or none is given
TINY = 1e-13


@dataclass(frozen=True, slots=True)
class Doubts:
    """Doubtful labels, side by side, most doubtful first.

    documents: positions. given, suggested: nodes, NOBODY where there is none. kinds: places in KINDS.
    p_given, p_suggested: how likely they are. doubt: what they are ranked by.
    """

    documents: Ints
    given: Ints
    suggested: Ints
    kinds: Ints
    p_given: Floats
    p_suggested: Floats
    doubt: Floats

    def __len__(self) -> int:
        return len(self.documents)

    def ranked(self, is_doubtful: NDArray[np.bool_]) -> Doubts:
        """Some of them, by doubt, then by position."""
        order = np.lexsort((self.documents, -self.doubt))
        order = order[is_doubtful[order]]
        return Doubts(*(getattr(self, name)[order] for name in self.__slots__))


# ---- labels that are given ------------------------------------------------------------------------------------------------


class Given:
    """Sets every label beside the best other class; only labels that learners could know are doubted."""

    def __init__(self, unseen: Unseen, competition: Competition, slips: Slips) -> None:
        self.unseen, self.classes, self.slips = unseen, competition.classes, slips
        self.documents, self.nodes = unseen.pairs
        self.columns = np.searchsorted(self.classes, self.nodes)
        self.within = csr_array(above_classes(self.classes, unseen.taxonomy)[:, self.classes].T)  # classes at or below each
        self.inner = np.flatnonzero(np.diff(self.within.indptr) > 1)
        self.starts = unseen.own.indptr.astype(np.int64)
        self.taken = np.zeros(unseen.own.shape[0], dtype=np.int64)
        self.best, self.kinds = (np.zeros(len(self.nodes), dtype=np.int64) for _ in range(2))
        self.p_given, self.p_best, self.slipped = (np.zeros(len(self.nodes)) for _ in range(3))

    def look(self, rows: Ints, P: Floats) -> None:
        """Take in some documents; P: how likely each class is."""
        self.taken[rows] = P.argmax(axis=1)
        pairs = _ranges(self.starts[rows], self.starts[rows + 1])
        row = np.repeat(np.arange(len(rows)), self.starts[rows + 1] - self.starts[rows])
        there, mine = np.arange(len(pairs)), self.columns[pairs]
        Q, likeliest = _without_others(P, row, mine)
        self.p_given[pairs] = self._take_given(Q, mine)
        self.slipped[pairs] = self.slips.onto(Q, mine)
        best = Q.argmax(axis=1)
        self.best[pairs], self.p_best[pairs] = best, Q[there, best]
        self.kinds[pairs] = likeliest > P[row, best]

    def _take_given(self, Q: Floats, mine: Ints) -> Floats:
        """How likely it is that a document ends at its label or below it; that is set to 0."""
        there = np.arange(len(mine))
        found = Q[there, mine]
        Q[there, mine] = 0.0
        for column in np.intersect1d(mine, self.inner).tolist():
            rows, below = np.flatnonzero(mine == column), self.within.indices[slice(*self.within.indptr[column : column + 2])]
            found[rows] += Q[np.ix_(rows, below)].sum(axis=1)
            Q[np.ix_(rows, below)] = 0.0
        return found

    def find(self) -> Doubts:
        """Labels that another class is likelier than."""
        usual = usual_confusions(self.taken[self.documents], self.columns, len(self.classes))(self.best, self.columns)
        doubt = np.log(self.slipped + TINY) - np.log(self.p_given + TINY) - np.log(usual + TINY)
        suggested = np.where(self.kinds == 1, NOBODY, self.classes[self.best])
        found = Doubts(self.documents, self.nodes, suggested, self.kinds, self.p_given, self.p_best, doubt)
        return found.ranked((self.p_best > self.p_given) & self.unseen.was_learnt())


def _ranges(starts: Ints, ends: Ints) -> Ints:
    """All places from each start to its end, one range after the other."""
    counts = ends - starts
    return np.asarray(np.arange(counts.sum()) + np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts))


def _without_others(P: Floats, row: Ints, columns: Ints) -> tuple[Floats, Floats]:
    """Rows of one label each, without the other labels of its document, and how likely the likeliest of those was."""
    is_given = np.zeros(P.shape, dtype=bool)
    is_given[row, columns] = True
    is_other = is_given[row]
    is_other[np.arange(len(row)), columns] = False
    Q = P[row]
    likeliest = np.where(is_other, Q, 0.0).max(axis=1, initial=0.0)
    Q[is_other] = 0.0
    several = is_other.any(axis=1)
    Q[several] /= np.maximum(Q[several].sum(axis=1, keepdims=True), TINY)
    return Q, likeliest


# ---- labels that are missing --------------------------------------------------------------------------------------------


class Missing:
    """Looks, where documents have several labels, for the likeliest class that each document lacks."""

    def __init__(self, unseen: Unseen, classes: Ints) -> None:
        self.unseen, self.classes = unseen, classes
        self.above = above_classes(classes, unseen.taxonomy)[:, classes].astype(np.int32)
        self.best, self.p_best = np.zeros(unseen.own.shape[0], dtype=np.int64), np.zeros(unseen.own.shape[0])
        self.likely = csr_array(unseen.own.shape, dtype=bool)

    def look(self, rows: Ints, M: Floats) -> None:
        """Take in some documents; M: how likely it is that each has each label."""
        given = self.unseen.own[rows][:, self.classes].astype(np.int32)
        # what lies above a label is given with it, and what lies below one only makes it finer
        is_out = (given @ self.above + given @ self.above.T).toarray() > 0
        lacking = np.where(is_out, 0.0, M)
        self.best[rows], self.p_best[rows] = lacking.argmax(axis=1), lacking.max(axis=1)
        row, column = np.nonzero(np.where(given.toarray() > 0, M, 0.0) >= 0.5)
        ones = np.ones(len(row), dtype=bool)
        self.likely = self.likely + csr_array((ones, (rows[row], self.classes[column])), shape=self.likely.shape)

    def find(self, others: Doubts) -> Doubts:
        """Labels that documents rather have than not, where their own are not doubted; and other doubts of unlikely labels."""
        others = others.ranked(~np.asarray(self.likely[others.documents, others.given]).ravel())
        n = len(self.best)
        nobody, ones = np.full(n, NOBODY), np.ones(n)
        doubt = _log_odds(self.p_best)
        every = Doubts(np.arange(n), nobody, self.classes[self.best], 2 * ones.astype(np.int64), ones, self.p_best, doubt)
        mine = every.ranked((doubt > 0) & ~np.isin(np.arange(n), others.documents))
        joined = Doubts(*(np.concatenate([getattr(each, name) for each in (others, mine)]) for name in Doubts.__slots__))
        return joined.ranked(np.ones(len(joined), dtype=bool))


def _log_odds(p: Floats) -> Floats:
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(p) - np.log1p(-p))
