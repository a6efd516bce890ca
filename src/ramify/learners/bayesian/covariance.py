"""The covariances Ψ_k of the weights of classes, given λ and α:   Ψ_k⁻¹ = A_k = E α_k + Σ_i 2 s_i λ_ik x_i x_iᵀ.

A diagonal Ψ_k has 1 / diag A_k, which is the best that a diagonal can be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ramify.execution import Executor

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Covariances:
    """Ψ of every class: classes × features × features, or classes × features if diagonal; ln |Ψ|, and x_i'Ψ_k x_i."""

    tables: Floats
    log_dets: Floats
    spreads: Floats

    @property
    def variances(self) -> Floats:
        """diag Ψ, classes × features."""
        return self.tables if self.tables.ndim == 2 else np.ascontiguousarray(self.tables.diagonal(axis1=1, axis2=2))


def full_covariances(X: Floats, alpha: Floats, counts: Floats, executor: Executor) -> Covariances:
    """Ψ_k for a table of documents; counts: 2 s_i λ_ik, documents × classes; alpha: E α, classes × features or × 1."""
    (n_documents, n_features), n_classes = X.shape, counts.shape[1]
    tables, log_dets = np.empty((n_classes, n_features, n_features)), np.empty(n_classes)
    spreads = np.empty((n_documents, n_classes))

    def work(k: int) -> None:
        scaled = X * np.sqrt(counts[:, k, None])
        A = scaled.T @ scaled
        A[np.diag_indices(n_features)] += alpha[k]
        tables[k], log_dets[k] = invert(A)
        spreads[:, k] = np.einsum("ij,ij->i", X @ tables[k], X)

    for _ in executor.map(work, range(n_classes)):
        pass
    return Covariances(tables, log_dets, np.maximum(spreads, 0.0))


def invert(A: Floats) -> tuple[Floats, float]:
    """The inverse of a positive definite matrix, and the logarithm of the inverse's determinant."""
    factor, _ = lapack.dpotrf(A, lower=1, clean=1)
    inverse, _ = lapack.dpotri(factor, lower=1)
    lower = np.tril(inverse, -1)
    return lower + lower.T + np.diag(np.diag(inverse)), -2 * float(np.log(np.diag(factor)).sum())
