"""Support vector machines from the top down, and going down by their scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import top_down as oracle
from oracles.taxonomy import close_upward, most_specific
from scipy.sparse import csr_array, random_array
from sklearn.exceptions import ConvergenceWarning
from strategies import build, trees

from ramify import Taxonomy
from ramify.decisions import descend
from ramify.errors import InputError, LabelError, ModelError
from ramify.learners import OneVsRestSVM, TopDownSVM
from ramify.taxonomy import descend_by_probability

WIDE = 50  # wider than any tree here


def fit_random(parents, labels, seed=0, **parameters):
    """A learner of random documents with the labels given, one set of nodes a document."""
    rng, taxonomy = np.random.default_rng(seed), build(parents)
    X = csr_array(random_array((len(labels), 300), density=0.02, rng=rng, format="csr")).astype(np.float32)
    return TopDownSVM(taxonomy, tol=0.1, **parameters).fit(X, [[f"n{v}" for v in sorted(row)] for row in labels]), X


def conditionals_of(scores):
    """One list a document of P(node | parent), None where there is no score."""
    return [[None if not np.isfinite(s) else float(np.exp(np.float64(s))) for s in row] for row in scores]


@st.composite
def learnt(draw, several=True):
    """Parents, the label set of each document, and a learner of them with its documents."""
    parents = draw(trees(max_nodes=8, min_nodes=2))
    sets = st.sets(st.integers(0, len(parents) - 1), min_size=1, max_size=2 if several else 1)
    labels = draw(st.lists(sets, min_size=2, max_size=8))
    own = [deepest(parents, row) for row in labels]
    if len(set().union(*own)) < 2:
        labels = [*labels, *({n} for n in range(len(parents)))]
    return parents, labels, *fit_random(parents, labels, draw(st.integers(0, 1000)))


def deepest(parents, row):
    return most_specific(parents, row)


def staying(parents, labels):
    """Nodes with documents of their own."""
    return set().union(*(deepest(parents, row) for row in labels))


# ---- conditionals -------------------------------------------------------------------------------------------------------------


@given(learnt())
@settings(max_examples=40)
def test_the_probabilities_of_children_sum_to_one_minus_that_of_staying(case):
    parents, labels, fitted, X = case
    stays, rows = staying(parents, labels), conditionals_of(fitted.scores(X))
    for node in [-1, *range(len(parents))]:
        for row in rows:
            conditionals = [row[child] for child in oracle.ways_from(parents, node) if row[child] is not None]
            if not conditionals:
                continue
            assert 0 < sum(conditionals) <= 1 + 1e-5
            if node not in stays:
                assert sum(conditionals) == pytest.approx(1, abs=1e-5)
            else:
                assert sum(conditionals) < 1


@given(learnt())
@settings(max_examples=40)
def test_nodes_have_a_score_exactly_where_documents_lie_at_or_below_them(case):
    parents, labels, fitted, X = case
    alive = set().union(*(close_upward(parents, row) for row in labels))
    for row in fitted.scores(X):
        assert set(np.flatnonzero(np.isfinite(row)).tolist()) == alive


@given(learnt())
@settings(max_examples=40)
def test_a_probability_is_the_product_of_conditionals_on_the_path(case):
    parents, _, fitted, X = case
    P = fitted.predict_proba(X)
    for row, conditionals in zip(P, conditionals_of(fitted.scores(X)), strict=True):
        for node, above in enumerate(parents):
            expected = (conditionals[node] or 0.0) * (row[above[0]] if above else 1.0)
            assert row[node] == pytest.approx(expected, rel=1e-5, abs=1e-7)


# ---- descent ------------------------------------------------------------------------------------------------------------


@given(st.data(), trees())
def test_descend_by_probability_equals_the_oracle(data, parents):
    few = st.sampled_from([None, 0.0, 0.1, 0.25, 0.3, 0.5, 0.6, 1.0])
    rows = data.draw(st.lists(st.lists(few, min_size=len(parents), max_size=len(parents)), max_size=5))
    conditionals = np.asarray(rows, dtype=np.float32).reshape(len(rows), len(parents))
    with np.errstate(divide="ignore"):
        ends = descend_by_probability(np.log(conditionals), build(parents))
    again = [[None if not s > 0 else float(s) for s in row] for row in conditionals]
    assert ends.tolist() == [oracle.descend_by_probability(row, parents) for row in again]


@given(learnt())
@settings(max_examples=40)
def test_a_prediction_is_where_the_descent_ends_and_that_is_a_node_with_documents(case):
    parents, labels, fitted, X = case
    predicted = fitted.predict(X)
    expected = [oracle.descend_by_probability(row, parents) for row in conditionals_of(fitted.scores(X))]
    assert predicted == [[f"n{node}"] for node in expected]
    assert set(expected) <= staying(parents, labels)
    labels_below = descend(fitted.scores(X), fitted.taxonomy_)
    assert fitted.taxonomy_.decode(labels_below) == predicted


# ---- searching ------------------------------------------------------------------------------------------------------------


@given(learnt(), st.integers(1, 10))
@settings(max_examples=40)
def test_a_search_as_wide_as_the_tree_finds_what_enumeration_finds(case, k):
    parents, labels, fitted, X = case
    nodes, logs = fitted.search(X, k, WIDE)
    assert nodes.shape == logs.shape == (X.shape[0], k)
    for found, given_logs, conditionals in zip(nodes.tolist(), logs.tolist(), conditionals_of(fitted.scores(X)), strict=True):
        ends = oracle.ends_of(conditionals, parents, staying(parents, labels))
        expected = oracle.likeliest(ends, k)
        there = [node for node in found if node >= 0]
        assert len(there) == len(set(there)) == len(expected)
        assert found[len(there) :] == [-1] * (k - len(there))
        np.testing.assert_allclose(given_logs[: len(there)], [log for _, log in expected], atol=1e-3)
        np.testing.assert_allclose([ends[node] for node in there], given_logs[: len(there)], atol=1e-3)
        assert given_logs == sorted(given_logs, reverse=True)


def test_of_equally_likely_ends_the_first_come_first():
    taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b/x", "b/y"])
    names = ["a/x", "a/y", "b/x", "b/y"]
    values, arrays = TopDownSVM(taxonomy).fit(np.eye(4), names).state()
    nothing = {name: np.zeros_like(arrays[name]) for name in ("delta_values", "unit_bias")}
    fitted = TopDownSVM.from_state(taxonomy, values, arrays | nothing)
    nodes, logs = fitted.search(np.eye(4), 4)
    np.testing.assert_allclose(np.exp(logs), 0.25)
    assert nodes[0].tolist() == [taxonomy.index(name) for name in names]


@given(learnt(), st.integers(1, 4), st.integers(0, 4))
@settings(max_examples=40)
def test_a_narrower_search_never_finds_likelier_ends(case, k, wider):
    _, _, fitted, X = case
    narrow, wide = fitted.search(X, k, k)[1], fitted.search(X, k, k + wider)[1]
    whole = fitted.search(X, k, WIDE)[1]
    assert np.all(narrow <= whole + 1e-6)
    assert np.all(wide <= whole + 1e-6)


def test_a_search_finds_the_same_for_each_document_in_any_batch():
    parents = [[], [0], [0], [1], [1], [2]]
    fitted, X = fit_random(parents, [{3}, {4}, {5}, {2}, {0}, {3}])
    nodes, logs = fitted.search(X, 3, 3)
    for i in range(X.shape[0]):
        alone = fitted.search(X[[i]], 3, 3)
        assert alone[0].tolist() == nodes[[i]].tolist()
        np.testing.assert_allclose(alone[1], logs[[i]], rtol=1e-6)
    assert [part.shape for part in fitted.search(X[:0], 2)] == [(0, 2), (0, 2)]


@pytest.mark.parametrize(("k", "width"), [(0, 10), (-1, 10), (3, 2), (11, 10)])
def test_a_search_for_nothing_or_narrower_than_k_is_refused(k, width):
    fitted, X = fit_random([[], []], [{0}, {1}])
    with pytest.raises(InputError, match=rf"k is {k} and \w+ {width}; give k of 1 or more, and a \w+ that is no \w+\.$"):
        fitted.search(X, k, width)


@pytest.mark.parametrize("k", [1.5, "2", None])
def test_a_search_for_what_is_no_whole_number_is_refused(k):
    fitted, X = fit_random([[], []], [{0}, {1}])
    with pytest.raises(InputError, match="k is"):
        fitted.search(X, k)


# ---- trees of all kinds ---------------------------------------------------------------------------------------------------


def test_documents_at_inner_nodes_train_the_branch_that_stays():
    taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    X = np.eye(4)
    fitted = TopDownSVM(taxonomy, C=10).fit(X, ["a", "a/x", "a/y", "b"])
    assert fitted.predict(X).tolist() == ["a", "a/x", "a/y", "b"]
    a = taxonomy.index("a")
    assert fitted.branch_parents_[fitted.branch_nodes_ == a].tolist() == [-1, a]
    assert fitted.search(X)[0].ravel().tolist() == [taxonomy.index(name) for name in ("a", "a/x", "a/y", "b")]


def test_a_node_with_an_only_child_needs_no_classifier():
    taxonomy = Taxonomy.from_paths(["top/only/x", "top/only/y"])
    fitted = TopDownSVM(taxonomy).fit(np.eye(2), ["top/only/x", "top/only/y"])
    assert fitted.branch_parents_.tolist() == [taxonomy.index("top/only")] * 2
    S = fitted.scores(np.eye(2))
    assert np.all(S[:, [taxonomy.index("top"), taxonomy.index("top/only")]] == 0)
    assert fitted.predict(np.eye(2)).tolist() == ["top/only/x", "top/only/y"]
    np.testing.assert_allclose(np.exp(fitted.search(np.eye(2), 2)[1]).sum(axis=1), 1, rtol=1e-5)


def test_a_single_root_over_everything_has_probability_one():
    fitted, X = fit_random([[], [0], [0]], [{1}, {2}, {1}])
    np.testing.assert_array_equal(fitted.predict_proba(X)[:, 0], 1)


def test_in_a_forest_the_roots_are_siblings():
    fitted, X = fit_random([[], [], [1], [1]], [{0}, {2}, {3}])
    assert fitted.branch_parents_.tolist() == [-1, -1, 1, 1]
    np.testing.assert_allclose(fitted.predict_proba(X)[:, :2].sum(axis=1), 1, rtol=1e-5)


def test_a_flat_taxonomy_gives_the_margins_of_one_against_the_rest():
    rng = np.random.default_rng(4)
    X, y = rng.random((30, 5)), rng.integers(0, 3, 30)
    flat, down = OneVsRestSVM(tol=1e-5).fit(X, y), TopDownSVM(tol=1e-5).fit(X, y)
    margins = flat.scores(X).astype(float)
    expected = margins - np.log(np.exp(margins).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(down.scores(X), expected, atol=0.02)


def test_a_multi_label_document_is_positive_for_all_branches_to_its_labels():
    X = np.asarray([[1, 0], [0, 1], [1, 1]])
    both = TopDownSVM(C=100).fit(X, [["a"], ["b"], ["a", "b"]])
    margins = both.weights_.score(csr_array(X.astype(np.float32)))
    assert np.all((margins > 0) == [[True, False], [False, True], [True, True]])


def test_documents_without_labels_change_nothing():
    taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    X, labels = np.eye(5), [["a/x"], ["a/y"], ["b"], [], []]
    some, more = TopDownSVM(taxonomy).fit(X[:3], labels[:3]), TopDownSVM(taxonomy).fit(X, labels)
    np.testing.assert_allclose(more.scores(X[:3]), some.scores(X[:3]), atol=1e-5)


def test_the_features_of_a_node_are_those_of_its_own_classifier():
    taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    fitted = TopDownSVM(taxonomy).fit(np.eye(3), ["a/x", "a/y", "b"])
    assert {name: fitted.top_terms(name, 1)[0][0] for name in ("a/x", "a/y", "b")} == {"a/x": 0, "a/y": 1, "b": 2}


def test_a_cost_is_selected_also_where_a_label_is_in_few_documents():
    labels = [["a"], ["a"], ["a", "b"], ["a", "b"]]
    assert TopDownSVM(C="auto").fit(np.eye(4), labels).C_ > 0


def test_training_that_stops_early_warns():
    with pytest.warns(ConvergenceWarning, match="above tol=1e-09; raise max_iter, lower C, or accept the gap"):
        TopDownSVM(C=1000, tol=1e-9, max_iter=1).fit(np.random.default_rng(0).random((20, 3)), [0, 1] * 10)


# ---- keeping --------------------------------------------------------------------------------------------------------------


@given(learnt())
@settings(max_examples=20)
def test_state_makes_the_same_learner_and_the_same_search(case):
    _, _, fitted, X = case
    again = TopDownSVM.from_state(fitted.taxonomy_, *fitted.state())
    np.testing.assert_array_equal(again.scores(X), fitted.scores(X))
    np.testing.assert_array_equal(again.search(X, 3)[0], fitted.search(X, 3)[0])


def hostile(change):
    """A learner's state with one array exchanged."""
    fitted, _ = fit_random([[], [0], [0], [], [3]], [{1}, {2}, {4}, {0}])
    values, arrays = fitted.state()
    name, value = change(arrays)
    return fitted.taxonomy_, values, arrays | {name: value}


def put(name, place, number):
    def change(arrays):
        changed = arrays[name].copy()
        changed[place] = number
        return name, changed

    return change


@pytest.mark.parametrize("name", ["branch_nodes", "branch_parents", "alone"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda a: a.astype(np.int32),
        lambda a: a.astype(np.float64),
        lambda a: a[None, :],
        lambda a: a - 100,
        lambda a: a + 100,
        lambda a: np.full_like(a, np.iinfo(np.int64).max),
        lambda a: np.full_like(a, np.iinfo(np.int64).min),
    ],
    ids=["int32", "float", "2-d", "negative", "too large", "largest", "smallest"],
)
def test_branches_of_another_type_or_range_are_refused(name, spoil):
    with pytest.raises(ModelError, match="train the model again"):
        TopDownSVM.from_state(*hostile(lambda arrays: (name, spoil(arrays[name]))))


@pytest.mark.parametrize("name", ["branch_nodes", "branch_parents"])
def test_branches_that_do_not_fit_the_weights_are_refused(name):
    with pytest.raises(ModelError, match="do not fit its weights"):
        TopDownSVM.from_state(*hostile(lambda arrays: (name, arrays[name][:-1])))


def test_branches_out_of_order_are_refused():
    with pytest.raises(ModelError, match="do not fit its weights"):
        TopDownSVM.from_state(*hostile(lambda arrays: ("branch_parents", arrays["branch_parents"][::-1].copy())))


def test_an_only_child_just_outside_the_taxonomy_is_refused():
    with pytest.raises(ModelError, match="is no node of the taxonomy"):
        TopDownSVM.from_state(*hostile(put("alone", 0, 5)))


@pytest.mark.parametrize(("place", "node"), [(0, 4), (-1, 3), (0, 3)], ids=["a grandchild", "elsewhere", "twice"])
def test_a_branch_that_does_not_lead_to_a_child_is_refused(place, node):
    with pytest.raises(ModelError):
        TopDownSVM.from_state(*hostile(put("branch_nodes", place, node)))


def test_branches_that_lead_in_a_circle_are_refused():
    fitted, _ = fit_random([[], [0], [0], [1], [1]], [{2}, {3}, {4}])
    values, arrays = fitted.state()
    assert arrays["branch_parents"].tolist() == [0, 0, 1, 1]
    with pytest.raises(ModelError):
        TopDownSVM.from_state(fitted.taxonomy_, values, arrays | {"branch_nodes": np.asarray([1, 2, 0, 4])})


def test_labels_of_one_class_are_refused():
    with pytest.raises(LabelError, match="at least two classes"):
        TopDownSVM().fit(np.eye(2), ["a", "a"])
