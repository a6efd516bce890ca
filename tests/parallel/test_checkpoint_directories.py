"""Directories of checkpoints: whose they are, when an earlier run's are given up, and what cannot be read or written."""

import errno
import json
from pathlib import Path

import numpy as np
import pytest

from ramify.errors import InputError, ModelError
from ramify.parallel import Checkpoints, Codec, SerialExecutor, checkpointing
from ramify.parallel.checkpoints import CHECKPOINT, LOCK, write_state


def double(placed, block):
    return placed * block


CODEC = Codec(lambda result: {"a": result}, lambda arrays: arrays["a"])


def work(directory, resume=False):
    with checkpointing(Checkpoints(directory, resume=resume)):
        return list(SerialExecutor().distribute(double, np.ones(2), [1, 2], CODEC))


def files_of(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


# ---- an earlier run -----------------------------------------------------------------------------------------------------


def test_checkpoints_of_an_earlier_run_stay_until_there_is_something_new_to_save(tmp_path, notes):
    work(tmp_path)
    before = files_of(tmp_path)
    with pytest.raises(InputError, match="a typo"), checkpointing(Checkpoints(tmp_path)):
        raise InputError("a typo")
    assert files_of(tmp_path) == before
    assert notes == []
    work(tmp_path, resume=True)
    assert files_of(tmp_path) == before
    assert notes == [f"Resuming from the checkpoints in {tmp_path}."]


@pytest.mark.parametrize("begin", [lambda kept: kept.agreed_workers((1,)), lambda kept: kept.rounds("other work")])
def test_a_note_says_that_checkpoints_of_an_earlier_run_are_removed(begin, tmp_path, notes):
    work(tmp_path)
    kept = Checkpoints(tmp_path)
    with checkpointing(kept):
        begin(kept)
        begin(kept)
    assert notes == [f"Removed the checkpoints of an earlier run in {tmp_path}."]
    assert not list(tmp_path.rglob("block-*"))


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_what_a_killed_writer_of_arrays_left_is_removed(resume, has_checkpoint, tmp_path):
    work(tmp_path)
    (tmp_path / "0000" / ".tmpA1b2C3").write_bytes(b"half of the arrays")
    if not has_checkpoint:
        (tmp_path / "0000" / CHECKPOINT).unlink()
    work(tmp_path, resume)
    assert not list(tmp_path.rglob(".tmp*"))


class KilledError(Exception):
    """Instead of a signal."""


def remove_until_killed(kept, at, monkeypatch):
    unlink, calls = Path.unlink, []

    def until_killed(path, *given, **more):
        calls.append(path)
        if len(calls) > at:
            raise KilledError
        unlink(path, *given, **more)

    with monkeypatch.context() as killed, pytest.raises(KilledError):
        killed.setattr(Path, "unlink", until_killed)
        kept.remove()


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("at", range(4))
def test_no_result_is_taken_from_checkpoints_whose_removal_was_interrupted(at, resume, tmp_path, monkeypatch):
    kept = Checkpoints(tmp_path / "kept")
    kept.agreed_workers((1,))
    with checkpointing(kept):
        before = list(SerialExecutor().distribute(double, np.ones(2), [1, 2], CODEC))
    remove_until_killed(kept, at, monkeypatch)
    for block in (tmp_path / "kept").rglob("block-*"):
        write_state(block, {"a": np.full(2, np.nan)})  # as of other work
    again = Checkpoints(tmp_path / "kept", resume=resume)
    with checkpointing(again):
        found = list(SerialExecutor().distribute(double, np.ones(2), [1, 2], CODEC))
    assert np.array_equal(found, before)
    again.remove()
    assert list(tmp_path.iterdir()) == []


def test_there_is_no_note_if_there_is_nothing_to_remove(tmp_path, notes):
    (tmp_path / "mine").touch()
    work(tmp_path)
    assert notes == []


def test_a_run_that_saved_nothing_does_not_remove_what_another_left(tmp_path):
    work(tmp_path)
    before = files_of(tmp_path)
    kept = Checkpoints(tmp_path)
    with checkpointing(kept):
        kept.remove()
    assert files_of(tmp_path) == before


# ---- several runs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_run_on_the_same_directory_is_refused(resume, tmp_path):
    work(tmp_path)
    with checkpointing(Checkpoints(tmp_path, resume=True)):
        before = files_of(tmp_path)
        with pytest.raises(InputError, match=f"^another process is writing {tmp_path}; wait until it has finished, or choose"):
            work(tmp_path, resume)
        assert files_of(tmp_path) == before
    work(tmp_path, resume)
    assert not (tmp_path / LOCK).exists()


def test_a_run_that_was_killed_keeps_nobody_out(tmp_path):
    (tmp_path / LOCK).touch()
    kept = Checkpoints(tmp_path)
    with checkpointing(kept):
        kept.agreed_workers((1,))
        kept.remove()
    assert not tmp_path.exists()


# ---- what cannot be read or written -------------------------------------------------------------------------------------


def refuse(monkeypatch, name, at):
    """Have a method of paths refuse one of them, as a system does whose user has no right to it."""
    allowed = getattr(Path, name)

    def refused(path, *given, **named):
        if path == at:
            raise PermissionError(errno.EACCES, "Permission denied")
        return allowed(path, *given, **named)

    monkeypatch.setattr(Path, name, refused)


@pytest.mark.parametrize(
    ("name", "resume"), [("is_dir", True), ("mkdir", False), ("mkdir", True), ("iterdir", False), ("iterdir", True)]
)
def test_a_directory_that_cannot_be_read_is_refused_at_the_start(name, resume, tmp_path, monkeypatch):
    refuse(monkeypatch, name, tmp_path)
    with pytest.raises(
        InputError, match=f"^cannot save checkpoints in {tmp_path}: Permission denied; choose another directory.$"
    ):
        Checkpoints(tmp_path, resume=resume)


def test_a_directory_that_cannot_be_written_is_refused_at_the_start(tmp_path, monkeypatch):
    refuse(monkeypatch, "touch", tmp_path / LOCK)
    with (
        pytest.raises(InputError, match=f"^cannot write {tmp_path}: Permission denied.$"),
        checkpointing(Checkpoints(tmp_path)),
    ):
        pytest.fail("work began")


@pytest.mark.parametrize(("name", "at"), [("unlink", "0000/block-1.safetensors"), ("iterdir", "0000"), ("mkdir", "0000")])
def test_what_cannot_be_removed_is_reported_in_one_sentence(name, at, tmp_path, monkeypatch):
    work(tmp_path)
    refuse(monkeypatch, name, tmp_path / at)
    with pytest.raises(
        InputError, match=f"^cannot save checkpoints in {tmp_path}.*: Permission denied; choose another directory.$"
    ):
        work(tmp_path)


@pytest.mark.parametrize(("name", "at"), [("unlink", "0000/block-1.safetensors"), ("iterdir", "0000"), ("iterdir", ".")])
def test_what_cannot_be_removed_at_the_end_stays_without_complaint(name, at, tmp_path, monkeypatch):
    work(tmp_path)
    kept = Checkpoints(tmp_path, resume=True)
    refuse(monkeypatch, name, tmp_path / at)
    kept.remove()
    assert (tmp_path / "0000" / "block-1.safetensors").exists()


# ---- other versions -----------------------------------------------------------------------------------------------------


def test_workers_of_another_ramify_are_refused_on_resume_and_removed_otherwise(tmp_path):
    Checkpoints(tmp_path).agreed_workers((3,))
    path = tmp_path / "workers.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "ramify": "0.0.1"}))
    with pytest.raises(
        InputError, match=r"workers\.json was written by Ramify 0\.0\.1, and this is .*; resume with that version, or"
    ):
        Checkpoints(tmp_path, resume=True).agreed_workers((1,))
    assert Checkpoints(tmp_path).agreed_workers((1,)) == (1,)


@pytest.mark.parametrize(
    "change", [{"ramify": None}, {"format": "ramify-checkpoint-1"}, {"worker_threads": [0]}, {"worker_threads": []}]
)
def test_workers_of_another_form_are_refused(change, tmp_path):
    Checkpoints(tmp_path).agreed_workers((3,))
    path = tmp_path / "workers.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ModelError, match=r"workers\.json is not a file that this Ramify writes"):
        Checkpoints(tmp_path, resume=True).agreed_workers((1,))
