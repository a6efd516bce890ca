"""Files with the states of members and the results of blocks: there whole or not at all, and refused where they are damaged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ramify.errors import InputError, ModelError, RamifyError
from ramify.execution.contract import Arrays
from ramify.persistence.arrays import map_arrays, write_arrays
from ramify.persistence.atomic import remove

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class KeptState:
    """The state of a member in a file. sha256: the hash that the file had when it was written."""

    path: Path
    sha256: str


def keep_state(path: Path, arrays: Arrays) -> KeptState:
    """Write the state of a member."""
    write_state(path, arrays)
    try:
        with open(path, "rb") as file:
            return KeptState(path, _hash_of(file))
    except OSError as error:
        raise InputError(f"cannot read the checkpoint {path}: {error.strerror}; choose another place.") from None


def restore_kept(kept: KeptState, restore: Callable[[Arrays], None]) -> None:
    """Have a member become as it was; refuses a file that is not as it was written."""
    restore_from(kept.path, restore, kept.sha256)


def write_state(path: Path, arrays: Arrays) -> None:
    """Write named arrays whole or not at all."""
    beside = path.with_suffix(".partial")
    try:
        write_arrays(beside, arrays)
        beside.replace(path)
    except OSError as error:
        raise InputError(f"cannot write the checkpoint {path}: {error.strerror}; make room, or choose another place.") from None
    finally:
        remove(beside)


def read_state(path: Path, sha256: str | None = None) -> Arrays:
    """Read named arrays, as one's own. sha256: what the file's hash must be, where that is known."""
    try:
        with open(path, "rb") as file:
            if sha256 is not None and _hash_of(file) != sha256:
                raise ModelError(f"the checkpoint {path} was changed after it was written; train without --resume.")
            file.seek(0)
            return {name: array.copy() for name, array in map_arrays(path, file).items()}
    except OSError as error:
        raise ModelError(f"cannot read the checkpoint {path}: {error.strerror}; train without --resume.") from None


def restore_from(path: Path, make: Callable[[Arrays], Made], sha256: str | None = None) -> Made:
    """What is made of the arrays of a file; refuses those of which it cannot be made."""
    state = read_state(path, sha256)
    try:
        return make(state)
    except RamifyError:
        raise
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise ModelError(f"the checkpoint {path} lacks what belongs there ({error}); train without --resume.") from None


def take_array(state: Arrays, name: str, dtype: DTypeLike, *shape: int, may_be_infinite: bool = False) -> NDArray[Any]:
    """An array of a state, which has the type and shape that it must have, and nothing in it that is no number.

    Members that hand arrays to kernels take them so: these trust what they get, and a file may be damaged, or another's.
    """
    array = state[name]
    if array.dtype != dtype or array.shape != shape:
        raise strange(f"{name!r} of another type or size")
    if np.isnan(array).any() or not (may_be_infinite or np.isfinite(array).all()):
        raise strange(f"{name!r} beyond all numbers")
    return array


def strange(what: str) -> ModelError:
    """What is said of a checkpoint that this run cannot have written."""
    return ModelError(f"the checkpoint holds {what}; train without --resume to begin anew.")


def _hash_of(file: IO[bytes]) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
