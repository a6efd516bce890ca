"""Who of a crew owns which units of a graph, and which of them are the boundary between members.

Units are put into a row, in which those that are tied stand near each other, and the row is cut where the work is divided
evenly and few ties cross. Of every tie between units of two members one end is a boundary unit, so that the others of different
members have nothing to do with each other. Three rows are tried, each as it is cut and with single units moved to where most of
their ties lead; the one with the smallest boundary counts.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import (
    breadth_first_order,
    connected_components,
    depth_first_order,
    reverse_cuthill_mckee,
)

from ramify.execution import note
from ramify.learners.linear.shares import cut
from ramify.learners.linear.structure import Structure

MOST_BOUNDARY = 4096  # units: every member inverts a dense matrix of them
UNEVEN, SWEEPS = 0.1, 8  # how much more work than its part a member may get for a smaller boundary, and sweeps over units

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GraphShare:
    """What one member owns: units, and the classes among them.

    boundary: the boundary units of all members. n_threads: how many it has. depth: how many steps it remembers for mixing.
    """

    units: Ints
    classes: Ints
    boundary: Ints
    n_threads: int
    depth: int = 0


def share_out_units(structure: Structure, work: NDArray[np.float64], teams: Sequence[int]) -> list[GraphShare]:
    """Cut units into shares, with work in proportion to the threads of the teams; a team too many gets none.

    Where units are tied so closely that the boundary would be too large, there are fewer shares.
    """
    given = teams = tuple(teams[: max(1, min(len(teams), len(structure.class_units)))])
    owner, boundary = _divide(structure, work, teams)
    while len(boundary) > MOST_BOUNDARY:
        teams = teams[:-1]
        owner, boundary = _divide(structure, work, teams)
    if len(teams) < len(given):
        note(f"Labels are tied so closely that {len(teams)} of {len(given)} machines share them.")
    by_class = owner[structure.class_units]
    return [
        GraphShare(np.flatnonzero(owner == k), np.flatnonzero(by_class == k), boundary, n_threads)
        for k, n_threads in enumerate(teams)
    ]


def with_depth(shares: Sequence[GraphShare], depth: int) -> list[GraphShare]:
    """The same shares, which remember so many steps."""
    return [replace(share, depth=depth) for share in shares]


def _divide(structure: Structure, work: NDArray[np.float64], teams: tuple[int, ...]) -> tuple[Ints, Ints]:
    """The owner of every unit, and the boundary."""
    if len(teams) == 1:
        return np.zeros(len(structure), dtype=np.int64), np.zeros(0, dtype=np.int64)
    is_class = np.zeros(len(structure), dtype=np.int64)
    is_class[structure.class_units] = 1
    found = []
    for order in _orders(structure.M):
        classes_before = np.concatenate([[0], np.cumsum(is_class[order])])
        ends = cut(work[order], np.asarray(teams, dtype=np.float64), _crossing(structure.M, order), classes_before)
        owner = np.empty(len(structure), dtype=np.int64)
        owner[order] = np.repeat(np.arange(len(teams)), np.diff(ends, prepend=0))
        smoothed = _smooth(structure.M, owner, work, is_class, np.asarray(teams) / sum(teams))
        found += [(each, _cover(structure.M, each)) for each in (owner, smoothed)]
    return min(found, key=lambda each: len(each[1]))


# ---- rows of units ---------------------------------------------------------------------------------------------------------


def _orders(M: csr_array) -> Iterator[Ints]:
    """Units along a tree of shortest paths, in depth, and so that ties are short."""
    n, hooked = M.shape[0], _hooked(M)
    yield _along_tree(*breadth_first_order(hooked, n, directed=False))
    yield depth_first_order(hooked, n, directed=False, return_predecessors=False)[1:].astype(np.int64)
    yield reverse_cuthill_mckee(M, symmetric_mode=True).astype(np.int64)


def _hooked(M: csr_array) -> csr_array:
    """Ties, and one unit more, tied to all roots and to one unit of every part that has no root."""
    n, (n_parts, part) = M.shape[0], connected_components(M, directed=False)
    is_root = np.asarray(M.sum(axis=1)).ravel() > 0.5  # the anchor of a root is 1, and that of other units near 0
    has_root = np.bincount(part, is_root, minlength=n_parts) > 0
    hooks = np.concatenate([np.flatnonzero(is_root), np.unique(part, return_index=True)[1][~has_root]])
    a, b = M.tocoo().coords
    places = np.concatenate([a, np.full(len(hooks), n)]), np.concatenate([b, hooks])
    return csr_array(coo_array((np.ones(len(places[0])), places), shape=(n + 1, n + 1)))


def _along_tree(order: NDArray[np.int32], above: NDArray[np.int32]) -> Ints:
    """Units of a tree so that each is followed by all below it. order: those above first; above: of each unit."""
    top, listed, parent = int(order[0]), order[1:].tolist(), above.tolist()
    size, place = [1] * len(order), [0] * len(order)
    for unit in reversed(listed):  # units below come first
        size[parent[unit]] += size[unit]
    free = [0] * len(order)  # the next place below each unit
    for unit in listed:  # units above come first
        place[unit] = free[parent[unit]]
        free[parent[unit]] += size[unit]
        free[unit] = place[unit] + 1
    return np.argsort(np.asarray(place[:top], dtype=np.int64))


def _crossing(M: csr_array, order: Ints) -> Ints:
    """For every cut of a row of units, the ends of ties across it, on the side with fewer of them."""
    n, (a, b) = len(order), M.tocoo().coords
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    first, last = np.arange(n), np.arange(n)
    np.minimum.at(first, place[a], place[b])
    np.maximum.at(last, place[a], place[b])
    here = np.arange(n)
    # the unit at place i has ties over the cuts i + 1 … last[i], and first[i] + 1 … i
    ahead = np.bincount(here + 1, minlength=n + 2) - np.bincount(last + 1, minlength=n + 2)
    behind = np.bincount(first + 1, minlength=n + 2) - np.bincount(here + 1, minlength=n + 2)
    crossing: Ints = np.minimum(np.cumsum(ahead), np.cumsum(behind))[: n + 1]
    return crossing


def _smooth(M: csr_array, owner: Ints, work: NDArray[np.float64], is_class: Ints, parts: NDArray[np.float64]) -> Ints:
    """Give units to the owner of most units that they are tied to, as long as work stays divided and all have a class."""
    owner, n = owner.copy(), len(parts)
    load, classes = np.bincount(owner, work, minlength=n), np.bincount(owner, is_class, minlength=n)
    most = (1 + UNEVEN) * parts * work.sum()
    for _ in range(SWEEPS):
        a, b = M.tocoo().coords
        before = owner.copy()
        for unit in np.unique(a[owner[a] != owner[b]]).tolist():
            old = int(owner[unit])
            ties = np.bincount(owner[M.indices[M.indptr[unit] : M.indptr[unit + 1]]], minlength=n)
            ties[old] -= 1  # the unit itself
            new = int(np.argmax(np.where(load + work[unit] <= most, ties, -1)))
            if ties[new] > ties[old] and classes[old] > is_class[unit]:
                owner[unit] = new
                for count, each in ((load, work[unit]), (classes, is_class[unit])):
                    count[[old, new]] += (-each, each)
        if np.array_equal(owner, before):
            break
    return owner


# ---- the boundary ----------------------------------------------------------------------------------------------------------


def _cover(M: csr_array, owner: Ints) -> Ints:
    """Few units that are an end of every tie between owners: those with most such ties first."""
    a, b = M.tocoo().coords
    across = owner[a] != owner[b]
    ties = csr_array(coo_array((np.ones(int(across.sum())), (a[across], b[across])), shape=M.shape))
    others = [ties.indices[ties.indptr[u] : ties.indptr[u + 1]].tolist() for u in range(len(owner))]
    left = [len(each) for each in others]
    waiting = [(-count, unit) for unit, count in enumerate(left) if count]
    heapq.heapify(waiting)
    chosen: dict[int, None] = {}
    while waiting:
        count, unit = heapq.heappop(waiting)
        if not left[unit] or unit in chosen:
            continue
        if left[unit] != -count:
            heapq.heappush(waiting, (-left[unit], unit))
            continue
        chosen[unit] = None
        for other in others[unit]:
            left[other] -= 1
    for unit in list(chosen):  # later choices may have made it needless
        if all(other in chosen for other in others[unit]):
            del chosen[unit]
    return np.asarray(sorted(chosen), dtype=np.int64)
