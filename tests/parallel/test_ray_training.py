"""Training on a real cluster of several nodes: the same models as on threads, whatever is lost on the way."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest
from clusters import new_node, small_cluster
from directories import write_directory

from ramify import TextClassifier
from ramify.data import make_web_directory
from ramify.learners import (
    AdaBoostMH,
    OneVsRestLogistic,
    OneVsRestSVM,
    RecursiveLogistic,
    RecursiveSVM,
    TopDownSVM,
    TreeBoostMH,
)
from ramify.parallel import Checkpoints, checkpointing, open_cluster, reporting_to, running_on
from ramify.workflows.comparing import compare
from ramify.workflows.file_predictions import predict_files

pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


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
    return make_web_directory(n_leaves=80, n_docs=3500, seed=0)


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


def wait_until(condition):
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise TimeoutError("it did not come to that")


def lose_in_call(monkeypatch, number, address, lose):
    """Have a worker's process or node be lost in the middle of a call: after it was sent, before it is answered."""
    import ray

    from ramify.parallel.ray import RayWorkerGroup

    submit, calls = RayWorkerGroup._submit, []

    def submit_and_lose(group, worker, method, arguments):
        is_it = worker.node.address == address and not calls.append(method) and len(calls) == number
        process = ray.get(worker.actor.process.remote()) if is_it else None
        submit(group, worker, method, arguments)
        if is_it:
            lose(process)

    monkeypatch.setattr(RayWorkerGroup, "_submit", submit_and_lose)


def arrays_of(fitted):
    weights = fitted.weights_
    return weights.deltas.indptr, weights.deltas.indices, weights.deltas.data, weights.bias


def assert_same_model(one, other):
    for mine, theirs in zip(arrays_of(one), arrays_of(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert (one.gap_.primal, one.gap_.dual, one.gap_.rounds) == (other.gap_.primal, other.gap_.dual, other.gap_.rounds)


@pytest.mark.parametrize(("name", "call", "kept"), [("hr-svm", 12, True), ("svm", 3, False)])
def test_a_worker_that_is_killed_in_the_middle_changes_nothing(cluster, directory, monkeypatch, tmp_path, name, call, kept):
    with open_cluster(cluster.address) as executor, running_on(executor):
        undisturbed = fit(name, directory)
        lose_in_call(monkeypatch, call, "127.0.0.3", lambda process: os.kill(process, signal.SIGKILL))
        with checkpointing(Checkpoints(tmp_path / "kept") if kept else None):
            found = fit(name, directory)
        assert executor.traffic.lost == 1
    assert_same_model(found, undisturbed)


def test_a_node_that_is_lost_in_the_middle_changes_nothing(cluster, directory, monkeypatch, tmp_path):
    node = cluster.add_node(**new_node(2))
    cluster.wait_for_nodes()
    with open_cluster(cluster.address) as executor, running_on(executor):
        assert executor.worker_threads == (1, 1, 1)
        undisturbed = fit("hr-svm", directory)
        lose_in_call(monkeypatch, 20, "127.0.0.4", lambda _: cluster.remove_node(node, allow_graceful=False))
        with checkpointing(Checkpoints(tmp_path / "kept")):
            found = fit("hr-svm", directory)
        assert executor.traffic.lost == 1
    assert_same_model(found, undisturbed)


class InterruptedByTestError(Exception):
    pass


@pytest.mark.parametrize("name", ["hr-svm", "svm"])
def test_a_run_that_is_resumed_comes_to_the_same_model(executor, directory, monkeypatch, tmp_path, name):
    def stop(_):
        raise InterruptedByTestError

    with running_on(executor):
        undisturbed = fit(name, directory)
        with monkeypatch.context() as patch:
            lose_in_call(patch, {"hr-svm": 25, "svm": 5}[name], "127.0.0.3", stop)
            with checkpointing(Checkpoints(tmp_path / "kept")), pytest.raises(InterruptedByTestError):
                fit(name, directory)
        calls = executor.traffic.calls
        with checkpointing(Checkpoints(tmp_path / "kept", resume=True)):
            found = fit(name, directory)
        again = executor.traffic.calls - calls
        fit(name, directory)
        assert again < executor.traffic.calls - calls - again
    assert_same_model(found, undisturbed)


def test_a_run_that_began_on_a_cluster_goes_on_without(executor, directory, monkeypatch, tmp_path):
    def stop(_):
        raise InterruptedByTestError

    with running_on(executor):
        undisturbed = fit("hr-svm", directory)
        with monkeypatch.context() as patch:
            lose_in_call(patch, 25, "127.0.0.3", stop)
            with checkpointing(Checkpoints(tmp_path / "kept")), pytest.raises(InterruptedByTestError):
                fit("hr-svm", directory)
    with checkpointing(Checkpoints(tmp_path / "kept", resume=True)):
        assert_same_model(fit("hr-svm", directory), undisturbed)


def test_needs_and_progress_are_reported(executor, directory):
    lines, told = [], []

    class Listener:
        @contextmanager
        def stage(self, title, total):
            yield self

        def advance(self, amount=1):
            pass

        def describe(self, what):
            told.append(what)

        def note(self, line):
            lines.append(line)

    with reporting_to(Listener()), running_on(executor):
        fit("hr-svm", directory)
    assert re.fullmatch(r"2 workers: about 0\.3 GB of memory each and 0\.0 GB on every node .*; about 1 minute\.", lines[0])
    assert re.fullmatch(r"round 1; \d+ MB sent", told[0])
    assert re.fullmatch(r"round \d+, duality gap about \d\.\de-\d\d; \d+ MB sent", told[-1])


# ---- other systems, through texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["h-svm", "b-svm", "treeboost-mh", "adaboost-mh", "shrinkage-nb", "nb"])
def test_other_systems_come_to_the_same_answers(executor, shop, system):
    texts, labels = shop.train.documents[:400], shop.train.labels[:400]
    learner = {"treeboost-mh": TreeBoostMH(n_rounds=30), "adaboost-mh": AdaBoostMH(n_rounds=30)}.get(system)
    # without a calibration, which may make much of a little within the gap
    here = TextClassifier(system, shop.taxonomy, learner=learner, calibrate=False, n_jobs=2).fit(texts, labels)
    with running_on(executor):
        there = TextClassifier(system, shop.taxonomy, learner=learner, calibrate=False).fit(texts, labels)
    if "svm" in system:
        a, b = (np.asarray(fitted.predict_proba(shop.test.documents)) for fitted in (here, there))
        np.testing.assert_allclose(a, b, atol=0.02)
    else:
        _, mine = here.learner_.state()
        _, theirs = there.learner_.state()
        for name, array in mine.items():
            np.testing.assert_array_equal(array, theirs[name])


def test_systems_are_compared_and_files_classified_on_a_cluster_as_here(executor, shop, tmp_path):
    systems = {name: TextClassifier(name, shop.taxonomy) for name in ("nb", "svm")}
    some = shop.train.take(range(300))
    here = compare(systems, some, folds=2, n_resamples=50)
    TextClassifier("nb", shop.taxonomy).fit(some.documents, some.labels).save(tmp_path / "model")
    (tmp_path / "parts").mkdir()
    for k in range(3):
        lines = [json.dumps({"text": text}) for text in shop.test.documents[20 * k : 20 * k + 20]]
        (tmp_path / "parts" / f"{k}.jsonl").write_text("\n".join(lines))
    predict_files(tmp_path / "model", tmp_path / "parts", tmp_path / "here")
    with running_on(executor):
        there = compare(systems, some, folds=2, n_resamples=50)
        predict_files(tmp_path / "model", tmp_path / "parts", tmp_path / "there")
    for mine, theirs in zip(here.systems, there.systems, strict=True):
        assert mine.measures == theirs.measures
    for k in range(3):
        assert (tmp_path / "here" / f"{k}.jsonl").read_bytes() == (tmp_path / "there" / f"{k}.jsonl").read_bytes()


# ---- the command line ---------------------------------------------------------------------------------------------------


def test_a_driver_that_is_killed_and_resumed_writes_the_same_model(cluster, tmp_path):
    data = tmp_path / "data.csv"
    write_directory(make_web_directory(n_leaves=60, n_docs=4500, n_words=40, seed=1), data)
    command = ["ramify", "train", str(data), "--system", "hr-svm", "--cluster", cluster.address, "--holdout", "0"]
    command += ["--no-calibrate", "--param", "C=1"]
    program = [sys.executable, "-m", "ramify.cli.main", *command[1:]]
    subprocess.run([*program, "-m", str(tmp_path / "whole")], check=True, capture_output=True)
    with subprocess.Popen([*program, "-m", str(tmp_path / "model")], stderr=subprocess.DEVNULL) as driver:
        wait_until(lambda: any((tmp_path / "model.checkpoints").glob("*/00000[1-9]*.safetensors")) or driver.poll() is not None)
        assert driver.poll() is None, "it was done before it could be killed"
        driver.kill()
    assert not (tmp_path / "model").exists()
    subprocess.run([*program, "-m", str(tmp_path / "model"), "--resume"], check=True, capture_output=True)
    for name in ("weights.safetensors", "features.json", "taxonomy.json"):
        assert (tmp_path / "model" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not (tmp_path / "model.checkpoints").exists()
