"""The best classes of a document without scoring all: a few are picked by their strongest weights, and scored exactly.

The index holds the largest weights of every class, by feature. A document meets only the classes that have one of its
features there; the likeliest of them, by bias and these weights alone, are then scored with all their weights. Classes of a
tree share the products of the units on their paths.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, vstack

from ramify.execution import Executor, choose_executor, row_blocks
from ramify.learners.linear.near import Signatures, largest_of_rows
from ramify.learners.linear.weights import Weights, kernel_arrays
from ramify.native import nearest_classes, score_candidates

STRONGEST = 200  # weights of a class in the index
FAR = np.float32(-1)  # the score of a class for a document that it has learnt nothing about
CLASSES_A_CHUNK = 256


def index_weights(weights: Weights) -> Signatures:
    """The strongest weights of every class, by feature."""
    paths = weights.paths().astype(np.float32)
    chunks = [
        largest_of_rows(csr_array(paths[start : start + CLASSES_A_CHUNK] @ weights.deltas), STRONGEST)
        for start in range(0, paths.shape[0], CLASSES_A_CHUNK)
    ]
    index = csc_array(vstack(chunks, format="csc"))
    return Signatures(*kernel_arrays(index), paths.shape[0])


def search(
    X: csr_array, weights: Weights, index: Signatures, start: NDArray[np.float32], k: int, width: int, executor: Executor
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Of the `width` likeliest classes of each document the k best and their scores, best first; -1 where there are fewer.

    start: what is added to the products with the index.
    """
    return _best_first(*_score_likeliest(X, weights, index, start, width, executor), k)


def score_near(X: csr_array, weights: Weights, near: Signatures, width: int) -> NDArray[np.float32]:
    """Scores of documents, documents × classes, for classes that know only the documents near them.

    The `width` classes near a document are scored. All others have learnt nothing about it: they get the score of a certain
    no, just below -1, or just below the lowest of the near ones.
    """
    start = np.zeros(near.n_classes, dtype=np.float32)
    candidates, scores = _score_likeliest(X, weights, near, start, width, choose_executor(1))
    there = candidates >= 0
    lowest = np.where(there, scores, FAR).min(axis=1, initial=FAR)
    S = np.repeat(np.nextafter(lowest, -np.inf)[:, None], near.n_classes, axis=1)
    S[np.nonzero(there)[0], candidates[there]] = scores[there]
    return S


def _score_likeliest(
    X: csr_array, weights: Weights, index: Signatures, start: NDArray[np.float32], width: int, executor: Executor
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The likeliest classes of each document in order of number, -1 where there are fewer, and their scores."""
    width = min(width, index.n_classes)
    candidates = np.empty((X.shape[0], width), dtype=np.int32)
    scores = np.full((X.shape[0], width), -np.inf, dtype=np.float32)
    paths = weights.paths()
    rows = _rows(X)
    tied = kernel_arrays(paths)[:2]
    deltas = kernel_arrays(weights.deltas)
    nothing = np.zeros(X.shape[0] + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)

    def look(block: slice) -> None:
        nearest_classes(*rows, block.start, block.stop, *index.arrays, start, *nothing, candidates)
        score_candidates(*rows, block.start, block.stop, *deltas, weights.bias, *tied, candidates, scores)

    for _ in executor.map(look, row_blocks(X.shape[0], 1, 512)):
        pass
    return candidates, scores


def _rows(X: csr_array) -> tuple[Any, ...]:
    nothing = np.zeros(0, dtype=np.float32)
    return *kernel_arrays(X), nothing, X.shape[1]


def _best_first(candidates: NDArray[np.int32], scores: NDArray[np.float32], k: int) -> tuple[Any, Any]:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    best, found = np.take_along_axis(candidates, order, axis=1), np.take_along_axis(scores, order, axis=1)
    missing = k - best.shape[1]
    if missing > 0:
        best = np.pad(best, ((0, 0), (0, missing)), constant_values=-1)
        found = np.pad(found, ((0, 0), (0, missing)), constant_values=-np.inf)
    return best, found
