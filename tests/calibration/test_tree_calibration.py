"""Probabilities that do not contradict each other: nested logit against the oracle, curves, and what always holds."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import tree_calibration as oracle
from scipy.sparse import csr_array
from seeds import each_seed
from strategies import as_matrix, build, parent_lists, random_forest, trees

from ramify.calibration import CALIBRATIONS, LogPotentials, MultiLabelCalibration, TreeCalibration, calibration_class
from ramify.calibration.nested_logit import NestedLogit
from ramify.calibration.tree_calibration import ROUNDS, Curves, fit_curve, truth_of
from ramify.errors import ModelError
from ramify.metrics.calibration import calibration_errors
from ramify.taxonomy import Taxonomy, expand_to_ancestors

values = st.floats(-3, 3, width=16)


@st.composite
def ways(draw, shapes, max_documents=4):
    """Parents, log_potentials of some documents, scale and constants; some nodes are no ends, and some may not be entered."""
    parents = draw(shapes)
    n, taxonomy = len(parents), build(parents)
    shape = draw(st.integers(1, max_documents)), n
    table = st.lists(st.lists(values, min_size=n, max_size=n), min_size=shape[0], max_size=shape[0])
    ends = np.asarray(draw(table))
    is_end = np.asarray(draw(st.lists(st.booleans(), min_size=n, max_size=n))) | taxonomy.is_leaf
    ends[:, ~is_end] = np.nan
    steps = np.asarray(draw(table)) if draw(st.booleans()) else None
    per_level = st.lists(st.floats(0.1, 4), min_size=taxonomy.n_levels, max_size=taxonomy.n_levels)
    return parents, LogPotentials(ends, steps), NestedLogit(*(np.asarray(draw(per_level)) for _ in range(3)))


def listed(fitted):
    return [fitted.at_depth(depth) for depth in range(len(fitted.scale))]


def plain(row):
    return None if row is None else [None if np.isnan(value) else float(value) for value in row]


@given(ways(trees()))
@settings(max_examples=200)
def test_choices_equal_the_oracle(case):
    parents, log_potentials, fitted = case
    found = fitted.conditionals(log_potentials, build(parents))
    for row in range(len(log_potentials)):
        steps = None if log_potentials.steps is None else plain(log_potentials.steps[row])
        expected = oracle.conditionals(plain(log_potentials.ends[row]), steps, parents, listed(fitted))
        np.testing.assert_allclose(found[row], expected, atol=1e-12)


@each_seed(4)
def test_no_other_parameters_are_more_likely(seed):
    rng = np.random.default_rng(seed)
    parents = random_forest(rng, 8)
    taxonomy = build(parents)
    n = 300
    ends, steps = rng.normal(size=(n, 8)), rng.normal(size=(n, 8)) if seed % 2 else None
    truth = rng.integers(0, 8, n)
    ends[np.arange(n), truth] += 1.5
    if steps is not None:
        for row, node in enumerate(truth):
            steps[row, [node, *taxonomy.ancestors_of(int(node))]] += 1.0
    Y = expand_to_ancestors(as_matrix([{int(node)} for node in truth], 8), taxonomy)
    log_potentials = LogPotentials(ends, steps)
    fitted = NestedLogit.fit(log_potentials, truth_of(Y, taxonomy), taxonomy)
    documents = [(plain(ends[i]), plain(None if steps is None else steps[i]), int(truth[i])) for i in range(n)]
    deepest = taxonomy.n_levels - 1  # what lies above is fitted with what lies below as it is
    best = oracle.log_likelihood(documents, parents, listed(fitted))
    for depth in range(taxonomy.n_levels):
        for name, change in itertools.product(("scale", "dissimilarity", "stop_constant"), (-0.1, 0.1)):
            other = replace(fitted, **{name: getattr(fitted, name).copy()})
            getattr(other, name)[depth] += change
            if depth == 0 or deepest == 0:
                assert oracle.log_likelihood(documents, parents, listed(other)) < best + 0.5
    assert (fitted.scale > 0).all()


def made(seed, n=400, n_nodes=14, multi_label=False, dag=False):
    """Documents whose scores tell where they end, but are far too sure."""
    rng = np.random.default_rng(seed)
    parents = random_forest(rng, n_nodes)
    if dag:
        parents = [sorted({*above, int(rng.integers(0, node))}) if above else above for node, above in enumerate(parents)]
    taxonomy = build(parents)
    truth = [set(rng.choice(n_nodes, size=rng.integers(0, 4) if multi_label else 1, replace=False).tolist()) for _ in range(n)]
    Y = expand_to_ancestors(as_matrix(truth, n_nodes), taxonomy)
    ends = 8 * (rng.normal(size=(n, n_nodes)) + 1.5 * as_matrix(truth, n_nodes))
    memberships = 1 / (1 + np.exp(-4 * (rng.normal(size=(n, n_nodes)) + Y.toarray() - 1)))
    return taxonomy, LogPotentials(ends), memberships, csr_array(Y)


@each_seed(5)
def test_children_and_stopping_add_up_to_the_node(seed):
    taxonomy, log_potentials, _, Y = made(seed)
    fitted = TreeCalibration.fit(log_potentials, Y, taxonomy)
    P = fitted.apply(log_potentials, taxonomy)
    roots = np.asarray(taxonomy.roots)
    np.testing.assert_allclose(P[:, roots].sum(axis=1), 1)
    ends = np.bincount(truth_of(Y, taxonomy)[1], minlength=len(taxonomy))
    for node in np.flatnonzero(~taxonomy.is_leaf).tolist():
        left = P[:, node] - P[:, taxonomy.children_of(node)].sum(axis=1)
        assert (left >= -1e-12).all()
        if not ends[node]:
            np.testing.assert_allclose(left, 0, atol=1e-12)


@pytest.mark.parametrize("case", ["one", "multi_label", "dag"])
@each_seed(4)
def test_no_child_is_above_its_parent_and_rows_are_for_themselves(case, seed):
    taxonomy, log_potentials, memberships, Y = made(seed, multi_label=case == "multi_label", dag=case == "dag")
    kind = calibration_class(case == "multi_label")
    given_values = memberships if case == "multi_label" else log_potentials
    fitted = kind.fit(given_values, Y, taxonomy)
    P = fitted.apply(given_values, taxonomy)
    assert ((P >= 0) & (P <= 1)).all()
    for node in range(len(taxonomy)):
        for parent in taxonomy.parents_of(node).tolist():
            assert (P[:, node] <= P[:, parent] + (1e-12 if case == "dag" else 0)).all()
    for rows in ([3], [7, 3, 100], slice(50, 90)):
        some = memberships[rows] if case == "multi_label" else log_potentials.take(rows)
        np.testing.assert_array_equal(fitted.apply(some, taxonomy), P[rows])
    assert fitted.apply(memberships[:0] if case == "multi_label" else log_potentials.take(slice(0, 0)), taxonomy).shape == (
        0,
        len(taxonomy),
    )


def test_the_most_probable_node_of_every_depth_is_right_as_often_as_its_probability():
    taxonomy, log_potentials, _, Y = made(1, n=6000)
    fitted = TreeCalibration.fit(log_potentials.take(slice(0, 3000)), Y[:3000], taxonomy)
    others, truth = log_potentials.take(slice(3000, 6000)), Y[3000:]
    nothing = [(np.zeros(0), np.zeros(0))] * ROUNDS * taxonomy.n_levels
    raw = TreeCalibration(
        NestedLogit(*np.vstack([np.ones((2, taxonomy.n_levels)), np.zeros(taxonomy.n_levels)])),
        fitted.is_end,
        Curves.concatenate(nothing),
    )
    before = calibration_errors(truth, raw.apply(others, taxonomy), taxonomy)
    after = calibration_errors(truth, fitted.apply(others, taxonomy), taxonomy)
    assert max(level.top_label for level in after) < 0.05 < 0.2 < max(level.top_label for level in before)


@pytest.mark.parametrize("turn", range(ROUNDS))
def test_a_node_raises_what_lies_above_it_but_in_the_last_round(turn):
    taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b/z", "b/w"])
    steps = np.zeros((1, len(taxonomy)))
    steps[0, taxonomy.index("a/x")] = 0.1
    corners = [(np.zeros(0), np.zeros(0))] * ROUNDS * 2
    corners[2 * turn + 1] = np.array([0.0, 1.0]), np.array([0.9, 0.91])
    made = TreeCalibration(NestedLogit(np.ones(2), np.zeros(2), np.zeros(2)), taxonomy.is_leaf, Curves.concatenate(corners))
    P = made.apply(LogPotentials(np.where(taxonomy.is_leaf, 0.0, np.nan)[None], steps), taxonomy)[0]
    a, x = P[taxonomy.index("a")], P[taxonomy.index("a/x")]
    assert (a > x > 0.9) if turn < ROUNDS - 1 else (a == 0.5 and 0.49 < x < 0.5)


@pytest.mark.parametrize("is_right", [True, False])
def test_what_is_always_true_has_probability_near_one(is_right):
    """A level that is always right, or that nobody reaches: however sure it seemed, almost 1, or almost 0."""
    p = np.random.default_rng(0).uniform(0.3, 0.9, 1000)
    corners, found = fit_curve(p, np.full(1000, is_right))
    assert (np.abs(np.interp(p, corners, found) - is_right) < 0.002).all()


@given(st.lists(st.tuples(st.integers(0, 1000).map(lambda x: x / 1000), st.booleans()), min_size=50, max_size=80))
@settings(max_examples=50)
def test_curves_rise_everywhere(pairs):
    p, is_true = (np.asarray(each) for each in zip(*pairs, strict=True))
    corners, found = fit_curve(p, is_true)
    assert (np.diff(corners) > 0).all()
    assert (np.diff(found) > 0).all()
    assert ((found > 0) & (found < 1)).all()
    curves = Curves.concatenate([(np.zeros(0), np.zeros(0)), (corners, found)])
    np.testing.assert_array_equal(curves.apply(0, p), p)
    np.testing.assert_array_equal(curves.apply(1, p), np.interp(p, corners, found))


@pytest.mark.parametrize("case", ["one", "multi_label", "dag"])
def test_calibrations_survive_keeping_and_broken_ones_are_refused(case):
    taxonomy, log_potentials, memberships, Y = made(0, multi_label=case == "multi_label", dag=case == "dag")
    given_values = memberships if case == "multi_label" else log_potentials
    fitted = calibration_class(case == "multi_label").fit(given_values, Y, taxonomy)
    kind, arrays = CALIBRATIONS[fitted.kind], fitted.arrays()
    np.testing.assert_array_equal(
        kind.from_arrays(arrays, taxonomy).apply(given_values, taxonomy), fitted.apply(given_values, taxonomy)
    )
    for name, array in arrays.items():
        worst = np.full_like(array, np.nan) if array.dtype == np.float64 else array[1:]
        for broken in (array[:-1], array.astype(np.float32), worst):
            with pytest.raises(ModelError):
                kind.from_arrays(arrays | {name: broken}, taxonomy)


@given(parent_lists())
def test_documents_without_scores_get_probabilities_all_the_same(parents):
    taxonomy = build(parents)
    kind = calibration_class(multi_label=False)
    Y = expand_to_ancestors(as_matrix([{len(parents) - 1}, {0}], len(parents)), taxonomy)
    fitted = kind.fit(LogPotentials(np.zeros((2, len(parents)))), Y, taxonomy)
    assert np.isfinite(fitted.apply(LogPotentials(np.full((1, len(parents)), np.nan)), taxonomy)).all()


def test_probabilities_next_to_each_other_do_not_make_a_curve_too_steep():
    p = np.concatenate([np.linspace(0, 1e-300, 40), np.linspace(0.5, 0.5 + 1e-15, 40), [1.0] * 20])
    corners, found = fit_curve(p, np.arange(100) % 3 > 0)
    assert (np.diff(corners) > 1e-10).all()
    assert np.isfinite(np.interp(p, corners, found)).all()


@pytest.mark.parametrize("paths", [["a", "b/c/d", "e/f/g", "h/i"], ["a", "h/i", "s/x/p", "s/y/q"]])
def test_leaves_below_single_children_are_as_sharp_as_others(paths):
    """Of siblings, some are leaves, and some have theirs below, where nothing is chosen, or not by scores of its own."""
    rng = np.random.default_rng(0)
    taxonomy = Taxonomy.from_paths(paths)
    leaves = np.flatnonzero(taxonomy.is_leaf)
    truth = rng.integers(0, 4, 2000)
    ends = np.full((2000, len(taxonomy)), np.nan)
    ends[:, leaves] = rng.normal(size=(2000, 4)) / 8
    ends[np.arange(2000), leaves[truth]] += 0.2
    Y = expand_to_ancestors(as_matrix([{int(leaves[k])} for k in truth], len(taxonomy)), taxonomy)
    P = TreeCalibration.fit(LogPotentials(ends), Y, taxonomy).apply(LogPotentials(ends), taxonomy)
    best = np.nan_to_num(ends[:, leaves], nan=-9).argmax(axis=1)
    assert (P[:, leaves].argmax(axis=1) == best).mean() > 0.9


def test_a_parent_that_a_learner_does_not_know_of_does_not_press_a_node_down():
    """Over a main-parent tree, nothing speaks for the other parent of a node."""
    dag = Taxonomy.from_edges([("a", None), ("b", None), ("x", "a"), ("x", "b")])
    rng, is_x = np.random.default_rng(0), np.arange(400) % 2 == 0
    likely = np.where(is_x, 0.9, 0.1) + rng.uniform(-0.05, 0.05, size=400)
    memberships = np.column_stack([likely, np.full(400, 0.02), likely])
    fitted = MultiLabelCalibration.fit(memberships, dag.encode([["x"] if x else [] for x in is_x]), dag)
    P = fitted.apply(memberships, dag)
    assert (P[is_x] > 0.9).all()
    assert (P[~is_x] < 0.1).all()
