"""What stands for the posterior: q(W), q(α), and the β and ξ at which the bound on the softmax is best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln

from ramify.execution import Executor
from ramify.learners.bayesian.covariance import Floats, covariances, variances_of
from ramify.learners.bayesian.problem import Problem
from ramify.learners.bayesian.softmax import Softmax, settle

LOG_2_PI = float(np.log(2 * np.pi))
STILL = 1e-4  # a relative change of α that is none


@dataclass(slots=True)
class Approximation:
    """Where the ascent stands.

    means: μ, units × features. variances: diag Ψ of all units. log_dets: ln |Ψ| of all units. tables: Ψ of the classes.
    shapes, rates: â and b̂ of q(α), groups × features or groups × 1.
    scores, spreads: μ_k·x_i and x_i'Ψ_k x_i, documents × classes. softmax: the bound on it, at the best β and ξ.
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
    spreads: Floats
    softmax: Softmax

    @classmethod
    def start(cls, problem: Problem, executor: Executor) -> Approximation:
        """Means of 0, and α, so also Ψ, as the prior has it."""
        (n_documents, n_features), classes = problem.documents.shape, problem.class_units
        width = n_features if problem.groups.per_feature else 1
        shapes, rates = (np.repeat(part, width, axis=1) for part in (problem.shape, problem.rate))
        variance = (problem.rate / problem.shape)[problem.groups.of_unit]
        variances, log_dets = np.repeat(variance, n_features, axis=1), n_features * np.log(variance[:, 0])
        scores, spreads = (
            np.zeros((n_documents, len(classes))),
            np.outer(problem.documents.squared_norms(), variance[classes, 0]),
        )
        softmax = settle(scores, spreads, np.zeros(n_documents), executor)
        return cls(
            problem, executor, np.zeros(variances.shape), variances, log_dets, variances[classes], shapes, rates, scores,
            spreads, softmax,
        )  # fmt: skip

    def precisions(self) -> Floats:
        """E α, units × features or units × 1."""
        return np.asarray((self.shapes / self.rates)[self.problem.groups.of_unit])

    # ---- updates, none of which lowers the bound ----------------------------------------------------------------------

    def update_spreads(self, alternations: int) -> None:
        """Ψ and q(α) in turn, which needs no look at documents while ξ is held; then β and ξ."""
        data = self.problem.documents.measure(self.problem.weights[:, None] * self.softmax.twice_lambda)
        self._update_covariances(data)
        for _ in range(alternations):
            before = self.rates
            self._update_precisions()
            self._update_covariances(data)
            if np.allclose(self.rates, before, rtol=STILL, atol=0):
                break
        self.spreads = self.problem.documents.spread(self.tables)
        self.softmax = settle(self.scores, self.spreads, self.softmax.betas, self.executor)

    def _update_covariances(self, data: Floats) -> None:
        classes, alpha = self.problem.class_units, self.precisions()
        self.variances[:] = 1 / (alpha + self.problem.add_below(alpha))
        self.log_dets = np.log(self.variances).sum(axis=1)
        self.tables, self.log_dets[classes] = covariances(alpha[classes], data)
        self.variances[classes] = variances_of(self.tables)

    def _update_precisions(self) -> None:
        groups, problem = self.problem.groups, self.problem
        self.shapes = np.broadcast_to(problem.shape + 0.5 * groups.governed(problem.n_features), self.rates.shape).copy()
        self.rates = problem.rate + 0.5 * groups.add_up(self.squares())

    def squares(self) -> Floats:
        """E (w_u − w_above)², units × features."""
        changes = self.means - self.problem.from_above(self.means)
        return np.asarray(changes**2 + self.variances + self.problem.from_above(self.variances))

    # ---- the bound ----------------------------------------------------------------------------------------------------

    def evidence(self) -> float:
        """The bound on ln p(labels | documents), all constants included."""
        return self.likelihood() + self._weights_under_prior() + self._entropy_of_weights() + self._precisions_under_prior()

    def likelihood(self) -> float:
        """Σ_i s_i times the bound on E ln p(y_i | x_i, W)."""
        own = self.scores[np.arange(len(self.scores)), self.problem.labels]
        return float(self.problem.weights @ (own - self.softmax.bounds))

    def _weights_under_prior(self) -> float:
        log_alpha = (digamma(self.shapes) - np.log(self.rates))[self.problem.groups.of_unit]
        return 0.5 * float((log_alpha - LOG_2_PI - self.precisions() * self.squares()).sum())

    def _entropy_of_weights(self) -> float:
        return 0.5 * float(self.log_dets.sum() + self.means.size * (1 + LOG_2_PI))

    def _precisions_under_prior(self) -> float:
        """E ln Gamma(α | a, b), and the entropy of q(α)."""
        (a, b), (a_q, b_q) = (self.problem.shape, self.problem.rate), (self.shapes, self.rates)
        log_alpha = digamma(a_q) - np.log(b_q)
        prior = a * np.log(b) - gammaln(a) + (a - 1) * log_alpha - b * a_q / b_q
        return float((prior + a_q - np.log(b_q) + gammaln(a_q) + (1 - a_q) * digamma(a_q)).sum())
