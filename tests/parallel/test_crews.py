"""Crews that are taken up again: answers come from the journal, members from their states."""

import json

import numpy as np
import pytest
from apart import ApartExecutor

from ramify.errors import InputError, ModelError, RamifyError
from ramify.parallel import Checkpoints, SerialExecutor, ThreadExecutor, checkpointing, running_on
from ramify.parallel.checkpoints import save_state
from ramify.parallel.executor import LocalWorkerGroup, choose_executor

STEPS = 8


class Power:
    """A member of a crew that follows the power method on its rows of a matrix."""

    def __init__(self, matrix, rows):
        self.matrix, self.rows = matrix, rows
        self.v = np.ones(len(matrix)) / np.sqrt(len(matrix))
        self.calls = 0

    def state(self):
        return {"v": self.v, "calls": np.array(self.calls)}

    def restore(self, state):
        self.v, self.calls = state["v"], int(state["calls"])

    def norm(self, power):
        self.calls += 1
        self.mine = self.matrix[self.rows] @ self.v
        return float((np.abs(self.mine) ** power).sum())

    def several(self):
        return np.float32(0.1), np.int64(len(self.rows)), [np.float64(1) / 3]

    def give(self):
        return self.matrix[self.rows] @ self.v

    def take(self, v):
        self.v = v


def make(matrix, rows, frugality):
    assert frugality == 0
    return Power(matrix, rows)


MATRIX = np.random.default_rng(0).random((6, 6))
SHARES = [np.arange(0, 2), np.arange(2, 6)]


class StoppedError(Exception):
    pass


def together(parts):
    v = np.concatenate(parts)
    return v / np.linalg.norm(v)


def run(executor, until=STEPS, matrix=MATRIX, shares=SHARES):
    """Some steps; what is asked on the way, and the vectors and calls of all members at the end."""
    asked = []
    with executor.start_workers(make, executor.place(matrix), shares) as crew:
        for step in range(STEPS):
            if step == until:
                raise StoppedError
            asked.append(crew.ask("norm", 2))
            crew.exchange("give", together, "take")
            crew.keep()
        return asked, [(state["v"].tolist(), int(state["calls"])) for state in crew.fetch("state")], crew.ask("several")


@pytest.fixture(params=["serial", "threads", "apart"])
def executor(request):
    return {"serial": SerialExecutor(), "threads": ThreadExecutor(2), "apart": ApartExecutor(1, 1)}[request.param]


def kept(directory, resume=False):
    return checkpointing(Checkpoints(directory, resume=resume, share=0))


def one_sentence(error):
    assert isinstance(error.value, RamifyError)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("until", [0, 1, 5])
def test_work_that_is_taken_up_again_ends_as_if_it_had_not_been_interrupted(executor, until, tmp_path):
    whole = run(executor)
    with kept(tmp_path), pytest.raises(StoppedError):
        run(executor, until)
    with kept(tmp_path, resume=True):
        assert run(executor) == whole


def test_answers_that_are_known_cost_no_work(tmp_path):
    with kept(tmp_path), pytest.raises(StoppedError):
        run(SerialExecutor(), 5)
    calls = []

    class Watched(Power):
        def norm(self, power):
            calls.append(self.calls)
            return super().norm(power)

    with (
        kept(tmp_path, resume=True),
        SerialExecutor().start_workers(lambda *given: Watched(*given[:2]), MATRIX, SHARES) as crew,
    ):
        for _ in range(5):
            crew.ask("norm", 2)
            crew.exchange("give", together, "take")
        assert calls == []
        crew.ask("norm", 2)
        assert calls == [5, 5]  # members are as they were after five steps


def test_answers_are_the_same_to_the_last_bit_whether_they_are_recalled_or_not(executor, tmp_path):
    with kept(tmp_path):
        first = run(executor)
    with kept(tmp_path, resume=True):
        again = run(executor)
    assert repr(first) == repr(again) == repr(run(executor))
    assert first[2] == [[float(np.float32(0.1)), len(rows), [1 / 3]] for rows in SHARES]
    assert type(first[2][0][1]) is int


def test_only_the_last_states_are_kept(tmp_path):
    with kept(tmp_path):
        run(SerialExecutor())
    names = sorted(path.name for path in (tmp_path / "0000").iterdir())
    assert names == ["000016-0.safetensors", "000016-1.safetensors", "journal.json"]


def test_checkpoints_are_rare_where_writing_takes_long(tmp_path):
    with checkpointing(Checkpoints(tmp_path, share=1e9)):
        run(SerialExecutor())
    assert (tmp_path / "0000" / "000002-0.safetensors").exists()
    assert not list((tmp_path / "0000").glob("000004-*"))


def test_nothing_is_kept_where_nobody_asked_for_it(executor, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(executor)
    assert list(tmp_path.iterdir()) == []


def test_crews_go_where_they_are_sent_and_maps_stay_here():
    apart = ApartExecutor(3, 2)
    with running_on(apart):
        executor = choose_executor(2)
        assert executor.worker_threads == (3, 2)
        with executor.start_workers(make, executor.place(MATRIX), SHARES) as crew:
            assert type(crew).__name__ == "ApartWorkerGroup"
        shared = []
        list(executor.map(shared.append, range(4)))  # would be lost elsewhere
        assert sorted(shared) == [0, 1, 2, 3]
    assert choose_executor(2).worker_threads == (2,)


# ---- other work, and damage ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{"matrix": MATRIX + 1e-12}, {"shares": SHARES[::-1]}, {"shares": [np.arange(6)]}])
def test_checkpoints_of_other_work_are_refused(executor, change, tmp_path):
    with kept(tmp_path):
        run(executor)
    with kept(tmp_path, resume=True), pytest.raises(InputError, match="is of other documents") as error:
        run(executor, **change)
    one_sentence(error)


def damaged_by(tmp_path, **changes):
    with kept(tmp_path), pytest.raises(StoppedError):
        run(SerialExecutor(), 3)
    journal = tmp_path / "0000" / "journal.json"
    journal.write_text(json.dumps({**json.loads(journal.read_text()), **changes}))
    with kept(tmp_path, resume=True), pytest.raises(RamifyError) as error:
        run(SerialExecutor())
    one_sentence(error)
    return str(error.value)


HASH = "0" * 64


@pytest.mark.parametrize("states", [[["000006-0.safetensors", HASH]], [], [["000006-0.safetensors", HASH]] * 3])
def test_states_of_more_or_fewer_members_are_refused(states, tmp_path):
    assert f"states of {len(states)} members, not of 2" in damaged_by(tmp_path, states=states)


@pytest.mark.parametrize(
    "name",
    [
        "../0001/000006-0.safetensors",
        "/etc/passwd",
        ".hidden",
        "journal.json",
        "a\\b",
        "..",
        "",
        "000006-0.safetensors/",
        None,
        3,
    ],
)
def test_names_that_lead_elsewhere_are_refused(name, tmp_path):
    assert "names files that it does not consist of; do not trust it" in damaged_by(tmp_path, states=[[name, HASH]] * 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"answers": 3},
        {"answers": {"0": 1}},
        {"states": "000006-0.safetensors"},
        {"states": None},
        {"states": ["000006-0.safetensors"] * 2},
        {"ramify": None},
    ],
)
def test_journals_of_another_form_are_refused(changes, tmp_path):
    assert "is not a file that this Ramify writes" in damaged_by(tmp_path, **changes)


@pytest.mark.parametrize("answer", [None, [1.0, 2.0, 3.0], "ab", 7])
def test_answers_that_do_not_fit_are_refused(answer, tmp_path):
    told = damaged_by(tmp_path, answers=[["norm", answer], ["give, take", None]] * 3)
    assert "the checkpoint holds an answer that does not come from its members" in told


def test_an_answer_where_there_was_none_is_refused(tmp_path):
    told = damaged_by(tmp_path, answers=[["norm", [1.0, 2.0]], ["give, take", [1.0, 2.0]]] * 3)
    assert "the checkpoint holds an answer where there was none" in told


@pytest.mark.parametrize("asked", ["several", None, ["norm"]])
def test_answers_to_something_else_are_refused(asked, tmp_path):
    told = damaged_by(tmp_path, answers=[[asked, [1.0, 2.0]], ["give, take", None]] * 3)
    assert "the checkpoint holds an answer to something else than 'norm'" in told


@pytest.mark.parametrize("asked", ["take, give", "give", "norm"])
def test_exchanges_of_something_else_are_refused(asked, tmp_path):
    told = damaged_by(tmp_path, answers=[["norm", [1.0, 2.0]], [asked, None]] * 3)
    assert "the checkpoint holds an answer to something else than 'give, take'" in told


@pytest.mark.parametrize("answers", [[None] * 6, [[1.0]] * 6, ["ab"] * 6, [7] * 6])
def test_answers_without_what_was_asked_are_refused(answers, tmp_path):
    assert "the checkpoint holds an answer to something else" in damaged_by(tmp_path, answers=answers)


def test_journals_of_another_ramify_are_refused(tmp_path):
    told = damaged_by(tmp_path, ramify="0.0.1")
    assert "journal.json was written by Ramify 0.0.1, and this is " in told
    assert told.endswith("; go on with that one, or train without --resume to begin anew.")


@pytest.mark.parametrize("content", [b"", b"half a file", None])
def test_damaged_and_missing_states_are_refused(content, tmp_path):
    with kept(tmp_path):
        run(SerialExecutor())
    path = tmp_path / "0000" / "000016-1.safetensors"
    path.unlink() if content is None else path.write_bytes(content)
    with kept(tmp_path, resume=True), pytest.raises(ModelError, match=r"000016-1\.safetensors") as error:
        run(SerialExecutor())
    one_sentence(error)


def test_states_that_a_member_cannot_become_are_refused(tmp_path):
    with kept(tmp_path):
        run(SerialExecutor())
    place = tmp_path / "0000"
    changed = save_state(place / "000016-1.safetensors", {"w": MATRIX})
    journal = json.loads((place / "journal.json").read_text())
    journal["states"][1][1] = changed.sha256
    (place / "journal.json").write_text(json.dumps(journal))
    with kept(tmp_path, resume=True), pytest.raises(ModelError, match=r"lacks what belongs there \('v'\)") as error:
        run(SerialExecutor())
    one_sentence(error)


@pytest.mark.parametrize("sha256", [None, "", "0" * 64])
def test_states_that_were_changed_after_they_were_written_are_refused(executor, sha256, tmp_path):
    with kept(tmp_path):
        run(executor)
    journal = json.loads((tmp_path / "0000" / "journal.json").read_text())
    journal["states"][1][1] = sha256
    (tmp_path / "0000" / "journal.json").write_text(json.dumps(journal))
    with kept(tmp_path, resume=True), pytest.raises(ModelError, match=r"1\.safetensors was changed after it was") as error:
        run(executor)
    one_sentence(error)


def test_what_was_recalled_is_not_written_again(tmp_path):
    with kept(tmp_path), pytest.raises(StoppedError):
        run(SerialExecutor(), 3)
    before = (tmp_path / "0000" / "000006-0.safetensors").stat().st_ino
    with kept(tmp_path, resume=True), pytest.raises(StoppedError):
        run(SerialExecutor(), 3)
    assert (tmp_path / "0000" / "000006-0.safetensors").stat().st_ino == before


def test_a_run_that_was_interrupted_between_states_and_journal_goes_on_from_the_journal(tmp_path):
    whole = run(SerialExecutor())
    with kept(tmp_path), pytest.raises(StoppedError):
        run(SerialExecutor(), 4)
    place = tmp_path / "0000"
    for k in range(2):  # states of a later checkpoint that never came to count
        (place / f"000010-{k}.safetensors").write_bytes(b"later")
    (place / "000012-0.partial").write_bytes(b"half")
    checkpoints = Checkpoints(tmp_path, resume=True, share=0)
    with checkpointing(checkpoints):
        assert run(SerialExecutor()) == whole
        checkpoints.forget()
    assert not tmp_path.exists()


def test_members_are_let_go_at_the_end():
    with SerialExecutor().start_workers(make, MATRIX, SHARES) as crew:
        assert isinstance(crew, LocalWorkerGroup)
        assert len(crew.members) == 2
    assert list(crew.members) == []
