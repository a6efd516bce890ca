"""Atomic writes of files and directories.

New content is written to a temporary name in the same directory, flushed to disk, and renamed. A process that is killed in
between leaves the old content and a leftover, which the next write to the same path removes. A writer holds a lock on its
temporary file, so a leftover that can be locked is abandoned. On systems without locks, leftovers stay.
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
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import IO

from ramify.arguments import as_path
from ramify.errors import InputError
from ramify.persistence.paths import is_special, resolved

try:
    import fcntl

    CAN_LOCK = True
except ImportError:  # no locks on this system
    CAN_LOCK = False

LEFTOVER = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{32}\.(?P<kind>partial|replaced)")
# errors of file systems without locks
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL, errno.EBADF, errno.EIO)
# errors of systems and file systems that cannot swap two names
NO_SWAPS = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)
SAFE_OPEN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # follow no link, wait for no pipe
RENAME_EXCHANGE = 2  # linux/fs.h: swap two names atomically
AT_FDCWD = -100
MAX_NAME = 60
WAIT = 0.05  # seconds between two tries to get a lock


@contextmanager
def atomic_writer(path: str | Path, private: bool = False) -> Iterator[IO[str]]:
    """Open a text file that replaces `path` only when the block ends without an error.

    A pipe or a device is written directly; a link keeps its target. private: only its owner can read a new file.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            with open(path, "w", encoding="utf-8", newline="") as file:
                yield file
            return
        target = resolved(path)
        clear_leftovers(target)
        with temporary_beside(target, partial(Path.touch, mode=0o600 if private else 0o666)) as beside:
            with open(beside, "w", encoding="utf-8", errors="replace", newline="") as file:
                if target.exists():
                    beside.chmod(stat.S_IMODE(target.stat().st_mode))
                yield file
                file.flush()
                os.fsync(file.fileno())
            replace_file(beside, target)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; the old file is unchanged.") from error


def write_text_atomically(path: str | Path, text: str) -> None:
    """Replace the content of a file in one step."""
    with atomic_writer(path) as file:
        file.write(text)


def refuse_unwritable(path: str | Path) -> None:
    """Refuse a path where no file can be written; called before long work starts."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a directory; give the name of a file.")
    if is_special(path):
        return
    target = resolved(path)
    if not target.parent.is_dir():
        raise InputError(f"cannot write {path}: its directory does not exist.")
    try:
        try_beside(target)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; choose another place for it.") from None


def refuse_existing(path: str | Path, overwrite: bool) -> None:
    """Refuse to replace what is at a place, unless that is wanted; a device or a pipe is not replaced."""
    if not overwrite and (place := as_path(path, "path")).exists() and not is_special(place):
        raise InputError(f"{place} exists already; give overwrite=True to replace it, or another place.")


def try_beside(path: Path) -> None:
    """Make something beside a path, and remove it: permissions do not tell of every place where nothing can be written."""
    clear_leftovers(path)
    with temporary_beside(path, Path.mkdir):
        pass


def name_beside(path: Path, kind: str) -> Path:
    """A new name in the same directory; a long name is cut, so that it stays valid."""
    return path.parent / f".{path.name[:MAX_NAME]}.{uuid.uuid4().hex}.{kind}"


def leftovers_of(path: Path, kind: str) -> list[Path]:
    """Leftovers of earlier writes to a path."""
    found: list[Path] = []
    with suppress(OSError):
        found += [entry for entry in path.parent.iterdir() if is_leftover(entry.name, path.name, kind)]
    return found


def is_leftover(name: str, of: str, kind: str = "partial") -> bool:
    """Whether a name is that of a leftover of a write to another name in the same directory."""
    match = LEFTOVER.fullmatch(name)
    return match is not None and match["name"] == of[:MAX_NAME] and match["kind"] == kind


def clear_leftovers(path: Path) -> None:
    """Remove leftovers of dead writers; a replaced directory only if the path exists again."""
    for entry in leftovers_of(path, "partial"):
        with suppress(OSError):  # one that cannot be opened or locked stays
            held = lock(entry)
            if held is not None:
                if held.is_real:
                    remove(entry)
                held.release()
    for entry in leftovers_of(path, "replaced"):
        if path.exists():
            remove(entry)


def remove(path: Path) -> None:
    """Remove a file or a whole directory; errors are ignored."""
    with suppress(OSError):  # rmtree ignores errors except that of closing a directory
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def temporary_beside(path: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """A new, locked file or directory beside a path; removed when the block ends."""
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
        raise OSError(errno.EBUSY, "other processes keep writing to the same path")
    try:
        yield beside
    finally:
        remove(beside)
        held.release()


@contextmanager
def scratch_directory(path: str | Path) -> Iterator[Path]:
    """A temporary directory beside a path; also removes those that killed processes left."""
    path = Path(path).absolute()
    with ExitStack() as held:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            clear_leftovers(path)
            beside = held.enter_context(temporary_beside(path, Path.mkdir))
        except OSError as error:
            raise InputError(f"cannot write beside {path}: {error.strerror}; choose another path.") from error
        yield beside


@contextmanager
def exclusive_writer(path: Path, lock_file: Path | None = None, seconds: float = 0.0) -> Iterator[None]:
    """Keep other processes from working on a file or directory; a killed process releases its lock.

    lock_file: locked meanwhile, then removed (default: one beside the path). seconds: how long to wait for another process
    before it is an error; 0 to refuse at once.
    """
    lock_file = lock_file or path.with_name(f".{path.name[:MAX_NAME]}.lock")
    until = monotonic() + seconds
    try:
        while True:
            held = _lock_file(lock_file)
            if held is not None or monotonic() >= until:
                break
            sleep(WAIT)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}.") from None
    if held is None:
        raise InputError(f"another process is writing {path}; wait until it has finished, or choose another path.")
    try:
        yield
    finally:
        with suppress(OSError):  # somebody else may have removed it, and another process works with a new one
            if os.path.samestat(os.lstat(lock_file), os.fstat(held.handle)):
                lock_file.unlink()
        held.release()


def _lock_file(path: Path) -> Lock | None:
    """Create a lock file if there is none, and lock it; links are not followed, and nothing else is taken for one."""
    with suppress(FileExistsError):
        path.touch(exist_ok=False)
    with suppress(FileNotFoundError):  # another process has just released it
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise InputError(f"{path} is in the way: it should be a lock file, but is no regular file; remove it.")
    return lock(path)


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock on a file or directory. is_real: False on file systems without locks, where it excludes nobody."""

    handle: int
    is_real: bool

    def release(self) -> None:
        """Release the lock; nothing was written through its handle, so an error of closing it means nothing."""
        with suppress(OSError):
            os.close(self.handle)


def lock(path: Path) -> Lock | None:
    """Lock a file or directory; None if another process holds the lock, or the file is gone."""
    with suppress(BlockingIOError, FileNotFoundError), ExitStack() as opened:
        handle = None
        # locks on NFS require files open for writing; directories and files of other owners are opened for reading
        if stat.S_ISREG(os.lstat(path).st_mode):
            with suppress(PermissionError):
                handle = os.open(path, os.O_RDWR | SAFE_OPEN)
        if handle is None:
            handle = os.open(path, os.O_RDONLY | SAFE_OPEN)
        opened.callback(os.close, handle)
        is_real = CAN_LOCK
        try:
            if CAN_LOCK:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            is_real = False
        if os.path.samestat(os.stat(path), os.fstat(handle)):
            opened.pop_all()
            return Lock(handle, is_real)
    return None


def replace_file(new: Path, path: Path) -> None:
    """Replace a file, or create it, in one step."""
    found = os.lstat(new)
    try:
        os.replace(new, path)
    except OSError:
        if not _is_at(path, found):
            raise
    sync_directory(path.parent)


def replace_directory(new: Path, path: Path) -> None:
    """Replace a directory, or create it.

    Where the system can swap two names, the path exists at every moment. Elsewhere the old directory has another name for a
    moment, which :func:`leftovers_of` finds, and readers read it there.
    """
    found = os.lstat(new)
    for _ in range(100):
        aside = name_beside(path, "replaced")
        try:
            if not path.exists():
                os.rename(new, path)
            elif not _swap_names(new, path):
                _swap_in_two_steps(new, path, aside)
            break
        except OSError as error:
            if _is_at(path, found):
                break
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT) or not new.exists():
                raise  # otherwise another writer was faster: try again
    else:
        raise OSError(errno.EBUSY, "other processes keep writing to the same path")
    sync_directory(path.parent)
    # the old directory is removed only now, since a power failure may undo a rename before it reaches the disk
    remove(new)
    remove(aside)


def _swap_in_two_steps(new: Path, path: Path, aside: Path) -> None:
    """Move the old directory aside, and the new one to its path; if that fails, move the old one back."""
    os.rename(path, aside)
    try:
        os.rename(new, path)
    except OSError:
        os.rename(aside, path)
        raise


def _is_at(path: Path, found: os.stat_result) -> bool:
    """Whether what was found elsewhere is at the path now: NFS may report an error of a rename that was done."""
    try:
        return os.path.samestat(os.lstat(path), found)
    except OSError:
        return False


def sync_directory(path: Path) -> None:
    """Flush the names in a directory to disk."""
    with suppress(OSError):  # not every system can
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _swap_names(a: Path, b: Path) -> bool:
    """Swap two names atomically; False where the system or the file system cannot, which leaves them as they are."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    if swap(AT_FDCWD, os.fsencode(a), AT_FDCWD, os.fsencode(b), RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code not in NO_SWAPS:
        raise OSError(code, os.strerror(code))
    return False
