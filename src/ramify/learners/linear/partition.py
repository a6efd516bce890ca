"""Which worker owns which classes of a tree, how values of several workers are added up, and what the workers will need.

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
from ramify.parallel import Needs
from ramify.parallel.values import size_of

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
    above = [set(some.tolist()) for some in np.split(forest.above, forest.above_offsets[1:-1])]
    for k in range(1, len(above)):
        depths[k] = len(above[k - 1] & above[k])
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


# ---- bytes and seconds that a worker group will need, estimated from the sizes of the problem -----------------------------
#
# Bytes are counted: the peak of every worker, if pairs grow by half while it works. Seconds are work times a rate, and rough:
# the rates are those that benchmarks/scaling_model.py fits to measured times on made-up directories, and harder data need more
# rounds.

PROGRAM = 250_000_000  # bytes of an interpreter with all libraries
A_PAIR = 40  # bytes: document, dual variable, their copies, and whether it is active
GROWTH = 1.5  # of the pairs while they are worked on
ENTRY = 8  # bytes of a feature and its value
MOST_CACHED = 1 << 27  # entries of the class vectors u that tree workers cache between rounds
FAST_FRACTION = 0.35  # of the weights of a class
STEP = 2.2e-9  # seconds for a feature of a document of a pair, in one pass over a class
TREE_STEP = 7.3e-9  # the same in one round over a tree, everything included
SCREEN = 3.5e-10  # seconds for a feature of a document and a class, when all pairs are screened
FIND = 6.2e-11  # the same when candidates are found
PASSES, ROUNDS, SCREENINGS = 15, 30, 3


def estimate_needs(problem: Problem, partitions: Sequence[Partition]) -> Needs:
    """Bytes shared by all workers, bytes of every worker, and seconds in all."""
    return Needs(
        size_of(problem) + max(map(size_of, partitions)), tuple(_bytes_of(problem, partition) for partition in partitions),
        max(_seconds_of(problem, partition) / partition.n_threads for partition in partitions),
    )  # fmt: skip


def count_weights(problem: Problem, partitions: Sequence[Partition]) -> float:
    """How many weights all classes are going to have, about."""
    kept = FAST_FRACTION if problem.settings.fast else 1.0
    return kept * sum(float(_entries(problem, partition).sum()) for partition in partitions)


def _entries(problem: Problem, partition: Partition) -> np.ndarray:
    """By class, how many features its pairs touch at most."""
    each = len(problem.rows.values) / max(1, len(problem.rows))
    return np.minimum(GROWTH * np.diff(partition.pairs.offsets) * each, problem.rows.n_features)


def _bytes_of(problem: Problem, partition: Partition) -> int:
    entries, n_features, forest = _entries(problem, partition), problem.rows.n_features, problem.forest
    pairs = A_PAIR * GROWTH * float(partition.pairs.offsets[-1])
    weights = ENTRY * entries.sum() * (FAST_FRACTION if problem.settings.fast else 1)
    depths = np.diff(forest.above_offsets[partition.first : partition.last + 1])
    vectors = 4.0 * partition.n_threads * n_features * (2 * int(depths.max(initial=0)) + 3)
    tied = 0.0
    if depths.any():
        cached = entries.sum() if entries.sum() <= MOST_CACHED else 0
        # features that documents below the inner units have, units added up
        above = forest.above[forest.above_offsets[partition.first] : forest.above_offsets[partition.last]]
        below = np.bincount(above, np.repeat(entries, depths), minlength=len(forest))
        tied = ENTRY * (cached + float(np.minimum(below, n_features).sum()))
    return int(PROGRAM + pairs + weights + vectors + tied)


def _seconds_of(problem: Problem, partition: Partition) -> float:
    each = len(problem.rows.values) / max(1, len(problem.rows))
    work = float(partition.pairs.offsets[-1]) * each
    steps = work * PASSES * STEP if problem.forest.is_flat else work * ROUNDS * TREE_STEP
    screenings = 0 if problem.settings.fast else SCREENINGS * SCREEN
    seen = 0.0 if partition.complete else (screenings + FIND) * (partition.last - partition.first) * len(problem.rows.values)
    return steps + seen
