"""Select C by cross-validation, with one warm-started regularization path per fold.

Costs from 10⁻³ to 10³ are tried in rising order, each started from the dual variables of the last and solved to a loose gap.
Above 1, where training is slow, the path ends once the quality has clearly fallen, or has fallen twice. Then half a step down
and up from the best are tried, too. The quality is the mean of micro and macro F1 over all held-out documents (micro F1 alone
would neglect small classes); of equal costs the smallest is selected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from ramify.learners.linear.dual_solver import TrainedWeights
from ramify.learners.linear.training import Setup, first_class_of
from ramify.parallel import row_blocks, stage

GRID = tuple(10.0**power for power in range(-3, 4))
HALF_STEP = 10**0.5
FOLDS = 3
LOOSE, ROUNDS = 3e-2, 200  # duality gap and rounds that suffice to compare costs
ALWAYS = 1.0  # cost up to which the path always goes
CLEAR = 0.01  # relative fall of the quality that ends the path at once
MOST_SCORES = 1 << 26  # at a time

# training documents, held-out documents, setup, start → predicted classes of those held out, start of the next call
Attempt = Callable[[NDArray[np.int64], NDArray[np.int64], Setup, Any], tuple[csr_array, Any]]


def cross_validate_C(own: csr_array, setup: Setup, attempt: Attempt) -> tuple[float, dict[float, float]]:
    """The best cost, and the quality of every cost that was tried (own: documents × classes)."""
    settings = setup.settings
    rough = replace(settings, tolerance=max(settings.tolerance, LOOSE), max_iter=min(settings.max_iter, ROUNDS))
    folds = list(split_folds(own, settings.seed))
    starts: list[Any] = [None] * len(folds)
    quality: dict[float, float] = {}

    def measure(C: float) -> None:
        counts = np.zeros((own.shape[1], 3))
        for k, (used, held_out) in enumerate(folds):
            predicted, starts[k] = attempt(used, held_out, replace(setup, C=C, settings=rough, keep_dual=True), starts[k])
            true = own[held_out]
            counted = predicted.multiply(true), predicted, true  # true positives, predicted labels, true labels
            counts += np.column_stack([np.asarray(some.sum(axis=0)).ravel() for some in counted])
            step.advance()
        quality[C] = mean_f1(counts)

    with stage("selecting C by cross-validation", len(folds) * (len(GRID) + 2)) as step:
        for C in GRID:
            measure(C)
            if C > ALWAYS and _is_past_the_best(list(quality.values())):
                break
        if any(quality.values()):
            best = best_C(quality)
            for C in (best / HALF_STEP, best * HALF_STEP):
                if GRID[0] <= C <= GRID[-1]:
                    measure(C)
    return best_C(quality), dict(sorted(quality.items()))


def best_C(quality: dict[float, float]) -> float:
    """The smallest of the best costs; 1 if every quality is 0."""
    return max(quality, key=lambda C: (quality[C], -C)) if any(quality.values()) else 1.0


def _is_past_the_best(quality: list[float]) -> bool:
    """Whether the last is clearly worse than the best, or the last two are worse.

    >>> _is_past_the_best([0.1, 0.5, 0.49]), _is_past_the_best([0.1, 0.5, 0.499]), _is_past_the_best([0.5, 0.499, 0.498])
    (True, False, True)
    """
    best = max(quality)
    return quality[-1] < (1 - CLEAR) * best or max(quality[-2:]) < best


def split_folds(own: csr_array, seed: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Training and held-out documents, stratified by class; a class is never held out completely."""
    fold, labelled = assign_folds(own, np.random.default_rng(seed)), np.diff(own.indptr) > 0
    counts = own.astype(np.int64)
    for k in range(FOLDS):
        held_out = (fold == k) & labelled
        bare = np.asarray(counts[~held_out].sum(axis=0)).ravel() == 0
        held_out &= np.asarray(counts @ bare.astype(np.int64)).ravel() == 0
        if held_out.any():
            yield np.flatnonzero(~held_out), np.flatnonzero(held_out)


def assign_folds(own: csr_array, rng: np.random.Generator, n_folds: int = FOLDS) -> NDArray[np.int64]:
    """A fold for every document, stratified by its first class; documents without labels are one more class."""
    shuffled, fold = rng.permutation(own.shape[0]), np.empty(own.shape[0], dtype=np.int64)
    fold[shuffled[np.argsort(first_class_of(own)[shuffled], kind="stable")]] = np.arange(len(fold)) % n_folds
    return fold


def predict_classes(trained: TrainedWeights, X: csr_array, is_multi_label: bool) -> csr_array:
    """The best class of each document, and with multiple labels every class above zero (documents × classes)."""
    n_classes = len(trained.weights.class_units)
    parts = []
    for block in row_blocks(X.shape[0], n_classes, MOST_SCORES):
        scores = trained.score(X[block])
        predicted = scores > 0 if is_multi_label else np.zeros(scores.shape, dtype=bool)
        predicted[np.arange(len(scores)), scores.argmax(axis=1)] = True
        parts.append(csr_array(predicted))
    return csr_array(vstack(parts, format="csr"))


def mean_f1(counts: NDArray[np.float64]) -> float:
    """The mean of micro and macro F1, macro over the classes that are predicted or true somewhere."""
    hits, predicted, true = counts[counts[:, 1] + counts[:, 2] > 0].T
    if not len(hits):
        return 0.0
    return float((2 * hits.sum() / (predicted + true).sum() + (2 * hits / (predicted + true)).mean()) / 2)
