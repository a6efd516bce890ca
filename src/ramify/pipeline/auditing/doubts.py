"""Labels that seem wrong, most doubtful first.

Where documents have one label, a label g of document x is as doubtful as

    ln Σ_t P(t | x) slip(t → g) − ln P(g | x) − ln usual(s, g)

says: how much likelier it is that the label slipped to g from any other class than that g is right, and how rare it is among
documents that are taken for the same class s as x. Labels that are always confused are a matter of the classes; see siblings.py.
Where documents have several labels, a label that is unlikely counts by its odds, and so does one that is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramify.pipeline.auditing.competition import Competition
from ramify.pipeline.auditing.slips import Slips, above_classes, usual_confusions
from ramify.pipeline.auditing.unseen import Floats, Ints, Unseen

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


# ---- one label a document -----------------------------------------------------------------------------------------------


class OneLabel:
    """Sets every label beside the best other class; only labels that learners could know are doubted."""

    def __init__(self, unseen: Unseen, competition: Competition, slips: Slips) -> None:
        self.unseen, self.classes, self.slips = unseen, competition.classes, slips
        self.documents, self.nodes = unseen.pairs
        self.columns = np.searchsorted(self.classes, self.nodes)
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
        self.p_given[pairs], self.slipped[pairs] = Q[there, mine], self.slips.onto(Q, mine)
        Q[there, mine] = 0.0
        best = Q.argmax(axis=1)
        self.best[pairs], self.p_best[pairs] = best, Q[there, best]
        self.kinds[pairs] = likeliest > P[row, best]

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
    return np.arange(counts.sum()) + np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)


def _without_others(P: Floats, row: Ints, columns: Ints) -> tuple[Floats, Floats]:
    """Rows of one label each, without the other labels of its document, and how likely the likeliest of those was."""
    Q, likeliest = P[row], np.zeros(len(row))
    counts = np.bincount(row, minlength=len(P))
    for pair in np.flatnonzero(counts[row] > 1).tolist():
        others = columns[(row == row[pair]) & (columns != columns[pair])]
        likeliest[pair] = Q[pair, others].max()
        Q[pair, others] = 0.0
        Q[pair] /= max(float(Q[pair].sum()), TINY)
    return Q, likeliest


# ---- several labels a document ------------------------------------------------------------------------------------------


class SeveralLabels:
    """Looks at the least likely label of every document, and at the likeliest class that it lacks."""

    def __init__(self, unseen: Unseen, classes: Ints) -> None:
        self.unseen, self.classes = unseen, classes
        self.above = above_classes(classes, unseen.taxonomy)[:, classes].astype(np.int32)
        n = unseen.own.shape[0]
        self.taken, self.worst, self.best = (np.zeros(n, dtype=np.int64) for _ in range(3))
        self.p_worst, self.p_best = np.zeros(n), np.zeros(n)

    def look(self, rows: Ints, P: Floats) -> None:
        """Take in some documents; P: how likely each class is."""
        given = self.unseen.own[rows][:, self.classes]
        is_implied = (given.astype(np.int32) @ self.above).toarray() > 0  # what lies above a label is given with it
        known, lacking = np.where(given.toarray(), P, np.inf), np.where(is_implied, -np.inf, P)
        self.taken[rows] = P.argmax(axis=1)
        self.worst[rows], self.best[rows] = known.argmin(axis=1), lacking.argmax(axis=1)
        self.p_worst[rows], self.p_best[rows] = known.min(axis=1), lacking.max(axis=1)

    def find(self) -> Doubts:
        """Labels that are unlikely, and likely ones that are missing."""
        has_label, lacks = np.isfinite(self.p_worst), np.isfinite(self.p_best)
        against = np.where(has_label, -_log_odds(self.p_worst), 0.0)
        missing = np.where(lacks, _log_odds(self.p_best), 0.0)
        is_alone = np.diff(self.unseen.own.indptr) == 1
        kinds = np.where(against <= 0, 2, np.where((missing > 0) | is_alone, 0, 1))
        given = np.where(kinds == 2, NOBODY, self.classes[self.worst])
        suggested = np.where((kinds == 1) | ~lacks, NOBODY, self.classes[self.best])
        doubt = np.maximum(against, 0) + np.maximum(missing, 0)
        p_given, p_best = np.where(has_label, self.p_worst, 1.0), np.where(lacks, self.p_best, 0.0)
        found = Doubts(np.arange(len(doubt)), given, suggested, kinds, p_given, p_best, doubt)
        return found.ranked((doubt > 0) & (self._is_known() | (kinds == 2)))

    def _is_known(self) -> NDArray[np.bool_]:
        """Whether the least likely label of each document is one that its learner could know."""
        documents, nodes = self.unseen.pairs
        known = np.zeros(len(self.worst), dtype=bool)
        known[documents[(self.classes[self.worst][documents] == nodes) & self.unseen.was_learnt()]] = True
        return known


def _log_odds(p: Floats) -> Floats:
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(p) - np.log1p(-p))
