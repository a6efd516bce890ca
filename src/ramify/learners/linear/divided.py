"""Linear systems of a structure whose units have several owners: exact, and only vectors of boundary units travel.

Without the boundary B the units of different owners are not tied to each other, so A x = b falls apart. With the inner units I
of each owner

    S x_B = b_B − Σ_I A_BI A_II⁻¹ b_I        S = A_BB − Σ_I A_BI A_II⁻¹ A_IB        (Schur's complement)
    A_II x_I = b_I − A_IB x_B

Every owner factorizes its own A_II, and gives its part of S once and of the right-hand side whenever there is one to solve for.
All of them know S, and solve for those x_B that are next to their own units.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu

from ramify.execution import row_blocks

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
