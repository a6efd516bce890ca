"""Metrics of scores rather than of decisions; nodes with a NaN score have no classifier and are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ramify.errors import InputError
from ramify.metrics.flat import Floats, mean
from ramify.parallel import row_blocks
from ramify.taxonomy import Taxonomy, expand_to_ancestors


def document_auc(Y_true: Any, scores: Any, taxonomy: Taxonomy) -> Floats:
    """For each document, the probability that a true node scores above another one; NaN where there is nothing to compare."""

    def auc(truth: NDArray[np.bool_], S: Floats) -> Floats:
        # the Mann–Whitney statistic from midranks
        scored = ~np.isnan(S)
        positive = truth & scored
        n_true, n_other = positive.sum(axis=1), (~truth & scored).sum(axis=1)
        # nodes without a score rank below all others; their number is subtracted
        lowest = np.nan_to_num(S, nan=-np.inf, neginf=np.finfo(np.float64).min)
        ranks = rankdata(lowest, axis=1) - (~scored).sum(axis=1, keepdims=True)
        above = (ranks * positive).sum(axis=1) - n_true * (n_true + 1) / 2
        pairs = (n_true * n_other).astype(np.float64)
        return np.asarray(np.divide(above, pairs, out=np.full(len(S), np.nan), where=pairs > 0))

    return _over_blocks(Y_true, scores, taxonomy, auc)


def precision_at_k(Y_true: Any, scores: Any, taxonomy: Taxonomy, k: int) -> float:
    """The mean fraction of true nodes among the k best-scoring ones; ties go by node order."""
    if k < 1:
        raise InputError(f"k is {k}; give a whole number of at least 1.")

    def hits(truth: NDArray[np.bool_], S: Floats) -> Floats:
        top = np.argsort(np.where(np.isnan(S), np.inf, -S), axis=1, kind="stable")[:, :k]
        return np.asarray(np.take_along_axis(truth & ~np.isnan(S), top, axis=1).sum(axis=1), dtype=np.float64)

    return mean(_over_blocks(Y_true, scores, taxonomy, hits) / k, of_nothing=1.0)


def _over_blocks(
    Y_true: Any, scores: Any, taxonomy: Taxonomy, measure: Callable[[NDArray[np.bool_], Floats], Floats]
) -> Floats:
    """One number per document, from a few dense rows of truth and scores at a time."""
    T, S = expand_to_ancestors(Y_true, taxonomy), np.asarray(scores)
    if S.shape != T.shape:
        raise InputError(f"scores have shape {S.shape} but the labels {T.shape}; give one score per document and node.")
    blocks = row_blocks(len(S), 64 * len(taxonomy))
    parts = [measure(T[rows].toarray(), S[rows].astype(np.float64)) for rows in blocks]
    return np.concatenate([np.zeros(0), *parts])
