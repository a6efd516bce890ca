"""Backing off with a guarantee: against slow twins, and against the predictor itself."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import conformal as oracle
from strategies import as_matrix, build, parent_lists, random_forest, trees

from ramify.decisions.base import nodes_to_labels
from ramify.decisions.conformal import (
    CONFORMAL_KINDS,
    MIN_THRESHOLD,
    SIZES,
    ConformalPaths,
    ConformalRiskControl,
    find_nested_sets,
    fit_conformal,
    top_branches,
    worst_wrong_fractions,
)
from ramify.errors import InputError, ModelError, TaxonomyError
from ramify.taxonomy import Taxonomy, expand_to_ancestors

RISKS = (0.01, 0.05, 0.1, 0.25, 0.5)


def closed_upward(parents, raw):
    """Chances that are no larger than those above: sixteenths, so that ties are common."""
    p = []
    for node, above in enumerate(parents):
        p.append(min([raw[node] / 16, *(p[parent] for parent in above)]))
    return p


@st.composite
def answered(draw, shapes, max_documents=8, min_documents=1):
    """Parents, and for every document chances and true nodes, closed upward."""
    parents = draw(shapes)
    n = draw(st.integers(min_documents, max_documents))
    chances = st.lists(st.integers(0, 16), min_size=len(parents), max_size=len(parents))
    P = [closed_upward(parents, draw(chances)) for _ in range(n)]
    own = draw(st.lists(st.integers(0, len(parents) - 1), min_size=n, max_size=n))
    truth = expand_to_ancestors(as_matrix([{node} for node in own], len(parents)), build(parents))
    return parents, P, truth


def true_sets(truth):
    return [set(np.flatnonzero(row).tolist()) for row in truth.toarray()]


# ---- sets of nodes ----------------------------------------------------------------------------------------------------------


@given(answered(trees()), st.sampled_from(SIZES), st.integers(-1, 16))
@settings(max_examples=200)
def test_nested_sets_equal_the_oracle(case, size, sixteenths):
    parents, P, truth = case
    taxonomy, threshold = build(parents), sixteenths / 16
    found = find_nested_sets(P, taxonomy, size)
    losses, sets = found.nonconformity(truth), found.last_above(threshold)
    for row, (p, true) in enumerate(zip(P, true_sets(truth), strict=True)):
        steps = oracle.sets_of(p, parents, size)
        assert [[node for node in nodes if node >= 0] for nodes in found.nodes[row].tolist()] == steps
        assert found.masses[row].tolist() == oracle.masses_of(p, steps)
        assert losses[row] == oracle.nonconformity_of(p, true, parents, size)
        assert [node for node in sets[row].tolist() if node >= 0] == oracle.set_above(p, parents, size, threshold)


@given(answered(trees(), min_documents=2), st.sampled_from(SIZES), st.sampled_from([0.25, 0.5, 0.75]))
@settings(max_examples=150)
def test_more_risk_never_goes_less_deep(case, size, risk):
    parents, P, truth = case
    taxonomy = build(parents)
    predictor = ConformalPaths.fit(np.asarray(P), truth, taxonomy)
    assume(predictor.least_risk <= risk)
    few, more = (predictor.decide(P, taxonomy, each, size).toarray() for each in (risk, min(0.99, risk + 0.2)))
    for shallow, deep in zip(few, more, strict=True):
        allowed = [below_or_same(build(parents), node) for node in most_specific(shallow, parents)]
        found = most_specific(deep, parents)
        # what is answered with more risk lies at or below what is answered with less
        assert not shallow.any() or (found and all(any(node in inside for inside in allowed) for node in found))


def most_specific(row, parents):
    taken = np.flatnonzero(row).tolist()
    return [node for node in taken if not any(child in taken for child in oracle.children_of(parents, node))]


def below_or_same(taxonomy, node):
    return {node, *taxonomy.descendants_of(node).tolist()}


def test_sets_become_labels_with_their_ancestors_or_none():
    tree = Taxonomy.from_paths(["a/b/c", "d"])
    Y = nodes_to_labels(np.asarray([[1, -1], [-1, -1], [2, 3]]), tree)
    assert tree.decode(Y) == [["a/b"], [], ["a/b/c", "d"]]


# ---- one label a document ---------------------------------------------------------------------------------------------------


@given(answered(trees(), max_documents=12), st.sampled_from(SIZES), st.sampled_from(RISKS))
@settings(max_examples=200)
def test_thresholds_equal_the_oracle(case, size, risk):
    parents, P, truth = case
    predictor = fit_conformal(P, truth, build(parents), multi_label=False)
    expected = oracle.threshold_of(
        [oracle.nonconformity_of(p, true, parents, size) for p, true in zip(P, true_sets(truth), strict=True)], risk
    )
    if expected is None:
        with pytest.raises(
            InputError, match=rf"needs at least {round(1 / risk) - 1} held-out documents, and there are {len(P)}"
        ):
            predictor.threshold(risk, size)
    else:
        assert predictor.threshold(risk, size) == expected


@given(answered(trees(), min_documents=2, max_documents=12), st.sampled_from(SIZES), st.sampled_from(RISKS))
@settings(max_examples=200)
def test_each_document_against_all_others_is_covered_as_often_as_guaranteed(case, size, risk):
    """Exchangeable documents: whoever is the new one, the mean over all of them is what a new document can expect."""
    parents, P, truth = case
    taxonomy, P, n = build(parents), np.asarray(P), len(P)
    covered = 0
    for new in range(n):
        others = np.delete(np.arange(n), new)
        predictor = ConformalPaths.fit(P[others], truth[others], taxonomy)
        if predictor.least_risk > risk:
            return
        answer = predictor.decide(P[[new]], taxonomy, risk, size).toarray()[0]
        found = most_specific(answer, parents)
        covered += not found or any(truth.toarray()[new, node] for node in found)
    assert Fraction(covered, n) >= 1 - Fraction(str(risk))


def test_coverage_is_not_much_larger_than_guaranteed_where_no_scores_are_equal():
    rng = np.random.default_rng(0)
    tree = Taxonomy.from_paths([f"{a}/{b}" for a in "xyz" for b in range(4)])
    leaves = np.flatnonzero(tree.is_leaf)
    Q = rng.dirichlet(np.full(len(leaves), 0.3), size=4000)
    own = np.asarray([rng.choice(leaves, p=q) for q in Q])
    P = np.zeros((len(Q), len(tree)))
    P[:, leaves] = Q
    np.add.at(P.T, tree.parent[leaves], Q.T)
    truth = expand_to_ancestors(as_matrix([{node} for node in own], len(tree)), tree)
    predictor = ConformalPaths.fit(P[:2000], truth[:2000], tree)
    for risk in (0.05, 0.2):
        for size in (1, 2):
            found = find_nested_sets(P[2000:], tree, size).last_above(predictor.threshold(risk, size))
            is_true = truth[2000:].toarray()[np.arange(2000)[:, None], found] & (found >= 0)
            covered = is_true.any(axis=1) | (found < 0).all(axis=1)
            assert covered.mean() == pytest.approx(1 - risk, abs=4 * np.sqrt(risk * (1 - risk) / 1000))


def test_a_branch_has_its_own_threshold_or_a_sentence():
    tree = Taxonomy.from_paths(["a/x", "a/y", "b/z"])
    P = np.asarray([[0.9, 0.8, 0.1, 0.1, 0.1]] * 30 + [[0.2, 0.1, 0.1, 0.8, 0.8]] * 5)
    truth = tree.encode([["a/y"]] * 15 + [["a/x"]] * 15 + [["b/z"]] * 5)
    predictor = fit_conformal(P, truth, tree, multi_label=False)
    assert tree.decode(predictor.decide(P[:1], tree, 0.1, by_branch=True)) == [["a"]]
    assert tree.decode(predictor.decide(P[-1:], tree, 0.45)) == [["b/z"]]
    assert predictor.uncovered_branches(0.1, tree) == [tree.index("b")]
    assert tree.decode(predictor.decide(P[-1:], tree, 0.1, by_branch=True)) == [[]]
    assert predictor.uncovered_branches(0.25, tree) == []
    with pytest.raises(
        InputError, match=r"needs at least 49 .* in a branch, and the largest branch, 'a', has 30; .* leave out by_br"
    ):
        predictor.decide(P, tree, 0.02, by_branch=True)


@given(trees())
def test_branches_are_the_topmost_nodes_with_a_choice(parents):
    taxonomy = build(parents)
    branches = top_branches(taxonomy).tolist()
    assert len(branches) > 1 or taxonomy.is_leaf[branches[0]]
    assert all(len(oracle.children_of(parents, above)) == len(branches) for above in {a for b in branches for a in parents[b]})


# ---- several labels a document ----------------------------------------------------------------------------------------------


@given(answered(parent_lists(), max_documents=6))
@settings(max_examples=150)
def test_fractions_of_wrong_labels_equal_the_oracle(case):
    parents, P, truth = case
    taxonomy = build(parents)
    documents, at, found = worst_wrong_fractions(np.asarray(P), truth.toarray(), taxonomy)
    for number, (p, true) in enumerate(zip(P, truth.toarray(), strict=True)):
        thresholds, losses = at[documents == number], found[documents == number]
        assert thresholds.tolist() == sorted({chance for chance in p if chance >= MIN_THRESHOLD}, reverse=True)
        members = set(np.flatnonzero(true).tolist())
        expected = [float(oracle.wrong_fraction(p, members, parents, threshold)) for threshold in thresholds]
        np.testing.assert_allclose(losses, expected)


@given(answered(parent_lists(), max_documents=8), st.sampled_from([0.15, 0.25, 0.5]))
@settings(max_examples=150)
def test_thresholds_of_risk_control_equal_the_oracle(case, risk):
    parents, P, truth = case
    predictor = fit_conformal(P, truth, build(parents), multi_label=True)
    if predictor.least_risk > risk:
        with pytest.raises(InputError, match="needs at least"):
            predictor.threshold(risk)
    else:
        assert predictor.threshold(risk) == oracle.risk_threshold(list(zip(P, true_sets(truth), strict=True)), parents, risk)


@given(answered(parent_lists(), min_documents=3, max_documents=9), st.sampled_from([0.25, 0.5]))
@settings(max_examples=100)
def test_each_document_against_all_others_has_as_few_wrong_labels_as_guaranteed(case, risk):
    parents, P, truth = case
    taxonomy, P, n, total = build(parents), np.asarray(P), len(P), Fraction(0)
    for new in range(n):
        others = np.delete(np.arange(n), new)
        predictor = ConformalRiskControl.fit(P[others], truth[others], taxonomy)
        if predictor.least_risk > risk:
            return
        found = most_specific(predictor.decide(P[[new]], taxonomy, risk).toarray()[0], parents)
        total += Fraction(sum(not truth.toarray()[new, node] for node in found), max(1, len(found)))
    assert total / n <= Fraction(str(risk))


def test_fewer_stored_thresholds_guarantee_no_more(monkeypatch):
    rng = np.random.default_rng(0)
    tree = build(random_forest(rng, 20))
    parents = [tree.parents_of(node).tolist() for node in range(20)]
    P = np.asarray([closed_upward(parents, 16 * rng.random(20)) for _ in range(200)])
    truth = expand_to_ancestors(rng.random((200, 20)) < 0.3, tree)
    exact = ConformalRiskControl.fit(P, truth, tree)
    monkeypatch.setattr("ramify.decisions.conformal.MAX_STEPS", 50)
    rough = ConformalRiskControl.fit(P, truth, tree)
    assert len(rough.thresholds) <= 50 < len(exact.thresholds)
    assert all(rough.threshold(risk) >= exact.threshold(risk) for risk in (0.1, 0.3, 0.5, 0.7))


# ---- what is refused, and keeping -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("risk", [0, 1, -0.1, 1.5, np.nan, True, "0.05", None])
def test_what_is_no_risk_is_refused(risk):
    predictor = ConformalPaths(np.zeros((100, len(SIZES))), np.zeros(100, dtype=np.int64))
    with pytest.raises(InputError, match="give a probability between 0 and 1"):
        predictor.threshold(risk)


@pytest.mark.parametrize("nodes", [0, 4, -1, True, 2.5, "2"])
def test_other_numbers_of_nodes_are_refused(nodes):
    predictor = ConformalPaths(np.zeros((100, len(SIZES))), np.zeros(100, dtype=np.int64))
    with pytest.raises(InputError, match="a prediction may have 1, 2, 3, 5 or 10 nodes"):
        predictor.threshold(0.1, nodes)


def test_a_dag_has_no_single_path():
    dag = Taxonomy.from_edges([("a", None), ("b", None), ("c", "a"), ("c", "b")])
    with pytest.raises(TaxonomyError, match="backing off"):
        find_nested_sets(np.ones((1, 3)), dag)


def test_risk_control_takes_neither_branches_nor_numbers_of_nodes():
    tree = Taxonomy.from_paths(["a", "b"])
    predictor = fit_conformal([[0.5, 0.5]] * 9, tree.encode([["a"]] * 9), tree, multi_label=True)
    for more in ({"nodes": 2}, {"by_branch": True}):
        with pytest.raises(InputError, match="bounds the fraction of wrong"):
            predictor.decide([[0.5, 0.5]], tree, 0.2, **more)
    with pytest.raises(InputError, match="probabilities of 9 documents and labels of 1"):
        fit_conformal([[0.5, 0.5]] * 9, tree.encode([["a"]]), tree, multi_label=True)


@pytest.mark.parametrize("multi_label", [False, True])
def test_predictors_can_be_stored_and_broken_ones_are_refused(multi_label):
    tree = Taxonomy.from_paths(["a/b", "c"])
    P = np.random.default_rng(0).random((40, 1)) * np.asarray([[0.9, 0.7, 0.1]])
    predictor = fit_conformal(P, tree.encode([["a/b"], ["c"]] * 20), tree, multi_label)
    kind, arrays = CONFORMAL_KINDS[predictor.kind], predictor.arrays()
    again = kind.from_arrays(arrays, tree)
    assert (again.decide(P, tree, 0.3) != predictor.decide(P, tree, 0.3)).nnz == 0
    name = "losses" if multi_label else "scores"
    for broken in (arrays[name].astype(np.float32), arrays[name][:-1], arrays[name] - 3, arrays[name] * np.nan):
        with pytest.raises(ModelError):
            kind.from_arrays(arrays | {name: broken}, tree)
    if not multi_label:
        with pytest.raises(ModelError, match="branches that the taxonomy does not have"):
            kind.from_arrays(arrays | {"branches": arrays["branches"] + 1}, tree)


def test_what_is_hardly_probable_is_no_threshold():
    taxonomy = Taxonomy.flat(["a", "b"])
    found = worst_wrong_fractions(np.asarray([[0.5, MIN_THRESHOLD / 2]]), np.asarray([[True, False]]), taxonomy)
    assert [part.tolist() for part in found] == [[0], [0.5], [0.0]]


def test_where_nodes_have_multiple_parents_risk_control_is_used():
    dag = Taxonomy.from_edges([("a", None), ("b", None), ("c", "a"), ("c", "b")])
    P = np.tile([0.9, 0.9, 0.8], (50, 1))
    predictor = fit_conformal(P, dag.encode([["c"]] * 50), dag, multi_label=False)
    assert isinstance(predictor, ConformalRiskControl)
    assert dag.decode(predictor.decide(P[:1], dag, risk=0.1)) == [["c"]]
