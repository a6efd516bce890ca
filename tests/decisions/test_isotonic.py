import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import isotonic as oracle
from oracles.taxonomy import ancestors
from seeds import each_seed
from strategies import build, random_forest, trees

from ramify import Taxonomy, decisions
from ramify.errors import InputError

NAN, INF = float("nan"), float("inf")
PENALTIES = [0.0, 0.1, 1.0, 5.0, INF]
every_penalty = pytest.mark.parametrize("penalty", [*PENALTIES, "mixed"])


@st.composite
def problems(draw, max_nodes=5, max_documents=2):
    """Parents, scores with ties and gaps, weights that may be zero, and penalties of every kind."""
    parents = draw(trees(max_nodes))
    n = len(parents)
    # sums of these are exact, so that a cost of zero differs from almost zero
    score = st.one_of(st.sampled_from([NAN, -1.0, 0.0, 0.5, 1.0]), st.integers(-300, 300).map(lambda k: k / 64))
    S = draw(st.lists(st.lists(score, min_size=n, max_size=n), min_size=1, max_size=max_documents))
    weight = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.floats(0.01, 10))
    weights = draw(st.one_of(st.none(), st.lists(weight, min_size=n, max_size=n)))
    penalty = st.sampled_from([*PENALTIES, 0.37])
    return parents, np.array(S), weights, draw(st.one_of(penalty, st.lists(penalty, min_size=n, max_size=n)))


def random_problem(rng, n_nodes, penalty, n_documents=1):
    """The same from a seed: scores on a coarse grid or not, gaps or not, weights or not."""
    parents, shape = random_forest(rng, n_nodes), (n_documents, n_nodes)
    S = rng.integers(0, 4, size=shape) / 2 if rng.random() < 0.5 else rng.normal(size=shape)
    if rng.random() < 0.5:
        S[rng.random(shape) < 0.25] = NAN
    any_weight = rng.exponential(size=n_nodes) * rng.choice([1, 10])  # heavy ones tell a high penalty from an infinite one
    weights = [None, rng.integers(0, 3, size=n_nodes).astype(float), any_weight, any_weight][rng.integers(4)]
    any_penalty = np.where(rng.random(n_nodes) < 0.5, rng.exponential(size=n_nodes), rng.choice(PENALTIES, size=n_nodes))
    return parents, S, weights, any_penalty if penalty == "mixed" else penalty


def some_problems(how_many):
    """Problems of every kind of penalty with up to a dozen nodes."""
    rng = np.random.default_rng(how_many)
    kinds = [*PENALTIES, "mixed"]
    return [random_problem(rng, rng.integers(1, 13), kinds[i % len(kinds)], n_documents=2) for i in range(how_many)]


def per_node(problem):
    """Weights and penalties, one number a node, for the oracles."""
    parents, _, weights, penalty = problem
    n = len(parents)
    return [1.0] * n if weights is None else list(weights), np.broadcast_to(penalty, n).tolist()


def smooth(problem, **settings):
    parents, S, weights, penalty = problem
    return decisions.isotonic_smooth(S, build(parents), penalty=penalty, weights=weights, **settings)


def costs_of(problem, Y):
    """The cost of each document's smoothed scores; only trees without a score are NaN, and the rest is feasible."""
    parents, S, _, _ = problem
    weights, penalties = per_node(problem)
    costs = []
    assert Y.shape == S.shape
    for x, y in zip(S.tolist(), Y.tolist(), strict=True):
        for tree, values in oracle.tree_scores(x, parents, weights):
            assert [math.isnan(y[node]) for node in tree] == [not values] * len(tree)
        filled = [0.0 if math.isnan(value) else value for value in y]
        assert oracle.is_feasible(filled, parents, penalties)
        costs.append(oracle.cost(x, filled, parents, weights, penalties))
    return costs


def least_costs(problem, solve=oracle.smooth_by_enumeration):
    parents, S, _, _ = problem
    return [solve(x, parents, *per_node(problem)) for x in S.tolist()]


# ---- the oracles agree with each other ------------------------------------------------------------------------------


@every_penalty
def test_programs_over_all_real_values_find_nothing_below_the_best_assignment_of_scores(penalty):
    rng = np.random.default_rng(0)
    for _ in range(15):
        problem = random_problem(rng, rng.integers(1, 6), penalty)
        least = least_costs(problem)
        assert least_costs(problem, oracle.smooth_by_program) == pytest.approx(least, abs=1e-5)
        assert least_costs(problem, oracle.smooth_by_table) == pytest.approx(least, abs=1e-9)
        if penalty == 0:
            x, weights = problem[1][0].tolist(), per_node(problem)[0]
            assert oracle.smooth_by_linear_program(x, problem[0], weights) == pytest.approx(least[0], abs=1e-6)


# ---- the least cost -------------------------------------------------------------------------------------------------


@given(problems())
def test_no_assignment_of_scores_costs_less(problem):
    assert costs_of(problem, smooth(problem)) == pytest.approx(least_costs(problem), abs=1e-9)


@every_penalty
@each_seed(2)
def test_no_assignment_of_scores_costs_less_on_many_random_forests(penalty, seed):
    rng = np.random.default_rng(seed)
    for n_nodes in rng.choice([1, 2, 3, 4, 5, 6], p=[0.05, 0.1, 0.2, 0.3, 0.32, 0.03], size=170):
        problem = random_problem(rng, n_nodes, penalty, n_documents=2)
        assert costs_of(problem, smooth(problem)) == pytest.approx(least_costs(problem), abs=1e-9), problem


@every_penalty
def test_no_real_values_cost_less(penalty):
    rng = np.random.default_rng(1)
    for _ in range(20):
        problem = random_problem(rng, rng.integers(6, 15), penalty)
        least = least_costs(problem, oracle.smooth_by_program)
        assert costs_of(problem, smooth(problem)) == pytest.approx(least, abs=1e-5), problem


@every_penalty
def test_no_values_of_a_table_cost_less_on_larger_forests(penalty):
    rng = np.random.default_rng(2)
    for _ in range(12):
        problem = random_problem(rng, rng.integers(15, 80), penalty, n_documents=2)
        least = least_costs(problem, oracle.smooth_by_table)
        assert costs_of(problem, smooth(problem)) == pytest.approx(least, abs=1e-9), problem


def test_without_a_penalty_it_is_the_plain_isotonic_regression_of_the_linear_program():
    rng = np.random.default_rng(3)
    for _ in range(60):
        problem = random_problem(rng, rng.integers(1, 25), 0.0)
        parents, S, _, _ = problem
        least = oracle.smooth_by_linear_program(S[0].tolist(), parents, per_node(problem)[0])
        assert costs_of(problem, smooth(problem)) == pytest.approx([least], abs=1e-6), problem


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.3, 1.0, 4.0]), min_size=1, max_size=6), st.data())
def test_a_chain_without_a_penalty_becomes_the_nearest_falling_sequence(x, data):
    weights = data.draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(x), max_size=len(x)))
    problem = chain(len(x)), np.array([x]), weights, 0.0
    assert costs_of(problem, smooth(problem)) == pytest.approx([oracle.smooth_chain_by_enumeration(x, weights)])


def test_smoothed_values_are_scores_of_their_tree():
    for problem in some_problems(200):
        parents, S, _, _ = problem
        weights, _ = per_node(problem)
        for x, y in zip(S.tolist(), smooth(problem).tolist(), strict=True):
            for tree, values in oracle.tree_scores(x, parents, weights):
                assert not values or {y[node] for node in tree} <= set(values), problem


@given(problems(max_nodes=5))
def test_a_large_penalty_costs_what_equality_costs(problem):
    parents, S, weights, _ = problem
    S = (S + 5) / 10
    strict, large = (parents, S, weights, INF), (parents, S, weights, 1e6)
    assert costs_of(large, smooth(large)) == pytest.approx(costs_of(strict, smooth(strict)), abs=1e-9)


def test_penalties_of_leaves_mean_nothing():
    rng = np.random.default_rng(4)
    for problem in some_problems(200):
        parents, S, weights, _ = problem
        penalties = per_node(problem)[1]
        is_inner = np.isin(np.arange(len(parents)), [parent for above in parents for parent in above])
        changed = np.where(is_inner, penalties, rng.choice(PENALTIES, size=len(parents)))
        np.testing.assert_array_equal(smooth(problem), smooth((parents, S, weights, changed)))


def test_a_node_of_weight_zero_is_a_node_without_a_score():
    for parents, S, _, penalty in some_problems(200):
        weights = np.arange(len(parents)) % 3
        hidden = np.where(weights == 0, NAN, S)
        np.testing.assert_array_equal(smooth((parents, S, weights, penalty)), smooth((parents, hidden, weights, penalty)))


# ---- shapes that are easily got wrong -------------------------------------------------------------------------------


def chain(n_nodes):
    return [[]] + [[node] for node in range(n_nodes - 1)]


def star(n_nodes):
    return [[]] + [[0] for _ in range(n_nodes - 1)]


@every_penalty
@pytest.mark.parametrize("shape", [chain, star, lambda n: [[] for _ in range(n)]], ids=["chain", "star", "flat"])
@pytest.mark.parametrize("n_nodes", [1, 2, 40, 1000])
def test_chains_stars_and_flat_taxonomies_of_any_size(penalty, shape, n_nodes):
    rng = np.random.default_rng(n_nodes)
    problem = shape(n_nodes), rng.integers(0, 3, size=(1, n_nodes)) / 2, None, 1.0
    if penalty == "mixed":
        penalty = rng.choice(PENALTIES, size=n_nodes)
    problem = (*problem[:3], penalty)
    Y = smooth(problem)
    weights, penalties = per_node(problem)
    least = oracle.smooth_by_table(problem[1][0].tolist(), problem[0], weights, penalties)
    assert quick_cost(problem, Y)[0] == pytest.approx(least, abs=1e-9)


def quick_cost(problem, Y):
    """The cost of feasible smoothed scores without gaps, all children of a node at once."""
    parents, S, _, _ = problem
    weights, penalties = per_node(problem)
    largest = np.full(S.shape, -INF)
    for node, above in enumerate(parents):
        for parent in above:
            largest[:, parent] = np.maximum(largest[:, parent], Y[:, node])
    gaps = np.where(largest > -INF, Y - largest, 0.0)
    assert (gaps >= 0).all()
    paid = np.where(gaps > 0, np.asarray(penalties) * np.where(gaps > 0, gaps, 1.0), 0.0)
    return (np.abs(S - Y) * weights + paid).sum(axis=1)


def test_a_lonely_child_pulls_its_parent_up_or_gives_way():
    # parent 0, child 1: equal weights meet anywhere between; the heavier one wins
    assert decisions.isotonic_smooth([[0.0, 1.0]], build(chain(2)), penalty=0, weights=[1, 2]).tolist() == [[1, 1]]
    assert decisions.isotonic_smooth([[0.0, 1.0]], build(chain(2)), penalty=0, weights=[2, 1]).tolist() == [[0, 0]]


def test_a_parent_above_its_children_pays_for_the_gap():
    # parent 1 above children at 0: the gap costs the penalty, closing it costs the weight of the parent or of one child
    S, taxonomy = [[1.0, 0.0, 0.0]], build(star(3))
    assert decisions.isotonic_smooth(S, taxonomy, penalty=0.5).tolist() == [[1, 0, 0]]
    assert decisions.isotonic_smooth(S, taxonomy, penalty=5, weights=[1, 2, 2]).tolist() == [[0, 0, 0]]
    assert decisions.isotonic_smooth(S, taxonomy, penalty=INF, weights=[3, 2, 1]).tolist() == [[1, 0, 1]]


def test_a_tree_without_scores_stays_without_while_another_is_smoothed():
    parents = [[], [0], [], [2]]
    Y = decisions.isotonic_smooth([[NAN, NAN, 0.0, 1.0]], build(parents), penalty=0, weights=[1, 1, 1, 2])
    np.testing.assert_array_equal(Y, [[NAN, NAN, 1, 1]])


# ---- what smoothing leaves alone ------------------------------------------------------------------------------------


@given(problems(max_nodes=8))
def test_scores_that_fall_along_every_path_stay_without_a_penalty(problem):
    parents, S, _, _ = problem
    S = np.nan_to_num(S, nan=0.25)
    for node, above in enumerate(parents):
        for parent in above:
            S[:, node] = np.minimum(S[:, node], S[:, parent])
    np.testing.assert_array_equal(smooth((parents, S, None, 0.0)), S)


@given(problems(max_nodes=8), st.sampled_from([0.0, INF]), st.sampled_from([1.0, 0.3]))
def test_smoothing_twice_is_smoothing_once(problem, penalty, weight):
    parents, S, _, _ = problem
    weights = [weight + node for node in range(len(parents))]
    once = smooth((parents, S, weights, penalty))
    np.testing.assert_array_equal(smooth((parents, once, weights, penalty)), once)


# ---- levels ---------------------------------------------------------------------------------------------------------


@given(problems(max_nodes=6), st.sampled_from([2, 3, 5, 100]))
def test_levels_cost_at_most_one_step_for_each_weight(problem, levels):
    parents, S, _, _ = problem
    weights, penalties = per_node(problem)
    reached = costs_of(problem, smooth(problem, levels=levels))
    for x, cost in zip(S.tolist(), reached, strict=True):
        slack = 1e-9
        for tree, values in oracle.tree_scores(x, parents, weights):
            if values:
                step = (values[-1] - values[0]) / (levels - 1)
                slack += step * sum(weights[node] for node in tree if node in oracle.scored(x, weights))
        assert cost <= oracle.smooth_by_table(x, parents, weights, penalties) + slack


@given(problems(max_nodes=6), st.sampled_from([2, 3, 4]))
def test_a_tree_gets_no_more_values_than_levels_and_none_outside_its_scores(problem, levels):
    parents, S, _, _ = problem
    weights, _ = per_node(problem)
    for x, y in zip(S.tolist(), smooth(problem, levels=levels).tolist(), strict=True):
        for tree, values in oracle.tree_scores(x, parents, weights):
            if values:
                found = {y[node] for node in tree}
                assert len(found) <= levels
                assert values[0] - 1e-12 <= min(found) <= max(found) <= values[-1] + 1e-12


@pytest.mark.parametrize("levels", [2, 3, 5, 9])
def test_levels_move_scores_that_fall_along_a_chain_by_at_most_half_a_step(levels):
    S = -np.sort(-np.random.default_rng(levels).normal(size=(4, 60)), axis=1)
    Y = decisions.isotonic_smooth(S, build(chain(60)), penalty=0, levels=levels)
    step = (S.max(axis=1) - S.min(axis=1)) / (levels - 1)
    assert (np.abs(Y - S).max(axis=1) <= step / 2 + 1e-12).all()
    assert [len(set(row)) for row in Y.tolist()] == [levels] * 4


# ---- batches and forms ----------------------------------------------------------------------------------------------


def batch(n_documents, n_nodes=40, penalty=1.0):
    """Documents with gaps, ties and different ranges on a forest of three trees."""
    rng = np.random.default_rng(n_documents)
    parents = [[] if node % 15 == 0 else [int(rng.integers(node // 15 * 15, node))] for node in range(n_nodes)]
    S = rng.normal(size=(n_documents, n_nodes)) * rng.exponential(size=(n_documents, 1))
    S[::2] = np.round(S[::2])
    S[rng.random(S.shape) < 0.1] = NAN
    S[n_documents // 2, :15] = NAN
    return parents, S, rng.integers(0, 3, size=n_nodes), penalty


@every_penalty
@pytest.mark.parametrize("n_documents", [1, 3, 17, 64])
@pytest.mark.parametrize("levels", [None, 4])
def test_a_row_is_smoothed_the_same_in_any_batch(penalty, n_documents, levels):
    parents, S, weights, _ = batch(n_documents)
    penalty = [PENALTIES[node % 5] for node in range(len(parents))] if penalty == "mixed" else penalty
    together = smooth((parents, S, weights, penalty), levels=levels)
    order = np.random.default_rng(0).permutation(n_documents)
    np.testing.assert_array_equal(smooth((parents, S[order], weights, penalty), levels=levels), together[order])
    alone = [smooth((parents, S[d : d + 1], weights, penalty), levels=levels) for d in range(n_documents)]
    np.testing.assert_array_equal(np.vstack(alone), together)


def test_trees_are_smoothed_as_if_they_were_alone():
    parents, S, weights, penalty = batch(17)
    together = smooth((parents, S, weights, penalty))
    for start in range(0, 40, 15):
        tree = slice(start, start + 15)
        alone = [[parent - start for parent in above] for above in parents[tree]]
        np.testing.assert_array_equal(smooth((alone, S[:, tree], weights[tree], penalty)), together[:, tree])


def test_single_precision_in_gives_single_precision_out():
    parents, S, weights, penalty = batch(17)
    single = S.astype(np.float32)
    Y = smooth((parents, single, weights, penalty))
    assert Y.dtype == np.float32
    assert smooth((parents, S, weights, penalty)).dtype == np.float64
    double = parents, single.astype(np.float64), weights, penalty
    assert costs_of(double, Y.astype(np.float64)) == pytest.approx(costs_of(double, smooth(double)), rel=1e-5)


def test_scores_come_as_lists_and_in_any_order_and_stay_as_they_are():
    parents, S, weights, penalty = batch(17)
    before, expected = S.copy(), smooth((parents, S, weights, penalty))
    for form in (S.tolist(), np.asfortranarray(S), np.repeat(S, 2, axis=0)[::2]):
        np.testing.assert_array_equal(smooth((parents, form, weights, penalty)), expected)
    np.testing.assert_array_equal(S, before)
    assert not np.shares_memory(expected, S)


def test_whole_numbers_are_scores():
    Y = decisions.isotonic_smooth(np.array([[0, 1]]), build(chain(2)), penalty=0, weights=[1, 2])
    assert Y.dtype.kind == "f"
    assert Y.tolist() == [[1, 1]]


def test_no_documents_and_no_nodes_give_no_scores(food):
    assert decisions.isotonic_smooth(np.zeros((0, 6)), food, penalty=1.0).shape == (0, 6)
    assert decisions.isotonic_smooth(np.zeros((2, 0)), Taxonomy.flat([]), penalty=1.0).shape == (2, 0)


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"penalty": -1.0}, "penalt"),
        ({"penalty": NAN}, "penalt"),
        ({"penalty": "hard"}, "penalt"),
        ({"penalty": [1.0, 2.0]}, "penalt"),
        ({"penalty": [-1.0] + [1.0] * 5}, "penalt"),
        ({"penalty": [NAN] + [1.0] * 5}, "penalt"),
        ({"weights": [1.0, 2.0]}, "weight"),
        ({"weights": [-1.0] + [1.0] * 5}, "weight"),
        ({"weights": [NAN] + [1.0] * 5}, "weight"),
        ({"weights": [INF] + [1.0] * 5}, "weight"),
        ({"weights": [[1.0] * 6]}, "weight"),
        ({"levels": 1}, "levels"),
        ({"levels": 0}, "levels"),
        ({"levels": 2.5}, "levels"),
        ({"levels": "3"}, "levels"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, complaint, food):
    with pytest.raises(InputError, match=complaint):
        decisions.isotonic_smooth(np.zeros((1, 6)), food, **{"penalty": 1.0, **settings})


def test_scores_that_do_not_fit_are_refused(food):
    with pytest.raises(InputError, match="6 nodes"):
        decisions.isotonic_smooth([[1.0, 2.0]], food, penalty=1.0)
    with pytest.raises(InputError, match="infinite"):
        decisions.isotonic_smooth([[0.0, 1.0, INF, 0.0, 0.0, 0.0]], food, penalty=1.0)


@pytest.mark.parametrize("penalty", [1e6, 1e12, 1e15, 1e18])
def test_the_largest_penalties_do_not_drown_the_scores(penalty):
    rng = np.random.default_rng(0)
    for _ in range(50):
        taxonomy, S = build(random_forest(rng, 9)), rng.random((3, 9))
        np.testing.assert_array_equal(
            decisions.isotonic_smooth(S, taxonomy, penalty), decisions.isotonic_smooth(S, taxonomy, INF)
        )


@pytest.mark.parametrize(
    "settings", [{"weights": [1e308] * 6}, {"penalty": 1e308, "scores": [[1e3] * 6]}, {"scores": [[1e305, -1e305] * 3]}]
)
def test_numbers_too_large_to_add_up_are_refused(settings, food):
    S = np.asarray(settings.get("scores", [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]))
    with pytest.raises(InputError, match="too large to add up; scale them down"):
        decisions.isotonic_smooth(S, food, settings.get("penalty", 1.0), settings.get("weights"))


def test_scores_with_no_more_values_than_levels_are_smoothed_exactly():
    rng = np.random.default_rng(1)
    taxonomy, S = build(random_forest(rng, 40)), rng.integers(0, 5, size=(7, 40)) / 3
    np.testing.assert_array_equal(
        decisions.isotonic_smooth(S, taxonomy, 0.7, levels=5), decisions.isotonic_smooth(S, taxonomy, 0.7)
    )


def test_exact_smoothing_of_too_many_nodes_is_refused_and_levels_are_advised(monkeypatch, food):
    monkeypatch.setattr("ramify.decisions.isotonic.MAX_NODES", 5)
    with pytest.raises(InputError, match="exact smoothing of 6 nodes needs too much memory; give levels=256"):
        decisions.isotonic_smooth(np.ones((1, 6)), food)
    assert decisions.isotonic_smooth(np.ones((1, 6)), food, levels=2).tolist() == [[1.0] * 6]


def test_what_is_no_number_is_refused(food):
    with pytest.raises(InputError, match="the scores are not numbers"):
        decisions.isotonic_smooth([["high"] * 6], food)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_threads_change_nothing(n_jobs):
    rng = np.random.default_rng(2)
    taxonomy, S = build(random_forest(rng, 200)), rng.random((2000, 200)).astype(np.float32)
    np.testing.assert_array_equal(
        decisions.isotonic_smooth(S, taxonomy, 1.0, n_jobs=n_jobs), decisions.isotonic_smooth(S, taxonomy, 1.0)
    )


# ---- impossible nodes -----------------------------------------------------------------------------------------------


@given(problems(max_nodes=7), st.data())
def test_an_impossible_node_and_all_below_it_are_as_if_they_were_not_there(problem, data):
    parents, S, weights, penalty = problem
    n = len(parents)
    S[data.draw(st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=len(S), max_size=len(S)))] = -INF
    smoothed = smooth((parents, S, weights, penalty))
    for x, y in zip(S, smoothed, strict=True):
        out = {node for node in range(n) if any(x[above] == -INF for above in [node, *ancestors(parents, node)])}
        assert {node for node in range(n) if y[node] == -INF} == out
        kept = [node for node in range(n) if node not in out]
        fewer = [[kept.index(parent) for parent in parents[node]] for node in kept]
        of_kept = [None if part is None else np.asarray(part)[kept] for part in (weights, np.broadcast_to(penalty, n))]
        if kept:
            np.testing.assert_array_equal(y[kept], smooth((fewer, x[kept][None], *of_kept))[0])


def test_an_impossible_child_neither_wins_nor_drags_its_parent_down():
    tree = build([[], [0], [1], [0]])
    S = [[0.9, 0.9, -INF, 0.1], [0.9, 0.9, 0.0, 0.1], [0.9, 0.9, NAN, 0.1]]
    np.testing.assert_array_equal(
        decisions.isotonic_smooth(S, tree), [[0.9, 0.9, -INF, 0.1], [0.9, 0.9, 0.9, 0.1], [0.9, 0.9, 0.9, 0.1]]
    )
