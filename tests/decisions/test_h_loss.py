import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import h_loss_decisions as oracle
from oracles.taxonomy import close_upward
from scipy.sparse import issparse
from seeds import each_seed
from strategies import as_sets, build, random_forest, trees

from ramify import Taxonomy, decisions
from ramify.errors import InputError

NAN = float("nan")
CHAIN = [[], [0], [1]]
# with these numbers every sum and product is exact, so that ties are ties
EXACT = st.sampled_from([NAN, 0.0, 0.25, 0.5, 0.75, 1.0])
ANY = st.one_of(EXACT, st.floats(0, 1))


@st.composite
def chances(draw, max_nodes=7, value=ANY):
    """Parents, probabilities of a few documents with ties and gaps, and costs that may be zero."""
    parents = draw(trees(max_nodes))
    n = len(parents)
    P = draw(st.lists(st.lists(value, min_size=n, max_size=n), min_size=1, max_size=2))
    cost = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.floats(0, 10))
    return parents, P, draw(st.lists(cost, min_size=n, max_size=n))


def decide(P, parents, costs=None, switch_depth=0):
    Y = decisions.minimize_h_loss(np.asarray(P, dtype=float).reshape(-1, len(parents)), build(parents), costs, switch_depth)
    return as_sets(Y)


def random_chances(rng, n_documents, n_nodes):
    """Probabilities of one of three kinds: anything, ties at 0, 1/2 and 1, or both with gaps."""
    anything, ties = rng.random((n_documents, n_nodes)), rng.choice([0.0, 0.5, 1.0], size=(n_documents, n_nodes))
    mixed = np.where(rng.random((n_documents, n_nodes)) < 0.5, anything, ties)
    mixed[rng.random((n_documents, n_nodes)) < 0.1] = NAN
    return [anything, ties, mixed][rng.integers(3)]


def random_costs(rng, n_nodes):
    """Any costs, all the same, or some zero."""
    any_cost = rng.exponential(size=n_nodes)
    return [any_cost, np.ones(n_nodes), any_cost * (rng.random(n_nodes) < 0.6), np.zeros(n_nodes)][
        rng.choice(4, p=[0.4, 0.2, 0.3, 0.1])
    ]


# ---- the oracles agree with each other ------------------------------------------------------------------------------


@given(chances(max_nodes=5), st.data())
def test_three_ways_to_the_expected_h_loss_agree(case, data):
    parents, P, costs = case
    sets, losses = oracle.all_expected_h_losses(np.asarray(P), parents, costs)
    which = data.draw(st.integers(0, len(sets) - 1))
    y = as_sets(sets)[which]
    assert sum(oracle.probability(v, P[0], parents) for v in oracle.closed_sets(parents)) == pytest.approx(1)
    assert losses[0, which] == pytest.approx(oracle.expected_h_loss(y, P[0], parents, costs))
    assert losses[0, which] == pytest.approx(oracle.expected_h_loss_along_paths(y, P[0], parents, costs))


@given(chances(max_nodes=5), st.integers(0, 4))
def test_the_recursion_is_as_good_as_trying_every_set(case, switch_depth):
    parents, P, costs = case
    y = oracle.minimize_h_loss(P[0], parents, costs, switch_depth)
    assert y in oracle.allowed_sets(P[0], parents, switch_depth)
    least = oracle.least_expected_h_loss(P[0], parents, costs, switch_depth)
    assert oracle.expected_h_loss(y, P[0], parents, costs) == pytest.approx(least)


# ---- no set is better -----------------------------------------------------------------------------------------------


@given(chances(max_nodes=5))
def test_no_consistent_label_set_has_a_smaller_expected_h_loss(case):
    parents, P, costs = case
    for p, y in zip(P, decide(P, parents, costs), strict=True):
        assert y in oracle.allowed_sets(p, parents)
        least = oracle.least_expected_h_loss(p, parents, costs)
        assert oracle.expected_h_loss(y, p, parents, costs) == pytest.approx(least, abs=1e-12)


@each_seed(4)
def test_no_set_is_better_on_thousands_of_random_forests(seed):
    rng = np.random.default_rng(seed)
    for n_nodes in rng.choice(np.arange(1, 11), p=[0.02, 0.06, 0.1, 0.15, 0.2, 0.2, 0.15, 0.07, 0.03, 0.02], size=500):
        parents = random_forest(rng, n_nodes)
        P, costs = random_chances(rng, 4, n_nodes), random_costs(rng, n_nodes)
        sets, losses = oracle.all_expected_h_losses(P, parents, costs)
        answer = decisions.minimize_h_loss(P, build(parents), costs).toarray()
        which = (sets[None] == answer[:, None]).all(axis=2)
        assert which.any(axis=1).all(), (parents, P, costs)
        reached = losses[np.arange(4), which.argmax(axis=1)]
        assert reached == pytest.approx(losses.min(axis=1), abs=1e-12), (parents, P, costs)
        assert not answer[np.isnan(P)].any()


@given(chances(max_nodes=5), st.integers(0, 4))
def test_above_the_switch_depth_it_descends_and_below_no_set_is_better(case, switch_depth):
    parents, P, costs = case
    for p, y in zip(P, decide(P, parents, costs, switch_depth), strict=True):
        assert y in oracle.allowed_sets(p, parents, switch_depth)
        least = oracle.least_expected_h_loss(p, parents, costs, switch_depth)
        assert oracle.expected_h_loss(y, p, parents, costs) == pytest.approx(least, abs=1e-12)


@given(chances(8, EXACT), st.data(), st.integers(0, 4))
def test_a_node_is_taken_when_taking_it_costs_no_more(case, data, switch_depth):
    parents, P, _ = case
    costs = data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=len(parents), max_size=len(parents)))
    assert decide(P, parents, costs, switch_depth) == [oracle.minimize_h_loss(p, parents, costs, switch_depth) for p in P]


@each_seed(6)
@pytest.mark.parametrize("switch_depth", [0, 2])
def test_large_forests_equal_the_recursion(seed, switch_depth):
    rng = np.random.default_rng(seed)
    n_nodes = 400
    parents = random_forest(rng, n_nodes)
    P, costs = np.clip(rng.beta(2, 1, size=(5, n_nodes)), 0, 1), rng.exponential(size=n_nodes)
    for p, y in zip(P, decide(P, parents, costs, switch_depth), strict=True):
        least = oracle.minimize_h_loss(p, parents, costs, switch_depth)
        loss = oracle.expected_h_loss_along_paths(y, p, parents, costs)
        assert loss == pytest.approx(oracle.expected_h_loss_along_paths(least, p, parents, costs), rel=1e-9)


def test_a_chain_of_thousands_of_nodes_is_decided():
    parents = [[]] + [[node] for node in range(4999)]
    P = np.full((2, 5000), 1.0)
    P[1, 3000] = 0.0
    assert [len(y) for y in decide(P, parents)] == [5000, 3000]


# ---- the recursion as printed ---------------------------------------------------------------------------------------


def test_the_recursion_as_printed_misses_the_least_expected_h_loss_on_a_chain_of_three():
    # bottom: H = 1/2. middle: left, H = 1/4 + 1/2, though the bottom costs nothing below a middle that is left.
    # top: 3/4 (2 − 3/4) < 1, left, at a loss of 3/4; taken it costs 1/4 + 3/4 · 1/4.
    p, costs = [0.75, 0.25, 0.5], [1.0, 1.0, 1.0]
    printed, ours = oracle.printed_recursion(p, CHAIN, costs), decide([p], CHAIN)[0]
    assert (printed, ours) == (set(), {0})
    assert oracle.expected_h_loss(printed, p, CHAIN, costs) == 0.75
    assert oracle.expected_h_loss(ours, p, CHAIN, costs) == oracle.least_expected_h_loss(p, CHAIN, costs) == 0.4375


@given(chances(5, st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])))
def test_the_recursion_as_printed_leaves_more_nodes_and_is_never_better(case):
    parents, P, _ = case
    costs = [1.0] * len(parents)
    for p, y in zip(P, decide(P, parents), strict=True):
        printed = oracle.printed_recursion(p, parents, costs)
        assert printed <= y
        assert oracle.expected_h_loss(y, p, parents, costs) <= oracle.expected_h_loss(printed, p, parents, costs)
        if all(not parents[parent] for above in parents for parent in above):
            assert printed == y, "on two levels the printed recursion is right"


# ---- costs ----------------------------------------------------------------------------------------------------------


@given(chances(value=EXACT))
def test_without_costs_every_node_costs_one(case):
    parents, P, _ = case
    assert decide(P, parents) == decide(P, parents, [1] * len(parents)) == decide(P, parents, [2.0] * len(parents))


def test_sibling_costs_share_one_among_siblings():
    rng = np.random.default_rng(0)
    for n_nodes in rng.integers(1, 15, size=300):
        parents = random_forest(rng, n_nodes)
        P, costs = random_chances(rng, 2, n_nodes).tolist(), oracle.sibling_costs(parents)
        for p, y in zip(P, decide(P, parents, "siblings"), strict=True):
            least = oracle.minimize_h_loss(p, parents, costs)
            loss = oracle.expected_h_loss_along_paths(y, p, parents, costs)
            assert loss == pytest.approx(oracle.expected_h_loss_along_paths(least, p, parents, costs), abs=1e-12)


def test_roots_are_siblings_of_each_other():
    # a child that costs 1 at p = 0.5 below a root that costs 1/2: 0.6 · 1/2 < 0.4 · 1/2 + 0.6 · 0.5; alone it costs 1
    assert decide([[0.6, 0.0, 0.5]], [[], [], [0]], "siblings") == [set()]
    assert decide([[0.7, 0.5]], [[], [0]], "siblings") == [{0, 1}]
    assert decide([[0.6, 0.0, 0.3]], [[], [], [0]], "siblings") == [set()]
    assert decide([[0.75, 0.0, 0.25]], [[], [], [0]], "siblings") == [{0}]


def test_nodes_that_cost_nothing_are_taken_unless_they_are_impossible():
    assert decide([[0.1, 1.0, NAN], [NAN, 1.0, 1.0], [0.1, 0.0, 1.0]], CHAIN, [0, 0, 0]) == [{0, 1}, set(), {0}]


def test_certain_nodes_are_taken_and_impossible_ones_left(food):
    P = np.array([np.ones(6), np.zeros(6), np.full(6, NAN)])
    for costs in (None, "siblings", [1, 2, 3, 4, 5, 6]):
        assert [len(y) for y in as_sets(decisions.minimize_h_loss(P, food, costs))] == [6, 0, 0]


# ---- walking down ---------------------------------------------------------------------------------------------------


@given(trees(max_nodes=9), st.data(), st.sampled_from([None, -1.0, 0.0, 0.5, 2.0]))
def test_top_down_equals_the_oracle_ties_and_missing_scores_included(parents, data, threshold):
    value = st.sampled_from([NAN, -2.0, -1.0, 0.0, 0.25, 0.5, 2.0])
    rows = data.draw(st.lists(st.lists(value, min_size=len(parents), max_size=len(parents)), max_size=4))
    S = np.asarray(rows, dtype=float).reshape(-1, len(parents))
    given_threshold = {} if threshold is None else {"threshold": threshold}
    answer = as_sets(decisions.top_down(S, build(parents), **given_threshold))
    assert answer == [oracle.top_down(row, parents, threshold or 0.0) for row in rows]


@given(chances(value=EXACT))
def test_switching_below_the_leaves_is_top_down_by_one_half(case):
    parents, P, costs = case
    walked = as_sets(decisions.top_down(np.asarray(P, dtype=float), build(parents), threshold=0.5))
    for switch_depth in (build(parents).n_levels, 100):
        assert decide(P, parents, costs, switch_depth) == walked


def test_top_down_takes_a_likely_root_above_children_that_make_it_a_bad_choice():
    # two children at 1/2 below a root at 0.6: leaving it costs 0.6, taking it 0.4 + 0.6 · (0.5 + 0.5)
    parents = [[], [0], [0]]
    assert decide([[0.6, 0.5, 0.5]], parents) == [set()]
    assert decide([[0.6, 0.5, 0.5]], parents, switch_depth=1) == [{0, 1, 2}]
    assert decide([[0.6, 0.4, 0.5]], parents, switch_depth=1) == [{0, 2}]


# ---- what holds of both ---------------------------------------------------------------------------------------------

RULES = {
    "least": lambda P, t: decisions.minimize_h_loss(P, t),
    "siblings": lambda P, t: decisions.minimize_h_loss(P, t, "siblings"),
    "hybrid": lambda P, t: decisions.minimize_h_loss(P, t, np.arange(len(t)) % 3, switch_depth=2),
    "walk": lambda P, t: decisions.top_down(P, t, threshold=0.5),
}
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def problem(n_documents, n_nodes=30, seed=0):
    rng = np.random.default_rng(seed)
    parents = [[]] + [[] if node % 11 == 0 else [(node - 1) // 2] for node in range(1, n_nodes)]
    P = rng.beta(3, 1, size=(n_documents, n_nodes))
    P[rng.random(P.shape) < 0.05] = NAN
    return P, build(parents), parents


@every_rule
@pytest.mark.parametrize("n_documents", [1, 3, 17, 64])
def test_a_row_is_decided_the_same_in_any_batch(rule, n_documents):
    P, taxonomy, _ = problem(n_documents)
    together = rule(P, taxonomy).toarray()
    order = np.random.default_rng(1).permutation(n_documents)
    assert (rule(P[order], taxonomy).toarray() == together[order]).all()
    assert (np.vstack([rule(P[d : d + 1], taxonomy).toarray() for d in range(n_documents)]) == together).all()


@every_rule
def test_labels_are_sparse_boolean_and_closed_upward(rule):
    P, taxonomy, parents = problem(20)
    answer = rule(P, taxonomy)
    assert issparse(answer)
    assert answer.format == "csr"
    assert answer.dtype == bool
    assert answer.shape == (20, 30)
    assert answer.data.all()
    assert answer.has_sorted_indices
    assert 0 < answer.nnz < 20 * 30
    assert all(y == close_upward(parents, y) for y in as_sets(answer))


@every_rule
def test_numbers_come_as_lists_in_either_precision_and_any_order_and_stay_as_they_are(rule):
    P, taxonomy, _ = problem(20)
    P = P.astype(np.float32)
    before, expected = P.copy(), rule(P.astype(np.float64), taxonomy)
    for form in (P, P.astype(np.float64).tolist(), np.asfortranarray(P), np.repeat(P, 2, axis=0)[::2]):
        assert (rule(form, taxonomy) != expected).nnz == 0
    np.testing.assert_array_equal(P, before)


@every_rule
def test_no_documents_and_no_nodes_give_no_labels(rule, food):
    assert rule(np.zeros((0, 6)), food).shape == (0, 6)
    assert rule(np.zeros((2, 0)), Taxonomy.flat([])).shape == (2, 0)


# ---- refusals -------------------------------------------------------------------------------------------------------


@every_rule
def test_numbers_of_another_width_are_refused(rule, food):
    with pytest.raises(InputError, match="6 nodes"):
        rule(np.zeros((1, 2)), food)


@pytest.mark.parametrize("value", [-0.1, 1.5, math.inf, -math.inf])
def test_what_is_no_probability_is_refused(value, food):
    P = np.full((2, 6), 0.5)
    P[1, 3] = value
    with pytest.raises(InputError, match="probabilit|infinite"):
        decisions.minimize_h_loss(P, food)


@pytest.mark.parametrize(
    "costs", [[1.0], [1.0] * 7, [-1.0] + [1.0] * 5, [NAN] * 6, [math.inf] * 6, "cousins", ["a"] * 6, [[1.0] * 6], 3.0]
)
def test_costs_that_make_no_sense_are_refused(costs, food):
    with pytest.raises(InputError, match="cost"):
        decisions.minimize_h_loss(np.full((1, 6), 0.5), food, costs)


@pytest.mark.parametrize("switch_depth", [-1, 0.5, "2", None, NAN])
def test_a_switch_depth_that_is_no_depth_is_refused(switch_depth, food):
    with pytest.raises(InputError, match="switch_depth"):
        decisions.minimize_h_loss(np.full((1, 6), 0.5), food, switch_depth=switch_depth)
