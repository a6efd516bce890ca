import errno
import os
import threading
from contextlib import contextmanager

import pytest

from ramify.errors import InputError
from ramify.persistence import atomic
from ramify.persistence.atomic import (
    atomic_writer,
    clear_leftovers,
    exclusive_writer,
    leftovers_of,
    lock,
    refuse_unwritable,
    replace_directory,
    write_text_atomically,
)


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
    with pytest.raises(InputError, match="cannot write .*: No such file or directory; the old file is unchanged"):
        write_text_atomically(tmp_path / "missing" / "out.txt", "x")


@pytest.mark.parametrize("swap", [True, False])
def test_a_directory_is_replaced_whole(tmp_path, monkeypatch, swap):
    if not swap:
        monkeypatch.setattr(atomic, "_swap_names", lambda a, b: False)
    for version in ("1", "2", "3"):
        new = tmp_path / "new"
        new.mkdir()
        (new / "version").write_text(version)
        replace_directory(new, tmp_path / "model")
        assert (tmp_path / "model" / "version").read_text() == version
        assert os.listdir(tmp_path) == ["model"]


def test_what_nobody_holds_any_more_is_cleared_and_the_rest_is_kept(tmp_path):
    held, abandoned, foreign = (
        tmp_path / f".{name}.{k * 32}.partial" for name, k in (("model", "a"), ("model", "b"), ("other", "c"))
    )
    for directory in (held, abandoned, foreign):
        directory.mkdir()
    mine = lock(held)
    clear_leftovers(tmp_path / "model")
    mine.release()
    assert held.exists()
    assert foreign.exists()
    assert not abandoned.exists()


def test_a_directory_that_stands_aside_is_cleared_only_once_another_is_in_its_place(tmp_path):
    aside = tmp_path / f".model.{'a' * 32}.replaced"
    aside.mkdir()
    clear_leftovers(tmp_path / "model")
    assert leftovers_of(tmp_path / "model", "replaced") == [aside]
    (tmp_path / "model").mkdir()
    clear_leftovers(tmp_path / "model")
    assert not aside.exists()


def test_a_move_that_fails_puts_the_old_directory_back(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "_swap_names", lambda a, b: False)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "file").write_text("kept")
    (tmp_path / "new").mkdir()
    rename = os.rename

    def failing(a, b):
        if str(a).endswith("new"):
            raise OSError(5, "broken")
        rename(a, b)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(OSError, match="broken"):
        replace_directory(tmp_path / "new", tmp_path / "model")
    assert (tmp_path / "model" / "file").read_text() == "kept"


def test_pipes_links_and_modes_are_respected(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "real.txt").chmod(0o600)
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_text_atomically(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    assert (tmp_path / "real.txt").stat().st_mode & 0o777 == 0o600
    os.mkfifo(tmp_path / "pipe")
    heard = []
    reader = threading.Thread(target=lambda: heard.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_text_atomically(tmp_path / "pipe", "through")
    reader.join(10)
    assert heard == ["through"]
    assert (tmp_path / "pipe").is_fifo()


def test_a_place_that_cannot_hold_a_file_is_refused_beforehand(tmp_path):
    for place in (tmp_path, tmp_path / "none" / "file"):
        with pytest.raises(InputError, match="cannot write"):
            refuse_unwritable(place)
    refuse_unwritable(tmp_path / "file")


def test_leftovers_that_cannot_be_opened_are_left_alone(tmp_path):
    os.mkfifo(tmp_path / f".out.{'a' * 32}.partial")
    (tmp_path / f".out.{'b' * 32}.partial").symlink_to(tmp_path / f".out.{'b' * 32}.partial")
    write_text_atomically(tmp_path / "out", "written")
    assert (tmp_path / "out").read_text() == "written"


@pytest.fixture(
    params=[errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL, errno.EBADF, errno.EIO], ids=errno.errorcode.get
)
def no_locks(request, monkeypatch):
    def unable(handle, how):
        raise OSError(request.param, "no locks available")

    monkeypatch.setattr(atomic.fcntl, "flock", unable)


@pytest.mark.usefixtures("no_locks")
def test_file_systems_without_locks_will_do(tmp_path):
    write_text_atomically(tmp_path / "out", "written")
    assert os.listdir(tmp_path) == ["out"]
    with exclusive_writer(tmp_path / "out"):
        pass


@pytest.mark.usefixtures("no_locks")
def test_without_locks_nothing_is_taken_for_abandoned(tmp_path):
    with atomic_writer(tmp_path / "out") as file:
        file.write("first")
        write_text_atomically(tmp_path / "out", "second")  # as another process does meanwhile
    assert (tmp_path / "out").read_text() == "first"
    held = lock(tmp_path / "out")
    assert not held.is_real
    held.release()


def test_files_are_locked_by_handles_that_can_write(tmp_path, monkeypatch):
    """Others are refused by NFS."""
    flock = atomic.fcntl.flock

    def as_nfs(handle, how):
        if atomic.fcntl.fcntl(handle, atomic.fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "bad file descriptor")
        flock(handle, how)

    monkeypatch.setattr(atomic.fcntl, "flock", as_nfs)
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    held = [lock(tmp_path / name) for name in ("file", "directory")]
    assert [each.is_real for each in held] == [True, False]
    assert lock(tmp_path / "file") is None
    for each in held:
        each.release()


def test_a_leftover_that_may_only_be_read_is_cleared(tmp_path, monkeypatch):
    leftover = tmp_path / f".out.{'a' * 32}.partial"
    leftover.touch(0o444)
    really_open = os.open

    def refusing(path, how, *more):
        if path == leftover and how & os.O_ACCMODE != os.O_RDONLY:
            raise PermissionError(errno.EACCES, "permission denied")
        return really_open(path, how, *more)

    monkeypatch.setattr(os, "open", refusing)
    clear_leftovers(tmp_path / "out")
    assert not leftover.exists()


def test_a_lock_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def broken(handle, how):
        raise OSError(errno.ENOMEM, "broken")

    monkeypatch.setattr(atomic.fcntl, "flock", broken)
    with pytest.raises(InputError, match="broken"):
        write_text_atomically(tmp_path / "out", "written")
    assert os.listdir(tmp_path) == []


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    write_text_atomically(tmp_path / ("n" * 250), "written")
    assert os.listdir(tmp_path) == ["n" * 250]


# ---- calls that fail ----------------------------------------------------------------------------------------------------


def two_directories(folder):
    for name in ("new", "model"):
        (folder / name).mkdir()
        (folder / name / "version").write_text(name)
    return folder / "new", folder / "model"


@pytest.mark.parametrize("swap", [True, False])
def test_the_old_directory_is_removed_only_after_the_new_name_is_on_disk(tmp_path, monkeypatch, swap):
    new, path = two_directories(tmp_path)
    if not swap:
        monkeypatch.setattr(atomic, "_swap_names", lambda a, b: False)
    synced = []
    monkeypatch.setattr(atomic, "sync_directory", lambda folder: synced.append(sorted(folder.rglob("version"))))
    replace_directory(new, path)
    assert [len(found) for found in synced] == [2]
    assert list(tmp_path.rglob("version")) == [path / "version"]


@pytest.mark.parametrize(("code", "falls_back"), [(errno.EINVAL, True), (errno.ENOSYS, True), (errno.EIO, False)])
def test_names_are_swapped_in_two_steps_only_where_the_system_cannot_swap_them(tmp_path, monkeypatch, code, falls_back):
    new, path = two_directories(tmp_path)

    class Library:
        def renameat2(self, *_):
            atomic.ctypes.set_errno(code)
            return -1

    monkeypatch.setattr(atomic.sys, "platform", "linux")
    monkeypatch.setattr(atomic.ctypes, "CDLL", lambda *_, **__: Library())
    if falls_back:
        replace_directory(new, path)
        assert (path / "version").read_text() == "new"
    else:
        with pytest.raises(OSError) as error:
            replace_directory(new, path)
        assert error.value.errno == code
        assert (path / "version").read_text() == "model"


def reporting_errors(call):
    """A call that is done, and reports an error all the same."""

    def done(*given):
        call(*given)
        raise OSError(errno.EIO, "the answer was lost")

    return done


@pytest.mark.parametrize("there", [True, False])
def test_a_rename_of_a_directory_that_is_done_counts_even_if_it_reports_an_error(tmp_path, monkeypatch, there):
    new, path = two_directories(tmp_path)
    if there:
        swap = atomic._swap_names
        monkeypatch.setattr(atomic, "_swap_names", reporting_errors(swap))
    else:
        atomic.remove(path)
        monkeypatch.setattr(os, "rename", reporting_errors(os.rename))
    replace_directory(new, path)
    assert list(tmp_path.rglob("version")) == [path / "version"]
    assert (path / "version").read_text() == "new"


def test_a_rename_of_a_file_that_is_done_counts_even_if_it_reports_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "replace", reporting_errors(os.replace))
    write_text_atomically(tmp_path / "out", "new")
    assert (tmp_path / "out").read_text() == "new"


def test_a_file_that_cannot_be_closed_does_not_replace_the_old_one(tmp_path, monkeypatch):
    @contextmanager
    def broken(*given, **more):
        with open(*given, **more) as file:
            yield file
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(atomic, "open", broken, raising=False)
    (tmp_path / "out").write_text("old")
    with pytest.raises(InputError, match="broken; the old file is unchanged"):
        write_text_atomically(tmp_path / "out", "new")
    assert (tmp_path / "out").read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]


def test_an_error_of_releasing_a_lock_or_of_removing_leftovers_is_no_failure(tmp_path, monkeypatch):
    new, path = two_directories(tmp_path)
    held = lock(path)
    with monkeypatch.context() as failing:
        failing.setattr(os, "close", reporting_errors(os.close))
        held.release()
        replace_directory(new, path)
    assert (path / "version").read_text() == "new"


@pytest.mark.parametrize("kind", ["link", "dangling link", "directory", "pipe"])
def test_what_is_in_the_place_of_a_lock_file_is_left_alone(tmp_path, kind):
    (tmp_path / "victim").write_text("precious")
    place = tmp_path / ".out.lock"
    if kind == "directory":
        place.mkdir()
        (place / "file").write_text("precious")
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(tmp_path / ("victim" if kind == "link" else "none"))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="is in the way: it should be a lock file"), exclusive_writer(tmp_path / "out"):
        pytest.fail("it was locked")
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_link_to_itself_is_refused_as_an_output(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    for place in (tmp_path / "loop", tmp_path / "loop" / "file"):
        for write in (refuse_unwritable, lambda path: write_text_atomically(path, "x")):
            with pytest.raises(InputError, match=f"the links of {place} lead in a circle; give another path."):
                write(place)
    assert (tmp_path / "loop").is_symlink()


def test_a_writer_removes_its_own_lock_file_and_no_other(tmp_path):
    lock_file = tmp_path / ".out.lock"
    with exclusive_writer(tmp_path / "out"):
        lock_file.unlink()  # by somebody who took it for a leftover
        lock_file.write_text("of another process")
    assert lock_file.read_text() == "of another process"
    lock_file.unlink()
    with exclusive_writer(tmp_path / "out"):
        lock_file.unlink()
        lock_file.mkdir()
        (lock_file / "precious").touch()
    assert (lock_file / "precious").exists()
