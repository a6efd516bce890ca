"""What thresholds are learnt from: held-out scores beside true labels, and the cuts of one list of scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.decisions.best import best
from ramify.errors import InputError
from ramify.parallel import row_blocks
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_specific

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def read_scores(scores: Any, taxonomy: Taxonomy) -> NDArray[np.floating[Any]]:
    """Scores as documents × nodes, not copied; NaN and -inf both mean that a node has no score."""
    try:
        S = np.atleast_2d(np.asarray(scores))
    except ValueError:
        raise InputError("the scores are rows of different lengths; give one a document and node.") from None
    if not np.issubdtype(S.dtype, np.floating):
        try:
            S = S.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InputError("the scores are not numbers; give one a document and node, NaN where there is none.") from None
    if S.ndim != 2 or S.shape[1] != len(taxonomy):
        raise InputError(f"scores have shape {S.shape}; the taxonomy has {len(taxonomy)} nodes, one column each.")
    if np.fmax.reduce(S, axis=None, initial=-np.inf) == np.inf:
        raise InputError("a score is infinite; give finite scores, and NaN where a node has no classifier.")
    return S


def read_held_out(scores: Any, Y: Any, taxonomy: Taxonomy, over: str) -> tuple[NDArray[np.floating[Any]], csr_array]:
    """Scores, and the labels that they are about: the one door of everything that learns a rule."""
    S = read_scores(scores, taxonomy)
    T = most_specific(Y, taxonomy) if over == "own" else expand_to_ancestors(Y, taxonomy)
    if T.shape != S.shape:
        raise InputError(f"there are scores of {S.shape[0]} documents and labels of {T.shape[0]}; give both for the same ones.")
    if not np.isfinite(S[documents_of(T), T.indices]).any():
        raise InputError("no held-out document has a true label with a score; give documents whose labels the learner knows.")
    return S, T


def documents_of(T: csr_array) -> Counts:
    """The document of each entry of a label matrix, in the order of its columns."""
    return np.repeat(np.arange(T.shape[0]), np.diff(T.indptr))


def without_nan(S: NDArray[np.floating[Any]]) -> Floats:
    """The scores as a new array, -inf where there is none."""
    return np.where(np.isnan(S), -np.inf, S).astype(np.float64, copy=False)


def to_labels(chosen: NDArray[np.bool_], S: NDArray[np.floating[Any]], taxonomy: Taxonomy, at_least_one: bool) -> csr_array:
    """The chosen nodes with their ancestors; with `at_least_one`, the best node where none is chosen."""
    if at_least_one:
        left = np.flatnonzero(~chosen.any(axis=1))
        chosen = chosen.copy()
        chosen[left] = best(S[left], taxonomy).toarray()
    return expand_to_ancestors(chosen, taxonomy)


@dataclass(frozen=True, slots=True)
class ScoreList:
    """The scores of one node (over documents) or of one document (over nodes), and which of them are true.

    A cut takes the scores at and above a threshold. It lies in the middle between the lowest score that it takes and the next
    lower one, or at the lowest score taken where there is no lower one; equal scores are taken together or not at all.

    ascending: every score, sorted. true: the scores of the true ones, sorted. n_true: true ones without a score included.
    """

    ascending: Floats
    true: Floats
    n_true: int

    def best_cut(self) -> tuple[float, float]:
        """The threshold with the highest F1, and that F1; of equal ones the widest margin, then the highest threshold.

        >>> ScoreList(np.array([0.0, 1.0, 3.0, 4.0]), np.array([3.0, 4.0]), 2).best_cut()
        (2.0, 1.0)
        """
        if not self.true.size:
            return np.inf, 0.0
        # only a cut just below a true score can be best: going further down takes false ones for nothing
        first = np.searchsorted(self.ascending, self.true)
        hits = len(self.true) - np.searchsorted(self.true, self.true)
        f1 = 2 * hits / (self.n_true + len(self.ascending) - first)
        below = self.ascending[np.maximum(first - 1, 0)]
        chosen = np.lexsort((self.true, self.true - below, f1))[-1]
        return float(middle(self.true[chosen], below[chosen])), float(f1[chosen])

    def cuts_of_size(self, wanted: Counts) -> tuple[Floats, Counts, Counts]:
        """Thresholds that take at most so many of the highest scores, how many they take, and how many of these are true.

        >>> ScoreList(np.array([0.0, 1.0, 3.0, 3.0]), np.array([3.0]), 1).cuts_of_size(np.array([1, 2, 3]))
        (array([inf, 2. , 0.5]), array([0, 2, 3]), array([0, 1, 1]))
        """
        n = len(self.ascending)
        if not n:
            return np.full(len(wanted), np.inf), np.zeros_like(wanted), np.zeros_like(wanted)
        first = n - np.minimum(wanted, n)
        # where equal scores stand on both sides, the cut moves above all of them
        first = np.where(first > 0, np.searchsorted(self.ascending, self.ascending[first - 1], side="right"), 0)
        above, below = self.ascending[np.minimum(first, n - 1)], self.ascending[np.maximum(first - 1, 0)]
        thresholds = np.where(first < n, middle(above, below), np.inf)
        return thresholds, n - first, len(self.true) - np.searchsorted(self.true, thresholds)


def middle(above: Any, below: Any) -> Floats:
    """Half way between two scores, so rounded that the upper one is taken and the lower one is not."""
    between = above / 2 + below / 2
    return np.asarray(np.where(between > below, between, above), dtype=np.float64)


def score_lists(S: NDArray[np.floating[Any]], T: csr_array) -> Iterator[ScoreList]:
    """The lists of the rows of scores, one after the other; for lists of nodes give both matrices transposed."""
    for rows in row_blocks(S.shape[0], 32 * S.shape[1]):
        block = np.ascontiguousarray(without_nan(S[rows]))
        ascending = np.sort(block, axis=1)
        n_missing = np.count_nonzero(ascending == -np.inf, axis=1)
        for i, row in enumerate(range(rows.start, rows.stop)):
            true = np.sort(block[i, T.indices[T.indptr[row] : T.indptr[row + 1]]])
            yield ScoreList(ascending[i, n_missing[i] :], true[np.isfinite(true)], len(true))
