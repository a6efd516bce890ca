"""How much memory a piece of work needs at its height.

What is measured is the resident set of the whole process, so arrays of the C++ core count as those of Python do: its height
during the work, less what was resident just before. Freed memory that the allocator kept is given back first, or the next
piece of work would seem to need none. Linux resets and tells the height; where that is forbidden the resident set is looked at
every few milliseconds. Other platforms tell nothing that could be used.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

STATUS, STATM, CLEAR = Path("/proc/self/status"), Path("/proc/self/statm"), Path("/proc/self/clear_refs")
RESET_HEIGHT = "5"  # what Linux takes for: begin anew with the height of the resident set
EVERY = 0.005  # seconds between two looks
MEGABYTE = 1_000_000


@dataclass(slots=True)
class Height:
    """Megabytes above what was resident before; None until the work is done, and where nothing can be measured."""

    megabytes: float | None = None


@contextmanager
def watching_memory() -> Iterator[Height]:
    """Measure the memory that the work of this block needs at its height.

    >>> with watching_memory() as height:
    ...     work = bytearray(50_000_000)
    >>> height.megabytes is None or height.megabytes > 40
    True
    """
    height = Height()
    _give_back()
    if _reset_height():
        before = _from_status("VmRSS")
        yield height
        height.megabytes = _above(before, _from_status("VmHWM"))
    elif _resident() is not None:
        with _looking() as seen:
            yield height
        height.megabytes = _above(*seen)
    else:
        yield height


def _above(before: int | None, highest: int | None) -> float | None:
    return None if before is None or highest is None else max(0, highest - before) / MEGABYTE


def _give_back() -> None:
    """Free what nobody needs any more, and have the allocator return it."""
    gc.collect()
    with suppress(AttributeError, OSError, TypeError):  # not every allocator can
        ctypes.CDLL(None).malloc_trim(0)


def _reset_height() -> bool:
    try:
        CLEAR.write_text(RESET_HEIGHT)
        return _from_status("VmHWM") is not None
    except OSError:
        return False


def _from_status(field: str) -> int | None:
    try:
        found = re.search(rf"^{field}:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else 1024 * int(found[1])


def _resident() -> int | None:
    try:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


@contextmanager
def _looking() -> Iterator[list[int]]:
    """The resident set before the block, and the highest that was seen until its end."""
    before = _resident() or 0
    seen, done = [before, before], threading.Event()

    def look() -> None:
        while not done.wait(EVERY):
            seen[1] = max(seen[1], _resident() or 0)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()
        seen[1] = max(seen[1], _resident() or 0)
