"""Commands that change the same file at the same time: every change that was acknowledged is there afterwards."""

import multiprocessing

import pytest

import ramify
from ramify import TextClassifier
from ramify.errors import InputError
from ramify.server.keys import KeyRing, add_key, read_keys, remove_key
from ramify.workflows import updating
from ramify.workflows.updating import UpdateOptions, update_model

WORKERS = 4
NAMES = [[f"name-{worker}-{n}" for n in range(6)] for worker in range(WORKERS)]


def _change_keys(path, names, start):
    start.wait()
    for name in names:
        add_key(path, name, "read")
        remove_key(path, f"old-{name}")


def in_processes(work, *arguments):
    """The same work at the same time in several processes, which start at one moment."""
    context = multiprocessing.get_context("forkserver")
    start = context.Barrier(WORKERS)
    started = [context.Process(target=work, args=(*each, start)) for each in zip(*arguments, strict=True)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0] * WORKERS


@pytest.mark.slow
def test_keys_that_are_added_and_removed_at_once_are_all_added_and_removed(tmp_path):
    path = tmp_path / "keys.json"
    removed = [add_key(path, f"old-{name}", "admin") for names in NAMES for name in names]
    in_processes(_change_keys, [path] * WORKERS, NAMES)
    assert {key.name for key in read_keys(path)} == {name for names in NAMES for name in names}
    ring = KeyRing(path)
    assert [ring.find(key) for key in removed] == [None] * len(removed)
    assert [entry.name for entry in tmp_path.iterdir()] == ["keys.json"]


def _update(model, table, start):
    start.wait()
    update_model(model, UpdateOptions(table))


@pytest.mark.slow
def test_updates_of_one_model_at_once_all_add_their_documents(tmp_path):
    TextClassifier("nb").fit(["fresh apple", "green tea"] * 3, ["food", "drink"] * 3).save(tmp_path / "model")
    tables = []
    for worker in range(WORKERS):
        tables.append(tmp_path / f"{worker}.csv")
        tables[-1].write_text("text,label\n" + f"word{worker} apple,food\n" * 5)
    in_processes(_update, [tmp_path / "model"] * WORKERS, tables)
    found = ramify.load(tmp_path / "model")
    assert found.figures_["documents"] == 6 + 5 * WORKERS
    assert {f"word{worker}" for worker in range(WORKERS)} <= set(found.vectorizer_.get_feature_names_out())


def test_a_model_that_is_replaced_during_an_update_is_kept(tmp_path, monkeypatch):
    TextClassifier("nb").fit(["fresh apple", "green tea"], ["food", "drink"]).save(tmp_path / "model")
    (tmp_path / "more.csv").write_text("text,label\nred apple,food\n")
    load = updating.load

    def replaced_meanwhile(path):
        found = load(path)
        TextClassifier("nb").fit(["other words", "and these"], ["x", "y"]).save(path)
        return found

    monkeypatch.setattr(updating, "load", replaced_meanwhile)
    with pytest.raises(InputError, match="was replaced while it was updated"):
        update_model(tmp_path / "model", UpdateOptions(tmp_path / "more.csv"))
    assert ramify.load(tmp_path / "model").taxonomy_.names == ("x", "y")


def test_who_waits_too_long_is_told(tmp_path, monkeypatch):
    from ramify.persistence import exclusive_writer
    from ramify.server import keys

    monkeypatch.setattr(keys, "LOCK_SECONDS", 0.1)
    with exclusive_writer(tmp_path / "keys.json"), pytest.raises(InputError, match="another process is writing"):
        add_key(tmp_path / "keys.json", "ann", "read")


def test_an_empty_key_file_that_a_full_disk_left_takes_a_key(tmp_path):
    (tmp_path / "keys.json").touch(mode=0o600)
    key = add_key(tmp_path / "keys.json", "ann", "read")
    assert KeyRing(tmp_path / "keys.json").find(key).name == "ann"
