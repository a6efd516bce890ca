"""Precision, recall and F1 of label sets with all their ancestors, summed over documents."""

from __future__ import annotations

from typing import Any

from ramify.metrics.counting import both, f1, label_pair, ratio
from ramify.taxonomy import Taxonomy


def hierarchical_precision(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> float:
    """The share of predicted nodes, ancestors included, that are true."""
    correct, true, predicted = _sums(Y_true, Y_pred, taxonomy)
    return float(ratio(correct, predicted, true))


def hierarchical_recall(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> float:
    """The share of true nodes, ancestors included, that are predicted."""
    correct, true, predicted = _sums(Y_true, Y_pred, taxonomy)
    return float(ratio(correct, true, predicted))


def hierarchical_f1(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> float:
    """The harmonic mean of hierarchical precision and recall.

    >>> food = Taxonomy.from_paths(["fruit/apple", "fruit/pear"])
    >>> hierarchical_f1(food.encode(["fruit/apple"]), food.encode(["fruit/pear"]), food)
    0.5
    """
    return float(f1(*_sums(Y_true, Y_pred, taxonomy)))


def _sums(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> tuple[int, int, int]:
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    return both(T, P).nnz, T.nnz, P.nnz
