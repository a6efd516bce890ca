"""Solves a structured problem: dual ascent over documents, then Newton steps on a smoothed objective where weights are few.

Dual ascent visits one document after the other until the duality gap is small. It stalls on few dense features. There the
maximum over outputs is smoothed, μ ln Σ_a exp(z_a / μ), which is above it by at most μ ln(number of outputs), and Newton's
method minimizes the smooth objective for smaller and smaller μ. The softmax of z / μ is feasible in the dual: a bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp, softmax
from threadpoolctl import threadpool_limits

from ramify.learners.linear.problem import Certificate, Settings
from ramify.learners.structured.problem import Floats, Problem
from ramify.native import compute_structured_losses_in_place, update_structured_duals_in_place
from ramify.parallel import stage

FEWEST, MOST = 3, 10  # inner passes over the active documents of a round: one more in every round
STEPS = 10  # between the outputs of one document, at most
QUIET = 0.1  # of the mean violation: documents with less are inactive until the next round
CLOSEST = 0.01  # of the tolerance: outputs of a document that violate less need no step
PATIENCE = 20  # rounds of dual ascent after which Newton steps are tried
LAST = 200  # rounds of dual ascent where these do not reach the tolerance

MOST_WEIGHTS = 1024  # for which Newton steps are tried
MOST_WORK = 1 << 28  # documents × weights², of one Newton step
SHRINK = 0.3  # from one μ to the next
NEWTON_STEPS = 50  # for one μ, at most
CLOSE = 1e-2  # of μ: by how much outputs may be off when Newton's method ends
WORTH = 2  # times what μ may cost: a gap that μ explains
SMALLEST = 1e-12  # μ, beyond which there is nothing but rounding
SHORTEST = 1e-9  # of a Newton step


class SquaredNorm:
    """The regularizer ½ ‖W‖² of weights W (features × units); others derive from it.

    M: the matrix of a quadratic lower bound ½ tr(Wᵀ M W), here 1. inverse: M⁻¹; an empty matrix for the identity.
    """

    def __init__(self) -> None:
        self.inverse: Floats = np.zeros((0, 0))

    def penalty(self, W: Floats) -> float:
        """The regularizer."""
        return 0.5 * float(np.vdot(W, W))

    def quadratic(self, W: Floats) -> float:
        """½ tr(Wᵀ M W), which is no larger."""
        return self.penalty(W)

    def matrix(self, n_units: int) -> Floats:
        """M."""
        return np.eye(n_units)

    def improve_in_place(self, W: Floats) -> None:
        """Change M to one with a better bound for the dual variables that W belongs to, and W with it; here it is constant."""


@dataclass(slots=True)
class DualState:
    """The dual variables α of all documents, and the weights W (features × units) that belong to them.

    products: φ_a·φ_b of all outputs where M = 1; empty for others, whose outputs may be far more than their units.
    """

    problem: Problem
    regularizer: SquaredNorm
    alphas: Floats
    weights: Floats
    rng: np.random.Generator
    products: Floats

    @classmethod
    def start(cls, problem: Problem, regularizer: SquaredNorm, seed: int) -> Self:
        """Every document's cost on its own output, and all weights 0."""
        alphas = np.zeros(problem.alpha_offsets[-1])
        alphas[problem.alpha_offsets[:-1]] = problem.costs
        weights = np.zeros((problem.rows.n_features, problem.n_units))
        products = np.zeros((0, 0)) if regularizer.inverse.size else problem.outputs.products(problem.n_units)
        return cls(problem, regularizer, alphas, weights, np.random.default_rng(seed), products)

    def rescale(self, problem: Problem) -> Self:
        """A warm start for the same documents at another cost."""
        if len(problem) != len(self.problem):  # some cost so little that at the lower cost it was nothing
            return replace(self.start(problem, self.regularizer, 0), rng=self.rng)
        factor = float((problem.costs / self.problem.costs).mean()) if len(problem) else 1.0
        return replace(self, problem=problem, alphas=factor * self.alphas, weights=factor * self.weights)

    def run_round(self, closest: float, n_passes: int = MOST) -> None:
        """Visit all documents once, then the active ones a few times more; then improve M."""
        problem, active = self.problem, np.flatnonzero(self.problem.costs > 0)
        for _ in range(n_passes):
            if not len(active):
                break
            order = self.rng.permutation(active)
            violations = np.empty(len(order))  # the largest of each document before its steps
            update_structured_duals_in_place(
                problem.to_native(), self.products, self.regularizer.inverse, order, STEPS, closest,
                problem.alpha_offsets, self.alphas, self.weights, violations,
            )  # fmt: skip
            mean = float((violations * problem.costs[order]).sum() / problem.costs.sum())
            active = np.sort(order[violations > max(closest, QUIET * mean)])
        self.regularizer.improve_in_place(self.weights)

    def certify(self, rounds: int) -> Certificate:
        """The objective of the weights, and the lower bound."""
        losses, _ = measure(self.problem, self.weights)
        primal = self.regularizer.penalty(self.weights) + float(losses @ self.problem.costs)
        return Certificate(primal, float(self.alphas @ self.problem.margins) - self.regularizer.quadratic(self.weights), rounds)


def measure(problem: Problem, weights: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """The loss of every document, and the place of its worst output among the outputs of its label."""
    losses, worst = np.empty(len(problem)), np.empty(len(problem), dtype=np.int32)
    compute_structured_losses_in_place(problem.to_native(), weights, losses, worst)
    return losses, worst


def solve(state: DualState, settings: Settings) -> tuple[Floats, Certificate]:
    """Dual ascent; where it stalls and weights are few, Newton steps on the smoothed objective; if these stall, more ascent."""
    n_weights = state.weights.size
    if n_weights > MOST_WEIGHTS or len(state.problem) * n_weights**2 > MOST_WORK:
        return state.weights, solve_dual(state, settings)
    certificate = solve_dual(state, replace(settings, max_iter=min(PATIENCE, settings.max_iter)))
    if certificate.gap <= settings.tolerance or settings.max_iter <= PATIENCE:
        return state.weights, certificate
    before = replace(state, regularizer=copy(state.regularizer), alphas=state.alphas.copy(), weights=state.weights.copy())
    W, closer = solve_smoothed(state, replace(settings, max_iter=settings.max_iter - PATIENCE))
    done = PATIENCE + closer.rounds
    if closer.gap > settings.tolerance and done < settings.max_iter:
        last = solve_dual(before, replace(settings, max_iter=min(LAST, settings.max_iter - done)))
        done += last.rounds
        W, closer = (before.weights, last) if last.gap < closer.gap else (W, closer)
    return W, replace(closer, rounds=done)


def solve_dual(state: DualState, settings: Settings) -> Certificate:
    """Rounds of dual ascent until the relative gap is within the tolerance, or for max_iter rounds."""
    with stage("dual ascent", settings.max_iter) as step:
        for done in range(1, settings.max_iter + 1):
            state.run_round(CLOSEST * settings.tolerance, min(MOST, FEWEST - 1 + done))
            certificate = state.certify(done)
            step.advance()
            if certificate.gap <= settings.tolerance:
                break
    return certificate


# ---- Newton's method on the smoothed objective ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Group:
    """The documents of one label: their places, X (documents × features), costs, and what competes for them.

    margins: one per output. Z: outputs × units, φ of the output minus that of the own one.
    """

    where: slice
    X: Floats
    costs: Floats
    margins: Floats
    Z: Floats

    def violations(self, W: Floats) -> Floats:
        """By how much each output violates its margin (documents × outputs)."""
        return np.asarray(self.margins + self.X @ W @ self.Z.T)


def groups_of(problem: Problem) -> Iterator[Group]:
    """The documents by label; those of a label are adjacent."""
    outputs = problem.outputs
    X = problem.rows.matrix().toarray().astype(np.float64)
    phi = outputs.vectors(problem.n_units).toarray()
    begins = np.flatnonzero(np.diff(problem.labels, prepend=-1))
    for first, last in zip(begins, [*begins[1:], len(problem)], strict=True):
        label = problem.labels[first]
        listed = slice(outputs.offsets[label], outputs.offsets[label + 1])
        Z = phi[outputs.outputs[listed]]
        yield Group(slice(first, last), X[first:last], problem.costs[first:last], outputs.margins[listed], Z - Z[0])


def solve_smoothed(state: DualState, settings: Settings) -> tuple[Floats, Certificate]:
    """Smooth less and less, until the relative gap is within the tolerance.

    Gives the best weights met and the best bound; the state is left with the last dual variables and their weights.
    """
    groups, W = list(groups_of(state.problem)), state.weights.copy()
    best, certificate = W, state.certify(0)
    mu = max(1.0, max((float(np.ptp(group.violations(W))) for group in groups), default=1.0))
    cost = float(state.problem.costs.sum()) * max(np.log(len(group.margins)) for group in groups)
    with stage("smoothed margins", settings.max_iter) as step, threadpool_limits(1, "blas"):
        for done in range(1, settings.max_iter + 1):
            W = _minimize(state, groups, W, mu)
            dual = _set_dual(state, groups, W, mu)
            primal = state.regularizer.penalty(W) + sum(float(g.costs @ g.violations(W).max(axis=1)) for g in groups)
            last, best = certificate, W if primal < certificate.primal else best
            certificate = Certificate(min(primal, last.primal), max(dual, last.dual), done)
            step.advance()
            if certificate.gap <= settings.tolerance or mu <= SMALLEST:
                break
            # a gap that μ does not explain is the regularizer's, whose M has to converge, unless only rounding is left
            if primal - dual <= WORTH * mu * cost or certificate.gap >= last.gap:
                mu *= SHRINK
    return best, certificate


def _minimize(state: DualState, groups: list[Group], W: Floats, mu: float) -> Floats:
    """Newton's method with a line search on the smooth objective."""
    M = state.regularizer.matrix(W.shape[1])
    allowed = CLOSE * mu / float(np.sqrt(state.problem.rows.squared_norms.max()))
    value = _value(state, groups, W, mu)
    for _ in range(NEWTON_STEPS):
        gradient, hessian = _derivatives(W, groups, M, mu)
        if float(np.linalg.norm(np.linalg.solve(M, gradient.T))) <= allowed:  # distance to the weights of the dual variables
            break
        try:
            step = cho_solve(cho_factor(hessian), gradient.ravel()).reshape(gradient.shape)
        except np.linalg.LinAlgError:  # features so large that rounding hides the regularizer's part of the Hessian
            break
        length, decrement = 1.0, float(np.vdot(step, gradient))
        while length > SHORTEST and not _value(state, groups, W - length * step, mu) <= value - 0.25 * length * decrement:
            length /= 2
        if length <= SHORTEST:
            break
        W = W - length * step
        value = _value(state, groups, W, mu)
    return W


def _value(state: DualState, groups: list[Group], W: Floats, mu: float) -> float:
    losses = (float(g.costs @ (mu * logsumexp(g.violations(W) / mu, axis=1))) for g in groups)
    return state.regularizer.quadratic(W) + sum(losses)


def _derivatives(W: Floats, groups: list[Group], M: Floats, mu: float) -> tuple[Floats, NDArray[np.float64]]:
    """Gradient (features × units) and Hessian (weights × weights) of the smooth objective."""
    n_features, n_units = W.shape
    gradient, hessian = W @ M, np.einsum("fg,uv->fugv", np.eye(n_features), M)
    for group in groups:
        P = softmax(group.violations(W) / mu, axis=1)
        means = P @ group.Z
        gradient += group.X.T @ (group.costs[:, None] * means)
        covariance = np.einsum("ia,au,av->iuv", P, group.Z, group.Z, optimize=True) - means[:, :, None] * means[:, None, :]
        covariance *= (group.costs / mu)[:, None, None]
        hessian += np.einsum("if,ig,iuv->fugv", group.X, group.X, covariance, optimize=True)
    return gradient, hessian.reshape(n_features * n_units, -1)


def _set_dual(state: DualState, groups: list[Group], W: Floats, mu: float) -> float:
    """Dual variables by the softmax, the weights that belong to them, and their bound."""
    G = np.zeros_like(W)
    for group in groups:
        alphas = group.costs[:, None] * softmax(group.violations(W) / mu, axis=1)
        begin, end = state.problem.alpha_offsets[[group.where.start, group.where.stop]]
        state.alphas[begin:end] = alphas.ravel()
        G -= group.X.T @ (alphas @ group.Z)
    state.weights[:] = np.linalg.solve(state.regularizer.matrix(W.shape[1]), G.T).T
    state.regularizer.improve_in_place(state.weights)
    return float(state.alphas @ state.problem.margins) - state.regularizer.quadratic(state.weights)
