"""Micro-batching: texts of concurrent requests are classified together.

Requests that arrive in one iteration of the event loop, or while all workers are busy, form one batch per model and options.
Under load batches grow; no request ever waits for a batch to fill. A batch that is quicker than a switch to another thread
runs in the event loop; the model's earlier batches say how long it will take.

A request of many or long texts is classified in parts, and such requests take turns. Every second turn belongs to the short
requests, which are taken together. So a short request waits for one part of each worker, however many long ones there are.
Parts are smaller for models that take longer.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

from ramify.server.errors import busy, too_slow

MOST = 256  # texts of short requests that are classified together
SHORT, SHORT_CHARACTERS = 16, 20_000  # texts and characters of a short request
PART, PART_CHARACTERS = 128, 1 << 17  # texts and characters of a part of a long request; one text at least
FIRST_PART, PART_SECONDS = 8, 0.05  # texts before anything was measured; that a part should take at most
QUICK = 0.004  # seconds up to which a batch runs in the event loop
QUICK_CHARACTERS = 20_000
LATEST = 0.1  # weight of the last batch in the moving average

Work = Callable[[list[str]], Sequence[Any]]


class BatchTime:
    """A moving average of how long a batch of a model takes, and how many texts fit into a part."""

    def __init__(self, seconds: float = 1.0, part: int = PART) -> None:
        self.seconds = seconds  # of a batch of up to 32 texts
        self.part = part  # texts

    def expect(self, size: int) -> float:
        """The seconds that a batch will probably take."""
        return self.seconds * max(1.0, size / 32)

    def note(self, size: int, seconds: float) -> None:
        """Add a measured batch."""
        self.seconds += LATEST * (seconds / max(1.0, size / 32) - self.seconds)
        if seconds > PART_SECONDS:
            self.part = max(1, min(self.part, int(size * PART_SECONDS / seconds)))
        elif size >= self.part:
            self.part = min(PART, 2 * self.part)


class Job:
    """The texts of one request; the results of its parts may come in any order."""

    def __init__(self, texts: list[str], answer: asyncio.Future[Sequence[Any]]) -> None:
        self.texts, self.answer = texts, answer
        self.begun = 0  # texts that were taken
        self._found: list[Any] = [None] * len(texts)
        self._missing = len(texts)

    @property
    def is_short(self) -> bool:
        """Whether it is classified at once, together with others."""
        return len(self.texts) <= SHORT and sum(map(len, self.texts)) <= SHORT_CHARACTERS

    @property
    def left(self) -> int:
        """The texts that were not taken yet."""
        return len(self.texts) - self.begun

    def drop(self) -> int:
        """Take no more texts; returns how many were left."""
        left, self.begun = self.left, len(self.texts)
        return left

    def take(self, most: int = PART) -> Part:
        """The next part, of so many texts at most."""
        start, size = self.begun, 0
        while self.begun < len(self.texts) and self.begun - start < most:
            size += len(self.texts[self.begun])
            if size > PART_CHARACTERS and self.begun > start:
                break
            self.begun += 1
        return Part(self, start, self.begun)

    def add(self, start: int, found: Sequence[Any]) -> None:
        """The results of a part."""
        self._found[start : start + len(found)] = found
        self._missing -= len(found)
        if not self._missing and not self.answer.done():
            self.answer.set_result(self._found)


@dataclass(frozen=True, slots=True)
class Part:
    """Some texts of a job."""

    job: Job
    start: int
    end: int

    @property
    def texts(self) -> list[str]:
        """The texts."""
        return self.job.texts[self.start : self.end]


class _Lane:
    """Jobs that wait, by key; the keys take turns."""

    def __init__(self) -> None:
        self._queues: OrderedDict[Any, tuple[Work, BatchTime, deque[Job]]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add(self, key: Any, work: Work, batch_time: BatchTime, job: Job) -> None:
        """A job comes last."""
        self._queues.setdefault(key, (work, batch_time, deque()))[2].append(job)

    def take(self, are_short: bool) -> tuple[Work, BatchTime, list[Part]]:
        """Whole short jobs of the oldest key, or a part of its oldest job; without those that were dropped."""
        key, (work, batch_time, queue) = next(iter(self._queues.items()))
        parts: list[Part] = []
        size = 0
        most = min(MOST, 2 * batch_time.part)
        while queue and (not parts or (are_short and size + len(queue[0].texts) <= most)):
            job = queue.popleft()
            if not job.left:
                continue
            parts.append(job.take(batch_time.part))
            size += parts[-1].end - parts[-1].start
            if job.left:
                queue.append(job)  # last: the others come first
                break
        if queue:
            self._queues.move_to_end(key)
        else:
            del self._queues[key]
        return work, batch_time, parts


class MicroBatcher:
    """Classifies the waiting texts in batches; belongs to one event loop."""

    def __init__(self, workers: int, waiting: int, tell: Callable[[int], None] = lambda size: None) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="classify")
        self._free, self._most_waiting, self._tell = workers, waiting, tell
        self._short, self._long = _Lane(), _Lane()
        self._was_short = False
        self._is_called = False
        self.waiting = 0

    async def ask(self, key: Any, work: Work, batch_time: BatchTime, texts: list[str], seconds: float) -> Sequence[Any]:
        """The result of `work` for each text; texts with the same key may share a call."""
        if self.waiting + len(texts) > self._most_waiting:
            raise busy()
        loop = asyncio.get_running_loop()
        job = Job(texts, loop.create_future())
        (self._short if job.is_short else self._long).add(key, work, batch_time, job)
        self.waiting += len(texts)
        if not self._is_called:  # after everything that is ready in this iteration of the loop
            self._is_called = True
            loop.call_soon(self._start)
        try:
            async with asyncio.timeout(seconds):
                return await job.answer
        except TimeoutError:
            raise too_slow(seconds) from None
        finally:
            self.waiting -= job.drop()

    def close(self) -> None:
        """Accept no more work; running batches finish."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self) -> None:
        self._is_called = False
        while self._free and (self._short or self._long):
            are_short = bool(self._short) and not (self._was_short and self._long)
            self._was_short = are_short
            work, batch_time, parts = (self._short if are_short else self._long).take(are_short)
            if not parts:
                continue
            texts = [text for part in parts for text in part.texts]
            self.waiting -= len(texts)
            self._tell(len(texts))
            timed = partial(_timed, work, batch_time, texts)
            self._free -= 1
            if are_short and batch_time.expect(len(texts)) < QUICK and sum(map(len, texts)) < QUICK_CHARACTERS:
                result: asyncio.Future[Sequence[Any]] = asyncio.get_running_loop().create_future()
                try:
                    result.set_result(timed())
                except Exception as error:
                    result.set_exception(error)
                self._finish(parts, result)
                return  # other events come before the next batch
            done = asyncio.get_running_loop().run_in_executor(self._pool, timed)
            done.add_done_callback(partial(self._finish, parts))

    def _finish(self, parts: list[Part], result: asyncio.Future[Sequence[Any]]) -> None:
        self._free += 1
        error = busy("it is stopping") if result.cancelled() else result.exception()
        start = 0
        for part in parts:
            size = part.end - part.start
            if error is None:
                part.job.add(part.start, result.result()[start : start + size])
            elif not part.job.answer.done():
                part.job.answer.set_exception(error)
            start += size
        if (self._short or self._long) and not self._is_called:
            self._is_called = True
            asyncio.get_running_loop().call_soon(self._start)


def _timed(work: Work, batch_time: BatchTime, texts: list[str]) -> Sequence[Any]:
    began = perf_counter()
    found = work(texts)
    batch_time.note(len(texts), perf_counter() - began)
    return found
