"""Accuracy and F1 over nodes taken one by one."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from ramify.errors import InputError
from ramify.metrics.counting import Counts, Floats, both, f1, label_pair, mean, per_document, per_node, ratio
from ramify.taxonomy import Taxonomy, most_specific

Over = Literal["leaves", "nodes", "own"]


@dataclass(frozen=True, slots=True)
class NodeScores:
    """Counts and ratios of every node, in node order."""

    support: Counts
    predicted: Counts
    correct: Counts
    precision: Floats
    recall: Floats
    f1: Floats


def accuracy(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> float:
    """The share of documents whose label set is exactly right.

    >>> fruit = Taxonomy.flat(["apple", "pear"])
    >>> accuracy([[1, 0], [0, 1]], [[1, 0], [1, 0]], fruit)
    0.5
    """
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    correct = per_document(both(T, P))
    return mean(((per_document(T) == correct) & (per_document(P) == correct)).astype(np.float64), of_nothing=1.0)


def micro_f1(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, over: Over = "leaves") -> float:
    """F1 of all decisions about the chosen nodes taken together."""
    T, P, nodes = _compared(Y_true, Y_pred, taxonomy, over)
    counts = (per_node(Y)[nodes].sum() for Y in (both(T, P), T, P))
    return float(f1(*counts))


def macro_f1(
    Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, over: Over = "leaves", empty: float | Literal["skip"] = 1.0
) -> float:
    """The mean of the chosen nodes' F1.

    A node that occurs in neither matrix counts `empty`, or not at all with "skip".
    """
    T, P, nodes = _compared(Y_true, Y_pred, taxonomy, over)
    correct, true, predicted = (per_node(Y)[nodes] for Y in (both(T, P), T, P))
    scores, occurs = f1(correct, true, predicted), (true + predicted) > 0
    if empty != "skip" and not _is_number(empty):
        raise InputError(f"empty is {empty!r}; give a number, or 'skip'.")
    if empty == "skip":
        return mean(scores[occurs], of_nothing=1.0)
    return mean(np.where(occurs, scores, float(empty)), of_nothing=1.0)


def precision_recall_f1(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> NodeScores:
    """Precision, recall and F1 of every node, ancestors included."""
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    correct, true, predicted = (per_node(Y) for Y in (both(T, P), T, P))
    return NodeScores(
        true,
        predicted,
        correct,
        ratio(correct, predicted, true),
        ratio(correct, true, predicted),
        f1(correct, true, predicted),
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real)


def _compared(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, over: str) -> tuple[csr_array, csr_array, Counts]:
    """The matrices and the nodes that `over` chooses."""
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    if over == "own":
        T, P = most_specific(T, taxonomy), most_specific(P, taxonomy)
        return T, P, np.flatnonzero(per_node(T) + per_node(P))
    if over not in ("leaves", "nodes"):
        raise InputError(f"over is {over!r}; give 'leaves', 'nodes' or 'own'.")
    return T, P, np.flatnonzero(taxonomy.is_leaf) if over == "leaves" else np.arange(len(taxonomy))
