"""Paths that people give: where they lead, whether two lead to the same place, and files whose end may never come."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from ramify.errors import InputError

CHUNK = 1 << 20  # bytes to read at a time


def resolved(path: Path) -> Path:
    """An absolute path without links; refuses links that lead in a circle."""
    try:
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            os.stat(path)
        return path.resolve()
    except (OSError, RuntimeError) as error:
        if isinstance(error, OSError) and error.errno != errno.ELOOP:
            raise
        raise InputError(f"the links of {path} lead in a circle; give another path.") from None


def lead_to_same(a: str | Path, b: str | Path) -> bool:
    """Whether two paths lead to the same file, be it by a link; also of files that do not exist yet."""
    try:
        return os.path.samefile(a, b)
    except OSError:
        return os.path.realpath(a) == os.path.realpath(b)


def is_at_or_below(path: Path, directory: Path) -> bool:
    """Whether a path leads to a directory or into it; neither has to exist."""
    place = resolved(path)
    return resolved(directory) in (place, *place.parents)


def is_special(path: Path) -> bool:
    """Whether something exists that is neither a file nor a directory, but a pipe or a device."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def read_at_most(path: Path, limit: int, *, only_regular: bool = False) -> bytes:
    """The content of a file; an OSError if it has more bytes than `limit`. The size of a device does not tell.

    only_regular: refuse pipes and devices, too, and wait for none.
    """
    with open(path, "rb", opener=_open_without_waiting if only_regular else None) as file:
        found = os.fstat(file.fileno())
        if only_regular and not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        parts, left = [], limit + 1 if found.st_size <= limit else 0
        while left > 0 and (part := file.read(min(left, CHUNK))):
            parts.append(part)
            left -= len(part)
    if left <= 0:
        raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes")
    return b"".join(parts)


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file; opening a pipe would wait for somebody who writes to it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
