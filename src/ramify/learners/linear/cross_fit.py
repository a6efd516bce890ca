"""Out-of-fold scores of independent classes, and the selection of C, from one solution on all documents.

    w_k = argmin  ½‖w‖² + C Σ_{i not in fold k} U_i L(y_i w·x_i)        the score of document i in fold k is w_k·x_i

A fold starts from the dual variables of the solution, those of its documents taken out, and goes on with a few passes of dual
ascent. Eight problems run side by side in one kernel: eight folds, or two folds at four costs. A class and a document that are
not in the working set of the solution, or far beyond its margin, keep their score: the solution has no dual variable for them,
so that leaving the document out would not change it.
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
from ramify.learners.linear.problem import Pairs, Problem, Rows
from ramify.learners.linear.select_C import mean_f1
from ramify.learners.linear.weights import class_blocks
from ramify.parallel import choose_executor, count_workers, row_blocks

FOLDS = native.LANES
TOLERANCE, PASSES = 5e-3, 10  # relative duality gap that is small enough for a fold, and passes at most
COST_PASSES = 5  # the same to compare costs
COSTS = (1 / 3, 1.0, 10 / 3, 10.0)  # factors of the first cost that are tried
COST_FOLDS = 4  # of the documents; half of these folds are held out
RARE = 16  # documents; a feature of more of them is hardly ever in one fold alone
SAME = 1e-3  # difference of squared lengths up to which rows count as normalized
MOST_DOCUMENTS, FEWEST_DOCUMENTS = 20_000, 1000  # that are scored out of fold
MOST_SCORES, BLOCK_SCORES = 1 << 26, 1 << 24  # documents × classes: in all, and at a time
LEAST_GAIN = 0.002  # of the quality, for which another value is worth a further training
DISAGREEMENT = 0.04  # fraction of the documents that two costs classify differently, about

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CrossFit:
    """A solution on all documents from which folds are solved.

    order: row k of the problem is document order[k]. n_jobs: threads.
    """

    problem: Problem
    pairs: Pairs
    order: Ints
    n_jobs: int | None

    @classmethod
    def of(cls, trained: TrainedWeights, n_jobs: int | None) -> CrossFit | None:
        """From trained weights with dual variables; None for others."""
        start = trained.start
        if trained.problem is None or trained.order is None or start is None or start.pairs is None:
            return None
        return cls(trained.problem, start.pairs, trained.order, n_jobs)

    def scores(
        self,
        fold_of: NDArray[np.uint8],
        costs: Sequence[float] = (1.0,),
        held_out: csr_array | None = None,
        passes: int = PASSES,
    ) -> NDArray[np.float32]:
        """Pairs × costs: the score of every pair in the fold that holds its document out; NaN where none does.

        fold_of: by document, below 8 / number of costs if it is held out. held_out: the documents as they are scored.
        """
        problem, pairs = self.problem, self.pairs
        documents = problem.rows.to_native()
        whole = problem.rows.block(slice(0, len(problem.rows)))
        new = whole if held_out is None else _with_places(held_out[self.order], problem.rows)
        if not pairs.alphas.flags.writeable:  # as they come from other processes
            pairs = replace(pairs, alphas=pairs.alphas.copy())
        data = (
            native.Pairs(*pairs.arrays, len(problem.rows)),
            problem.costs.documents,
            np.ascontiguousarray(fold_of[self.order]),
        )
        found = np.empty((len(pairs.documents), len(costs)), dtype=np.float32)
        how = problem.settings.loss, TOLERANCE, passes, problem.settings.seed, found
        factors = np.asarray(costs, dtype=np.float32)
        blocks = class_blocks(problem.classes, count_workers(self.n_jobs))
        work = choose_executor(self.n_jobs)
        list(work.map(lambda some: native.cross_fit_classes_in_place(documents, new, *data, factors, some, *how), blocks))
        return found

    @property
    def documents(self) -> Ints:
        """The document of every pair."""
        return self.order[self.pairs.documents]

    @property
    def classes(self) -> Ints:
        """The class of every pair."""
        return np.repeat(np.arange(len(self.pairs)), np.diff(self.pairs.offsets))


def out_of_fold_scores(
    fit: CrossFit, weights: Any, X: csr_array, block_ends: Sequence[int] | None
) -> tuple[Ints, NDArray[np.float32]]:
    """Documents, a sample where there are many, and their out-of-fold scores (documents × classes)."""
    n_docs, n_classes = X.shape[0], len(fit.pairs)
    n_scored = min(n_docs, MOST_DOCUMENTS, max(FEWEST_DOCUMENTS, MOST_SCORES // max(1, n_classes)))
    fold_of = folds_by_content(X, FOLDS)
    new = as_new(X, fold_of, block_ends or [X.shape[1]])
    documents = np.sort(np.random.default_rng(0).permutation(n_docs)[:n_scored])
    row = np.full(n_docs, -1)
    row[documents] = np.arange(n_scored)
    found = np.concatenate([weights.score(new[documents[some]]) for some in row_blocks(n_scored, n_classes, BLOCK_SCORES)])
    places = row[fit.documents]
    scores = fit.scores(fold_of, held_out=new)[:, 0]
    used = (places >= 0) & ~np.isnan(scores)
    found[places[used], fit.classes[used]] = scores[used]
    return documents, found


def _with_places(X: csr_array, rows: Rows) -> native.Rows:
    """Documents over the features of the rows of a problem."""
    offsets, features, values = X.indptr.astype(np.int64), rows.place[X.indices], X.data.astype(np.float32, copy=False)
    if rows.has_bias:
        features, values = np.insert(features, offsets[:-1], 0), np.insert(values, offsets[:-1], 1)
        offsets = offsets + np.arange(len(offsets))
    return native.Rows(offsets, features.astype(np.int32, copy=False), values, rows.n_features)


def folds_by_content(X: csr_array, n_folds: int) -> NDArray[np.uint8]:
    """A fold for every document, all of the same size, which does not depend on the order of the documents.

    >>> folds_by_content(csr_array(np.eye(4, dtype=np.float32)), 2).tolist() == folds_by_content(
    ...     csr_array(np.eye(4, dtype=np.float32)[::-1]), 2
    ... )[::-1].tolist()
    True
    """
    mixed = (X.indices.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= (X.data.view(np.uint32).astype(np.uint64) << np.uint64(32)) | X.data.view(np.uint32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    sums = np.concatenate([[np.uint64(0)], np.cumsum(mixed ^ (mixed >> np.uint64(29)), dtype=np.uint64)])
    order = np.argsort(sums[X.indptr[1:]] - sums[X.indptr[:-1]], kind="stable")
    fold_of = np.empty(X.shape[0], dtype=np.uint8)
    fold_of[order] = np.arange(X.shape[0]) % n_folds
    return fold_of


def as_new(X: csr_array, fold_of: NDArray[np.uint8], ends: Sequence[int]) -> csr_array:
    """Documents as if they were new: without features that only documents of their fold have, blocks normalized again.

    ends: where the columns of each block of features end. Blocks whose rows differ in length are not normalized.

    >>> X = csr_array(np.array([[0.6, 0.8, 0], [1, 0, 0], [0, 0, 1]], dtype=np.float32))
    >>> as_new(X, np.array([0, 1, 1], dtype=np.uint8), [3]).toarray().tolist()
    [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    n_docs, n_features = X.shape
    row, frequency = np.repeat(np.arange(n_docs), np.diff(X.indptr)), np.bincount(X.indices, minlength=n_features)
    rare = np.flatnonzero(frequency[X.indices] <= RARE)
    in_fold, position, count = np.unique(
        fold_of[row[rare]].astype(np.int64) * n_features + X.indices[rare], return_inverse=True, return_counts=True
    )
    unknown = rare[(count == frequency[in_fold % n_features])[position]]
    if not len(unknown):
        return X
    made = X.copy()
    made.data[unknown] = 0
    changed = np.unique(row[unknown])
    before, after = X[changed], made[changed]
    entries = np.repeat(np.arange(len(changed)), np.diff(before.indptr))
    block_of = np.searchsorted(np.asarray(ends), before.indices, side="right")
    key, n_keys = entries * len(ends) + block_of, len(changed) * len(ends)
    squares = (np.bincount(key, part.data.astype(np.float64) ** 2, minlength=n_keys) for part in (before, after))
    old, new = (each.reshape(-1, len(ends)) for each in squares)
    is_normalized = [bool((each > 0).any() and np.ptp(each[each > 0]) < SAME) for each in old.T]
    factor = np.sqrt(np.divide(old, new, out=np.ones_like(old), where=(new > 0) & np.asarray(is_normalized)))
    is_changed = np.isin(row, changed)
    made.data[is_changed] *= factor.ravel()[key].astype(np.float32)
    made.eliminate_zeros()
    return made


# ---- the selection of C -------------------------------------------------------------------------------------------------


def measure_costs(
    fit: CrossFit, X: csr_array, own: csr_array, judged: NDArray[np.bool_], is_multi_label: bool
) -> dict[float, float]:
    """By factor of the costs, the quality of held-out predictions: the mean of micro and macro F1.

    own: documents × classes. judged: by class, whether it is a label; others are not predicted.
    """
    fold_of = folds_by_content(X, COST_FOLDS)
    is_held_out, documents, classes = fold_of < FOLDS // len(COSTS), fit.documents, fit.classes
    scores = fit.scores(fold_of, COSTS, passes=COST_PASSES)
    used = np.flatnonzero(judged[classes] & ~np.isnan(scores[:, 0]))
    documents, classes, scores = documents[used], classes[used], scores[used]
    keys = classes * own.shape[0] + documents  # rising within a class
    true = own.tocsc()
    true_keys = np.repeat(np.arange(own.shape[1]), np.diff(true.indptr)) * own.shape[0] + true.indices
    is_true = np.isin(keys, true_keys)
    n_true = np.asarray(own[is_held_out].sum(axis=0)).ravel() * judged
    quality = {}
    for factor, mine in zip(COSTS, scores.T, strict=True):
        order = np.lexsort((-mine, documents))
        is_first = np.diff(documents[order], prepend=-1) > 0
        is_predicted = (mine > 0) & is_multi_label
        is_predicted[order[is_first]] = True
        counts = [np.bincount(classes[some], minlength=own.shape[1]) for some in (is_predicted & is_true, is_predicted)]
        quality[factor] = mean_f1(np.column_stack([*counts, n_true]).astype(np.float64))
    return quality


def best_unless_close(quality: dict[float, float], first: float, n_documents: int) -> float:
    """The value with the best quality; the first one unless another is better by more than chance, and by 0.002.

    >>> quality = {1.0: 0.74, 3.0: 0.741, 10.0: 0.76}
    >>> best_unless_close(quality, 1.0, 1000), best_unless_close({1.0: 0.74, 3.0: 0.741}, 1.0, 1000)
    (10.0, 1.0)
    """
    best = max(quality, key=lambda value: (quality[value], -value))
    margin = max(LEAST_GAIN, 0.5 * np.sqrt(DISAGREEMENT / max(1, n_documents)))
    return best if quality[best] > quality[first] + margin else first
