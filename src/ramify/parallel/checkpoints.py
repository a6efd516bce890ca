"""Checkpoints: the last saved round of each worker group, and the results of finished blocks.

A run does the same work in the same order whenever it gets the same data. So a resumed run starts from the beginning, takes
the results of finished blocks from their files, and lets every worker group continue from its last saved round: the
workers' states and what the driver needs to go on. The results are the same to the last bit. Each worker group and each
distributed job has a directory of its own, numbered in the order of the run:

    workers.json                 how many threads each worker has
    0000/checkpoint.json         the fingerprint of the work; of a worker group also the driver's values and the workers' files
    0000/000012-0.safetensors    the state of worker 0 in the 12th saved round
    0001/block-3.safetensors     the result of block 3

JSON files name the version of Ramify that wrote them, since another version may work in another order. Every file is written
whole or not at all, and refused if it is damaged. Before the files of a directory are removed, checkpoint.json becomes
removed.json: a run that resumes after that was interrupted takes none of the others.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ramify.errors import InputError, ModelError, RamifyError
from ramify.parallel.progress import note
from ramify.parallel.values import digest_of
from ramify.persistence import exclusive_writer, write_text_atomically
from ramify.persistence.arrays import Arrays, map_arrays, write_arrays
from ramify.persistence.atomic import clear_leftovers, remove

Block = TypeVar("Block")
Result = TypeVar("Result")

CHECKPOINT, REMOVED, WORKERS, LOCK = "checkpoint.json", "removed.json", "workers.json", ".ramify-checkpoints.lock"
MOST_THREADS = 4096
WORK_PER_SAVE = 20  # how many times longer than writing a checkpoint the work goes on before the next
FAMILY = "ramify-checkpoint-"
FORMAT = f"{FAMILY}3"
PLACE = re.compile(r"\d{4,}")
STATE = re.compile(r"\d{6,}-\d+\.safetensors")  # of a worker
# written under another name first: the safetensors library has names of its own
PARTIAL = re.compile(r"(\d{6,}-|block-)\d+\.partial|\.tmp[0-9A-Za-z]{6}|\.checkpoint\.json\.[0-9a-f]{32}\.partial")
FILE = re.compile(rf"(\d{{6,}}-|block-)\d+\.safetensors|checkpoint\.json|removed\.json|{PARTIAL.pattern}")


@dataclass(frozen=True, slots=True)
class Codec:
    """How the result of a block is turned into named arrays and back; functions of a module, since blocks save themselves."""

    to_arrays: Callable[[Any], Arrays]
    from_arrays: Callable[[Arrays], Any]


@dataclass(slots=True)
class Checkpoints:
    """The checkpoints of one run, in a directory that all nodes can reach.

    resume: continue from the directory; otherwise, its checkpoints are removed as soon as there is something to save.
    work_per_save: how many times longer than writing a checkpoint the work goes on before the next.
    """

    directory: Path
    resume: bool = False
    work_per_save: float = WORK_PER_SAVE
    _count: int = field(default=0, init=False)
    has_begun: bool = field(default=False, init=False)  # whether the run has used the directory
    _is_new: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.directory = Path(self.directory)
        with _one_sentence(self.directory):
            if self.resume and not self.directory.is_dir():
                raise InputError(f"there is no checkpoint in {self.directory}; train without --resume to begin.")
            self._is_new = not self.directory.exists()
            self.directory.mkdir(parents=True, exist_ok=True)
            list(self.directory.iterdir())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out; at the end, an empty directory that this run created is removed."""
        try:
            with exclusive_writer(self.directory, self.directory / LOCK):
                yield
        finally:
            if self._is_new:
                with suppress(OSError):  # it is not empty
                    self.directory.rmdir()

    def agreed_workers(self, worker_threads: tuple[int, ...]) -> tuple[int, ...]:
        """The threads of the workers with which the run began: it goes on with as many, whatever nodes there are now."""
        self._begin()
        path = self.directory / WORKERS
        with _one_sentence(self.directory):
            if not path.exists():
                _write(path, {"worker_threads": worker_threads})
        agreed = _read(path).get("worker_threads")
        if not isinstance(agreed, list) or not agreed or not all(type(n) is int and 1 <= n <= MOST_THREADS for n in agreed):
            raise _damaged(path)
        return tuple(agreed)

    def remove(self) -> None:
        """Remove the checkpoints of this run, and the directory if nothing else is in it."""
        self._is_new = self._is_new or self.has_begun
        if self.has_begun:  # otherwise they belong to another run
            with suppress(OSError):
                self._clear()
                self.directory.rmdir()  # fails while it is locked
        elif self.resume:
            note(f"Nothing was resumed from {self.directory}, and it stays as it is: this system saves no checkpoints.")

    def rounds(self, *subject: Any) -> RoundCheckpoint:
        """The last saved round of the next worker group of the run. subject: what it works on."""
        directory, found = self._next(*subject)
        number, driver, states = found.get("number", 0), found.get("driver"), found.get("states", [])
        is_valid = type(number) is int and isinstance(driver, dict | None) and isinstance(states, list)
        if not is_valid or not all(isinstance(entry, list) and len(entry) == 2 for entry in states):
            raise _damaged(directory / CHECKPOINT)
        if not all(isinstance(name, str) and STATE.fullmatch(name) for name, _ in states):
            raise ModelError("the checkpoint names files that are not part of it; do not trust it.")
        saved = [SavedState(directory / name, str(sha256)) for name, sha256 in states]
        return RoundCheckpoint(directory, found["subject"], self.work_per_save, number, driver, saved)

    def results(
        self, job: Callable[[Any, Block], Result], placed: Any, blocks: Sequence[Block],
        run: Callable[[Callable[[Any, Any], Result], Any, list[Any]], Iterator[Result]], codec: Codec,
    ) -> Iterator[Result]:  # fmt: skip
        """The results of all blocks in order: saved ones, and those of the other blocks, which save themselves.

        run: runs a job on the placed value and some blocks.
        """
        place, _ = self._next(job.__qualname__, placed, list(blocks))
        paths = [place / f"block-{k}.safetensors" for k in range(len(blocks))]
        with _one_sentence(place):
            is_saved = [path.exists() for path in paths]
        missing = [(path, block) for path, block, saved in zip(paths, blocks, is_saved, strict=True) if not saved]
        fresh = run(SavingJob(job, codec), placed, missing)
        pairs = zip(paths, is_saved, strict=True)
        return (restore_from(path, codec.from_arrays) if saved else next(fresh) for path, saved in pairs)

    def _begin(self) -> None:
        """Remove what an earlier run left, unless this one resumes it; called before anything is saved."""
        if self.has_begun:
            return
        self.has_begun = True
        with _one_sentence(self.directory):
            clear_leftovers(self.directory / WORKERS)
            if not self.resume and self._clear():
                note(f"Removed the checkpoints of an earlier run in {self.directory}.")
            if self.resume:
                note(f"Resuming from the checkpoints in {self.directory}.")

    def _clear(self) -> bool:
        """Remove the checkpoints of any run; gives whether there were any. Files that belong to others stay."""
        found = [self.directory / WORKERS] if _is_ours(self.directory / WORKERS) else []
        places = [place for place in sorted(self.directory.iterdir()) if _is_place(place)]
        for place in places:
            if _is_ours(place / CHECKPOINT):
                (place / CHECKPOINT).replace(place / REMOVED)
        for place in places:
            # removed.json goes last: it identifies the directory
            files = sorted(place.iterdir(), key=lambda path: path.name == REMOVED)
            found += [path for path in files if FILE.fullmatch(path.name)]
        for path in found:
            path.unlink(missing_ok=True)
        for place in places:
            with suppress(OSError):  # it is not empty
                place.rmdir()
        return bool(found)

    def _next(self, *subject: Any) -> tuple[Path, dict[str, Any]]:
        """The next directory of the run, and the content of its checkpoint.json, which is created if there is none."""
        self._begin()
        place, digest = self.directory / f"{self._count:04d}", digest_of(*subject)
        self._count += 1
        with _one_sentence(place):
            place.mkdir(parents=True, exist_ok=True)
            names = [path.name for path in place.iterdir()]
            if CHECKPOINT not in names:
                if not all(FILE.fullmatch(name) for name in names):
                    raise InputError(f"{place} holds files that are not part of a checkpoint; choose another directory.")
                for name in names:  # nobody knows which work they belong to
                    (place / name).unlink(missing_ok=True)
                names = []
                _write(place / CHECKPOINT, {"subject": digest})
            found = _read(place / CHECKPOINT)
            if found.get("subject") != digest:
                found_other = f"the checkpoint in {self.directory} is of other documents, labels or settings"
                advice = "give those that it was begun with, or train without --resume to begin anew"
                raise InputError(f"{found_other}; {advice}.")
            for name in filter(PARTIAL.fullmatch, names):  # left by a run that was killed
                (place / name).unlink(missing_ok=True)
        return place, found


@dataclass(frozen=True, slots=True)
class SavingJob:
    """A job that also saves each result to a file, wherever it runs; its blocks come with paths."""

    job: Callable[[Any, Any], Any]
    codec: Codec

    def __call__(self, placed: Any, block: tuple[Path, Any]) -> Any:
        """Run the job on a block."""
        path, given = block
        result = self.job(placed, given)
        write_state(path, self.codec.to_arrays(result))
        return result


@dataclass(frozen=True, slots=True)
class SavedState:
    """The state of a worker in a file. sha256: the hash of the file when it was written."""

    path: Path
    sha256: str


@dataclass(slots=True)
class RoundCheckpoint:
    """The last saved round of a worker group. directory: None if nothing is saved.

    driver: what the driver needs to continue; None before the first saved round. states: those of the workers.
    """

    directory: Path | None = None
    subject: str = ""
    work_per_save: float = WORK_PER_SAVE
    number: int = 0
    driver: dict[str, Any] | None = None
    states: list[SavedState] = field(default_factory=list)
    _due: float = 0.0

    def write_if_due(
        self, directory: Path, driver: dict[str, Any], save: Callable[[list[Path]], list[SavedState]], n_workers: int
    ) -> None:
        """Save a round, if it is time: first the workers' states, then checkpoint.json in one step, which makes them count."""
        if time.monotonic() < self._due:
            return
        start, previous, number = time.monotonic(), self.states, self.number + 1
        states = save([directory / f"{number:06d}-{k}.safetensors" for k in range(n_workers)])
        names = [(saved.path.name, saved.sha256) for saved in states]
        _write(directory / CHECKPOINT, {"subject": self.subject, "number": number, "driver": driver, "states": names})
        # as it would be read again
        self.number, self.driver, self.states = number, json.loads(json.dumps(driver)), states
        for path in {saved.path for saved in previous} - {saved.path for saved in states}:
            with suppress(OSError):
                path.unlink()
        self._due = time.monotonic() + self.work_per_save * (time.monotonic() - start)


# ---- states ---------------------------------------------------------------------------------------------------------------


def save_state(path: Path, arrays: Arrays) -> SavedState:
    """Write the state of a worker."""
    write_state(path, arrays)
    try:
        with open(path, "rb") as file:
            return SavedState(path, _hash_of(file))
    except OSError as error:
        raise InputError(f"cannot read the checkpoint {path}: {error.strerror}; choose another directory.") from None


def restore_saved(saved: SavedState, restore: Callable[[Arrays], None]) -> None:
    """Restore the state of a worker; refuses a file that was changed since it was written."""
    restore_from(saved.path, restore, saved.sha256)


def write_state(path: Path, arrays: Arrays) -> None:
    """Write named arrays, whole or not at all."""
    beside = path.with_suffix(".partial")
    try:
        write_arrays(beside, arrays)
        beside.replace(path)
    except OSError as error:
        why = f"{error.strerror}; make room, or choose another directory"
        raise InputError(f"cannot write the checkpoint {path}: {why}.") from None
    finally:
        remove(beside)


def read_state(path: Path, sha256: str | None = None) -> Arrays:
    """Read named arrays as copies. sha256: the expected hash of the file, if it is known."""
    try:
        with open(path, "rb") as file:
            if sha256 is not None and _hash_of(file) != sha256:
                raise ModelError(f"the checkpoint {path} was changed after it was written; train without --resume.")
            file.seek(0)
            return {name: array.copy() for name, array in map_arrays(path, file).items()}
    except OSError as error:
        raise ModelError(f"cannot read the checkpoint {path}: {error.strerror}; train without --resume.") from None


def restore_from(path: Path, make: Callable[[Arrays], Result], sha256: str | None = None) -> Result:
    """What `make` makes of the arrays in a file; refuses arrays that do not fit."""
    state = read_state(path, sha256)
    try:
        return make(state)
    except RamifyError:
        raise
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise ModelError(f"the checkpoint {path} lacks what belongs there ({error}); train without --resume.") from None


def take_array(state: Arrays, name: str, dtype: DTypeLike, *shape: int, may_be_infinite: bool = False) -> NDArray[Any]:
    """An array of a state, if it has the right type and shape and only numbers.

    Workers hand these arrays to kernels, which trust them; a file may be damaged, or belong to another run.
    """
    array = state[name]
    if array.dtype != dtype or array.shape != shape:
        raise invalid_checkpoint(f"{name!r} of another type or size")
    if np.isnan(array).any() or not (may_be_infinite or np.isfinite(array).all()):
        raise invalid_checkpoint(f"{name!r} with values that are not finite numbers")
    return array


def invalid_checkpoint(found: str) -> ModelError:
    """The error for a checkpoint that this run cannot have written."""
    return ModelError(f"the checkpoint holds {found}; train without --resume to begin anew.")


# ---- JSON files -----------------------------------------------------------------------------------------------------------


@contextmanager
def _one_sentence(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot save checkpoints in {directory}: {error.strerror}; choose another directory.") from None


def _write(path: Path, content: dict[str, Any]) -> None:
    write_text_atomically(path, json.dumps({"format": FORMAT, "ramify": version("ramify"), **content}))


def _read(path: Path) -> dict[str, Any]:
    """The content of a file of this version of Ramify."""
    found = _load(path)
    if found.get("format") != FORMAT or not isinstance(found.get("ramify"), str):
        raise _damaged(path)
    if found["ramify"] != version("ramify"):
        other = f"{path} was written by Ramify {found['ramify'][:20]}, and this is {version('ramify')}"
        raise InputError(f"{other}; resume with that version, or train without --resume to begin anew.")
    return found


def _load(path: Path) -> dict[str, Any]:
    """The content of a JSON file; empty if it cannot be read."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_place(path: Path) -> bool:
    """Whether a directory holds checkpoints of any run, or those that are being removed."""
    has_name = PLACE.fullmatch(path.name) is not None and not path.is_symlink()
    return has_name and any(_is_ours(path / name) for name in (CHECKPOINT, REMOVED))


def _is_ours(path: Path) -> bool:
    """Whether any version of Ramify wrote a file."""
    return str(_load(path).get("format", "")).startswith(FAMILY)


def _damaged(path: Path) -> ModelError:
    return ModelError(f"{path} is not a file that this Ramify writes; remove it to begin anew, or choose another directory.")


def _hash_of(file: IO[bytes]) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
