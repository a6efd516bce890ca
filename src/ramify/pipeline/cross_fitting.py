"""Values of documents by learners of the same kind that have not seen them: what rules and calibrations are learnt from.

Documents are dealt into folds, and each fold is scored by a learner that learnt from the others. Where there are very many
documents, some folds are enough; where there are very many nodes, a few documents must do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone

from ramify.execution import stage
from ramify.taxonomy import most_specific

FOLDS = 5  # or twice as many, of which at most so many are scored
ENOUGH = 10_000  # documents from which calibrations are learnt
MOST_VALUES = 1 << 24  # documents × nodes for calibrations
UNIT = 1e-3  # how far from 1 the lengths of documents may be that are taken to be of length 1
FEWEST = 1000  # documents, however many nodes there are

Ints = NDArray[np.int64]
Give = Callable[[Any, NDArray[np.float32]], Any]  # what is wanted of a learner and its scores


def cross_fit(learner: Any, X: csr_array, Y: csr_array, folds: list[Ints], give: Give) -> tuple[Ints, list[Any]]:
    """Documents, and what is wanted of each fold of them; folds without which nothing could be learnt are left out."""
    documents, found = [np.zeros(0, dtype=np.int64)], []
    with stage("learning from held-out documents", len(folds)) as step:
        for held_out in folds:
            seen = np.setdiff1d(np.arange(X.shape[0]), held_out)
            if len(held_out) and can_learn(Y[seen], learner):
                fitted = alike(learner).fit(X[seen], Y[seen])
                found.append(give(fitted, fitted.scores(as_new(X, held_out, seen))))
                documents.append(held_out)
            step.advance()
    return np.concatenate(documents), found


def as_new(X: csr_array, held_out: Ints, seen: Ints) -> csr_array:
    """Documents as they would come if they were new: without the features that no document seen has, and again of length 1."""
    rows = csr_array(X[held_out], copy=True)
    is_known = np.bincount(X[seen].indices, minlength=X.shape[1]) > 0
    if is_known[rows.indices].all():
        return rows
    before = _lengths(rows)
    rows.data[~is_known[rows.indices]] = 0
    rows.eliminate_zeros()
    if np.allclose(before[before > 0], 1, atol=UNIT):
        lengths = _lengths(rows)
        rows.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(rows.indptr)).astype(rows.dtype)
    return rows


def _lengths(rows: csr_array) -> NDArray[np.float64]:
    squares = csr_array((rows.data.astype(np.float64) ** 2, rows.indices, rows.indptr), shape=rows.shape)
    lengths: NDArray[np.float64] = np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
    return lengths


def few_folds(n_documents: int, n_nodes: int) -> list[Ints]:
    """Folds for a calibration: as many as have documents enough, and small where documents are many.

    A learner that has seen more is more like the one that learns from all of them.

    >>> [len(fold) for fold in few_folds(1000, 50)], [len(fold) for fold in few_folds(40_000, 50)]
    ([200, 200, 200, 200, 200], [4000, 4000, 4000])
    >>> [len(fold) for fold in few_folds(128_710, 14_331)]
    [1170]
    """
    enough = min(ENOUGH, max(FEWEST, MOST_VALUES // max(1, n_nodes)))
    order = np.random.default_rng(0).permutation(n_documents)
    parts = FOLDS if n_documents < 2 * enough else 2 * FOLDS
    if n_documents >= parts * enough:
        return [np.sort(order[:enough])]
    folds = [np.sort(order[k::parts]) for k in range(parts)]
    needed = -(-enough // max(1, len(folds[0])))
    return folds[: max(1, needed)]


def can_learn(Y: csr_array, learner: Any) -> bool:
    """Whether documents of at least two classes are there."""
    own: NDArray[Any] = most_specific(Y, learner.taxonomy_).indices
    return len(np.unique(own)) > 1


def alike(learner: Any) -> Any:
    """A new learner with the parameters of one, and with those that it chose for itself."""
    made = clone(learner)
    return made.set_params(C=learner.C_) if hasattr(learner, "C_") else made
