"""Linear learners: parameters, costs, selection of C, weights, explanations, saving and loading."""

import subprocess
import sys
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles import recursive_regularization as oracle
from scipy.sparse import csc_array, csr_array, hstack, random_array, vstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score

from ramify import Taxonomy
from ramify.data import make_web_directory
from ramify.errors import InputError, LabelError, ModelError
from ramify.learners import OneVsRestLogistic, OneVsRestSVM, RecursiveLogistic, RecursiveSVM, TopDownSVM
from ramify.learners.base import _k_best
from ramify.learners.linear import dual_solver, select_C, weights
from ramify.learners.linear.candidates import count_candidates, learn_signatures
from ramify.learners.linear.problem import Settings, arrange_rows
from ramify.learners.linear.select_C import FOLDS, GRID, cross_validate_C, split_folds
from ramify.learners.linear.training import Setup, weigh_classes
from ramify.learners.linear.weights import Weights
from ramify.parallel import choose_executor

LEARNERS = [OneVsRestSVM, OneVsRestLogistic, RecursiveSVM, RecursiveLogistic, TopDownSVM]
TAXONOMY = Taxonomy.from_paths(["a/x", "a/y", "b/z", "c"])
LABELS = ("a", "a/x", "a/y", "b/z", "c")


def problem(n_features, n_docs=30, seed=0):
    """Documents that know a little of their labels; few features make them dense, many sparse."""
    rng = np.random.default_rng(seed)
    names = [LABELS[i] for i in rng.integers(0, len(LABELS), n_docs)]
    X = random_array((n_docs, n_features), density=min(1, 10 / n_features), rng=rng, format="csr").toarray()
    for i, name in enumerate(names):
        X[i, LABELS.index(name)] += 0.7
    return csr_array(X.astype(np.float32)), names


@pytest.fixture(params=[8, 300], ids=["dense", "sparse"])
def documents(request):
    """Dense documents of few features, and sparse ones of many: there is a solver for each."""
    return problem(request.param)


@cache
def fit_once(learner, n_features, fit_intercept=True):
    return learner(TAXONOMY, fit_intercept=fit_intercept).fit(*problem(n_features))


def close(X):
    """A tolerance with which scores can be compared; second-order steps on few features go far beyond theirs anyway."""
    return 1e-3 if X.shape[1] < 100 else 1e-6


# ---- parameters -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        *[
            ({"C": C}, "C is .*; give a number above 0, such as 1 .*or 'auto'")
            for C in (0, -1, np.nan, np.inf, None, "best", True)
        ],
        *[({"tol": tol}, "tol is .*; give a relative duality gap between 0 and 1") for tol in (0, 1, -1, np.nan, None, "x")],
        *[({"max_iter": n}, "max_iter is .*; give a whole number from 1 to") for n in (0, -1, 1.5, None, "x")],
        *[({"mode": mode}, "mode is .*; give 'exact' or 'fast'") for mode in ("slow", None, 1)],
        *[({"fit_intercept": yes}, "fit_intercept is .*; give true or false") for yes in (None, 1, "yes")],
        *[({"random_state": s}, "random_state is .*; give a whole number from 0 to") for s in (-1, 1.5, "x")],
        *[({"class_weight": w}, "class_weight is .*; give None, 'balanced' or a weight by class name") for w in ("even", 3)],
        *[({"class_weight": {"a": w}}, "class_weight of 'a' is .*; give a number from 0 to") for w in (-1, np.nan, "x")],
    ],
    ids=str,
)
def test_an_invalid_parameter_is_refused_in_one_sentence(learner, parameters, message):
    with pytest.raises(InputError, match=f"^{message}") as error:
        learner(**parameters).fit(np.eye(3), ["a", "b", "c"])
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("learner", [OneVsRestSVM, RecursiveSVM, TopDownSVM])
def test_an_unknown_loss_is_refused_with_the_nearest_known(learner):
    with pytest.raises(InputError, match="loss is 'hing'; give one of 'hinge', 'squared_hinge'.*Did you mean 'hinge'"):
        learner(loss="hing").fit(np.eye(2), ["a", "b"])


def test_a_weight_of_an_unknown_class_is_refused():
    with pytest.raises(LabelError, match="label 'z' is not in the taxonomy"):
        OneVsRestSVM(class_weight={"z": 2}).fit(np.eye(2), ["a", "b"])


@pytest.mark.parametrize(
    "parameters",
    [{"loss": ["hinge"]}, {"max_iter": 10**30}, {"random_state": 2**70}, {"C": 1e39}, {"class_weight": {"a": 1e39}}],
    ids=str,
)
def test_a_parameter_too_large_for_the_kernels_is_refused(parameters):
    X, names = problem(300)
    with pytest.raises(InputError):
        OneVsRestSVM(**parameters).fit(X, names)


# ---- costs ----------------------------------------------------------------------------------------------------------------


def costs_of(class_weight, own, sample_weight, C=2.0):
    taxonomy, setup = Taxonomy.flat(["a", "b", "c"]), SimpleNamespace(C=C, class_weight=class_weight)
    return weigh_classes(csr_array(own).tocsc(), setup, taxonomy, np.arange(own.shape[1]), np.asarray(sample_weight, float))


@given(
    hnp.arrays(bool, st.tuples(st.integers(1, 8), st.just(3))),
    st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=8, max_size=8),
)
def test_balanced_costs_are_total_weight_over_classes_times_the_weight_of_a_class(own, sample_weight):
    w = np.asarray(sample_weight[: len(own)])
    costs = costs_of("balanced", own, w)
    for c in range(3):
        if own[:, c].any():
            assert costs.positive[c] == pytest.approx(2.0 * w.sum() / (3 * w[own[:, c]].sum()))
    assert costs.negative.tolist() == [2, 2, 2]
    assert costs.documents.tolist() == w.tolist()


def test_weights_by_class_name_count_for_its_own_documents_only():
    costs = costs_of({"b": 5, "c": 0}, np.eye(3, dtype=bool), [1, 1, 1])
    assert (costs.positive.tolist(), costs.negative.tolist()) == ([2, 10, 0], [2, 2, 2])


@pytest.mark.parametrize("learner", [OneVsRestSVM, OneVsRestLogistic, RecursiveSVM, RecursiveLogistic])
def test_balanced_is_the_same_as_its_formula_by_name(learner):
    X, names = problem(300)
    n_classes = len(set(names))
    by_name = {name: len(names) / (n_classes * names.count(name)) for name in set(names)}
    balanced, listed = (learner(TAXONOMY, class_weight=w, tol=close(X)).fit(X, names) for w in ("balanced", by_name))
    np.testing.assert_allclose(balanced.scores(X), listed.scores(X), atol=1e-3)


@pytest.mark.parametrize(
    ("learner", "n_features"), [*((learner, 300) for learner in LEARNERS), (OneVsRestSVM, 8), (TopDownSVM, 8)]
)
def test_a_document_of_weight_zero_is_as_if_it_were_absent(learner, n_features):
    X, names = problem(n_features)
    weight = (np.arange(len(names)) % 4 > 0).astype(float)
    kept = np.flatnonzero(weight)
    assert {names[i] for i in kept} == set(names)
    weighted = learner(TAXONOMY, tol=close(X)).fit(X, names, sample_weight=weight)
    absent = learner(TAXONOMY, tol=close(X)).fit(X[kept], [names[i] for i in kept])
    np.testing.assert_allclose(weighted.scores(X), absent.scores(X), atol=0.01)


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_document_of_weight_two_is_as_if_it_came_twice(learner):
    X, names = problem(300)
    rows = [*range(len(names)), *range(0, len(names), 3)]
    weight = np.bincount(rows).astype(float)
    weighted = learner(TAXONOMY, tol=close(X)).fit(X, names, sample_weight=weight)
    twice = learner(TAXONOMY, tol=close(X)).fit(X[rows], [names[i] for i in rows])
    np.testing.assert_allclose(weighted.scores(X), twice.scores(X), atol=0.01)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_document_without_features_and_without_a_bias_has_the_loss_at_zero():
    X = csr_array(np.vstack([problem(300)[0].toarray(), np.zeros((1, 300))]).astype(np.float32))
    fitted = OneVsRestSVM(TAXONOMY, fit_intercept=False).fit(X, [*problem(300)[1], "c"])
    assert fitted.gap_ <= 1e-3


@pytest.mark.parametrize("learner", LEARNERS)
def test_features_that_no_document_has_change_nothing(learner):
    """Few features and many have solvers of their own; these find the same."""
    X, names = problem(8)
    wider = csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], 300))
    few, many = fit_once(learner, 8), learner(TAXONOMY, tol=1e-6).fit(wider, names)
    np.testing.assert_allclose(many.scores(wider), few.scores(X), atol=0.01)
    assert many.gap_.primal == pytest.approx(few.gap_.primal, rel=1e-5)


@pytest.mark.parametrize("learner", [OneVsRestLogistic, RecursiveLogistic])
@pytest.mark.parametrize("C", [1e-6, 1e2, 1e4])
def test_the_gap_is_reached_for_costs_that_make_the_logistic_dual_steep(learner, C):
    X, names = problem(300, n_docs=60)
    assert learner(TAXONOMY, C=C).fit(csr_array(20 * X), names).gap_ <= 1e-3


# ---- C by cross-validation --------------------------------------------------------------------------------------------------


AUTO = [(OneVsRestSVM, 8), (TopDownSVM, 8)]


@pytest.mark.parametrize(("learner", "n_features"), AUTO)
def test_the_selected_cost_is_the_best_of_separate_cross_validations_on_the_same_folds(learner, n_features, monkeypatch):
    monkeypatch.setattr(select_C, "GRID", costs := (0.01, 10.0))
    monkeypatch.setattr(select_C, "HALF_STEP", 1e6)
    monkeypatch.setattr(select_C, "LOOSE", 0.0)
    X, names = problem(n_features, n_docs=110)
    tol = 1e-3 if n_features < 100 else 1e-4
    fitted = learner(TAXONOMY, C="auto", tol=tol).fit(X, names)
    own = csr_array([[TAXONOMY.index(name) == node for node in range(len(TAXONOMY))] for name in names])
    true, given = [], {C: [] for C in costs}
    for learnt, held_out in split_folds(own, 0):
        true += [names[i] for i in held_out]
        for C in costs:
            alone = learner(TAXONOMY, C=C, tol=tol).fit(X[learnt], [names[i] for i in learnt])
            given[C] += alone.predict(X[held_out]).tolist()
    assert list(fitted.C_scores_) == list(costs)
    for C in costs:
        both = [f1_score(true, given[C], average=average, zero_division=0) for average in ("micro", "macro")]
        assert fitted.C_scores_[C] == pytest.approx(np.mean(both))
    best = max(fitted.C_scores_.values())
    assert min(C for C in costs if fitted.C_scores_[C] == best) == fitted.C_
    plain = learner(TAXONOMY, C=fitted.C_, tol=tol).fit(X, names)
    np.testing.assert_allclose(fitted.scores(X), plain.scores(X), atol=1e-5)


@given(st.lists(st.sets(st.integers(0, 3), max_size=2), min_size=1, max_size=20), st.integers(0, 5))
def test_folds_hold_out_each_document_once_at_most_and_train_on_every_class_in_each(labels, seed):
    own = np.zeros((len(labels), 4), dtype=bool)
    for i, row in enumerate(labels):
        own[i, list(row)] = True
    folds = list(split_folds(csr_array(own), seed))
    assert len(folds) <= FOLDS
    held = [i for _, held_out in folds for i in held_out.tolist()]
    assert len(set(held)) == len(held)
    assert all(labels[i] for i in held)
    for learnt, held_out in folds:
        assert np.array_equal(own[learnt].any(axis=0), own.any(axis=0))
        assert sorted([*learnt.tolist(), *held_out.tolist()]) == list(range(len(labels)))


def try_costs(quality, n=30):
    """What is chosen if a cost gets the share `quality[C]` of the held-out documents right, and the costs as they were tried."""
    own, tried = csr_array(np.eye(3, dtype=bool)[np.arange(n) % 3]), []

    def attempt(learnt, held_out, setup, last):
        assert not set(learnt) & set(held_out)
        before = [C for C in tried if C != setup.C]
        assert last == ((learnt.tolist(), before[-1]) if before else None)
        tried.extend([setup.C] if setup.C not in tried else [])
        given = own[held_out].toarray()
        wrong = np.arange(len(held_out)) >= round(quality.get(setup.C, 0) * len(held_out))
        given[wrong] = np.roll(given[wrong], 1, axis=1)
        return csr_array(given), (learnt.tolist(), setup.C)

    best, found = cross_validate_C(own, Setup(1.0, None, Settings(), True, None), attempt)
    assert list(found) == sorted(tried)
    return best, tried


def test_costs_are_tried_upwards_until_quality_falls_and_then_around_the_best():
    half = 10**0.5
    assert try_costs({}) == (1.0, list(GRID))  # nothing is ever right
    assert try_costs(dict.fromkeys(GRID, 0.5)) == (GRID[0], [*GRID, GRID[0] * half])
    assert try_costs({0.01: 0.9, 1.0: 0.3, 10.0: 0.4}) == (0.01, [*GRID[:5], 0.01 / half, 0.01 * half])
    assert try_costs({0.1: 0.5, 1.0: 0.9, 10.0: 0.8, 100.0: 1.0}) == (1.0, [*GRID[:5], 1 / half, half])
    assert try_costs({1.0: 0.9, 10.0: 0.7, half: 1.0}) == (half, [*GRID[:5], 1 / half, half])
    assert try_costs({1.0: 0.8, 10.0: 0.8, 100.0: 1.0}) == (100.0, [*GRID, 100 / half, 100 * half])


def test_multi_label_documents_are_given_all_classes_above_zero_and_the_best():
    scores = np.asarray([[-1, -2, -3], [1, 2, -1], [0, -1, 0.5]], dtype=np.float32)
    weights = SimpleNamespace(class_units=np.arange(3))
    trained = SimpleNamespace(weights=weights, score=lambda X: scores[X.toarray().ravel().astype(int)])
    X = csr_array(np.arange(3, dtype=np.float32)[:, None])
    for at_once in (1, 6, 100):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(select_C, "MOST_SCORES", at_once)
            assert select_C.predict_classes(trained, X, is_multi_label=True).toarray().tolist() == [
                [1, 0, 0],
                [1, 1, 0],
                [0, 0, 1],
            ]
            assert select_C.predict_classes(trained, X, is_multi_label=False).toarray().tolist() == [
                [1, 0, 0],
                [0, 1, 0],
                [0, 0, 1],
            ]


def test_with_nothing_to_hold_out_the_cost_is_the_first():
    assert OneVsRestSVM(C="auto").fit(np.eye(3), ["a", "b", "c"]).C_ == 3


# ---- the best nodes -------------------------------------------------------------------------------------------------------


@given(st.data(), st.integers(0, 4), st.integers(1, 7), st.integers(1, 9))
def test_the_k_best_are_the_first_of_a_full_sort(data, n_docs, n_nodes, k):
    few = st.sampled_from([np.nan, -np.inf, -1, 0, 0.5, 2])
    S = data.draw(hnp.arrays(np.float32, (n_docs, n_nodes), elements=few))
    nodes, best = _k_best(S, k)
    for row, found, values in zip(S.tolist(), nodes.tolist(), best.tolist(), strict=True):
        there = [node for node, score in enumerate(row) if score > -np.inf]
        expected = sorted(there, key=lambda node: (-row[node], node))[:k]
        assert found == expected + [-1] * (k - len(expected))
        assert values == [row[node] for node in expected] + [-np.inf] * (k - len(expected))


@pytest.mark.parametrize("learner", [OneVsRestSVM, RecursiveSVM])
def test_top_k_is_the_head_of_the_sorted_scores(learner, documents):
    X, _ = documents
    fitted = fit_once(learner, X.shape[1])
    S = np.nan_to_num(fitted.scores(X), nan=-np.inf)
    nodes, scores = fitted.top_k(X, 3)
    np.testing.assert_array_equal(nodes, np.argsort(-S, axis=1, kind="stable")[:, :3])
    np.testing.assert_array_equal(scores, np.take_along_axis(S, nodes, axis=1))
    assert np.all(fitted.top_k(X, 9)[0][:, len(LABELS) :] == -1)
    for k in (0, -1, 1.5, "x", None):
        with pytest.raises(InputError, match="k is .*; give a whole number of 1 or more"):
            fitted.top_k(X, k)


@pytest.mark.parametrize("learner", [OneVsRestSVM, OneVsRestLogistic, RecursiveSVM, RecursiveLogistic])
def test_top_terms_are_the_positive_weights_in_falling_order(learner, documents):
    X, _ = documents
    fitted = fit_once(learner, X.shape[1])
    for name in LABELS:
        node = TAXONOMY.index(name)
        w = weights_of_class(fitted, node)[0]
        terms = fitted.top_terms(name, n=5)
        assert terms == fitted.top_terms(node, n=5)
        assert [f for f, _ in terms] == [f for f in np.argsort(-w, kind="stable")[:5] if w[f] > 0]
        assert [weight for _, weight in terms] == [w[f] for f, _ in terms]
        words = [f"word {f}" for f in range(X.shape[1])]
        assert [word for word, _ in fitted.top_terms(name, 5, words)] == [f"word {f}" for f, _ in terms]


def weights_of_class(fitted, node):
    unit = fitted.weights_.class_units[fitted.class_nodes_.tolist().index(node)]
    return fitted.weights_.of_unit(int(unit))


@pytest.mark.parametrize("learner", LEARNERS)
def test_terms_of_a_node_without_a_classifier_are_refused(learner, documents):
    fitted = fit_once(learner, documents[0].shape[1])
    with pytest.raises(
        InputError, match="node 'b/z' has no classifier" if learner is TopDownSVM else "node 'b' has no classifier"
    ):
        fitted.top_terms("b/z" if learner is TopDownSVM else "b")
    with pytest.raises(LabelError, match="'nowhere' is not in the taxonomy"):
        fitted.top_terms("nowhere")


# ---- weights --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [OneVsRestSVM, OneVsRestLogistic, RecursiveSVM, RecursiveLogistic])
@pytest.mark.parametrize("table", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_scores_are_the_sums_of_weights_along_paths(learner, documents, table, fit_intercept, monkeypatch):
    X, _ = documents
    fitted = fit_once(learner, X.shape[1], fit_intercept)
    if not table:
        monkeypatch.setattr(weights, "MAX_TABLE", 0)
    kept, S = fitted.weights_, fitted.scores(X)
    for k, node in enumerate(fitted.class_nodes_):
        w, bias, unit = np.zeros(X.shape[1]), 0.0, int(kept.class_units[k])
        while unit >= 0:
            w, bias, unit = w + kept.deltas[[unit]].toarray().ravel(), bias + kept.bias[unit], int(kept.parent[unit])
        np.testing.assert_allclose(S[:, node], X @ w + bias, rtol=1e-4, atol=1e-5)
        assert fit_intercept or bias == 0
        features, parts, rest = fitted.contributions(X[[0]], node)
        assert parts.sum() + rest == pytest.approx(S[0, node], abs=1e-4)
        assert features.tolist() == X[[0]].indices.tolist()


@pytest.mark.parametrize("learner", LEARNERS)
def test_training_that_stops_early_says_how_far_it_came_and_what_to_do(learner, documents):
    said = (
        r"^training stopped after \d+ rounds at a relative duality gap of [\d.e+-]+, above tol=1e-09; "
        r"raise max_iter, lower C, or accept the gap by raising tol\.$"
    )
    with pytest.warns(ConvergenceWarning, match=said):
        learner(TAXONOMY, C=1000, tol=1e-9, max_iter=1).fit(*documents)


def objective(fitted, X, names, loss):
    """Of flat weights, with C = 1."""
    W = np.column_stack([fitted.weights_.deltas.toarray(), fitted.weights_.bias])
    signs = np.where([[TAXONOMY.index(name) == node for node in fitted.class_nodes_] for name in names], 1.0, -1.0)
    dense = np.column_stack([X.toarray().astype(float), np.ones(X.shape[0])])
    return oracle.objective(W, np.eye(len(W)), dense, signs, np.ones(signs.shape), np.arange(len(W)), loss)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_gap_is_that_of_the_returned_weights(loss, documents):
    X, names = documents
    fitted = OneVsRestSVM(TAXONOMY, loss=loss).fit(X, names)
    assert fitted.gap_ <= 1e-3
    assert objective(fitted, X, names, loss) == pytest.approx(fitted.gap_.primal, rel=1e-4)


@pytest.fixture
def candidate_pairs_only(monkeypatch):
    monkeypatch.setattr(dual_solver, "SMALL", 0)
    monkeypatch.setattr(dual_solver, "CANDIDATES", 1)
    monkeypatch.setattr(dual_solver, "CANDIDATES", 1)


@pytest.mark.usefixtures("candidate_pairs_only")
def test_the_bound_of_the_fast_mode_holds_for_the_whole_problem():
    X, names = problem(300)
    fast, exact = (OneVsRestSVM(TAXONOMY, mode=mode, tol=1e-4).fit(X, names) for mode in ("fast", "exact"))
    assert fast.gap_.dual <= exact.gap_.primal
    assert objective(fast, X, names, "hinge") >= exact.gap_.dual


@pytest.mark.usefixtures("candidate_pairs_only")
def test_the_gap_of_the_fast_mode_is_that_of_the_returned_weights():
    X, names = problem(300)
    fast = OneVsRestSVM(TAXONOMY, mode="fast").fit(X, names)
    assert objective(fast, X, names, "hinge") <= fast.gap_.primal * 1.01


def nearest(fitted, x, count):
    """The classes whose signatures a document shares most, of those that share a feature with it."""
    table = np.zeros((len(fitted.class_nodes_), X_WIDTH))
    for f in range(X_WIDTH):
        here = slice(*fitted.signatures_.offsets[f : f + 2])
        table[fitted.signatures_.classes[here], f] = fitted.signatures_.weights[here]
    there = np.flatnonzero((table != 0) @ (x != 0))
    return sorted(there, key=lambda c: (-(table[c] @ x), c))[:count]


X_WIDTH = 300


@pytest.mark.parametrize("learner", [OneVsRestSVM, RecursiveSVM])
@pytest.mark.usefixtures("candidate_pairs_only")
def test_the_fast_mode_scores_candidate_classes_and_gives_all_others_a_negative_score(learner):
    X, names = problem(X_WIDTH)
    fitted = learner(TAXONOMY, mode="fast").fit(X, names)
    fitted.n_candidates_ = 2
    asked = vstack([X[:20], csr_array((1, X_WIDTH), dtype=np.float32)], format="csr")
    full, S = fitted.weights_.score(asked), fitted.scores(asked)[:, fitted.class_nodes_]
    for row, (x, all_scores, found) in enumerate(zip(asked.toarray(), full, S, strict=True)):
        near = nearest(fitted, x, 2)
        expected = np.full(len(found), min([-1.0, *all_scores[near]]))
        expected[near] = all_scores[near]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=f"document {row}")
    best = fitted.class_nodes_[S.argmax(axis=1)]
    np.testing.assert_array_equal(fitted._predict_nodes(asked)[:20], best[:20])
    assert fitted._predict_nodes(asked)[20] == fitted.class_nodes_.min()
    nodes, scores = fitted.search(asked, k=3, width=5)
    assert (nodes[:, 2] == -1).all()
    assert np.isneginf(scores[:, 2]).all()


@pytest.mark.usefixtures("candidate_pairs_only")
def test_the_fast_mode_predicts_the_best_score_for_any_number_of_candidates():
    rng = np.random.default_rng(0)
    X, asked = rng.random((2, 120, 400)).astype(np.float32)  # every class is near to everything
    fitted = OneVsRestSVM(mode="fast").fit(X, [f"c{k % 40:02}" for k in range(120)])
    fitted.weights_.bias[:] = -5  # far below -1, where all that is not near must stay behind
    for width in (1, 5, 20):
        fitted.n_candidates_ = width
        np.testing.assert_array_equal(fitted.predict(asked), fitted.classes_[np.nanargmax(fitted.scores(asked), axis=1)])


@pytest.mark.usefixtures("candidate_pairs_only")
def test_a_fast_model_is_the_same_after_loading():
    X, names = problem(X_WIDTH)
    fitted = OneVsRestSVM(TAXONOMY, mode="fast").fit(X, names)
    again = OneVsRestSVM.from_state(TAXONOMY, *fitted.state())
    assert again.n_candidates_ == fitted.n_candidates_ > 0
    np.testing.assert_array_equal(again.scores(X), fitted.scores(X))


@pytest.mark.parametrize("spoilt", ["another type", "2-d", "empty", "shorter", "longer", "first too small", "last too large"])
@pytest.mark.parametrize("name", ["signature_offsets", "signature_classes", "signature_weights"])
@pytest.mark.usefixtures("candidate_pairs_only")
def test_invalid_signatures_are_refused(name, spoilt):
    values, arrays = OneVsRestSVM(TAXONOMY, mode="fast").fit(*problem(X_WIDTH)).state()
    with pytest.raises(ModelError, match="train"):
        OneVsRestSVM.from_state(TAXONOMY, values, arrays | {name: SPOILT[spoilt](arrays[name])})


def test_enough_candidates_are_scored_to_include_the_true_classes():
    classes, features = np.arange(60) % 30, np.eye(30, dtype=np.float32)
    own = csr_array((np.ones(60, dtype=bool), classes, np.arange(61)), shape=(60, 30))
    told = arrange_rows(csr_array(features[classes]), bias=False)
    assert count_candidates(told, learn_signatures(told, csc_array(own), choose_executor(1)), own, choose_executor(1)) == 5
    same = arrange_rows(csr_array(np.tile(features.sum(axis=0), (60, 1))), bias=False)  # and no signature at all
    assert count_candidates(same, learn_signatures(told, csc_array(own), choose_executor(1)), own, choose_executor(1)) == 20


# ---- keeping --------------------------------------------------------------------------------------------------------------


@cache
def state(learner=RecursiveSVM):
    return fit_once(learner, 300).state()


def changed(array, place, number):
    made = array.copy()
    made[place] = number
    return made


SPOILT = {
    "another type": lambda a: a.astype(np.int16 if a.dtype.kind == "i" else np.float16),
    "2-d": lambda a: a[None, :],
    "0-d": lambda a: np.asarray(a[0]),
    "empty": lambda a: a[:0],
    "shorter": lambda a: a[:-1],
    "longer": lambda a: np.append(a, a[-1:]),
    "first too small": lambda a: changed(a, 0, np.iinfo(a.dtype).min if a.dtype.kind == "i" else -np.inf),
    "last too large": lambda a: changed(a, -1, np.iinfo(a.dtype).max if a.dtype.kind == "i" else np.inf),
    "not a number": lambda a: changed(a, 0, -2 if a.dtype.kind == "i" else np.nan),
}


@pytest.mark.parametrize("learner", [OneVsRestSVM, RecursiveSVM])
@pytest.mark.parametrize("spoilt", SPOILT)
@pytest.mark.parametrize(
    "name", ["delta_offsets", "delta_features", "delta_values", "unit_bias", "unit_parent", "class_units", "class_nodes"]
)
def test_invalid_arrays_are_refused(learner, name, spoilt):
    values, arrays = state(learner)
    with pytest.raises(ModelError, match="train"):
        learner.from_state(TAXONOMY, values, arrays | {name: SPOILT[spoilt](arrays[name])})


def test_a_unit_below_itself_or_a_later_one_is_refused():
    values, arrays = state()
    for unit, parent in ((1, 1), (0, 1)):
        spoilt = arrays | {"unit_parent": changed(arrays["unit_parent"], unit, parent)}
        with pytest.raises(ModelError, match="a unit's parent of the linear model has a number outside"):
            RecursiveSVM.from_state(TAXONOMY, values, spoilt)


def test_a_class_at_two_nodes_or_a_parameter_too_many_is_refused():
    values, arrays = state()
    with pytest.raises(ModelError, match="classes of the linear model do not fit"):
        RecursiveSVM.from_state(TAXONOMY, values, arrays | {"class_nodes": np.zeros_like(arrays["class_nodes"])})
    with pytest.raises(ModelError, match="parameters of the linear model"):
        RecursiveSVM.from_state(TAXONOMY, values | {"parameters": values["parameters"] | {"more": 1}}, arrays)


HOSTILE_OFFSETS = """
import numpy as np
from scipy.sparse import csr_array
from ramify.errors import ModelError
from ramify.learners.linear.weights import Weights

large = 2**63 - 1
arrays = {
    "delta_offsets": np.array([0, large, -large - 1, -1, 2]),  # 64-bit differences wrap, so that none is below zero
    "delta_features": np.array([0, 1], np.int32), "delta_values": np.ones(2, np.float32), "unit_bias": np.zeros(4),
    "unit_parent": np.full(4, -1, np.int32), "class_units": np.arange(4),
}
try:
    Weights.from_arrays(arrays, 3).score(csr_array(np.ones((1, 3), np.float32)))
except ModelError:
    raise SystemExit(7)
"""


def test_offsets_so_far_apart_that_their_differences_wrap_are_refused():
    done = subprocess.run([sys.executable, "-c", HOSTILE_OFFSETS], capture_output=True, check=False)
    assert done.returncode == 7


def test_weights_are_the_same_after_loading():
    fitted = RecursiveSVM(TAXONOMY).fit(*problem(300))
    again = Weights.from_arrays(fitted.weights_.arrays(), 300)
    for name, array in fitted.weights_.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array)


# ---- threads --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("takes_all_pairs", [True, False])
def test_threads_change_nothing_beyond_the_gap_and_the_same_number_of_them_nothing_at_all(
    learner, takes_all_pairs, monkeypatch
):
    if not takes_all_pairs:
        monkeypatch.setattr(dual_solver, "SMALL", 0)
    made = make_web_directory(40, 400, seed=1)
    fits = {jobs: [learner(made.taxonomy, n_jobs=jobs).fit(made.X, made.Y) for _ in range(2)] for jobs in (1, 2, 4)}
    for first, again in fits.values():
        assert first.gap_ <= 1e-3
        for name, array in first.weights_.arrays().items():
            np.testing.assert_array_equal(again.weights_.arrays()[name], array, err_msg=name)
    gaps = [first.gap_ for first, _ in fits.values()]
    assert max(gap.dual for gap in gaps) <= min(gap.primal for gap in gaps) <= max(gap.dual for gap in gaps) / (1 - 1e-3)
    # the objective is 1-strongly convex in the deltas: weights within ε of the least one lie within √2ε of its weights
    far = max(gap.primal - gap.dual for gap in gaps)
    alone, *others = (hstack([first.weights_.deltas, first.weights_.bias[:, None]]) for first, _ in fits.values())
    for other in others:
        assert ((other - alone) ** 2).sum() <= 8 * far
