"""The support vector machine over paths equals its slow twin, and is what it should be where paths are trivial."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joint_problems import draw_small
from oracles import path_sums
from scipy.sparse import csr_array
from seeds import each_seed
from sklearn.svm import LinearSVC

from ramify import Taxonomy, TextClassifier, load
from ramify.errors import InputError, LabelError
from ramify.learners import HierarchicalSVM
from ramify.learners.structured import problem
from ramify.learners.structured import problem as joint_problem


def solve_slowly(small, margin):
    paths = path_sums.class_paths(path_sums.units_of(small.parents, small.ends))
    n_units = len(path_sums.units_of(small.parents, small.ends))
    return path_sums.solve(paths, n_units, small.with_bias(), small.ends, small.costs, margin)


def fit(small, **settings):
    settings = {"C": small.C, "tol": 1e-5, "max_iter": 5000} | settings
    return HierarchicalSVM(small.taxonomy, **settings).fit(small.X, small.names, small.weights)


def objective_of(fitted, small, margin):
    """The objective of the weights as they are kept, by the slow twin."""
    weights = fitted.weights_
    W = np.column_stack([weights.deltas.toarray(), weights.bias])
    paths = {int(node): weights.path_of(int(unit)) for node, unit in zip(fitted.class_nodes_, weights.class_units, strict=True)}
    return path_sums.objective(W, paths, small.with_bias(), small.ends, small.costs, margin)


@pytest.mark.parametrize("margin", ["tree", "one"])
@each_seed(25)
def test_the_objective_is_that_of_the_slow_twin(seed, margin):
    small = draw_small(seed)
    if len({end for end, weight in zip(small.ends, small.weights, strict=True) if weight}) < 2:
        pytest.skip("only one class has weight")
    _, best, bound = solve_slowly(small, margin)
    fitted = fit(small, margin=margin)
    assert fitted.gap_.dual <= best * (1 + 1e-6)
    assert bound * (1 - 1e-6) <= fitted.gap_.primal <= best * (1 + 2e-5)
    assert objective_of(fitted, small, margin) == pytest.approx(fitted.gap_.primal, rel=1e-5)


@given(seed=st.integers(100, 100_000))
@settings(max_examples=30)
def test_no_weights_beat_the_bound_nor_do_ours_miss_it_by_more_than_the_gap(seed):
    small = draw_small(seed)
    fitted = fit(small, tol=1e-4)
    _, best, _ = solve_slowly(small, "tree")
    assert fitted.gap_ <= 1e-4
    assert fitted.gap_.dual <= best * (1 + 1e-6) + 1e-9
    assert fitted.gap_.primal <= best * (1 + 1.1e-4) + 1e-9


def flat_problem(seed=3, n_classes=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, size=60)
    X = (rng.normal(size=(60, 6)) + 1.5 * np.eye(6)[y]).astype(np.float32)
    return X, np.asarray([f"c{label}" for label in y])


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("margin", ["tree", "one"])
def test_without_a_hierarchy_it_is_the_machine_of_crammer_and_singer(C, margin):
    X, y = flat_problem()
    with_constant = np.column_stack([X, np.ones(len(X))])
    peer = LinearSVC(multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-8, max_iter=100_000).fit(with_constant, y)
    ours = HierarchicalSVM(C=C, margin=margin, tol=1e-7, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.scores(X), with_constant @ peer.coef_.T, atol=2e-3)


@pytest.mark.parametrize("length", [2, 3])
def test_a_chain_above_every_class_only_weakens_the_pull_to_zero(length):
    # by symmetry all units of a chain have the same weights, f / length each, so the penalty is that of f over the length
    X, y = flat_problem()
    chains = Taxonomy.from_paths(["/".join([f"{name}{k}" for k in range(length - 1)] + [name]) for name in sorted(set(y))])
    ends = {name.split("/")[-1]: name for name in chains.names}
    deep = HierarchicalSVM(chains, C=0.1, margin="one", tol=1e-6, max_iter=10_000).fit(X, [ends[name] for name in y])
    flat = HierarchicalSVM(C=0.1 * length, margin="one", tol=1e-6, max_iter=10_000).fit(X, y)
    assert deep.gap_.primal == pytest.approx(flat.gap_.primal / length, rel=1e-5)


@pytest.mark.parametrize(("margin", "largest"), [("tree", 2), ("one", 1)])
def test_the_margin_of_the_tree_is_half_the_edges_between_classes(margin, largest):
    tree = Taxonomy.from_paths(["a/x", "a/y", "b/z"])
    fitted = HierarchicalSVM(tree, C=1e-4, margin=margin).fit(np.eye(3), ["a/x", "a/y", "b/z"])
    # with a tiny C all weights are nearly 0, so every document loses its largest margin: two edges up and two down, halved
    assert fitted.gap_.primal == pytest.approx(1e-4 * 3 * largest, rel=1e-2)


def test_order_and_repeated_documents_change_nothing_at_all():
    X, y = flat_problem()
    order = np.random.default_rng(0).permutation(len(X))
    twice = np.concatenate([order, order[:20]])
    weights = np.ones(len(X))
    weights[order[:20]] = 2
    straight = HierarchicalSVM().fit(X, y, weights)
    shuffled = HierarchicalSVM().fit(X[twice], y[twice])
    np.testing.assert_allclose(straight.scores(X), shuffled.scores(X), rtol=1e-6)


def test_different_documents_that_share_a_hash_stay_apart(monkeypatch):
    X, y = flat_problem()
    primal = HierarchicalSVM(tol=1e-6).fit(X, y).gap_.primal
    monkeypatch.setattr(problem, "row_hashes", lambda X: np.zeros(X.shape[0], dtype=np.uint64))
    assert HierarchicalSVM(tol=1e-6).fit(X, y).gap_.primal == pytest.approx(primal, rel=2e-6)


def test_few_dense_features_far_from_zero_are_solved_too():
    rng = np.random.default_rng(0)
    X = rng.normal(loc=100, size=(80, 2)).astype(np.float32)
    y = np.where(X[:, 0] + X[:, 1] > 200, "high", np.where(X[:, 0] > 100, "right", "left"))
    assert HierarchicalSVM().fit(X, y).gap_ <= 1e-3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("size", [1e8, 1e15])
def test_features_too_large_for_second_order_steps_leave_what_ascent_has_found(size):
    X, y = flat_problem()
    fitted = HierarchicalSVM(max_iter=40).fit(size * X, y)
    assert np.isfinite(fitted.scores(X)).all()
    assert 0 <= fitted.gap_.dual <= fitted.gap_.primal


def test_classes_that_all_weigh_nothing_leave_all_weights_at_zero():
    X, y = flat_problem()
    fitted = HierarchicalSVM(class_weight=dict.fromkeys(y.tolist(), 0)).fit(X, y)
    assert fitted.gap_.primal == 0
    assert not fitted.scores(X).any()


def test_a_class_that_weighs_nothing_at_the_lowest_costs_joins_at_higher_ones():
    X, y = flat_problem()
    fitted = HierarchicalSVM(C="auto", class_weight={"c1": 1e-43}).fit(X, y)
    assert fitted.gap_ <= 1e-3


def test_a_larger_c_starts_from_a_smaller_one_and_the_best_is_kept():
    X, y = flat_problem()
    fitted = HierarchicalSVM(C="auto").fit(X, y)
    assert max(fitted.C_scores_, key=lambda C: (fitted.C_scores_[C], -C)) == fitted.C_
    np.testing.assert_allclose(fitted.scores(X), HierarchicalSVM(C=fitted.C_).fit(X, y).scores(X))


def test_probabilities_are_a_softmax_of_the_scores():
    X, y = flat_problem()
    fitted = HierarchicalSVM().fit(X, y)
    shares = np.exp(fitted.scores(X).astype(np.float64))
    np.testing.assert_allclose(fitted.predict_proba(X), shares / shares.sum(axis=1, keepdims=True), atol=1e-6)


def test_what_it_cannot_take_is_refused_in_one_sentence(food, monkeypatch):
    X = np.eye(4)
    with pytest.raises(
        LabelError, match="1 of 4 documents have multiple labels or none, number 2 the first; hsvm takes one label per document"
    ):
        HierarchicalSVM(food).fit(X, [["drink"], ["drink", "food/bread"], ["drink"], ["food/bread"]])
    with pytest.raises(LabelError, match="number 3 the first"):
        HierarchicalSVM(food).fit(X, [["drink"], ["food/bread"], [], ["food/bread"]])
    with pytest.raises(InputError, match="margin is 'two'; give 'tree' or 'one'"):
        HierarchicalSVM(margin="two").fit(X, list("abca"))
    monkeypatch.setattr(joint_problem, "MOST_NUMBERS", 10)
    with pytest.raises(InputError, match="hsvm would hold weights for 3 units × 5 features.*use system='hr-svm', which scales"):
        HierarchicalSVM().fit(X, list("abca"))


def test_it_is_saved_and_loaded_and_explains_itself(tmp_path, shop):
    texts, labels = shop.train.documents[:300], shop.train.labels[:300]
    one = [row[0] for row in labels]
    fitted = TextClassifier("hsvm", shop.taxonomy).fit(texts, one)
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.predict(texts[:20]).tolist() == fitted.predict(texts[:20]).tolist()
    assert again.learner_.gap_ == fitted.learner_.gap_
    values, arrays = fitted.learner_.state()
    values["parameters"]["margin"] = "two"
    with pytest.raises(InputError, match="margin is 'two'"):
        HierarchicalSVM.from_state(shop.taxonomy, values, arrays)
    x = fitted.vectorizer_.transform(texts[:1])
    node = int(fitted.learner_.class_nodes_[0])
    _, adds, bias = fitted.learner_.contributions(csr_array(x), node)
    assert adds.sum() + bias == pytest.approx(float(fitted.learner_.scores(x)[0, node]), abs=1e-4)
