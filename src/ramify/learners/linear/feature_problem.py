"""One connected group of tied units as a problem in feature space, and the few products all its solvers are made of.

K classes, N documents, d features       Z, A: K × N, scores times signs and dual variables of all pairs
W: units × d                             U(A): units × d, Σ_i α_in y_in x_i in the rows of classes, else zero
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import SuperLU

from ramify.learners.linear.unit_blocks import ConjugateGradients, Factor, Floats, Order, eliminate

PAIRS_AT_ONCE = 1 << 19  # so that what is computed of them on the way stays small
ROWS_AT_ONCE = 4096  # documents whose scaled copy is squared at once
SMALL_GRAM = 1 << 21  # N d² below which no document is left out


@dataclass(frozen=True, slots=True)
class Problem:
    """Documents, signs and costs of some classes, the units they are, and how all units are tied."""

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

    def parts(self) -> Iterator[slice]:
        """Classes, as many at once as keep what is computed on the way small."""
        n_classes, n_documents = self.signs.shape
        step = max(1, PAIRS_AT_ONCE // max(n_documents, 1))
        return (slice(start, min(start + step, n_classes)) for start in range(0, n_classes, step))

    def costs_of(self, classes: slice | int) -> Floats:
        """What a unit of loss costs, for all documents of some classes, or of one."""
        positive, negative = self.positive[classes, ..., None], self.negative[classes, ..., None]
        costs: Floats = np.where(self.signs[classes] > 0, positive, negative) * self.weights
        return costs

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

    def factor(self, curvature: Callable[[int], Floats], neglect: float) -> Factor:
        """Of M ⊗ I + blockdiag(X' D_n X), D_n the curvature of class n; see `gram` for what is neglected."""
        blocks = np.zeros((self.shape[0], self.shape[1], self.shape[1]))
        blocks[:, range(self.shape[1]), range(self.shape[1])] = self.M.diagonal()[:, None]
        for k, unit in enumerate(self.class_units):
            add_gram_in_place(blocks[unit], self.X, curvature(k), neglect)
        return ConjugateGradients.of(self.M, blocks) if self.order is None else eliminate(self.M, self.order, blocks)


def add_gram_in_place(block: Floats, X: Floats, curvature: Floats, neglect: float) -> None:
    """Add Σ_i D_i x_i x_i' to a block, without documents of so small D_i that together they have ≤ neglect of all.

    Only the direction of a step depends on it, so what is left out costs a little of the step, and no exactness.
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
    """The lowest objective and the highest bound so far, with their weights and dual variables (classes × documents)."""

    W: Floats
    alphas: Floats
    primal: float = np.inf
    dual: float = 0.0
    iterations: int = 0

    @classmethod
    def nothing(cls, problem: Problem) -> Best:
        """Zeros, whose bound is 0 for every loss."""
        return cls(np.zeros(problem.shape), np.zeros(problem.signs.shape))

    @property
    def gap(self) -> float:
        """(primal − dual) / primal, 1 before there is anything."""
        return (self.primal - self.dual) / max(self.primal, 1e-300) if np.isfinite(self.primal) else 1.0

    def note(self, primal: float, W: Floats, dual: float, alphas: Floats) -> None:
        """Keep what is better; what is not a number is not."""
        if primal < self.primal:
            self.primal, self.W = primal, W
        if dual > self.dual:
            self.dual, self.alphas = dual, alphas
