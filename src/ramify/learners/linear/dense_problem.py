"""Problems with few, dense features: products of a connected group of tied units, and its Newton systems.

    K classes, N documents, d features       Z, A: K × N, scores times signs and dual variables of all pairs
    W: units × d                             U(A): units × d, Σ_i α_in y_in x_i in the rows of classes, else zero

Newton systems are (M ⊗ I + blockdiag(G_v)) x = r, with M: units × units, sparse; blocks: G_v + M_vv I, units × d × d; and r, x:
units × d. Units are eliminated in order of minimum degree (Markowitz): on a tree these are leaves, and nothing fills in. Where
too many blocks would fill in, conjugate gradients solve the system, preconditioned by the diagonal blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.sparse import csr_array
from scipy.sparse.linalg import SuperLU

from ramify.parallel import check_deadline, row_blocks

Floats = NDArray[np.float64]

GRADIENT_STEPS, GRADIENT_TOLERANCE = 300, 1e-9  # of conjugate gradients
PAIRS_AT_ONCE = 1 << 19  # keeps temporary arrays small
ROWS_AT_ONCE = 4096  # documents per matrix product
SMALL_GRAM = 1 << 21  # N d² below which no document is left out


@dataclass(frozen=True, slots=True)
class Order:
    """Units in the order of their elimination, and the neighbours of each at that moment."""

    units: list[int]
    later: list[list[int]]


def order_units(M: csr_array, most_work: float) -> Order | None:
    """The order of elimination; None if it takes more products of blocks than `most_work`.

    >>> order_units(csr_array([[2., -1, 0], [-1, 2, -1], [0, -1, 2]]), 100).later
    [[1], [2], []]
    """
    neighbours = [set(M.indices[M.indptr[v] : M.indptr[v + 1]].tolist()) - {v} for v in range(M.shape[0])]
    later: list[list[int]] = [[] for _ in neighbours]
    units, waiting, work = [], [(len(n), v) for v, n in enumerate(neighbours)], 0
    heapify(waiting)
    done = np.zeros(len(neighbours), dtype=bool)
    while waiting:
        degree, v = heappop(waiting)
        if done[v] or degree != len(neighbours[v]):
            continue  # the neighbours have changed since
        work += (1 + degree) ** 2
        if work > most_work:
            return None
        done[v] = True
        units.append(v)
        later[v] = sorted(neighbours[v])
        for a in later[v]:
            neighbours[a] = (neighbours[a] | neighbours[v]) - {a, v}
            heappush(waiting, (len(neighbours[a]), a))
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
    """L of a positive definite block; adds just enough to the diagonal where rounding has spoilt it."""
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

    def solve(self, r: Floats) -> Floats:
        """Hestenes & Stiefel 1952."""
        x, left = np.zeros_like(r), r.copy()
        s = p = np.matmul(self.inverses, left[:, :, None])[:, :, 0]
        size = target = float(np.vdot(left, s))
        for _ in range(GRADIENT_STEPS):
            check_deadline()
            if size <= GRADIENT_TOLERANCE**2 * target or size == 0.0:
                break
            product = self.M @ p - self.M.diagonal()[:, None] * p + np.matmul(self.blocks, p[:, :, None])[:, :, 0]
            step = size / float(np.vdot(p, product))
            x += step * p
            left -= step * product
            s = np.matmul(self.inverses, left[:, :, None])[:, :, 0]
            size, last = float(np.vdot(left, s)), size
            p = s + size / last * p
        return x


# ---- the problem of one connected group of units ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DenseProblem:
    """Documents, signs and costs of some classes, their units, and how all units are tied."""

    X: Floats
    signs: NDArray[np.int8]
    positive: Floats
    negative: Floats
    weights: Floats
    M: csr_array
    M_factor: SuperLU
    class_units: NDArray[np.intp]
    order: Order | None

    @property
    def shape(self) -> tuple[int, int]:
        """Units and features."""
        return self.M.shape[0], self.X.shape[1]

    def parts(self) -> list[slice]:
        """Ranges of classes for which temporary arrays stay small."""
        n_classes, n_documents = self.signs.shape
        return row_blocks(n_classes, n_documents, PAIRS_AT_ONCE)

    def costs_of(self, classes: slice | int) -> Floats:
        """The cost of a unit of loss, for all documents of some classes, or of one."""
        positive, negative = self.positive[classes, ..., None], self.negative[classes, ..., None]
        return np.asarray(np.where(self.signs[classes] > 0, positive, negative) * self.weights)

    def margins(self, W: Floats) -> Floats:
        """Z: scores times signs."""
        Z: Floats = W[self.class_units] @ self.X.T
        Z *= self.signs
        return Z

    def gather_in_place(self, U: Floats, classes: slice, alphas: Floats) -> None:
        """Write the rows of U of some classes."""
        U[self.class_units[classes]] = (alphas * self.signs[classes]) @ self.X

    def half_square(self, W: Floats) -> float:
        """½ tr(W' M W)."""
        return 0.5 * float(np.vdot(W, self.M @ W))

    def half_inverse_square(self, U: Floats) -> float:
        """½ tr(U' M⁻¹ U)."""
        return 0.5 * float(np.vdot(U, self.M_factor.solve(U)))

    def factor(self, curvature: Callable[[int], Floats], neglect: float) -> Elimination | ConjugateGradients:
        """Of M ⊗ I + blockdiag(X' D_n X), D_n the curvature of class n. neglect: see `add_gram_in_place`."""
        blocks = np.zeros((self.shape[0], self.shape[1], self.shape[1]))
        blocks[:, range(self.shape[1]), range(self.shape[1])] = self.M.diagonal()[:, None]
        for k, unit in enumerate(self.class_units):
            add_gram_in_place(blocks[unit], self.X, curvature(k), neglect)
        return ConjugateGradients.of(self.M, blocks) if self.order is None else eliminate(self.M, self.order, blocks)


def add_gram_in_place(block: Floats, X: Floats, curvature: Floats, neglect: float) -> None:
    """Add Σ_i D_i x_i x_i' to a block, without the smallest D_i, which make up at most a fraction `neglect` of their sum.

    Only the direction of a step depends on the block, so this does not make the solution less exact.
    """
    least = 0.0 if X.size * X.shape[1] < SMALL_GRAM else neglect * float(curvature.mean())
    rows = np.flatnonzero(curvature > least)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[start : start + ROWS_AT_ONCE]
        scaled = X[some]
        scaled *= np.sqrt(curvature[some])[:, None]
        block += scaled.T @ scaled


@dataclass(slots=True)
class Best:
    """The lowest objective and the highest bound so far, with their weights (units × features) and dual variables."""

    W: Floats
    alphas: Floats
    primal: float = np.inf
    dual: float = 0.0
    iterations: int = 0

    @classmethod
    def nothing(cls, problem: DenseProblem) -> Best:
        """Zeros, whose bound is 0 for every loss."""
        return cls(np.zeros(problem.shape), np.zeros(problem.signs.shape))

    @property
    def gap(self) -> float:
        """The relative duality gap; 1 before the first point."""
        return (self.primal - self.dual) / max(self.primal, 1e-300) if np.isfinite(self.primal) else 1.0

    def note(self, primal: float, W: Floats, dual: float, alphas: Floats) -> None:
        """Keep what is better; NaN is not."""
        if primal < self.primal:
            self.primal, self.W = primal, W
        if dual > self.dual:
            self.dual, self.alphas = dual, alphas
