"""Work that can be taken up again: what crews were told so far, what their members had found, and results of blocks.

A run does the same things in the same order whenever it is given the same data, but for what crews answer. So answers are
written down: a run that is taken up again starts from the beginning, gets the answers it had before until the last checkpoint
without any work, and goes on from there with members that are as they were then. What it does after that is what it would have
done, bit by bit.

Every crew and every spread gets a directory of its own, numbered in the order of the run:

    teams.json            how many threads each member of a crew has
    0000/journal.json     what it is of, answers of all calls up to the checkpoint, and the files of its members
    0000/000012-0.safetensors    the state of member 0 after 12 calls
    0001/block-3.safetensors     the result of block 3
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ramify.errors import InputError, ModelError
from ramify.execution.contract import Arrays, Block, Keeper, Result
from ramify.execution.digests import digest_of
from ramify.persistence import write_text_atomically
from ramify.persistence.arrays import map_arrays, write_arrays

JOURNAL, TEAMS = "journal.json", "teams.json"
MOST_THREADS = 4096
SHARE = 20  # how many times longer than writing a checkpoint is worked before the next
FORMAT = "ramify-checkpoint-1"


@dataclass(slots=True)
class Checkpoints:
    """The checkpoints of one run, in one directory that all machines reach.

    resume: go on from what is there; without, what is there is given up.
    """

    directory: Path
    resume: bool = False
    share: float = SHARE
    _count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.directory = Path(self.directory)
        if not self.resume:
            self.forget()
        elif not self.directory.is_dir():
            raise InputError(f"there is no checkpoint in {self.directory}; train without --resume to begin.")
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot keep checkpoints in {self.directory}: {error.strerror}; choose another place.") from None

    def agreed_teams(self, teams: tuple[int, ...]) -> tuple[int, ...]:
        """The teams with which the run began: it goes on with as many members, whatever machines there are now."""
        path = self.directory / TEAMS
        if not path.exists():
            write_text_atomically(path, json.dumps(teams))
        try:
            agreed = tuple(int(threads) for threads in json.loads(path.read_bytes()))
        except (OSError, ValueError, TypeError, RecursionError):
            agreed = ()
        if not agreed or not all(1 <= threads <= MOST_THREADS for threads in agreed):
            raise ModelError(f"{path} is not a file that this Ramify writes; train without --resume to begin anew.")
        return agreed

    def forget(self) -> None:
        """Remove what the run left; only files that checkpoints consist of."""
        (self.directory / TEAMS).unlink(missing_ok=True)
        for place in self._places():
            shutil.rmtree(place, ignore_errors=True)
        with suppress(OSError):
            self.directory.rmdir()

    def _places(self) -> list[Path]:
        if not self.directory.is_dir():
            return []
        return [entry for entry in self.directory.iterdir() if entry.is_dir() and entry.name.isdigit()]

    def _next(self) -> Path:
        place = self.directory / f"{self._count:04d}"
        place.mkdir(exist_ok=True)
        self._count += 1
        return place

    def journal(self, *subject: Any) -> Journal:
        """The journal of the next crew of the run. subject: what it works on."""
        return Journal.open(self._next(), digest_of(*subject), self.share)

    def results(
        self, subject: Any, blocks: Sequence[Block], run: Callable[[list[Block]], Iterator[Result]], keeper: Keeper
    ) -> Iterator[Result]:
        """Results of all blocks in order: those that an earlier run came to, and the others, which are kept."""
        place, digest = self._next(), digest_of(*subject)
        marked = _read_journal(place, digest)
        if marked is None:
            _write_journal(place, {"subject": digest})
        paths = [place / f"block-{k}.safetensors" for k in range(len(blocks))]
        fresh = run([block for block, path in zip(blocks, paths, strict=True) if not path.exists()])
        for path in paths:
            if path.exists():
                yield keeper.from_arrays(read_state(path))
            else:
                result = next(fresh)
                write_state(path, keeper.to_arrays(result))
                yield result


@dataclass(slots=True)
class Journal:
    """What a crew answered, and where its members' states are. directory: None where nothing is kept."""

    directory: Path | None = None
    subject: str = ""
    share: float = SHARE
    known: list[Any] = field(default_factory=list)  # answers that an earlier run got
    answers: list[Any] = field(default_factory=list)
    states: list[Path] = field(default_factory=list)  # of the members, after the known answers
    _due: float = 0.0

    @classmethod
    def open(cls, directory: Path, subject: str, share: float) -> Journal:
        """Read what an earlier run left; refuses what is of something else."""
        found = _read_journal(directory, subject)
        if found is None or "answers" not in found:
            return cls(directory, subject, share)
        states = [directory / name for name in checked_names(found["states"])]
        return cls(directory, subject, share, known=found["answers"], states=states)

    @property
    def is_recalling(self) -> bool:
        """Whether the next answer is known from an earlier run."""
        return len(self.answers) < len(self.known)

    def recall(self) -> Any:
        """The next answer, known from an earlier run."""
        self.answers.append(self.known[len(self.answers)])
        return self.answers[-1]

    def note(self, answer: Any) -> None:
        """Write down an answer."""
        if self.directory is not None:
            self.answers.append(answer)

    def is_due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return self.directory is not None and not self.is_recalling and time.monotonic() >= self._due

    def write(self, save: Callable[[list[Path]], None], n_members: int) -> None:
        """Write a checkpoint: members' states by `save`, then the journal in one step, which makes them count."""
        assert self.directory is not None
        start, before = time.monotonic(), self.states
        states = [self.directory / f"{len(self.answers):06d}-{k}.safetensors" for k in range(n_members)]
        save(states)
        names = [path.name for path in states]
        _write_journal(self.directory, {"subject": self.subject, "answers": self.answers, "states": names})
        self.states = states
        for path in set(before) - set(states):
            path.unlink(missing_ok=True)
        took = time.monotonic() - start
        self._due = time.monotonic() + self.share * took


def write_state(path: Path, arrays: Arrays) -> None:
    """Write named arrays whole or not at all."""
    beside = path.with_suffix(".partial")
    try:
        write_arrays(beside, arrays)
        beside.replace(path)
    except OSError as error:
        raise InputError(f"cannot write the checkpoint {path}: {error.strerror}; make room, or choose another place.") from None


def read_state(path: Path) -> Arrays:
    """Read named arrays, as one's own."""
    try:
        with open(path, "rb") as file:
            return {name: array.copy() for name, array in map_arrays(path, file).items()}
    except OSError as error:
        raise ModelError(f"cannot read the checkpoint {path}: {error.strerror}; train without --resume.") from None


def _write_journal(directory: Path, found: dict[str, Any]) -> None:
    write_text_atomically(directory / JOURNAL, json.dumps({"format": FORMAT, **found}))


def _read_journal(directory: Path, subject: str) -> dict[str, Any] | None:
    """What a directory says that it is of; None where it says nothing, refused where it is of something else."""
    path = directory / JOURNAL
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_bytes())
        fits = found["format"] == FORMAT
        same = found["subject"] == subject
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        fits = same = False
    if not fits:
        raise ModelError(f"{path} is not a checkpoint that this Ramify writes; train without --resume to begin anew.")
    if not same:
        raise InputError(
            f"the checkpoint in {directory.parent} is of other documents, labels or settings; "
            "give those that it was begun with, or train without --resume to begin anew."
        )
    return dict(found)


def checked_names(names: Iterable[str]) -> list[str]:
    """Refuse names that lead elsewhere."""
    listed = list(names)
    if any("/" in name or name.startswith(".") for name in listed):
        raise ModelError("the checkpoint names files outside its directory; do not trust it.")
    return listed
