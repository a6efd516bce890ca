"""Hierarchical Bayesian logistic regression against its slow twin, the truth by quadrature, and facts that must hold."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import bayesian_logistic as oracle
from oracles.path_sums import units_of
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from strategies import build, trees

import ramify
from ramify import Taxonomy
from ramify.errors import InputError, LabelError, ModelError
from ramify.learners import BayesianLogistic
from ramify.learners.bayesian import learner as learner_module
from ramify.learners.bayesian import problem as problem_module
from ramify.learners.bayesian import variational
from ramify.learners.bayesian.problem import PRECISIONS, DenseDocuments, Groups, Problem, SparseDocuments
from ramify.learners.bayesian.variational import Posterior, fit_posterior, update_means
from ramify.learners.linear.taxonomy_ties import tie_along_paths
from ramify.parallel import SerialExecutor

SERIAL = SerialExecutor()
CHAIN = [[], [0], [1], [0], [], [4]]
INNER = [[], [0], [0], [1], [1], []]
VARIANTS = [(precisions, covariance) for precisions in PRECISIONS for covariance in ("full", "diagonal")]


def documents(rng, n_documents, n_features):
    """Some features are absent, one document is empty, and one comes twice."""
    X = rng.normal(size=(n_documents, n_features)) * (rng.random((n_documents, n_features)) < 0.6)
    X[0], X[1] = 0, X[2]
    return np.column_stack([X, np.ones(n_documents)]).astype(np.float32).astype(np.float64)


def twins(parents, X, ends, weights, precisions, covariance, shape=1.5, rate=0.7):
    """The same problem for the fast way and for the slow one, and the slow number of every fast unit."""
    taxonomy = build(parents)
    forest = tie_along_paths(taxonomy, np.unique(ends).astype(np.int64))
    groups = Groups.of(forest, precisions)
    made = DenseDocuments(X, SERIAL) if covariance == "full" else SparseDocuments.of(csr_array(X), SERIAL)
    place = {node: k for k, node in enumerate(forest.class_nodes.tolist())}
    a, b = (np.full((len(groups.sizes), 1), value) for value in (shape, rate))
    labels = np.asarray([place[end] for end in ends])
    fast = Problem(made, labels, np.asarray(weights, dtype=float), forest, groups, a, b)
    units = units_of(parents, ends)
    shared = "node" if precisions == "node" else "siblings"
    slow = oracle.Problem(units, X, list(ends), weights, shared, precisions == "features", covariance, shape, rate)
    key = {(unit.node, unit.is_class): number for number, unit in enumerate(units)}
    order = [key[node, is_class] for node, is_class in zip(forest.node.tolist(), forest.class_of >= 0, strict=True)]
    return fast, slow, order


def random_twins(seed, parents, precisions, covariance, **prior):
    rng = np.random.default_rng(seed)
    X = documents(rng, 14, 3)
    ends = np.append(rng.integers(0, len(parents), size=12), [0, len(parents) - 1])  # two classes at least
    weights = rng.choice([0.5, 1.0, 2.0], size=len(X))
    return twins(parents, X, ends.tolist(), weights, precisions, covariance, **prior)


def hand_over(q, slow, order):
    """The slow twin, standing where the fast way stands."""
    twin = oracle.Approximation(slow)
    classes = {unit: k for k, unit in enumerate(q.problem.class_units.tolist())}
    for unit, number in enumerate(order):
        full = unit in classes and q.tables.ndim == 3
        twin.mean[number] = q.means[unit]
        twin.cov[number] = q.tables[classes[unit]] if full else np.diag(q.variances[unit])
        group, here = q.problem.groups.of_unit[unit], slow.group_of(number)
        twin.a[here], twin.b[here] = (np.broadcast_to(t[group], slow.n_features).copy() for t in (q.shapes, q.rates))
    twin.beta = q.softmax.betas.copy()
    columns = [slow.classes.index(order[unit]) for unit in q.problem.class_units]
    own = (q.scores - q.softmax.betas[:, None]) ** 2 + q.score_variances
    twin.xi[:, columns] = np.sqrt(own)
    return twin


# ---- the slow twin --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("precisions", "covariance"), VARIANTS)
@given(parents=trees(7, min_nodes=2), seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_no_update_of_the_slow_twin_can_raise_what_was_reached(precisions, covariance, parents, seed):
    fast, slow, order = random_twins(seed, parents, precisions, covariance)
    q, found, _ = fit_posterior(fast, SERIAL, 1e-12, 400)
    twin = hand_over(q, slow, order)
    assert twin.evidence() == pytest.approx(found[-1], rel=1e-10)
    for update in oracle.ROUND:
        getattr(twin, update)()
    assert twin.evidence() == pytest.approx(found[-1], rel=1e-7)
    np.testing.assert_allclose(twin.mean[order], q.means, atol=1e-3)


@pytest.mark.parametrize(("precisions", "covariance"), VARIANTS)
@pytest.mark.parametrize("parents", [CHAIN, INNER, [[], [], []], [[], [0], [0]]], ids=["chain", "inner", "flat", "tree"])
def test_the_slow_twin_reaches_the_same(precisions, covariance, parents):
    fast, slow, order = random_twins(3, parents, precisions, covariance, shape=4.0, rate=2.0)
    q, found, _ = fit_posterior(fast, SERIAL, 1e-12, 400)
    twin, evidence = oracle.run(slow, start=2.0, tolerance=1e-10, n_rounds=150)
    assert found[-1] == pytest.approx(evidence[-1], rel=1e-6)
    np.testing.assert_allclose(q.means, twin.mean[order], atol=1e-3)
    alpha = np.asarray([twin.alpha(number) for number in order])
    np.testing.assert_allclose(np.broadcast_to(q.precisions(), alpha.shape), alpha, rtol=1e-3)


def test_a_learner_gives_the_evidence_and_means_of_its_slow_twin():
    rng = np.random.default_rng(0)
    taxonomy, parents = build(INNER), INNER
    X, ends = documents(rng, 12, 3), [0, 1, 2, 3, 4, 5] * 2
    fitted = BayesianLogistic(taxonomy, shape=4.0, rate=2.0, tol=1e-12, max_iter=500, covariance="full")
    fitted.fit(X[:, :-1], [taxonomy.names[end] for end in ends])
    slow = oracle.Problem(units_of(parents, ends), X, ends, np.ones(12), "node", False, "full", 4.0, 2.0)
    twin, evidence = oracle.run(slow, start=2.0, tolerance=1e-10, n_rounds=150)
    assert fitted.evidence_[-1] == pytest.approx(evidence[-1], rel=1e-6)
    scores = {unit.node: X @ twin.mean[u] for u, unit in enumerate(slow.units) if unit.is_class}
    np.testing.assert_allclose(fitted.scores(X[:, :-1]), np.column_stack([scores[n] for n in range(6)]), atol=2e-3)


# ---- the bound ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("precisions", "covariance"), VARIANTS)
@given(parents=trees(7, min_nodes=2), seed=st.integers(0, 10_000), shape=st.floats(1e-3, 1e3), scale=st.floats(1e-2, 1e2))
@settings(max_examples=10)
def test_no_update_lowers_the_evidence(precisions, covariance, parents, seed, shape, scale):
    fast, _, _ = random_twins(seed, parents, precisions, covariance, shape=shape, rate=shape * scale)
    q = Posterior.start(fast, SERIAL)
    found = [q.lower_bound()]
    for _ in range(6):
        for update in (lambda: update_means(q, 0.0), lambda: q.update_covariances(0), lambda: q.update_covariances(3)):
            update()
            found.append(q.lower_bound())
    assert np.all(np.diff(found) >= -1e-9 * np.abs(found[1:]))


@given(seed=st.integers(0, 10_000), precisions=st.sampled_from(["node", "siblings"]), shape=st.floats(0.5, 5))
@settings(max_examples=15)
def test_the_evidence_is_a_bound_on_the_truth(seed, precisions, shape):
    rng = np.random.default_rng(seed)
    x, is_second = rng.normal(size=8).astype(np.float32), rng.random(8) < 0.5
    is_second[:2] = [False, True]
    weights = rng.choice([0.5, 1.0, 3.0], size=8)
    fitted = BayesianLogistic(precisions=precisions, shape=shape, rate=1.0, fit_intercept=False, max_iter=1000)
    fitted.fit(x[:, None], is_second.astype(int), weights)
    truth = oracle.log_evidence_of_two_classes(x, is_second, weights, shape, 1.0, precisions)
    assert fitted.evidence_[-1] <= truth + 1e-6


def test_means_under_a_certain_precision_are_those_with_the_highest_penalized_bound():
    """With α certain, the bound less ½ α Σ ‖w_u − w_above‖² is all that there is to raise, given the variances."""
    certain = 1e9
    fast, _, _ = random_twins(5, INNER, "node", "full", shape=3 * certain, rate=certain)
    q, *_ = fit_posterior(fast, SERIAL, 1e-13, 400)
    X, parent = fast.documents.X, fast.forest.parent

    def lost(flat):
        W = flat.reshape(q.means.shape)
        z, above = X @ W[fast.class_units].T, np.where(parent[:, None] >= 0, W[parent], 0)
        total = 1.5 * np.sum((W - above) ** 2)
        for i, label in enumerate(fast.labels):
            t = z[i] - q.softmax.betas[i]
            xi = np.sqrt(t**2 + q.score_variances[i])
            total += fast.weights[i] * (q.softmax.betas[i] + np.sum((t + xi) / 2 + np.log1p(np.exp(-xi))) - z[i, label])
        return total

    best = minimize(lost, np.zeros(q.means.size), method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-8})
    np.testing.assert_allclose(q.means, best.x.reshape(q.means.shape), atol=1e-4)
    np.testing.assert_allclose(q.precisions(), 3.0, rtol=1e-6)


def test_classes_without_ancestors_are_regularized_towards_zero():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), np.arange(30) % 3
    tied = BayesianLogistic(Taxonomy.flat(["0", "1", "2"])).fit(X, y.astype(str).tolist())
    assert (tied.weights_.parent == -1).all()
    np.testing.assert_array_equal(tied.scores(X), BayesianLogistic().fit(X, y).scores(X))
    strong = BayesianLogistic(shape=1e10, rate=1.0).fit(X, y)
    np.testing.assert_allclose(strong.scores(X), 0, atol=1e-6)


def test_the_automatic_prior_lets_no_precision_more_than_double():
    rng = np.random.default_rng(0)
    taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b/x", "b/y"])
    X, y = rng.normal(size=(40, 5)), [taxonomy.names[n] for n in np.tile(np.flatnonzero(taxonomy.is_leaf), 10)]
    expected = (np.sum(X.astype(np.float32) ** 2) / 40 + 1) / 25
    for scale in (0.01, 1, 100):
        fitted = BayesianLogistic(taxonomy, fit_intercept=False).fit(scale * X, y)
        assert fitted.precisions_.max() <= 2 * (expected - 1 / 25) * scale**2 * (1 + 1e-6)
        np.testing.assert_allclose(fitted.scores(scale * X), BayesianLogistic(taxonomy, fit_intercept=False).fit(X, y).scores(X), rtol=1e-2, atol=1e-2)  # fmt: skip


# ---- documents ------------------------------------------------------------------------------------------------------------


def corpus(seed=0, n_documents=60, n_features=12):
    rng = np.random.default_rng(seed)
    taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b/x", "b/z/deep", "c"])
    X = rng.random((n_documents, n_features)) * (rng.random((n_documents, n_features)) < 0.4)
    return taxonomy, X, [taxonomy.names[n] for n in rng.integers(0, len(taxonomy), size=n_documents)]


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_a_weight_of_two_is_a_document_twice_and_one_of_zero_none(covariance):
    taxonomy, X, y = corpus()
    weights = np.random.default_rng(1).integers(0, 3, size=len(y))
    weights[[y.index(name) for name in set(y)]] = 1  # every class keeps a document
    weighted = BayesianLogistic(taxonomy, covariance=covariance).fit(X, y, weights)
    repeated = BayesianLogistic(taxonomy, covariance=covariance).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights).tolist()
    )
    np.testing.assert_allclose(weighted.evidence_, repeated.evidence_, rtol=1e-9)
    np.testing.assert_allclose(weighted.scores(X), repeated.scores(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_threads_change_nothing(covariance, monkeypatch):
    for name, size in (("BLOCK", 40), ("ROWS", 7), ("CLASSES", 2)):
        monkeypatch.setattr(problem_module, name, size)
    monkeypatch.setattr(variational, "BLOCK", 100)
    taxonomy, X, y = corpus()
    one, four = (BayesianLogistic(taxonomy, covariance=covariance, n_jobs=jobs).fit(X, y) for jobs in (1, 4))
    np.testing.assert_array_equal(one.evidence_, four.evidence_)
    np.testing.assert_array_equal(one.scores(X), four.scores(X))


def test_few_dense_features_get_full_covariances_and_many_sparse_ones_diagonal():
    taxonomy, X, y = corpus()
    wide = csr_array(np.column_stack([X, np.zeros((60, 80))]))
    for documents_, chosen, other in ((X, "full", "diagonal"), (wide, "diagonal", "full")):
        found = {
            name: BayesianLogistic(taxonomy, covariance=name, shape=1.0, rate=1.0).fit(documents_, y).evidence_[-1]
            for name in ("auto", "full", "diagonal")
        }
        assert found["auto"] == found[chosen] != found[other]
        assert found["full"] > found["diagonal"]


def test_documents_without_any_feature_and_no_bias_count_in_training():
    fitted = BayesianLogistic(fit_intercept=False).fit(np.zeros((4, 2)), [0, 1, 0, 1])
    np.testing.assert_array_equal(fitted.scores(np.ones((1, 2))), 0)


# ---- answers --------------------------------------------------------------------------------------------------------------


def test_probabilities_are_a_softmax_summed_upward():
    taxonomy, X, y = corpus()
    fitted = BayesianLogistic(taxonomy).fit(X, y)
    S, P = fitted.scores(X).astype(float), fitted.predict_proba(X)
    own = np.exp(S - np.nanmax(S, axis=1, keepdims=True))
    own /= np.nansum(own, axis=1, keepdims=True)
    for node in range(len(taxonomy)):
        below = [n for n in range(len(taxonomy)) if node == n or node in taxonomy.ancestors_of(n)]
        np.testing.assert_allclose(P[:, node], np.nansum(own[:, below], axis=1), rtol=1e-4, atol=1e-6)


def test_contributions_add_up_to_the_score():
    taxonomy, X, y = corpus()
    fitted, x = BayesianLogistic(taxonomy).fit(X, y), csr_array(X[:1])
    node = taxonomy.index(y[0])
    features, shares, bias = fitted.contributions(x, node)
    assert shares.sum() + bias == pytest.approx(fitted.scores(x)[0, node], rel=1e-5)
    assert set(features.tolist()) == set(np.flatnonzero(X[0]).tolist())


@pytest.mark.parametrize("precisions", PRECISIONS)
def test_a_model_is_the_same_after_saving_and_loading(tmp_path, precisions):
    texts = ["sweet red apple", "green apple pie", "rye bread crust", "white bread loaf", "strong black tea", "green tea"]
    labels = ["food/fruit", "food/fruit", "food/bread", "food/bread", "drink", "drink"]
    learner = BayesianLogistic(precisions=precisions)
    fitted = ramify.TextClassifier("hblr", learner=learner).fit(texts, labels)
    assert fitted.predict(texts).tolist() == labels
    fitted.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(texts), fitted.predict_proba(texts))
    np.testing.assert_array_equal(again.learner_.precisions_, fitted.learner_.precisions_)
    np.testing.assert_array_equal(again.learner_.evidence_, fitted.learner_.evidence_)
    assert again.learner_.n_iter_ == fitted.learner_.n_iter_


# ---- what is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"precisions": "nodes"}, "precisions is 'nodes'; give one of 'node', 'siblings', 'features'. Did you mean"),
        ({"covariance": None}, "covariance is None; give one of 'auto', 'full', 'diagonal'"),
        ({"shape": 0}, "shape is 0; give a number above 0"),
        ({"rate": "weak"}, "rate is 'weak'; give a number above 0"),
        ({"rate": float("nan")}, "rate is nan; give a number above 0"),
        ({"shape": True}, "shape is True; give a number above 0"),
        ({"tol": 2}, "tol is 2; give a relative growth of the evidence between 0 and 1"),
        ({"max_iter": 0}, "max_iter is 0; give a whole number"),
        ({"fit_intercept": "yes"}, "fit_intercept is 'yes'; give true or false"),
        ({"n_jobs": 0}, "0 threads"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(given_, message):
    with pytest.raises(InputError, match=message):
        BayesianLogistic(**given_).fit(np.eye(2), [0, 1])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            [["a"], ["b"], ["a", "b"]],
            "1 of 3 documents have multiple labels or none, number 3 the first; .* takes one label.*use system='hr-lr'",
        ),
        (
            [["a"], [], ["b"]],
            "1 of 3 documents have multiple labels or none, number 2 the first; .* takes one label.*use system='hr-lr'",
        ),
    ],
)
def test_documents_without_exactly_one_label_are_refused(labels, message):
    with pytest.raises(LabelError, match=message):
        BayesianLogistic(Taxonomy.flat(["a", "b"])).fit(np.eye(3), labels)


def test_tables_that_would_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(learner_module, "MOST", 7)
    with pytest.raises(InputError, match="features × nodes are 5 × 2.*fewer features, or use system='hr-lr'"):
        BayesianLogistic().fit(np.eye(2, 4), [0, 1])
    with pytest.raises(InputError, match="documents × classes are 6 × 2"):
        BayesianLogistic().fit(np.ones((6, 1)), [0, 1] * 3)
    monkeypatch.setattr(learner_module, "MOST", 1000)
    monkeypatch.setattr(learner_module, "BLOCKS", 7)
    with pytest.raises(InputError, match="full covariances of 2 classes over 3 features are too large"):
        BayesianLogistic(covariance="full").fit(np.eye(2), [0, 1])


def test_ending_too_early_is_told():
    taxonomy, X, y = corpus()
    with pytest.warns(ConvergenceWarning, match="stopped after 2 rounds while the evidence still grew by .* raise max_iter"):
        BayesianLogistic(taxonomy, max_iter=2, tol=1e-9).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesianLogistic(taxonomy).fit(X, y)


@pytest.mark.parametrize("broken", [{"evidence": np.zeros(0)}, {"precisions": np.ones(1)}, {"precisions": -np.ones(9)}])
def test_a_state_that_does_not_fit_is_refused(broken):
    taxonomy, X, y = corpus()
    values, arrays = BayesianLogistic(taxonomy).fit(X, y).state()
    with pytest.raises(ModelError, match="train the model again"):
        BayesianLogistic.from_state(taxonomy, values, arrays | broken)
