"""What an executor is: it applies one function to many blocks and gives the results back in order.

Blocks are independent, so results do not depend on the executor. Kernels release the interpreter lock; threads
therefore suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

Block = TypeVar("Block")
Result = TypeVar("Result")


class Executor(Protocol):
    """Runs blocks of work somewhere."""

    def map(
        self, function: Callable[[Block], Result], blocks: Iterable[Block], stop: Callable[[], None] | None = None
    ) -> Iterator[Result]:
        """The function's results, in the order of the blocks; the first error stops the work and is raised.

        stop: called when no more results are wanted, so that long blocks under way can end early.
        """


def row_blocks(n_rows: int, bytes_per_row: int, budget: int = 1 << 26) -> list[slice]:
    """Cut rows into blocks whose results stay within a budget of bytes; no rows give no block.

    >>> row_blocks(5, 8, budget=16)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, budget // max(1, bytes_per_row))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
