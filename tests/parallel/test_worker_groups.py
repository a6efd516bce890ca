"""Worker groups: calls, all-reduce, and rounds that are saved, resumed, and repeated when a worker is lost."""

import json
from pathlib import Path

import numpy as np
import pytest
from apart import ApartExecutor, ApartWorkerGroup

from ramify.errors import InputError, ModelError, RamifyError
from ramify.parallel import Checkpoints, SerialExecutor, ThreadExecutor, WorkerLostError, checkpointing, running_on
from ramify.parallel.checkpoints import save_state
from ramify.parallel.executor import WorkerGroup, choose_executor

STEPS = 8


class Power:
    """A worker that follows the power method on its rows of a matrix."""

    def __init__(self, matrix, rows, memory_saving=0):
        assert memory_saving == 0
        self.matrix, self.rows = matrix, rows
        self.v = np.ones(len(matrix)) / np.sqrt(len(matrix))
        self.calls = 0

    def state(self):
        return {"v": self.v, "calls": np.array(self.calls)}

    def restore(self, state):
        self.v, self.calls = state["v"], int(state["calls"])

    def norm(self, power):
        self.calls += 1
        return float((np.abs(self.matrix[self.rows] @ self.v) ** power).sum())

    def give(self):
        return self.matrix[self.rows] @ self.v

    def take(self, v):
        self.v = v

    def result(self):
        return self.v.tolist(), self.calls


MATRIX = np.random.default_rng(0).random((6, 6))
PARTITIONS = [np.arange(0, 2), np.arange(2, 6)]


class StoppedError(Exception):
    pass


def together(parts):
    v = np.concatenate(parts)
    return v / np.linalg.norm(v)


def run(executor, until=STEPS, matrix=MATRIX, partitions=PARTITIONS, done=None):
    """Some steps; gives the norms, and the vectors and calls of all workers at the end. done: gets every step that is run."""
    with executor.start_workers(Power, executor.place(matrix), partitions) as group:
        while True:
            try:
                saved = group.saved_round or {"step": 0, "norms": []}
                norms = saved["norms"]
                for step in range(saved["step"], STEPS):
                    if step == until:
                        raise StoppedError
                    if done is not None:
                        done.append(step)
                    norms.append(group.call(Power.norm, 2))
                    group.all_reduce(Power.give, together, Power.take)
                    group.save({"step": step + 1, "norms": norms})
                return norms, group.call(Power.result)
            except WorkerLostError:
                group.restart()


@pytest.fixture(params=["serial", "threads", "apart"])
def executor(request):
    return {"serial": SerialExecutor(), "threads": ThreadExecutor(2), "apart": ApartExecutor(1, 1)}[request.param]


def saving(directory, resume=False):
    return checkpointing(Checkpoints(directory, resume=resume, work_per_save=0))


def one_sentence(error):
    assert isinstance(error.value, RamifyError)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("until", [0, 1, 5])
def test_a_resumed_run_ends_as_if_it_had_not_been_interrupted(executor, until, tmp_path):
    whole = run(executor)
    with saving(tmp_path), pytest.raises(StoppedError):
        run(executor, until)
    with saving(tmp_path, resume=True):
        assert repr(run(executor)) == repr(whole)


def test_saved_rounds_are_not_run_again(executor, tmp_path):
    with saving(tmp_path), pytest.raises(StoppedError):
        run(executor, 5)
    done = []
    with saving(tmp_path, resume=True):
        run(executor, done=done)
    assert done == [5, 6, 7]
    with saving(tmp_path, resume=True):
        run(executor, done=done)
    assert done == [5, 6, 7]


class LosingGroup(ApartWorkerGroup):
    """Loses a worker at some calls; new workers start from the last saved round, as on a cluster."""

    def call(self, method, *arguments):
        self.executor.calls += 1
        if self.executor.calls in self.executor.lost_at:
            self.workers[-1] = None
            raise WorkerLostError
        return super().call(method, *arguments)

    def restart(self):
        self.executor.restarts += 1
        workers = [Power(MATRIX, rows) for rows in PARTITIONS]
        self.__init__(workers, self.checkpoint, self._run)


class Losing(ApartExecutor):
    group = LosingGroup

    def __init__(self, *lost_at):
        super().__init__(1, 1)
        self.lost_at, self.calls, self.restarts = lost_at, 0, 0


@pytest.mark.parametrize("lost_at", [(1,), (2,), (3,), (7, 8, 9), (5, 24)], ids=str)
@pytest.mark.parametrize("is_saved", [True, False])
def test_a_lost_worker_changes_nothing(lost_at, is_saved, tmp_path):
    losing, done = Losing(*lost_at), []
    with saving(tmp_path) if is_saved else checkpointing(None):
        assert repr(run(losing, done=done)) == repr(run(SerialExecutor()))
    assert losing.restarts == len(lost_at)
    assert len(done) <= STEPS + len(lost_at) if is_saved else len(done) >= STEPS  # only the round itself is repeated


def test_only_the_last_round_is_stored_and_no_messages(tmp_path):
    with saving(tmp_path):
        run(SerialExecutor())
    names = sorted(path.name for path in (tmp_path / "0000").iterdir())
    assert names == ["000008-0.safetensors", "000008-1.safetensors", "checkpoint.json"]
    content = json.loads((tmp_path / "0000" / "checkpoint.json").read_text())
    assert set(content) == {"format", "ramify", "subject", "number", "driver", "states"}


def test_checkpoints_are_rare_if_writing_takes_long(tmp_path):
    with checkpointing(Checkpoints(tmp_path, work_per_save=1e9)):
        run(SerialExecutor())
    assert (tmp_path / "0000" / "000001-0.safetensors").exists()
    assert not list((tmp_path / "0000").glob("000002-*"))


def test_nothing_is_saved_by_default(executor, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(executor)
    assert list(tmp_path.iterdir()) == []


def test_worker_groups_run_on_the_given_executor_and_maps_in_this_process():
    apart = ApartExecutor(3, 2)
    with running_on(apart):
        executor = choose_executor(2)
        assert executor.worker_threads == (3, 2)
        with executor.start_workers(Power, executor.place(MATRIX), PARTITIONS) as group:
            assert type(group).__name__ == "ApartWorkerGroup"
        shared = []
        list(executor.map(shared.append, range(4)))  # would be lost elsewhere
        assert sorted(shared) == [0, 1, 2, 3]
    assert choose_executor(2).worker_threads == (2,)


# ---- other work, and damage -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change", [{"matrix": MATRIX + 1e-12}, {"partitions": PARTITIONS[::-1]}, {"partitions": [np.arange(6)]}]
)
def test_checkpoints_of_other_work_are_refused(executor, change, tmp_path):
    with saving(tmp_path):
        run(executor)
    with saving(tmp_path, resume=True), pytest.raises(InputError, match="is of other documents") as error:
        run(executor, **change)
    one_sentence(error)


def damaged_by(tmp_path, **changes):
    with saving(tmp_path), pytest.raises(StoppedError):
        run(SerialExecutor(), 3)
    path = tmp_path / "0000" / "checkpoint.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with saving(tmp_path, resume=True), pytest.raises(RamifyError) as error:
        run(SerialExecutor())
    one_sentence(error)
    return str(error.value)


HASH = "0" * 64


@pytest.mark.parametrize("states", [[["000003-0.safetensors", HASH]], [], [["000003-0.safetensors", HASH]] * 3])
def test_states_of_more_or_fewer_workers_are_refused(states, tmp_path):
    assert f"states of {len(states)} workers, not of 2" in damaged_by(tmp_path, states=states)


@pytest.mark.parametrize(
    "name",
    [
        "../0001/000003-0.safetensors",
        "/etc/passwd",
        ".hidden",
        "checkpoint.json",
        "a\\b",
        "..",
        "",
        "000003-0.safetensors/",
        None,
        3,
    ],
)
def test_names_that_lead_elsewhere_are_refused(name, tmp_path):
    assert "names files that are not part of it; do not trust it" in damaged_by(tmp_path, states=[[name, HASH]] * 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"driver": 3},
        {"driver": [1]},
        {"number": "3"},
        {"number": None},
        {"states": "000003-0.safetensors"},
        {"states": None},
        {"states": ["000003-0.safetensors"] * 2},
        {"ramify": None},
    ],
)
def test_checkpoints_of_another_form_are_refused(changes, tmp_path):
    assert "is not a file that this Ramify writes" in damaged_by(tmp_path, **changes)


def test_checkpoints_of_another_ramify_are_refused(tmp_path):
    message = damaged_by(tmp_path, ramify="0.0.1")
    assert "checkpoint.json was written by Ramify 0.0.1, and this is " in message
    assert message.endswith("; resume with that version, or train without --resume to begin anew.")


@pytest.mark.parametrize("at", range(3))
def test_a_run_can_be_resumed_even_if_the_removal_of_its_checkpoints_was_interrupted(at, tmp_path, monkeypatch):
    whole, kept, left = run(SerialExecutor()), Checkpoints(tmp_path, work_per_save=0), list(range(at))
    with checkpointing(kept):
        run(SerialExecutor())
    unlink = Path.unlink

    def until_stopped(path, *given, **more):
        if not left:
            raise StoppedError
        left.pop()
        unlink(path, *given, **more)

    with monkeypatch.context() as stopped, pytest.raises(StoppedError):
        stopped.setattr(Path, "unlink", until_stopped)
        kept.remove()
    with saving(tmp_path, resume=True):
        assert repr(run(SerialExecutor())) == repr(whole)


@pytest.mark.parametrize("content", [b"", b"half a file", None])
def test_damaged_and_missing_states_are_refused(content, tmp_path):
    with saving(tmp_path):
        run(SerialExecutor())
    path = tmp_path / "0000" / "000008-1.safetensors"
    path.unlink() if content is None else path.write_bytes(content)
    with saving(tmp_path, resume=True), pytest.raises(ModelError, match=r"000008-1\.safetensors") as error:
        run(SerialExecutor())
    one_sentence(error)


def test_states_that_a_worker_cannot_have_are_refused(tmp_path):
    with saving(tmp_path):
        run(SerialExecutor())
    place = tmp_path / "0000"
    changed = save_state(place / "000008-1.safetensors", {"w": MATRIX})
    content = json.loads((place / "checkpoint.json").read_text())
    content["states"][1][1] = changed.sha256
    (place / "checkpoint.json").write_text(json.dumps(content))
    with saving(tmp_path, resume=True), pytest.raises(ModelError, match=r"lacks what belongs there \('v'\)") as error:
        run(SerialExecutor())
    one_sentence(error)


@pytest.mark.parametrize("sha256", [None, "", "0" * 64])
def test_states_that_were_changed_after_they_were_written_are_refused(executor, sha256, tmp_path):
    with saving(tmp_path):
        run(executor)
    path = tmp_path / "0000" / "checkpoint.json"
    content = json.loads(path.read_text())
    content["states"][1][1] = sha256
    path.write_text(json.dumps(content))
    with saving(tmp_path, resume=True), pytest.raises(ModelError, match=r"1\.safetensors was changed after it was") as error:
        run(executor)
    one_sentence(error)


def test_a_resumed_round_is_not_written_again(tmp_path):
    with saving(tmp_path), pytest.raises(StoppedError):
        run(SerialExecutor(), 3)
    before = (tmp_path / "0000" / "000003-0.safetensors").stat().st_ino
    with saving(tmp_path, resume=True), pytest.raises(StoppedError):
        run(SerialExecutor(), 3)
    assert (tmp_path / "0000" / "000003-0.safetensors").stat().st_ino == before


def test_a_run_that_was_interrupted_between_states_and_checkpoint_goes_on_from_the_checkpoint(tmp_path):
    whole = run(SerialExecutor())
    with saving(tmp_path), pytest.raises(StoppedError):
        run(SerialExecutor(), 4)
    place = tmp_path / "0000"
    for k in range(2):  # states of a later round that was never finished
        (place / f"000005-{k}.safetensors").write_bytes(b"later")
    (place / "000006-0.partial").write_bytes(b"half")
    checkpoints = Checkpoints(tmp_path, resume=True, work_per_save=0)
    with checkpointing(checkpoints):
        assert run(SerialExecutor()) == whole
        checkpoints.remove()
    assert not tmp_path.exists()


def test_workers_are_dropped_at_the_end():
    with SerialExecutor().start_workers(Power, MATRIX, PARTITIONS) as group:
        assert type(group) is WorkerGroup
        assert len(group.workers) == 2
    assert list(group.workers) == []
