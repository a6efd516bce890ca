"""Micro-batching: texts of concurrent requests are classified together.

Requests that arrive in one iteration of the event loop, or while all workers are busy, form one batch per model and options.
Under load batches grow; no request ever waits for a batch to fill. A batch that is quicker than a switch to another thread
runs in the event loop; the model's earlier batches say how long it will take.
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
QUICK = 0.004  # seconds up to which a batch runs in the event loop
QUICK_CHARACTERS = 20_000
LATEST = 0.1  # weight of the last batch in the moving average

Work = Callable[[list[str]], Sequence[Any]]
Job = tuple[list[str], "asyncio.Future[Sequence[Any]]"]


class BatchTime:
    """A moving average of how long a batch of a model takes."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.seconds = seconds  # of a batch of up to 32 texts

    def expect(self, size: int) -> float:
        """The seconds that a batch will probably take."""
        return self.seconds * max(1.0, size / 32)

    def note(self, size: int, seconds: float) -> None:
        """Add a measured batch."""
        self.seconds += LATEST * (seconds / max(1.0, size / 32) - self.seconds)


class MicroBatcher:
    """Classifies the waiting texts in batches; belongs to one event loop."""

    def __init__(self, workers: int, waiting: int, tell: Callable[[int], None] = lambda size: None) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="classify")
        self._free, self._most_waiting, self._tell = workers, waiting, tell
        self._queues: OrderedDict[Any, tuple[Work, BatchTime, deque[Job]]] = OrderedDict()
        self._is_called = False
        self.waiting = 0

    async def ask(self, key: Any, work: Work, batch_time: BatchTime, texts: list[str], seconds: float) -> Sequence[Any]:
        """The result of `work` for each text; texts with the same key may share a call."""
        if self.waiting + len(texts) > self._most_waiting:
            raise busy()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[Any]] = loop.create_future()
        self._queues.setdefault(key, (work, batch_time, deque()))[2].append((texts, answer))
        self.waiting += len(texts)
        if not self._is_called:  # after everything that is ready in this iteration of the loop
            self._is_called = True
            loop.call_soon(self._start)
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            raise too_slow(seconds) from None

    def close(self) -> None:
        """Accept no more work; running batches finish."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self) -> None:
        self._is_called = False
        while self._free and self._queues:
            work, batch_time, jobs = self._take()
            if not jobs:
                continue
            texts = [text for some, _ in jobs for text in some]
            self._tell(len(texts))
            timed = partial(_timed, work, batch_time, texts)
            self._free -= 1
            if batch_time.expect(len(texts)) < QUICK and sum(map(len, texts)) < QUICK_CHARACTERS:
                result: asyncio.Future[Sequence[Any]] = asyncio.get_running_loop().create_future()
                try:
                    result.set_result(timed())
                except Exception as error:
                    result.set_exception(error)
                self._finish(jobs, result)
                return  # other events come before the next batch
            done = asyncio.get_running_loop().run_in_executor(self._pool, timed)
            done.add_done_callback(partial(self._finish, jobs))

    def _take(self) -> tuple[Work, BatchTime, list[Job]]:
        """As many jobs of the oldest key as fit into a batch, without those that were cancelled."""
        key, (work, batch_time, queue) = next(iter(self._queues.items()))
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
        return work, batch_time, jobs

    def _finish(self, jobs: list[Job], result: asyncio.Future[Sequence[Any]]) -> None:
        self._free += 1
        error = busy("it is stopping") if result.cancelled() else result.exception()
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


def _timed(work: Work, batch_time: BatchTime, texts: list[str]) -> Sequence[Any]:
    began = perf_counter()
    found = work(texts)
    batch_time.note(len(texts), perf_counter() - began)
    return found
