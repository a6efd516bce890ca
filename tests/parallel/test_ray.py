"""A real cluster of several nodes: blocks, worker groups, and what happens when a part of it is lost."""

import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from apart import ApartExecutor
from clusters import new_node, small_cluster
from graph_problems import make_task, random_dag, solve_graph, weights_of

from ramify.errors import InputError
from ramify.learners.linear.taxonomy_ties import tie_dag
from ramify.parallel import Checkpoints, Needs, WorkerLostError, checkpointing, choose_executor, open_cluster, running_on

sys.path.insert(0, os.path.dirname(__file__))
import ray_workers
from ray_workers import Adder, add_up

pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def cluster():
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(ray_workers)
    with small_cluster() as made:
        yield made


@pytest.fixture
def executor(cluster):
    with open_cluster(cluster.address) as made:
        yield made


def wait_until(condition):
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    raise TimeoutError("it did not come to that")


def pid_of(group, k):
    import ray

    return ray.get(group.workers[k].actor.process.remote())


def test_a_cluster_has_a_worker_for_every_node(executor):
    assert executor.worker_threads == (1, 1)
    with running_on(executor):
        assert choose_executor(4).worker_threads == (1, 1)
        seen = []
        assert list(choose_executor(2).map(seen.append, range(3))) == [None] * 3
    assert sorted(seen) == [0, 1, 2]


def test_blocks_come_back_in_order_and_can_be_written_to(executor):
    results = list(executor.distribute(ray_workers.multiply, np.arange(100_000.0), range(7)))
    for k, result in enumerate(results):
        np.testing.assert_array_equal(result, k * np.arange(100_000.0))
        result[0] = 1


def test_the_error_of_a_block_is_raised_as_it_is(executor):
    with pytest.raises(InputError, match="^three is too many.$"):
        list(executor.distribute(ray_workers.fail_at_three, None, range(50)))


def test_blocks_whose_worker_dies_are_done_again(executor, tmp_path):
    assert list(executor.distribute(ray_workers.die_once, str(tmp_path), range(3))) == [0, 1, 2]


def test_a_block_that_runs_out_of_memory_is_tried_alone(executor, tmp_path, notes):
    assert list(executor.distribute(ray_workers.needs_much_once, str(tmp_path), range(2))) == [0, 1]
    assert "ran out of memory" in notes[0]


def test_what_is_placed_is_there_once_on_each_node_and_cannot_be_written_to(executor):
    common = np.arange(5_000_000, dtype=np.float64)  # 40 MB, of 150 that a node can hold
    placed = executor.place(common)
    with executor.start_workers(Adder, placed, [1, 2, 3, 4, 5, 6]) as group:
        assert group.call(Adder.first_of_common) == [[0.0, False]] * 6
        nodes = [post.node.name for post in group.workers]
        places = [tuple(place) for place in group.call(Adder.place_of_common)]
    assert list(Counter(nodes).values()) == [3, 3]
    assert len(set(places)) == len(set(zip(nodes, places, strict=True))) == 2


def test_a_group_adds_up_what_its_workers_do(executor):
    with executor.start_workers(Adder, None, [1, 10]) as group:
        assert group.call(Adder.add, 2) == [2.0, 20.0]
        group.all_reduce(Adder.give, add_up, Adder.take)
        assert group.call(Adder.add, 0) == [24.0, 42.0]
        assert [float(x[0]) for x in group.call(Adder.give)] == [24.0, 42.0]


def test_the_error_of_a_worker_is_raised_as_it_is(executor):
    with executor.start_workers(Adder, None, [1, 10]) as group, pytest.raises(InputError, match="^a worker refuses.$"):
        group.call(Adder.refuse)


def repeated(group, steps, lose=lambda: None):
    """Add 2, add up the sums, save; then lose something, and add 1: all again from the last saved round if a worker is lost."""
    while True:
        try:
            if group.saved_round is None:
                steps.append("first")
                group.call(Adder.add, 2)
                group.all_reduce(Adder.give, add_up, Adder.take)
                group.save({})
            steps.append("second")
            group.call(Adder.add, 1)
            if steps.count("second") == 1:
                lose()
            return group.call(Adder.add, 0)
        except WorkerLostError:
            group.restart()


@pytest.mark.parametrize("is_saved", [False, True], ids=["from the beginning", "from a checkpoint"])
def test_a_group_whose_worker_is_killed_repeats_the_last_round(executor, tmp_path, notes, is_saved):
    steps = []
    saving = checkpointing(Checkpoints(tmp_path / "saved") if is_saved else None)
    with saving, executor.start_workers(Adder, None, [1, 10]) as group:
        found = repeated(group, steps, lambda: os.kill(pid_of(group, 1), signal.SIGKILL))
    assert found == [25.0, 52.0]
    assert steps == ["first", "second", "second"] if is_saved else ["first", "second"] * 2
    assert executor.traffic.lost == 1
    assert "was lost; the last saved round is repeated" in notes[0]


def test_a_worker_on_a_node_that_is_lost_goes_on_elsewhere(cluster, notes):
    node = cluster.add_node(**new_node(2))
    cluster.wait_for_nodes()
    with open_cluster(cluster.address) as executor, executor.start_workers(Adder, None, [1, 10, 100]) as group:
        assert executor.worker_threads == (1, 1, 1)
        processes = [pid_of(group, k) for k in range(3)]

        def lose():
            cluster.remove_node(node, allow_graceful=False)
            wait_until(lambda: not all(Path(f"/proc/{pid}").exists() for pid in processes))

        assert repeated(group, [], lose) == [225.0, 252.0, 522.0]
        assert len({worker.node.name for worker in group.workers}) == 2
    assert len(notes) == 1


def test_a_worker_that_runs_out_of_memory_goes_on_with_less(executor, notes):
    def needing(group, saving):
        while True:
            try:
                return group.call(Adder.need, saving), group.call(Adder.add, 2)
            except WorkerLostError:
                group.restart()

    with executor.start_workers(Adder, None, [1, 10]) as group:
        assert needing(group, 2) == ([2, 2], [2.0, 20.0])
        with pytest.raises(InputError, match="ran out of memory .* larger nodes"):
            needing(group, 9)
    assert "smaller blocks" in notes[0]


def test_a_graph_whose_owner_is_lost_on_the_way_is_learnt_as_if_nothing_had_happened(executor, notes, monkeypatch):
    from ramify.parallel.ray import RayWorkerGroup

    rng = np.random.default_rng(0)
    task = make_task(rng, tie_dag(random_dag(rng, 20), np.arange(20)), "logistic", max_iter=6, tolerance=1e-9)
    rounds = iter(range(6))

    def kill_after_three(group, driver):
        if next(rounds, None) == 2:
            os.kill(pid_of(group, 1), signal.SIGKILL)

    monkeypatch.setattr(RayWorkerGroup, "save", kill_after_three)
    found, expected = (solve_graph(task, each) for each in (executor, ApartExecutor(1, 1)))
    assert executor.traffic.lost == 1
    assert found.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-6)
    np.testing.assert_allclose(weights_of(found, task.rows), weights_of(expected, task.rows), atol=1e-5)


def test_work_that_cannot_fit_is_refused_before_it_starts(executor):
    with pytest.raises(InputError, match="documents need 1.0 GB in the object store .* 0.1 GB"):
        executor.start_workers(Adder, None, [1], Needs(10**9, (1,), 1.0))
    with pytest.raises(InputError, match="needs about 1000.0 GB on 127.0.0.2"):
        executor.start_workers(Adder, None, [1], Needs(1, (10**12,), 1.0))


def test_an_address_where_nobody_is_gets_a_sentence():
    import ray

    ray.shutdown()
    with pytest.raises(InputError, match="no Ray cluster answers at '127.0.0.2:1'"):
        open_cluster("127.0.0.2:1")
