"""Isotonic smoothing: scores that contradict the tree, moved as little as possible until they agree with it.

    minimize   Σ_v w_v |x_v − y_v| + Σ_{inner v} a_v (y_v − max_{children u} y_u)     subject to   y_parent ≥ y_child

a = 0 is plain isotonic regression on a tree; a = ∞ makes every parent equal to its largest child; a score that is missing
(NaN) or has weight 0 costs nothing and is filled in. Of equally good values the lowest is taken, of equally good largest
children the first, as far as sums of floats can tell them equal.

Source: Punera & Ghosh 2008, problems 2.2 and 2.4. An optimum takes its values from the m distinct scores of a tree. With
best_u(i) = min_{j≤i} err_u(j),

    err_v(i) = w_v |x_v − x̂_i| + Σ_u best_u(i) + min_u min_{j≤i} [err_u(j) − best_u(i) + a_v (x̂_i − x̂_j)]

Deviation: prefix minima instead of the paper's heaps, so that n nodes take O(n·m) instead of O(n² log n) steps; and the
paper's lower bound on j is not needed, since a child that is left at its best already costs no more.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.decisions.blocks import over_rows
from ramify.decisions.held_out import read_scores
from ramify.decisions.learnt import is_whole
from ramify.errors import InputError
from ramify.native import smooth_trees_in_place
from ramify.taxonomy import Taxonomy

MOST_NODES = 40_000  # of which exact smoothing takes 6 GB a thread
MOST_LEVELS = 1 << 20

Penalty = float | NDArray[np.float64] | list[float]


def isotonic_smooth(
    scores: Any,
    taxonomy: Taxonomy,
    penalty: Penalty = np.inf,
    weights: Any = None,
    levels: int | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.floating[Any]]:
    """The consistent scores nearest to those given, documents × nodes.

    penalty: what it costs that a parent lies above all its children: 0, a number, inf, or one number a node.
    weights: how much each node's score counts, 1 everywhere when not given; 0 for a classifier that is missing.
    levels: for large taxonomies, round the scores of each document and tree to so many equally spaced values first; the sum
    is then within Σ w · (highest − lowest score) / (levels − 1) of the least.

    >>> chain = Taxonomy.from_paths(["a/b/c"])
    >>> isotonic_smooth([[0.9, 0.8, 0.1], [0.9, 0.2, 0.8]], chain, penalty=0)
    array([[0.9, 0.8, 0.1],
           [0.9, 0.2, 0.2]])
    >>> isotonic_smooth([[0.9, 0.8, 0.1], [0.9, float("nan"), 0.8]], chain)
    array([[0.8, 0.8, 0.8],
           [0.8, 0.8, 0.8]])
    """
    taxonomy.require_tree("isotonic smoothing")
    S = read_finite_scores(scores, taxonomy)
    a = read_penalties(penalty, taxonomy)
    w = np.ones(len(taxonomy)) if weights is None else _one_a_node("weights", weights, taxonomy, most=np.finfo(float).max)
    if levels is not None and not (is_whole(levels) and 2 <= levels <= MOST_LEVELS):
        raise InputError(
            f"levels is {levels!r}; give a whole number from 2 to {MOST_LEVELS:,}, such as 256, or None for exact smoothing."
        )
    _refuse_overflow(S, w, a)
    if len(taxonomy) * min(levels or len(taxonomy), len(taxonomy)) > MOST_NODES**2:
        raise InputError(f"exact smoothing of {len(taxonomy):,} nodes needs too much memory; give levels=256.")
    parent = taxonomy.parent.astype(np.int32)

    def smooth(block: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        smoothed = np.empty_like(block)
        smooth_trees_in_place(parent, w, a, int(levels or 0), block, smoothed)
        return smoothed

    parts = over_rows(S, smooth, n_jobs)
    return np.concatenate(parts) if parts else S.astype(S.dtype)


def _refuse_overflow(S: NDArray[np.floating[Any]], weights: NDArray[np.float64], penalties: NDArray[np.float64]) -> None:
    """Sums of weighted distances must stay far below what a float holds."""
    largest = max(float(np.fmax.reduce(S, axis=None, initial=0)), -float(np.fmin.reduce(S, axis=None, initial=0)))
    each = max(1.0, float(weights.max(initial=0)), float(penalties[np.isfinite(penalties)].max(initial=0)))
    if math.log10(max(largest, 1)) + math.log10(each) + math.log10(4 * max(1, len(weights))) > 300:
        raise InputError(
            f"scores up to {largest:g} with weights or penalties up to {each:g} are too large to add up; scale them down, "
            "or give penalty=inf to force a parent down to its children."
        )


def read_finite_scores(scores: Any, taxonomy: Taxonomy) -> NDArray[np.floating[Any]]:
    """Scores as documents × nodes, each finite or NaN."""
    S = read_scores(scores, taxonomy)
    if S.size and np.fmin.reduce(S, axis=None) == -np.inf:
        raise InputError("a score is infinite; give finite scores, and NaN where a node has no classifier.")
    return S


def read_penalties(penalty: Any, taxonomy: Taxonomy) -> NDArray[np.float64]:
    """One penalty a node."""
    if np.ndim(penalty) == 0:
        penalty = np.full(len(taxonomy), penalty)
    return _one_a_node("penalties", penalty, taxonomy, most=np.inf)


def _one_a_node(what: str, values: Any, taxonomy: Taxonomy, most: float) -> NDArray[np.float64]:
    try:
        given = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"the {what} are not numbers; give numbers of 0 or more, one a node.") from None
    if given.shape != (len(taxonomy),):
        raise InputError(f"the {what} have shape {given.shape}; give {len(taxonomy)} numbers, one a node.")
    wrong = given[~((given >= 0) & (given <= most))]
    if wrong.size:
        raise InputError(f"{wrong[0]} is among the {what}; give numbers of 0 or more.")
    return given
