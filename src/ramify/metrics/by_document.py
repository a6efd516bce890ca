"""Measures taken document by document."""

from __future__ import annotations

from typing import Any

from ramify.metrics.counting import Counts, both, f1, label_pair, mean, per_document, ratio
from ramify.taxonomy import Taxonomy


def document_precision(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> float:
    """The mean over documents of the share of predicted nodes that are true."""
    correct, true, predicted = _counts(Y_true, Y_pred, taxonomy)
    return mean(ratio(correct, predicted, true), of_nothing=1.0)


def document_recall(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> float:
    """The mean over documents of the share of true nodes that are predicted."""
    correct, true, predicted = _counts(Y_true, Y_pred, taxonomy)
    return mean(ratio(correct, true, predicted), of_nothing=1.0)


def document_f1(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> float:
    """The mean over documents of the F1 of the document's label set."""
    return mean(f1(*_counts(Y_true, Y_pred, taxonomy)), of_nothing=1.0)


def tree_distance(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> Counts:
    """How far each prediction lies from the truth: the nodes in one closed label set and not in the other.

    >>> food = Taxonomy.from_paths(["fruit/apple", "fruit/pear", "bread/rye"])
    >>> tree_distance(food.encode(["fruit/apple"] * 2), food.encode(["fruit/pear", "bread/rye"]), food)
    array([2, 4])
    """
    correct, true, predicted = _counts(Y_true, Y_pred, taxonomy)
    return true + predicted - 2 * correct


def _counts(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> tuple[Counts, Counts, Counts]:
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    return per_document(both(T, P)), per_document(T), per_document(P)
