"""Variational inference: coordinate ascent on a lower bound of the log evidence, over ξ and β, q(α), Ψ, and the means μ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.special import digamma, gammaln
from threadpoolctl import threadpool_limits

from ramify.learners.bayesian.problem import Floats, Problem, run_parts
from ramify.native import minimize_softmax_bound_in_place
from ramify.parallel import Executor, check_deadline, row_blocks, stage

BLOCK = 1 << 18  # bytes of scores that a thread takes at once
LOG_2_PI = float(np.log(2 * np.pi))
ALTERNATIONS = 10  # of α and Ψ in a round, with ξ held
CONVERGED = 1e-4  # relative change of α
ENOUGH = 0.1  # of the growth that ends the rounds: the gain that a step of the means must predict
STEPS = 2  # of the means in one round
PRODUCTS = 100  # in one step
CLOSE = 0.3  # of the gradient that may remain after a step
LEAST = 1e-4  # of the gain that the gradient predicts
HALVINGS = 40
TINY = 1e-300


class Softmax(NamedTuple):
    """betas, bounds: by document. By document and class: slopes and curvatures, the bound's derivatives by the score less β
    (slopes of a document add up to 1), and twice_lambda, 2 λ(ξ)."""

    betas: Floats
    bounds: Floats
    slopes: Floats
    twice_lambda: Floats
    curvatures: Floats


def bound_softmax(scores: Floats, variances: Floats, betas: Floats, executor: Executor) -> Softmax:
    """The tightest bound for scores with variances (documents × classes), starting from some β.

    ξ² = (z − β)² + v at the best ξ; the rest is convex in β, and Newton's method finds where the slopes sum to 1.
    """
    found = Softmax(betas.copy(), np.empty(len(betas)), *(np.empty(scores.shape) for _ in range(3)))

    def work(part: slice) -> None:
        minimize_softmax_bound_in_place(scores[part], variances[part], *(table[part] for table in found))

    run_parts(executor, work, row_blocks(len(scores), 8 * scores.shape[1], BLOCK))
    return found


# ---- covariances ----------------------------------------------------------------------------------------------------
# The covariances Ψ_k of the weights of classes, given λ and α:   Ψ_k⁻¹ = A_k = E α_k + Σ_i 2 s_i λ_ik x_i x_iᵀ.
#
# A diagonal Ψ_k has 1 / diag A_k, which is the best that a diagonal can be. Tables are classes × features × features, or
# classes × features where they are diagonal.


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


def invert(A: Floats) -> tuple[Floats, float]:
    """The inverse of a positive definite matrix, and the logarithm of the inverse's determinant."""
    factor, _ = lapack.dpotrf(A, lower=1, clean=1)
    inverse, _ = lapack.dpotri(factor, lower=1)
    lower = np.tril(inverse, -1)
    return lower + lower.T + np.diag(np.diag(inverse)), -2 * float(np.log(np.diag(factor)).sum())


# ---- the posterior --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Posterior:
    """The variational posterior q(W) q(α), and the β and ξ of the bound.

    means: μ, units × features. variances: diag Ψ of all units. log_dets: ln |Ψ| of all units. tables: Ψ of the classes.
    shapes, rates: â and b̂ of q(α), groups × features or groups × 1.
    scores, score_variances: μ_k·x_i and x_i'Ψ_k x_i, documents × classes. softmax: the bound on it, at the best β and ξ.
    """

    problem: Problem
    executor: Executor
    means: Floats
    variances: Floats
    log_dets: Floats
    tables: Floats
    shapes: Floats
    rates: Floats
    scores: Floats
    score_variances: Floats
    softmax: Softmax

    @classmethod
    def start(cls, problem: Problem, executor: Executor) -> Posterior:
        """Means of 0, and α, so also Ψ, as the prior has it."""
        (n_documents, n_features), classes = problem.documents.shape, problem.class_units
        width = n_features if problem.groups.per_feature else 1
        shapes, rates = (np.repeat(part, width, axis=1) for part in (problem.shape, problem.rate))
        variance = (problem.rate / problem.shape)[problem.groups.of_unit]
        variances, log_dets = np.repeat(variance, n_features, axis=1), n_features * np.log(variance[:, 0])
        scores = np.zeros((n_documents, len(classes)))
        score_variances = np.outer(problem.documents.squared_norms(), variance[classes, 0])
        softmax = bound_softmax(scores, score_variances, np.zeros(n_documents), executor)
        return cls(
            problem, executor, np.zeros(variances.shape), variances, log_dets, variances[classes], shapes, rates, scores,
            score_variances, softmax,
        )  # fmt: skip

    def precisions(self) -> Floats:
        """E α, units × features or units × 1."""
        return np.asarray((self.shapes / self.rates)[self.problem.groups.of_unit])

    # ---- updates, none of which lowers the bound ----------------------------------------------------------------------

    def update_covariances(self, alternations: int) -> None:
        """Ψ and q(α) in turn, which needs no pass over documents while ξ is fixed; then β and ξ."""
        data = self.problem.documents.second_moments(self.problem.weights[:, None] * self.softmax.twice_lambda)
        self._update_covariances(data)
        for _ in range(alternations):
            before = self.rates
            self._update_precisions()
            self._update_covariances(data)
            if np.allclose(self.rates, before, rtol=CONVERGED, atol=0):
                break
        self.score_variances = self.problem.documents.score_variances(self.tables)
        self.softmax = bound_softmax(self.scores, self.score_variances, self.softmax.betas, self.executor)

    def _update_covariances(self, data: Floats) -> None:
        classes, alpha = self.problem.class_units, self.precisions()
        self.variances[:] = 1 / (alpha + self.problem.add_below(alpha))
        self.log_dets = np.log(self.variances).sum(axis=1)
        self.tables, self.log_dets[classes] = covariances(alpha[classes], data)
        is_diagonal = self.tables.ndim == 2
        self.variances[classes] = self.tables if is_diagonal else self.tables.diagonal(axis1=1, axis2=2)

    def _update_precisions(self) -> None:
        groups, problem = self.problem.groups, self.problem
        self.shapes = np.broadcast_to(problem.shape + 0.5 * groups.governed(problem.n_features), self.rates.shape).copy()
        self.rates = problem.rate + 0.5 * groups.add_up(self.squares())

    def squares(self) -> Floats:
        """E (w_u − w_above)², units × features."""
        changes = self.means - self.problem.from_above(self.means)
        return np.asarray(changes**2 + self.variances + self.problem.from_above(self.variances))

    # ---- the bound ----------------------------------------------------------------------------------------------------

    def lower_bound(self) -> float:
        """The bound on ln p(labels | documents), all constants included."""
        (a, b), (a_q, b_q) = (self.problem.shape, self.problem.rate), (self.shapes, self.rates)
        log_alpha = digamma(a_q) - np.log(b_q)
        of_unit = log_alpha[self.problem.groups.of_unit]
        weights = 0.5 * float((of_unit - LOG_2_PI - self.precisions() * self.squares()).sum())  # E ln p(W | α)
        entropy = 0.5 * float(self.log_dets.sum() + self.means.size * (1 + LOG_2_PI))  # of q(W)
        prior = a * np.log(b) - gammaln(a) + (a - 1) * log_alpha - b * a_q / b_q  # E ln Gamma(α | a, b), and q(α)'s entropy
        precisions = float((prior + a_q - np.log(b_q) + gammaln(a_q) + (1 - a_q) * digamma(a_q)).sum())
        return self.likelihood() + weights + entropy + precisions

    def likelihood(self) -> float:
        """Σ_i s_i times the bound on E ln p(y_i | x_i, W)."""
        own = self.scores[np.arange(len(self.scores)), self.problem.labels]
        return float(self.problem.weights @ (own - self.softmax.bounds))


# ---- the means ------------------------------------------------------------------------------------------------------
# The means of all units at once: Newton's steps on the bound, with β and ξ at their optimum.
#
# With Ψ and α held, the bound is concave in the means. Its gradient and its curvature along a direction p, t_k = p_k·x_i, are
#
#     Σ_i s_i ([y_i = k] − slope_ik) x_i − ∇prior(μ),      Σ_i s_i (c_ik t_ik − c_ik Σ_l c_il t_il / Σ_l c_il) x_i + ∇prior(p)
#
# The second term with t is the response of β, so that classes change together as in a softmax; the prior ties levels. A step is
# solved by conjugate gradients and halved until the bound rises. They are preconditioned by a system that is block-diagonal
# but for the tree, which one sweep up and one down solve: the diagonal of the curvature, or, where Ψ is full, Ψ, which is at
# hand and has 2 λ for c.
#
# The paper solves class after class with λ for c, and level after level, by coordinate ascent on the same bound. Where
# documents are certain of their class, λ is many times c, and its steps are that much too short.


def update_means(q: Posterior, enough: float) -> None:
    """Newton steps, until the next one is predicted to raise the bound by no more than `enough`."""
    problem = q.problem
    for _ in range(STEPS):
        check_deadline()
        misses = -q.softmax.slopes
        misses[np.arange(len(misses)), problem.labels] += 1
        gradient = -problem.prior_gradient(q.precisions(), q.means)
        gradient[problem.class_units] += problem.documents.sum_by_class(problem.weights[:, None] * misses)
        direction = _direction(q, gradient, Elimination.of(problem, q.precisions(), _blocks(q)))
        predicted = float(np.vdot(gradient, direction))
        if not predicted > enough or not _step(q, direction, predicted):
            break


def _blocks(q: Posterior) -> Floats:
    """The preconditioner: inverses of the approximate curvature of every class."""
    if q.tables.ndim == 3:
        return q.tables
    problem, curvatures = q.problem, q.softmax.curvatures
    alone = curvatures * (1 - curvatures / np.maximum(curvatures.sum(axis=1, keepdims=True), TINY))
    data = problem.documents.second_moments(problem.weights[:, None] * alone)
    return covariances(q.precisions()[problem.class_units], data)[0]


def _curve(q: Posterior, direction: Floats) -> Floats:
    problem, curvatures = q.problem, q.softmax.curvatures
    T = problem.documents.score(direction[problem.class_units])
    T *= curvatures
    T -= curvatures * (T.sum(axis=1) / np.maximum(curvatures.sum(axis=1), TINY))[:, None]
    T *= problem.weights[:, None]
    curved = problem.prior_gradient(q.precisions(), direction)
    curved[problem.class_units] += problem.documents.sum_by_class(T)
    return curved


def _direction(q: Posterior, gradient: Floats, tree: Elimination) -> Floats:
    """The Newton direction by preconditioned conjugate gradients."""
    direction, left = np.zeros_like(gradient), gradient.copy()
    solved = tree.solve(left)
    way, size = solved.copy(), float(np.vdot(left, solved))
    least = CLOSE**2 * size
    for _ in range(PRODUCTS):
        check_deadline()
        if not size > least:
            break
        curved = _curve(q, way)
        curvature = float(np.vdot(way, curved))
        if not curvature > 0:
            break
        direction += size / curvature * way
        left -= size / curvature * curved
        solved = tree.solve(left)
        before, size = size, float(np.vdot(left, solved))
        way *= size / before
        way += solved
    return direction


def _step(q: Posterior, direction: Floats, predicted: float) -> bool:
    """Line search: halve the step until the bound rises; gives whether it did."""
    problem, alpha = q.problem, q.precisions()
    change = problem.documents.score(direction[problem.class_units])
    held, holds = (float(np.vdot(problem.prior_gradient(alpha, table), direction)) for table in (q.means, direction))
    before, length, scores, softmax = q.likelihood(), 1.0, q.scores, q.softmax
    for _ in range(HALVINGS):
        q.scores = scores + length * change
        q.softmax = bound_softmax(q.scores, q.score_variances, softmax.betas, q.executor)
        if q.likelihood() - before - length * held - 0.5 * length**2 * holds >= LEAST * length * predicted:
            q.means = q.means + length * direction
            return True
        length /= 2
    q.scores, q.softmax = scores, softmax
    return False


@dataclass(frozen=True, slots=True)
class Elimination:
    """The factors of a system that is block-diagonal but for the tree: of every unit H⁻¹, once all below it are eliminated.

    inverses: vectors where blocks are diagonal, else matrices.
    """

    parent: list[int]
    alpha: Floats
    inverses: list[Floats]

    @classmethod
    def of(cls, problem: Problem, alpha: Floats, tables: Floats) -> Elimination:
        """tables: H⁻¹ of the classes, the prior's α in it."""
        parent, class_of = problem.forest.parent.tolist(), problem.forest.class_of.tolist()
        wide = np.broadcast_to(alpha, (len(parent), problem.n_features))
        inverses: list[Floats] = [np.zeros(0)] * len(parent)
        below: list[Floats] = [np.zeros(tables.shape[1:])] * len(parent)
        for unit in reversed(range(len(parent))):  # parents come first, so a backward sweep sees children first
            H, alpha_u = below[unit], wide[unit]
            if class_of[unit] >= 0:
                inverse = tables[class_of[unit]]
            else:
                inverse = 1 / (alpha_u + H) if H.ndim == 1 else invert(H + np.diag(alpha_u))[0]
            inverses[unit], below[unit] = inverse, np.zeros(0)
            if parent[unit] >= 0:  # the Schur complement, α − α H⁻¹ α
                if inverse.ndim == 1:
                    complement = np.maximum(alpha_u - alpha_u**2 * inverse, 0.0)
                else:
                    complement = np.diag(alpha_u) - alpha_u[:, None] * inverse * alpha_u
                below[parent[unit]] = below[parent[unit]] + complement
        return cls(parent, wide, inverses)

    def solve(self, right: Floats) -> Floats:
        """Forward elimination up the tree, then back substitution down."""
        found = right.copy()
        for unit in reversed(range(len(self.parent))):
            if self.parent[unit] >= 0:
                found[self.parent[unit]] += self.alpha[unit] * self._apply(unit, found[unit])
        for unit, above in enumerate(self.parent):
            if above >= 0:
                found[unit] += self.alpha[unit] * found[above]
            found[unit] = self._apply(unit, found[unit])
        return found

    def _apply(self, unit: int, vector: Floats) -> Floats:
        inverse = self.inverses[unit]
        return inverse * vector if inverse.ndim == 1 else inverse @ vector


# ---- coordinate ascent ----------------------------------------------------------------------------------------------


def fit_posterior(
    problem: Problem, executor: Executor, tolerance: float, max_iter: int
) -> tuple[Posterior, list[float], float]:
    """Coordinate ascent until the bound grows by no more than `tolerance`, relatively, in a round, or for max_iter rounds.

    Gives the posterior, the bound after every round, and its relative growth in the last.
    """
    q = Posterior.start(problem, executor)
    found = list[float]()
    with stage("evidence", max_iter) as step, threadpool_limits(1, "blas"):  # the executor has the threads
        q.update_covariances(0)  # α depends on the means, which are still 0
        before = q.lower_bound()
        for _ in range(max_iter):
            update_means(q, ENOUGH * tolerance * abs(before))
            q.update_covariances(ALTERNATIONS)
            found.append(q.lower_bound())
            step.advance()
            growth = (found[-1] - before) / abs(found[-1])
            if growth <= tolerance:
                break
            before = found[-1]
    return q, found, growth
