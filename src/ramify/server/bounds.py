"""What bounds the work of a server: memory, threads, and places for tables.

Every request has a :class:`Call`, which routes and pools find by itself. It knows how much memory the request has reserved, how
long the server has waited for its client, and when the client has gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, ContextVar
from functools import partial
from time import monotonic
from typing import Any, ParamSpec, TypeVar

from ramify.server.errors import ApiError, busy, crowded_out, gone, too_slow

PATIENCE = 2.0  # seconds that a client may let the server wait before another one may take its place
HANDOVER = 2.0  # seconds that a new table waits for a place that is being freed
PROGRESS = 1 << 16  # bytes that a client must send or read for its waiting to be forgotten

MOST_BACKGROUND = 64  # tasks
BACKGROUND_SHARE = 4  # a fourth of the memory is for them

log = logging.getLogger("ramify.server")

Result = TypeVar("Result")
Given = ParamSpec("Given")


class MemoryBudget:
    """The memory that all requests together may take; each reserves what it is expected to take before it takes it."""

    def __init__(self, most: int) -> None:
        self.most, self.used = most, 0

    def reserve(self, count: int, held: int) -> None:
        """Add to what a request has reserved; 413 if it needs more than there is, 503 if others need it now."""
        if held + count > self.most:
            needed = f"needs about {(held + count) / 1e6:,.0f} MB of memory, and the server has {self.most / 1e6:,.0f} MB"
            raise ApiError(413, "memory", f"the request {needed}; send it in parts.")
        if self.used + count > self.most:
            raise busy("other requests need its memory")
        self.used += count

    def release(self, count: int) -> None:
        """Give back what a request has reserved."""
        self.used -= count


class WaitMeter:
    """How long the server has waited for a client in one direction, since the client last moved a good piece."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._waited, self._moved = 0.0, 0
        self._since: float | None = None

    def begin(self) -> None:
        """The server waits from now on."""
        self._since = self._clock()

    def end(self, moved: int) -> None:
        """The wait is over; so many bytes moved. A few bytes now and then do not count as progress."""
        self._waited, self._since, self._moved = self.seconds, None, self._moved + moved
        if self._moved >= PROGRESS:
            self._waited, self._moved = 0.0, 0

    @property
    def seconds(self) -> float:
        """The seconds that the server has waited."""
        return self._waited + (0.0 if self._since is None else self._clock() - self._since)


class Call:
    """One request: the memory that it has reserved, and whether its client keeps the server waiting.

    has_all: whether its body has arrived. wait_until_gone: returns when the client has gone, or has the whole answer.
    """

    def __init__(self, memory: MemoryBudget, wait_until_gone: Callable[[], Awaitable[Any]]) -> None:
        self._memory, self.wait_until_gone = memory, wait_until_gone
        self.reserved, self._threads = 0, 0
        self.has_all, self._has_ended = False, False
        self.reading, self.sending = WaitMeter(), WaitMeter()

    @property
    def waited(self) -> float:
        """The seconds that the server has waited for the client to send or to read."""
        return max(self.reading.seconds, self.sending.seconds)

    def end_reading(self) -> None:
        """The body has arrived; from now on the client waits for the server."""
        self.has_all, self.reading = True, WaitMeter()

    def reserve(self, count: int) -> None:
        """Reserve memory until the request has ended."""
        self._memory.reserve(count, self.reserved)
        self.reserved += count

    def reserve_response(self, count: int) -> None:
        """The answer is there: from now on so much memory is needed, unless a thread is still at work."""
        if count > self.reserved:
            self.reserve(count - self.reserved)
        elif not self._threads:
            self._memory.release(self.reserved - count)
            self.reserved = count

    def hold(self) -> None:
        """A thread works for the request; its memory is held until the thread has ended, even if the request ends earlier."""
        self._threads += 1

    def let_go(self) -> None:
        """A thread has ended."""
        self._threads -= 1
        self._release_if_over()

    def end(self) -> None:
        """The request has ended."""
        self._has_ended = True
        self._release_if_over()

    def _release_if_over(self) -> None:
        if self._has_ended and not self._threads:
            self._memory.release(self.reserved)
            self.reserved = 0


CURRENT: ContextVar[Call | None] = ContextVar("call", default=None)  # the request that this task works for


class BackgroundTasks:
    """Work that goes on after its request has ended: so much at a time, in so much of the memory."""

    def __init__(self, memory: MemoryBudget) -> None:
        self._memory, self._own = memory, MemoryBudget(memory.most // BACKGROUND_SHARE)
        self._tasks: set[asyncio.Task[None]] = set()  # the event loop holds no reference to them

    def start(self, work: Callable[[], Coroutine[Any, Any, None]], count: int) -> None:
        """Start work that takes so much memory; raise if too much is under way."""
        if len(self._tasks) >= MOST_BACKGROUND:
            raise busy("too many documents wait to be queued")
        self._own.reserve(count, 0)
        try:
            self._memory.reserve(count, 0)
        except ApiError:
            self._own.release(count)
            raise
        # in a context without the call: that its client has gone means nothing here
        task = asyncio.get_running_loop().create_task(work(), context=Context())
        self._tasks.add(task)
        task.add_done_callback(partial(self._end, count))

    def _end(self, count: int, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._own.release(count)
        self._memory.release(count)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("defect", exc_info=error)


# ---- places for tables --------------------------------------------------------------------------------------------------


class Slot:
    """The place of one table. task: what works for it."""

    def __init__(self, call: Call | None, task: asyncio.Task[Any] | None) -> None:
        self._call, self._task = call, task
        self.is_crowded_out = False

    @property
    def waited(self) -> float:
        """The seconds that its client has kept the server waiting."""
        return 0.0 if self._call is None or self.is_crowded_out else self._call.waited

    def crowd_out(self) -> None:
        """End the table, because another one needs its place."""
        self.is_crowded_out = True
        if self._task is not None:
            self._task.cancel()

    def refusal(self) -> ApiError | None:
        """Call it when the task was cancelled: the error to send if this was done here, or None."""
        if not self.is_crowded_out:
            return None
        if self._task is not None:
            self._task.uncancel()
        return crowded_out()


class UploadSlots:
    """Places for a fixed number of tables. When all are taken, a new table gets that of the slowest client."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._taken: list[Slot] = []
        self._newcomers: deque[asyncio.Future[None]] = deque()

    async def enter(self, what: str) -> Slot:
        """Take a slot; if all are in use and no client keeps the server waiting, raise."""
        if self._free:
            self._free -= 1
        else:
            slowest = max(self._taken, key=lambda each: each.waited, default=None)
            if slowest is None or slowest.waited < PATIENCE:
                raise busy(what)
            slowest.crowd_out()
            await self._handed_over(what)
        slot = Slot(CURRENT.get(), asyncio.current_task())
        self._taken.append(slot)
        return slot

    def leave(self, slot: Slot) -> None:
        """Free the slot."""
        self._taken.remove(slot)
        self._pass_on()

    async def _handed_over(self, what: str) -> None:
        """Wait a moment for a slot that is being freed."""
        freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._newcomers.append(freed)
        try:
            async with asyncio.timeout(HANDOVER):
                await asyncio.shield(freed)
        except TimeoutError:
            if not freed.done():  # otherwise the slot came at the last moment
                raise busy(what) from None
        except BaseException:
            if freed.done():
                self._pass_on()
            raise
        finally:
            if not freed.done():
                self._newcomers.remove(freed)

    def _pass_on(self) -> None:
        if self._newcomers:
            self._newcomers.popleft().set_result(None)
        else:
            self._free += 1


# ---- threads --------------------------------------------------------------------------------------------------------------


class BoundedPool:
    """A thread pool with a bounded queue; a full queue raises 503."""

    def __init__(self, workers: int, waiting: int, name: str) -> None:
        self._room = workers + waiting
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=name)

    async def run(
        self, seconds: float | None, work: Callable[Given, Result], *args: Given.args, **options: Given.kwargs
    ) -> Result:
        """Run `work` in the pool; after `seconds`, or when the client has gone, stop waiting for it.

        Work that has not begun by then never begins; if it has begun, its thread finishes, and holds the memory of the request.
        """
        if not self._room:
            raise busy("other long work is under way")
        call = CURRENT.get()
        begun = self._pool.submit(partial(work, *args, **options))
        done = asyncio.wrap_future(begun)
        self._room -= 1
        if call is not None:
            call.hold()
        done.add_done_callback(partial(self._end, call))
        leaving = {asyncio.ensure_future(call.wait_until_gone())} if call is not None and call.has_all else set()
        try:
            await asyncio.wait({done, *leaving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not done.done():
                begun.cancel()
            for waiting in leaving:
                waiting.cancel()
        if done.done():
            if done.cancelled():
                raise busy("it is stopping")
            return done.result()
        raise gone() if any(waiting.done() for waiting in leaving) else too_slow(seconds or 0)

    def _end(self, call: Call | None, done: asyncio.Future[Any]) -> None:
        self._room += 1
        if call is not None:
            call.let_go()
        if not done.cancelled():
            done.exception()  # retrieved, so that asyncio does not warn

    def close(self) -> None:
        """Take no more work, and wait for what is under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)
