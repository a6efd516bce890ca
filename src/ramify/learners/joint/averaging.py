"""Regularized dual averaging, as Zhou, Xiao & Wu 2011 publish it for orthogonal transfer.

Every round takes a subgradient of J(W) − σ/2 ‖W‖² at W, averages it with all before, ḡ, and goes to W = −ḡ / σ, where σ = 1 −
coupling is by how much J is strongly convex at least. The best W met is the result; the distance falls like ln t / t.

The rounds also average which answer was the worst for each document, and the signs of w_u·w_v: shares and signs of the dual,
whose value is a bound. That certificate is ours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.execution import stage
from ramify.learners.joint.ascent import measure
from ramify.learners.joint.orthogonal import Couplings
from ramify.learners.joint.problem import Floats, Problem
from ramify.learners.linear.problem import Certificate, Settings

LOOKS = 25  # rounds between two looks at the bound


def average_slopes(problem: Problem, couplings: Couplings, settings: Settings) -> tuple[Floats, Certificate]:
    """The best weights met (features × units), and what is certain of them."""
    sigma, shape = 1 - couplings.coupling, (problem.rows.n_features, problem.n_units)
    W, mean, best = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    shares, signs = np.zeros(len(problem.margins)), np.zeros(len(couplings.strengths))
    primal, dual = np.inf, -np.inf
    with stage("dual averaging", settings.max_iter) as step:
        for t in range(1, settings.max_iter + 1):
            losses, worst = measure(problem, W)
            value = couplings.penalty(W) + float(losses @ problem.costs)
            if value < primal:
                primal, best = value, W
            sign = np.sign(couplings.products(W))
            given = problem.alpha_offsets[:-1] + worst
            slope = W @ couplings.metric(sign) - sigma * W - push(problem, given, problem.costs)
            mean += (slope - mean) / t
            shares *= 1 - 1 / t
            shares[given] += problem.costs / t
            signs += (sign - signs) / t
            W = -mean / sigma
            step.advance()
            if t % LOOKS == 0 or t == settings.max_iter:
                dual = max(dual, bound(problem, couplings, shares, signs))
                if Certificate(primal, dual, t).gap <= settings.tolerance:
                    break
    return best, Certificate(primal, dual, t)


def push(problem: Problem, given: NDArray[np.int64], amounts: Floats) -> Floats:
    """Σ amount (φ_own − φ_a) xᵀ over some shares (features × units); one's own answer has φ = 0."""
    answers = problem.answers
    document = np.searchsorted(problem.alpha_offsets, given, side="right") - 1
    place = answers.offsets[problem.labels[document]] + given - problem.alpha_offsets[document]
    answer = answers.answers[place]
    lengths = np.diff(answers.unit_offsets)[answer]
    entries = np.repeat(answers.unit_offsets[answer] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    entries += np.arange(len(entries))
    values = -answers.signs[entries] * np.repeat(amounts, lengths)
    shape = (len(problem), problem.n_units)
    R = csr_array((values, (np.repeat(document, lengths), answers.units[entries])), shape=shape)
    return np.asarray((problem.rows.matrix().T @ R).toarray(), dtype=np.float64)


def bound(problem: Problem, couplings: Couplings, shares: Floats, signs: Floats) -> float:
    """The dual of shares and signs."""
    given = np.flatnonzero(shares)
    G = push(problem, given, shares[given])
    half = 0.5 * float(np.sum((G.T @ G) * np.linalg.inv(couplings.metric(signs))))
    return float(shares @ problem.margins) - half
