"""Which part of a tree a change has reached: everything below one unit, whose weights can be held as they are.

Units are compared by what hangs below them, class by class, whatever their nodes are called. From the top down, as long as a
single way on has changed, the change lies below it. What is left is the deepest unit above the whole change, and the
classes below those of its ways on that have changed; all other units are as they were.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramify.learners.linear.forest import Forest

Ints = NDArray[np.int64]
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
