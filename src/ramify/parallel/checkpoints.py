"""Files with the states of members and the results of blocks: there whole or not at all, and refused where they are damaged."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import issparse

from ramify.errors import InputError, ModelError, RamifyError
from ramify.parallel.base import Arrays, Block, Codec, Result
from ramify.parallel.progress import note
from ramify.persistence import exclusive_writer, write_text_atomically
from ramify.persistence.arrays import map_arrays, write_arrays
from ramify.persistence.atomic import clear_leftovers, remove

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class SavedState:
    """The state of a member in a file. sha256: the hash that the file had when it was written."""

    path: Path
    sha256: str


def save_state(path: Path, arrays: Arrays) -> SavedState:
    """Write the state of a member."""
    write_state(path, arrays)
    try:
        with open(path, "rb") as file:
            return SavedState(path, _hash_of(file))
    except OSError as error:
        raise InputError(f"cannot read the checkpoint {path}: {error.strerror}; choose another place.") from None


def restore_saved(kept: SavedState, restore: Callable[[Arrays], None]) -> None:
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


# --------------------------------------------------------------------------------------------------------------
# Fingerprints of values and arrays, by which work that is taken up again knows that it is the same work.


PLAIN = (bool, int, float, complex, str, bytes, np.generic, range, slice)


def digest_of(*values: Any) -> str:
    """The same for the same values, and in all likelihood for no others.

    >>> digest_of([1, "a"], np.arange(3)) == digest_of([1, "a"], np.arange(3)) != digest_of([1, "b"], np.arange(3))
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        for piece in _pieces(value):
            digest.update(piece)
    return digest.hexdigest()


def _pieces(value: Any) -> Iterator[Any]:
    """A value as bytes, each part with what it is, so that parts cannot be mistaken for each other."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield f"array {value.dtype.str} {value.shape} ".encode()
        yield np.ascontiguousarray(value).view(np.uint8).reshape(-1).data if value.size else b""
    elif issparse(value):
        yield f"sparse {value.format} {value.shape} ".encode()
        compressed = value if value.format in ("csr", "csc") else value.tocsr()
        for part in (compressed.indptr, compressed.indices, compressed.data):
            yield from _pieces(part)
    elif _is_placed(value):
        yield from _pieces(value.value)
    elif is_dataclass(value) and not isinstance(value, type):
        yield f"{type(value).__name__} ".encode()
        for field in fields(value):
            if field.compare:
                yield from _pieces(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)} ".encode()
        for key, each in value.items():
            yield from _pieces(key)
            yield from _pieces(each)
    elif isinstance(value, (list, tuple)):
        yield f"list {len(value)} ".encode()
        for each in value:
            yield from _pieces(each)
    elif isinstance(value, (set, frozenset)):
        yield f"set {len(value)} ".encode()
        yield from sorted(digest_of(each).encode() for each in value)
    elif isinstance(value, (FunctionType, BuiltinFunctionType, type)):
        yield f"{value.__module__}.{value.__qualname__} ".encode()
    elif value is None or isinstance(value, PLAIN):
        yield f"{type(value).__name__} {value!r} ".encode()
    else:
        yield from _pieces(_parts(value))


def _is_placed(value: Any) -> bool:
    """Whether a thing was put where other machines find it; it is then the same thing as here."""
    return hasattr(value, "value") and hasattr(value, "reference") and not isinstance(value, type)


def _parts(value: Any) -> list[Any]:
    """What an object would be sent as: how it is made, of what, and what it is filled with. Its repr may hide all of that."""
    if isinstance(value, np.ndarray):
        return ["array of objects", value.shape, value.tolist()]
    found = value.__reduce_ex__(4)
    if isinstance(found, str):
        return [type(value), found]
    return [type(value), *found[1:3], *(list(items) for items in found[3:5] if items is not None)]


# --------------------------------------------------------------------------------------------------------------
# Work that can be taken up again: what crews were told so far, what their members had found, and results of blocks.
#
# A run does the same things in the same order whenever it is given the same data, but for what crews answer. So answers are
# written down: a run that is taken up again starts from the beginning, gets the answers it had before until the last checkpoint
# without any work, and goes on from there with members that are as they were then. What it does after that is what it would
# have
# done, bit by bit.
#
# Every crew and every spread gets a directory of its own, numbered in the order of the run:
#
#     teams.json            how many threads each member of a crew has
#     0000/journal.json     what it is of, answers of all calls up to the checkpoint, and the files of its members
#     0000/000012-0.safetensors    the state of member 0 after 12 calls
#     0001/block-3.safetensors     the result of block 3
#
# Both kinds of JSON file say which Ramify wrote them: another one may do other things, in another order.


JOURNAL, TEAMS, GUARD = "journal.json", "teams.json", ".ramify-checkpoints.lock"
MOST_THREADS = 4096
SHARE = 20  # how many times longer than writing a checkpoint is worked before the next
FAMILY = "ramify-checkpoint-"
FORMAT = f"{FAMILY}2"
PLACE = re.compile(r"\d{4,}")
STATE = re.compile(r"\d{6,}-\d+\.safetensors")  # of a member
PARTIAL = re.compile(r"(\d{6,}-|block-)\d+\.partial|\.journal\.json\.[0-9a-f]{32}\.partial")
FILE = re.compile(rf"(\d{{6,}}-|block-)\d+\.safetensors|journal\.json|{PARTIAL.pattern}")


@dataclass(slots=True)
class Checkpoints:
    """The checkpoints of one run, in one directory that all machines reach.

    resume: go on from what is there; without, what is there is given up as soon as there is something new to keep.
    """

    directory: Path
    resume: bool = False
    share: float = SHARE
    _count: int = field(default=0, init=False)
    _has_begun: bool = field(default=False, init=False)
    _is_new: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.directory = Path(self.directory)
        with _told(self.directory):
            if self.resume and not self.directory.is_dir():
                raise InputError(f"there is no checkpoint in {self.directory}; train without --resume to begin.")
            self._is_new = not self.directory.exists()
            self.directory.mkdir(parents=True, exist_ok=True)
            list(self.directory.iterdir())

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep other runs out, which would take these files for theirs; at the end an empty directory is not left behind."""
        try:
            with exclusive_writer(self.directory, self.directory / GUARD):
                yield
        finally:
            if self._is_new:
                with suppress(OSError):  # something is in it
                    self.directory.rmdir()

    @property
    def has_begun(self) -> bool:
        """Whether the run keeps anything."""
        return self._has_begun

    def agreed_workers(self, teams: tuple[int, ...]) -> tuple[int, ...]:
        """The teams with which the run began: it goes on with as many members, whatever machines there are now."""
        self._begin()
        path = self.directory / TEAMS
        with _told(self.directory):
            if not path.exists():
                _write(path, {"teams": teams})
        agreed = _read(path).get("teams")
        if not isinstance(agreed, list) or not agreed or not all(type(n) is int and 1 <= n <= MOST_THREADS for n in agreed):
            raise _damaged(path)
        return tuple(agreed)

    def forget(self) -> None:
        """Remove what the run left, and the directory if nothing else is in it."""
        self._is_new = self._is_new or self._has_begun
        if self._has_begun:  # otherwise what is there is another run's
            with suppress(OSError):
                self._clear()
                self.directory.rmdir()  # unless it is still in use
        elif self.resume:
            note(f"Nothing was taken up from {self.directory}, and it stays as it is: this system keeps no checkpoints.")

    def _begin(self) -> None:
        """Give up what an earlier run left, unless this one goes on from there; asked before anything is kept."""
        if self._has_begun:
            return
        self._has_begun = True
        with _told(self.directory):
            clear_leftovers(self.directory / TEAMS)
            if not self.resume and self._clear():
                note(f"The checkpoints of an earlier run in {self.directory} are given up.")
            if self.resume:
                note(f"Going on from the checkpoints in {self.directory}.")

    def _clear(self) -> bool:
        """Remove what a run left, and say whether there was anything."""
        left = self._left()
        for path in left:
            path.unlink(missing_ok=True)
        for place in {path.parent for path in left} - {self.directory}:
            with suppress(OSError):  # what others put there stays
                place.rmdir()
        return bool(left)

    def _left(self) -> list[Path]:
        """What a run left: of directories that have its journal, the files that checkpoints consist of."""
        left = [self.directory / TEAMS] if _is_ours(self.directory / TEAMS) else []
        for place in sorted(self.directory.iterdir()):
            if PLACE.fullmatch(place.name) and not place.is_symlink() and _is_ours(place / JOURNAL):
                # the journal goes last: by it the directory is known
                files = sorted(place.iterdir(), key=lambda path: path.name == JOURNAL)
                left += [path for path in files if FILE.fullmatch(path.name)]
        return left

    def _next(self, *subject: Any) -> tuple[Path, dict[str, Any]]:
        """The next directory of the run, and what its journal says, which is begun where there is none."""
        self._begin()
        place, digest = self.directory / f"{self._count:04d}", digest_of(*subject)
        self._count += 1
        with _told(place):
            place.mkdir(parents=True, exist_ok=True)
            names = [path.name for path in place.iterdir()]
            if JOURNAL not in names:
                if not all(FILE.fullmatch(name) for name in names):
                    raise InputError(f"{place} holds files that no checkpoint consists of; choose another place.")
                _write(place / JOURNAL, {"subject": digest})
            found = _read_journal(place, digest)
            for name in filter(PARTIAL.fullmatch, names):  # of a run that was killed
                (place / name).unlink(missing_ok=True)
        return place, found

    def journal(self, *subject: Any) -> Journal:
        """The journal of the next crew of the run. subject: what it works on."""
        return Journal.open(*self._next(*subject), self.share)

    def results(
        self,
        job: Callable[[Any, Block], Result],
        subject: Any,
        blocks: Sequence[Block],
        run: Callable[[Callable[[Any, Any], Result], list[Any]], Iterator[Result]],
        codec: Codec,
    ) -> Iterator[Result]:
        """Results of all blocks in order: those that an earlier run came to, and the others, which are kept.

        subject: what was placed. run: runs a job, which writes its result to a file as soon as it is found, on some blocks.
        """
        place, _ = self._next(job.__qualname__, subject, list(blocks))
        paths = [place / f"block-{k}.safetensors" for k in range(len(blocks))]
        with _told(place):
            known = [path.exists() for path in paths]
        todo = [(path, block) for path, block, is_known in zip(paths, blocks, known, strict=True) if not is_known]
        fresh = run(Keeping(job, codec), todo)
        return (
            restore_from(path, codec.from_arrays) if is_known else next(fresh)
            for path, is_known in zip(paths, known, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Keeping:
    """A job that also writes what it finds to a file, at once, wherever it runs; its blocks come with paths."""

    job: Callable[[Any, Any], Any]
    codec: Codec

    def __call__(self, placed: Any, block: tuple[Path, Any]) -> Any:
        """What the job finds."""
        path, given = block
        result = self.job(placed, given)
        write_state(path, self.codec.to_arrays(result))
        return result


@dataclass(slots=True)
class Journal:
    """What a crew answered, each answer with what was asked, and its members' states. directory: None where nothing is kept."""

    directory: Path | None = None
    subject: str = ""
    share: float = SHARE
    known: list[Any] = field(default_factory=list)  # what was asked in an earlier run, and answers
    answers: list[Any] = field(default_factory=list)
    states: list[SavedState] = field(default_factory=list)  # of the members, after the known answers
    _due: float = 0.0

    @classmethod
    def open(cls, directory: Path, found: dict[str, Any], share: float) -> Journal:
        """What an earlier run left; refuses what it cannot have left."""
        answers, states = found.get("answers", []), found.get("states", [])
        if not isinstance(answers, list) or not isinstance(states, list) or not all(is_pair(entry) for entry in states):
            raise _damaged(directory / JOURNAL)
        checked_names([name for name, _ in states])
        kept = [SavedState(directory / name, str(sha256)) for name, sha256 in states]
        return cls(directory, found["subject"], share, known=answers, states=kept)

    @property
    def is_recalling(self) -> bool:
        """Whether the next answer is known from an earlier run."""
        return len(self.answers) < len(self.known)

    def recall(self) -> Any:
        """What was asked next in an earlier run, and the answer; as it stands in the journal."""
        self.answers.append(self.known[len(self.answers)])
        return self.answers[-1]

    def note(self, what: str, answer: Any) -> None:
        """Write down an answer to what was asked."""
        if self.directory is not None:
            self.answers.append([what, answer])

    def is_due(self) -> bool:
        """Whether it is time for a checkpoint of something new."""
        return self.directory is not None and len(self.answers) > len(self.known) and time.monotonic() >= self._due

    def write(self, save: Callable[[list[Path]], list[SavedState]], n_members: int) -> None:
        """Write a checkpoint: members' states by `save`, then the journal in one step, which makes them count."""
        assert self.directory is not None
        start, before = time.monotonic(), self.states
        self.states = save([self.directory / f"{len(self.answers):06d}-{k}.safetensors" for k in range(n_members)])
        states = [(kept.path.name, kept.sha256) for kept in self.states]
        _write(self.directory / JOURNAL, {"subject": self.subject, "answers": self.answers, "states": states})
        for path in {kept.path for kept in before} - {kept.path for kept in self.states}:
            with suppress(OSError):
                path.unlink()
        took = time.monotonic() - start
        self._due = time.monotonic() + self.share * took


@contextmanager
def _told(directory: Path) -> Iterator[None]:
    """Say in one sentence what a directory does not allow."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot keep checkpoints in {directory}: {error.strerror}; choose another place.") from None


def _write(path: Path, found: dict[str, Any]) -> None:
    write_text_atomically(path, json.dumps({"format": FORMAT, "ramify": version("ramify"), **found}))


def _read(path: Path) -> dict[str, Any]:
    """What stands in a file of ours; refused where another Ramify wrote it."""
    found = _load(path)
    if _format_of(found) != FORMAT or not isinstance(found.get("ramify"), str):
        raise _damaged(path)
    if found["ramify"] != version("ramify"):
        raise InputError(
            f"{path} was written by Ramify {found['ramify'][:20]}, and this is {version('ramify')}; "
            "go on with that one, or train without --resume to begin anew."
        )
    return dict(found)


def _load(path: Path) -> Any:
    """What stands in a file; None where nothing can be read."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def _format_of(found: Any) -> str:
    return str(found.get("format", "")) if isinstance(found, dict) else ""


def _is_ours(path: Path) -> bool:
    """Whether a file is of a run of any Ramify."""
    return _format_of(_load(path)).startswith(FAMILY)


def _read_journal(directory: Path, subject: str) -> dict[str, Any]:
    """What a journal says; refused where it is of something else."""
    found = _read(directory / JOURNAL)
    if found.get("subject") != subject:
        raise InputError(
            f"the checkpoint in {directory.parent} is of other documents, labels or settings; "
            "give those that it was begun with, or train without --resume to begin anew."
        )
    return found


def _damaged(path: Path) -> ModelError:
    return ModelError(f"{path} is not a file that this Ramify writes; remove it to begin anew, or choose another place.")


def is_pair(entry: Any) -> bool:
    """Whether what was read is a list of two."""
    return isinstance(entry, list) and len(entry) == 2


def checked_names(names: list[Any]) -> list[str]:
    """Refuse names of anything but members' states."""
    if not all(isinstance(name, str) and STATE.fullmatch(name) for name in names):
        raise ModelError("the checkpoint names files that it does not consist of; do not trust it.")
    return names
