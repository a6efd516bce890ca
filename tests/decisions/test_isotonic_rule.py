"""Isotonic smoothing as a rule: penalties given, chosen or counted, missing classifiers, priors."""

import numpy as np
import pytest

from ramify import Taxonomy
from ramify.decisions import FittableRule, IsotonicSmooth, RefiningRule, isotonic_smooth
from ramify.decisions.isotonic import PENALTIES, fraction_with_child
from ramify.errors import InputError, ModelError
from ramify.metrics import document_f1

NAN = float("nan")
TREE = Taxonomy.from_paths(["r/a/x", "r/a/y", "r/b/z"])


def noisy(n=200, seed=0, inner=0.0):
    """Truth at leaves (or, for a share, at inner nodes), and memberships that point the right way most of the time."""
    rng = np.random.default_rng(seed)
    nodes = np.where(rng.random(n) < inner, TREE.index("r/a"), rng.choice(np.flatnonzero(TREE.is_leaf), size=n))
    Y = TREE.encode([[TREE.names[k]] for k in nodes])
    S = np.clip(Y.toarray() * 0.6 + 0.2 + rng.normal(0, 0.25, size=Y.shape), 0, 1)
    return S, Y


def test_it_smooths_then_cuts():
    S, _ = noisy()
    rule = IsotonicSmooth(penalty=2.0, threshold=0.4)
    smoothed = isotonic_smooth(S, TREE, 2.0)
    np.testing.assert_array_equal(rule.refine(S, TREE), smoothed)
    np.testing.assert_array_equal(rule.decide(S, TREE).toarray(), smoothed >= 0.4)
    assert isinstance(rule, RefiningRule)


def test_label_sets_are_closed():
    S, _ = noisy()
    Y = IsotonicSmooth(penalty=1.0).decide(S, TREE).toarray()
    inner = np.flatnonzero(TREE.parent >= 0)
    assert (Y[:, inner] <= Y[:, TREE.parent[inner]]).all()


def test_at_least_one_takes_the_path_with_the_highest_score_and_of_equal_ones_as_scores_were_before():
    S = np.array([[0.1, 0.1, 0.1, 0.1, 0.1, 0.1], [0.3, 0.3, 0.3, 0.4, 0.1, 0.1], [0.9, 0.9, 0.9, 0.0, 0.0, 0.0]])
    assert IsotonicSmooth(penalty="inf").decide(S, TREE).toarray().any(axis=1).tolist() == [False, False, True]
    rule = IsotonicSmooth(penalty="inf", at_least_one=True)
    assert TREE.decode(rule.decide(S, TREE)) == [["r/a/x"], ["r/a/y"], ["r/a/x"]]
    assert TREE.decode(IsotonicSmooth(penalty=0.0, at_least_one=True).decide([[0.4, 0.3, 0.1, 0.1, 0.1, 0.1]], TREE)) == [["r"]]
    assert rule.decide(np.full((1, 6), NAN), TREE).nnz == 0


def test_at_least_one_takes_a_path_without_a_score_at_its_root_in_single_precision_as_in_double():
    rule = IsotonicSmooth(penalty=1.0, at_least_one=True)
    for dtype in (np.float32, np.float64):
        S = np.array([[NAN, 0.2, 0.1, NAN, 0.1, 0.1]], dtype=dtype)
        assert TREE.decode(rule.decide(S, TREE)) == [["r/a/y"]]


def test_at_least_one_takes_no_impossible_node():
    rule = IsotonicSmooth(penalty="inf", at_least_one=True)
    S = np.array([[0.2, 0.1, -np.inf, -np.inf, 0.0, 0.0], [-np.inf, 0.1, 0.1, 0.1, 0.1, 0.1]], dtype=np.float32)
    assert TREE.decode(rule.decide(S, TREE)) == [["r/a"], []]
    assert rule.reasons(S[0], TREE, [2]) == ["it had no training documents, so it is never taken"]


def test_many_nodes_do_not_make_the_choice_of_a_penalty_a_matter_of_few_documents():
    rng = np.random.default_rng(0)
    wide = Taxonomy.from_paths([f"{a}/m/{b}" for a in range(30) for b in range(50)])
    leaves = np.flatnonzero(wide.is_leaf)
    Y = wide.encode([[wide.names[k]] for k in rng.choice(leaves, size=400)])
    # a leaf says too little by itself, those above it much: only a penalty brings the label down to a leaf
    S = np.clip(Y.toarray() * np.where(wide.is_leaf, 0.35, 0.8) + rng.normal(0, 0.01, size=Y.shape), 0, 1)
    rule = IsotonicSmooth().fit(S, Y, wide)
    assert rule.penalties[0] >= 1
    assert document_f1(Y, rule.decide(S, wide), wide) > 0.95


def test_the_penalty_chosen_is_the_best_of_all_on_held_out_documents():
    S, Y = noisy()
    rule = IsotonicSmooth(penalty="auto").fit(S, Y, TREE)
    quality = [document_f1(Y, IsotonicSmooth(penalty=a).decide(S, TREE), TREE) for a in PENALTIES]
    assert document_f1(Y, rule.decide(S, TREE), TREE) == max(quality)
    assert len(np.unique(rule.penalties)) == 1


def test_penalties_by_proportions_follow_how_often_a_document_goes_on():
    S, Y = noisy(inner=0.3)
    T = Y.toarray()
    expected = [T[T[:, node]][:, TREE.children_of(node)].any(axis=1).mean() for node in range(3)]
    np.testing.assert_allclose(fraction_with_child(Y, TREE)[[0, 1]], expected[:2])
    given = IsotonicSmooth(penalty="proportions", scale=2.0).fit(S, Y, TREE)
    np.testing.assert_allclose(given.penalties, 2 * fraction_with_child(Y, TREE))
    chosen = IsotonicSmooth(penalty="proportions").fit(S, Y, TREE)
    np.testing.assert_allclose(chosen.penalties / chosen.penalties.max(), fraction_with_child(Y, TREE), atol=1e-12)


def test_a_node_without_documents_is_forced_to_its_children():
    lonely = Taxonomy.from_paths(["a/x", "b/y"])
    proportions = fraction_with_child(lonely.encode(["a/x"]), lonely)
    assert proportions[lonely.index("b")] == 1


def test_a_missing_score_is_filled_in_from_its_neighbours():
    S = np.array([[0.9, 0.9, NAN, NAN, 0.1, 0.1]])
    smoothed = IsotonicSmooth(penalty="inf").refine(S, TREE)[0]
    assert smoothed[2:4].max() == 0.9


def test_a_prior_replaces_a_missing_score_and_moves_it_to_the_more_probable_class():
    S, Y = noisy(seed=1)
    rule = IsotonicSmooth(penalty="inf", prior_weight=0.1).fit(S, Y, TREE)
    np.testing.assert_allclose(rule.priors, Y.toarray().mean(axis=0))
    prior = np.where(np.arange(6) == TREE.index("r/a/y"), 0.8, 0.1)
    S = np.array([[0.9, 0.9, NAN, NAN, 0.1, 0.1], [0.9, 0.9, 0.9, NAN, 0.1, 0.1]])
    smoothed = IsotonicSmooth(penalty="inf", prior_weight=0.1, priors=prior).refine(S, TREE)
    assert smoothed[0, TREE.index("r/a/y")] > smoothed[0, TREE.index("r/a/x")]
    np.testing.assert_array_equal(
        smoothed[[1]], IsotonicSmooth(penalty="inf", prior_weight=0.1, priors=prior).refine(S[[1]], TREE)
    )


def test_a_prior_counts_by_its_weight_and_only_where_a_score_is_missing():
    S, _ = noisy(n=60, seed=2)
    S[::2, 2], S[::3, 4] = NAN, NAN
    priors = np.array([0.9, 0.6, 0.3, 0.3, 0.4, 0.4])
    smoothed = IsotonicSmooth(penalty="inf", prior_weight=0.2, priors=priors).refine(S, TREE)
    full = IsotonicSmooth(penalty="inf", prior_weight=1.0, priors=priors).refine(S, TREE)
    for row, y in zip(S, smoothed, strict=True):
        missing = np.isnan(row)
        given, weights = np.where(missing, priors, row), np.where(missing, 0.2, 1.0)
        np.testing.assert_array_equal(y, isotonic_smooth(given[None], TREE, np.inf, weights)[0])
    assert (smoothed != full).any()


def test_it_refuses_to_decide_before_it_is_fitted():
    with pytest.raises(InputError, match="is not fitted yet"):
        IsotonicSmooth().decide(np.ones((1, 6)), TREE)
    assert not IsotonicSmooth().is_fitted
    assert not IsotonicSmooth(penalty=1.0, prior_weight=0.1).is_fitted
    assert IsotonicSmooth(penalty=1.0).is_fitted
    assert isinstance(IsotonicSmooth(), FittableRule)


@pytest.mark.parametrize("penalty", [0.0, 2, "inf", np.inf, "auto", "proportions", [0.0, 1.0, np.inf, 0, 0, 0]])
def test_a_rule_made_from_its_state_is_the_same(penalty):
    S, Y = noisy(n=30)
    rule = IsotonicSmooth(penalty=penalty, prior_weight=0.2, levels=8).fit(S, Y, TREE)
    again = IsotonicSmooth.from_state(rule.state())
    np.testing.assert_array_equal(again.refine(S, TREE), rule.refine(S, TREE))
    assert again == rule
    assert rule.unfitted().is_fitted is False


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"penalty": -1}, "penalty is -1"),
        ({"penalty": "much"}, "penalty is 'much', not a number, 'inf', 'auto' or 'proportions'"),
        ({"penalty": [1.0, -2.0]}, "-2.0 is among the penalties"),
        ({"penalty": True}, "penalty is True"),
        ({"scale": -1}, "scale is -1"),
        ({"weights": [NAN] * 6}, "among the weights"),
        ({"threshold": "half"}, "threshold is 'half'"),
        ({"at_least_one": 1}, "at_least_one is 1"),
        ({"prior_weight": -0.1}, "prior_weight is -0.1"),
        ({"levels": 1}, "levels is 1"),
        ({"levels": 10**30}, "levels is 10"),
        ({"penalty": 10**400}, "penalty is 1000"),
        ({"penalty": [[1], [2, 3]]}, "the penalties are not numbers"),
        ({"weights": [1.0, 2.0]}, "there are 2 weights for 6 nodes"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        IsotonicSmooth(**settings).fit(*noisy(n=5), TREE).decide(noisy(n=5)[0], TREE)
    with pytest.raises((InputError, ModelError), match="again|for 6 nodes|not numbers"):
        IsotonicSmooth.from_state(IsotonicSmooth(penalty=1.0).state() | settings).decide(noisy(n=5)[0], TREE)


def test_scores_and_labels_of_different_documents_are_refused():
    S, Y = noisy(n=5)
    with pytest.raises(InputError, match="scores of 4 documents and labels of 5"):
        IsotonicSmooth().fit(S[:4], Y, TREE)
