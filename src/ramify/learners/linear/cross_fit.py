"""Out-of-fold scores of independent classes, and the selection of C, from one solution on all documents.

    w_k = argmin  ½‖w‖² + C Σ_{i not in fold k} U_i L(y_i w·x_i)        the score of document i in fold k is w_k·x_i

A fold starts from the dual variables of the solution, those of its documents taken out, and goes on with a few passes of dual
ascent. Eight problems run side by side in one kernel: eight folds, or four folds of which two have other costs, too. Where
there are many documents, a sample is held out. A class and a document that are not in the working set of the solution, or far
beyond its margin, keep their score: the solution has no dual variable for them, so that nothing would change without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify import native
from ramify.learners.linear.dual_solver import TrainedWeights
from ramify.learners.linear.problem import Rows
from ramify.learners.linear.select_C import mean_f1
from ramify.learners.linear.weights import Weights, class_blocks
from ramify.parallel import choose_executor, count_workers, row_blocks

TOLERANCE, PASSES = 1e-3, 4  # relative duality gap that is small enough for a fold, and passes at most
COSTS = (1.0, 1 / 3, 10 / 3)  # factors of the first cost that are compared
RARE = 16  # documents; a feature of more of them is hardly ever in one fold alone
SAME = 1e-3  # difference of squared lengths up to which rows count as normalized
MOST_DOCUMENTS, FEWEST_DOCUMENTS = 4000, 1000  # that are held out
MOST_SCORES = 1 << 25  # documents × classes
BLOCK_WEIGHTS = 1 << 23  # bytes of the table of weights that score at a time
LEAST_GAIN = 0.002  # of the quality, for which another value is worth a further training
ERRORS = 2  # standard errors up to which a gain may be chance
GROUPS = 8  # of documents, left out one at a time to estimate how much of a gain is chance

Ints = NDArray[np.int64]
Counts = NDArray[np.float64]  # groups of documents × classes × (true positives, predicted, true)
FOLDS_AT_ONE_COST = np.arange(native.LANES, dtype=np.uint8), np.ones(native.LANES, dtype=np.float32)
FOLDS_AND_COSTS = np.array([0, 1, 2, 3, 0, 1, 0, 1], dtype=np.uint8), np.repeat(np.asarray(COSTS, dtype=np.float32), [4, 2, 2])


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Documents that folds hold out.

    documents: their numbers, rising. fold_of: by such a document. rows: the documents as if they were new. lanes: by lane, the
    fold that it leaves out and its factor of the costs.
    """

    documents: Ints
    fold_of: NDArray[np.uint8]
    rows: csr_array
    lanes: tuple[NDArray[np.uint8], NDArray[np.float32]]

    @classmethod
    def of(cls, X: csr_array, n_classes: int, ends: Sequence[int] | None, compares_costs: bool = False) -> HeldOut:
        """All documents, or a sample where there are many. ends: where the columns of each block of features end."""
        lanes = FOLDS_AND_COSTS if compares_costs else FOLDS_AT_ONE_COST
        n_held_out = min(X.shape[0], MOST_DOCUMENTS, max(FEWEST_DOCUMENTS, MOST_SCORES // max(1, n_classes)))
        order = order_by_content(X)[:n_held_out]
        n_folds = int(lanes[0].max()) + 1
        folds, places = (np.arange(n_held_out) % n_folds).astype(np.uint8), np.argsort(order)
        documents, fold_of = order[places], folds[places]
        return cls(documents, fold_of, as_new(X, documents, fold_of, ends or [X.shape[1]]), lanes)

    @property
    def is_compared(self) -> NDArray[np.bool_]:
        """By document: whether it has scores at all costs."""
        return np.asarray(np.bincount(self.lanes[0])[self.fold_of] == len(COSTS))


@dataclass(frozen=True, slots=True)
class CrossFit:
    """Folds that were solved from a solution on all documents.

    documents, classes: of the pairs of the solution. found: pairs × costs, scores in the fold that holds the document out; NaN
    where none does.
    """

    held_out: HeldOut
    documents: Ints
    classes: Ints
    found: NDArray[np.float32]

    @classmethod
    def of(cls, trained: TrainedWeights, held_out: HeldOut, n_jobs: int | None) -> CrossFit | None:
        """From trained weights with dual variables; None for others."""
        start = trained.start
        if not isinstance(start, TrainedWeights) or start.problem is None or start.order is None or start.pairs is None:
            return None
        problem, order, pairs = start.problem, start.order, start.pairs
        if not pairs.alphas.flags.writeable:  # as they come from other processes
            pairs = replace(pairs, alphas=pairs.alphas.copy())
        place = np.full(len(problem.rows), -1, dtype=np.int32)
        place[held_out.documents] = np.arange(len(held_out.documents))
        lanes = native.FoldLanes(*held_out.lanes, place[order], held_out.fold_of)
        documents, new = problem.rows.to_native(), _with_places(held_out.rows, problem.rows)
        data = documents, new, native.Pairs(*pairs.arrays, len(problem.rows)), problem.costs.documents, lanes
        found = np.empty((len(pairs.documents), np.bincount(held_out.lanes[0]).max()), dtype=np.float32)
        how = problem.settings.loss, TOLERANCE, PASSES, problem.settings.seed, found
        blocks = class_blocks(problem.classes, count_workers(n_jobs))
        work = choose_executor(n_jobs)
        list(work.map(lambda some: native.cross_fit_classes_in_place(*data, some, *how), blocks))
        return cls(held_out, order[pairs.documents], np.repeat(np.arange(len(pairs)), np.diff(pairs.offsets)), found)

    def scores(self, weights: Weights) -> NDArray[np.float32]:
        """Held-out documents × classes: out-of-fold scores, and those of the solution's weights where there is no pair."""
        held_out, n_classes = self.held_out, weights.n_classes
        scores = np.empty((len(held_out.documents), n_classes), dtype=np.float32)
        width = 8 * weights.n_features if weights.fits_table else 0
        for some in row_blocks(n_classes, width, BLOCK_WEIGHTS):  # the classes are independent
            scores[:, some] = Weights.flat(csr_array(weights.deltas[some]), weights.bias[some]).score(held_out.rows)
        used = np.flatnonzero(~np.isnan(self.found[:, 0]))
        scores[np.searchsorted(held_out.documents, self.documents[used]), self.classes[used]] = self.found[used, 0]
        return scores

    def measure_costs(self, own: csr_array, judged: NDArray[np.bool_], is_multi_label: bool) -> dict[float, Counts]:
        """By factor of the costs, what is right among the predictions for documents that are held out at all costs.

        Predicted are each document's best label and, if documents have several, as many of the highest scores as there are true
        labels: thresholds are set later. own: documents × classes. judged: by class, whether it is a label; others are not
        predicted.
        """
        n_classes, compared = own.shape[1], self.held_out.documents[self.held_out.is_compared]
        used = np.flatnonzero(judged[self.classes] & ~np.isnan(self.found).any(axis=1))
        documents, classes = np.searchsorted(compared, self.documents[used]), self.classes[used]
        true = own[compared].tocoo()
        is_label = judged[true.col]
        true_documents, true_classes = true.row[is_label].astype(np.int64), true.col[is_label]
        is_true = np.isin(documents * n_classes + classes, true_documents * n_classes + true_classes)
        counts = {}
        for factor, scores in zip(COSTS, self.found[used].T, strict=True):
            order = np.lexsort((-scores, documents))
            is_predicted = np.zeros(len(used), dtype=bool)
            is_predicted[order[np.diff(documents[order], prepend=-1) > 0]] = True
            if is_multi_label:
                is_predicted[np.argsort(-scores, kind="stable")[: len(true_classes)]] = True
            parts = [(documents[some], classes[some]) for some in (is_predicted & is_true, is_predicted)]
            counts[factor] = count_by_group([*parts, (true_documents, true_classes)], n_classes)
        return counts


def _with_places(X: csr_array, rows: Rows) -> native.Rows:
    """Documents over the features of the rows of a problem."""
    offsets, features, values = X.indptr.astype(np.int64), rows.place[X.indices], X.data.astype(np.float32, copy=False)
    if rows.has_bias:
        features, values = np.insert(features, offsets[:-1], 0), np.insert(values, offsets[:-1], 1)
        offsets = offsets + np.arange(len(offsets))
    return native.Rows(offsets, features.astype(np.int32, copy=False), values, rows.n_features)


def order_by_content(X: csr_array) -> Ints:
    """Documents in an order as if it were random, but which depends on their content, not on the order that they come in.

    >>> X = csr_array(np.array([[0, 1], [2, 0], [0, 3]], dtype=np.float32))
    >>> (X[order_by_content(X)] != X[[2, 0, 1]][order_by_content(X[[2, 0, 1]])]).nnz
    0
    """
    mixed = (X.indices.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= (X.data.view(np.uint32).astype(np.uint64) << np.uint64(32)) | X.data.view(np.uint32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    sums = np.concatenate([[np.uint64(0)], np.cumsum(mixed ^ (mixed >> np.uint64(29)), dtype=np.uint64)])
    return np.argsort(sums[X.indptr[1:]] - sums[X.indptr[:-1]], kind="stable")


def as_new(X: csr_array, documents: Ints, fold_of: NDArray[np.uint8], ends: Sequence[int]) -> csr_array:
    """Some documents as if they were new: without features that only documents of their fold have, blocks normalized again.

    fold_of: of these documents. ends: where the columns of each block of features end. Blocks whose rows differ in length are
    not normalized.

    >>> X = csr_array(np.array([[0.6, 0.8, 0], [1, 0, 0], [0, 0, 1]], dtype=np.float32))
    >>> as_new(X, np.array([0, 2]), np.array([0, 1], dtype=np.uint8), [3]).toarray().tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    n_features, rows = X.shape[1], csr_array(X[documents])
    row, frequency = np.repeat(np.arange(len(documents)), np.diff(rows.indptr)), np.bincount(X.indices, minlength=n_features)
    rare = np.flatnonzero(frequency[rows.indices] <= RARE)
    in_fold, position, count = np.unique(
        fold_of[row[rare]].astype(np.int64) * n_features + rows.indices[rare], return_inverse=True, return_counts=True
    )
    unknown = rare[(count == frequency[in_fold % n_features])[position]]
    if not len(unknown):
        return rows
    key = row * len(ends) + np.searchsorted(np.asarray(ends), rows.indices, side="right")
    old = _squared_lengths(rows, key, len(ends))
    rows.data[unknown] = 0
    new = _squared_lengths(rows, key, len(ends))
    is_normalized = [bool((each > 0).any() and np.ptp(each[each > 0]) < SAME) for each in old.T]
    factor = np.sqrt(np.divide(old, new, out=np.ones_like(old), where=(new > 0) & np.asarray(is_normalized)))
    rows.data *= factor.ravel()[key].astype(np.float32)
    rows.eliminate_zeros()
    return rows


def _squared_lengths(rows: csr_array, key: Ints, n_blocks: int) -> NDArray[np.float64]:
    """Rows × blocks; key: by entry, its row and block."""
    squares = rows.data.astype(np.float64) ** 2
    return np.asarray(np.bincount(key, squares, minlength=rows.shape[0] * n_blocks), dtype=np.float64).reshape(-1, n_blocks)


# ---- the selection of a value ----------------------------------------------------------------------------------------------


def count_by_group(parts: Sequence[tuple[Any, Any]], n_classes: int) -> Counts:
    """Groups of documents × classes × (true positives, predicted, true), each given as documents and classes."""
    keys = (documents % GROUPS * n_classes + classes for documents, classes in parts)
    counted = [np.bincount(key, minlength=GROUPS * n_classes) for key in keys]
    return np.stack(counted, axis=-1).reshape(GROUPS, n_classes, len(counted)).astype(np.float64)


def count_best(scores: NDArray[np.float32], own: csr_array) -> Counts:
    """What is right if the best class of every document that has a label is predicted (own: documents × classes)."""
    true = own.tocoo()
    labelled, n_classes = np.unique(true.row).astype(np.int64), own.shape[1]
    predicted = scores[labelled].argmax(axis=1)
    is_true = np.isin(labelled * n_classes + predicted, true.row.astype(np.int64) * n_classes + true.col)
    parts = [(labelled[is_true], predicted[is_true]), (labelled, predicted), (true.row, true.col)]
    return count_by_group(parts, n_classes)


def best_unless_close(counts: dict[float, Counts], first: float) -> tuple[float, dict[float, float]]:
    """The value with the best quality, or the first one if the gain may be chance or is below 0.002; and the quality of each.

    The quality is the mean of micro and macro F1. A gain may be chance if it is below two standard errors, which the
    jackknife estimates: from the gains without each of the groups of documents.

    >>> right, wrong = np.ones((8, 1, 3)), np.tile([0.0, 1.0, 1.0], (8, 1, 1))
    >>> best_unless_close({1.0: wrong, 3.0: right}, 1.0)
    (3.0, {1.0: 0.0, 3.0: 1.0})
    """
    quality = {value: mean_f1(each.sum(axis=0)) for value, each in counts.items()}
    best = max(quality, key=lambda value: (quality[value], -value))
    without = [
        [mean_f1(counts[value].sum(axis=0) - counts[value][group]) for value in (best, first)] for group in range(GROUPS)
    ]
    gains = [with_best - with_first for with_best, with_first in without]
    margin = max(LEAST_GAIN, ERRORS * float(np.sqrt((GROUPS - 1) * np.var(gains))))
    return (best if quality[best] > quality[first] + margin else first), quality
