"""Training on a real cluster of several nodes: the same models as on threads, whatever is lost on the way."""

import os
import signal

import numpy as np
import pytest
from clusters import new_node, small_cluster

from ramify.datasets import make_directory
from ramify.execution import Checkpoints, kept_in, open_cluster, running_on
from ramify.learners import OneVsRestLogistic, OneVsRestSVM, RecursiveLogistic, RecursiveSVM, TopDownSVM

pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster():
    with small_cluster() as made:
        yield made


@pytest.fixture
def executor(cluster):
    with open_cluster(cluster.address) as made:
        yield made


@pytest.fixture(scope="module")
def directory():
    """More pairs of a document and a class than are taken at once, so that near ones come first."""
    return make_directory(n_leaves=80, n_docs=3500, seed=0)


LINEAR = {
    "svm": (OneVsRestSVM, {}),
    "svm, fast": (OneVsRestSVM, {"mode": "fast"}),
    "lr": (OneVsRestLogistic, {}),
    "hr-svm": (RecursiveSVM, {}),
    "hr-svm, fast": (RecursiveSVM, {"mode": "fast"}),
    "hr-lr": (RecursiveLogistic, {"tol": 1e-2}),
    "td-svm": (TopDownSVM, {}),
}


def fit(name, directory, **more):
    learner, settings = LINEAR[name]
    return learner(directory.taxonomy, **settings, **more).fit(directory.X, directory.Y)


@pytest.mark.parametrize("name", LINEAR)
def test_the_objective_on_a_cluster_is_that_on_threads_within_the_gap(executor, directory, name):
    here = fit(name, directory, n_jobs=2)
    with running_on(executor):
        there = fit(name, directory)
    if "fast" not in name:
        assert there.gap_ <= there.tol
        assert here.gap_.primal * (1 - here.gap_) <= there.gap_.primal * (1 + 1e-9)
        assert there.gap_.primal * (1 - there.gap_) <= here.gap_.primal * (1 + 1e-9)
    X = directory.X
    same = np.asarray((here.predict(X) != there.predict(X)).sum(axis=1)).ravel() == 0
    assert same.mean() > 0.995
    assert executor.traffic.lost == 0


def lose_in_call(monkeypatch, number, machine, lose):
    """Have a member's worker or machine be lost in the middle of a call: after it was sent, before it is answered."""
    import ray

    from ramify.execution.ray import Post

    ask, calls = Post.ask, []

    def ask_and_lose(post, what, arguments):
        is_it = post.machine.address == machine and not calls.append(what) and len(calls) == number
        process = ray.get(post.actor.process.remote()) if is_it else None
        ask(post, what, arguments)
        if is_it:
            lose(process)

    monkeypatch.setattr(Post, "ask", ask_and_lose)


def arrays_of(fitted):
    weights = fitted.weights_
    return weights.deltas.indptr, weights.deltas.indices, weights.deltas.data, weights.bias


def assert_same_model(one, other):
    for mine, theirs in zip(arrays_of(one), arrays_of(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert (one.gap_.primal, one.gap_.dual, one.gap_.rounds) == (other.gap_.primal, other.gap_.dual, other.gap_.rounds)


@pytest.mark.parametrize(("name", "call", "kept"), [("hr-svm", 12, True), ("hr-svm", 30, False), ("svm", 3, True)])
def test_a_worker_that_is_killed_in_the_middle_changes_nothing(cluster, directory, monkeypatch, tmp_path, name, call, kept):
    with open_cluster(cluster.address) as executor, running_on(executor):
        undisturbed = fit(name, directory)
        lose_in_call(monkeypatch, call, "127.0.0.3", lambda process: os.kill(process, signal.SIGKILL))
        with kept_in(Checkpoints(tmp_path / "kept") if kept else None):
            found = fit(name, directory)
        assert executor.traffic.lost == 1
    assert_same_model(found, undisturbed)


def test_a_machine_that_is_lost_in_the_middle_changes_nothing(cluster, directory, monkeypatch, tmp_path):
    node = cluster.add_node(**new_node(2))
    cluster.wait_for_nodes()
    with open_cluster(cluster.address) as executor, running_on(executor):
        assert executor.teams == (1, 1, 1)
        undisturbed = fit("hr-svm", directory)
        lose_in_call(monkeypatch, 20, "127.0.0.4", lambda _: cluster.remove_node(node, allow_graceful=False))
        with kept_in(Checkpoints(tmp_path / "kept")):
            found = fit("hr-svm", directory)
        assert executor.traffic.lost == 1
    assert_same_model(found, undisturbed)


class InterruptedByTestError(Exception):
    pass


@pytest.mark.parametrize("name", ["hr-svm", "svm"])
def test_a_run_that_is_taken_up_again_comes_to_the_same_model(executor, directory, monkeypatch, tmp_path, name):
    def stop(_):
        raise InterruptedByTestError

    with running_on(executor):
        undisturbed = fit(name, directory)
        with monkeypatch.context() as patch:
            lose_in_call(patch, {"hr-svm": 25, "svm": 5}[name], "127.0.0.3", stop)
            with kept_in(Checkpoints(tmp_path / "kept")), pytest.raises(InterruptedByTestError):
                fit(name, directory)
        calls = executor.traffic.calls
        with kept_in(Checkpoints(tmp_path / "kept", resume=True)):
            found = fit(name, directory)
        again = executor.traffic.calls - calls
        fit(name, directory)
        assert again < executor.traffic.calls - calls - again
    assert_same_model(found, undisturbed)
