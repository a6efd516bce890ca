"""What an executor is: a place where blocks of work run, and where crews work together for many rounds.

Three ways to hand out work. `map` runs a function in this process: it may write to arrays that it shares with others. `spread`
runs a function that stands alone on blocks, with one thing that all of them need; it may run on other machines. A `crew` has
members that each own a share of a problem and keep what they have found between two calls; they, too, may be anywhere.
Blocks and members are independent, so results do not depend on the executor. Kernels release the interpreter lock; threads
therefore suffice on one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

Block = TypeVar("Block")
Result = TypeVar("Result")
Arrays = dict[str, NDArray[Any]]


class Worker(Protocol):
    """One of a crew: the owner of a share of a problem. Its methods are what a crew can be asked.

    They take and give plain values and arrays; what they give must depend on nothing but the share and the calls so far.
    """

    def state(self) -> Arrays:
        """All that has changed since the member was made."""

    def restore(self, state: Arrays) -> None:
        """Become as the member was whose state this is; the arrays are the new owner's."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How the result of a block is written to a checkpoint, as named arrays, and made of them again.

    Functions of a module: results are written where they are found.
    """

    to_arrays: Callable[[Any], Arrays]
    from_arrays: Callable[[Arrays], Any]


@dataclass(frozen=True, slots=True)
class Needs:
    """What a crew is going to need: bytes of what all members share, bytes of each member beside that, and seconds."""

    shared: int
    each: tuple[int, ...]
    seconds: float


class WorkerGroup(Protocol):
    """Members that work together, somewhere."""

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """What every member's method gives, in their order: numbers, and lists of numbers, that are written down."""

    def exchange(self, give: str, combine: Callable[[list[Any]], Any], take: str) -> None:
        """Every member gives something; what is combined of that, all of them take."""

    def fetch(self, what: str, *arguments: Any) -> Iterator[Any]:
        """What members' methods give at the end, in their order: large things, that are not written down."""

    def keep(self) -> None:
        """Say that work can be taken up again from here: if it is time, a checkpoint is written."""

    def told(self) -> str:
        """What a person should know of the members, such as how much was sent; nothing where they are here."""


class Executor(Protocol):
    """Runs blocks of work somewhere.

    teams: how many threads each member of a crew should have.
    """

    @property
    def worker_threads(self) -> tuple[int, ...]: ...  # noqa: D102

    def map(
        self, function: Callable[[Block], Result], blocks: Iterable[Block], stop: Callable[[], None] | None = None
    ) -> Iterator[Result]:
        """The function's results in this process, in the order of the blocks; the first error stops the work and is raised.

        stop: called when no more results are wanted, so that long blocks under way can end early.
        """

    def place(self, common: Any) -> Any:
        """Put a thing that many blocks or members need where all of them find it, once on each machine."""

    def distribute(
        self,
        job: Callable[[Any, Block], Result],
        placed: Any,
        blocks: Iterable[Block],
        codec: Codec | None = None,
        *,
        stop: Callable[[], None] | None = None,
        threads: int = 1,
    ) -> Iterator[Result]:
        """The job's results for what was placed and each block, in order. job: a function of a module, which writes to neither.

        blocks: of an iterator only a few are taken before results are asked for, as many as can be under way.
        codec: how results are kept in checkpoints, where there are any. stop: as of :meth:`map`, for blocks that run in this
        process. threads: how many a block uses.
        """

    def start_workers(
        self, make: Callable[[Any, Any, int], Worker], placed: Any, shares: Sequence[Any], needs: Needs | None = None
    ) -> Any:
        """A crew, as a context: one member for each share, made of what was placed, its share, and how frugal it must be.

        Frugality is 0 at first, and rises by one whenever the member ran out of memory.
        """


def row_blocks(n_rows: int, bytes_per_row: int, budget: int = 1 << 26) -> list[slice]:
    """Cut rows into blocks whose results stay within a budget of bytes; no rows give no block.

    >>> row_blocks(5, 8, budget=16)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, budget // max(1, bytes_per_row))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
