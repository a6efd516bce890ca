"""Which worker owns which classes of a tree, and how values of several workers are added up.

Every worker owns a range of neighbouring classes: whole subtrees, as far as that divides the work evenly. Units above the
classes of several workers are shared; all of these workers have the same δ of them, and its changes are all that is sent
between rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.learners.linear.problem import Pairs, Problem
from ramify.learners.linear.taxonomy_ties import Forest

SLACK = 0.05  # of a worker's work, by which a cut may be moved to where fewer units are shared

# units, where the vector of each ends, features and values: sparse vectors of some units
Vectors = tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Partition:
    """What one worker owns: classes from first to last (not included), and the pairs on which it begins.

    n_threads: how many threads it has. shared: units that other workers have, too. counted: those shared units that are
    counted in this worker's part of the objective. complete: whether there are no other pairs.
    """

    first: int
    last: int
    n_threads: int
    shared: NDArray[np.int32]
    counted: NDArray[np.int32]
    pairs: Pairs
    complete: bool


def partition_classes(problem: Problem, pairs: Pairs, worker_threads: Sequence[int], complete: bool) -> list[Partition]:
    """Cut the classes into ranges, with work in proportion to the threads of the workers; every worker gets a class."""
    worker_threads = worker_threads[: max(1, min(len(worker_threads), problem.n_classes))]
    classes_before, threads = np.arange(problem.n_classes + 1), np.asarray(worker_threads, dtype=np.float64)
    ends = cut(work_of(problem, pairs), threads, common_depths(problem.forest), classes_before)
    ranges = list(zip([0, *ends[:-1]], ends, strict=True))
    units = [problem.forest.part(*each)[1] for each in ranges] if len(ranges) > 1 else []
    count = np.zeros(len(problem.forest), dtype=np.int64)
    for each in units:
        count[each] += 1
    is_counted = np.zeros(len(problem.forest), dtype=bool)
    partitions = []
    for k, (first, last) in enumerate(ranges):
        shared = units[k][count[units[k]] > 1] if units else np.zeros(0, dtype=np.int32)
        counted = shared[~is_counted[shared]]
        partitions.append(Partition(first, last, worker_threads[k], shared, counted, pairs.part(first, last), complete))
        is_counted[shared] = True
    return partitions


def work_of(problem: Problem, pairs: Pairs) -> NDArray[np.int64]:
    """For each class the features of the documents of its pairs."""
    before = np.concatenate([[0], np.cumsum(np.diff(problem.rows.offsets)[pairs.documents])])
    return np.asarray(np.diff(before[pairs.offsets]), dtype=np.int64)


def cut(
    work: NDArray[Any], parts: NDArray[np.float64], crossing: NDArray[np.int64], classes_before: NDArray[np.int64]
) -> list[int]:
    """Where ranges of units end: close to an even division of the work, at the place with the least crossing.

    crossing, classes_before: for every place where units can be cut; every range gets a class.
    """
    done = np.cumsum(np.maximum(work, 1)).astype(np.float64)
    ends: list[int] = []
    for k, part in enumerate(np.cumsum(parts)[:-1] / parts.sum()):
        lowest, highest = classes_before[ends[-1] if ends else 0] + 1, classes_before[-1] - (len(parts) - 1 - k)
        places = np.flatnonzero((classes_before >= lowest) & (classes_before <= highest))
        off = np.abs(done[places - 1] - part * done[-1])
        is_close = off <= max(float(off.min()), SLACK * done[-1] / len(parts))
        places, off = places[is_close], off[is_close]
        ends.append(int(places[np.lexsort((off, crossing[places]))[0]]))
    return [*ends, len(work)]


def common_depths(forest: Forest) -> NDArray[np.int64]:
    """For every place between two classes, how many units are above both."""
    depths = np.zeros(len(forest.above_offsets), dtype=np.int64)
    if forest.is_flat:
        return depths
    above = [forest.above[a:b].tolist() for a, b in zip(forest.above_offsets[:-1], forest.above_offsets[1:], strict=True)]
    for k in range(1, len(above)):
        depths[k] = sum(a == b for a, b in zip(above[k - 1], above[k], strict=False))
    return depths


def sum_vectors(parts: Sequence[Vectors]) -> Vectors:
    """For each unit the sum of its vectors."""
    found: dict[int, NDArray[np.float32]] = {}
    width = max((int(part[2].max(initial=-1)) + 1 for part in parts), default=0)
    for units, ends, features, values in parts:
        for unit, start, end in zip(units.tolist(), [0, *ends.tolist()], ends.tolist(), strict=False):
            total = found.setdefault(unit, np.zeros(width, dtype=np.float32))
            total[features[start:end]] += values[start:end]
    return to_sparse(found)


def to_sparse(vectors: dict[int, NDArray[np.float32]]) -> Vectors:
    """Dense vectors of some units as sparse ones."""
    units = np.asarray(sorted(vectors), dtype=np.int64)
    places = [np.flatnonzero(vectors[unit]).astype(np.int32) for unit in units.tolist()]
    ends = np.cumsum([len(each) for each in places]).astype(np.int64)
    values = [vectors[unit][each] for unit, each in zip(units.tolist(), places, strict=True)]
    return units, ends, np.concatenate([np.zeros(0, np.int32), *places]), np.concatenate([np.zeros(0, np.float32), *values])


def sum_counts(parts: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Units, and for each the sum of its numbers."""
    units, numbers = (np.concatenate(each) for each in zip(*parts, strict=True))
    listed, place = np.unique(units, return_inverse=True)
    return listed.astype(np.int64), np.bincount(place, numbers, minlength=len(listed)).astype(np.float32)


def sums(results: Sequence[Sequence[float]]) -> list[float]:
    """The numbers of all workers, added up."""
    return [math.fsum(numbers) for numbers in zip(*results, strict=True)]
