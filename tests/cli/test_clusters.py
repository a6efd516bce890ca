"""--cluster, --checkpoints and --resume on the command line, and the messages of errors with them."""

import subprocess
import sys

import pytest
from cli.test_commands import ramify
from directories import write_directory

from ramify.data import make_web_directory
from ramify.parallel import Checkpoints, checkpointing
from ramify.parallel.executor import WorkerGroup

pytestmark = pytest.mark.slow


@pytest.fixture
def data(tmp_path):
    return write_directory(make_web_directory(n_leaves=40, n_docs=500, n_words=30, seed=0), tmp_path / "data.csv")


def train(capsys, data, model, *more):
    return ramify(capsys, "train", data, "--model", model, "--system", "hr-svm", "--holdout", 0, *more)


@pytest.mark.parametrize("command", ["train", "predict", "compare"])
def test_without_ray_a_sentence_names_the_extra(command, data, tmp_path, capsys, monkeypatch):
    assert train(capsys, data, tmp_path / "model")[0] == 0
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "ramify.parallel.ray", raising=False)
    arguments = {"train": [data, "--model", tmp_path / "other"], "predict": [tmp_path / "model", data], "compare": [data]}
    code, _, err = ramify(capsys, command, *arguments[command], "--cluster", "auto")
    assert code == 2
    assert err.strip().splitlines()[-1] == "ramify: work on a cluster needs Ray; install it with: pip install 'ramify[ray]'"
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("address", ["somewhere", "host:port", "10.0.0.5:99999", "ray://10.0.0.5:10001", ""])
def test_an_address_that_is_none_is_refused(address, data, tmp_path, capsys):
    pytest.importorskip("ray", reason="Ray is not installed")
    code, _, err = train(capsys, data, tmp_path / "model", "--cluster", address)
    assert code == 2
    assert f"--cluster is {address!r}; give host:port" in err


@pytest.mark.parametrize("host", ["a..b", "x" * 80])
def test_a_host_that_cannot_be_one_gets_a_sentence(host, data, tmp_path, capsys):
    pytest.importorskip("ray", reason="Ray is not installed")
    code, _, err = train(capsys, data, tmp_path / "model", "--cluster", f"{host}:6379")
    assert code == 2
    assert f"no Ray cluster answers at '{host}:6379'" in err


def interrupt(patch):
    """Have training be interrupted after a few rounds, all of which are kept."""
    save, rounds = WorkerGroup.save, []

    def save_and_stop(group, driver):
        save(group, driver)
        rounds.append(driver)
        if len(rounds) == 4:
            raise KeyboardInterrupt

    patch.setattr(WorkerGroup, "save", save_and_stop)


def test_a_run_without_a_cluster_can_be_taken_up_again(data, tmp_path, capsys, monkeypatch):
    assert train(capsys, data, tmp_path / "whole", "--param", "tol=1e-5")[0] == 0
    kept = tmp_path / "kept"
    with monkeypatch.context() as patch:
        interrupt(patch)
        assert train(capsys, data, tmp_path / "model", "--checkpoints", kept, "--param", "tol=1e-5")[0] != 0
    assert (kept / "0000" / "checkpoint.json").exists()
    assert not (tmp_path / "model").exists()
    code, _, err = train(capsys, data, tmp_path / "model", "--checkpoints", kept, "--resume", "--param", "tol=1e-5")
    assert code == 0, err
    assert not kept.exists()
    for name in ("weights.safetensors", "features.json"):
        assert (tmp_path / "model" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_resuming_what_was_never_begun_or_was_of_something_else_is_refused(data, tmp_path, capsys):
    code, _, err = train(capsys, data, tmp_path / "model", "--resume")
    assert code == 2
    assert f"there is no checkpoint in {tmp_path / 'model.checkpoints'}; train without --resume to begin." in err
    kept = Checkpoints(tmp_path / "kept")
    kept.rounds("other work")
    code, _, err = train(capsys, data, tmp_path / "model", "--resume", "--checkpoints", kept.directory)
    assert code == 2
    assert "is of other documents, labels or settings; give those that it was begun with" in err
    assert not (tmp_path / "model").exists()


def test_a_command_with_a_mistake_leaves_the_checkpoints_of_an_interrupted_run(data, tmp_path, capsys, monkeypatch):
    kept = tmp_path / "kept"
    with monkeypatch.context() as patch:
        interrupt(patch)
        assert train(capsys, data, tmp_path / "model", "--checkpoints", kept)[0] != 0
    before = {path.name: path.stat().st_mtime_ns for path in kept.rglob("*") if path.is_file()}
    assert train(capsys, tmp_path / "dato.csv", tmp_path / "model", "--checkpoints", kept)[0] == 2
    assert train(capsys, data, tmp_path / "model", "--checkpoints", kept, "--text", "txet")[0] == 2
    assert {path.name: path.stat().st_mtime_ns for path in kept.rglob("*") if path.is_file()} == before
    code, _, err = train(capsys, data, tmp_path / "model", "--checkpoints", kept)
    assert code == 0
    assert f"Removed the checkpoints of an earlier run in {kept}." in err.replace("\n", " ")
    assert not kept.exists()


def test_two_commands_cannot_use_the_same_checkpoints(data, tmp_path, capsys):
    kept = tmp_path / "kept"
    with checkpointing(Checkpoints(kept)):
        code, _, err = train(capsys, data, tmp_path / "model", "--checkpoints", kept)
    assert code == 2
    assert f"another process is writing {kept}; wait until it has finished" in err


def test_checkpoints_of_another_system_are_neither_taken_up_nor_removed(data, tmp_path, capsys, monkeypatch):
    kept = tmp_path / "kept"
    with monkeypatch.context() as patch:
        interrupt(patch)
        code, _, err = train(capsys, data, tmp_path / "model", "--checkpoints", kept, "--param", "tol=1e-5")
    assert code != 0
    assert f"The work done so far is in {kept}; run the same command with --resume to continue." in err
    before = sorted(path.name for path in kept.rglob("*"))
    other = ["train", data, "--model", tmp_path / "other", "--system", "nb", "--checkpoints", kept, "--resume"]
    code, _, err = ramify(capsys, *other)
    assert code == 0
    assert f"Nothing was resumed from {kept}, and it stays as it is" in err
    assert sorted(path.name for path in kept.rglob("*")) == before
    code, _, err = train(capsys, data, tmp_path / "model", "--checkpoints", kept, "--param", "tol=1e-5", "--resume")
    assert code == 0
    assert f"Resuming from the checkpoints in {kept}." in err
    assert not kept.exists()


def test_a_mistake_leaves_no_empty_directory(data, tmp_path, capsys):
    assert train(capsys, tmp_path / "missing.csv", tmp_path / "model", "--checkpoints", tmp_path / "kept")[0] == 2
    assert not (tmp_path / "kept").exists()


def test_being_told_to_end_is_an_interruption(data, tmp_path):
    command = [sys.executable, "-m", "ramify.cli.main", "train", str(data), "--model", str(tmp_path / "model")]
    more = ["--system", "hr-lr", "--param", "tol=1e-9", "--param", "C=1000", "--param", "max_iter=1000000"]
    running = subprocess.Popen([*command, *more], stderr=subprocess.PIPE, text=True)
    assert "documents" in running.stderr.readline()  # it has begun
    running.terminate()
    assert "interrupted; every file is unchanged" in running.communicate(timeout=60)[1]
    assert running.returncode == 2
    assert not (tmp_path / "model").exists()
