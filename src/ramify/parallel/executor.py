"""Executors of this process (serial, threads), and the context that decides where work runs and whether it is saved."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Concatenate

from ramify.errors import InputError
from ramify.parallel.base import Arguments, Block, Executor, Needs, Result, W, WorkerGroup
from ramify.parallel.checkpoints import Checkpoints, Codec, RoundCheckpoint, SavedState, restore_saved, save_state
from ramify.parallel.deadlines import check_deadline, in_time, set_in_block, with_deadline

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


class LocalWorkerGroup(WorkerGroup[W]):
    """Workers in this process."""

    def __init__(self, workers: Sequence[W], checkpoint: RoundCheckpoint, run: Callable[..., Iterator[Any]]) -> None:
        super().__init__(checkpoint, len(workers))
        self.workers, self._run = workers, run
        for worker, saved in zip(workers, checkpoint.states, strict=False):  # no states: nothing was saved
            restore_saved(saved, worker.restore)

    def call(
        self, method: Callable[Concatenate[W, Arguments], Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> list[Result]:
        """Call a method of every worker, of several workers at once."""
        if len(self.workers) == 1:
            return [method(self.workers[0], *args, **kwargs)]
        return list(self._run(lambda worker: method(worker, *args, **kwargs), self.workers))

    def _save_states(self, paths: list[Path]) -> list[SavedState]:
        return [save_state(path, worker.state()) for worker, path in zip(self.workers, paths, strict=True)]

    def restart(self) -> None:
        """Workers of this process are never lost."""
        raise NotImplementedError

    def stop(self, is_done: bool) -> None:
        """Drop the workers."""
        self.workers = []


class SavingExecutor(ABC):
    """An executor that saves the results of jobs and the rounds of worker groups, within :func:`checkpointing`."""

    @abstractmethod
    def place(self, common: Any) -> Any:
        """Put a value where all blocks and workers find it; one that is there already stays as it is."""

    def distribute(
        self, job: Callable[[Any, Block], Result], placed: Any, blocks: Iterable[Block], codec: Codec | None = None, *,
        stop: Callable[[], None] | None = None, threads: int = 1,
    ) -> Iterator[Result]:  # fmt: skip
        """The job's results, in the order of the blocks, which are read as threads become free."""
        common, checkpoints = self.place(placed), _checkpoints.get()
        if codec is None or checkpoints is None:
            return self._run(job, common, blocks, stop, threads)
        run = partial(self._run, stop=stop, threads=threads)
        return checkpoints.results(job, common, list(blocks), run, codec)

    @abstractmethod
    def _run(
        self,
        job: Callable[[Any, Any], Result],
        placed: Any,
        blocks: Iterable[Any],
        stop: Callable[[], None] | None,
        threads: int,
    ) -> Iterator[Result]:
        """The job's results, in the order of the blocks."""

    def _open_checkpoint(self, placed: Any, partitions: Sequence[Any]) -> RoundCheckpoint:
        """The last saved round of a worker group that starts now."""
        checkpoints = _checkpoints.get()
        return RoundCheckpoint() if checkpoints is None else checkpoints.rounds(placed, list(partitions))


class LocalExecutor(SavingExecutor):
    """An executor in this process; nothing has to be sent."""

    workers: int

    @abstractmethod
    def map(
        self, function: Callable[[Block], Result], blocks: Iterable[Block], stop: Callable[[], None] | None = None
    ) -> Iterator[Result]:
        """The function's results, in the order of the blocks."""

    @property
    def worker_threads(self) -> tuple[int, ...]:
        """One worker, with all threads."""
        return (self.workers,)

    def place(self, common: Any) -> Any:
        """The value itself."""
        return common

    def _run(
        self,
        job: Callable[[Any, Any], Result],
        placed: Any,
        blocks: Iterable[Any],
        stop: Callable[[], None] | None,
        threads: int,
    ) -> Iterator[Result]:
        """Blocks at the same time; one after the other where each has threads of its own."""
        if threads > 1:
            return (job(placed, block) for block in blocks)
        return self.map(lambda block: job(placed, block), blocks, stop)

    def start_workers(
        self, make: Callable[[Any, Any, int], W], placed: Any, partitions: Sequence[Any], needs: Needs | None = None
    ) -> WorkerGroup[W]:
        """Workers in this process."""
        checkpoint = self._open_checkpoint(placed, partitions)
        return LocalWorkerGroup([make(placed, partition, 0) for partition in partitions], checkpoint, self.map)


class SerialExecutor(LocalExecutor):
    """Runs one block after the other in the calling thread."""

    workers = 1

    def map(
        self, function: Callable[[Block], Result], blocks: Iterable[Block], stop: Callable[[], None] | None = None
    ) -> Iterator[Result]:
        """The function's results, in the order of the blocks."""
        return (function(block) for block in in_time(blocks))


class ThreadExecutor(LocalExecutor):
    """Runs blocks on `workers` threads of this process, with at most twice as many blocks submitted."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(
        self, function: Callable[[Block], Result], blocks: Iterable[Block], stop: Callable[[], None] | None = None
    ) -> Iterator[Result]:
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


class CombinedExecutor:
    """Maps in this process; jobs and worker groups run on another executor, and may be saved."""

    def __init__(self, local: Executor, remote: Executor, checkpoints: Checkpoints | None) -> None:
        self.map, self.place = local.map, remote.place
        self.distribute, self.start_workers = remote.distribute, remote.start_workers
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
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise InputError("n_jobs is 0, and 0 threads can do no work; give a number of threads, or -1 for all cores.")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
