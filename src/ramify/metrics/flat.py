"""Accuracy, precision, recall and F1 over nodes and documents, metrics of rankings, and the counts that all metrics use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import rankdata

from ramify.arguments import as_numbers, check_count
from ramify.errors import InputError, suggest
from ramify.parallel import row_blocks
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_specific

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Over = Literal["leaves", "nodes", "own"]


def label_pair(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> tuple[csr_array, csr_array]:
    """Truth and prediction, both closed upward, of the same documents; every metric reads its input here."""
    T, P = expand_to_ancestors(Y_true, taxonomy), expand_to_ancestors(Y_pred, taxonomy)
    if T.shape[0] != P.shape[0]:
        raise InputError(f"Y_true has {T.shape[0]} documents and Y_pred has {P.shape[0]}; they must be the same documents.")
    return T, P


def truth_and_scores(Y_true: Any, scores: Any, taxonomy: Taxonomy, what: str) -> tuple[csr_array, NDArray[Any]]:
    """Truth, closed upward, and one score or probability per document and node. what: these are."""
    T = expand_to_ancestors(Y_true, taxonomy)
    return T, as_numbers(scores, what, "give one per document and node, for the same documents as the labels", T.shape)


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
    """The fraction of documents whose label set is exactly right.

    >>> fruit = Taxonomy.flat(["apple", "pear"])
    >>> accuracy([[1, 0], [0, 1]], [[1, 0], [1, 0]], fruit)
    0.5
    """
    return mean(exact_matches(Y_true, Y_pred, taxonomy).astype(np.float64), of_nothing=1.0)


def exact_matches(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> NDArray[np.bool_]:
    """For each document, whether its label set is exactly right."""
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    correct = per_document(both(T, P))
    return np.asarray((per_document(T) == correct) & (per_document(P) == correct))


def micro_f1(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, over: Over = "leaves") -> float:
    """F1 of all document–node decisions on the chosen nodes, pooled."""
    T, P, nodes = _compared(Y_true, Y_pred, taxonomy, over)
    counts = (per_node(Y)[nodes].sum() for Y in (both(T, P), T, P))
    return float(f1(*counts))


def macro_f1(
    Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, over: Over = "leaves", empty: float | Literal["skip"] = 1.0
) -> float:
    """The mean of the chosen nodes' F1. empty: the F1 of a node in neither matrix, or "skip" to leave it out."""
    T, P, nodes = _compared(Y_true, Y_pred, taxonomy, over)
    correct, true, predicted = (per_node(Y)[nodes] for Y in (both(T, P), T, P))
    scores, occurs = f1(correct, true, predicted), (true + predicted) > 0
    if empty != "skip" and not isinstance(cast(Any, empty), Real):
        raise InputError(f"empty is {empty!r}; give a number, or 'skip'.")
    if empty == "skip":
        return mean(scores[occurs], of_nothing=1.0)
    return mean(np.where(occurs, scores, float(empty)), of_nothing=1.0)


def precision_recall_f1(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> NodeScores:
    """Precision, recall and F1 of every node, ancestors included."""
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    correct, true, predicted = (per_node(Y) for Y in (both(T, P), T, P))
    precision, recall = ratio(correct, predicted, true), ratio(correct, true, predicted)
    return NodeScores(true, predicted, correct, precision, recall, f1(correct, true, predicted))


def _compared(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, over: str) -> tuple[csr_array, csr_array, Counts]:
    """The matrices and the nodes that `over` chooses."""
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    if over == "own":
        T, P = most_specific(T, taxonomy), most_specific(P, taxonomy)
        return T, P, np.flatnonzero(per_node(T) + per_node(P))
    if over not in ("leaves", "nodes"):
        raise InputError(f"over is {over!r}; give 'leaves', 'nodes' or 'own'.{suggest(str(over), ('leaves', 'nodes', 'own'))}")
    return T, P, np.flatnonzero(taxonomy.is_leaf) if over == "leaves" else np.arange(len(taxonomy))


def document_precision(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> float:
    """The mean over documents of the fraction of predicted nodes that are true."""
    correct, true, predicted = _counts(Y_true, Y_pred, taxonomy)
    return mean(ratio(correct, predicted, true), of_nothing=1.0)


def document_recall(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> float:
    """The mean over documents of the fraction of true nodes that are predicted."""
    correct, true, predicted = _counts(Y_true, Y_pred, taxonomy)
    return mean(ratio(correct, true, predicted), of_nothing=1.0)


def document_f1(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> float:
    """The mean over documents of the F1 of the document's label set."""
    return mean(f1(*_counts(Y_true, Y_pred, taxonomy)), of_nothing=1.0)


def tree_distance(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> Counts:
    """The distance of each prediction from the truth: the number of nodes in just one of the two closed label sets.

    >>> food = Taxonomy.from_paths(["fruit/apple", "fruit/pear", "bread/rye"])
    >>> tree_distance(food.encode(["fruit/apple"] * 2), food.encode(["fruit/pear", "bread/rye"]), food)
    array([2, 4])
    """
    correct, true, predicted = _counts(Y_true, Y_pred, taxonomy)
    return true + predicted - 2 * correct


def _counts(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> tuple[Counts, Counts, Counts]:
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    return per_document(both(T, P)), per_document(T), per_document(P)


# ---- rankings: nodes with a NaN score have no classifier and are left out -----------------------------------------------


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
    check_count(k, "k")

    def hits(truth: NDArray[np.bool_], S: Floats) -> Floats:
        top = np.argsort(np.where(np.isnan(S), np.inf, -S), axis=1, kind="stable")[:, :k]
        return np.asarray(np.take_along_axis(truth & ~np.isnan(S), top, axis=1).sum(axis=1), dtype=np.float64)

    return mean(_over_blocks(Y_true, scores, taxonomy, hits) / k, of_nothing=1.0)


def _over_blocks(
    Y_true: Any, scores: Any, taxonomy: Taxonomy, measure: Callable[[NDArray[np.bool_], Floats], Floats]
) -> Floats:
    """One number per document, from a few dense rows of truth and scores at a time."""
    T, S = truth_and_scores(Y_true, scores, taxonomy, "scores")
    blocks = row_blocks(len(S), 64 * len(taxonomy))
    parts = [measure(T[rows].toarray(), S[rows].astype(np.float64)) for rows in blocks]
    return np.concatenate([np.zeros(0), *parts])
