import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import best as oracle
from strategies import as_sets, build, parent_lists

from ramify.decisions import Best, best
from ramify.errors import InputError


@st.composite
def scored(draw):
    parents = draw(parent_lists())
    value = st.sampled_from([float("nan"), -2.0, 0.0, 1.0, 1.5])
    row = st.lists(value, min_size=len(parents), max_size=len(parents))
    return parents, draw(st.lists(row, max_size=5))


@given(scored(), st.booleans())
def test_best_equals_the_oracle_ties_and_missing_scores_included(case, leaves_only):
    parents, scores = case
    S = np.asarray(scores, dtype=float).reshape(-1, len(parents))
    assert as_sets(best(S, build(parents), leaves_only)) == oracle.best(scores, parents, leaves_only)
    assert as_sets(Best(leaves_only).decide(S, build(parents))) == oracle.best(scores, parents, leaves_only)


def test_scores_of_another_width_are_refused(food):
    with pytest.raises(InputError, match="the taxonomy has 6 nodes"):
        best([[1.0, 2.0]], food)


def test_the_scores_given_are_not_changed(food):
    S = np.asarray([[np.nan, 0, 1, 2, 3, 4.0]])
    best(S, food, leaves_only=True)
    assert np.isnan(S[0, 0])
