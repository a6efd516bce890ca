"""One block after the other, in the calling thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ramify.execution.contract import Block, Result
from ramify.execution.deadlines import heed_deadline
from ramify.execution.here import Here


class SerialExecutor(Here):
    """Runs every block where it is asked for."""

    workers = 1

    def map(
        self, function: Callable[[Block], Result], blocks: Iterable[Block], stop: Callable[[], None] | None = None
    ) -> Iterator[Result]:
        """The function's results, in the order of the blocks."""
        for block in blocks:
            heed_deadline()
            yield function(block)
