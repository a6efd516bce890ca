"""What all metrics are made of: pairs of closed label matrices, counts of them, and ratios that are always defined."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import InputError
from ramify.taxonomy import Taxonomy, expand_to_ancestors

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def label_pair(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> tuple[csr_array, csr_array]:
    """Truth and prediction, both closed upward, of the same documents: the one door of all metrics."""
    T, P = expand_to_ancestors(Y_true, taxonomy), expand_to_ancestors(Y_pred, taxonomy)
    if T.shape[0] != P.shape[0]:
        raise InputError(f"Y_true has {T.shape[0]} documents and Y_pred has {P.shape[0]}; they must be the same documents.")
    return T, P


def both(T: csr_array, P: csr_array) -> csr_array:
    """The labels that are true and predicted."""
    return csr_array(T.multiply(P))


def per_node(Y: csr_array) -> Counts:
    """The number of documents of each node."""
    return np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int64)


def per_document(Y: csr_array) -> Counts:
    """The number of labels of each document."""
    return np.asarray(np.diff(Y.indptr), dtype=np.int64)


def ratio(correct: Any, total: Any, other_total: Any) -> Floats:
    """correct / total; where total is 0: 1 if the other side is empty too, else 0."""
    correct, total, other_total = (np.asarray(value, dtype=np.float64) for value in (correct, total, other_total))
    empty = np.broadcast_to(np.where(other_total == 0, 1.0, 0.0), np.broadcast_shapes(correct.shape, total.shape)).copy()
    return np.asarray(np.divide(correct, total, out=empty, where=total > 0), dtype=np.float64)


def f1(correct: Any, true: Any, predicted: Any) -> Floats:
    """2 correct / (true + predicted), 1 where both are empty."""
    both_sides = np.asarray(true, dtype=np.float64) + np.asarray(predicted, dtype=np.float64)
    return ratio(2 * np.asarray(correct, dtype=np.float64), both_sides, 0)


def mean(values: Floats, of_nothing: float) -> float:
    """The mean, or the given value where there is nothing to average."""
    return float(values.mean()) if values.size else of_nothing
