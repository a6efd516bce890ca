"""Files and directories that are there whole or not at all.

New content is written under a temporary name beside its place, flushed to the disk, and renamed into place. A process
that is killed in between leaves the old content, and a leftover that the next write to the same place clears away.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ramify.errors import InputError

LEFTOVER = re.compile(r"\.(?P<name>.+)\.(?P<pid>\d+)-[0-9a-f]{8}\.(?:partial|replaced)")
RENAME_EXCHANGE = 2  # linux/fs.h: swap the two names in one step
AT_FDCWD = -100


@contextmanager
def atomic_writer(path: str | Path) -> Iterator[IO[str]]:
    """Open a text file that takes the place of `path` only when the block ends without an error."""
    path = Path(path)
    clear_leftovers(path)
    beside = name_beside(path, "partial")
    try:
        with open(beside, "w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; what was there before is untouched.") from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def write_text_atomically(path: str | Path, text: str) -> None:
    """Replace the content of a file in one step."""
    with atomic_writer(path) as file:
        file.write(text)


def name_beside(path: Path, kind: str) -> Path:
    """A new name in the same directory, which tells the process that made it."""
    return path.parent / f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.{kind}"


def clear_leftovers(path: Path) -> None:
    """Remove what processes that no longer run left beside a path."""
    with suppress(OSError):
        for entry in path.parent.iterdir():
            match = LEFTOVER.fullmatch(entry.name)
            if match and match["name"] == path.name and not _is_running(int(match["pid"])):
                remove(entry)


def remove(path: Path) -> None:
    """Remove a file or a whole directory, as far as that is possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def replace_directory(new: Path, path: Path) -> None:
    """Put a directory in the place of another (or of nothing); at every moment one of the two is there.

    Where the system cannot swap two names, the old one is moved aside first; :func:`recover_directory` brings it back
    should the process die in between.
    """
    if not path.exists():
        os.rename(new, path)
    elif _exchange(new, path):
        remove(new)
    else:
        aside = name_beside(path, "replaced")
        os.rename(path, aside)
        os.rename(new, path)
        remove(aside)
    sync_directory(path.parent)


def recover_directory(path: Path) -> None:
    """Bring back a directory that a dead process had moved aside and not yet replaced."""
    if path.exists() or not path.parent.is_dir():
        return
    for entry in path.parent.iterdir():
        match = LEFTOVER.fullmatch(entry.name)
        aside = match is not None and match["name"] == path.name and entry.name.endswith(".replaced")
        if match is not None and aside and not _is_running(int(match["pid"])):
            with suppress(OSError):
                os.rename(entry, path)
            return


def sync_directory(path: Path) -> None:
    """Make the names in a directory survive a loss of power."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exchange(a: Path, b: Path) -> bool:
    """Swap two names in one step; False where the system or the file system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    return bool(swap(AT_FDCWD, os.fsencode(a), AT_FDCWD, os.fsencode(b), RENAME_EXCHANGE) == 0)


def _is_running(pid: int) -> bool:
    if pid == os.getpid():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
