"""What a crew is going to need, before it starts: bytes and seconds, from the sizes of the problem alone.

Bytes are counted: what every member holds at its height, if pairs grow by half while it works. Seconds are work times a rate,
and rough: the rates are those that ``benchmarks/scaling_model.py`` fits to measured times on made-up directories, and data
that are harder to part need more rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ramify.learners.linear.graph_partition import GraphPartition
from ramify.learners.linear.graph_problem import GraphProblem
from ramify.learners.linear.partition import Share
from ramify.learners.linear.problem import Problem
from ramify.learners.linear.tree_worker import MOST_HELD
from ramify.parallel import Needs
from ramify.parallel.cluster import size_of

PROGRAM = 250_000_000  # bytes of an interpreter with all libraries
A_PAIR = 40  # bytes: document, dual variable, their copies, and whether it is awake
GROWTH = 1.5  # of the pairs while they are worked on
ENTRY = 8  # bytes of a feature and its value
FAST_KEEPS = 0.35  # of the weights of a class
STEP = 2.2e-9  # seconds for a feature of a document of a pair, in one pass over a class
TREE_STEP = 7.3e-9  # the same in one round over a tree, with all that comes with it
GRAPH_STEP = 1.1e-8  # the same where classes are tied along a graph; chosen, not fitted
LOOK = 3.5e-10  # seconds for a feature of a document and a class, when all pairs are screened
FIND = 6.2e-11  # the same when near classes are looked up
PASSES, ROUNDS, LOOKS = 15, 30, 3
GRAPH_VECTORS = 7  # of every class of a graph, beside two for each step that is remembered
GRAPH_PASSES = 4  # over all pairs, in a round


def estimate_needs(problem: Problem, shares: Sequence[Share]) -> Needs:
    """Bytes that all share, bytes of every member, and seconds in all."""
    return Needs(
        size_of(problem) + max(map(size_of, shares)), tuple(_bytes_of(problem, share) for share in shares),
        max(_seconds_of(problem, share) / share.n_walks for share in shares),
    )  # fmt: skip


def estimate_graph_needs(problem: GraphProblem, shares: Sequence[GraphPartition]) -> Needs:
    """The same where classes are tied along a graph: all pairs are worked on, and vectors are dense."""
    rows, work = problem.rows, len(problem.rows.values) * ROUNDS * GRAPH_PASSES * GRAPH_STEP

    def bytes_of(share: GraphPartition) -> int:
        n = len(share.classes)
        vectors = 4 * rows.n_features * (n * (GRAPH_VECTORS + 2 * share.depth) + len(share.units))
        return PROGRAM + A_PAIR * n * len(rows) + vectors + 8 * len(share.boundary) ** 2

    seconds = max(work * len(share.classes) / share.n_threads for share in shares)
    return Needs(size_of(problem), tuple(map(bytes_of, shares)), seconds)


def count_weights(problem: Problem, shares: Sequence[Share]) -> float:
    """How many weights all classes are going to have, about."""
    kept = FAST_KEEPS if problem.settings.fast else 1.0
    return kept * sum(float(_entries(problem, share).sum()) for share in shares)


def _entries(problem: Problem, share: Share) -> np.ndarray:
    """By class, how many features its pairs touch at most."""
    each = len(problem.rows.values) / max(1, len(problem.rows))
    return np.minimum(GROWTH * np.diff(share.pairs.offsets) * each, problem.rows.n_features)


def _bytes_of(problem: Problem, share: Share) -> int:
    entries, n_features, forest = _entries(problem, share), problem.rows.n_features, problem.forest
    pairs = A_PAIR * GROWTH * float(share.pairs.offsets[-1])
    weights = ENTRY * entries.sum() * (FAST_KEEPS if problem.settings.fast else 1)
    depth = int(np.diff(forest.above_offsets[share.first : share.last + 1]).max(initial=0))
    vectors = 4.0 * share.n_walks * n_features * (2 * depth + 3)
    tied = 0.0
    if depth:
        held = entries.sum() if entries.sum() <= MOST_HELD else 0
        tied = ENTRY * (held + _inner_entries(problem, share, entries))
    return int(PROGRAM + pairs + weights + vectors + tied)


def _inner_entries(problem: Problem, share: Share, entries: np.ndarray) -> float:
    """Features that documents below the inner units have, units added up."""
    forest = problem.forest
    first, last = forest.above_offsets[share.first], forest.above_offsets[share.last]
    depths = np.diff(forest.above_offsets[share.first : share.last + 1])
    below = np.bincount(forest.above[first:last], np.repeat(entries, depths), minlength=len(forest))
    return float(np.minimum(below, problem.rows.n_features).sum())


def _seconds_of(problem: Problem, share: Share) -> float:
    each = len(problem.rows.values) / max(1, len(problem.rows))
    work = float(share.pairs.offsets[-1]) * each
    steps = work * PASSES * STEP if problem.forest.is_flat else work * ROUNDS * TREE_STEP
    looks = 0 if problem.settings.fast else LOOKS * LOOK
    seen = 0.0 if share.complete else (looks + FIND) * (share.last - share.first) * len(problem.rows.values)
    return steps + seen
