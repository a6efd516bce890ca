"""Rules refuse what are no real numbers, and never drop a part of a complex one."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from ramify import Taxonomy, decisions
from ramify.decisions import DecisionRule, FittableRule
from ramify.decisions.top_down import descend
from ramify.errors import InputError

FOOD = Taxonomy.from_paths(["fruit/apple", "fruit/pear", "bread"])
RULES = [
    rule
    for rule in (getattr(decisions, name) for name in decisions.__all__)
    if isinstance(rule, type) and issubclass(rule, DecisionRule) and not rule.__abstractmethods__
]


def call_of(rule):
    """The door of a rule: it decides, or is fitted first."""
    made = rule()
    if isinstance(made, FittableRule) and not made.is_fitted:
        return lambda scores, taxonomy: made.fit(scores, np.zeros((2, 4), dtype=bool), taxonomy)
    return made.decide


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_refuses_scores_that_are_no_real_numbers(rule):
    call = call_of(rule)
    with pytest.raises(InputError, match="the scores are complex numbers, not real ones; give one per document and node"):
        call(np.full((2, 4), 0.5 + 0.5j), FOOD)
    for wrong in (np.full((2, 4), "a"), np.full((2, 4), object()), None, np.zeros((2, 4), dtype="M8[s]")):
        with pytest.raises(InputError, match=r"the scores are not numbers; give one per document and node, NaN"):
            call(wrong, FOOD)
    with pytest.raises(InputError, match="the scores are rows of different lengths"):
        call([[0.5], [0.5, 0.5]], FOOD)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_refuses_what_is_no_taxonomy(rule):
    for wrong in (np.zeros((2, 4)), None, "food"):
        with pytest.raises(InputError, match=r"taxonomy is .*; give a ramify.Taxonomy"):
            call_of(rule)(np.full((2, 4), 0.5), wrong)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.takes_sparse and not issubclass(rule, FittableRule)])
def test_a_rule_refuses_sparse_complex_scores(rule):
    with pytest.raises(InputError, match="the scores are complex numbers"):
        rule().decide(csr_array(np.full((2, 4), 0.5j)), FOOD)


def test_numbers_of_any_real_type_are_scores():
    expected = decisions.best([[0, 1, 0, 0]], FOOD).toarray()
    for kind in (bool, np.int8, np.float16, np.float64, object):
        assert (decisions.best(np.array([[0, 1, 0, 0]], dtype=kind), FOOD).toarray() == expected).all()
        assert (decisions.Sign().decide(np.array([[0, 1, 0, 0]], dtype=kind), FOOD).toarray() == [[1, 1, 1, 1]]).all()


def test_settings_refuse_complex_numbers():
    with pytest.raises(InputError, match="the thresholds are not numbers"):
        decisions.SCut(thresholds=np.ones(4, dtype=complex)).check()
    with pytest.raises(InputError, match="the penalties are complex numbers"):
        decisions.isotonic_smooth(np.zeros((1, 4)), FOOD, penalty=np.ones(4, dtype=complex))
    with pytest.raises(InputError, match="the scores are complex numbers"):
        descend(np.zeros((1, 4), dtype=complex), FOOD)


def test_an_array_as_a_setting_is_described_on_one_line():
    for wrong in (np.zeros((3, 3)), csr_array((3, 3)), ["a" * 1000] * 1000):
        problem = decisions.TopDown(threshold=wrong).problem()
        assert "\n" not in problem
        assert len(problem) < 200
