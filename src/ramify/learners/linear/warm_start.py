"""Dual variables that are kept with a model, so that training can go on from them when documents or classes have changed.

For any dual variables within their bounds, objective and dual differ by what is still to be gained: the same certificate as
ever, wherever the variables come from. Good ones only make the way shorter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from ramify.errors import ModelError
from ramify.learners.linear.problem import Pairs, Problem, all_others, pair_up
from ramify.learners.linear.taxonomy_ties import Forest
from ramify.learners.linear.weights import are_finite

Ints = NDArray[np.int64]
NAMES = ("dual_offsets", "dual_documents", "dual_values")


@dataclass(frozen=True, slots=True)
class Dual:
    """Class after class, the documents that were worked on and α y of each: above 0 for the class's own documents."""

    offsets: Ints
    documents: NDArray[np.int32]
    values: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, pairs: Pairs, order: Ints) -> Dual:
        """From the pairs of a solution, whose documents are numbered by an order."""
        lengths = np.diff(pairs.offsets)
        place = np.arange(len(pairs.documents)) - np.repeat(pairs.offsets[:-1], lengths)
        sign = np.where(place < np.repeat(pairs.n_positive, lengths), np.float32(1), np.float32(-1))
        return cls(pairs.offsets, order[pairs.documents].astype(np.int32), sign * pairs.alphas)

    def numbered(self, place: Ints) -> Dual:
        """The same with documents numbered anew; those that have a number below 0 are left out."""
        documents = place[self.documents]
        kept = documents >= 0
        ends = np.concatenate([[0], np.cumsum(kept)])[self.offsets].astype(np.int64)
        return Dual(ends, documents[kept].astype(np.int32), self.values[kept])

    def of_classes(self, before: Ints) -> Dual:
        """Those of other classes. before: which class each of them was, -1 where it was none."""
        lengths = np.where(before >= 0, np.diff(self.offsets)[before], 0)
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        taken = np.repeat(self.offsets[before] - ends[:-1], lengths) + np.arange(ends[-1])
        return Dual(ends, self.documents[taken], self.values[taken])

    @classmethod
    def none(cls) -> Dual:
        """Those of no class."""
        return cls(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))

    def followed_by(self, other: Dual) -> Dual:
        """Those of classes after each other."""
        offsets = np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]])
        return Dual(offsets, *(np.concatenate([getattr(d, n) for d in (self, other)]) for n in ("documents", "values")))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file keeps."""
        return dict(zip(NAMES, (self.offsets, self.documents, self.values), strict=True))

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], n_classes: int) -> Dual:
        """Make them of what was kept, after checking all but the number of documents."""
        made = cls(*(arrays[name] for name in NAMES))
        typed = [array.dtype.name for array in (made.offsets, made.documents, made.values)] == ["int64", "int32", "float32"]
        if not typed or not 0 < made.offsets.size <= n_classes + 1 or made.documents.shape != made.values.shape:
            raise ModelError("the dual variables do not fit the classes of the linear model; train the model again.")
        fits = made.offsets[0] == 0 and made.offsets[-1] == len(made.values) and np.all(np.diff(made.offsets) >= 0)
        if not fits or not are_finite(made.values) or np.any(made.documents < 0):
            raise ModelError("the dual variables are not ones that the linear model writes; train the model again.")
        return made


def resume(dual: Dual, problem: Problem, complete: bool) -> Pairs:
    """Pairs to begin with: those that were worked on, all where that is to be so, with the dual variables that they had.

    A document that has changed sides begins at 0, and nothing lies beyond what its loss costs now.
    """
    n_docs, own = len(problem.rows), problem.own
    keys = np.repeat(np.arange(len(dual)), np.diff(dual.offsets)) * n_docs + dual.documents
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], dual.values[order]
    mine = np.repeat(np.arange(own.shape[1]), np.diff(own.indptr)) * n_docs + own.indices
    others = all_others(own) if complete else _as_matrix(np.setdiff1d(keys, mine), own.shape)
    pairs = pair_up(own, others, problem.costs.positive, problem.costs.negative)
    lengths = np.diff(pairs.offsets)
    classes = np.repeat(np.arange(len(pairs)), lengths)
    is_own = np.arange(len(classes)) - pairs.offsets[classes] < pairs.n_positive[classes]
    if len(keys):
        asked = classes * n_docs + pairs.documents
        found = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        known = np.where(keys[found] == asked, values[found], 0) * np.where(is_own, 1, -1)
        most = np.where(is_own, pairs.cost_positive[classes], pairs.cost_negative[classes])
        bound = most * problem.costs.documents[pairs.documents]
        pairs.alphas[:] = np.clip(known, 0, np.inf if problem.settings.loss == "squared_hinge" else bound)
    return pairs


def _as_matrix(keys: Ints, shape: tuple[int, int]) -> csc_array:
    """Documents × classes, from rising numbers class · documents + document."""
    ends = np.searchsorted(keys, np.arange(shape[1] + 1) * shape[0])
    return csc_array((np.ones(len(keys), dtype=bool), (keys % shape[0]).astype(np.int32), ends), shape=shape)


# --------------------------------------------------------------------------------------------------------------
# Which part of a tree a change has reached: everything below one unit, whose weights can be held as they are.
#
# Units are compared by what hangs below them, class by class, whatever their nodes are called. From the top down, as long as a
# single way on has changed, the change lies below it. What is left is the deepest unit above the whole change, and the
# classes below those of its ways on that have changed; all other units are as they were.


Keys = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Reached:
    """The part of a tree that a change has reached.

    before: for every unit the one that it was, -1 where there was none or it has changed. path: from the root down, the units
    above the change, whose weights are held. units: those that have changed, the classes among them included.
    """

    before: Ints
    path: list[int]
    units: Ints

    def classes(self, forest: Forest) -> Ints:
        """The classes that are reached."""
        found = forest.class_of[self.units]
        return found[found >= 0].astype(np.int64)

    def wider(self, forest: Forest) -> Reached:
        """The same with everything below the last unit of the path, and that unit itself, taken for reached."""
        is_reached = np.zeros(len(forest) + 1, dtype=bool)  # the last one stands above the roots
        is_reached[self.path[-1]] = True
        for unit in range(self.path[-1] + 1, len(forest)):  # parents come first
            is_reached[unit] = is_reached[forest.parent[unit]]
        units, before = np.flatnonzero(is_reached[:-1]), self.before.copy()
        before[units] = -1
        return Reached(before, self.path[:-1], units)

    def forest(self, forest: Forest) -> Forest:
        """The units that have changed, and above them the one that is held, if there is any."""
        units = np.sort(np.concatenate([self.path[-1:], self.units])).astype(np.int64)
        place = np.full(len(forest) + 1, -1, dtype=np.int32)
        place[units] = np.arange(len(units), dtype=np.int32)
        return Forest.numbered(place[forest.parent[units]], forest.node[units], forest.class_of[units] >= 0)


def find_reached(old: Forest, new: Forest, same: Ints) -> Reached:
    """Compare two trees. same: for every class of the new one the class that it was, -1 where it was none or has changed."""
    drawn = np.random.default_rng(0).integers(1, 2**63, size=len(same) + int(old.class_of.max(initial=-1)) + 1, dtype=np.uint64)
    known, fresh = drawn[len(same) :], drawn[: len(same)]
    ours, theirs = _keys(new, np.where(same >= 0, known[same], fresh)), _keys(old, known)
    unit_of = {key: unit for unit, key in enumerate(theirs.tolist())}
    before = np.asarray([unit_of.get(key, -1) for key in ours.tolist()], dtype=np.int64)
    path, here, there = [], -1, -1
    while True:
        ways, were = _ways_on(new, here), _ways_on(old, there)
        changed, gone = ways[~np.isin(ours[ways], theirs[were])], were[~np.isin(theirs[were], ours[ways])]
        if len(changed) != 1 or len(gone) != 1 or new.class_of[changed[0]] >= 0 or old.class_of[gone[0]] >= 0:
            break
        here, there = int(changed[0]), int(gone[0])
        path.append(here)
        before[here] = there
    is_reached = np.zeros(len(new) + 1, dtype=bool)  # the last one stands above the roots
    is_reached[changed] = True
    for unit in np.setdiff1d(np.arange(len(new)), path).tolist():  # parents come first
        is_reached[unit] |= is_reached[new.parent[unit]]
    units = np.flatnonzero(is_reached[:-1])
    before[units] = -1
    return Reached(before, path, units)


def _ways_on(forest: Forest, unit: int) -> Ints:
    return np.flatnonzero(forest.parent == unit)


def _keys(forest: Forest, keys: Keys) -> Keys:
    """A number for every unit that tells what hangs below it."""
    found = np.zeros(len(forest), dtype=np.uint64)
    for unit in range(len(forest) - 1, -1, -1):  # parents come first, so a backward sweep sees children first
        is_class = forest.class_of[unit] >= 0
        found[unit] = keys[forest.class_of[unit]] if is_class else _mixed(found[unit])
        if forest.parent[unit] >= 0:
            with np.errstate(over="ignore"):
                found[forest.parent[unit]] += _mixed(found[unit])
    return found


def _mixed(key: np.uint64) -> np.uint64:
    """Another number, such that sums of them do not tell of chance (splitmix64)."""
    with np.errstate(over="ignore"):
        key = np.uint64(key) + np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return key ^ (key >> np.uint64(31))
