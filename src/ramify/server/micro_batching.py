"""Texts of requests that come at about the same time are classified together.

What arrives in one turn of the event loop, or while all workers are busy, makes one batch for each model and options: under load,
batches grow by themselves, and nobody ever waits for a batch to fill. A batch that takes less time than handing it to another
thread and back is done on the spot; how long that is, each model's earlier batches tell.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import Any

from ramify.server.errors import busy, too_slow

MOST = 256  # texts that are classified together
QUICK = 0.004  # seconds up to which a batch is done on the spot
QUICK_CHARACTERS = 20_000
LATEST = 0.1  # how much the last batch changes what is expected of the next

Work = Callable[[list[str]], Sequence[Any]]
Job = tuple[list[str], "asyncio.Future[Sequence[Any]]"]


class Pace:
    """How long a model takes: for a batch at all, and for each text of it."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.seconds = seconds  # of a batch, more or less whatever its size, up to a few dozen texts

    def expect(self, size: int) -> float:
        """The seconds that a batch will take, more or less."""
        return self.seconds * max(1.0, size / 32)

    def note(self, size: int, seconds: float) -> None:
        """Learn from a batch."""
        self.seconds += LATEST * (seconds / max(1.0, size / 32) - self.seconds)


class Gatherer:
    """Classifies texts, as many together as are there; lives on one event loop."""

    def __init__(self, workers: int, waiting: int, tell: Callable[[int], None] = lambda size: None) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="classify")
        self._free, self._most_waiting, self._tell = workers, waiting, tell
        self._queues: OrderedDict[Any, tuple[Work, Pace, deque[Job]]] = OrderedDict()
        self._is_called = False
        self.waiting = 0

    async def ask(self, key: Any, work: Work, pace: Pace, texts: list[str], seconds: float) -> Sequence[Any]:
        """What `work` gives for these texts, one result a text; texts with the same key may share a call."""
        if self.waiting + len(texts) > self._most_waiting:
            raise busy()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[Any]] = loop.create_future()
        self._queues.setdefault(key, (work, pace, deque()))[2].append((texts, answer))
        self.waiting += len(texts)
        if not self._is_called:  # after all that is ready in this turn of the loop
            self._is_called = True
            loop.call_soon(self._start)
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            raise too_slow(seconds) from None

    def close(self) -> None:
        """Take no more work; what is under way ends."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self) -> None:
        self._is_called = False
        while self._free and self._queues:
            work, pace, jobs = self._take()
            if not jobs:
                continue
            texts = [text for some, _ in jobs for text in some]
            self._tell(len(texts))
            timed = partial(_timed, work, pace, texts)
            self._free -= 1
            if pace.expect(len(texts)) < QUICK and sum(map(len, texts)) < QUICK_CHARACTERS:
                result: asyncio.Future[Sequence[Any]] = asyncio.get_running_loop().create_future()
                try:
                    result.set_result(timed())
                except Exception as error:
                    result.set_exception(error)
                self._finish(jobs, result)
                return  # what else waits has its turn after other events
            done = asyncio.get_running_loop().run_in_executor(self._pool, timed)
            done.add_done_callback(partial(self._finish, jobs))

    def _take(self) -> tuple[Work, Pace, list[Job]]:
        """As many jobs of the key that came first as fit; whoever has gone away is left out."""
        key, (work, pace, queue) = next(iter(self._queues.items()))
        jobs: list[Job] = []
        size = 0
        while queue and (not jobs or size + len(queue[0][0]) <= MOST):
            texts, answer = queue.popleft()
            self.waiting -= len(texts)
            if not answer.done():
                jobs.append((texts, answer))
                size += len(texts)
        if queue:
            self._queues.move_to_end(key)
        else:
            del self._queues[key]
        return work, pace, jobs

    def _finish(self, jobs: list[Job], result: asyncio.Future[Sequence[Any]]) -> None:
        self._free += 1
        error = busy("it is about to stop") if result.cancelled() else result.exception()
        start = 0
        for texts, answer in jobs:
            if answer.done():
                pass
            elif error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(result.result()[start : start + len(texts)])
            start += len(texts)
        if self._queues and not self._is_called:
            self._is_called = True
            asyncio.get_running_loop().call_soon(self._start)


def _timed(work: Work, pace: Pace, texts: list[str]) -> Sequence[Any]:
    began = perf_counter()
    found = work(texts)
    pace.note(len(texts), perf_counter() - began)
    return found
