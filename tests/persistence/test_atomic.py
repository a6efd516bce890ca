import os

import pytest

from ramify.errors import InputError
from ramify.persistence import atomic
from ramify.persistence.atomic import (
    atomic_writer,
    clear_leftovers,
    recover_directory,
    replace_directory,
    write_text_atomically,
)

DEAD = 2**22 + 1  # above the largest process number, so never running


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "out.txt"
    write_text_atomically(path, "old")
    write_text_atomically(path, "new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_an_error_while_writing_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_writer(path) as file:
        file.write("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    with pytest.raises(
        InputError, match="cannot write .*: No such file or directory; what was there before is untouched"
    ):
        write_text_atomically(tmp_path / "missing" / "out.txt", "x")


@pytest.mark.parametrize("swap", [True, False])
def test_a_directory_is_replaced_whole(tmp_path, monkeypatch, swap):
    if not swap:
        monkeypatch.setattr(atomic, "_exchange", lambda a, b: False)
    for version in ("1", "2", "3"):
        new = tmp_path / "new"
        new.mkdir()
        (new / "version").write_text(version)
        replace_directory(new, tmp_path / "model")
        assert (tmp_path / "model" / "version").read_text() == version
        assert os.listdir(tmp_path) == ["model"]


def test_leftovers_of_dead_processes_are_cleared_and_others_kept(tmp_path):
    ours, dead, foreign = (
        tmp_path / f".model.{os.getpid()}-00000000.partial",
        tmp_path / f".model.{DEAD}-00000000.partial",
        tmp_path / f".other.{DEAD}-00000000.partial",
    )
    for directory in (ours, dead, foreign):
        directory.mkdir()
    clear_leftovers(tmp_path / "model")
    assert ours.exists()
    assert foreign.exists()
    assert not dead.exists()


def test_a_directory_that_was_moved_aside_comes_back(tmp_path):
    aside = tmp_path / f".model.{DEAD}-00000000.replaced"
    aside.mkdir()
    (aside / "file").write_text("kept")
    recover_directory(tmp_path / "model")
    assert (tmp_path / "model" / "file").read_text() == "kept"
