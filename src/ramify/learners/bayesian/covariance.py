"""The covariances Ψ_k of the weights of classes, given λ and α:   Ψ_k⁻¹ = A_k = E α_k + Σ_i 2 s_i λ_ik x_i x_iᵀ.

A diagonal Ψ_k has 1 / diag A_k, which is the best that a diagonal can be. Tables are classes × features × features, or
classes × features where they are diagonal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Floats = NDArray[np.float64]


def covariances(alpha: Floats, data: Floats) -> tuple[Floats, Floats]:
    """Ψ and ln |Ψ| of every class; alpha: E α, classes × features or × 1; data: the sums over documents, as a table."""
    if data.ndim == 2:
        variances = 1 / (alpha + data)
        return variances, np.log(variances).sum(axis=1)
    tables, log_dets = data.copy(), np.empty(len(data))
    every = np.arange(data.shape[1])
    tables[:, every, every] += alpha
    for k in range(len(tables)):
        tables[k], log_dets[k] = invert(tables[k])
    return tables, log_dets


def variances_of(tables: Floats) -> Floats:
    """diag Ψ, classes × features."""
    return tables if tables.ndim == 2 else np.ascontiguousarray(tables.diagonal(axis1=1, axis2=2))


def invert(A: Floats) -> tuple[Floats, float]:
    """The inverse of a positive definite matrix, and the logarithm of the inverse's determinant."""
    factor, _ = lapack.dpotrf(A, lower=1, clean=1)
    inverse, _ = lapack.dpotri(factor, lower=1)
    lower = np.tril(inverse, -1)
    return lower + lower.T + np.diag(np.diag(inverse)), -2 * float(np.log(np.diag(factor)).sum())
