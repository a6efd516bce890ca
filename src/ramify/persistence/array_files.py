"""Array files that go from place to place without going through memory: mapped ones, and ones that are made when written."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ramify.errors import ModelError
from ramify.persistence import atomic
from ramify.persistence.arrays import map_bytes, open_to_readers, wanted_mode, write_arrays

CHUNK = 1 << 24  # bytes that are copied at a time

Arrays = dict[str, NDArray[Any]]


class ArrayFile(Protocol):
    """Named arrays that can be put into a new file."""

    @property
    def sha256(self) -> str | None:
        """The hash that the new file must have; None where nobody knows it yet."""

    def put(self, target: Path) -> None:
        """Write them to a place where nothing is."""


@dataclass(frozen=True, slots=True, eq=False)
class ArraysToMake:
    """Arrays that exist only while they are written."""

    make: Callable[[], Arrays]
    sha256: str | None = None

    def put(self, target: Path) -> None:
        """Make the arrays, write them, and give them up."""
        write_arrays(target, self.make())


@dataclass(frozen=True, slots=True, eq=False)
class MappedFile:
    """An array file that is mapped into memory; what was mapped stays, whatever happens to its name.

    path: where it was. arrays: views of the map. data: all its bytes. place: device and number of the file.
    sha256: what its hash was when it was opened, where that was asked.
    """

    path: Path
    arrays: Arrays
    data: NDArray[np.uint8]
    place: tuple[int, int]
    sha256: str | None = None

    def put(self, target: Path) -> None:
        """Give the same bytes a second name; where that cannot be, copy them from the map to the disk."""
        if not self._link(target):
            self._copy(target)

    def _link(self, target: Path) -> bool:
        """Make a hard link, if under the old name there still is the file that was mapped."""
        try:
            os.link(self.path, target)
            found = os.lstat(target)
            if (found.st_dev, found.st_ino) == self.place:
                open_to_readers(target, found.st_mode)
                return True
        except OSError:  # another disk, no hard links there, somebody else's file, or it is gone
            pass
        with suppress(FileNotFoundError):
            target.unlink()
        return False

    def _copy(self, target: Path) -> None:
        with open(target, "xb") as file:
            for start in range(0, len(self.data), CHUNK):
                file.write(self.data[start : start + CHUNK])  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        target.chmod(wanted_mode(target))


def map_file(path: Path, file: IO[bytes], sha256: str | None = None) -> MappedFile:
    """Map an open array file after checking its header."""
    data, arrays = map_bytes(path, file)
    found = os.fstat(file.fileno())
    return MappedFile(path, arrays, data, (found.st_dev, found.st_ino), sha256)


def write_array_file(path: str | Path, arrays: Arrays) -> None:
    """Write an array file that stands alone: it is there whole or not at all."""
    path = Path(path)
    try:
        atomic.clear_leftovers(path)
        with atomic.claimed(path, Path.mkdir) as beside:
            write_arrays(beside / "arrays", arrays)
            os.replace(beside / "arrays", path)
        atomic.sync_directory(path.parent)
    except OSError as error:
        raise ModelError(f"cannot write {path}: {error.strerror}; what was there before is untouched.") from error
