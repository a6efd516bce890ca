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
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ramify.errors import InputError, ModelError, RamifyError
from ramify.execution.contract import Arrays, Block, Keeper, Result
from ramify.execution.digests import digest_of
from ramify.persistence import write_text_atomically
from ramify.persistence.arrays import map_arrays, write_arrays

JOURNAL, TEAMS = "journal.json", "teams.json"
MOST_THREADS = 4096
SHARE = 20  # how many times longer than writing a checkpoint is worked before the next
FAMILY = "ramify-checkpoint-"
FORMAT = f"{FAMILY}1"
PLACE = re.compile(r"\d{4,}")
STATE = re.compile(r"\d{6,}-\d+\.safetensors")  # of a member
FILE = re.compile(r"(\d{6,}-|block-)\d+\.(safetensors|partial)|journal\.json|\.journal\.json\.[0-9a-f]{32}\.partial")

Made = TypeVar("Made")


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
            self._clear()
        elif not self.directory.is_dir():
            raise InputError(f"there is no checkpoint in {self.directory}; train without --resume to begin.")
        _make_directory(self.directory)

    def agreed_teams(self, teams: tuple[int, ...]) -> tuple[int, ...]:
        """The teams with which the run began: it goes on with as many members, whatever machines there are now."""
        path = self.directory / TEAMS
        if not path.exists():
            write_text_atomically(path, json.dumps({"format": FORMAT, "teams": teams}))
        found = _load(path)
        agreed = found.get("teams") if _format_of(found) == FORMAT else None
        if not isinstance(agreed, list) or not agreed or not all(type(n) is int and 1 <= n <= MOST_THREADS for n in agreed):
            raise _damaged(path)
        return tuple(agreed)

    def forget(self) -> None:
        """Remove what the run left, and the directory if nothing else is in it."""
        self._clear()
        with suppress(OSError):
            self.directory.rmdir()

    def _clear(self) -> None:
        """Remove what a run left: of directories that have its journal, the files that checkpoints consist of."""
        if _format_of(_load(self.directory / TEAMS)).startswith(FAMILY):
            (self.directory / TEAMS).unlink()
        for place in self._places():
            with suppress(OSError):
                # the journal goes last: by it the directory is known
                for path in sorted(place.iterdir(), key=lambda path: path.name == JOURNAL):
                    if FILE.fullmatch(path.name):
                        path.unlink()
                place.rmdir()

    def _places(self) -> list[Path]:
        if not self.directory.is_dir():
            return []
        named = [entry for entry in self.directory.iterdir() if PLACE.fullmatch(entry.name) and not entry.is_symlink()]
        return [entry for entry in named if _format_of(_load(entry / JOURNAL)).startswith(FAMILY)]

    def _next(self, *subject: Any) -> tuple[Path, dict[str, Any]]:
        """The next directory of the run, and what its journal says, which is begun where there is none."""
        place, digest = self.directory / f"{self._count:04d}", digest_of(*subject)
        self._count += 1
        _make_directory(place)
        if not (place / JOURNAL).exists():
            if not all(FILE.fullmatch(path.name) for path in place.iterdir()):
                raise InputError(f"{place} holds files that no checkpoint consists of; choose another place.")
            _write_journal(place, {"subject": digest})
        return place, _read_journal(place, digest)

    def journal(self, *subject: Any) -> Journal:
        """The journal of the next crew of the run. subject: what it works on."""
        return Journal.open(*self._next(*subject), self.share)

    def results(
        self,
        job: Callable[[Any, Block], Result],
        subject: Any,
        blocks: Sequence[Block],
        run: Callable[[Callable[[Any, Any], Result], list[Any]], Iterator[Result]],
        keeper: Keeper,
    ) -> Iterator[Result]:
        """Results of all blocks in order: those that an earlier run came to, and the others, which are kept.

        subject: what was placed. run: runs a job, which writes its result to a file as soon as it is found, on some blocks.
        """
        place, _ = self._next(job.__qualname__, subject, list(blocks))
        paths = [place / f"block-{k}.safetensors" for k in range(len(blocks))]
        known = [path.exists() for path in paths]
        todo = [(path, block) for path, block, is_known in zip(paths, blocks, known, strict=True) if not is_known]
        fresh = run(Keeping(job, keeper), todo)
        return (
            restore_from(path, keeper.from_arrays) if is_known else next(fresh)
            for path, is_known in zip(paths, known, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Keeping:
    """A job that also writes what it finds to a file, at once, wherever it runs; its blocks come with paths."""

    job: Callable[[Any, Any], Any]
    keeper: Keeper

    def __call__(self, placed: Any, block: tuple[Path, Any]) -> Any:
        """What the job finds."""
        path, given = block
        result = self.job(placed, given)
        write_state(path, self.keeper.to_arrays(result))
        return result


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
    def open(cls, directory: Path, found: dict[str, Any], share: float) -> Journal:
        """What an earlier run left; refuses what it cannot have left."""
        answers, names = found.get("answers", []), found.get("states", [])
        if not isinstance(answers, list) or not isinstance(names, list):
            raise _damaged(directory / JOURNAL)
        states = [directory / name for name in checked_names(names)]
        return cls(directory, found["subject"], share, known=answers, states=states)

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


def restore_from(path: Path, make: Callable[[Arrays], Made]) -> Made:
    """What is made of the arrays of a file; refuses those of which it cannot be made."""
    state = read_state(path)
    try:
        return make(state)
    except RamifyError:
        raise
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise ModelError(f"the checkpoint {path} lacks what belongs there ({error}); train without --resume.") from None


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot keep checkpoints in {path}: {error.strerror}; choose another place.") from None


def _write_journal(directory: Path, found: dict[str, Any]) -> None:
    write_text_atomically(directory / JOURNAL, json.dumps({"format": FORMAT, **found}))


def _load(path: Path) -> Any:
    """What stands in a file of ours; None where nothing can be read."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def _format_of(found: Any) -> str:
    return str(found.get("format", "")) if isinstance(found, dict) else ""


def _read_journal(directory: Path, subject: str) -> dict[str, Any]:
    """What a journal says; refused where it is of something else."""
    found = _load(directory / JOURNAL)
    if _format_of(found) != FORMAT:
        raise _damaged(directory / JOURNAL)
    if found.get("subject") != subject:
        raise InputError(
            f"the checkpoint in {directory.parent} is of other documents, labels or settings; "
            "give those that it was begun with, or train without --resume to begin anew."
        )
    return dict(found)


def _damaged(path: Path) -> ModelError:
    return ModelError(f"{path} is not a file that this Ramify writes; remove it to begin anew, or choose another place.")


def checked_names(names: list[Any]) -> list[str]:
    """Refuse names of anything but members' states."""
    if not all(isinstance(name, str) and STATE.fullmatch(name) for name in names):
        raise ModelError("the checkpoint names files that it does not consist of; do not trust it.")
    return names
