"""Rules that need a tree, on DAGs: decided over the main-parent tree, then closed over the DAG."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.main_parents import largest_below
from strategies import build, parent_lists

from ramify import decisions
from ramify.taxonomy import expand_to_ancestors

RULES = {
    "top-down": lambda values, taxonomy: decisions.top_down(values, taxonomy, 0.5),
    "descend": lambda values, taxonomy: decisions.Descend().decide(values, taxonomy),
    "minimize-h-loss": lambda values, taxonomy: decisions.minimize_h_loss(values, taxonomy, "siblings"),
    "isotonic": lambda values, taxonomy: decisions.IsotonicSmooth(penalty=1.0).decide(values, taxonomy),
}


def chosen_at_random(parents, seed):
    rng = np.random.default_rng(seed)
    dag = build(parents).with_main_parents(rng.integers(0, 4, size=len(parents)))
    return dag, rng.choice([0.0, 0.25, 0.5, 0.75, 1.0, np.nan], size=(4, len(parents)))


@pytest.mark.parametrize("rule", RULES)
@given(parent_lists(), st.integers(0, 99))
def test_labels_are_those_of_the_main_parent_tree_and_all_their_ancestors(rule, parents, seed):
    dag, values = chosen_at_random(parents, seed)
    expected = expand_to_ancestors(RULES[rule](values, dag.tree), dag).toarray()
    np.testing.assert_array_equal(RULES[rule](values, dag).toarray(), expected)


@pytest.mark.parametrize("penalty", [0.0, 0.5, np.inf])
@given(parent_lists(), st.integers(0, 99))
def test_smoothed_scores_are_those_of_the_tree_raised_over_the_dag(penalty, parents, seed):
    dag, values = chosen_at_random(parents, seed)
    smoothed = decisions.isotonic_smooth(values, dag, penalty)
    listed = [dag.parents_of(node).tolist() for node in range(len(dag))]
    np.testing.assert_array_equal(smoothed, largest_below(decisions.isotonic_smooth(values, dag.tree, penalty), listed))


@pytest.mark.parametrize("rule", [decisions.TopDown(0.5), decisions.Descend(), decisions.MinimizeHLoss()])
@given(parent_lists(min_nodes=2), st.integers(0, 99))
def test_a_label_that_only_another_label_implies_is_explained_by_it(rule, parents, seed):
    dag, values = chosen_at_random(parents, seed)
    taken, on_tree = rule.decide(values[:1], dag).toarray()[0], rule.decide(values[:1], dag.tree).toarray()[0]
    reasons = rule.reasons(values[0], dag, range(len(dag)))
    for node, reason in enumerate(reasons):
        assert ("below it was taken" in reason) == (taken[node] and not on_tree[node])
