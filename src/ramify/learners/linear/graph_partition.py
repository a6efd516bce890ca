"""Linear systems of a structure whose units have several owners: exact, and only vectors of boundary units travel.

Without the boundary B the units of different owners are not tied to each other, so A x = b falls apart. With the inner units I
of each owner

    S x_B = b_B − Σ_I A_BI A_II⁻¹ b_I        S = A_BB − Σ_I A_BI A_II⁻¹ A_IB        (Schur's complement)
    A_II x_I = b_I − A_IB x_B

Every owner factorizes its own A_II, and gives its part of S once and of the right-hand side whenever there is one to solve for.
All of them know S, and solve for those x_B that are next to their own units.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array
from scipy.sparse.csgraph import (
    breadth_first_order,
    connected_components,
    depth_first_order,
    reverse_cuthill_mckee,
)
from scipy.sparse.linalg import splu

from ramify.learners.linear.partition import cut
from ramify.learners.linear.taxonomy_ties import Structure
from ramify.parallel import note, row_blocks

BLOCK = 1 << 22  # bytes of a dense matrix that is solved for at once
CARRIED = np.float32  # the type of vectors that travel

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Solve = Callable[[Doubles], Doubles]
Given = tuple[Ints, NDArray[Any]]  # places among the boundary units, and several matrices with a row for each of them


@dataclass(frozen=True, slots=True)
class Part:
    """What one owner sees of a structure.

    units: its own, then boundary units of others that are next to them; all other arrays are places among these.
    n_own: how many are its own. inner, rim: its own units without the boundary, and boundary units.
    places: of the rim among all boundary units. touched: the part of the rim to whose right-hand sides it adds.
    """

    units: Ints
    n_own: int
    inner: Ints
    rim: Ints
    places: Ints
    touched: Ints

    @classmethod
    def of(cls, M: csr_array, own: Ints, boundary: Ints) -> Part:
        """The part of the owner of some units."""
        inner = np.setdiff1d(own, boundary)
        mine = np.intersect1d(own, boundary)
        touched = np.union1d(mine, np.intersect1d(_next_to(M, inner), boundary))
        rim = np.union1d(touched, np.intersect1d(_next_to(M, mine), boundary))
        units = np.concatenate([own, np.setdiff1d(rim, own)])
        place = np.zeros(M.shape[0], dtype=np.int64)
        place[units] = np.arange(len(units))
        return cls(units, len(own), place[inner], place[rim], np.searchsorted(boundary, rim), np.searchsorted(rim, touched))

    def __len__(self) -> int:
        return len(self.units)

    def cut_out(self, M: csr_array) -> csr_array:
        """M between the units of this part."""
        return M if len(self.units) == M.shape[0] and not len(self.rim) else csr_array(M[self.units][:, self.units])

    def measure_of(self, M: csr_array) -> csr_array:
        """E for which x·Ex, added up over all owners, is x·Mx. M: between the units of this part."""
        if not len(self.rim):
            return M
        is_inner, is_mine = np.zeros(len(self)), np.zeros(len(self))
        is_inner[self.inner] = 1
        is_mine[: self.n_own] = 1 - is_inner[: self.n_own]
        ties = M.tocoo()
        a, b = ties.coords
        # an inner unit answers for its ties to the rim in both directions, a boundary unit for those to others
        times = is_inner[a] * (2 - is_inner[b]) + is_mine[a] * (1 - is_inner[b])
        return csr_array((times * ties.data, (a, b)), shape=M.shape)


def _next_to(M: csr_array, units: Ints) -> Ints:
    return np.unique(M[units].indices).astype(np.int64)


class Divided:
    """One owner's part of a linear system A x = b. A: between the units of the part; solve_inner: x of A_II x = b."""

    def __init__(self, part: Part, A: csr_array, solve_inner: Solve) -> None:
        self.part, self.solve_inner = part, solve_inner
        self.inward, self.outward = csr_array(A[part.inner][:, part.rim]), csr_array(A[part.rim][:, part.inner])
        self.touching = csr_array(self.outward[part.touched])
        self.among = A[part.rim][:, part.rim].toarray() * (part.rim < part.n_own)[:, None]
        self.inverse: Doubles = np.zeros((len(part.rim), 0))

    def complement(self) -> Doubles:
        """Its part of S, rim × rim."""
        found: Doubles = self.among.copy()
        n = len(self.part.inner)
        for some in row_blocks(len(self.part.rim), 8 * n, BLOCK):
            found[:, some] -= self.outward @ self.solve_inner(self.inward[:, some].toarray())
        return found

    def close(self, S: Doubles) -> None:
        """From now on solve with S, which is all parts of it added up."""
        self.inverse = np.asarray(np.linalg.inv(S)[self.part.places], dtype=np.float64)

    def condense(self, b: Doubles) -> Doubles:
        """Its part of the right-hand side of the boundary, for the touched units. b: by unit, zero for those of others."""
        if not len(self.part.touched):
            return np.zeros((0, b.shape[1]))
        condensed: Doubles = b[self.part.rim[self.part.touched]] - self.touching @ self.solve_inner(b[self.part.inner])
        return condensed

    def solve(self, b: Doubles, given: NDArray[Any]) -> Doubles:
        """x of the units of the part. given: the right-hand side of the boundary, all parts added up."""
        if not len(self.part.rim):
            return self.solve_inner(b)
        x = np.empty_like(b)
        x[self.part.rim] = self.inverse @ given
        x[self.part.inner] = self.solve_inner(b[self.part.inner] - self.inward @ x[self.part.rim])
        return x

    def solve_alone(self, b: Doubles) -> Doubles:
        """The same where right-hand sides of all others are zero."""
        given = np.zeros((self.inverse.shape[1], b.shape[1]))
        given[self.part.places[self.part.touched]] = self.condense(b)
        return self.solve(b, given)


def divide_matrix(part: Part, A: csr_array) -> Divided:
    """A part of a linear system with all ties of A."""
    return Divided(part, A, solver_of(csc_array(A[part.inner][:, part.inner]) if len(part.rim) else csc_array(A)))


def divide_with_fixed(part: Part, M: csr_array, is_fixed: NDArray[np.bool_]) -> Divided:
    """A part of M x = b in the rows of units that are free, and x = b in those of units that are fixed."""
    rows = np.repeat(np.arange(len(part)), np.diff(M.indptr))
    kept = ~is_fixed[rows]
    every = np.flatnonzero(is_fixed)
    places = np.concatenate([rows[kept], every]), np.concatenate([M.indices[kept], every])
    A = csr_array((np.concatenate([M.data[kept], np.ones(len(every))]), places), shape=M.shape)
    inner_fixed = is_fixed[part.inner]
    fixed, free = np.flatnonzero(inner_fixed), np.flatnonzero(~inner_fixed)
    free_rows = csc_array(M[part.inner[free]])
    solve_free, to_fixed = solver_of(csc_array(free_rows[:, part.inner[free]])), free_rows[:, part.inner[fixed]]

    def solve_inner(b: Doubles) -> Doubles:
        x = b.copy()
        x[free] = solve_free(b[free] - to_fixed @ b[fixed])
        return x

    return Divided(part, A, solve_inner)


def solver_of(A: csc_array) -> Solve:
    """x of Ax = b; a matrix without rows has nothing to solve."""
    if A.shape[0] == 0:
        return lambda b: b
    solve: Solve = splu(A).solve
    return solve


def add_complements(n_boundary: int, parts: Sequence[Given]) -> Doubles:
    """Several S, from parts of them."""
    total = np.zeros((len(parts[0][1]), n_boundary, n_boundary))
    for places, found in parts:
        total[:, places[:, None], places] += found
    return total


def add_vectors(n_boundary: int, parts: Sequence[Given]) -> NDArray[Any]:
    """Several right-hand sides of all boundary units, from parts of them."""
    shape = parts[0][1].shape
    total = np.zeros((shape[0], n_boundary, shape[2]))
    for places, found in parts:
        total[:, places] += found
    return total.astype(CARRIED)


# --------------------------------------------------------------------------------------------------------------
# Who of a crew owns which units of a graph, and which of them are the boundary between members.
#
# Units are put into a row, in which those that are tied stand near each other, and the row is cut where the work is divided
# evenly and few ties cross. Of every tie between units of two members one end is a boundary unit, so that the others of
# different
# members have nothing to do with each other. Three rows are tried, each as it is cut and with single units moved to where
# most of
# their ties lead; the one with the smallest boundary counts.


MOST_BOUNDARY = 4096  # units: every member inverts a dense matrix of them
UNEVEN, SWEEPS = 0.1, 8  # how much more work than its part a member may get for a smaller boundary, and sweeps over units


@dataclass(frozen=True, slots=True)
class GraphPartition:
    """What one member owns: units, and the classes among them.

    boundary: the boundary units of all members. n_threads: how many it has. depth: how many steps it remembers for mixing.
    """

    units: Ints
    classes: Ints
    boundary: Ints
    n_threads: int
    depth: int = 0


def partition_units(structure: Structure, work: NDArray[np.float64], teams: Sequence[int]) -> list[GraphPartition]:
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
        GraphPartition(np.flatnonzero(owner == k), np.flatnonzero(by_class == k), boundary, n_threads)
        for k, n_threads in enumerate(teams)
    ]


def with_depth(shares: Sequence[GraphPartition], depth: int) -> list[GraphPartition]:
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
