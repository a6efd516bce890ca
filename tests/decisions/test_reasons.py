"""What rules say they did is what they did, with the numbers that they had."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import h_loss_decisions as slow
from strategies import build, parent_lists, trees

from ramify import Taxonomy
from ramify.classifier.fitting import RULES
from ramify.decisions import Best, Descend, GCut, IsotonicSmooth, MinimizeHLoss, PCut, PredictedCut, RCut, SCut, Sign, TopDown
from ramify.decisions.h_loss import expected_losses
from ramify.decisions.reasons import format_numbers

COARSE = [np.nan, -2.0, -0.5, -1e-4, 0.0, 0.25, 0.3, 0.30001, 1.0, 7.5]
CHANCES = [np.nan, 0.0, 0.1, 0.3, 0.45, 0.5, 0.55, 0.9, 0.99999, 1.0]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def numbers_in(sentence):
    """The numbers of a sentence, each with how far rounding may have moved it."""
    found = NUMBER.findall(re.sub(r"'[^']*'|number \d+ of \d+ scores, of which \d+|of \d+ scores|first of \d+", "", sentence))
    return [(float(word), 0.0 if "." not in word else 0.51 * 10.0 ** -len(word.partition(".")[2])) for word in found]


def is_yes(sentence):
    """Whether a sentence says that the node was taken."""
    if "its parent was not taken" in sentence:
        return False
    if "was taken" in sentence or "the highest of" in sentence or sentence.startswith("the most probable"):
        return True
    if risks := re.search(r"expected loss is (\S+) if taken and (\S+) if left", sentence):
        return float(risks[1]) <= float(risks[2])
    if rank := re.search(r"number (\d+) of \d+ scores, of which (\d+)", sentence):
        return int(rank[1]) <= int(rank[2])
    return " reaches " in sentence


def assert_is_true(rule, values, taxonomy, real):
    """Every sentence agrees with what was decided, and holds no other numbers than the real ones."""
    taken = set(rule.decide([values], taxonomy).indices.tolist())
    for node, sentence in enumerate(rule.reasons(values, taxonomy, list(range(len(taxonomy))))):
        assert is_yes(sentence) == (node in taken), sentence
        for number, off in numbers_in(sentence):
            assert any(abs(number - allowed) <= off + 1e-9 * abs(allowed) for allowed in real), (sentence, real)


@st.composite
def scored(draw, numbers, shapes=None):
    parents = draw(parent_lists() if shapes is None else shapes)
    return parents, draw(st.lists(st.sampled_from(numbers), min_size=len(parents), max_size=len(parents)))


@given(scored(COARSE), st.booleans())
def test_the_best_compares_with_the_highest(case, leaves_only):
    parents, values = case
    assert_is_true(Best(leaves_only), values, build(parents), values)


@given(scored(COARSE), st.sampled_from([0.0, 0.3, -5.0]))
def test_signs_say_whether_they_reach_the_threshold(case, threshold):
    parents, values = case
    assert_is_true(Sign(threshold), values, build(parents), [*values, threshold])


@given(scored(COARSE, trees()), st.sampled_from([0.0, 0.3, -5.0]))
def test_from_the_top_down_the_parent_is_named_where_it_stood_in_the_way(case, threshold):
    parents, values = case
    taxonomy = build(parents)
    assert_is_true(TopDown(threshold), values, taxonomy, [*values, threshold])
    taken = slow.top_down(values, parents, threshold)
    for node, sentence in enumerate(TopDown(threshold).reasons(values, taxonomy, range(len(taxonomy)))):
        was_overridden = values[node] >= threshold and node not in taken
        assert ("would reach" in sentence and "but its parent was not taken" in sentence) == was_overridden


@given(scored(COARSE), st.booleans(), st.lists(st.sampled_from([-1.0, 0.3, 8.0, np.inf]), min_size=9, max_size=9))
def test_cuts_say_whether_a_node_reaches_its_threshold(case, at_least_one, thresholds):
    parents, values = case
    bounds = thresholds[: len(parents)]
    for rule in (
        SCut(thresholds=bounds, at_least_one=at_least_one),
        PCut(thresholds=bounds, factor=1.0, at_least_one=at_least_one),
    ):
        assert_is_true(rule, values, build(parents), [*values, *bounds])


@given(scored(COARSE), st.integers(1, 12))
def test_ranks_are_given(case, k):
    parents, values = case
    assert_is_true(RCut(k=k), values, build(parents), values)


@given(scored(COARSE), st.booleans(), st.sampled_from([-0.2, 0.2, 20.0]))
def test_the_threshold_predicted_for_a_text_is_given(case, at_least_one, intercept):
    parents, values = case
    rule = PredictedCut(intercept=intercept, coefficients=[0.5, 0.25], at_least_one=at_least_one)
    predicted = rule.thresholds_of(np.asarray([values]))[0]
    assert_is_true(rule, values, build(parents), [*values, predicted])


@given(scored(CHANCES, trees()), st.sampled_from(["siblings", "uniform"]), st.integers(0, 2))
def test_expected_losses_are_those_of_the_recursion(case, costs, switch_depth):
    parents, p = case
    taxonomy = build(parents)
    paid = [1.0] * len(parents) if costs == "uniform" else slow.sibling_costs(parents)
    taking, leaving = recurse(p, parents, paid, switch_depth)
    np.testing.assert_allclose(expected_losses(np.asarray(p), taxonomy, np.asarray(paid), switch_depth), [taking, leaving])
    assert_is_true(MinimizeHLoss(costs, switch_depth), p, taxonomy, [*p, *taking, *leaving, 0.5])


def recurse(p, parents, costs, switch_depth):
    """The expected loss of taking and of leaving each node, from the leaves up."""

    def risk(node):
        chance = slow.known(p[node])
        below = [risk(child) for child in range(len(parents)) if parents[child] == [node]]
        taking, leaving = costs[node] * (1 - chance) + chance * sum(least for _, _, least in below), costs[node] * chance
        is_high = slow.depth(parents, node) < switch_depth
        takes = chance >= 0.5 if is_high else taking <= leaving and not np.isnan(p[node])
        return taking, leaving, taking if takes else leaving

    found = [risk(node) for node in range(len(parents))]
    return [taking for taking, _, _ in found], [leaving for _, leaving, _ in found]


@given(scored(CHANCES, trees()), st.sampled_from([0.0, 0.5, 2.0, np.inf]), st.booleans(), st.sampled_from([0.5, 0.95]))
def test_smoothing_says_from_where_to_where_it_moved(case, penalty, at_least_one, threshold):
    parents, values = case
    taxonomy, rule = build(parents), IsotonicSmooth(penalty, threshold=threshold, at_least_one=at_least_one)
    refined = rule.refine([values], taxonomy)[0]
    assert_is_true(rule, values, taxonomy, [*values, *refined, threshold])
    for node, sentence in enumerate(rule.reasons(values, taxonomy, range(len(taxonomy)))):
        if not np.isnan(values[node]) and not np.isnan(refined[node]):
            assert ("moved from" in sentence) == (values[node] != refined[node])
            assert ("down to" in sentence) == (refined[node] < values[node])
            assert "by rounding" not in sentence


@st.composite
def conditionals(draw):
    """A tree with P(node | parent): children leave some probability for stopping, or nothing."""
    parents = draw(trees())
    weights = draw(st.lists(st.integers(0, 4), min_size=len(parents), max_size=len(parents)))
    P = np.full(len(parents), np.nan)
    for above in {tuple(p) for p in parents}:
        ways = [node for node, p in enumerate(parents) if tuple(p) == above]
        stops = draw(st.integers(0, 4)) if above else 0
        total = sum(weights[node] for node in ways) + stops
        for node in ways:
            P[node] = weights[node] / total if total else np.nan
    return parents, P.tolist()


@given(conditionals())
def test_a_descent_says_which_child_was_the_most_probable_and_how_probable_stopping_was(case):
    parents, P = case
    stopping = [
        1 - np.nansum([P[other] for other in range(len(P)) if parents[other] == parents[node]]) for node in range(len(P))
    ]
    assert_is_true(Descend(), P, build(parents), [*P, *np.maximum(stopping, 0)])


def test_every_rule_is_tried_here():
    tried = (Best, Sign, TopDown, Descend, MinimizeHLoss, IsotonicSmooth, GCut, SCut, RCut, PCut, PredictedCut)
    assert set(RULES.values()) == set(tried)


@pytest.mark.parametrize(
    ("rule", "values", "expected"),
    [
        (Best(), [np.nan, 1.31, 1.42], ["it has no score of its own, but 'c' below it was taken", "1.31, below the highest, 1.42"]),
        (Best(leaves_only=True), [2.0, 1.0, 0.5], ["2.00, but only leaves are chosen; the best leaf has 1.00, but 'b' below it was taken"]),
        (TopDown(), [0.4, 0.1, -1.0], ["margin 0.40 reaches 0", "margin 0.10 reaches 0, and every node above was taken"]),
        (TopDown(), [-0.4, 1.2, -1.0], ["margin -0.40 is below 0", "margin 1.20 would reach 0, but its parent was not taken"]),
        (Descend(), [1.0, 0.2, 0.7], ["the most probable root, 1.00", "0.20, below 'c', 0.70"]),
        (Descend(), [1.0, 0.2, 0.3], ["the most probable root, 1.00", "0.20, below stopping, 0.50"]),
        (MinimizeHLoss("uniform"), [0.6, 0.9, 0.1], ["the expected loss is 0.52 if taken and 0.60 if left", "the expected loss is 0.10 if taken and 0.90 if left"]),
        (MinimizeHLoss("uniform"), [0.4, 0.9, 0.1], ["the expected loss is 0.68 if taken and 0.40 if left", "the expected loss would be 0.10 if taken and 0.90 if left, but its parent was not taken"]),
        (GCut(threshold=0.25), [0.1, 0.2, 0.3], ["0.10 is below the threshold 0.25, but 'c' below it was taken", "0.20 is below the threshold 0.25"]),
        (SCut(thresholds=[5.0, 0.5, 0.5], at_least_one=True), [0.1, 0.2, 0.3], ["0.10 is below its threshold 5.00, but 'c' below it was taken", "0.20 is below its threshold 0.50"]),
    ],
)  # fmt: skip
def test_sentences_are_plain(rule, values, expected):
    taxonomy = Taxonomy.from_paths(["a/b", "a/c"])
    assert rule.reasons(values, taxonomy, list(range(len(expected)))) == expected


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=3))
def test_different_numbers_are_shown_differently(numbers):
    shown = [float(word) for word in format_numbers(*numbers)]
    assert len(set(shown)) == len(set(numbers))
    assert sorted(range(len(shown)), key=lambda k: shown[k]) == sorted(range(len(shown)), key=lambda k: numbers[k])
