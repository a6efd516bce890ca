"""C by cross-validation, one warm-started path of solutions for each fold.

Costs from 10⁻³ to 10³ are tried in rising order, and each starts from the dual variables of the one before; the path of a
fold takes a few times as long as one training. Taken is the cost with the most documents right over all folds (with several
labels a document: the highest micro F1 of positive scores), the smallest of equals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.execution import stage
from ramify.learners.linear.training import Setup, Trained

GRID = tuple(10.0**power for power in range(-3, 4))
FOLDS = 3

# documents, own labels (documents × classes), weights of documents, setup, an earlier result to start from
Train = Callable[[csr_array, csr_array, NDArray[np.float64], Setup, Trained | None], Trained]


def choose_cost(
    X: csr_array, own: csr_array, sample_weight: NDArray[np.float64], setup: Setup, train: Train
) -> tuple[float, dict[float, float]]:
    """The best cost of the grid, and the quality of each."""
    found = {C: np.zeros(3) for C in GRID}
    with stage("choosing C by cross-validation", FOLDS * len(GRID)) as step:
        for learnt, held_out in split_folds(own, setup.settings.seed):
            last: Trained | None = None
            for C in GRID:
                last = train(X[learnt], own[learnt], sample_weight[learnt], replace(setup, C=C), last)
                found[C] += _count(last.score(X[held_out]), own[held_out])
                step.advance()
    quality = {C: float(2 * right / max(1, given + true)) for C, (right, given, true) in found.items()}
    return best_cost(quality), quality


def best_cost(quality: dict[float, float]) -> float:
    """The smallest of the best costs; 1 where nothing could be compared."""
    return max(quality, key=lambda C: (quality[C], -C)) if any(quality.values()) else 1.0


def split_folds(own: csr_array, seed: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Documents to learn from and documents held out; the documents of a class are spread over all folds.

    Documents of a class that would otherwise have nothing to learn from are never held out.
    """
    n_docs, n_classes = own.shape
    first = np.full(n_docs, n_classes, dtype=np.int64)
    labelled = np.diff(own.indptr) > 0
    first[labelled] = own.indices[own.indptr[:-1][labelled]]
    shuffled = np.random.default_rng(seed).permutation(n_docs)
    order = shuffled[np.argsort(first[shuffled], kind="stable")]
    fold = np.empty(n_docs, dtype=np.int64)
    fold[order] = np.arange(n_docs) % FOLDS
    counts = own.astype(np.int64)
    for k in range(FOLDS):
        held_out = (fold == k) & labelled
        bare = np.asarray(counts[~held_out].sum(axis=0)).ravel() == 0
        held_out &= np.asarray(counts @ bare.astype(np.int64)).ravel() == 0
        if held_out.any():
            yield np.flatnonzero(~held_out), np.flatnonzero(held_out)


def _count(scores: NDArray[np.float32], own: csr_array) -> NDArray[np.float64]:
    """Labels that are right, given and true: the best class of each document, and with it every class above zero."""
    true = own.toarray()
    given = np.zeros_like(true)
    given[np.arange(len(scores)), scores.argmax(axis=1)] = True
    if np.any(true.sum(axis=1) != 1):
        given |= scores > 0
    return np.asarray([np.sum(given & true), given.sum(), true.sum()], dtype=np.float64)
