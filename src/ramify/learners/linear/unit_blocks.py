"""Newton systems of tied units: (M ⊗ I + blockdiag(G_v)) x = r, with one feature × feature block for every unit.

Units are eliminated one by one, a unit with the fewest neighbours first (Markowitz' minimum degree): on a tree these are leaves
and nothing fills in. Where too many blocks would fill in, conjugate gradients take over, preconditioned by the diagonal blocks.

    M: units × units, sparse      blocks: G_v + M_vv I, units × features × features      r, x: units × features
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.sparse import csr_array

from ramify.execution import heed_deadline

Floats = NDArray[np.float64]

GRADIENT_STEPS = 300  # of conjugate gradients at most
GRADIENT_TOLERANCE = 1e-9


class Factor(Protocol):
    """Something that solves a system of one block matrix for many right-hand sides."""

    def solve(self, r: Floats) -> Floats:
        """The x of r, both units × features."""


@dataclass(frozen=True, slots=True)
class Order:
    """Units in the order of their elimination, and for each unit its neighbours at that moment."""

    units: list[int]
    later: list[list[int]]

    @property
    def work(self) -> int:
        """Products of two blocks that an elimination takes."""
        return sum((1 + len(later)) ** 2 for later in self.later)


def order_units(M: csr_array, most_work: float) -> Order | None:
    """Who is eliminated when; None if that would take more products of blocks than `most_work`.

    >>> order_units(csr_array([[2., -1, 0], [-1, 2, -1], [0, -1, 2]]), 100).later
    [[1], [2], []]
    """
    near = [set(M.indices[M.indptr[v] : M.indptr[v + 1]].tolist()) - {v} for v in range(M.shape[0])]
    later: list[list[int]] = [[] for _ in near]
    units, waiting, work = [], [(len(n), v) for v, n in enumerate(near)], 0
    heapify(waiting)
    done = np.zeros(len(near), dtype=bool)
    while waiting:
        degree, v = heappop(waiting)
        if done[v] or degree != len(near[v]):
            continue  # an entry from before the neighbours changed
        work += (1 + degree) ** 2
        if work > most_work:
            return None
        done[v] = True
        units.append(v)
        later[v] = sorted(near[v])
        for a in later[v]:
            near[a] = (near[a] | near[v]) - {a, v}
            heappush(waiting, (len(near[a]), a))
    return Order(units, later)


@dataclass(frozen=True, slots=True)
class Elimination:
    """The factors of the block matrix: L_v of every pivot, and Y_v = L_v⁻¹ B_v of its row of later blocks."""

    order: Order
    pivots: dict[int, Floats]
    rows: dict[int, Floats]

    def solve(self, r: Floats) -> Floats:
        """Down the order with L, and up again with its transpose."""
        x = r.copy()
        for v in self.order.units:
            x[v] = _triangular(self.pivots[v], x[v], trans=0)
            x[self.order.later[v]] -= (x[v] @ self.rows[v]).reshape(-1, r.shape[1])
        for v in reversed(self.order.units):
            x[v] = _triangular(self.pivots[v], x[v] - self.rows[v] @ x[self.order.later[v]].ravel(), trans=1)
        return x


def eliminate(M: csr_array, order: Order, blocks: Floats) -> Elimination:
    """Factor the block matrix; overwrites `blocks`."""
    d, place = blocks.shape[1], {v: k for k, v in enumerate(order.units)}
    entries = {(int(a), int(b)): m for a, b, m in zip(*M.nonzero(), M.data, strict=True)}
    filled: dict[tuple[int, int], Floats] = {}
    pivots, rows = {}, {}
    for v in order.units:
        later = order.later[v]
        row = np.zeros((d, len(later), d))
        for k, a in enumerate(later):
            row[:, k] = filled.pop((v, a), 0.0) + entries.get((v, a), 0.0) * np.eye(d)
        pivots[v] = _cholesky(blocks[v])
        rows[v] = _triangular(pivots[v], row.reshape(d, -1), trans=0)
        for i, a in enumerate(later):
            Y_a = rows[v][:, i * d : (i + 1) * d]
            blocks[a] -= Y_a.T @ Y_a
            for j in range(i):
                pair, update = (a, later[j]), Y_a.T @ rows[v][:, j * d : (j + 1) * d]
                if place[a] > place[later[j]]:
                    pair, update = (later[j], a), update.T
                filled[pair] = filled.get(pair, 0.0) - update
    return Elimination(order, pivots, rows)


def _cholesky(block: Floats) -> Floats:
    """L of a positive definite block; a block that rounding has spoilt is lifted just enough."""
    lift = 0.0
    for _ in range(8):
        L, failed = dpotrf(block + lift * np.eye(len(block)), lower=1, clean=1)
        if not failed and np.isfinite(L[-1, -1]):
            return np.asarray(L)
        lift = max(100 * lift, 1e-14 * float(np.abs(np.diag(block)).max()))
    raise np.linalg.LinAlgError("a block of the Newton system is not positive definite")


def _triangular(L: Floats, r: Floats, trans: int) -> Floats:
    return np.asarray(dtrtrs(L, r, lower=1, trans=trans)[0]) if r.size else r


@dataclass(frozen=True, slots=True)
class ConjugateGradients:
    """The block matrix as an operator, with the inverses of its diagonal blocks."""

    M: csr_array
    blocks: Floats
    inverses: Floats

    @classmethod
    def of(cls, M: csr_array, blocks: Floats) -> ConjugateGradients:
        """Invert the diagonal blocks only."""
        return cls(M, blocks, np.asarray(np.linalg.inv(blocks), dtype=np.float64))

    def _times(self, x: Floats) -> Floats:
        product: Floats = self.M @ x - self.M.diagonal()[:, None] * x + np.matmul(self.blocks, x[:, :, None])[:, :, 0]
        return product

    def _precondition(self, r: Floats) -> Floats:
        preconditioned: Floats = np.matmul(self.inverses, r[:, :, None])[:, :, 0]
        return preconditioned

    def solve(self, r: Floats) -> Floats:
        """Hestenes & Stiefel 1952."""
        x, left = np.zeros_like(r), r.copy()
        s = p = self._precondition(left)
        size = target = float(np.vdot(left, s))
        for _ in range(GRADIENT_STEPS):
            heed_deadline()
            if size <= GRADIENT_TOLERANCE**2 * target or size == 0.0:
                break
            product = self._times(p)
            step = size / float(np.vdot(p, product))
            x += step * p
            left -= step * product
            s = self._precondition(left)
            size, before = float(np.vdot(left, s)), size
            p = s + size / before * p
        return x
