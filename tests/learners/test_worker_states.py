"""Workers restore only states that a worker can have had: kernels trust what they get, so states are checked first."""

from dataclasses import replace

import numpy as np
import pytest
from graph_problems import make_task
from hypothesis import given, settings
from hypothesis import strategies as st
from learners.test_graph_workers import partitions_of, wide_dag
from learners.test_worker_groups import all_pairs, some_problem

from ramify.errors import ModelError
from ramify.learners.linear.flat_worker import FlatWorker
from ramify.learners.linear.graph_partition import sum_complements, sum_vectors
from ramify.learners.linear.graph_worker import GraphWorker
from ramify.learners.linear.partition import partition_classes
from ramify.learners.linear.problem import widen
from ramify.learners.linear.taxonomy_ties import tie_along_paths, tie_flat
from ramify.learners.linear.tree_worker import TreeWorker


def flat_workers():
    problem = some_problem(6, tie_flat)
    partition = partition_classes(problem, all_pairs(problem), (1,), complete=True)[0]
    one, other = FlatWorker(problem, partition), FlatWorker(problem, partition)
    one.solve_classes(0.1)
    return one, other


def tree_workers():
    """The first of two, with units that both have, and two threads."""
    problem = some_problem(6, tie_along_paths)
    partitions = partition_classes(problem, all_pairs(problem), (2, 1), complete=True)
    one, other = TreeWorker(problem, partitions[0]), TreeWorker(problem, partitions[0])
    one.begin_ascent(one.count_paths())
    for _ in range(3):
        one.add_changes(one.ascent_round())
    assert one.is_shared.any()
    assert len(one.paths.visited) == 2
    return one, other


def graph_workers():
    """The first of two, after three rounds."""
    task = make_task(np.random.default_rng(0), wide_dag(), "hinge")
    partitions = [replace(each, depth=3) for each in partitions_of(task.structure, (1, 1))]
    group, n = [GraphWorker(task, partition) for partition in partitions], len(partitions[0].boundary)
    for what in ("ties", "shifted"):
        all_reduce(group, what, lambda parts: sum_complements(n, parts))
    for number in range(3):
        all_reduce(group, "point", lambda parts: sum_vectors(n, parts))
        for worker in group:
            worker.solve_classes(4, 1e-6, number)
        all_reduce(group, "solved", lambda parts: sum_vectors(n, parts))
        for worker in group:
            worker.measure()
            worker.keep_best(1.0)
            worker.step([0.0] * len(worker.history.residual_changes))
    return group[0], GraphWorker(task, partitions[0])


def all_reduce(group, what, combine):
    combined = combine([getattr(worker, f"give_{what}")() for worker in group])
    for worker in group:
        getattr(worker, f"take_{what}")(combined)


WORKERS = {"flat": flat_workers, "tree": tree_workers, "graph": graph_workers}
WORK = {
    "flat": lambda worker: (worker.solve_classes(0.01), worker.screen(0.1, True)),
    "tree": lambda worker: worker.add_changes(worker.ascent_round()),
    "graph": lambda worker: worker.give_point(),
}


def copied(state):
    return {name: array.copy() for name, array in state.items()}


@pytest.mark.parametrize("kind", WORKERS)
def test_a_worker_restores_the_state_of_another(kind):
    one, other = WORKERS[kind]()
    other.restore(copied(one.state()))
    for name, array in one.state().items():
        np.testing.assert_array_equal(array, other.state()[name], err_msg=name)


def test_a_worker_may_have_been_given_more_pairs():
    one, other = flat_workers()
    one.pairs = widen(one.pairs, np.zeros(2, dtype=np.int32), np.array([1, 3], dtype=np.int32))
    other.restore(copied(one.state()))
    np.testing.assert_array_equal(other.pairs.documents, one.pairs.documents)


# ---- damage -------------------------------------------------------------------------------------------------------------


STATES = {kind: make()[0].state() for kind, make in WORKERS.items()}
EVERY = [(kind, name) for kind, state in STATES.items() for name in state]
FLOATS = [(kind, name) for kind, name in EVERY if STATES[kind][name].dtype.kind == "f"]
OF_ONE_SIZE = [
    (kind, name) for kind, name in EVERY if name not in ("chosen", "active_classes") and not name.startswith("cached_")
]
REFUSED = "^the checkpoint holds .*; train without --resume to begin anew.$"


def refuses(kind, change):
    one, other = WORKERS[kind]()
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


def test_vectors_that_a_more_worker_that_saves_memory_did_not_hold_are_made_anew():
    one, other = tree_workers()
    other.restore(copied(one.state()) | {f"cached_{k}": np.zeros(0, dtype=np.float32) for k in range(2)})
    for mine, theirs in zip(one.ascent.cached, other.ascent.cached, strict=True):
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
    [("rounds", 0, -1), ("rounds", 0, 2**62), ("n_paths", 0, 0.0), ("n_paths", -1, 9.0), ("n_paths", 0, -1.0)],
)
def test_impossible_rounds_and_paths_are_refused(name, place, value):
    refuses("tree", put(name, place, value))


@pytest.mark.parametrize(("name", "place", "value"), [("T", 0, 0.0), ("T", -1, -1.0), ("alphas", 0, -1.0)])
def test_ties_that_hold_nothing_are_refused(name, place, value):
    refuses("graph", put(name, place, value))


def test_more_steps_than_are_mixed_are_refused():
    refuses(
        "graph",
        lambda state: state.update(
            {f"{name}_{k}": state[f"{name}_0"] for name in ("point_change", "residual_change") for k in range(4)}
        ),
    )


@pytest.mark.parametrize("kind", WORKERS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_with_whatever_state_is_restored_a_worker_can_work(kind, data):
    one, other = WORKERS[kind]()
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


def test_a_worker_with_few_active_classes_goes_on_with_these():
    one, other = tree_workers()
    one.select_active([0, 2])
    one.add_changes(one.ascent_round())
    other.restore(copied(one.state()))
    for worker in (one, other):
        worker.add_changes(worker.ascent_round())
    for name, array in one.state().items():
        np.testing.assert_array_equal(array, other.state()[name], err_msg=name)
    assert one.active_classes.tolist() == [0, 2]
