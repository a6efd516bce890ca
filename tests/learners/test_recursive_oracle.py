"""The slow twin of recursive regularization, checked against scikit-learn, its own dual and pencil-and-paper facts."""

import numpy as np
import pytest
from oracles import recursive_regularization as oracle
from seeds import each_seed
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

ANCHOR = 1e-3
KINDS = ("flat", "tree", "forest", "dag", "ancestors", "graph")
LOSSES = oracle.LOSSES


def random_structure(rng, kind, max_units=12):
    """The number of units and their edges, (child, parent) or, in a graph, (a, b); isolated units may be among them."""
    n_units = int(rng.integers(2, max_units + 1))
    if kind == "flat":
        return n_units, []
    if kind == "graph":
        density = rng.uniform(0, 0.6)
        return n_units, [(a, b) for a in range(n_units) for b in range(a) if rng.random() < density]
    fewest, most = {"tree": (1, 1), "forest": (0, 1), "dag": (0, 3), "ancestors": (0, 3)}[kind]
    # parents have smaller numbers; then the numbers are shuffled, so that nothing can rely on their order
    n_parents = [min(child, int(rng.integers(fewest, most + 1))) for child in range(n_units)]
    names = rng.permutation(n_units).tolist()
    above = [rng.choice(child, size=n, replace=False) if n else [] for child, n in enumerate(n_parents)]
    return n_units, [(names[child], names[p]) for child, parents in enumerate(above) for p in parents]


def regularizer(kind, n_units, edges):
    if kind == "flat":
        return oracle.flat_regularizer(n_units)
    if kind == "ancestors":
        return oracle.ancestor_regularizer(n_units, edges)
    return oracle.graph_regularizer(n_units, edges, ANCHOR) if kind == "graph" else oracle.hierarchy_regularizer(n_units, edges)


def random_documents(rng, n_classes, n_documents=30, n_features=6, smallest=1e-3, largest=1e3, zeros=0.1):
    """X with a bias column, signs that are half noise, and costs over the whole range, some of them 0."""
    X = rng.normal(size=(n_documents, n_features)) * (rng.random((n_documents, n_features)) < 0.7)
    X[:, -1] = 1
    true = np.where(X @ rng.normal(size=(n_features, n_classes)) > 0, 1.0, -1.0)
    noisy = rng.random(n_classes) < 0.5
    signs = np.where(noisy & (rng.random(true.shape) < 0.3), -true, true)
    costs = np.exp(rng.uniform(np.log(smallest), np.log(largest), size=true.shape))
    return X, signs, costs * (rng.random(true.shape) >= zeros)


def random_problem(rng, kind, **documents):
    """M, X, signs, costs and class_units."""
    n_units, edges = random_structure(rng, kind)
    class_units = rng.choice(n_units, size=min(8, int(rng.integers(1, n_units + 1))), replace=False)
    return regularizer(kind, n_units, edges), *random_documents(rng, len(class_units), **documents), class_units


def penalty_by_edges(W, kind, edges):
    """R(W), summed edge by edge."""
    square = [float(w @ w) for w in W]
    if kind == "flat":
        return sum(square) / 2
    if kind == "ancestors":
        return increments_by_edges(W, edges)
    differences = sum(float((W[a] - W[b]) @ (W[a] - W[b])) for a, b in edges)
    if kind == "graph":
        lonely = [n for n in range(len(W)) if all(n not in edge for edge in edges)]
        return (differences + ANCHOR * sum(square) + sum(square[n] for n in lonely)) / 2
    return (differences + sum(square[n] for n in range(len(W)) if all(n != child for child, _ in edges))) / 2


def increments_by_edges(W, edges):
    """½ Σ |δ|², one unit after the other, once those above it are done: what its weights are more than theirs add up to."""
    increments = {}

    def ancestors(n):
        parents = {parent for child, parent in edges if child == n}
        return parents.union(*(ancestors(parent) for parent in parents))

    for n in sorted(range(len(W)), key=lambda n: len(ancestors(n))):
        increments[n] = W[n] - sum((increments[above] for above in ancestors(n)), np.zeros(W.shape[1]))
    return sum(float(delta @ delta) for delta in increments.values()) / 2


@pytest.mark.parametrize("kind", ["tree", "forest"])
@each_seed(5)
def test_ancestors_and_edges_are_the_same_in_a_tree(kind, seed):
    structure = random_structure(np.random.default_rng(seed), kind)
    np.testing.assert_allclose(oracle.ancestor_regularizer(*structure), oracle.hierarchy_regularizer(*structure), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@each_seed(10)
def test_the_matrix_says_what_the_edges_say(kind, seed):
    rng = np.random.default_rng(seed)
    n_units, edges = random_structure(rng, kind)
    M, W = regularizer(kind, n_units, edges), rng.normal(size=(n_units, 3))
    nothing = np.zeros((1, 0))
    value = oracle.objective(W, M, np.ones((1, 3)), nothing, nothing, [], "hinge")
    assert value == pytest.approx(penalty_by_edges(W, kind, edges))
    assert np.linalg.eigvalsh(M)[0] > 0


def test_the_loss_is_summed_over_labelled_units_and_documents():
    W, M = np.array([[1.0, 0.0], [5.0, 5.0], [0.0, 2.0]]), np.zeros((3, 3))
    X = np.array([[0.5, 1.0], [2.0, -1.0]])
    signs, costs = np.array([[1.0, 1.0], [-1.0, 1.0]]), np.array([[2.0, 7.0], [3.0, 10.0]])
    # z of unit 0: 0.5 and -2; of unit 2: 2 and -2
    value = {loss: oracle.objective(W, M, X, signs, costs, [0, 2], loss) for loss in LOSSES}
    assert value["hinge"] == pytest.approx(2 * 0.5 + 3 * 3 + 10 * 3)
    assert value["squared_hinge"] == pytest.approx(2 * 0.25 + 3 * 9 + 10 * 9)
    softplus = [np.log(1 + np.exp(-z)) for z in (0.5, -2, 2, -2)]
    assert value["logistic"] == pytest.approx(np.dot([2, 3, 7, 10], softplus))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
@each_seed(8)
def test_primal_and_dual_meet(kind, loss, seed):
    problem = random_problem(np.random.default_rng(seed), kind)
    W, primal, dual = oracle.solve(*problem, loss)
    assert primal == oracle.objective(W, *problem, loss)
    assert dual == pytest.approx(primal, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_no_dual_value_exceeds_any_primal_value(kind, loss):
    rng = np.random.default_rng(7)
    M, X, _, costs, _ = problem = random_problem(rng, kind)
    best, primal, _ = oracle.solve(*problem, loss)
    for scale in (1e-6, 1e-4, 1e-2, 1.0):
        alphas = scale * costs * rng.random(costs.shape)
        assert oracle.dual_objective(alphas, *problem, loss) <= primal
        W = best + scale * rng.normal(size=(len(M), X.shape[1]))
        assert oracle.objective(W, *problem, loss) >= primal


@pytest.mark.parametrize("loss", LOSSES)
def test_the_dual_is_no_higher_outside_its_bounds(loss):
    signs, costs = np.ones((3, 1)), np.array([[0.0], [2.0], [5.0]])
    problem = np.eye(1), np.zeros((3, 1)), signs, costs, [0], loss
    assert oracle.dual_objective(np.full((3, 1), -1.0), *problem) == 0
    # no weights help documents without features: 7 times L(0) is lost, and no α gives a higher bound
    lost = 7 * {"hinge": 1, "squared_hinge": 1, "logistic": np.log(2)}[loss]
    bounds = [oracle.dual_objective(factor * costs + 1e-3, *problem) for factor in (0.5, 1, 2, 9)]
    assert max(bounds) == pytest.approx(lost, rel=1e-6)
    assert max(bounds) <= lost
    assert oracle.solve(*problem)[1] == pytest.approx(lost)


@pytest.mark.parametrize("loss", LOSSES)
@each_seed(3)
def test_flat_classes_equal_scikit_learn(loss, seed):
    rng = np.random.default_rng(seed)
    X, signs, costs = random_documents(rng, n_classes=4, smallest=0.1, largest=10.0, zeros=0.0)
    theirs = {
        "hinge": LinearSVC(loss="hinge", tol=1e-8, fit_intercept=False, max_iter=10**6, random_state=0),
        "squared_hinge": LinearSVC(loss="squared_hinge", tol=1e-8, fit_intercept=False, max_iter=10**6, random_state=0),
        "logistic": LogisticRegression(solver="newton-cholesky", tol=1e-10, fit_intercept=False, max_iter=1000),
    }[loss]
    M, class_units = oracle.flat_regularizer(5), [4, 0, 3, 1]
    W, primal, _ = oracle.solve(M, X, signs, costs, class_units, loss)
    W_theirs = np.zeros_like(W)
    for k, unit in enumerate(class_units):
        W_theirs[unit] = theirs.fit(X, signs[:, k], sample_weight=costs[:, k]).coef_[0]
    value = oracle.objective(W_theirs, M, X, signs, costs, class_units, loss)
    assert value == pytest.approx(primal, rel=1e-7)
    np.testing.assert_allclose(W, W_theirs, atol=1e-4)
    assert not W[2].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_chain_with_no_costs_has_zero_weights(loss):
    M = oracle.hierarchy_regularizer(5, [(n, n - 1) for n in range(1, 5)])
    X, signs, costs = random_documents(np.random.default_rng(0), n_classes=3)
    W, primal, dual = oracle.solve(M, X, signs, 0 * costs, [0, 2, 4], loss)
    assert not W.any()
    assert primal == dual == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_a_class_below_a_chain_of_n_units_is_a_flat_class_with_n_times_the_cost(loss):
    # the shares w_v - w_parent are equal, so R = 1/2 |w|^2 / n
    X, signs, costs = random_documents(np.random.default_rng(3), n_classes=1)
    chain = oracle.hierarchy_regularizer(4, [(n, n - 1) for n in range(1, 4)])
    W, primal, _ = oracle.solve(chain, X, signs, costs, [3], loss)
    w, flat, _ = oracle.solve(np.eye(1), X, signs, 4 * costs, [0], loss)
    assert 4 * primal == pytest.approx(flat, rel=1e-9)
    np.testing.assert_allclose(W, np.outer([0.25, 0.5, 0.75, 1], w[0]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["tree", "forest"])
@pytest.mark.parametrize("loss", LOSSES)
@each_seed(5)
def test_the_delta_of_an_unlabelled_unit_is_the_sum_of_its_childrens(kind, loss, seed):
    rng = np.random.default_rng(seed)
    n_units, edges = random_structure(rng, kind)
    leaves = sorted(set(range(n_units)) - {parent for _, parent in edges})[:8]
    M, documents = regularizer(kind, n_units, edges), random_documents(rng, len(leaves))
    W, *_ = oracle.solve(M, *documents, leaves, loss)
    parent = dict(edges)
    share = [W[v] - W[parent[v]] if v in parent else W[v] for v in range(n_units)]
    for v in set(range(n_units)) - set(leaves):
        children = [share[child] for child, above in edges if above == v]
        np.testing.assert_allclose(share[v], np.sum(children, axis=0) if children else 0 * share[v], atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_sign_of_a_document_with_no_cost_does_not_matter(loss):
    rng = np.random.default_rng(5)
    M, X, signs, costs, class_units = random_problem(rng, "dag", zeros=0.5)
    W, primal, _ = oracle.solve(M, X, signs, costs, class_units, loss)
    flipped = np.where(costs > 0, signs, -signs)
    again, value, _ = oracle.solve(M, X, flipped, costs, class_units, loss)
    assert value == primal
    np.testing.assert_array_equal(W, again)
