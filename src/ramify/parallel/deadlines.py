"""Work that must end by some moment: it is broken off where it tells how far it is, and between blocks of an executor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ramify.parallel.base import Block, Result

Clock = Callable[[], float]  # seconds since some moment


class OutOfTime(Exception):  # noqa: N818 - what happened, and nobody's mistake
    """Work went on for longer than it may."""


@dataclass(frozen=True, slots=True)
class _Deadline:
    moment: float
    clock: Clock


_deadline: ContextVar[_Deadline | None] = ContextVar("ramify_deadline", default=None)


@contextmanager
def deadline_at(moment: float | None, clock: Clock = time.monotonic) -> Iterator[None]:
    """Break off the work of this block with :class:`OutOfTime` once the clock is past a moment; None for no such moment.

    A block within can only be given less time than the one around it. Work is not stopped at once: a kernel ends first.

    >>> with deadline_at(2.0, clock=lambda: 1.0):
    ...     check_deadline()
    """
    around = _deadline.get()
    if moment is not None and around is not None:
        moment = min(moment, around.moment)
    token = _deadline.set(around if moment is None else _Deadline(moment, clock))
    try:
        yield
    finally:
        _deadline.reset(token)


def with_deadline(work: Callable[[Block], Result]) -> Callable[[Block], Result]:
    """The same work, which heeds the deadline of this thread wherever it is done."""
    deadline = _deadline.get()
    if deadline is None:
        return work

    def heeding(block: Block) -> Result:
        token = _deadline.set(deadline)
        try:
            return work(block)
        finally:
            _deadline.reset(token)

    return heeding


def check_deadline() -> None:
    """Break off here if it is late."""
    deadline = _deadline.get()
    if deadline is not None and deadline.clock() > deadline.moment:
        raise OutOfTime
