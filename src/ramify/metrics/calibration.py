"""Calibration of probabilities, and the coverage, error and depth of predictions with a guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.arguments import check_count
from ramify.metrics.flat import Counts, Floats, label_pair, truth_and_scores
from ramify.parallel import row_blocks
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_specific

PAIR_BYTES = 64  # of what is computed from one pair at a time


@dataclass(frozen=True, slots=True)
class ReliabilityBins:
    """Document–node pairs at one depth, in bins of equal width by probability; means are NaN where a bin is empty."""

    depth: int
    count: Counts
    mean_probability: Floats
    fraction_true: Floats


@dataclass(frozen=True, slots=True)
class LevelErrors:
    """Calibration error at one depth: over all document–node pairs, and over the most probable node of each document."""

    depth: int
    pairs: float
    top_label: float


def reliability(Y_true: Any, probabilities: Any, taxonomy: Taxonomy, bins: int = 10) -> list[ReliabilityBins]:
    """Predicted and observed frequency at each depth; pairs without a probability (NaN) are left out."""
    T, P = truth_and_scores(Y_true, probabilities, taxonomy, "probabilities")
    check_count(bins, "bins")
    totals = np.zeros((taxonomy.n_levels, 3, bins))
    for rows in row_blocks(len(P), PAIR_BYTES * len(taxonomy)):
        true, p = T[rows].toarray(), P[rows].astype(np.float64)
        for depth in range(taxonomy.n_levels):
            columns = taxonomy.depth == depth
            totals[depth] += _bin_totals(p[:, columns].ravel(), true[:, columns].ravel(), bins)
    return [_averaged(depth, *totals[depth]) for depth in range(taxonomy.n_levels)]


def expected_calibration_error(Y_true: Any, probabilities: Any, taxonomy: Taxonomy, bins: int = 10) -> float:
    """The mean over pairs of the distance between predicted and observed frequency in their depth and bin; 0 without pairs."""
    return _mean_gap(reliability(Y_true, probabilities, taxonomy, bins))


def prediction_calibration_error(Y_true: Any, Y_pred: Any, probabilities: Any, taxonomy: Taxonomy, bins: int = 10) -> float:
    """The calibration error of the most specific predicted labels alone, all depths together."""
    truth, P = truth_and_scores(Y_true, probabilities, taxonomy, "probabilities")
    check_count(bins, "bins")
    own = most_specific(label_pair(truth, Y_pred, taxonomy)[1], taxonomy)
    rows = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
    p = P[rows, own.indices].astype(np.float64)
    true = np.asarray(truth[rows, own.indices]).ravel()
    given = ~np.isnan(p)
    return binned_calibration_error(p[given], true[given], bins)


def calibration_errors(Y_true: Any, probabilities: Any, taxonomy: Taxonomy, bins: int = 10) -> list[LevelErrors]:
    """The calibration error of every depth."""
    T, P = truth_and_scores(Y_true, probabilities, taxonomy, "probabilities")
    truth, found, rows = T.toarray(), [], np.arange(len(P))
    for level in reliability(Y_true, P, taxonomy, bins):
        nodes = np.flatnonzero(taxonomy.depth == level.depth)
        best = nodes[np.nan_to_num(P[:, nodes], nan=-1.0).argmax(axis=1)]
        known = ~np.isnan(P[rows, best])
        top_label = binned_calibration_error(P[rows, best][known].astype(np.float64), truth[rows, best][known], bins)
        found.append(LevelErrors(level.depth, _mean_gap([level]), top_label))
    return found


def binned_calibration_error(p: Floats, is_true: Any, bins: int = 10) -> float:
    """The mean distance between predicted and observed frequency of some probabilities, bin by bin.

    >>> binned_calibration_error(np.asarray([0.81, 0.85, 0.2]), np.asarray([True, False, False]))
    0.2866...
    """
    return _mean_gap([_averaged(0, *_bin_totals(p, is_true, bins))])


def _mean_gap(filled: list[ReliabilityBins]) -> float:
    distance = total = 0.0
    for bins in filled:
        gaps = np.abs(bins.mean_probability - bins.fraction_true)
        distance += float((bins.count * np.nan_to_num(gaps)).sum())
        total += float(bins.count.sum())
    return distance / total if total else 0.0


def _bin_totals(p: Floats, true: Any, bins: int) -> Floats:
    """Bin by bin: how many pairs there are, the sum of their probabilities, and how many are true; without NaN."""
    given = ~np.isnan(p)
    p, true = p[given], true[given].astype(np.float64)
    bin_of = np.searchsorted(np.arange(1, bins) / bins, p, side="right")
    return np.asarray([np.bincount(bin_of, weights=each, minlength=bins) for each in (np.ones(len(p)), p, true)])


def _averaged(depth: int, count: Floats, probability: Floats, true: Floats) -> ReliabilityBins:
    with np.errstate(invalid="ignore"):
        return ReliabilityBins(depth, count.astype(np.int64), probability / count, true / count)


def is_covered(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> NDArray[np.bool_]:
    """Whether the path to a true label passes through a predicted node; an empty prediction counts as covered.

    >>> tree = Taxonomy.from_paths(["a/b", "a/c"])
    >>> is_covered(tree.encode([["a/b"]] * 3), tree.encode([["a"], ["a/c"], []]), tree).tolist()
    [True, False, True]
    """
    n_true, n_predicted = _count_true(Y_true, Y_pred, taxonomy)
    covered: NDArray[np.bool_] = (n_true > 0) | (n_predicted == 0)
    return covered


def wrong_fraction(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> Floats:
    """The fraction of the most specific predicted labels of each document that are wrong; 0 without any.

    >>> tree = Taxonomy.from_paths(["a/b", "a/c"])
    >>> wrong_fraction(tree.encode([["a/b"]] * 3), tree.encode([["a/b", "a/c"], ["a"], []]), tree).tolist()
    [0.5, 0.0, 0.0]
    """
    n_true, n_predicted = _count_true(Y_true, Y_pred, taxonomy)
    wrong: Floats = (n_predicted - n_true) / np.maximum(n_predicted, 1)
    return wrong


def _count_true(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> tuple[Counts, Counts]:
    """How many of the most specific predicted labels of each document are true, and how many there are."""
    own, truth = most_specific(Y_pred, taxonomy), expand_to_ancestors(Y_true, taxonomy)
    return np.asarray(own.astype(np.int64).multiply(truth).sum(axis=1)).ravel(), np.diff(own.indptr)


def predicted_depth(Y: Any, taxonomy: Taxonomy) -> Floats:
    """The depth of the deepest label of each document, counted from 1; 0 without any.

    >>> tree = Taxonomy.from_paths(["a/b", "a/c"])
    >>> predicted_depth(tree.encode([["a/b"], ["a"], []]), tree).tolist()
    [2.0, 1.0, 0.0]
    """
    closed = expand_to_ancestors(Y, taxonomy)
    found = np.zeros(closed.shape[0])
    rows = np.repeat(np.arange(closed.shape[0]), np.diff(closed.indptr))
    np.maximum.at(found, rows, taxonomy.depth[closed.indices] + 1.0)
    return found
