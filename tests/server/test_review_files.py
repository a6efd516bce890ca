"""Review files that are locked, damaged or cannot be written: no decision is lost in silence, and no traceback is shown."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from ramify.cli.main import main
from ramify.errors import InputError, RamifyError
from ramify.server.errors import ApiError
from ramify.server.reviews import ReviewStore, read_label_issues
from ramify.server.reviews import store as storing

HOLD = """
import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
base.execute("PRAGMA locking_mode = EXCLUSIVE")
base.execute("UPDATE documents SET is_done = is_done")
base.commit()
print("held", flush=True)
sys.stdin.read()
"""


def label(*path):
    return {"label": " > ".join(path), "path": list(path), "probabilities": [0.5] * len(path), "probability": 0.5}


def fill(store, n=100):
    numbers, _ = store.queue("m", [(f"text {i}", [label("a", "b")], [], 0.5, None) for i in range(n)], by="ann")
    for number in numbers:
        store.decide(number, "ben", "accept", ["a > b"])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files with 100 decisions: in the file itself; and half of them in the log, as a killed server leaves it."""
    folder = tmp_path_factory.mktemp("files")
    with closing(ReviewStore(folder / "sound.db")) as store:
        fill(store)
    with closing(ReviewStore(folder / "live.db")) as store:
        fill(store, 50)
        store._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store._base.execute("PRAGMA wal_autocheckpoint = 0")
        numbers, _ = store.queue("m", [(f"more {i}", [label("a", "b")], [], 0.5, None) for i in range(50)], by="ann")
        for number in numbers:
            store.decide(number, "ben", "accept", ["a > b"])
        for part in ("", "-wal"):
            shutil.copyfile(folder / f"live.db{part}", folder / f"left.db{part}")
    return folder


@pytest.fixture
def decided(files, tmp_path):
    """All decisions are in the file itself."""
    return shutil.copyfile(files / "sound.db", tmp_path / "r.db")


@pytest.fixture
def logged(files, tmp_path):
    """Half of the decisions are in the log only."""
    shutil.copyfile(files / "left.db-wal", tmp_path / "r.db-wal")
    return shutil.copyfile(files / "left.db", tmp_path / "r.db")


def without_shared_memory(path):
    """SQLite cannot make the file that it needs to read a log, as in a directory that is not writable, also not for root."""
    path.with_name("r.db-shm").symlink_to(path.parent / "nowhere" / "file")


def test_decisions_in_the_log_are_exported_where_nothing_can_be_written_beside_the_file(logged, capsys):
    path = logged
    without_shared_memory(path)
    before = path.read_bytes()
    assert main(["reviews", "export", str(path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 101
    assert path.read_bytes() == before
    assert main(["reviews", "summary", str(path)]) == 0
    assert "100 documents reviewed" in capsys.readouterr().out


def test_a_file_without_a_log_is_read_where_nothing_can_be_written_beside_it(decided, capsys):
    without_shared_memory(decided)
    assert main(["reviews", "export", str(decided)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 101


def test_a_log_that_cannot_be_read_is_no_reason_to_leave_it_out(logged, capsys):
    path = logged
    without_shared_memory(path)
    path.with_name("r.db-wal").unlink()
    path.with_name("r.db-wal").mkdir()
    assert main(["reviews", "export", str(path)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_file_that_changes_while_it_is_copied_is_not_exported(logged, capsys, monkeypatch):
    path = logged
    without_shared_memory(path)
    copy = shutil.copyfile

    def copy_and_change(original, target):
        copy(original, target)
        with open(f"{path}-wal", "ab") as log:
            log.write(b"more")

    monkeypatch.setattr(storing.shutil, "copyfile", copy_and_change)
    assert main(["reviews", "export", str(path)]) == 2
    assert "is being changed by another process" in capsys.readouterr().err


def test_a_file_that_another_process_holds_is_refused(decided, capsys, monkeypatch):
    monkeypatch.setattr(storing, "WAIT", 0.1)
    with subprocess.Popen([sys.executable, "-c", HOLD, decided], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        for command in (["export", str(decided)], ["summary", str(decided)]):
            assert main(["reviews", *command]) == 2
            assert "is locked by another process; stop that" in capsys.readouterr().err
        holder.stdin.close()
        holder.wait()
    assert main(["reviews", "export", str(decided)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 101


def test_the_temporary_copy_is_removed(logged):
    path = logged
    without_shared_memory(path)
    store = ReviewStore.reading(path)
    folder = store._scratch.name
    assert store.count("done") == 100
    store.close()
    assert not (storing.Path(folder)).exists()


CHANGES = {
    "a missing table": "DROP TABLE decisions",
    "no tables": "DROP TABLE decisions; DROP TABLE documents",
    "another column": "ALTER TABLE decisions RENAME COLUMN labels TO chosen",
    "a lost document": "DELETE FROM documents WHERE id = 3",
    "a document that is done without a decision": "DELETE FROM decisions WHERE document = 3",
    "labels that are no JSON": "UPDATE decisions SET labels = '[[[' WHERE id = 5",
    "labels that are no list": "UPDATE decisions SET labels = 'null' WHERE id = 5",
    "labels that are no texts": "UPDATE decisions SET labels = '[1]' WHERE id = 5",
    "a prediction without a label": "UPDATE documents SET labels = '[{}]' WHERE id = 5",
    "a prediction of another form": 'UPDATE documents SET labels = \'[{"lavel": "a"}]\' WHERE id = 5',
    "deep JSON": f"UPDATE documents SET others = '{'[' * 100_000}' WHERE id = 5",
    "another text": "UPDATE documents SET text = 'other' WHERE id = 5",
    "no text": "UPDATE documents SET text = x'ff' WHERE id = 5",
    "text that is not UTF-8": "UPDATE documents SET text = CAST(x'ff' AS TEXT) WHERE id = 5",
    "a model that is no text": "UPDATE documents SET model = x'ff' WHERE id = 5",
    "no confidence": "UPDATE documents SET confidence = 'high' WHERE id = 5",
    "an unknown action": "UPDATE decisions SET action = 'doubt' WHERE id = 5",
    "no time": "UPDATE decisions SET at = '' WHERE id = 5",
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_damaged_file_is_refused_in_one_sentence(name, decided, capsys):
    with closing(sqlite3.connect(decided)) as base:
        base.executescript(CHANGES[name])
    for command in ("export", "summary"):
        assert main(["reviews", command, str(decided)]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("\n") == 1
        assert len(said.err) < 500
        assert "is damaged" in said.err


def test_the_server_does_not_start_with_a_damaged_file(decided):
    with closing(sqlite3.connect(decided)) as base:
        base.executescript("DELETE FROM decisions WHERE document = 3")
    with pytest.raises(RamifyError, match="is damaged.*restore it from a copy"):
        ReviewStore(decided)


def test_damage_under_a_running_server_is_a_refusal(decided):
    with closing(ReviewStore(decided)) as store:
        with closing(sqlite3.connect(decided)) as base:
            base.executescript("UPDATE decisions SET labels = '[[['; DROP INDEX waiting")
        for work in (lambda: list(store.all()), lambda: store.page("done"), lambda: store.get(3)):
            with pytest.raises(ApiError, match="is damaged") as caught:
                work()
            assert (caught.value.status, caught.value.code, caught.value.retry_after) == (503, "reviews", None)
        with closing(sqlite3.connect(decided)) as base:
            base.executescript("DROP TABLE decisions")
        with pytest.raises(ApiError, match="is damaged"):
            store.decide(3, "ben", "accept", ["a > b"])


def test_random_damage_never_ends_in_a_traceback_or_in_another_export(decided, tmp_path, capsys):
    rng, sound = random.Random(5), decided.read_bytes()
    issues = tmp_path / "issues.jsonl"
    row = {"text": "x", "given": None, "proposed": [label("a", "b")], "place": "f", "labels": ["a"]}
    issues.write_text(json.dumps(row) + "\n")
    assert main(["reviews", "export", str(decided)]) == 0
    exported = capsys.readouterr().out
    for number in range(60):
        content = bytearray(sound)
        place = rng.randrange(len(content))
        if number % 3 == 0:
            content = content[:place]
        elif number % 3 == 1:
            content[place - place % 4096 :][:4096] = b""
            content[place : place + 500] = rng.randbytes(500)
        else:
            for _ in range(20):
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        for part in ("-wal", "-shm"):
            decided.with_name(f"r.db{part}").unlink(missing_ok=True)
        decided.write_bytes(content)
        code, said = main(["reviews", "export", str(decided)]), capsys.readouterr()
        assert code == 2 or said.out == exported
        assert main(["reviews", "summary", str(decided)]) in (0, 2)
        assert main(["reviews", "add", str(decided), str(issues), "--model", "m"]) in (0, 2)
        assert all(len(line) < 600 for line in capsys.readouterr().err.splitlines())


@pytest.mark.parametrize("name", ["ann\x1b[31m", "ann\nben", "ann\r", "\u202enna", "a\x9bnn", "a\tb"])
def test_names_of_reviewers_hold_no_control_characters(name):
    store = ReviewStore(":memory:")
    (number,), _ = store.queue("m", [("x", [label("a")], [], 0.5, None)], by="ann")
    with pytest.raises(InputError, match="control character"):
        store.decide(number, name, "accept", ["a"])
    assert store.get(number).decisions == []
    assert store.decide(number, "Zoë Müller-Ōe نسرین", "accept", ["a"]).decisions


def test_texts_that_cannot_be_stored_are_refused(decided, capsys):
    with closing(ReviewStore(decided)) as store, pytest.raises(InputError, match="half a character"):
        store.queue("m", [("\ud800", [label("a")], [], 0.5, None)], by="ann")
    assert main(["reviews", "export", str(decided), "--model", "\udcff"]) == 2
    assert "not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("text", ['"\\ud800"', '"x"' + " " * 3 + ', "more": NaN', '"x", "deep": ' + "[" * 100_000])
def test_label_issues_of_another_form_are_refused(text, tmp_path):
    path = tmp_path / "issues.jsonl"
    path.write_text(f'{{"text": {text}, "given": null, "proposed": [], "place": "f", "labels": []}}\n')
    with pytest.raises(RamifyError, match="line 1: not a label issue"):
        list(read_label_issues(path))
