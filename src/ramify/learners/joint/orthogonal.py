"""Branches that are drawn to be orthogonal to those above them, and two ways to learn them.

    Ω(W) = ½ Σ_uv K_uv |w_u·w_v|,    K_uu = 1,    K_uv = coupling / √(r_u r_v) where u is above v or below it, else 0

r_u is how many branches are above or below u. Ω is convex if K with the signs off its diagonal turned has no negative
eigenvalue; its least one is 1 − coupling or more, so any coupling below 1 serves. |t| is the largest s t with −1 ≤ s ≤ 1, so

    min over W of Ω(W) + losses  =  max over S of min over W of ½ tr(Wᵀ (K∘S) W) + losses,    S_uu = 1, −1 ≤ S_uv ≤ 1

and with the dual of the losses a maximum over α and S together of a concave function: whatever α and S are, it is a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from ramify.learners.joint.branches import Branches
from ramify.learners.joint.problem import Floats

TURNS = 20  # of the signs between two rounds, at most


@dataclass(frozen=True, slots=True)
class Couplings:
    """K by its pairs: the branches above and below, and how strongly each pair is coupled."""

    n_units: int
    coupling: float
    upper: NDArray[np.int64]
    lower: NDArray[np.int64]
    strengths: Floats

    @classmethod
    def of(cls, branches: Branches, coupling: float) -> Couplings:
        """Couple every branch with those above it."""
        upper, lower = branches.above()
        related = np.bincount(np.concatenate([upper, lower]), minlength=len(branches))
        strengths = coupling / np.sqrt(related[upper] * related[lower])
        return cls(len(branches), coupling, upper, lower, strengths)

    def metric(self, signs: Floats) -> Floats:
        """K∘S, from the signs of the pairs."""
        M = np.eye(self.n_units)
        M[self.upper, self.lower] = M[self.lower, self.upper] = self.strengths * signs
        return M

    def products(self, W: Floats) -> Floats:
        """w_u·w_v of every pair (W: features × units)."""
        return np.asarray((W.T @ W)[self.upper, self.lower])

    def penalty(self, W: Floats) -> float:
        """Ω(W)."""
        return 0.5 * float(np.vdot(W, W)) + float(self.strengths @ np.abs(self.products(W)))

    def better_signs(self, Q: Floats, signs: Floats) -> Floats:
        """Signs with less ½ tr((K∘S)⁻¹ Q) than some, or the same where these are the best."""
        if not len(signs):
            return signs

        def height(signs: Floats) -> tuple[float, Floats]:
            factor = cho_factor(self.metric(signs))
            solved = cho_solve(factor, Q)
            slope = cho_solve(factor, solved.T)  # M⁻¹ Q M⁻¹
            return 0.5 * float(np.trace(solved)), -self.strengths * slope[self.upper, self.lower]

        top = max(float(np.trace(Q)), np.finfo(np.float64).tiny)
        bounds, limits = [(-1.0, 1.0)] * len(signs), {"maxiter": TURNS, "ftol": 0.0, "gtol": 1e-12 * top}
        return np.asarray(minimize(height, signs, jac=True, method="L-BFGS-B", bounds=bounds, options=limits).x)


@dataclass(slots=True)
class Orthogonal:
    """Ω as a metric: K∘S with signs that follow the shares."""

    couplings: Couplings
    signs: Floats
    M: Floats
    inverse: Floats

    @classmethod
    def start(cls, couplings: Couplings) -> Orthogonal:
        """No pair has a sign yet."""
        M = np.eye(couplings.n_units)
        return cls(couplings, np.zeros(len(couplings.strengths)), M, M.copy())

    def penalty(self, W: Floats) -> float:
        """Ω(W)."""
        return self.couplings.penalty(W)

    def form(self, W: Floats) -> float:
        """½ tr(Wᵀ (K∘S) W)."""
        return 0.5 * float(((W.T @ W) * self.M).sum())

    def matrix(self, n_units: int) -> Floats:
        """K∘S."""
        return self.M

    def turn_in_place(self, W: Floats) -> None:
        """Better signs for the shares that W belongs to; with the best ones Ω(W) is just ½ tr(Wᵀ (K∘S) W)."""
        if not len(self.signs):
            return
        with threadpool_limits(1, "blas"):  # many small products: threads would wait for one another longer than they work
            G = W @ self.M
            self.signs = self.couplings.better_signs(G.T @ G, self.signs)
            self.M = self.couplings.metric(self.signs)
            self.inverse = np.asarray(np.linalg.inv(self.M), dtype=np.float64)
            W[:] = G @ self.inverse
