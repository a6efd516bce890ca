"""The interfaces of parallel work: executors, and groups of workers that run rounds together.

An executor runs work in three ways. `map` runs a function in this process, which may write to shared arrays. `distribute`
runs a job on independent blocks, perhaps on other nodes of a cluster. `start_workers` starts a group of workers: each owns
a partition of a problem and holds its state between calls; workers, too, may be anywhere. Blocks and workers are
independent, so results do not depend on the executor. Kernels release the interpreter lock, so threads suffice on one node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from ramify.parallel.checkpoints import Arrays, Codec, RoundCheckpoint, SavedState, invalid_checkpoint

Block = TypeVar("Block")
Result = TypeVar("Result")
Reduced = TypeVar("Reduced")
Arguments = ParamSpec("Arguments")


class Worker(Protocol):
    """The owner of one partition of a problem.

    Its methods take and return plain values and arrays, and depend on nothing but the partition and the calls so far.
    """

    def state(self) -> Arrays:
        """Everything that has changed since the worker was created."""

    def restore(self, state: Arrays) -> None:
        """Set the state that another worker of the same partition had; the arrays may be changed from now on."""


W = TypeVar("W", bound=Worker)


class WorkerLostError(Exception):
    """A worker of a group died; call :meth:`WorkerGroup.restart`, and repeat the work since the last saved round."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a worker group will need: bytes shared by all workers, bytes for each worker, and seconds."""

    shared: int
    each: tuple[int, ...]
    seconds: float


class WorkerGroup(ABC, Generic[W]):
    """Workers that run the rounds of an algorithm together. Use it as a context.

    A driver calls methods of all workers at once and saves after each round what it needs to continue. When the driver is
    started again, or a worker is lost, the group goes back to the last saved round. Rounds are deterministic, so repeating
    them gives the same results to the last bit.
    """

    def __init__(self, checkpoint: RoundCheckpoint, n_workers: int) -> None:
        if checkpoint.driver is not None and len(checkpoint.states) != n_workers:
            raise invalid_checkpoint(f"states of {len(checkpoint.states)} workers, not of {n_workers}")
        self.checkpoint, self.n_workers = checkpoint, n_workers

    def __enter__(self) -> WorkerGroup[W]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop(is_done=kind is None)

    @property
    def saved_round(self) -> dict[str, Any] | None:
        """What the driver saved with the last round; None at the very beginning."""
        return self.checkpoint.driver

    @abstractmethod
    def call(
        self, method: Callable[Concatenate[W, Arguments], Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> list[Result]:
        """Call a method of every worker; the results come in the order of the workers."""

    def all_reduce(
        self, give: Callable[[W], Result], combine: Callable[[list[Result]], Reduced], take: Callable[[W, Reduced], None]
    ) -> None:
        """Every worker gives a value; all workers take the combined value."""
        self.call(take, combine(self.call(give)))

    def save(self, driver: dict[str, Any]) -> None:
        """Save a round, if it is time: the workers' states, and what the driver needs to continue (plain JSON values)."""
        self.checkpoint.write_if_due(driver, self._save_states, self.n_workers)

    @abstractmethod
    def _save_states(self, paths: list[Path]) -> list[SavedState]:
        """Have every worker write its state to a path of its own."""

    @abstractmethod
    def restart(self) -> None:
        """After a :class:`WorkerLostError`: replace what was lost, and go back to the last saved round."""

    @abstractmethod
    def stop(self, is_done: bool) -> None:
        """Stop all workers; if the work is not done, without waiting for them."""

    def traffic(self) -> str:
        """How much was sent over the network, in words; empty for workers in this process."""
        return ""


class Executor(Protocol):
    """Runs work in this process or on a cluster.

    worker_threads: for each worker of a group, how many threads it gets.
    """

    @property
    def worker_threads(self) -> tuple[int, ...]: ...  # noqa: D102

    def map(
        self, function: Callable[[Block], Result], blocks: Iterable[Block], stop: Callable[[], None] | None = None
    ) -> Iterator[Result]:
        """The function's results in this process, in the order of the blocks; the first error stops the work and is raised.

        stop: called when no more results are wanted, so that long blocks can end early.
        """

    def place(self, common: Any) -> Any:
        """Put a value that many blocks or workers need where all of them find it, once on each node."""

    def distribute(
        self, job: Callable[[Any, Block], Result], placed: Any, blocks: Iterable[Block], codec: Codec | None = None, *,
        stop: Callable[[], None] | None = None, threads: int = 1,
    ) -> Iterator[Result]:  # fmt: skip
        """The job's results for the placed value and each block, in order. job: a module's function; it writes to neither.

        blocks: an iterator is read only as far ahead as blocks can run at once.
        codec: how results are saved in checkpoints, if there are any. stop: as in :meth:`map`, for blocks in this process.
        threads: how many each block uses.
        """

    def start_workers(
        self, make: Callable[[Any, Any, int], W], placed: Any, partitions: Sequence[Any], needs: Needs | None = None
    ) -> WorkerGroup[W]:
        """Start one worker per partition: make(placed value, partition, memory saving).

        Memory saving is 0 at first, and rises by one whenever the worker ran out of memory.
        """


def row_blocks(n_rows: int, bytes_per_row: int, budget: int = 1 << 26) -> list[slice]:
    """Cut rows into blocks whose results stay within a budget of bytes; no rows give no block.

    >>> row_blocks(5, 8, budget=16)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, budget // max(1, bytes_per_row))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
