"""Files and directories that are there whole or not at all.

New content is written under a temporary name beside its place, flushed to the disk, and renamed into place. A process that is
killed in between leaves the old content, and a leftover that the next write to the same place clears away: whoever writes
holds a lock on the temporary name, so what can be locked belongs to nobody. Where there are no locks, leftovers stay.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import stat
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ramify.errors import InputError

try:
    import fcntl

    CAN_LOCK = True
except ImportError:  # no locks on this system: leftovers are then left alone
    CAN_LOCK = False

LEFTOVER = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{32}\.(?P<kind>partial|replaced)")
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL, errno.EBADF, errno.EIO)  # what file systems without say
RENAME_EXCHANGE = 2  # linux/fs.h: swap the two names in one step
AT_FDCWD = -100
MAX_NAME = 60


@contextmanager
def atomic_writer(path: str | Path) -> Iterator[IO[str]]:
    """Open a text file that takes the place of `path` only when the block ends without an error.

    A path that is no regular file, such as a pipe or a device, is written to as it is; a link keeps pointing where it did.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            with open(path, "w", encoding="utf-8", newline="") as file:
                yield file
        else:
            with _replacing(path.resolve()) as file:
                yield file
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; what was there before is untouched.") from error


def write_text_atomically(path: str | Path, text: str) -> None:
    """Replace the content of a file in one step."""
    with atomic_writer(path) as file:
        file.write(text)


def refuse_unwritable(path: str | Path) -> None:
    """Refuse a place where no file can be written; long work asks this before it starts."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a directory; give the name of a file.")
    if not path.resolve().parent.is_dir() or not os.access(path.resolve().parent, os.W_OK):
        raise InputError(f"cannot write {path}: its directory does not exist or is not writable.")


def name_beside(path: Path, kind: str) -> Path:
    """A new name in the same directory; of a long name only the beginning, so that it stays a name."""
    return path.parent / f".{path.name[:MAX_NAME]}.{uuid.uuid4().hex}.{kind}"


def leftovers_of(path: Path, kind: str) -> list[Path]:
    """What earlier writes to a path left beside it."""
    found = []
    with suppress(OSError):
        for entry in path.parent.iterdir():
            match = LEFTOVER.fullmatch(entry.name)
            if match and match["name"] == path.name[:MAX_NAME] and match["kind"] == kind:
                found.append(entry)
    return found


def clear_leftovers(path: Path) -> None:
    """Remove what writers that are gone left beside a path; a replaced directory only once another one stands in its place."""
    for entry in leftovers_of(path, "partial"):
        _remove_abandoned(entry)
    for entry in leftovers_of(path, "replaced"):
        if path.exists():
            remove(entry)


def remove(path: Path) -> None:
    """Remove a file or a whole directory, as far as that is possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


@contextmanager
def claimed(path: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """A new file or directory beside a path that nobody else takes for abandoned; gone when the block ends."""
    for _ in range(100):
        beside = name_beside(path, "partial")
        try:
            make(beside)
            held = lock(beside)
        except OSError:
            remove(beside)
            raise
        if held is not None:
            break
    else:
        raise OSError(errno.EBUSY, "others keep writing to the same place")
    try:
        yield beside
    finally:
        remove(beside)
        held.release()


@contextmanager
def scratch_directory(path: str | Path) -> Iterator[Path]:
    """A directory beside a path, gone when the block ends; what killed processes left of such is cleared away."""
    path = Path(path).absolute()
    with ExitStack() as held:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            clear_leftovers(path)
            beside = held.enter_context(claimed(path, Path.mkdir))
        except OSError as error:
            raise InputError(f"cannot write beside {path}: {error.strerror}; choose another place.") from error
        yield beside


@contextmanager
def exclusive_writer(path: Path, guard: Path | None = None) -> Iterator[None]:
    """Refuse to begin long work on a file while another process is at it; whoever is killed keeps nobody out.

    guard: a file that is locked meanwhile, and then removed; one beside the path where none is given.
    """
    guard = guard or path.with_name(f".{path.name[:MAX_NAME]}.lock")
    try:
        guard.touch()
        held = lock(guard)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}.") from None
    if held is None:
        raise InputError(f"another process is at work on {path}; wait until it has ended, or choose another place.")
    try:
        yield
    finally:
        remove(guard)
        held.release()


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock on a file or directory. is_real: whether it keeps others out, which it does not where there are no locks."""

    handle: int
    is_real: bool

    def release(self) -> None:
        """Let others have it."""
        os.close(self.handle)


def lock(path: Path) -> Lock | None:
    """A lock on a file or directory until it is released; None where another has it, or it is gone."""
    try:
        handle = _open_to_lock(path)
    except FileNotFoundError:
        return None
    try:
        is_real = _flock(handle)
        if os.path.samestat(os.stat(path), os.fstat(handle)):
            return Lock(handle, is_real)
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _open_to_lock(path: Path) -> int:
    """Open a file to write, as locks of NFS ask for; directories, and files that others own, to read."""
    how = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if stat.S_ISREG(os.lstat(path).st_mode):
        with suppress(PermissionError):
            return os.open(path, os.O_RDWR | how)
    return os.open(path, os.O_RDONLY | how)


def _flock(handle: int) -> bool:
    """Lock an open file; False on file systems that know no locks."""
    if not CAN_LOCK:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return False
    return True


def replace_directory(new: Path, path: Path) -> None:
    """Put a directory in the place of another, or of nothing.

    Where the system can swap two names, one of the two is there at every moment. Elsewhere the old one stands aside for a
    moment, under a name that :func:`leftovers_of` finds, and readers read it there.
    """
    for _ in range(100):
        try:
            if not path.exists():
                os.rename(new, path)
            elif _exchange(new, path):
                remove(new)
            else:
                _move_aside_and_in(new, path)
            break
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT) or not new.exists():
                raise  # otherwise another writer was quicker: look again
    else:
        raise OSError(errno.EBUSY, "others keep writing to the same place")
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory survive a loss of power."""
    with suppress(OSError):  # not every system can; the names are right all the same
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _replacing(path: Path) -> Iterator[IO[str]]:
    clear_leftovers(path)
    with claimed(path, Path.touch) as beside, open(beside, "w", encoding="utf-8", errors="replace", newline="") as file:
        if path.exists():
            beside.chmod(stat.S_IMODE(path.stat().st_mode))
        yield file
        file.flush()
        os.fsync(file.fileno())
        os.replace(beside, path)
        sync_directory(path.parent)


def _remove_abandoned(entry: Path) -> None:
    """Remove a leftover unless its writer still holds it, or nobody can tell."""
    with suppress(OSError):  # what cannot be opened or locked is left alone
        held = lock(entry)
        if held is not None:
            if held.is_real:
                remove(entry)
            held.release()


def _move_aside_and_in(new: Path, path: Path) -> None:
    aside = name_beside(path, "replaced")
    os.rename(path, aside)
    try:
        os.rename(new, path)
    except OSError:
        os.rename(aside, path)
        raise
    remove(aside)


def _exchange(a: Path, b: Path) -> bool:
    """Swap two names in one step; False where the system or the file system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    return bool(swap(AT_FDCWD, os.fsencode(a), AT_FDCWD, os.fsencode(b), RENAME_EXCHANGE) == 0)
