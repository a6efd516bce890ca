import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import relevance as oracle
from scipy.sparse import csr_array
from seeds import each_seed
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.feature_selection import chi2 as sklearn_chi2
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from strategies import as_matrix, build, parent_lists, random_forest

from ramify import Taxonomy
from ramify.errors import InputError
from ramify.features import TermSelector, Vectorizer, relevance, selection, term_relevance

MEASURES, JOINS, SCOPES = list(relevance.MEASURES), list(selection.JOINS), list(selection.SCOPES)
every_measure = pytest.mark.parametrize("measure", MEASURES)
every_join = pytest.mark.parametrize("join", JOINS)
every_scope = pytest.mark.parametrize("scope", SCOPES)


@st.composite
def problems(draw, max_documents=7, max_terms=5, max_nodes=6):
    """Parents of a DAG, rows of counts, label sets that need not be closed and may be empty, and how many terms to keep."""
    parents = draw(parent_lists(max_nodes=max_nodes, most_parents=2))
    n_documents, n_terms = draw(st.integers(1, max_documents)), draw(st.integers(1, max_terms))
    row = st.lists(st.sampled_from([0, 0, 1, 1, 3]), min_size=n_terms, max_size=n_terms)
    labels = st.sets(st.integers(0, len(parents) - 1), max_size=2)
    rows, own = (draw(st.lists(each, min_size=n_documents, max_size=n_documents)) for each in (row, labels))
    return parents, rows, own, draw(st.integers(1, n_terms + 1))


def random_problem(seed, n_documents=24, n_terms=12, n_nodes=8, n_features=5):
    rng = np.random.default_rng(seed)
    parents = random_forest(rng, n_nodes)
    rows = rng.poisson(rng.choice([0.2, 0.5, 1.5], size=n_terms), size=(n_documents, n_terms)).tolist()
    labels = [set(rng.integers(0, n_nodes, size=rng.integers(0, 3)).tolist()) for _ in range(n_documents)]
    return parents, rows, labels, n_features


def fitted(problem, **settings):
    parents, rows, labels, n_features = problem
    taxonomy = build(parents)
    Y = as_matrix(labels, len(parents))
    return TermSelector(n_features, taxonomy=taxonomy, **settings).fit(csr_array(np.array(rows, dtype=np.float32)), Y)


def assert_as_the_oracle_says(problem, measure, join, scope):
    parents, rows, labels, n_features = problem
    selector = fitted(problem, measure=measure, join=join, scope=scope)
    kept, scores, sets = oracle.select(rows, labels, parents, len(rows[0]), n_features, measure, join, scope)
    assert selector.columns_.tolist() == kept
    assert selector.columns_.dtype == np.int64
    np.testing.assert_allclose(selector.scores_, np.array(scores, dtype=float), rtol=1e-11, atol=1e-13)
    assert hasattr(selector, "sets_") == (scope == "glocal")
    if scope == "glocal":
        assert {node: columns.tolist() for node, columns in selector.sets_.items()} == sets
        assert {columns.dtype for columns in selector.sets_.values()} <= {np.dtype(np.int64)}


# ---- the slow twin --------------------------------------------------------------------------------------------------


@every_scope
@given(problem=problems(), measure=st.sampled_from(MEASURES), join=st.sampled_from(JOINS))
def test_selection_is_the_oracles(problem, measure, join, scope):
    assert_as_the_oracle_says(problem, measure, join, scope)


@every_scope
@every_join
@every_measure
@each_seed(2)
def test_selection_on_larger_forests_is_the_oracles(seed, measure, join, scope):
    assert_as_the_oracle_says(random_problem(seed), measure, join, scope)


@every_scope
@every_join
def test_classes_in_small_blocks_make_the_same_selection(join, scope, monkeypatch):
    monkeypatch.setattr(relevance, "row_blocks", lambda n, *_: [slice(i, min(i + 2, n)) for i in range(0, n, 2)])
    for seed in range(10, 13):
        assert_as_the_oracle_says(random_problem(seed), "information-gain", join, scope)


@every_scope
@every_join
@every_measure
def test_the_order_of_documents_changes_nothing(measure, join, scope):
    rng = np.random.default_rng(3)
    parents, _, labels, _ = random_problem(3, n_documents=60)
    X = (rng.random((60, 6)) * (rng.random((60, 6)) < 0.4)).astype(np.float32)
    X = np.hstack([X, X])  # every term has a twin, so that rounding would show
    order = rng.permutation(60)
    selector = TermSelector(7, measure=measure, join=join, scope=scope, taxonomy=build(parents))
    straight, shuffled = (
        clone(selector).fit(documents, as_matrix(own, len(parents)))
        for documents, own in ((X, labels), (X[order], [labels[i] for i in order]))
    )
    assert straight.columns_.tolist() == shuffled.columns_.tolist()
    np.testing.assert_allclose(straight.scores_, shuffled.scores_, rtol=1e-12)


# ---- joins ----------------------------------------------------------------------------------------------------------


def test_joins_are_the_largest_the_sum_and_the_average_of_the_classes():
    _, rows, _, _ = random_problem(4)
    y = np.random.default_rng(4).integers(0, 3, size=len(rows))
    R = term_relevance(rows, np.eye(3)[y], "chi2")
    shares = np.bincount(y) / len(y)
    for join, expected in {"max": R.max(0), "sum": R.sum(0), "weighted-average": shares @ R, "round-robin": R.max(0)}.items():
        scores = TermSelector(3, measure="chi2", join=join).fit(rows, y).scores_
        np.testing.assert_allclose(scores, expected, rtol=1e-12)


def test_in_turns_every_class_gets_a_term_where_the_maximum_gives_all_to_the_easy_class():
    rows = [[1, 1, 1, 0, 0]] * 5 + [[0, 0, 0, 1, 0]] * 5 + [[0, 0, 0, 0, 1]] * 4 + [[0, 0, 0, 1, 0]]
    y = ["easy"] * 5 + ["hard"] * 5 + ["other"] * 5
    assert TermSelector(3, join="max").fit(rows, y).columns_.tolist() == [0, 1, 2]
    assert TermSelector(3, join="round-robin").fit(rows, y).columns_.tolist() == [0, 3, 4]


def test_a_class_whose_terms_are_all_taken_passes_its_turn():
    rankings = [np.array([4, 2]), np.array([4]), np.array([2, 4, 1, 0])]
    assert selection.round_robin(rankings, 10).tolist() == [4, 2, 1, 0]
    assert selection.round_robin(rankings, 3).tolist() == [4, 2, 1]
    assert selection.round_robin([], 3).tolist() == []


def test_the_weights_of_an_average_are_shares_of_words_where_words_are_counted():
    rows, y = [[8, 0, 1], [0, 1, 1], [1, 1, 0]], [0, 1, 1]
    R = term_relevance(rows, np.eye(2)[y], "mutual-information")
    scores = TermSelector(3, measure="mutual-information", join="weighted-average").fit(rows, y).scores_
    np.testing.assert_allclose(scores, np.array([9 / 13, 4 / 13]) @ R, rtol=1e-12)


def test_chi2_of_two_classes_keeps_what_scikit_learn_keeps_where_terms_are_alike_in_frequency():
    rng = np.random.default_rng(8)
    y = np.repeat([0, 1], 40)
    # each term is in 20 documents, so that scikit-learn's χ², which looks at presence alone, ranks them alike
    X = np.zeros((80, 9))
    for t, inside in enumerate(rng.permutation(9) + 11):
        X[rng.choice(40, size=20 - inside, replace=False), t] = 1
        X[40 + rng.choice(40, size=inside, replace=False), t] = 1
    theirs = SelectKBest(sklearn_chi2, k=4).fit(X, y)
    assert TermSelector(4, measure="chi2").fit(X, y).columns_.tolist() == theirs.get_support(indices=True).tolist()


# ---- ties and terms that tell nothing -------------------------------------------------------------------------------


@every_join
@every_measure
def test_of_equal_terms_the_first_is_kept(measure, join):
    rows = [[1, 1, 0, 0, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 1]]
    # counted in words, a class learns more from a word that it lacks than from one of several that it has
    kept = ([2], [0, 2, 3]) if (measure, join) == ("mutual-information", "round-robin") else ([0], [0, 1, 2])
    for n_features, columns in zip((1, 3), kept, strict=True):
        selector = TermSelector(n_features, measure=measure, join=join).fit(rows, [0, 0, 1, 1])
        assert selector.columns_.tolist() == columns


def test_ties_survive_sums_whose_order_differs():
    """Two terms whose relevances for the classes are the same numbers in another order."""
    n_classes = 7
    y = np.repeat(np.arange(n_classes), 6)
    hits = np.array([6, 5, 3, 3, 2, 1, 0])
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(n_classes)
        X = np.stack([np.arange(6)[None, :] < hits[:, None], np.arange(6)[None, :] < hits[order][:, None]], axis=-1).reshape(
            -1, 2
        )
        for measure in MEASURES[:2]:
            assert TermSelector(1, measure=measure, join="sum").fit(X, y).columns_.tolist() == [0]


@every_join
@every_measure
def test_terms_that_tell_nothing_are_left_out_even_where_there_is_room(measure, join):
    rows = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 0]]
    assert TermSelector(9, measure=measure, join=join).fit(rows, [0, 0, 1, 1]).columns_.tolist() == [1, 2]


@every_scope
@every_join
@every_measure
def test_where_nothing_tells_anything_the_most_frequent_terms_are_kept(measure, join, scope, food):
    rows = [[0, 1, 2, 1], [0, 1, 0, 1], [0, 0, 0, 1]]
    one_class = food.encode([["apple"]] * 3)
    selector = TermSelector(2, measure=measure, join=join, scope=scope, taxonomy=food).fit(rows, one_class)
    assert selector.columns_.tolist() == [1, 3]
    assert selector.scores_.tolist() == [0, 0, 0, 0]
    nothing = clone(selector).fit(rows, food.encode([None] * 3))
    assert nothing.columns_.tolist() == [1, 3]


def test_documents_without_a_label_count_against_every_class_of_a_flat_selection(food):
    rows, labels = [[1, 0], [1, 0], [0, 1], [1, 1]], ["apple", "apple", "drink", None]
    scores = TermSelector(1, join="sum", taxonomy=food).fit(rows, food.encode(labels)).scores_
    own = np.array([[1, 0], [1, 0], [0, 1], [0, 0]])
    np.testing.assert_array_equal(scores, term_relevance(rows, own).sum(axis=0))
    assert (scores != term_relevance(rows[:3], own[:3]).sum(axis=0)).all()


# ---- scopes ---------------------------------------------------------------------------------------------------------


def test_flat_classes_are_most_specific_labels_at_inner_nodes_too(food):
    labels = ["apple", "fruit", "pear", "drink", "food"]
    rows = np.eye(5, dtype=int)
    by_taxonomy = TermSelector(5, measure="chi2", join="sum", taxonomy=food).fit(rows, food.encode(labels))
    by_class = TermSelector(5, measure="chi2", join="sum").fit(rows, labels)
    np.testing.assert_allclose(by_taxonomy.scores_, by_class.scores_, rtol=1e-14)


def test_hierarchical_terms_are_spread_over_inner_nodes_where_flat_ones_are_not(food):
    # columns: food or drink (0, 1, 2), fruit or bread (3, 4), apple or pear (5, 6)
    labels = ["apple"] * 2 + ["pear"] * 2 + ["bread"] * 4 + ["drink"] * 8
    rows = [[1, 1, 0, 1, 0, 1, 0]] * 2 + [[1, 1, 0, 1, 0, 0, 1]] * 2 + [[1, 1, 0, 0, 1, 0, 0]] * 4 + [[0, 0, 1, 0, 0, 0, 0]] * 8
    kept = {
        scope: TermSelector(n, scope=scope, taxonomy=food).fit(rows, food.encode(labels))
        for scope, n in (("flat", 3), ("hierarchical", 3), ("glocal", 1))
    }
    assert kept["flat"].columns_.tolist() == [0, 1, 2]
    assert kept["hierarchical"].columns_.tolist() == [0, 3, 5]
    sets = {node: columns.tolist() for node, columns in kept["glocal"].sets_.items()}
    assert sets == {-1: [0], food.index("food"): [3], food.index("fruit"): [5]}
    assert kept["glocal"].columns_.tolist() == [0, 3, 5]


def test_the_share_of_inner_nodes_is_as_large_as_fits(food):
    labels = ["apple", "pear", "bread", "drink"] * 2
    rows = np.random.default_rng(0).poisson(0.7, size=(8, 20))
    Y = food.encode(labels)
    local = [TermSelector(k, scope="glocal", taxonomy=food).fit(rows, Y).columns_ for k in range(1, 21)]
    for n_features in range(3, 20):
        selector = TermSelector(n_features, scope="hierarchical", taxonomy=food).fit(rows, Y)
        fitting = [columns for columns in local if len(columns) <= n_features]
        assert selector.columns_.tolist() == fitting[-1].tolist()


def test_fewer_terms_than_inner_nodes_are_the_most_relevant_of_their_first_terms(food):
    labels = ["apple"] * 2 + ["pear"] * 2 + ["bread"] * 4 + ["drink"] * 8
    rows = [[0, 1, 0, 1, 0, 1]] * 2 + [[0, 1, 0, 1, 0, 0]] * 2 + [[1, 1, 0, 0, 0, 0]] * 3 + [[0] * 6] + [[0, 0, 1, 0, 0, 0]] * 8
    selector = TermSelector(2, scope="hierarchical", taxonomy=food).fit(rows, food.encode(labels))
    firsts = clone(selector).set_params(scope="glocal", n_features=1).fit(rows, food.encode(labels)).columns_
    assert len(firsts) == 3
    assert len(selector.columns_) == 2
    assert set(selector.columns_) < set(firsts)
    (left_out,) = set(firsts) - set(selector.columns_)
    assert selector.scores_[left_out] <= selector.scores_[selector.columns_].min()


def test_documents_that_stay_at_an_inner_node_are_a_class_of_their_own():
    chain = Taxonomy.from_paths(["top/below"])
    rows, labels = [[1, 0], [1, 0], [0, 1], [0, 1]], ["top", "top", "top/below", "top/below"]
    stays = TermSelector(2, scope="glocal", taxonomy=chain).fit(rows, chain.encode(labels))
    assert {node: columns.tolist() for node, columns in stays.sets_.items()} == {0: [0, 1]}
    all_below = TermSelector(2, scope="glocal", taxonomy=chain).fit(rows, chain.encode(["top/below"] * 4))
    assert all_below.sets_[0].tolist() == []


def test_a_single_root_has_nothing_above_it(diamond, food):
    rows = np.eye(3)
    assert set(TermSelector(scope="glocal", taxonomy=diamond).fit(rows, diamond.encode(["left", "bottom", "right"])).sets_) == {
        0,
        1,
        2,
    }
    assert -1 in TermSelector(scope="glocal", taxonomy=food).fit(rows, food.encode(["apple", "pear", "drink"])).sets_


def test_an_inner_node_whose_classes_no_term_tells_apart_keeps_its_own_frequent_terms(food):
    rows, labels = [[1, 0, 1], [1, 0, 1], [0, 1, 0], [0, 1, 0], [0, 1, 0]], ["apple", "pear", "drink", "drink", "drink"]
    selector = TermSelector(1, scope="glocal", taxonomy=food).fit(rows, food.encode(labels))
    assert selector.sets_[food.index("fruit")].tolist() == [0]
    assert selector.sets_[food.index("food")].tolist() == []


def test_a_shared_child_is_a_class_at_each_of_its_parents(diamond):
    rows, labels = [[1, 0], [1, 0], [0, 1], [0, 1]], ["bottom", "bottom", "left", "right"]
    selector = TermSelector(1, scope="glocal", taxonomy=diamond).fit(rows, diamond.encode(labels))
    at_left, at_right = (selector.sets_[diamond.index(name)].tolist() for name in ("left", "right"))
    assert at_left == at_right == [0]


# ---- a transformer --------------------------------------------------------------------------------------------------


@parametrize_with_checks([TermSelector(), TermSelector(2, measure="mutual-information", join="round-robin")])
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


def test_transform_keeps_columns_and_looks_at_nothing_else():
    _, rows, _, _ = random_problem(5)
    X, y = np.array(rows, dtype=np.float32), np.arange(len(rows)) % 3
    selector = TermSelector(4).fit(X, y)
    kept = selector.columns_.copy()
    for documents in (X, csr_array(X), X[:1], 9 * X[::-1], np.zeros_like(X)):
        given_back = selector.transform(documents)
        assert isinstance(given_back, csr_array)
        dense = documents.toarray() if isinstance(documents, csr_array) else documents
        np.testing.assert_array_equal(given_back.toarray(), dense[:, kept])
    assert selector.columns_.tolist() == kept.tolist()
    assert selector.get_support(indices=True).tolist() == kept.tolist()
    assert np.flatnonzero(selector.get_support()).tolist() == kept.tolist()
    assert len(selector.get_support()) == X.shape[1]


def test_terms_are_chosen_from_training_documents_alone():
    train, y = ["tea", "red tea", "bread", "rye bread"], ["tea", "tea", "bread", "bread"]
    steps = make_pipeline(Vectorizer("counts"), TermSelector(2), MultinomialNB()).fit(train, y)
    assert steps[:2].get_feature_names_out().tolist() == ["bread", "tea"]
    before = steps[1].columns_.tolist()
    assert steps.predict(["tea", "bread with jam"]).tolist() == ["tea", "bread"]
    assert steps[1].columns_.tolist() == before


def test_kept_terms_have_names():
    vectorizer = Vectorizer("counts")
    X = vectorizer.fit_transform(["red tea", "green tea", "rye bread", "rye bread"])
    selector = TermSelector(3, measure="chi2").fit(X, [0, 0, 1, 1])
    assert selector.get_feature_names_out(vectorizer.terms_).tolist() == ["bread", "rye", "tea"]
    assert selector.get_feature_names_out().tolist() == ["x0", "x3", "x4"]
    with pytest.raises(InputError, match="2 names, but there are 5 columns"):
        selector.get_feature_names_out(["a", "b"])


def test_classes_come_as_values_as_a_column_or_as_a_matrix():
    _, rows, _, _ = random_problem(6)
    y = np.arange(len(rows)) % 3
    expected = TermSelector(4).fit(rows, y)
    names = np.array(["a", "b", "c"])[y]
    for form in (y[:, None], names, names.tolist(), np.eye(3)[y], csr_array(np.eye(3, dtype=bool)[y])):
        again = TermSelector(4).fit(rows, form)
        assert again.columns_.tolist() == expected.columns_.tolist()
        np.testing.assert_array_equal(again.scores_, expected.scores_)


def test_settings_are_kept_and_copied(food):
    selector = TermSelector(7, measure="chi2", join="sum", scope="glocal", taxonomy=food)
    params = {"n_features": 7, "measure": "chi2", "join": "sum", "scope": "glocal", "taxonomy": food}
    assert selector.get_params() == params
    assert clone(selector).get_params() == params
    assert clone(selector).taxonomy is food


def test_fitting_anew_forgets_the_sets_of_before(food):
    rows, Y = np.eye(3), food.encode(["apple", "pear", "drink"])
    selector = TermSelector(scope="glocal", taxonomy=food).fit(rows, Y)
    assert not hasattr(selector.set_params(scope="flat").fit(rows, Y), "sets_")


def test_documents_stay_as_they_are():
    X = csr_array((np.array([1.0, 1.0, 0.0, 2.0], dtype=np.float32), np.array([1, 1, 0, 0]), np.array([0, 3, 4])), shape=(2, 2))
    before = X.copy()
    TermSelector(1).fit(X, [0, 1])
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, name), getattr(before, name))


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"n_features": 0}, "n_features is 0; give a whole number of 1 or more"),
        ({"n_features": 2.5}, "n_features is 2.5"),
        ({"n_features": True}, "n_features is True"),
        ({"n_features": "all"}, "n_features is 'all'"),
        ({"n_features": None}, "n_features is None"),
        (
            {"measure": "chi-2"},
            "measure is 'chi-2'; give one of 'information-gain', 'chi2', 'mutual-information'. Did you mean 'chi2'",
        ),
        ({"join": "mean"}, "join is 'mean'; give one of 'max', 'weighted-average', 'sum', 'round-robin'"),
        ({"join": ["max"]}, "join is"),
        ({"scope": "local"}, "scope is 'local'; give one of 'flat', 'hierarchical', 'glocal'.* Did you mean 'glocal'"),
        ({"scope": "hierarchical"}, "scope 'hierarchical' selects at inner nodes and needs a taxonomy"),
        ({"scope": "glocal"}, "scope 'glocal' selects at inner nodes and needs a taxonomy"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, complaint):
    with pytest.raises(InputError, match=complaint):
        TermSelector(**settings).fit([[1, 0], [0, 1]], [0, 1])


@pytest.mark.parametrize(
    ("X", "Y", "complaint"),
    [
        ([[1, -1]], [0], "Negative values in data: document 1 has one"),
        ([[1, 0], [0, 1]], [0], "X has 2 documents, but labels are given for 1"),
        ([[1, 0]], None, "requires y"),
        ([[1, 0], [0, 1]], np.array([1, "a"], dtype=object), "cannot be put in order"),
        ([[float("inf"), 0]], [0], "infinity"),
    ],
)
def test_documents_and_classes_that_make_no_sense_are_refused(X, Y, complaint):
    with pytest.raises(InputError, match=complaint):
        TermSelector().fit(X, Y)


def test_labels_that_do_not_fit_the_taxonomy_are_refused(food):
    with pytest.raises(InputError, match="2 columns, but the taxonomy has 6 nodes"):
        TermSelector(taxonomy=food).fit([[1], [1]], [[1, 0], [0, 1]])
    with pytest.raises(InputError, match="not 1 dimensions"):
        TermSelector(taxonomy=food).fit([[1], [1]], ["apple", "pear"])


def test_nothing_is_kept_before_fitting_and_only_as_many_columns_as_were_fitted():
    with pytest.raises(NotFittedError):
        TermSelector().transform([[1.0]])
    with pytest.raises(NotFittedError):
        TermSelector().get_support()
    with pytest.raises(InputError, match="3 features"):
        TermSelector().fit([[1, 0], [0, 1]], [0, 1]).transform([[1, 2, 3]])
