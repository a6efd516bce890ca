"""Nodes that get other probabilities: against a slow twin, and what always holds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import reallocation as oracle
from strategies import build, trees

from ramify.calibration.tree_calibration import MIN_FRACTION, most_probable, reallocate_in_place

parts = st.one_of(st.just(0.0), st.floats(1e-9, 1e-6), st.floats(0.001, 1))


@st.composite
def moves(draw):
    """Parents, the probabilities of a document, a node and what it is to have."""
    parents = draw(trees())
    masses = draw(st.lists(parts, min_size=len(parents), max_size=len(parents)).filter(any))  # what ends at each node
    total = list(masses)
    for node in reversed(range(len(parents))):
        if parents[node]:
            total[parents[node][0]] += total[node]
    whole = sum(masses)
    node = draw(st.integers(0, len(parents) - 1))
    return parents, [each / whole for each in total], node, draw(st.floats(0, 1)), draw(st.booleans())


def after(parents, P, node, target, raise_ancestors):
    found = np.array([P], dtype=np.float64)
    reallocate_in_place(found, build(parents), np.array([node]), np.array([target]), raise_ancestors=raise_ancestors)
    return found[0]


def ends(P, parents):
    """What is left at each node when its children have had theirs."""
    left = list(P)
    for node, above in enumerate(parents):
        if above:
            left[above[0]] -= P[node]
    return np.array(left)


@given(moves())
@settings(max_examples=300)
def test_a_move_equals_the_oracle(case):
    parents, P, node, target, raise_ancestors = case
    np.testing.assert_allclose(
        after(*case), oracle.reallocated(P, parents, node, target, MIN_FRACTION, raise_ancestors), atol=1e-12
    )


@given(moves())
@settings(max_examples=200)
def test_sums_hold_and_nothing_beside_a_node_is_left_with_nothing(case):
    parents, P, node, *_ = case
    found, had = ends(after(*case), parents), ends(P, parents)
    assert found.sum() == pytest.approx(1)
    beside = [v for v in range(len(P)) if node not in oracle.path_to(parents, v)]
    assert (found[beside] >= MIN_FRACTION * had[beside] - 1e-12).all()
    assert (np.abs(found[had < 1e-15]) < 1e-9).all()
    P = after(*case)
    assert all(P[v] <= P[above[0]] for v, above in enumerate(parents) if above)


@given(moves())
@settings(max_examples=200)
def test_a_node_gets_its_target_where_possible_and_passes_no_sibling(case):
    parents, P, node, target, raise_ancestors = case
    found = after(*case)
    siblings = [v for v in range(len(P)) if parents[v] == parents[node] and v != node]
    above = P[parents[node][0]] if parents[node] else 1.0
    if P[node] <= 0:
        assert found.tolist() == P
    elif (
        P[node] <= target <= (1 - MIN_FRACTION * (1 - P[node]) if raise_ancestors else above - MIN_FRACTION * (above - P[node]))
    ):
        assert found[node] == pytest.approx(target)
    for v in siblings:
        if P[v] <= P[node]:
            assert found[v] <= found[node] + 1e-12
    if not raise_ancestors and parents[node]:
        elsewhere = [v for v in range(len(P)) if parents[node][0] not in oracle.path_to(parents, v)[:-1]]
        np.testing.assert_allclose(found[elsewhere], np.array(P)[elsewhere], rtol=1e-12)


def test_a_node_that_has_nearly_all_can_lose_it_again():
    parents, tiny = [[], [], [], [0], [0]], 1e-19
    P = [1.0, tiny, tiny, 1.0, tiny]
    found = after(parents, P, 3, 0.7, raise_ancestors=True)
    np.testing.assert_allclose(found[[3, 4]], [0.7, 0.3])
    np.testing.assert_allclose(after(parents, P, 0, 0.9, raise_ancestors=False), [0.9, 0.05, 0.05, 0.9, 0.9 * tiny])


def test_what_is_as_it_should_be_is_left_alone():
    assert after([[], []], [1.0, 1e-19], 0, 1.0, raise_ancestors=True).tolist() == [1.0, 1e-19]


def test_raise_ancestors_leaves_something_where_there_was_almost_nothing():
    found = after([[], [], [0], [0]], [1.0, 1e-19, 0.5, 0.5], 2, 1.0, raise_ancestors=True)
    assert found[1] >= 1e-21
    np.testing.assert_allclose(found, [1, 0, 0.995, 0.005], atol=1e-12)


@pytest.mark.parametrize("P", [[1.0, 1e-310, 0.5, 0.5], [1e-310, 1.0, 0.0, 1e-310]])
@pytest.mark.parametrize("node", range(4))
@pytest.mark.parametrize("target", [0.1, 0.9])
def test_numbers_next_to_nothing_stay_numbers(P, node, target):
    found = after([[], [], [0], [0]], P, node, target, raise_ancestors=True)
    assert ((found >= 0) & (found <= 1)).all()


def test_an_only_child_cannot_have_less_than_its_parent():
    assert after([[], [], [0]], [0.6, 0.4, 0.6], 2, 0.3, raise_ancestors=True).tolist() == [0.6, 0.4, 0.6]


def test_rows_are_moved_for_themselves():
    parents = [[], [], [0], [0], [1]]
    P = np.array([[0.5, 0.5, 0.4, 0.1, 0.5], [0.8, 0.2, 0.3, 0.5, 0.2]])
    together = P.copy()
    reallocate_in_place(together, build(parents), np.array([2, 3]), np.array([0.7, 0.1]), raise_ancestors=True)
    for row, (node, target) in enumerate([(2, 0.7), (3, 0.1)]):
        assert together[row].tolist() == after(parents, P[row], node, target, raise_ancestors=True).tolist()


def test_the_likeliest_of_some_nodes_is_the_first_of_equals():
    P = np.array([[0.5, 0.5, 0.2, 0.3, 0.5], [0.4, 0.6, 0.2, 0.2, 0.1]])
    assert most_probable(P, np.array([0, 1])).tolist() == [0, 1]
    assert most_probable(P, np.array([2, 3, 4])).tolist() == [4, 2]
