"""The dense solver against a slow oracle, for all structures and losses, and its certificate when it stops early."""

import numpy as np
import pytest
from oracles import recursive_regularization as oracle
from scipy.sparse import csc_array, csr_array
from seeds import each_seed

from ramify.learners.linear import dense_problem, dense_solver
from ramify.learners.linear.dense_problem import ConjugateGradients, eliminate, order_units
from ramify.learners.linear.dense_solver import solve_dense
from ramify.learners.linear.problem import Costs, suits_dense_solver

ANCHOR = 1e-4
KINDS = ("flat", "tree", "forest", "dag", "graph")


def random_regularizer(rng, kind, n_units):
    if kind == "flat":
        return oracle.flat_regularizer(n_units)
    if kind == "graph":
        density = rng.uniform(0, 0.6)
        edges = [(a, b) for a in range(n_units) for b in range(a) if rng.random() < density]
        return oracle.graph_regularizer(n_units, edges, ANCHOR)
    fewest, most = {"tree": (1, 1), "forest": (0, 1), "dag": (0, 3)}[kind]
    # parents have smaller numbers; then the numbers are shuffled, so that nothing can rely on their order
    n_parents = [min(child, int(rng.integers(fewest, most + 1))) for child in range(n_units)]
    names = rng.permutation(n_units).tolist()
    above = [rng.choice(child, size=n, replace=False) if n else [] for child, n in enumerate(n_parents)]
    edges = [(names[child], names[p]) for child, parents in enumerate(above) for p in parents]
    return oracle.hierarchy_regularizer(n_units, edges)


def random_documents(rng, n_documents, n_features):
    """Correlated features, one zero and one constant feature, duplicate documents, and a bias."""
    X = rng.normal(size=(n_documents, n_features)) @ rng.normal(size=(n_features, n_features))
    X[:, 0], X[:, 1], X[:, -1] = 0, 3, 1
    X[n_documents // 2 : n_documents // 2 + 3] = X[:3]
    return X


def random_costs(rng, n_documents, n_classes):
    """Over the whole range; some are zero, for documents or for a class's own or other documents."""
    level = 10 ** rng.uniform(-3, 3)
    positive, negative = (level * 10 ** rng.uniform(-1, 1, size=n_classes) for _ in range(2))
    negative[rng.random(n_classes) < 0.1] = 0
    positive[rng.random(n_classes) < 0.1] = 0
    documents = rng.uniform(0.2, 2, size=n_documents) * (rng.random(n_documents) > 0.1)
    return Costs(*(costs.astype(np.float32) for costs in (positive, negative, documents)))


def random_problem(rng, kind):
    """X, own, M, class_units and costs."""
    n_units = int(rng.integers(2, 10))
    class_units = rng.choice(n_units, size=min(6, int(rng.integers(1, n_units + 1))), replace=False)
    X = random_documents(rng, 25, 5)
    own = X @ rng.normal(size=(5, len(class_units))) > 0
    own ^= rng.random(own.shape) < rng.choice([0, 0.2])
    own[rng.integers(len(own)), :] = True
    own[:, rng.random(len(class_units)) < 0.1] = True  # a class may have all documents
    return X, own, random_regularizer(rng, kind, n_units), class_units, random_costs(rng, *own.shape)


def as_the_oracle_wants(own, costs):
    signs = np.where(own, 1.0, -1.0)
    sides = np.where(own, costs.positive.astype(float), costs.negative.astype(float))
    return signs, sides * costs.documents.astype(float)[:, None]


@oracle.one_thread
def solve(X, own, M, class_units, costs, **settings):
    return solve_dense(X, csc_array(own), csr_array(M), class_units, costs, **settings)


@each_seed(6)
@pytest.mark.parametrize("loss", oracle.LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_no_weights_are_better_and_the_certificate_holds(kind, loss, seed):
    rng = np.random.default_rng([seed, len(kind), len(loss)])
    X, own, M, class_units, costs = random_problem(rng, kind)
    signs, U = as_the_oracle_wants(own, costs)
    found = solve(X, own, M, class_units, costs, loss=loss, tolerance=1e-7)
    assert found.gap <= 1e-7
    assert found.primal == pytest.approx(oracle.objective(found.W, M, X, signs, U, class_units, loss), rel=1e-9)
    assert found.dual == pytest.approx(oracle.dual_objective(found.alphas, M, X, signs, U, class_units, loss), rel=1e-9)
    _, best, _ = oracle.solve(M, X, signs, U, class_units, loss, tolerance=1e-6)
    assert found.primal == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("loss", oracle.LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_start_does_not_change_the_solution(kind, loss):
    rng = np.random.default_rng(7)
    problem = random_problem(rng, kind)
    cold = solve(*problem, loss=loss, tolerance=1e-7)
    for start in (cold.W, rng.normal(size=cold.W.shape), np.full_like(cold.W, 1e200), np.full_like(cold.W, np.nan)):
        warm = solve(*problem, loss=loss, tolerance=1e-7, start=start)
        assert warm.gap <= 1e-7
        assert warm.primal == pytest.approx(cold.primal, rel=1e-6)


@pytest.mark.parametrize("loss", oracle.LOSSES)
def test_conjugate_gradients_solve_it_when_too_many_blocks_would_fill_in(loss, monkeypatch):
    monkeypatch.setattr(dense_solver, "order_units", lambda M, most_work: None)
    problem = random_problem(np.random.default_rng(3), "graph")
    found = solve(*problem, loss=loss, tolerance=1e-6)
    monkeypatch.undo()
    assert found.gap <= 1e-6
    assert found.primal == pytest.approx(solve(*problem, loss=loss, tolerance=1e-7).primal, rel=2e-6)


@pytest.mark.parametrize("loss", oracle.LOSSES)
def test_documents_of_little_curvature_may_be_left_out_of_steps(loss, monkeypatch):
    monkeypatch.setattr(dense_problem, "SMALL_GRAM", 0)
    monkeypatch.setattr(dense_problem, "PAIRS_AT_ONCE", 30)
    problem = random_problem(np.random.default_rng(5), "tree")
    assert solve(*problem, loss=loss, tolerance=1e-7).gap <= 1e-7


@pytest.mark.parametrize("loss", oracle.LOSSES)
@pytest.mark.parametrize("max_iter", [0, 1, 2])
def test_a_solver_that_stops_early_reports_its_gap(loss, max_iter):
    X, own, M, class_units, costs = random_problem(np.random.default_rng(11), "tree")
    signs, U = as_the_oracle_wants(own, costs)
    found = solve(X, own, M, class_units, costs, loss=loss, tolerance=1e-12, max_iter=max_iter)
    assert np.isfinite(found.W).all()
    assert found.primal == pytest.approx(oracle.objective(found.W, M, X, signs, U, class_units, loss))
    assert found.dual == pytest.approx(oracle.dual_objective(found.alphas, M, X, signs, U, class_units, loss), abs=1e-12)
    assert found.iterations <= max_iter


@pytest.mark.parametrize("loss", oracle.LOSSES)
def test_without_costs_weights_are_zero(loss):
    X, own, M, class_units, costs = random_problem(np.random.default_rng(2), "tree")
    nothing = Costs(0 * costs.positive, 0 * costs.negative, costs.documents)
    for start in (None, np.ones((len(M), X.shape[1]))):
        found = solve(X, own, M, class_units, nothing, loss=loss, start=start)
        assert found.primal == pytest.approx(0, abs=1e-12)
        assert pytest.approx(0, abs=1e-6) == found.W


@pytest.mark.parametrize("kind", KINDS)
@each_seed(5)
def test_block_systems_are_solved(kind, seed):
    rng = np.random.default_rng(seed)
    n_units, d = int(rng.integers(1, 12)), 3
    M = random_regularizer(rng, kind, n_units)
    factors = rng.normal(size=(n_units, d, 2)) * (rng.random((n_units, 1, 1)) < 0.5)
    blocks = factors @ factors.transpose(0, 2, 1) + np.diag(M)[:, None, None] * np.eye(d)
    whole = np.kron(M, np.eye(d))
    for v in range(n_units):
        whole[v * d : (v + 1) * d, v * d : (v + 1) * d] = blocks[v]
    r = rng.normal(size=(n_units, d))
    expected = np.linalg.solve(whole, r.ravel()).reshape(r.shape)
    order = order_units(csr_array(M), np.inf)
    assert ConjugateGradients.of(csr_array(M), blocks).solve(r) == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert eliminate(csr_array(M), order, blocks.copy()).solve(r) == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_nothing_fills_in_on_a_tree():
    order = order_units(csr_array(random_regularizer(np.random.default_rng(0), "tree", 200)), np.inf)
    assert max(len(later) for later in order.later) == 1


def test_few_dense_features_suit_and_many_sparse_ones_do_not():
    assert suits_dense_solver(10_000, 81, 700_000, 63)
    assert suits_dense_solver(100, 64, 300, 10)
    assert not suits_dense_solver(10_000, 81, 10_000, 63)
    assert not suits_dense_solver(10_000, 500, 5_000_000, 63)
    assert not suits_dense_solver(10_000, 200, 2_000_000, 100_000)
