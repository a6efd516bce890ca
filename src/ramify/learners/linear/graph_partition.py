"""Which worker owns which units of a graph, and linear systems over units of several workers.

The systems are solved exactly, and only vectors of boundary units are sent. Without the boundary B the units of different
owners are not tied to each other, so A x = b falls apart. With the inner units I of each owner

    S x_B = b_B − Σ_I A_BI A_II⁻¹ b_I        S = A_BB − Σ_I A_BI A_II⁻¹ A_IB        (Schur complement)
    A_II x_I = b_I − A_IB x_B

Every owner factorizes its own A_II, and gives its part of S once and of each right-hand side.
All of them have S, and solve for those x_B that are next to their own units.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, depth_first_order, reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from ramify.learners.linear.graph_problem import GraphProblem
from ramify.learners.linear.partition import A_PAIR, PROGRAM, ROUNDS, cut
from ramify.learners.linear.taxonomy_ties import Structure
from ramify.parallel import Needs, note, row_blocks
from ramify.parallel.values import size_of

BLOCK = 1 << 22  # bytes of a dense matrix that is solved for at once
SENT = np.float32  # the type of vectors that are sent

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Solve = Callable[[Doubles], Doubles]
Given = tuple[Ints, NDArray[Any]]  # places among the boundary units, and matrices with a row for each of them


@dataclass(frozen=True, slots=True)
class OwnedUnits:
    """The units of one owner, and those next to them.

    units: its own, then boundary units of others that are next to them; all other arrays are places among these.
    n_own: how many are its own. inner, rim: its own units without the boundary, and boundary units.
    places: of the rim among all boundary units. touched: the owned of the rim to whose right-hand sides it adds.
    """

    units: Ints
    n_own: int
    inner: Ints
    rim: Ints
    places: Ints
    touched: Ints

    @classmethod
    def of(cls, M: csr_array, own: Ints, boundary: Ints) -> OwnedUnits:
        """For the owner of some units."""
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

    def submatrix(self, M: csr_array) -> csr_array:
        """M between these units."""
        return M if len(self.units) == M.shape[0] and not len(self.rim) else csr_array(M[self.units][:, self.units])

    def energy(self, M: csr_array) -> csr_array:
        """E for which x·Ex, added up over all owners, is x·Mx. M: between these units."""
        if not len(self.rim):
            return M
        is_inner, is_mine = np.zeros(len(self)), np.zeros(len(self))
        is_inner[self.inner] = 1
        is_mine[: self.n_own] = 1 - is_inner[: self.n_own]
        ties = M.tocoo()
        a, b = ties.coords
        # an inner unit counts its ties to the rim in both directions, a boundary unit those to others
        times = is_inner[a] * (2 - is_inner[b]) + is_mine[a] * (1 - is_inner[b])
        return csr_array((times * ties.data, (a, b)), shape=M.shape)


def _next_to(M: csr_array, units: Ints) -> Ints:
    return np.unique(M[units].indices).astype(np.int64)


class PartialSystem:
    """One owner's part of a linear system A x = b. A: between its units; solve_inner: x of A_II x = b."""

    def __init__(self, owned: OwnedUnits, A: csr_array, solve_inner: Solve) -> None:
        self.owned, self.solve_inner = owned, solve_inner
        self.inward, self.outward = csr_array(A[owned.inner][:, owned.rim]), csr_array(A[owned.rim][:, owned.inner])
        self.touching = csr_array(self.outward[owned.touched])
        self.among = A[owned.rim][:, owned.rim].toarray() * (owned.rim < owned.n_own)[:, None]
        self.inverse: Doubles = np.zeros((len(owned.rim), 0))

    def complement(self) -> Doubles:
        """Its part of S, rim × rim."""
        found: Doubles = self.among.copy()
        for some in row_blocks(len(self.owned.rim), 8 * len(self.owned.inner), BLOCK):
            found[:, some] -= self.outward @ self.solve_inner(self.inward[:, some].toarray())
        return found

    def close(self, S: Doubles) -> None:
        """From now on solve with S, which is all parts of it added up."""
        self.inverse = np.asarray(np.linalg.inv(S)[self.owned.places], dtype=np.float64)

    def condense(self, b: Doubles) -> Doubles:
        """Its part of the right-hand side of the boundary, for the touched units. b: by unit, zero for those of others."""
        if not len(self.owned.touched):
            return np.zeros((0, b.shape[1]))
        return np.asarray(b[self.owned.rim[self.owned.touched]] - self.touching @ self.solve_inner(b[self.owned.inner]))

    def solve(self, b: Doubles, given: NDArray[Any]) -> Doubles:
        """x of its units. given: the right-hand side of the boundary, all parts added up."""
        if not len(self.owned.rim):
            return self.solve_inner(b)
        x = np.empty_like(b)
        x[self.owned.rim] = self.inverse @ given
        x[self.owned.inner] = self.solve_inner(b[self.owned.inner] - self.inward @ x[self.owned.rim])
        return x

    def solve_alone(self, b: Doubles) -> Doubles:
        """The same where right-hand sides of all others are zero."""
        given = np.zeros((self.inverse.shape[1], b.shape[1]))
        given[self.owned.places[self.owned.touched]] = self.condense(b)
        return self.solve(b, given)


def partial_system(owned: OwnedUnits, A: csr_array) -> PartialSystem:
    """A part of a linear system with all ties of A."""
    return PartialSystem(owned, A, solver_of(csc_array(A[owned.inner][:, owned.inner]) if len(owned.rim) else csc_array(A)))


def partial_system_with_fixed(owned: OwnedUnits, M: csr_array, is_fixed: NDArray[np.bool_]) -> PartialSystem:
    """A part of M x = b in the rows of units that are free, and x = b in those of units that are fixed."""
    rows = np.repeat(np.arange(len(owned)), np.diff(M.indptr))
    kept = ~is_fixed[rows]
    every = np.flatnonzero(is_fixed)
    places = np.concatenate([rows[kept], every]), np.concatenate([M.indices[kept], every])
    A = csr_array((np.concatenate([M.data[kept], np.ones(len(every))]), places), shape=M.shape)
    inner_fixed = is_fixed[owned.inner]
    fixed, free = np.flatnonzero(inner_fixed), np.flatnonzero(~inner_fixed)
    free_rows = csc_array(M[owned.inner[free]])
    solve_free, to_fixed = solver_of(csc_array(free_rows[:, owned.inner[free]])), free_rows[:, owned.inner[fixed]]

    def solve_inner(b: Doubles) -> Doubles:
        x = b.copy()
        x[free] = solve_free(b[free] - to_fixed @ b[fixed])
        return x

    return PartialSystem(owned, A, solve_inner)


def solver_of(A: csc_array) -> Solve:
    """x of Ax = b; a matrix without rows has nothing to solve."""
    if A.shape[0] == 0:
        return lambda b: b
    solve: Solve = splu(A).solve
    return solve


def sum_complements(n_boundary: int, parts: Sequence[Given]) -> Doubles:
    """Several S, from parts of them."""
    total = np.zeros((len(parts[0][1]), n_boundary, n_boundary))
    for places, found in parts:
        total[:, places[:, None], places] += found
    return total


def sum_vectors(n_boundary: int, parts: Sequence[Given]) -> NDArray[Any]:
    """Several right-hand sides of all boundary units, from parts of them."""
    shape = parts[0][1].shape
    total = np.zeros((shape[0], n_boundary, shape[2]))
    for places, found in parts:
        total[:, places] += found
    return total.astype(SENT)


# ---- partitions -----------------------------------------------------------------------------------------------------------
#
# Units are put into an order in which tied units are close to each other, and cut where the work is divided evenly and few ties
# cross. Of every tie between units of two workers one end is a boundary unit, so that the other units of different workers are
# not tied. Three orders are tried, each as it is cut and with single units moved to where most of their ties lead; the one with
# the smallest boundary is used.

MOST_BOUNDARY = 4096  # units: every worker inverts a dense matrix of them
UNEVEN, SWEEPS = 0.1, 8  # how much more work than its part a worker may get for a smaller boundary, and sweeps over units


@dataclass(frozen=True, slots=True)
class GraphPartition:
    """What one worker owns: units, and the classes among them.

    boundary: the boundary units of all workers. n_threads: how many it has. depth: how many steps it stores for mixing.
    """

    units: Ints
    classes: Ints
    boundary: Ints
    n_threads: int
    depth: int = 0


def partition_units(structure: Structure, work: NDArray[np.float64], worker_threads: Sequence[int]) -> list[GraphPartition]:
    """Cut units into partitions, with work in proportion to the threads of the workers; every partition has a class.

    If units are tied so closely that the boundary would be too large, there are fewer partitions.
    """
    wanted = threads = tuple(worker_threads[: max(1, min(len(worker_threads), len(structure.class_units)))])
    owner, boundary = _divide(structure, work, threads)
    while len(boundary) > MOST_BOUNDARY:
        threads = threads[:-1]
        owner, boundary = _divide(structure, work, threads)
    if len(threads) < len(wanted):
        note(f"Labels are tied so closely that only {len(threads)} of {len(wanted)} nodes are used.")
    by_class = owner[structure.class_units]
    return [
        GraphPartition(np.flatnonzero(owner == k), np.flatnonzero(by_class == k), boundary, n_threads)
        for k, n_threads in enumerate(threads)
    ]


GRAPH_STEP = 1.1e-8  # seconds for a feature of a document of a pair, in one pass; chosen, not fitted
GRAPH_VECTORS = 7  # of every class, beside two for each stored step
GRAPH_PASSES = 4  # over all pairs, in a round


def estimate_graph_needs(problem: GraphProblem, partitions: Sequence[GraphPartition]) -> Needs:
    """Bytes and seconds (as in partition.py): all pairs are worked on, and vectors are dense."""
    rows, work = problem.rows, len(problem.rows.values) * ROUNDS * GRAPH_PASSES * GRAPH_STEP

    def bytes_of(partition: GraphPartition) -> int:
        n = len(partition.classes)
        vectors = 4 * rows.n_features * (n * (GRAPH_VECTORS + 2 * partition.depth) + len(partition.units))
        return PROGRAM + A_PAIR * n * len(rows) + vectors + 8 * len(partition.boundary) ** 2

    seconds = max(work * len(partition.classes) / partition.n_threads for partition in partitions)
    return Needs(size_of(problem), tuple(map(bytes_of, partitions)), seconds)


def _divide(structure: Structure, work: NDArray[np.float64], threads: tuple[int, ...]) -> tuple[Ints, Ints]:
    """The owner of every unit, and the boundary."""
    if len(threads) == 1:
        return np.zeros(len(structure), dtype=np.int64), np.zeros(0, dtype=np.int64)
    is_class = np.zeros(len(structure), dtype=np.int64)
    is_class[structure.class_units] = 1
    found = []
    for order in _orders(structure.M):
        classes_before = np.concatenate([[0], np.cumsum(is_class[order])])
        ends = cut(work[order], np.asarray(threads, dtype=np.float64), _crossing(structure.M, order), classes_before)
        owner = np.empty(len(structure), dtype=np.int64)
        owner[order] = np.repeat(np.arange(len(threads)), np.diff(ends, prepend=0))
        smoothed = _smooth(structure.M, owner, work, is_class, np.asarray(threads) / sum(threads))
        found += [(each, _cover(structure.M, each)) for each in (owner, smoothed)]
    return min(found, key=lambda each: len(each[1]))


def _orders(M: csr_array) -> Iterator[Ints]:
    """Units along a tree of shortest paths, in depth, and so that ties are short."""
    n, (n_parts, part) = M.shape[0], connected_components(M, directed=False)
    # one unit more, tied to all roots and to one unit of every part that has no root
    is_root = np.asarray(M.sum(axis=1)).ravel() > 0.5  # the anchor of a root is 1, and that of other units near 0
    has_root = np.bincount(part, is_root, minlength=n_parts) > 0
    hooks = np.concatenate([np.flatnonzero(is_root), np.unique(part, return_index=True)[1][~has_root]])
    a, b = M.tocoo().coords
    places = np.concatenate([a, np.full(len(hooks), n)]), np.concatenate([b, hooks])
    hooked = csr_array(coo_array((np.ones(len(places[0])), places), shape=(n + 1, n + 1)))
    yield _along_tree(*breadth_first_order(hooked, n, directed=False))
    yield depth_first_order(hooked, n, directed=False, return_predecessors=False)[1:].astype(np.int64)
    yield reverse_cuthill_mckee(M, symmetric_mode=True).astype(np.int64)


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
    places = np.arange(n)
    # the unit at place i has ties over the cuts i + 1 … last[i], and first[i] + 1 … i
    ahead = np.bincount(places + 1, minlength=n + 2) - np.bincount(last + 1, minlength=n + 2)
    behind = np.bincount(first + 1, minlength=n + 2) - np.bincount(places + 1, minlength=n + 2)
    return np.asarray(np.minimum(np.cumsum(ahead), np.cumsum(behind))[: n + 1])


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
