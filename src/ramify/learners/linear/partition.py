"""Who of a crew owns which classes, and what its members tell each other.

Every member owns a stretch of neighbouring classes: whole subtrees, as far as that divides the work evenly. Units above classes
of several members are shared; their δ is in all of them, the same, and changes of it are all that travels between rounds.
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

SLACK = 0.05  # of a member's work, by which a cut may be moved to where fewer units are shared

# units, where the vector of each ends, features and values: sparse vectors of some units
Vectors = tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Share:
    """What one member owns: classes from first to last (not included), and the pairs on which it begins.

    n_walks: how many walks over its units it makes side by side. shared: units that others pass, too.
    answers_for: those of them whose size it counts. complete: whether these are all pairs that there are.
    """

    first: int
    last: int
    n_walks: int
    shared: NDArray[np.int32]
    answers_for: NDArray[np.int32]
    pairs: Pairs
    complete: bool


def partition_classes(problem: Problem, pairs: Pairs, teams: Sequence[int], complete: bool) -> list[Share]:
    """Cut the classes into stretches, with work in proportion to the threads of the teams; a team too many gets none."""
    teams = teams[: max(1, min(len(teams), problem.n_classes))]
    classes_before = np.arange(problem.n_classes + 1)
    ends = cut(work_of(problem, pairs), np.asarray(teams, dtype=np.float64), common_depths(problem.forest), classes_before)
    stretches = list(zip([0, *ends[:-1]], ends, strict=True))
    passed = [problem.forest.part(*stretch)[1] for stretch in stretches] if len(stretches) > 1 else []
    count = np.zeros(len(problem.forest), dtype=np.int64)
    for units in passed:
        count[units] += 1
    seen = np.zeros(len(problem.forest), dtype=bool)
    shares = []
    for k, (first, last) in enumerate(stretches):
        shared = passed[k][count[passed[k]] > 1] if passed else np.zeros(0, dtype=np.int32)
        shares.append(Share(first, last, teams[k], shared, shared[~seen[shared]], pairs.part(first, last), complete))
        seen[shared] = True
    return shares


def work_of(problem: Problem, pairs: Pairs) -> NDArray[np.int64]:
    """By class, the features of the documents of its pairs."""
    before = np.concatenate([[0], np.cumsum(np.diff(problem.rows.offsets)[pairs.documents])])
    return np.asarray(np.diff(before[pairs.offsets]), dtype=np.int64)


def cut(
    work: NDArray[Any], parts: NDArray[np.float64], crossing: NDArray[np.int64], classes_before: NDArray[np.int64]
) -> list[int]:
    """Where stretches of units in a row end: near an even division of the work, there where the least is on both sides.

    crossing, classes_before: for every place where the row can be cut; every stretch gets a class.
    """
    done = np.cumsum(np.maximum(work, 1)).astype(np.float64)
    ends: list[int] = []
    for k, part in enumerate(np.cumsum(parts)[:-1] / parts.sum()):
        lowest, highest = classes_before[ends[-1] if ends else 0] + 1, classes_before[-1] - (len(parts) - 1 - k)
        places = np.flatnonzero((classes_before >= lowest) & (classes_before <= highest))
        off = np.abs(done[places - 1] - part * done[-1])
        near = off <= max(float(off.min()), SLACK * done[-1] / len(parts))
        places, off = places[near], off[near]
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


def add_up(parts: Sequence[Vectors]) -> Vectors:
    """The sums of vectors that several gave for the same units."""
    found: dict[int, NDArray[np.float32]] = {}
    width = max((int(part[2].max(initial=-1)) + 1 for part in parts), default=0)
    for units, ends, features, values in parts:
        for unit, start, end in zip(units.tolist(), [0, *ends.tolist()], ends.tolist(), strict=False):
            total = found.setdefault(unit, np.zeros(width, dtype=np.float32))
            total[features[start:end]] += values[start:end]
    return pack(found)


def pack(vectors: dict[int, NDArray[np.float32]]) -> Vectors:
    """Dense vectors of some units as sparse ones."""
    units = np.asarray(sorted(vectors), dtype=np.int64)
    places = [np.flatnonzero(vectors[unit]).astype(np.int32) for unit in units.tolist()]
    ends = np.cumsum([len(each) for each in places]).astype(np.int64)
    nothing = np.zeros(0, dtype=np.float32)
    values = [vectors[unit][each] for unit, each in zip(units.tolist(), places, strict=True)]
    return units, ends, np.concatenate([nothing.astype(np.int32), *places]), np.concatenate([nothing, *values])


def sum_counts(parts: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Units, and the sums of the numbers that several gave for them."""
    units, numbers = (np.concatenate(each) for each in zip(*parts, strict=True))
    listed, place = np.unique(units, return_inverse=True)
    return listed.astype(np.int64), np.bincount(place, numbers, minlength=len(listed)).astype(np.float32)


def sums(answers: Sequence[Sequence[float]]) -> list[float]:
    """What all members give, added up."""
    return [math.fsum(numbers) for numbers in zip(*answers, strict=True)]
