"""Deadlines: work stops where it reports progress, and between the blocks of an executor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TypeVar

Block = TypeVar("Block")
Result = TypeVar("Result")
Value = TypeVar("Value")
Clock = Callable[[], float]  # seconds since some moment


class OutOfTime(Exception):  # noqa: N818 - it is an event, not a fault
    """Work took longer than it may."""


_deadline: ContextVar[tuple[float, Clock] | None] = ContextVar("ramify_deadline", default=None)


@contextmanager
def set_in_block(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Give a context variable a value in this block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def deadline_at(moment: float | None, clock: Clock = time.monotonic) -> AbstractContextManager[None]:
    """Stop the work of this block with :class:`OutOfTime` once the clock is past a moment; None for no deadline.

    An inner block can only shorten the deadline of an outer one. Work does not stop at once: a running kernel ends first.

    >>> with deadline_at(2.0, clock=lambda: 1.0):
    ...     check_deadline()
    """
    outer = _deadline.get()
    if moment is not None and outer is not None:
        moment = min(moment, outer[0])
    return set_in_block(_deadline, outer if moment is None else (moment, clock))


def with_deadline(work: Callable[[Block], Result]) -> Callable[[Block], Result]:
    """The same function, with the deadline of this thread wherever it runs."""
    deadline = _deadline.get()
    if deadline is None:
        return work

    def limited(block: Block) -> Result:
        with set_in_block(_deadline, deadline):
            return work(block)

    return limited


def check_deadline() -> None:
    """Raise :class:`OutOfTime` if the deadline has passed."""
    deadline = _deadline.get()
    if deadline is not None and deadline[1]() > deadline[0]:
        raise OutOfTime


def in_time(blocks: Iterable[Block]) -> Iterator[Block]:
    """Blocks one after the other, as long as the deadline has not passed."""
    for block in blocks:
        check_deadline()
        yield block
