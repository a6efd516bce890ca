"""What executors of this process share: nothing has to be sent anywhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ramify.execution.checkpoints import Journal
from ramify.execution.contract import Block, Keeper, Member, Needs, Result
from ramify.execution.crews import CrewHere
from ramify.execution.surroundings import current_checkpoints


class Here(ABC):
    """An executor in this process."""

    workers: int

    @abstractmethod
    def map(
        self, function: Callable[[Block], Result], blocks: Iterable[Block], stop: Callable[[], None] | None = None
    ) -> Iterator[Result]:
        """The function's results, in the order of the blocks."""

    @property
    def teams(self) -> tuple[int, ...]:
        """One member, with all threads."""
        return (self.workers,)

    def place(self, common: Any) -> Any:
        """A thing is where it is."""
        return common

    def spread(
        self,
        job: Callable[[Any, Block], Result],
        placed: Any,
        blocks: Iterable[Block],
        keeper: Keeper | None = None,
        *,
        stop: Callable[[], None] | None = None,
        threads: int = 1,
    ) -> Iterator[Result]:
        """The job's results, in the order of the blocks, which are taken as room becomes free."""

        def run(job: Callable[[Any, Block], Result], some: Iterable[Block]) -> Iterator[Result]:
            return self._run(job, placed, some, stop, threads)

        checkpoints = current_checkpoints()
        if keeper is None or checkpoints is None:
            return run(job, blocks)
        return checkpoints.results(job, placed, list(blocks), run, keeper)

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

    def gather(
        self, make: Callable[[Any, Any, int], Member], placed: Any, shares: Sequence[Any], needs: Needs | None = None
    ) -> CrewHere:
        """Members in this process."""
        checkpoints = current_checkpoints()
        journal = Journal() if checkpoints is None else checkpoints.journal(placed, list(shares))
        return CrewHere([make(placed, share, 0) for share in shares], journal, self.map)
