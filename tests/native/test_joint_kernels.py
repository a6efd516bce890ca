"""The kernels of large margins over joint outputs, beside plain NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from seeds import each_seed

from ramify.learners.linear.problem import Settings, arrange_rows
from ramify.learners.structured.problem import Outputs, Problem
from ramify.learners.structured.solver import DualState, SquaredNorm, measure, solve_smoothed


def draw_problem(seed, n_units=6):
    """Outputs of one to four units with any signs, two to five a label, one of them one's own; documents with empty rows."""
    rng = np.random.default_rng(seed)
    n_outputs, n_labels, n_docs = 9, 4, 25
    phi = [rng.choice(n_units, size=rng.integers(1, 5), replace=False) for _ in range(n_outputs)]
    listed = [rng.choice(n_outputs, size=rng.integers(2, 6), replace=False) for _ in range(n_labels)]
    margins = [np.append(0, rng.uniform(0.5, 2, size=len(outputs) - 1)) for outputs in listed]
    outputs = Outputs(
        offsets=np.concatenate([[0], np.cumsum([len(each) for each in listed])]).astype(np.int64),
        outputs=np.concatenate(listed).astype(np.int32),
        margins=np.concatenate(margins),
        unit_offsets=np.concatenate([[0], np.cumsum([len(units) for units in phi])]).astype(np.int64),
        units=np.concatenate(phi).astype(np.int32),
        signs=rng.choice([-1.0, 1.0, 0.5], size=sum(len(units) for units in phi)),
    )
    X = csr_array(rng.normal(size=(n_docs, 5)) * (rng.random((n_docs, 5)) < 0.5)).astype(np.float32)
    labels = rng.integers(0, n_labels, size=n_docs).astype(np.int32)
    return Problem(arrange_rows(X, bias=bool(seed % 2)), labels, rng.uniform(0, 2, size=n_docs), outputs, n_units)


def vectors(problem):
    """φ of every output, outputs × units."""
    outputs = problem.outputs
    phi = np.zeros((len(outputs.unit_offsets) - 1, problem.n_units))
    for output in range(len(phi)):
        for k in range(outputs.unit_offsets[output], outputs.unit_offsets[output + 1]):
            phi[output, outputs.units[k]] += outputs.signs[k]
    return phi


def outputs_of(problem, document):
    listed = slice(*problem.outputs.offsets[problem.labels[document] :][:2])
    return problem.outputs.outputs[listed], problem.outputs.margins[listed]


def weights_by_hand(problem, alphas, inverse):
    """M⁻¹ Σ α (φ_own − φ_a) x, features × units."""
    X, phi = problem.rows.matrix().toarray().astype(np.float64), vectors(problem)
    G = np.zeros((X.shape[1], problem.n_units))
    for document, x in enumerate(X):
        given, _ = outputs_of(problem, document)
        for alpha, output in zip(alphas[problem.alpha_offsets[document] :], given, strict=False):
            G += alpha * np.outer(x, phi[given[0]] - phi[output])
    return G @ inverse


class Skewed(SquaredNorm):
    """A regularizer that is not the identity."""

    def __init__(self, n_units, seed):
        A = np.random.default_rng(seed).normal(size=(n_units, n_units))
        self.M = A @ A.T / n_units + np.eye(n_units)
        self.inverse = np.linalg.inv(self.M)

    def penalty(self, W):
        return 0.5 * float(((W.T @ W) * self.M).sum())

    quadratic = penalty


@each_seed(6)
def test_losses_and_worst_outputs_are_those_of_plain_arithmetic(seed):
    problem = draw_problem(seed)
    W = np.random.default_rng(seed).normal(size=(problem.rows.n_features, problem.n_units))
    losses, worst = measure(problem, W)
    scores = problem.rows.matrix().toarray() @ W @ vectors(problem).T
    for document in range(len(problem)):
        given, margins = outputs_of(problem, document)
        violations = margins + scores[document, given] - scores[document, given[0]]
        assert losses[document] == pytest.approx(violations.max(), rel=1e-6, abs=1e-9)
        assert worst[document] == violations.argmax()


@pytest.mark.parametrize("skewed", [False, True])
@each_seed(6)
def test_every_round_raises_the_dual_and_keeps_weights_and_dual_variables_together(seed, skewed):
    problem = draw_problem(seed)
    regularizer = Skewed(problem.n_units, seed) if skewed else SquaredNorm()
    inverse = regularizer.inverse if skewed else np.eye(problem.n_units)
    ascent = DualState.start(problem, regularizer, seed)
    last = ascent.certify(0).dual
    for done in range(1, 6):
        ascent.run_round(1e-9)
        certificate = ascent.certify(done)
        assert certificate.dual >= last - 1e-9
        assert certificate.dual <= certificate.primal + 1e-9
        last = certificate.dual
        np.testing.assert_allclose(ascent.weights, weights_by_hand(problem, ascent.alphas, inverse), atol=1e-6)
        totals = np.add.reduceat(ascent.alphas, problem.alpha_offsets[:-1])
        np.testing.assert_allclose(totals, problem.costs, rtol=1e-9)
        assert ascent.alphas.min() >= 0


@each_seed(4)
def test_second_order_steps_leave_weights_and_dual_variables_together(seed):
    problem = draw_problem(seed)
    ascent = DualState.start(problem, SquaredNorm(), seed)
    _, certificate = solve_smoothed(ascent, Settings("hinge", 1e-9, 3, seed, fast=False))
    assert certificate.gap > 1e-9
    np.testing.assert_allclose(ascent.weights, weights_by_hand(problem, ascent.alphas, np.eye(problem.n_units)), atol=1e-6)


def test_a_warm_start_at_another_cost_keeps_weights_and_dual_variables_together():
    problem = draw_problem(1)
    ascent = DualState.start(problem, SquaredNorm(), 1)
    ascent.run_round(1e-9)
    dearer = ascent.rescale(replace(problem, costs=10 * problem.costs))
    totals = np.add.reduceat(dearer.alphas, problem.alpha_offsets[:-1])
    np.testing.assert_allclose(totals, 10 * problem.costs, rtol=1e-9)
    np.testing.assert_allclose(dearer.weights, weights_by_hand(problem, dearer.alphas, np.eye(problem.n_units)), atol=1e-5)


def test_a_document_without_features_distributes_its_cost_as_margins_tell():
    problem = draw_problem(0)
    assert not problem.rows.has_bias
    empty = np.flatnonzero(np.diff(problem.rows.offsets) == 0)
    ascent = DualState.start(problem, SquaredNorm(), 0)
    ascent.run_round(1e-9)
    for document in empty:
        _, margins = outputs_of(problem, document)
        given = ascent.alphas[problem.alpha_offsets[document] : problem.alpha_offsets[document + 1]]
        assert given.argmax() == margins.argmax()
