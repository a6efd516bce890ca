"""Where work runs and is kept, for all that happens in a block: said once, by whoever starts it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ramify.errors import InputError
from ramify.parallel.base import Block, Codec, Executor, Needs, Result, Worker
from ramify.parallel.checkpoints import Checkpoints, Journal, SavedState, is_pair, restore_saved, save_state, strange
from ramify.parallel.deadlines import check_deadline, with_deadline

if TYPE_CHECKING:
    from ramify.parallel.base import Executor
    from ramify.parallel.checkpoints import Checkpoints


_executor: ContextVar[Executor | None] = ContextVar("ramify_executor", default=None)
_checkpoints: ContextVar[Checkpoints | None] = ContextVar("ramify_checkpoints", default=None)
_shards: ContextVar[Path | None] = ContextVar("ramify_shards", default=None)


@contextmanager
def running_on(executor: Executor | None) -> Iterator[None]:
    """Let crews and spread work of this block run on an executor, such as a cluster; None for threads, as always.

    >>> from ramify.parallel import ThreadExecutor, choose_executor
    >>> with running_on(ThreadExecutor(3)):
    ...     choose_executor(1).worker_threads
    (3,)
    """
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


@contextmanager
def checkpointing(checkpoints: Checkpoints | None) -> Iterator[None]:
    """Let the work of this block be kept, so that it can be taken up again; other runs cannot use the same directory then."""
    with nullcontext() if checkpoints is None else checkpoints.in_use():
        token = _checkpoints.set(checkpoints)
        try:
            yield
        finally:
            _checkpoints.reset(token)


@contextmanager
def writing_shards_to(directory: Path | None) -> Iterator[None]:
    """Let large models that crews of this block find be written there by their members, shard by shard, and never gathered."""
    token = _shards.set(directory)
    try:
        yield
    finally:
        _shards.reset(token)


def shard_directory() -> Path | None:
    """What :func:`writing_shards_to` said."""
    return _shards.get()


def current_executor() -> Executor | None:
    """What :func:`running_on` said."""
    return _executor.get()


def is_distributed() -> bool:
    """Whether spread work of this block may run on other machines, where paths must say all."""
    return _executor.get() is not None


def current_checkpoints() -> Checkpoints | None:
    """What :func:`checkpointing` said."""
    return _checkpoints.get()


# --------------------------------------------------------------------------------------------------------------
# Crews, wherever their members are: each answer is written down, so that work can be taken up again.


class JournalledCrew(ABC):
    """What all crews share: answers that an earlier run got are given again without any work."""

    def __init__(self, journal: Journal, n_members: int) -> None:
        self.journal, self.n_members = journal, n_members
        if len(journal.states) != n_members and (journal.states or journal.known):
            raise strange(f"states of {len(journal.states)} members, not of {n_members}")

    def __enter__(self) -> JournalledCrew:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        self.dismiss(is_done=error is None)

    @abstractmethod
    def _call(self, what: str, arguments: tuple[Any, ...]) -> list[Any]:
        """What every member gives."""

    @abstractmethod
    def _save(self, paths: list[Path]) -> list[SavedState]:
        """Have every member write its state to a path of its own."""

    @abstractmethod
    def dismiss(self, is_done: bool) -> None:
        """Let the members go; where work is broken off, without waiting for them."""

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """What every member's method gives, in their order: numbers, and lists of numbers, that are written down."""
        if self.journal.is_recalling:
            answer = self._recalled(what)
            if not isinstance(answer, list) or len(answer) != self.n_members:
                raise strange("an answer that does not come from its members")
            return answer
        answer = [_plain(each) for each in self._call(what, arguments)]
        self.journal.note(what, answer)
        return answer

    def _recalled(self, what: str) -> Any:
        """The next answer that an earlier run got; refused where that had asked something else."""
        entry = self.journal.recall()
        if not is_pair(entry) or entry[0] != what:
            raise strange(f"an answer to something else than {what!r}")
        return entry[1]

    def exchange(self, give: str, combine: Callable[[list[Any]], Any], take: str) -> None:
        """Every member gives something; what is combined of that, all of them take."""
        what = f"{give}, {take}"
        if self.journal.is_recalling:
            if self._recalled(what) is not None:
                raise strange("an answer where there was none")
            return
        self._call(take, (combine(self._call(give, ())),))
        self.journal.note(what, None)

    def fetch(self, what: str, *arguments: Any) -> Iterator[Any]:
        """What members' methods give at the end, in their order: large things, that are not written down."""
        return iter(self._call(what, arguments))

    def told(self) -> str:
        """Nothing is sent anywhere."""
        return ""

    def keep(self) -> None:
        """Say that work can be taken up again from here: if it is time, a checkpoint is written."""
        if self.journal.is_due():
            self.journal.write(self._save, self.n_members)


class LocalWorkerGroup(JournalledCrew):
    """Members in this process, one after the other or side by side."""

    def __init__(self, members: Sequence[Worker], journal: Journal, run: Callable[..., Iterator[Any]]) -> None:
        super().__init__(journal, len(members))
        self.members, self._run = members, run
        for member, kept in zip(members, journal.states, strict=False):  # no states: nothing was done before
            restore_saved(kept, member.restore)

    def _call(self, what: str, arguments: tuple[Any, ...]) -> list[Any]:
        if len(self.members) == 1:
            return [getattr(self.members[0], what)(*arguments)]
        return list(self._run(lambda member: getattr(member, what)(*arguments), self.members))

    def _save(self, paths: list[Path]) -> list[SavedState]:
        return [save_state(path, member.state()) for member, path in zip(self.members, paths, strict=True)]

    def dismiss(self, is_done: bool) -> None:
        """Let the members go."""
        self.members = []


def _plain(answer: Any) -> Any:
    """An answer as it also comes out of a journal, so that it does not matter whether it was written down.

    >>> _plain((np.float32(0.5), [np.int64(3), True], None))
    [0.5, [3, True], None]
    """
    if isinstance(answer, (np.generic, np.ndarray)):
        return answer.tolist()
    return [_plain(each) for each in answer] if isinstance(answer, (list, tuple)) else answer


# --------------------------------------------------------------------------------------------------------------
# What executors of this process share: nothing has to be sent anywhere.


class LocalExecutor(ABC):
    """An executor in this process."""

    workers: int

    @abstractmethod
    def map(
        self, function: Callable[[Block], Result], blocks: Iterable[Block], stop: Callable[[], None] | None = None
    ) -> Iterator[Result]:
        """The function's results, in the order of the blocks."""

    @property
    def worker_threads(self) -> tuple[int, ...]:
        """One member, with all threads."""
        return (self.workers,)

    def place(self, common: Any) -> Any:
        """A thing is where it is."""
        return common

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
        """The job's results, in the order of the blocks, which are taken as room becomes free."""

        def run(job: Callable[[Any, Block], Result], some: Iterable[Block]) -> Iterator[Result]:
            return self._run(job, placed, some, stop, threads)

        checkpoints = current_checkpoints()
        if codec is None or checkpoints is None:
            return run(job, blocks)
        return checkpoints.results(job, placed, list(blocks), run, codec)

    def _run(
        self,
        job: Callable[[Any, Block], Result],
        placed: Any,
        blocks: Iterable[Block],
        stop: Callable[[], None] | None,
        threads: int,
    ) -> Iterator[Result]:
        """Blocks side by side; one after the other where each has threads of its own."""
        if threads > 1:
            return (job(placed, block) for block in blocks)
        return self.map(lambda block: job(placed, block), blocks, stop)

    def start_workers(
        self, make: Callable[[Any, Any, int], Worker], placed: Any, shares: Sequence[Any], needs: Needs | None = None
    ) -> LocalWorkerGroup:
        """Members in this process."""
        checkpoints = current_checkpoints()
        journal = Journal() if checkpoints is None else checkpoints.journal(placed, list(shares))
        return LocalWorkerGroup([make(placed, share, 0) for share in shares], journal, self.map)


# --------------------------------------------------------------------------------------------------------------
# One block after the other, in the calling thread.


class SerialExecutor(LocalExecutor):
    """Runs every block where it is asked for."""

    workers = 1

    def map(
        self, function: Callable[[Block], Result], blocks: Iterable[Block], stop: Callable[[], None] | None = None
    ) -> Iterator[Result]:
        """The function's results, in the order of the blocks."""
        for block in blocks:
            check_deadline()
            yield function(block)


# --------------------------------------------------------------------------------------------------------------
# Blocks on a few threads of this process, never more of them under way than twice the threads.


class ThreadExecutor(LocalExecutor):
    """Runs blocks on `workers` threads."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(
        self, function: Callable[[Block], Result], blocks: Iterable[Block], stop: Callable[[], None] | None = None
    ) -> Iterator[Result]:
        """The function's results, in the order of the blocks; blocks are taken as room becomes free.

        stop: called before waiting for blocks under way whose results nobody wants any more.
        """
        waiting: deque[Future[Result]] = deque()
        function = with_deadline(function)
        with ThreadPoolExecutor(self.workers, thread_name_prefix="ramify") as pool:
            try:
                for block in blocks:
                    check_deadline()
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


# --------------------------------------------------------------------------------------------------------------
# From scikit-learn's ``n_jobs`` to an executor.


def choose_executor(n_jobs: int | None) -> Executor:
    """Serial for None or 1, threads for more, all cores for -1, as scikit-learn counts them.

    Where :func:`~ramify.parallel.running_on` has said so, crews and spread work run on what was said there.
    """
    workers = count_workers(n_jobs)
    here = SerialExecutor() if workers == 1 else ThreadExecutor(workers)
    there, checkpoints = current_executor() or here, current_checkpoints()
    if there is here and checkpoints is None:
        return here
    return CombinedExecutor(here, there, checkpoints)


@dataclass(frozen=True, slots=True)
class CombinedExecutor:
    """An executor that maps in this process, and sends crews and spread work elsewhere, perhaps, where it may be kept."""

    here: Executor
    there: Executor
    checkpoints: Checkpoints | None = None

    @property
    def worker_threads(self) -> tuple[int, ...]:
        """Those elsewhere, or those with which work began that is taken up again; whoever asks first settles them."""
        return (
            self.there.worker_threads
            if self.checkpoints is None
            else self.checkpoints.agreed_workers(self.there.worker_threads)
        )

    @property
    def map(self) -> Any:
        """Functions that share memory run here."""
        return self.here.map

    @property
    def place(self) -> Any:
        """Things are placed elsewhere."""
        return self.there.place

    @property
    def distribute(self) -> Any:
        """Work that stands alone runs elsewhere."""
        return self.there.distribute

    @property
    def start_workers(self) -> Any:
        """Crews work elsewhere."""
        return self.there.start_workers


def count_workers(n_jobs: int | None) -> int:
    """The number of workers that `n_jobs` means on this machine.

    >>> count_workers(None), count_workers(3)
    (1, 3)
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise InputError("0 threads can do no work (n_jobs is 0); give a number of threads, or -1 for all cores.")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
