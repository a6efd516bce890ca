"""Executors, groups of workers that run rounds together, and the context that decides where work runs and whether it is saved.

An executor runs work in three ways. `map` runs a function in this process, which may write to shared arrays. `distribute`
runs a job on independent blocks, perhaps on other nodes of a cluster. `start_workers` starts a group of workers: each owns
a partition of a problem and holds its state between calls; workers, too, may be anywhere. Blocks and workers are
independent, so results do not depend on the executor. Kernels release the interpreter lock, so threads suffice on one node.
"""

from __future__ import annotations

import os
import reprlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from ramify.errors import InputError
from ramify.parallel import checkpoints as saving
from ramify.parallel.checkpoints import Checkpoints, Codec, RoundCheckpoint, SavedState
from ramify.parallel.progress import check_deadline, in_time, set_in_block, with_deadline
from ramify.persistence.arrays import Arrays

Block = TypeVar("Block")
Result = TypeVar("Result")
Reduced = TypeVar("Reduced")
Arguments = ParamSpec("Arguments")
Stop = Callable[[], None] | None  # called when no more results are wanted, so that long blocks can end early


# ---- groups of workers ---------------------------------------------------------------------------------------------------


class Worker(Protocol):
    """The owner of one partition of a problem.

    Its methods take and return plain values and arrays, and depend on nothing but the partition and the calls so far.
    """

    def state(self) -> Arrays:
        """Everything that has changed since the worker was created."""

    def restore(self, state: Arrays) -> None:
        """Set the state that another worker of the same partition had; the arrays may be changed from now on."""


W = TypeVar("W", bound=Worker)
Make = Callable[[Any, Any, int], W]  # makes a worker of the placed value, its partition and a degree of memory saving


class WorkerLostError(Exception):
    """A worker of a group died; call :meth:`WorkerGroup.restart`, and repeat the work since the last saved round."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a worker group will need: bytes shared by all workers, bytes for each worker, and seconds."""

    shared: int
    each: tuple[int, ...]
    seconds: float


class WorkerGroup(Generic[W]):
    """Workers that run the rounds of an algorithm together; these in this process, a subclass's anywhere. Use it as a context.

    A driver calls methods of all workers at once and saves after each round what it needs to continue. When the driver is
    started again, or a worker is lost, the group goes back to the last saved round. Rounds are deterministic, so repeating
    them gives the same results to the last bit.
    """

    def __init__(self, workers: Sequence[Any], checkpoint: RoundCheckpoint, run: Callable[..., Iterator[Any]]) -> None:
        self.workers, self.checkpoint, self._run = workers, checkpoint, run
        for worker, saved in zip(workers, checkpoint.states, strict=False):  # no states: nothing was saved
            saving.restore_saved(saved, worker.restore)

    def __enter__(self) -> WorkerGroup[W]:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.stop(is_done=kind is None)

    @property
    def saved_round(self) -> dict[str, Any] | None:
        """What the driver saved with the last round; None at the very beginning."""
        return self.checkpoint.driver

    def call(
        self, method: Callable[Concatenate[W, Arguments], Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> list[Result]:
        """Call a method of every worker, of several at once; the results come in the order of the workers."""
        if len(self.workers) == 1:
            return [method(self.workers[0], *args, **kwargs)]
        return list(self._run(lambda worker: method(worker, *args, **kwargs), self.workers))

    def all_reduce(
        self, give: Callable[[W], Result], combine: Callable[[list[Result]], Reduced], take: Callable[[W, Reduced], None]
    ) -> None:
        """Every worker gives a value; all workers take the combined value."""
        self.call(take, combine(self.call(give)))

    def save(self, driver: dict[str, Any]) -> None:
        """Save a round, if it is time: the workers' states, and what the driver needs to continue (plain JSON values)."""
        if self.checkpoint.directory is not None:
            self.checkpoint.write_if_due(self.checkpoint.directory, driver, self._save_states, len(self.workers))

    def _save_states(self, paths: list[Path]) -> list[SavedState]:
        """Have every worker write its state to a path of its own."""
        return [saving.save_state(path, worker.state()) for worker, path in zip(self.workers, paths, strict=True)]

    def restart(self) -> None:
        """After a :class:`WorkerLostError`: replace what was lost, and go back to the last saved round."""
        raise NotImplementedError  # workers of this process are never lost

    def stop(self, is_done: bool) -> None:
        """Stop all workers; if the work is not done, without waiting for them."""
        self.workers = []

    def traffic(self) -> str:
        """How much was sent over the network, in words; empty for workers in this process."""
        return ""


# ---- executors -----------------------------------------------------------------------------------------------------------


class Executor:
    """Runs work in the calling thread; a subclass may run some of it on threads or on a cluster.

    Within :func:`checkpointing`, the results of jobs and the rounds of worker groups are saved.
    """

    workers = 1  # threads of this process

    @property
    def worker_threads(self) -> tuple[int, ...]:
        """For each worker of a group, how many threads it gets."""
        return (self.workers,)

    def map(self, function: Callable[[Block], Result], blocks: Iterable[Block], stop: Stop = None) -> Iterator[Result]:
        """The function's results in this process, in the order of the blocks; the first error stops the work and is raised."""
        return (function(block) for block in in_time(blocks))

    def place(self, common: Any) -> Any:
        """Put a value that many blocks or workers need where all of them find it, once on each node."""
        return common

    def distribute(
        self, job: Callable[[Any, Block], Result], placed: Any, blocks: Iterable[Block], codec: Codec | None = None, *,
        stop: Stop = None, threads: int = 1,
    ) -> Iterator[Result]:  # fmt: skip
        """The job's results for the placed value and each block, in order. job: a module's function; it writes to neither.

        blocks: an iterator is read only as far ahead as blocks can run at once.
        codec: how results are saved in checkpoints, if there are any. stop: for blocks in this process.
        threads: how many each block uses.
        """
        common, checkpoints = self.place(placed), _checkpoints.get()
        if codec is None or checkpoints is None:
            return self._run(job, common, blocks, stop, threads)
        run = partial(self._run, stop=stop, threads=threads)
        return checkpoints.results(job, common, list(blocks), run, codec)

    def _run(
        self, job: Callable[[Any, Any], Result], placed: Any, blocks: Iterable[Any], stop: Stop, threads: int
    ) -> Iterator[Result]:
        """Blocks at the same time; one after the other where each has threads of its own."""
        if threads > 1:
            return (job(placed, block) for block in blocks)
        return self.map(lambda block: job(placed, block), blocks, stop)

    def start_workers(
        self, make: Make[W], placed: Any, partitions: Sequence[Any], needs: Needs | None = None
    ) -> WorkerGroup[W]:
        """Start one worker per partition: make(placed value, partition, memory saving).

        Memory saving is 0 at first, and rises by one whenever the worker ran out of memory.
        """
        checkpoint = self._open_checkpoint(placed, partitions)
        return WorkerGroup([make(placed, partition, 0) for partition in partitions], checkpoint, self.map)

    def _open_checkpoint(self, placed: Any, partitions: Sequence[Any]) -> RoundCheckpoint:
        """The last saved round of a worker group that starts now."""
        checkpoints = _checkpoints.get()
        found = RoundCheckpoint() if checkpoints is None else checkpoints.rounds(placed, list(partitions))
        if found.driver is not None and len(found.states) != len(partitions):
            raise saving.invalid_checkpoint(f"states of {len(found.states)} workers, not of {len(partitions)}")
        return found


class SerialExecutor(Executor):
    """Runs one block after the other in the calling thread."""


class ThreadExecutor(Executor):
    """Runs blocks on `workers` threads of this process, with at most twice as many blocks submitted."""

    def __init__(self, workers: int) -> None:
        self.workers = count_workers(workers)

    def map(self, function: Callable[[Block], Result], blocks: Iterable[Block], stop: Stop = None) -> Iterator[Result]:
        """The function's results, in the order of the blocks, which are read as threads become free.

        stop: called before waiting for running blocks whose results are not wanted any more.
        """
        waiting: deque[Future[Result]] = deque()
        function = with_deadline(function)
        with ThreadPoolExecutor(self.workers, thread_name_prefix="ramify") as pool:
            try:
                for block in in_time(blocks):
                    waiting.append(pool.submit(function, block))
                    if len(waiting) >= 2 * self.workers:
                        yield waiting.popleft().result()
                while waiting:
                    check_deadline()
                    yield waiting.popleft().result()
            finally:
                if stop is not None:
                    stop()
                for future in waiting:
                    future.cancel()


class CombinedExecutor(Executor):
    """Maps in this process; jobs and worker groups run on another executor, and may be saved."""

    def __init__(self, local: Executor, remote: Executor, checkpoints: Checkpoints | None) -> None:
        self.map, self.place = local.map, remote.place  # type: ignore[method-assign]
        self.distribute, self.start_workers = remote.distribute, remote.start_workers  # type: ignore[method-assign]
        self._remote, self._checkpoints = remote, checkpoints

    @property
    def worker_threads(self) -> tuple[int, ...]:
        """Those of the other executor; a resumed run goes on with those that it began with."""
        found = self._remote.worker_threads
        return found if self._checkpoints is None else self._checkpoints.agreed_workers(found)


def choose_executor(n_jobs: int | None) -> Executor:
    """Serial for None or 1, threads for more, all cores for -1, as in scikit-learn.

    Within :func:`~ramify.parallel.running_on`, jobs and worker groups run on the executor given there.
    """
    workers = count_workers(n_jobs)
    local = SerialExecutor() if workers == 1 else ThreadExecutor(workers)
    remote, checkpoints = _executor.get(), _checkpoints.get()
    return local if remote is None and checkpoints is None else CombinedExecutor(local, remote or local, checkpoints)


def count_workers(n_jobs: int | None) -> int:
    """The number of threads that `n_jobs` means on this node.

    >>> count_workers(None), count_workers(3)
    (1, 3)
    """
    if n_jobs is None:
        return 1
    if type(n_jobs) is bool or not issubclass(type(n_jobs), Integral):
        allowed = "give None for one thread, a whole number of threads, or -1 for all cores, as in joblib"
        raise InputError(f"n_jobs is {reprlib.repr(n_jobs)}; {allowed}.")
    if n_jobs == 0:
        raise InputError("n_jobs is 0, and 0 threads can do no work; give a number of threads, or -1 for all cores.")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


def row_blocks(n_rows: int, bytes_per_row: int, budget: int = 1 << 26) -> list[slice]:
    """Cut rows into blocks whose results stay within a budget of bytes; no rows give no block.

    >>> row_blocks(5, 8, budget=16)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, budget // max(1, bytes_per_row))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


# ---- where the work of a block runs --------------------------------------------------------------------------------------

_executor: ContextVar[Executor | None] = ContextVar("ramify_executor", default=None)
_checkpoints: ContextVar[Checkpoints | None] = ContextVar("ramify_checkpoints", default=None)
_shards: ContextVar[Path | None] = ContextVar("ramify_shards", default=None)


def running_on(executor: Executor | None) -> AbstractContextManager[None]:
    """Run the worker groups and distributed jobs of this block on an executor, such as a cluster; None for threads.

    >>> from ramify.parallel import ThreadExecutor, choose_executor
    >>> with running_on(ThreadExecutor(3)):
    ...     choose_executor(1).worker_threads
    (3,)
    """
    return set_in_block(_executor, executor)


@contextmanager
def checkpointing(checkpoints: Checkpoints | None) -> Iterator[None]:
    """Save the work of this block so that it can be resumed; no other run can use the same directory meanwhile."""
    with nullcontext() if checkpoints is None else checkpoints.locked(), set_in_block(_checkpoints, checkpoints):
        yield


def writing_shards_to(directory: Path | None) -> AbstractContextManager[None]:
    """Let the workers of this block write large models to a directory, shard by shard, instead of sending them."""
    return set_in_block(_shards, directory)


def shard_directory() -> Path | None:
    """The directory of :func:`writing_shards_to`."""
    return _shards.get()


def current_executor() -> Executor | None:
    """The executor of :func:`running_on`."""
    return _executor.get()


def is_distributed() -> bool:
    """Whether jobs of this block may run on other nodes, which need absolute paths."""
    return _executor.get() is not None
