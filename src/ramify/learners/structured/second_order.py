"""Second-order steps where weights are few: ascent stalls on few dense features, Newton's method does not.

The maximum over answers is smoothed, μ ln Σ_a exp(z_a / μ), which is above it by at most μ ln(number of answers). Newton's
method minimizes the smooth objective for one μ after the other, each a fraction of the last, until the duality gap is small
enough: the softmax of z / μ shares out the cost of every document, so a bound is known for every μ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp, softmax
from threadpoolctl import threadpool_limits

from ramify.learners.linear.problem import Certificate, Settings
from ramify.learners.structured.dual_ascent import Ascent, ascend
from ramify.learners.structured.problem import Floats, Problem
from ramify.parallel import stage

MOST_WEIGHTS = 1024
MOST_WORK = 1 << 28  # documents × weights², of one step
SHRINK = 0.3  # from one μ to the next
STEPS = 50  # of Newton's method for one μ, at most
CLOSE = 1e-2  # of μ: by how much heights may be off when Newton's method ends
WORTH = 2  # times what μ may cost: a gap that μ explains
SMALLEST = 1e-12  # μ, beyond which there is nothing but rounding
SHORTEST = 1e-9  # of a step of Newton's method


def suits_smoothing(problem: Problem) -> bool:
    """Whether weights are so few that second-order steps are cheap."""
    n_weights = problem.rows.n_features * problem.n_units
    return n_weights <= MOST_WEIGHTS and len(problem) * n_weights**2 <= MOST_WORK


@dataclass(frozen=True, slots=True)
class Group:
    """The documents of one label: where they stand, X (documents × features), costs, and what competes for them.

    margins: one an answer. Z: answers × units, φ of the answer minus that of one's own.
    """

    where: slice
    X: Floats
    costs: Floats
    margins: Floats
    Z: Floats

    def heights(self, W: Floats) -> Floats:
        """By how much each answer is ahead of one's own (documents × answers)."""
        return np.asarray(self.margins + self.X @ W @ self.Z.T)


def groups_of(problem: Problem) -> Iterator[Group]:
    """The documents label by label; those of a label stand side by side."""
    rows, answers = problem.rows, problem.answers
    X = rows.matrix().toarray().astype(np.float64)
    phi = answers.vectors(problem.n_units).toarray()
    begins = np.flatnonzero(np.diff(problem.labels, prepend=-1))
    for first, last in zip(begins, [*begins[1:], len(problem)], strict=True):
        label = problem.labels[first]
        listed = slice(answers.offsets[label], answers.offsets[label + 1])
        Z = phi[answers.answers[listed]]
        yield Group(slice(first, last), X[first:last], problem.costs[first:last], answers.margins[listed], Z - Z[0])


def descend(found: Ascent, settings: Settings) -> tuple[Floats, Certificate]:
    """Bring an ascent to its end, smoothing less and less, until the relative gap is within the tolerance.

    Gives the best weights met, and the best bound beside them; the ascent is left with the last shares and their weights.
    """
    groups, W = list(groups_of(found.problem)), found.weights.copy()
    best, certificate = W, found.certify(0)
    mu = max(1.0, max((float(np.ptp(group.heights(W))) for group in groups), default=1.0))
    cost = float(found.problem.costs.sum()) * max(np.log(len(group.margins)) for group in groups)
    with stage("smoothed margins", settings.max_iter) as step, threadpool_limits(1, "blas"):
        for done in range(1, settings.max_iter + 1):
            W = _minimize(found, groups, W, mu)
            dual = _share_out(found, groups, W, mu)
            primal = found.metric.penalty(W) + sum(float(g.costs @ g.heights(W).max(axis=1)) for g in groups)
            last, best = certificate, W if primal < certificate.primal else best
            certificate = Certificate(min(primal, last.primal), max(dual, last.dual), done)
            step.advance()
            if certificate.gap <= settings.tolerance or mu <= SMALLEST:
                break
            # a gap that μ does not explain is the metric's, which has to settle, unless rounding is all that is left
            if primal - dual <= WORTH * mu * cost or certificate.gap >= last.gap:
                mu *= SHRINK
    return best, certificate


def _minimize(found: Ascent, groups: list[Group], W: Floats, mu: float) -> Floats:
    """Newton's method on the smooth objective."""
    M, allowed = found.metric.matrix(W.shape[1]), CLOSE * mu / float(np.sqrt(found.problem.rows.squared_norms.max()))
    value = _value(found, groups, W, mu)
    for _ in range(STEPS):
        slope, curvature = _derivatives(W, groups, M, mu)
        if float(np.linalg.norm(np.linalg.solve(M, slope.T))) <= allowed:  # how far the weights of the shares lie away
            break
        try:
            step = cho_solve(cho_factor(curvature), slope.ravel()).reshape(slope.shape)
        except np.linalg.LinAlgError:  # features so large that rounding hides the regularizer's part of the curvature
            break
        length = _length(found, groups, W, step, slope, mu, value)
        if not length:
            break
        W = W - length * step
        value = _value(found, groups, W, mu)
    return W


def _length(found: Ascent, groups: list[Group], W: Floats, step: Floats, slope: Floats, mu: float, value: float) -> float:
    """How far to go: halved until the objective falls as it should; 0 where it does not."""
    length, decrement = 1.0, float(np.vdot(step, slope))
    while length > SHORTEST:
        if _value(found, groups, W - length * step, mu) <= value - 0.25 * length * decrement:
            return length
        length /= 2
    return 0.0


def _value(found: Ascent, groups: list[Group], W: Floats, mu: float) -> float:
    return found.metric.form(W) + sum(float(g.costs @ (mu * logsumexp(g.heights(W) / mu, axis=1))) for g in groups)


def _derivatives(W: Floats, groups: list[Group], M: Floats, mu: float) -> tuple[Floats, NDArray[np.float64]]:
    """Slope (features × units) and curvature (weights × weights) of the smooth objective."""
    n_features, n_units = W.shape
    slope, curvature = W @ M, np.einsum("fg,uv->fugv", np.eye(n_features), M)
    for group in groups:
        P = softmax(group.heights(W) / mu, axis=1)
        means = P @ group.Z
        slope += group.X.T @ (group.costs[:, None] * means)
        spread = np.einsum("ia,au,av->iuv", P, group.Z, group.Z, optimize=True) - means[:, :, None] * means[:, None, :]
        spread *= (group.costs / mu)[:, None, None]
        curvature += np.einsum("if,ig,iuv->fugv", group.X, group.X, spread, optimize=True)
    return slope, curvature.reshape(n_features * n_units, -1)


def _share_out(found: Ascent, groups: list[Group], W: Floats, mu: float) -> float:
    """Shares by the softmax, the weights that belong to them, and the bound that they give."""
    G = np.zeros_like(W)
    for group in groups:
        shares = group.costs[:, None] * softmax(group.heights(W) / mu, axis=1)
        begin, end = found.problem.alpha_offsets[[group.where.start, group.where.stop]]
        found.alphas[begin:end] = shares.ravel()
        G -= group.X.T @ (shares @ group.Z)
    found.weights[:] = np.linalg.solve(found.metric.matrix(W.shape[1]), G.T).T
    found.metric.turn_in_place(found.weights)
    return float(found.alphas @ found.problem.margins) - found.metric.form(found.weights)


# --------------------------------------------------------------------------------------------------------------
# Ascent first; where it stalls and weights are few, second-order steps go on from there.


PATIENCE = 20  # rounds of ascent after which second-order steps are tried


def settle(found: Ascent, settings: Settings) -> tuple[Floats, Certificate]:
    """Bring an ascent to its end: the weights, and what is certain of them."""
    if not suits_smoothing(found.problem):
        return found.weights, ascend(found, settings)
    certificate = ascend(found, replace(settings, max_iter=min(PATIENCE, settings.max_iter)))
    if certificate.gap <= settings.tolerance or settings.max_iter <= PATIENCE:
        return found.weights, certificate
    W, closer = descend(found, replace(settings, max_iter=settings.max_iter - PATIENCE))
    return W, replace(closer, rounds=PATIENCE + closer.rounds)
