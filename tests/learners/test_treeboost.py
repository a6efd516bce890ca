"""TreeBoost.MH against its slow twin: a committee at every node that has a question, and the way down."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles import boosting as oracle
from oracles.taxonomy import close_upward, most_specific
from scipy.sparse import csr_array
from seeds import each_seed
from strategies import as_matrix, as_sets, build, random_forest, trees

from ramify import Taxonomy
from ramify.learners import AdaBoostMH, TreeBoostMH

VARIANTS = ["R", "RA", "D"]
FOREST = [[], [0], [0], [1], [1], [1], [2], [], [7], [7]]  # a tree of three levels and one of two


def fit(parents, X, rows, n_rounds=10, variant="R", weights=None, **parameters):
    """A fitted learner; rows: the label set of each document."""
    learner = TreeBoostMH(build(parents), n_rounds=n_rounds, variant=variant, **parameters)
    return learner.fit(csr_array(X), as_matrix(rows, len(parents)), weights)


def random_problem(seed, parents=FOREST, n_documents=40, n_terms=10, most_labels=2, least_labels=0):
    """Documents whose terms hint at their labels; labels at inner nodes and documents without labels among them."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(least_labels, most_labels + 1, size=n_documents)
    rows = [set(rng.choice(len(parents), size=count, replace=False).tolist()) for count in counts]
    rows[0], rows[1] = {0}, {len(parents) - 1}
    liked = rng.random((len(parents), n_terms)) < 0.25
    chance = 0.15 + 0.6 * np.array([liked[sorted(close_upward(parents, row))].any(axis=0) for row in rows])
    return (rng.random((n_documents, n_terms)) < chance).astype(np.float32), rows


def check_against_the_oracle(parents, X, rows, n_rounds, variant="R", weights=None, **selection):
    """Committees, scores, and sets of documents whose scores are not so near 0 that rounding decides."""
    fast = fit(parents, X, rows, n_rounds, variant, weights, **selection)
    slow = oracle.treeboost(parents, X, rows, n_rounds, variant, weights, **selection)
    assert [committee.node for committee in fast.committees_] == sorted(slow.committees)
    for found in fast.committees_:
        oracle.check_same(found, slow.committees[found.node])
    if all(np.isinf(committee.clear) for committee in slow.committees.values()):
        S = slow.scores(X)
        np.testing.assert_allclose(fast.scores(csr_array(X)), S, rtol=1e-5, atol=1e-5)
        sure = slow.is_sure(X)
        assert as_sets(fast.predict_sets(csr_array(X[sure]))) == slow.sets(X[sure])


# ---- equal to the slow twin -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rounds", [1, 5, 30])
@pytest.mark.parametrize("variant", VARIANTS)
def test_committees_equal_the_oracle_at_every_node(variant, n_rounds):
    for seed in range(4):
        X, rows = random_problem(seed)
        check_against_the_oracle(FOREST, X, rows, n_rounds, variant)


@each_seed(8)
def test_committees_of_random_forests_equal_the_oracle(seed):
    parents = random_forest(np.random.default_rng(seed), 8)
    X, rows = random_problem(seed, parents, n_terms=6)
    weights = np.random.default_rng(seed).choice([0, 0.5, 1, 3], size=len(X))
    weights[:2] = 1
    for variant in VARIANTS:
        check_against_the_oracle(parents, X, rows, 12, variant)
        check_against_the_oracle(parents, X, rows, 12, variant, weights)


@pytest.mark.parametrize("n_terms", [1, 3, 100])
@pytest.mark.parametrize("choice", [{}, {"measure": "chi2", "join": "max"}, {"measure": "mutual-information", "join": "sum"}])
def test_each_node_looks_only_at_terms_chosen_for_it(n_terms, choice):
    for seed in range(3):
        X, rows = random_problem(seed)
        for variant in VARIANTS:
            check_against_the_oracle(FOREST, X, rows, 8, variant, n_terms=n_terms, **choice)
        assert all(len(set(c.pivots.tolist())) <= n_terms for c in fit(FOREST, X, rows, n_terms=n_terms, **choice).committees_)


@st.composite
def tiny_problems(draw):
    """Parents, documents, label sets and weights."""
    parents = draw(trees(max_nodes=7, min_nodes=2))
    X = draw(hnp.arrays(np.float32, st.tuples(st.integers(2, 8), st.integers(1, 4)), elements=st.sampled_from([0, 0, 1, 2])))
    labels = st.sets(st.integers(0, len(parents) - 1), max_size=2)
    rows = draw(st.lists(labels, min_size=len(X), max_size=len(X)))
    weights = draw(st.none() | st.lists(st.sampled_from([0.0, 1.0, 1.0, 0.3]), min_size=len(X), max_size=len(X)))
    kept = rows if weights is None else [row for row, weight in zip(rows, weights, strict=True) if weight > 0]
    assume(len(set().union(*(most_specific(parents, row) for row in kept))) >= 2)
    return parents, X, rows, weights


@given(tiny_problems(), st.sampled_from(VARIANTS), st.sampled_from([1, 8]), st.sampled_from([None, 1, 2]))
def test_tiny_problems_equal_the_oracle(problem, variant, n_rounds, n_terms):
    parents, X, rows, weights = problem
    check_against_the_oracle(parents, X, rows, n_rounds, variant, weights, n_terms=n_terms)


# ---- trees of all kinds -----------------------------------------------------------------------------------------------


def test_a_child_with_all_documents_of_its_parent_has_its_parents_score():
    parents = [[], [0], [1], [2], [2], []]  # 0 > 1 > 2 is a chain; 3 and 4 are below it, and 5 is another root
    X, rows = random_problem(0, parents)
    rows = [{3}, {4}, {5}, {5, 3}] * 10
    fitted = fit(parents, X, rows)
    assert [(c.node, c.classes.tolist()) for c in fitted.committees_] == [(-1, [0, 5]), (2, [3, 4])]
    S = fitted.scores(csr_array(X))
    np.testing.assert_array_equal(S[:, 1], S[:, 0])
    np.testing.assert_array_equal(S[:, 2], S[:, 0])
    check_against_the_oracle(parents, X, rows, 10)


def test_a_root_with_all_documents_always_passes():
    parents = [[], [0], [1], [1], [0]]
    X, _ = random_problem(0, parents)
    fitted = fit(parents, X, [{2}, {3}] * 20)
    assert [(c.node, c.classes.tolist()) for c in fitted.committees_] == [(1, [2, 3])]
    S = fitted.scores(csr_array(X))
    assert np.all(S[:, :2] == 1)
    assert (S[:, 4] == -np.inf).all()
    assert np.all(fitted.predict_sets(csr_array(X)).toarray()[:, :2])


def test_a_document_without_labels_makes_the_root_a_question():
    parents = [[], [0], [0]]
    X, _ = random_problem(0, parents)
    rows = [{1}, {2}, set(), {1}] * 10
    assert [c.node for c in fit(parents, X, rows).committees_] == [-1, 0]
    assert [c.node for c in fit(parents, X, rows, weights=[1, 1, 0, 1] * 10).committees_] == [0]
    check_against_the_oracle(parents, X, rows, 10)


def test_documents_of_an_inner_node_are_no_to_all_its_children():
    X = np.repeat(np.eye(3, dtype=np.float32), 4, axis=0)
    rows = [{0}] * 4 + [{1}] * 4 + [{2}] * 4
    fitted = fit([[], [0], [0]], X, rows, 20)
    assert as_sets(fitted.predict_sets(csr_array(X))) == [close_upward([[], [0], [0]], row) for row in rows]
    (committee,) = fitted.committees_
    assert committee.classes.tolist() == [1, 2]
    assert np.all(fitted.scores(csr_array(X))[:4, 1:] < 0)


def test_nodes_without_documents_have_the_lowest_score_and_are_never_given():
    X, _ = random_problem(0)
    fitted = fit(FOREST, X, [{3}, {4}, {8}, {8, 3}] * 10)
    S = fitted.scores(csr_array(X))
    assert set(np.flatnonzero(np.isneginf(S).all(axis=0)).tolist()) == {2, 5, 6, 9}
    assert set(np.flatnonzero(~np.isfinite(S).all(axis=0)).tolist()) == {2, 5, 6, 9}
    assert not fitted.predict_sets(csr_array(X)).toarray()[:, [2, 5, 6, 9]].any()


def test_two_children_with_all_documents_are_both_merged():
    parents = [[], [0], [0], [2], []]
    X, _ = random_problem(0, parents)
    rows = [{1, 3}, {1, 2}, {4}, {1, 3, 4}] * 10
    fitted = fit(parents, X, rows)
    assert [(c.node, c.classes.tolist()) for c in fitted.committees_] == [(-1, [0, 4]), (2, [3])]
    check_against_the_oracle(parents, X, rows, 10)


def test_only_branches_that_pass_are_visited():
    seen = 0
    for seed in range(6):
        X, rows = random_problem(seed)
        new = random_problem(seed + 100, n_documents=60)[0]
        fitted, slow = fit(FOREST, X, rows, 15), oracle.treeboost(FOREST, X, rows, 15)
        S, sets = fitted.scores(csr_array(new)), as_sets(fitted.predict_sets(csr_array(new)))
        assert slow.is_sure(new).all()
        assert sets == slow.sets(new)
        seen += sum(len(np.flatnonzero(row > 0)) > len(nodes) for row, nodes in zip(S, sets, strict=True))
    assert seen > 0  # a node above zero below one that is not


@pytest.mark.parametrize("variant", VARIANTS)
def test_without_a_hierarchy_it_is_one_flat_committee(variant):
    parents = [[], [], [], []]
    for seed in range(5):
        X, rows = random_problem(seed, parents, least_labels=1)
        (tree,) = fit(parents, X, rows, 20, variant).committees_
        flat_learner = AdaBoostMH(build(parents), n_rounds=20, variant=variant)
        (flat,) = flat_learner.fit(csr_array(X), as_matrix(rows, 4)).committees_
        assert tree.node == flat.node == -1
        for name in ("classes", "pivots", "absent", "present", "z", "normalizers"):
            np.testing.assert_array_equal(getattr(tree, name), getattr(flat, name))


# ---- stages, more rounds, threads ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_scores_of_a_stage_are_those_of_a_learner_of_so_many_rounds(variant):
    X, rows = random_problem(6)
    fitted, documents = fit(FOREST, X, rows, 20, variant), csr_array(X)
    stages = list(fitted.staged_scores(documents, rounds=[1, 5, 20]))
    assert [s for s, _ in stages] == [1, 5, 20]
    for s, scores in stages:
        short = fit(FOREST, X, rows, s, variant)
        np.testing.assert_allclose(scores, short.scores(documents), rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(fitted.at_round(s).scores(documents), short.scores(documents))
        assert (fitted.at_round(s).predict_sets(documents) != short.predict_sets(documents)).nnz == 0


@pytest.mark.parametrize("n_terms", [None, 4])
def test_learning_goes_on_as_if_it_had_not_stopped(n_terms):
    X, rows = random_problem(7)
    Y, whole = as_matrix(rows, len(FOREST)), fit(FOREST, X, rows, 25, n_terms=n_terms)
    parts = fit(FOREST, X, rows, 10, n_terms=n_terms).set_params(n_rounds=15).partial_fit(csr_array(X), Y)
    assert [c.node for c in parts.committees_] == [c.node for c in whole.committees_]
    for part, other in zip(parts.committees_, whole.committees_, strict=True):
        assert part.pivots.tolist() == other.pivots.tolist()
        for name in ("absent", "present", "z", "normalizers"):
            np.testing.assert_allclose(getattr(part, name), getattr(other, name), atol=1e-8)


@given(st.integers(0, 1000))
@settings(max_examples=10)
def test_threads_and_batches_change_nothing(seed):
    X, rows = random_problem(seed, n_documents=60)
    one, two = (fit(FOREST, X, rows, 15, n_jobs=n_jobs) for n_jobs in (1, 2))
    for left, right in zip(one.committees_, two.committees_, strict=True):
        assert (left.node, left.pivots.tolist()) == (right.node, right.pivots.tolist())
        np.testing.assert_array_equal(left.present, right.present)
    documents = csr_array(X)
    S, sets = one.scores(documents), one.predict_sets(documents).toarray()
    np.testing.assert_array_equal(two.scores(documents), S)
    for batch in ([3], [9, 3], list(range(59, -1, -1))):
        np.testing.assert_array_equal(one.scores(documents[batch]), S[batch])
        np.testing.assert_array_equal(one.predict_sets(documents[batch]).toarray(), sets[batch])


def test_labels_may_be_lists_of_names():
    taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    fitted = TreeBoostMH(taxonomy, n_rounds=20).fit(np.eye(4), [["a/x"], ["a/y"], ["b"], ["a/x", "b"]])
    assert [c.node for c in fitted.committees_] == [-1, taxonomy.index("a")]
