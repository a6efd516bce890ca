"""Members become only what a member was: kernels trust what they get, so states are looked at before."""

import numpy as np
import pytest
from graph_problems import make_task
from hypothesis import given, settings
from hypothesis import strategies as st
from learners.test_crews import all_pairs, some_problem
from learners.test_graph_crews import shares_of, wide_dag

from ramify.errors import ModelError
from ramify.learners.linear.flat_worker import FlatWorker
from ramify.learners.linear.graph_partition import add_complements, add_vectors, with_depth
from ramify.learners.linear.graph_worker import GraphWorker
from ramify.learners.linear.partition import partition_classes
from ramify.learners.linear.problem import widen
from ramify.learners.linear.taxonomy_ties import tie_along_paths, tie_flat
from ramify.learners.linear.tree_worker import TreeWorker


def flat_members():
    problem = some_problem(6, tie_flat)
    share = partition_classes(problem, all_pairs(problem), (1,), complete=True)[0]
    one, other = FlatWorker(problem, share), FlatWorker(problem, share)
    one.settle(0.1)
    return one, other


def tree_members():
    """The first of two, with units that both pass, and two walks."""
    problem = some_problem(6, tie_along_paths)
    shares = partition_classes(problem, all_pairs(problem), (2, 1), complete=True)
    one, other = TreeWorker(problem, shares[0]), TreeWorker(problem, shares[0])
    one.begin(one.count_walks())
    for _ in range(3):
        one.take_changes(one.ascend())
    assert one.is_far.any()
    assert len(one.walks.visited) == 2
    return one, other


def graph_members():
    """The first of two, after three rounds."""
    task = make_task(np.random.default_rng(0), wide_dag(), "hinge")
    shares = with_depth(shares_of(task.structure, (1, 1)), 3)
    crew, n = [GraphWorker(task, share) for share in shares], len(shares[0].boundary)
    for what in ("ties", "drawn"):
        exchange(crew, what, lambda parts: add_complements(n, parts))
    for number in range(3):
        exchange(crew, "pull", lambda parts: add_vectors(n, parts))
        for member in crew:
            member.settle(4, 1e-6, number)
        exchange(crew, "found", lambda parts: add_vectors(n, parts))
        for member in crew:
            member.measure()
            member.hold(1.0)
            member.move([0.0] * len(member.trail.turns))
    return crew[0], GraphWorker(task, shares[0])


def exchange(crew, what, combine):
    combined = combine([getattr(member, f"give_{what}")() for member in crew])
    for member in crew:
        getattr(member, f"take_{what}")(combined)


MEMBERS = {"flat": flat_members, "tree": tree_members, "graph": graph_members}
WORK = {
    "flat": lambda member: (member.settle(0.01), member.screen(0.1, True)),
    "tree": lambda member: member.take_changes(member.ascend()),
    "graph": lambda member: member.give_pull(),
}


def copied(state):
    return {name: array.copy() for name, array in state.items()}


@pytest.mark.parametrize("kind", MEMBERS)
def test_what_a_member_was_it_can_become(kind):
    one, other = MEMBERS[kind]()
    other.restore(copied(one.state()))
    for name, array in one.state().items():
        np.testing.assert_array_equal(array, other.state()[name], err_msg=name)


def test_a_member_may_have_been_given_more_pairs():
    one, other = flat_members()
    one.pairs = widen(one.pairs, np.zeros(2, dtype=np.int32), np.array([1, 3], dtype=np.int32))
    other.restore(copied(one.state()))
    np.testing.assert_array_equal(other.pairs.documents, one.pairs.documents)


# ---- damage -------------------------------------------------------------------------------------------------------------


STATES = {kind: make()[0].state() for kind, make in MEMBERS.items()}
EVERY = [(kind, name) for kind, state in STATES.items() for name in state]
FLOATS = [(kind, name) for kind, name in EVERY if STATES[kind][name].dtype.kind == "f"]
OF_ONE_SIZE = [(kind, name) for kind, name in EVERY if name != "chosen" and not name.startswith("held_")]
REFUSED = "^the checkpoint holds .*; train without --resume to begin anew.$"


def refuses(kind, change):
    one, other = MEMBERS[kind]()
    state = copied(one.state())
    change(state)
    with pytest.raises(ModelError, match=REFUSED):
        other.restore(state)


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_arrays_of_another_type_are_refused(kind, name):
    def change(state):
        state[name] = state[name].astype(np.float64 if state[name].dtype != np.float64 else np.float32)

    refuses(kind, change)


@pytest.mark.parametrize(("kind", "name"), OF_ONE_SIZE)
@pytest.mark.parametrize(
    "change", [lambda a: a[:-1], lambda a: np.concatenate([a, a[-1:]]), lambda a: a.ravel()[0].reshape(())]
)
def test_arrays_of_another_size_are_refused(kind, name, change):
    refuses(kind, lambda state: state.update({name: change(state[name])}))


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_arrays_of_another_depth_are_refused(kind, name):
    refuses(kind, lambda state: state.update({name: state[name][None]}))


def test_vectors_that_a_more_frugal_member_did_not_hold_are_made_anew():
    one, other = tree_members()
    other.restore(copied(one.state()) | {f"held_{k}": np.zeros(0, dtype=np.float32) for k in range(2)})
    for mine, theirs in zip(one.climb.held, other.climb.held, strict=True):
        np.testing.assert_allclose(mine[3], theirs[3], atol=1e-5)


@pytest.mark.parametrize(("kind", "name"), FLOATS)
def test_what_is_no_number_is_refused(kind, name):
    refuses(kind, lambda state: state[name].ravel().__setitem__(-1, np.nan))


@pytest.mark.parametrize(("kind", "name"), [each for each in FLOATS if each != ("tree", "slack")])
def test_what_is_infinite_is_refused(kind, name):
    refuses(kind, lambda state: state[name].ravel().__setitem__(-1, np.inf))


def put(name, place, value):
    return lambda state: state[name].__setitem__(place, value)


DAMAGE = [
    *(("documents", place, value) for place in (0, -1) for value in (-1, 60, 2**31 - 1, -(2**31))),
    *(("offsets", place, value) for place in (0, 1, 2, -2, -1) for value in (-1, 2**62, -(2**63))),
    ("offsets", 1, 0),
    ("offsets", 0, 1),
    *(("chosen", place, value) for place in (0, -1) for value in (-1, 10**6, -(2**31))),
    ("chosen", 1, 0),
    ("alphas", 3, -1e-3),
]


@pytest.mark.parametrize("kind", ["flat", "tree"])
@pytest.mark.parametrize(("name", "place", "value"), DAMAGE)
def test_places_outside_are_refused(kind, name, place, value):
    refuses(kind, put(name, place, value))


def test_pairs_of_other_documents_are_refused():
    def change(state):
        state["documents"][:2] = state["documents"][1], state["documents"][0]

    refuses("flat", change)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [("rounds", 0, -1), ("rounds", 0, 2**62), ("share", 0, 0.0), ("share", -1, 9.0), ("share", 0, -1.0)],
)
def test_rounds_and_walks_that_there_cannot_be_are_refused(name, place, value):
    refuses("tree", put(name, place, value))


@pytest.mark.parametrize(("name", "place", "value"), [("T", 0, 0.0), ("T", -1, -1.0), ("alphas", 0, -1.0)])
def test_ties_that_hold_nothing_are_refused(name, place, value):
    refuses("graph", put(name, place, value))


def test_more_steps_than_are_mixed_are_refused():
    refuses(
        "graph", lambda state: state.update({f"{name}_{k}": state[f"{name}_0"] for name in ("move", "turn") for k in range(4)})
    )


@pytest.mark.parametrize("kind", MEMBERS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_whatever_a_member_becomes_it_can_work(kind, data):
    one, other = MEMBERS[kind]()
    state = copied(one.state())
    array = state[data.draw(st.sampled_from(sorted(state)))]
    bounds = (np.iinfo(array.dtype).min, np.iinfo(array.dtype).max) if array.dtype.kind != "f" else (-1000, 1000)
    if array.size:
        array.ravel()[data.draw(st.integers(0, array.size - 1))] = data.draw(st.integers(*bounds))
    try:
        other.restore(state)
    except (ModelError, ValueError):
        return
    WORK[kind](other)
