"""Blocks on a few threads of this process, never more of them under way than twice the threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from ramify.execution.contract import Block, Result
from ramify.execution.deadlines import heed_deadline, with_deadline
from ramify.execution.here import Here


class ThreadExecutor(Here):
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
                    heed_deadline()
                    waiting.append(pool.submit(function, block))
                    if len(waiting) >= 2 * self.workers:
                        yield waiting.popleft().result()
                while waiting:
                    heed_deadline()
                    yield waiting.popleft().result()
            finally:
                if stop is not None:
                    stop()
                for future in waiting:
                    future.cancel()
