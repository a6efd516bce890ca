"""The best classes of a document without scoring all: candidates are picked by their largest weights and scored exactly.

The index holds the largest weights of every class, by feature. The candidates are the likeliest classes by bias and these
weights alone; they are then scored with all their weights. Classes of a tree share the products of the units on their paths.

The candidates of a model in shards are the likeliest of the candidates of all shards, so the result does not depend on how the
model is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.learners.linear.candidates import Signatures
from ramify.learners.linear.shards import Shard
from ramify.learners.linear.weights import Weights
from ramify.native import Rows, find_candidates_in_place, find_top_classes_in_place, rows_of, score_candidates_in_place
from ramify.parallel import Executor, choose_executor, row_blocks

BEAM = 20  # candidates of a document that a model in shards scores
FAR = np.float32(-1)  # the score of a class that is no candidate
ROWS = 512  # documents per block

Found = tuple[NDArray[np.int32], NDArray[np.float32]]


def search(X: csr_array, shards: Sequence[Shard], k: int, width: int, executor: Executor) -> Found:
    """The k best of `width` candidates of each document and their scores, best first; -1 where there are fewer."""
    return best_first(*score_likeliest(X, shards, width, executor), k)


def score_likeliest(X: csr_array, shards: Sequence[Shard], width: int, executor: Executor) -> Found:
    """The candidates of each document in order of number, -1 where there are fewer, and their scores."""
    width = min(width, sum(shard.weights.n_classes for shard in shards))
    blocks = row_blocks(X.shape[0], 1, ROWS)
    parts = list(executor.map(lambda rows: _score_block(X[rows] if len(blocks) > 1 else X, shards, width), blocks))
    nothing = np.zeros((0, width), dtype=np.int32), np.zeros((0, width), dtype=np.float32)
    classes, scores = zip(*parts or [nothing], strict=True)
    return np.concatenate(classes), np.concatenate(scores)


def score_by_signatures(X: csr_array, weights: Weights, signatures: Signatures, width: int) -> NDArray[np.float32]:
    """Scores, documents × classes, of classes trained in the fast mode.

    The `width` candidates of a document are scored. All other classes were not trained on documents like it: they get a score
    just below -1, or just below the lowest of the candidates.
    """
    candidates, scores = score_likeliest(X, [Shard.by_signatures(weights, signatures)], width, choose_executor(1))
    there = candidates >= 0
    lowest = np.where(there, scores, FAR).min(axis=1, initial=FAR)
    S = np.repeat(np.nextafter(lowest, -np.inf)[:, None], signatures.n_classes, axis=1)
    S[np.nonzero(there)[0], candidates[there]] = scores[there]
    return S


def _score_block(X: csr_array, shards: Sequence[Shard], width: int) -> Found:
    rows = rows_of(X)
    classes = _likeliest(rows, X.shape[0], shards, width)
    return classes, _scores(rows, shards, classes)


def _likeliest(rows: Rows, n_rows: int, shards: Sequence[Shard], width: int) -> NDArray[np.int32]:
    """The candidates of all shards, in order of number."""
    best = np.zeros((n_rows, 0), dtype=np.int32), np.zeros((n_rows, 0), dtype=np.float32)
    first = 0
    for shard in shards:
        shape = n_rows, min(width, shard.weights.n_classes)
        classes, likelihood = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.float32)
        find = find_candidates_in_place if shard.is_fast else find_top_classes_in_place
        find(rows, shard.index.to_native(), shard.start, classes, likelihood)
        classes[classes >= 0] += first
        classes[likelihood == -np.inf] = -1  # not allowed
        best = _likelier(*best, classes, likelihood, width) if len(shards) > 1 else (classes, likelihood)
        first += shard.weights.n_classes
    return best[0]


def _likelier(classes: Any, likelihood: Any, more: Any, their_likelihood: Any, width: int) -> Found:
    """The likeliest of two sets of classes, the second with higher numbers; in order of number, -1 last."""
    both, chances = np.hstack([classes, more]), np.hstack([likelihood, their_likelihood])
    # stable: of equally likely classes those with lower numbers stay in front
    kept = np.sort(np.argsort(-chances, axis=1, kind="stable")[:, :width], axis=1)
    both, chances = np.take_along_axis(both, kept, axis=1), np.take_along_axis(chances, kept, axis=1)
    order = np.argsort(both < 0, axis=1, kind="stable")
    return np.take_along_axis(both, order, axis=1), np.take_along_axis(chances, order, axis=1)


def _scores(rows: Rows, shards: Sequence[Shard], classes: NDArray[np.int32]) -> NDArray[np.float32]:
    """The scores of some classes of each document; -inf where there is none."""
    scores = np.full(classes.shape, -np.inf, dtype=np.float32)
    first = 0
    for shard in shards:
        last = first + shard.weights.n_classes
        local = classes if len(shards) == 1 else np.where((classes >= first) & (classes < last), classes - first, -1)
        score_candidates_in_place(rows, *shard.weights.along_paths(), local.astype(np.int32, copy=False), scores)
        first = last
    return scores


def best_first(candidates: NDArray[Any], scores: NDArray[np.float32], k: int) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """The k best candidates of each document and their scores; equal ones as they stand, -1 where there are fewer."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    best, found = np.take_along_axis(candidates, order, axis=1), np.take_along_axis(scores, order, axis=1)
    missing = k - best.shape[1]
    if missing > 0:
        best = np.pad(best, ((0, 0), (0, missing)), constant_values=-1)
        found = np.pad(found, ((0, 0), (0, missing)), constant_values=-np.inf)
    return best, found
