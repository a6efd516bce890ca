"""From dual variables to weights in the features as they came."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.execution import Executor
from ramify.learners.linear.deltas import Deltas
from ramify.learners.linear.forest import Forest
from ramify.learners.linear.pairs import Pairs
from ramify.learners.linear.problem import Problem
from ramify.learners.linear.weights import Weights
from ramify.native import arrange_vectors, gather_classes

FAINT = 0.005  # of a class's largest weight: below it the fast mode drops a weight

Over = Callable[[NDArray[np.int32], Callable[[NDArray[np.int32]], Any]], list[Any]]


def collect_weights(
    problem: Problem, leaves: Pairs, stretch: NDArray[np.float64], deltas: Deltas, over: Over, executor: Executor
) -> Weights:
    """Inner units as the dual has them, classes as their last step left them; the deltas are used up."""
    rows, forest = problem.rows, problem.forest
    units, inner = (np.flatnonzero(which).astype(np.int32) for which in (forest.class_of >= 0, forest.class_of < 0))
    bias, bias_of_classes = np.zeros(len(forest)), np.zeros(len(units))
    least = FAINT if problem.settings.fast else 0.0

    def gather(some: NDArray[np.int32]) -> Any:
        first, last = int(some[0]), int(some[-1]) + 1
        found = gather_classes(*rows.arrays, *leaves.arrays, stretch, rows.place, least, first, last, bias_of_classes)
        return units[first:last], *found[1:]

    held = [deltas]
    del deltas  # the weights of classes need the room

    def arrange(some: NDArray[np.int32]) -> Any:
        return arrange_vectors(*held[0].arrays, some, rows.n_features, rows.place, bias)

    parts = over(inner, arrange)
    held.clear()
    stacked = stack_rows(parts + over(problem.classes, gather), len(forest), len(rows.place), executor)
    bias[units] = bias_of_classes
    return Weights(stacked, bias if rows.has_bias else np.zeros(len(forest)), forest.parent, units.astype(np.int64))


def stack_rows(parts: list[Any], n_units: int, n_features: int, executor: Executor) -> csr_array:
    """Sparse rows in the order of their units; each part is given up once it is copied.

    Parts: units, where the row of each ends, features and values.
    """
    lengths = np.zeros(n_units, dtype=np.int64)
    for units, ends, *_ in parts:
        lengths[units] = np.diff(ends, prepend=0)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    narrow = np.int32 if offsets[-1] < 2**31 else np.int64  # scipy copies features that are not as wide as offsets
    features, values = np.empty(offsets[-1], dtype=narrow), np.empty(offsets[-1], dtype=np.float32)

    def copy(k: int) -> None:
        units, ends, part_features, part_values, *_ = parts[k]
        parts[k], here = None, 0
        for run in np.split(np.arange(len(units)), np.flatnonzero(np.diff(units) != 1) + 1):
            there, taken = offsets[units[run[0]]], slice(here, int(ends[run[-1]]))
            placed, here = slice(there, there + taken.stop - taken.start), taken.stop
            features[placed], values[placed] = part_features[taken], part_values[taken]

    for _ in executor.map(copy, range(len(parts))):
        pass
    return csr_array((values, features, offsets.astype(narrow)), shape=(len(lengths), n_features))


def join_weights(parts: list[Weights], units: Sequence[NDArray[np.int32]], forest: Forest, executor: Executor) -> Weights:
    """The weights of all units, from those of stretches of classes and the units above them; the parts are given up.

    units: of every part, its units among all. Where several parts have a unit, the first one counts.
    """
    if len(parts) == 1:
        return parts[0]
    rows, bias, after, n_features = [], np.zeros(len(forest)), 0, parts[0].n_features
    for mine, part in zip(units, parts, strict=True):
        new = np.searchsorted(mine, after)  # units come in the order of a walk, so what is new comes last
        ends = part.deltas.indptr[new:]
        rows.append((mine[new:], ends[1:] - ends[0], part.deltas.indices[ends[0] :], part.deltas.data[ends[0] :]))
        bias[mine[new:]] = part.bias[new:]
        after = int(mine[-1]) + 1
    parts.clear()
    deltas = stack_rows(rows, len(forest), n_features, executor)
    return Weights(deltas, bias, forest.parent, np.flatnonzero(forest.class_of >= 0))
