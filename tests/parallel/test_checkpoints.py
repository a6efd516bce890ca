"""Results of blocks that are kept, and what is refused: other work, damaged files, foreign files."""

import json
import pickle
import time
from pathlib import Path

import numpy as np
import pytest
from apart import ApartExecutor

from ramify.errors import InputError, ModelError, RamifyError
from ramify.parallel import Checkpoints, Codec, SerialExecutor, ThreadExecutor, checkpointing, choose_executor
from ramify.parallel.checkpoints import SavingJob, read_state, write_state

EXECUTORS = {"serial": SerialExecutor(), "threads": ThreadExecutor(2), "apart": ApartExecutor()}
RAN = []  # blocks that were worked on
FAILING = set()  # blocks that fail


def multiply(placed, block):
    """The job of these tests."""
    RAN.append(block)
    if block in FAILING:
        raise InputError(f"block {block} failed")
    return placed * block


def other(placed, block):
    return placed * block


def to_arrays(result):
    return {"product": result}


def from_arrays(arrays):
    return arrays["product"]


CODEC = Codec(to_arrays, from_arrays)
BASE = np.arange(3.0)


@pytest.fixture(autouse=True)
def nothing_ran():
    RAN.clear()
    FAILING.clear()


@pytest.fixture(params=EXECUTORS)
def executor(request):
    return EXECUTORS[request.param]


def distribute(executor, directory, *, resume=False, placed=BASE, blocks=(1, 2, 3, 4), job=multiply):
    with checkpointing(Checkpoints(directory, resume=resume)):
        return [result.tolist() for result in executor.distribute(job, executor.place(placed), list(blocks), CODEC)]


PRODUCTS = [(BASE * block).tolist() for block in (1, 2, 3, 4)]


def one_sentence(error):
    """What users read: one line, of an error that they can put right."""
    assert isinstance(error.value, RamifyError)
    assert "\n" not in str(error.value)
    return str(error.value)


# ---- resuming -----------------------------------------------------------------------------------------------------------


def test_blocks_that_are_done_are_not_run_again(executor, tmp_path):
    FAILING.add(3)
    with pytest.raises(InputError, match="block 3 failed"):
        distribute(executor, tmp_path)
    done = {block for block in RAN if (tmp_path / "0000" / f"block-{block - 1}.safetensors").exists()}
    assert {1, 2} <= done <= {1, 2, 4}
    FAILING.clear()
    RAN.clear()
    assert distribute(executor, tmp_path, resume=True) == PRODUCTS
    assert set(RAN) == {1, 2, 3, 4} - done
    RAN.clear()
    assert distribute(executor, tmp_path, resume=True) == PRODUCTS
    assert RAN == []


def test_results_are_saved_before_earlier_blocks_are_done(tmp_path):
    """The first block waits until the file of the second is there."""
    second = tmp_path / "0000" / "block-1.safetensors"

    def wait_or_work(placed, block):
        for _ in range(10**4):
            if block == 2 or second.exists():
                return placed * block
            time.sleep(0.001)
        raise AssertionError("the second block was not kept in time")

    assert distribute(ThreadExecutor(2), tmp_path, blocks=(1, 2), job=wait_or_work) == PRODUCTS[:2]


def test_jobs_of_a_run_have_separate_directories(executor, tmp_path):
    def both(resume):
        with checkpointing(Checkpoints(tmp_path, resume=resume)):
            first = list(executor.distribute(multiply, executor.place(BASE), [1, 2], CODEC))
            second = list(executor.distribute(multiply, executor.place(-BASE), [1, 2], CODEC))
        return [result.tolist() for result in (*first, *second)]

    found = both(resume=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0000", "0001"]
    RAN.clear()
    assert both(resume=True) == found
    assert RAN == []


def test_directories_are_numbered_in_the_order_of_the_jobs(tmp_path):
    with checkpointing(Checkpoints(tmp_path)):
        first = SerialExecutor().distribute(multiply, BASE, [1], CODEC)
        second = SerialExecutor().distribute(multiply, -BASE, [2], CODEC)
        list(second), list(first)
    assert read_state(tmp_path / "0000" / "block-0.safetensors")["product"].tolist() == BASE.tolist()


@pytest.mark.parametrize("codec", [None, CODEC])
def test_nothing_is_saved_without_a_codec_or_without_checkpoints(executor, codec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with checkpointing(Checkpoints(tmp_path) if codec is None else None):
        found = list(executor.distribute(multiply, executor.place(BASE), [1, 2], codec))
    assert [result.tolist() for result in found] == PRODUCTS[:2]
    assert list(tmp_path.iterdir()) == []


def test_without_resuming_everything_is_run_anew(executor, tmp_path):
    distribute(executor, tmp_path)
    RAN.clear()
    assert distribute(executor, tmp_path) == PRODUCTS
    assert sorted(RAN) == [1, 2, 3, 4]


def test_saving_jobs_can_be_sent():
    sent = pickle.loads(pickle.dumps(SavingJob(multiply, CODEC)))
    assert (sent.job, sent.codec) == (multiply, CODEC)


def test_blocks_that_use_threads_of_their_own_run_one_after_the_other():
    under_way = []

    def job(_, block):
        under_way.append(block)
        assert under_way == [block]
        under_way.remove(block)
        return block

    assert list(ThreadExecutor(3).distribute(job, None, list(range(50)), threads=3)) == list(range(50))


def test_threads_are_stopped_when_nobody_wants_more_results():
    stopped = []
    results = ThreadExecutor(2).distribute(other, 1, [1, 2, 3], stop=lambda: stopped.append(True))
    next(results)
    results.close()
    assert stopped == [True]


# ---- other work ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"placed": BASE + 1},
        {"placed": BASE.astype(np.float32)},
        {"blocks": (1, 2, 3, 5)},
        {"blocks": (1, 2, 3)},
        {"job": other},
    ],
)
def test_checkpoints_of_other_work_are_refused_and_stay(executor, change, tmp_path):
    distribute(executor, tmp_path)
    with pytest.raises(InputError, match="is of other documents, labels or settings; give those") as error:
        distribute(executor, tmp_path, resume=True, **change)
    assert str(tmp_path) in one_sentence(error)
    RAN.clear()
    assert distribute(executor, tmp_path, resume=True) == PRODUCTS
    assert RAN == []


def test_there_must_be_something_to_resume(tmp_path):
    with pytest.raises(InputError, match=r"there is no checkpoint in .*none; train without --resume to begin") as error:
        Checkpoints(tmp_path / "none", resume=True)
    one_sentence(error)


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_places_that_cannot_be_written_to_are_refused(place, tmp_path):
    (tmp_path / "file").write_text("here")
    with pytest.raises(InputError, match=r"cannot save checkpoints in .*; choose another directory") as error:
        Checkpoints(tmp_path / place)
    one_sentence(error)


# ---- damage -------------------------------------------------------------------------------------------------------------

DAMAGED = [b"", b"{", b"[]", b"null", b"7", b'"x"', b"\xff\xfe", b"{}", b'{"format": 3}', b"[" * 100_000]


@pytest.mark.parametrize("content", [*DAMAGED, b'{"format": "ramify-checkpoint-0", "subject": "x"}'])
def test_damaged_journals_are_refused_in_one_sentence(content, tmp_path):
    distribute(SerialExecutor(), tmp_path)
    rounds = tmp_path / "0000" / "checkpoint.json"
    rounds.write_bytes(content)
    with pytest.raises(ModelError, match=r"checkpoint\.json is not a file that this Ramify writes; remove it") as error:
        distribute(SerialExecutor(), tmp_path, resume=True)
    one_sentence(error)


@pytest.mark.parametrize("content", DAMAGED)
def test_what_to_do_about_a_damaged_journal_helps(content, tmp_path):
    distribute(SerialExecutor(), tmp_path)
    rounds = tmp_path / "0000" / "checkpoint.json"
    rounds.write_bytes(content)
    with pytest.raises(ModelError, match="remove it"):
        distribute(SerialExecutor(), tmp_path)
    assert rounds.read_bytes() == content  # nobody knows whose it is
    rounds.unlink()
    assert distribute(SerialExecutor(), tmp_path) == PRODUCTS


@pytest.mark.parametrize("content", [*DAMAGED, b"\x08\x00\x00\x00\x00\x00\x00\x00{}      beyond"])
def test_damaged_states_are_refused_in_one_sentence(content, tmp_path):
    distribute(SerialExecutor(), tmp_path)
    (tmp_path / "0000" / "block-2.safetensors").write_bytes(content)
    with pytest.raises(ModelError, match=r"block-2\.safetensors is not a valid array file") as error:
        distribute(SerialExecutor(), tmp_path, resume=True)
    one_sentence(error)


def test_a_cut_state_is_refused(tmp_path):
    distribute(SerialExecutor(), tmp_path)
    path = tmp_path / "0000" / "block-2.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelError, match="is not a valid array file") as error:
        distribute(SerialExecutor(), tmp_path, resume=True)
    one_sentence(error)


def test_states_of_other_arrays_are_refused_in_one_sentence(tmp_path):
    distribute(SerialExecutor(), tmp_path)
    write_state(tmp_path / "0000" / "block-1.safetensors", {"sum": BASE})
    with pytest.raises(ModelError, match=r"block-1\.safetensors lacks what belongs there \('product'\)") as error:
        distribute(SerialExecutor(), tmp_path, resume=True)
    one_sentence(error)


def test_a_directory_in_the_place_of_a_state_is_refused(tmp_path):
    distribute(SerialExecutor(), tmp_path)
    path = tmp_path / "0000" / "block-1.safetensors"
    path.unlink()
    path.mkdir()
    with pytest.raises(ModelError, match="cannot read the checkpoint") as error:
        distribute(SerialExecutor(), tmp_path, resume=True)
    one_sentence(error)


def test_partial_files_count_for_nothing(tmp_path):
    """As a machine leaves them that dies while it writes."""
    FAILING.add(3)
    with pytest.raises(InputError):
        distribute(SerialExecutor(), tmp_path)
    place = tmp_path / "0000"
    partial = ["block-2.partial", "block-9.partial", "000012-0.partial", f".checkpoint.json.{'0' * 32}.partial"]
    for name in partial:
        (place / name).write_text("{")
    (tmp_path / f".workers.json.{'0' * 32}.partial").write_text("{")
    FAILING.clear()
    RAN.clear()
    assert distribute(SerialExecutor(), tmp_path, resume=True) == PRODUCTS
    assert RAN == [3, 4]
    assert not any((place / name).exists() for name in partial)
    assert [path.name for path in tmp_path.iterdir()] == ["0000"]


# ---- what others own ----------------------------------------------------------------------------------------------------


def snapshot(directory):
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


FOREIGN = {
    "notes.txt": "mine",
    "2024/report.csv": "a,b",
    "2024/block-1.safetensors": "mine, too",
    "0001/checkpoint.json": '{"dear": "diary"}',
    "0002/checkpoint.json": "not JSON",
    "12/checkpoint.json": '{"format": "ramify-checkpoint-1", "subject": "x"}',
}


def test_nothing_foreign_is_ever_removed(tmp_path):
    for name, text in FOREIGN.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = snapshot(tmp_path)
    checkpoints = Checkpoints(tmp_path)
    with checkpointing(checkpoints):
        list(SerialExecutor().distribute(multiply, BASE, [1, 2], CODEC))
    assert (tmp_path / "0000" / "block-1.safetensors").exists()
    checkpoints.remove()
    assert snapshot(tmp_path) == before
    assert not (tmp_path / "0000").exists()


def finished(place):
    """The checkpoints of a run that went on from there."""
    kept = Checkpoints(place, resume=True)
    kept.agreed_workers((1,))
    return kept


def test_foreign_files_beside_checkpoints_stay(tmp_path):
    distribute(SerialExecutor(), tmp_path)
    mine = ["notes.txt", "block-a.safetensors", "block-1.safetensors.bak", "download.partial"]
    for name in mine:
        (tmp_path / "0000" / name).write_text("mine")
    finished(tmp_path).remove()
    assert sorted(path.name for path in (tmp_path / "0000").iterdir()) == sorted(mine)
    with pytest.raises(
        InputError, match="0000 holds files that are not part of a checkpoint; choose another directory"
    ) as error:
        distribute(SerialExecutor(), tmp_path)
    one_sentence(error)


def test_links_are_not_followed_to_what_others_own(tmp_path):
    elsewhere, here = tmp_path / "elsewhere", tmp_path / "here"
    distribute(SerialExecutor(), elsewhere)
    here.mkdir()
    (here / "0000").symlink_to(elsewhere / "0000", target_is_directory=True)
    before = snapshot(elsewhere)
    Checkpoints(here).remove()
    assert snapshot(elsewhere) == before


@pytest.mark.parametrize("left", ["checkpoint.json", "000012-0.safetensors", "000012-0.partial", "block-3.partial"])
def test_what_a_run_left_is_forgotten_with_its_directory(left, tmp_path):
    place = tmp_path / "run"
    distribute(SerialExecutor(), place)
    with open(place / "0000" / left, "a"):
        pass
    finished(place).remove()
    assert not place.exists()


def test_checkpoints_of_an_earlier_format_are_given_up_without_complaint(tmp_path):
    distribute(SerialExecutor(), tmp_path)
    rounds = tmp_path / "0000" / "checkpoint.json"
    rounds.write_text(json.dumps({**json.loads(rounds.read_text()), "format": "ramify-checkpoint-0"}))
    RAN.clear()
    assert distribute(SerialExecutor(), tmp_path) == PRODUCTS
    assert RAN == [1, 2, 3, 4]


def test_a_directory_may_be_given_as_text(tmp_path):
    assert Checkpoints(str(tmp_path / "a" / "b")).directory == Path(tmp_path / "a" / "b")


def test_a_run_goes_on_with_as_many_workers_as_it_began_with(tmp_path):
    begun = Checkpoints(tmp_path / "kept")
    assert begun.agreed_workers((2, 1)) == (2, 1)
    assert Checkpoints(tmp_path / "kept", resume=True).agreed_workers((8,)) == (2, 1)
    with checkpointing(Checkpoints(tmp_path / "kept", resume=True)):
        assert choose_executor(1).worker_threads == (2, 1)
    begun.remove()
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    "content", ["", "[]", '{"format": "ramify-checkpoint-1", "worker_threads": [0]}', '{"worker_threads": [1]}']
)
def test_teams_that_no_run_wrote_are_refused_and_stay(tmp_path, content):
    (tmp_path / "workers.json").write_text(content)
    with pytest.raises(ModelError, match=r"workers.json is not a file that this Ramify writes"):
        Checkpoints(tmp_path, resume=True).agreed_workers((1,))
    assert (tmp_path / "workers.json").read_text() == content
