import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.data import hold_out
from ramify.errors import InputError

labels = st.lists(st.lists(st.sampled_from("abc"), max_size=2, unique=True), max_size=40)


@given(labels, st.floats(0.05, 0.9), st.integers(0, 100))
def test_every_document_is_on_one_side_and_every_label_set_is_seen(given_labels, share, seed):
    train, test = hold_out(given_labels, share, seed)
    assert sorted([*train.tolist(), *test.tolist()]) == list(range(len(given_labels)))
    seen = {tuple(sorted(given_labels[i])) for i in train}
    assert all(tuple(sorted(given_labels[i])) in seen for i in test)


@given(labels, st.integers(0, 100))
def test_a_seed_fixes_the_hold_out(given_labels, seed):
    assert hold_out(given_labels, 0.3, seed)[1].tolist() == hold_out(given_labels, 0.3, seed)[1].tolist()


def test_the_share_is_kept():
    _, test = hold_out([["a"]] * 500 + [["b"]] * 500, 0.2)
    assert len(test) == pytest.approx(200, abs=2)
    _, many = hold_out([[str(i)] for i in range(500) for _ in range(2)], 0.25, seed=3)
    assert np.isclose(len(many), 250, atol=40)


@pytest.mark.parametrize("share", [0, 1, -0.1, 2])
def test_a_share_outside_zero_and_one_is_refused(share):
    with pytest.raises(InputError, match="give a number between 0 and 1"):
        hold_out([["a"]], share)
