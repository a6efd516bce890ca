"""Fingerprints: the same for the same work, others for other work."""

import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_array, csr_array

from ramify import Taxonomy
from ramify.parallel.values import Placed, digest_of


@dataclass(frozen=True)
class Pair:
    a: object
    b: object = field(default=None, compare=False)


class Plain:
    def __init__(self, values):
        self.values = values


class Slotted:
    __slots__ = ("values",)

    def __init__(self, values):
        self.values = values


MATRIX = csr_array(np.array([[0, 1.0], [2, 0]]))
DIFFERENT = [
    (),
    ([],),
    (None,),
    (0,),
    (0.0,),
    (-0.0,),
    (False,),
    ("0",),
    (b"0",),
    ("a", "b"),
    ("ab",),
    (["a", "b"],),
    (["a"], "b"),
    (["a"], ["b"]),
    ([["a"], "b"],),
    ({"a": 1},),
    ({"a": 2},),
    ({"b": 1},),
    ({1, 2},),
    ({1, 3},),
    (slice(1, 2),),
    (slice(1, 3),),
    (np.zeros(0),),
    (np.zeros((0, 3)),),
    (np.arange(3),),
    (np.arange(3.0),),
    (np.arange(4)[1:],),
    (np.arange(6).reshape(2, 3),),
    (np.arange(6).reshape(3, 2),),
    (np.arange(6).reshape(3, 2).T,),
    (np.array(["a", "bc"], dtype=object),),
    (np.array(["a", "bd"], dtype=object),),
    (MATRIX,),
    (2 * MATRIX,),
    (csc_array(MATRIX),),
    (Taxonomy.from_paths(["a/b", "c"]),),
    (Taxonomy.from_paths(["a/d", "c"]),),
    (Pair(1),),
    (Pair(2),),
    (Plain(1),),
    (Plain(2),),
    (Plain(np.arange(3)),),
    (Slotted(1),),
    (Slotted(2),),
    (partial(digest_of, 1),),
    (partial(digest_of, 2),),
    (digest_of,),
    (Pair,),
]


def test_values_that_differ_have_different_digests():
    digests = [digest_of(*values) for values in DIFFERENT]
    assert len(set(digests)) == len(digests)


def test_equal_values_have_equal_digests():
    assert digest_of(Plain(np.arange(3))) == digest_of(Plain(np.arange(3)))
    assert digest_of(Slotted([1])) == digest_of(Slotted([1]))
    assert digest_of(np.asfortranarray(np.eye(3))) == digest_of(np.eye(3))
    assert digest_of((1, 2)) == digest_of([1, 2])
    assert digest_of(coo_array(MATRIX)) == digest_of(coo_array(MATRIX.copy()))
    assert digest_of(Taxonomy.from_paths(["a/b"])) == digest_of(Taxonomy.from_paths(["a/b"]))


def test_what_does_not_count_for_equality_does_not_count_here():
    assert digest_of(Pair(1, "x")) == digest_of(Pair(1, "y"))


@pytest.mark.parametrize("seed", ["1", "2"])
def test_digests_are_the_same_in_every_process(seed):
    """Also of sets, whose order hangs on the seed of the process."""
    values = "{'a', 'b', 'c'}, {'k': {'x', 'y'}}, 0.1, None"
    program = f"from ramify.parallel.values import Placed, digest_of; print(digest_of({values}))"
    found = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == digest_of({"a", "b", "c"}, {"k": {"x", "y"}}, 0.1, None)


@given(st.recursive(st.integers() | st.text() | st.floats() | st.none(), st.lists, max_leaves=8))
def test_a_copy_has_the_same_digest_and_a_longer_one_another(value):
    assert digest_of(value) == digest_of(value)
    assert digest_of([value, 0]) != digest_of([value])


def test_a_thing_is_the_same_wherever_it_was_placed():
    for thing in (MATRIX, Pair(np.arange(3)), [1, "a"]):
        assert digest_of(Placed(thing, "here")) == digest_of(thing)
        assert digest_of(Pair(Placed(thing, "here"))) == digest_of(Pair(Placed(thing, "there"))) == digest_of(Pair(thing))
    assert digest_of(Placed(1, 2)) != digest_of(Placed(3, 2))
    assert digest_of(Placed) != digest_of(Pair)
