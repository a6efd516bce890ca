"""The slow twin of hierarchical Bayesian logistic regression (Gopal, Yang, Bai & Niculescu-Mizil, NIPS 2012), in loops.

Units and classes are those of `path_sums`; the weights of a unit do not add up, they are drawn around those of the unit above.

    y_i ~ softmax over classes k of w_k·x_i          w_u ~ N(w_above(u), 1/α), around 0 for a top unit
    α ~ Gamma(shape a, rate b), one for each group of units: shared "node": every unit is a group,
    "siblings": units with the same unit above are a group (the top units: one); per_feature: a group has one α a feature

q(W) = product of N(μ_u, Ψ_u),   q(α) = product of Gamma(â, b̂).   ln of the softmax' denominator is bounded (Bouchard 2007):

    ln sum_k e^z_k <= β + sum_k (z_k - β - ξ_k)/2 + λ(ξ_k)((z_k - β)^2 - ξ_k^2) + ln(1 + e^ξ_k),    λ(ξ) = tanh(ξ/2) / 4ξ

Every update maximizes the evidence bound L over one kind of unknown with the rest held fixed:

    ξ_ik^2 = (μ_k·x_i - β_i)^2 + x_i'Ψ_k x_i
    β_i = (K/2 - 1 + 2 sum_k λ_ik μ_k·x_i) / (2 sum_k λ_ik)
    class k    Ψ_k^-1 = E α_k + 2 sum_i s_i λ_ik x_i x_i'  =: A_k;  a diagonal Ψ_k has 1/diag(A_k)
               A_k μ_k = E α_k μ_above + sum_i s_i ([y_i = k] - 1/2 + 2 λ_ik β_i) x_i
    inner u    Ψ_u^-1 = E α_u + sum over c below u of E α_c;   Ψ_u^-1 μ_u = E α_u μ_above + sum over c of E α_c μ_c
    group g    â = a + n/2,   b̂ = b + 1/2 sum of (μ_u - μ_above)^2 + diag Ψ_u + diag Ψ_above over the n numbers that g governs
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln


def lam(xi):
    """λ(ξ)."""
    return 1 / 8 if abs(xi) < 1e-6 else np.tanh(xi / 2) / (4 * xi)


@dataclass
class Problem:
    """`units` of `path_sums`, documents X, the node of every document's class, its weight, and the prior."""

    units: list
    X: np.ndarray
    ends: list
    weights: np.ndarray
    shared: str
    per_feature: bool
    covariance: str
    shape: float
    rate: float

    @property
    def n_features(self):
        return self.X.shape[1]

    @property
    def classes(self):
        """The numbers of the units that are classes."""
        return [u for u, unit in enumerate(self.units) if unit.is_class]

    def below(self, unit):
        return [u for u, other in enumerate(self.units) if other.above == unit]

    def group_of(self, unit):
        return unit if self.shared == "node" else self.units[unit].above

    @property
    def groups(self):
        """The units of every group."""
        found = {}
        for u in range(len(self.units)):
            found.setdefault(self.group_of(u), []).append(u)
        return found

    def governed(self):
        """How many numbers one α of a group governs for each unit of the group."""
        return 1 if self.per_feature else self.n_features


class Approximation:
    """q, and β and ξ; `start` is E α before the first round."""

    def __init__(self, problem, start=1.0):
        self.problem, d = problem, problem.n_features
        n_units = len(problem.units)
        self.mean = np.zeros((n_units, d))
        self.cov = [np.eye(d) / start for _ in range(n_units)]
        self.a = {g: start * np.ones(d) for g in problem.groups}
        self.b = {g: np.ones(d) for g in problem.groups}
        self.beta = np.zeros(len(problem.X))
        self.xi = np.ones((len(problem.X), len(problem.classes)))

    # ---- expectations -----------------------------------------------------------------------------------------------------

    def alpha(self, unit):
        """E α of a unit, one number a feature."""
        g = self.problem.group_of(unit)
        return self.a[g] / self.b[g]

    def mean_above(self, unit):
        above = self.problem.units[unit].above
        return np.zeros(self.problem.n_features) if above is None else self.mean[above]

    def squares(self, unit):
        """E (w_u - w_above)^2, one number a feature."""
        above = self.problem.units[unit].above
        spread = np.zeros(self.problem.n_features) if above is None else np.diag(self.cov[above])
        return (self.mean[unit] - self.mean_above(unit)) ** 2 + np.diag(self.cov[unit]) + spread

    # ---- updates ----------------------------------------------------------------------------------------------------------

    def update_xi(self):
        for i, x in enumerate(self.problem.X):
            for k, u in enumerate(self.problem.classes):
                self.xi[i, k] = np.sqrt((self.mean[u] @ x - self.beta[i]) ** 2 + x @ self.cov[u] @ x)

    def update_beta(self):
        for i, x in enumerate(self.problem.X):
            lams = np.array([lam(xi) for xi in self.xi[i]])
            z = np.array([self.mean[u] @ x for u in self.problem.classes])
            self.beta[i] = (len(z) / 2 - 1 + 2 * lams @ z) / (2 * lams.sum())

    def update_classes(self):
        p = self.problem
        for k, u in enumerate(p.classes):
            A, pull = np.diag(self.alpha(u)), self.alpha(u) * self.mean_above(u)
            for i, x in enumerate(p.X):
                lam_ik, is_its = lam(self.xi[i, k]), p.ends[i] == p.units[u].node
                A = A + 2 * p.weights[i] * lam_ik * np.outer(x, x)
                pull = pull + p.weights[i] * (is_its - 0.5 + 2 * lam_ik * self.beta[i]) * x
            self.mean[u] = np.linalg.solve(A, pull)
            self.cov[u] = np.linalg.inv(A) if p.covariance == "full" else np.diag(1 / np.diag(A))

    def update_inner(self):
        p = self.problem
        for u in reversed(range(len(p.units))):
            if not p.units[u].is_class:
                precision = self.alpha(u) + sum(self.alpha(c) for c in p.below(u))
                pull = self.alpha(u) * self.mean_above(u) + sum(self.alpha(c) * self.mean[c] for c in p.below(u))
                self.mean[u], self.cov[u] = pull / precision, np.diag(1 / precision)

    def update_alpha(self):
        p = self.problem
        for g, members in p.groups.items():
            squares = sum(self.squares(u) for u in members)
            if not p.per_feature:
                squares = np.full(p.n_features, squares.sum())
            self.a[g] = np.full(p.n_features, p.shape + 0.5 * len(members) * p.governed())
            self.b[g] = p.rate + 0.5 * squares

    # ---- the bound --------------------------------------------------------------------------------------------------------

    def evidence(self):
        """L, with all constants."""
        return self._likelihood() + self._prior_of_weights() + self._entropy_of_weights() + self._precisions()

    def _likelihood(self):
        p, total = self.problem, 0.0
        for i, x in enumerate(p.X):
            beta, bound, own = self.beta[i], self.beta[i], 0.0
            for k, u in enumerate(p.classes):
                z, xi = self.mean[u] @ x, self.xi[i, k]
                square = (z - beta) ** 2 + x @ self.cov[u] @ x
                bound += (z - beta - xi) / 2 + lam(xi) * (square - xi**2) + np.logaddexp(0, xi)
                own += z if p.ends[i] == p.units[u].node else 0.0
            total += p.weights[i] * (own - bound)
        return total

    def _prior_of_weights(self):
        total = 0.0
        for u in range(len(self.problem.units)):
            g = self.problem.group_of(u)
            log_alpha = digamma(self.a[g]) - np.log(self.b[g])
            total += 0.5 * np.sum(log_alpha - np.log(2 * np.pi) - self.alpha(u) * self.squares(u))
        return total

    def _entropy_of_weights(self):
        d = self.problem.n_features
        return sum(0.5 * np.linalg.slogdet(cov)[1] + 0.5 * d * (1 + np.log(2 * np.pi)) for cov in self.cov)

    def _precisions(self):
        """E ln Gamma(α | a, b), and the entropy of q(α); a group with one α counts once."""
        total, (a, b) = 0.0, (self.problem.shape, self.problem.rate)
        for g in self.problem.groups:
            for j in range(self.problem.n_features if self.problem.per_feature else 1):
                a_q, b_q = self.a[g][j], self.b[g][j]
                log_alpha = digamma(a_q) - np.log(b_q)
                total += a * np.log(b) - gammaln(a) + (a - 1) * log_alpha - b * a_q / b_q
                total += a_q - np.log(b_q) + gammaln(a_q) + (1 - a_q) * digamma(a_q)
        return total


ROUND = ("update_xi", "update_beta", "update_classes", "update_inner", "update_alpha")


def run(problem, start=1.0, tolerance=1e-9, n_rounds=2000, order=ROUND):
    """Updates in turn until L no longer grows; the approximation, and L after every round."""
    q, found = Approximation(problem, start), []
    for _ in range(n_rounds):
        for update in order:
            getattr(q, update)()
        found.append(q.evidence())
        if len(found) > 5 and found[-1] - found[-5] <= tolerance * abs(found[-1]):
            break
    return q, found


# ---- the truth, where it can be computed ----------------------------------------------------------------------------------


def log_evidence_of_two_classes(x, is_second, weights, shape, rate, shared, n_points=801):
    """ln p(y | X) for one feature and two classes without a unit above, by quadrature; α is integrated in closed form.

    One α each: w is t-distributed, p(w) = Γ(a + 1/2) / Γ(a) b^a / sqrt(2π) (b + w^2/2)^-(a + 1/2). One α for both: the same
    in two dimensions. w = sinh(t) spreads the points out over the heavy tails.
    """
    t = np.linspace(-12, 12, n_points)
    w, step = np.sinh(t), (t[1] - t[0]) * np.cosh(t)
    first, second = np.meshgrid(w, w, indexing="ij")
    a, b = shape, rate
    if shared == "node":
        log_prior = sum(gammaln(a + 0.5) - 0.5 * np.log(2 * np.pi) - (a + 0.5) * np.log(b + v**2 / 2) for v in (first, second))
        log_prior = log_prior + 2 * (a * np.log(b) - gammaln(a))
    else:
        log_prior = gammaln(a + 1) - np.log(2 * np.pi) - (a + 1) * np.log(b + (first**2 + second**2) / 2)
        log_prior = log_prior + a * np.log(b) - gammaln(a)
    for value, is_second_class, s in zip(x, is_second, weights, strict=True):
        margin = (second - first) * value * (1 if is_second_class else -1)
        log_prior = log_prior - s * np.logaddexp(0, -margin)
    top = log_prior.max()
    return top + np.log(step @ np.exp(log_prior - top) @ step)
