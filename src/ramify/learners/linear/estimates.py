"""What a worker group will need: bytes and seconds, estimated from the sizes of the problem.

Bytes are counted: the peak of every worker, if pairs grow by half while it works. Seconds are work times a rate, and rough: the
rates are those that ``benchmarks/scaling_model.py`` fits to measured times on made-up directories, and harder data need more
rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ramify.learners.linear.graph_partition import GraphPartition
from ramify.learners.linear.graph_problem import GraphProblem
from ramify.learners.linear.partition import Partition
from ramify.learners.linear.problem import Problem
from ramify.learners.linear.tree_worker import MOST_CACHED
from ramify.parallel import Needs
from ramify.parallel.values import size_of

PROGRAM = 250_000_000  # bytes of an interpreter with all libraries
A_PAIR = 40  # bytes: document, dual variable, their copies, and whether it is active
GROWTH = 1.5  # of the pairs while they are worked on
ENTRY = 8  # bytes of a feature and its value
FAST_FRACTION = 0.35  # of the weights of a class
STEP = 2.2e-9  # seconds for a feature of a document of a pair, in one pass over a class
TREE_STEP = 7.3e-9  # the same in one round over a tree, everything included
GRAPH_STEP = 1.1e-8  # the same where classes are tied along a graph; chosen, not fitted
SCREEN = 3.5e-10  # seconds for a feature of a document and a class, when all pairs are screened
FIND = 6.2e-11  # the same when candidates are found
PASSES, ROUNDS, SCREENINGS = 15, 30, 3
GRAPH_VECTORS = 7  # of every class of a graph, beside two for each stored step
GRAPH_PASSES = 4  # over all pairs, in a round


def estimate_needs(problem: Problem, partitions: Sequence[Partition]) -> Needs:
    """Bytes shared by all workers, bytes of every worker, and seconds in all."""
    return Needs(
        size_of(problem) + max(map(size_of, partitions)), tuple(_bytes_of(problem, partition) for partition in partitions),
        max(_seconds_of(problem, partition) / partition.n_threads for partition in partitions),
    )  # fmt: skip


def estimate_graph_needs(problem: GraphProblem, partitions: Sequence[GraphPartition]) -> Needs:
    """The same where classes are tied along a graph: all pairs are worked on, and vectors are dense."""
    rows, work = problem.rows, len(problem.rows.values) * ROUNDS * GRAPH_PASSES * GRAPH_STEP

    def bytes_of(partition: GraphPartition) -> int:
        n = len(partition.classes)
        vectors = 4 * rows.n_features * (n * (GRAPH_VECTORS + 2 * partition.depth) + len(partition.units))
        return PROGRAM + A_PAIR * n * len(rows) + vectors + 8 * len(partition.boundary) ** 2

    seconds = max(work * len(partition.classes) / partition.n_threads for partition in partitions)
    return Needs(size_of(problem), tuple(map(bytes_of, partitions)), seconds)


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
    depth = int(np.diff(forest.above_offsets[partition.first : partition.last + 1]).max(initial=0))
    vectors = 4.0 * partition.n_threads * n_features * (2 * depth + 3)
    tied = 0.0
    if depth:
        held = entries.sum() if entries.sum() <= MOST_CACHED else 0
        tied = ENTRY * (held + _inner_entries(problem, partition, entries))
    return int(PROGRAM + pairs + weights + vectors + tied)


def _inner_entries(problem: Problem, partition: Partition, entries: np.ndarray) -> float:
    """Features that documents below the inner units have, units added up."""
    forest = problem.forest
    first, last = forest.above_offsets[partition.first], forest.above_offsets[partition.last]
    depths = np.diff(forest.above_offsets[partition.first : partition.last + 1])
    below = np.bincount(forest.above[first:last], np.repeat(entries, depths), minlength=len(forest))
    return float(np.minimum(below, problem.rows.n_features).sum())


def _seconds_of(problem: Problem, partition: Partition) -> float:
    each = len(problem.rows.values) / max(1, len(problem.rows))
    work = float(partition.pairs.offsets[-1]) * each
    steps = work * PASSES * STEP if problem.forest.is_flat else work * ROUNDS * TREE_STEP
    screenings = 0 if problem.settings.fast else SCREENINGS * SCREEN
    seen = 0.0 if partition.complete else (screenings + FIND) * (partition.last - partition.first) * len(problem.rows.values)
    return steps + seen
