"""Progress and deadlines of long work.

Work reports ``with stage("training", total=n) as step: … step.advance()``, silently until a front end listens with
``with reporting_to(progress):``. Work that consists of much other work shows itself as one stage:
``with single_stage("comparing", total=n) as whole: whole.describe("svm") … whole.advance()``.

With a deadline, work stops where it reports progress, and between the blocks of an executor.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Protocol, TypeVar, runtime_checkable

Block = TypeVar("Block")
Result = TypeVar("Result")
Value = TypeVar("Value")
Clock = Callable[[], float]  # seconds since some moment


class OutOfTime(Exception):  # noqa: N818 - it is an event, not a fault
    """Work took longer than it may."""


class Stage(Protocol):
    """A piece of work in progress."""

    def advance(self, amount: float = 1) -> None:
        """Report that some more of it is done."""


@runtime_checkable
class DescribedStage(Stage, Protocol):
    """A piece of work in progress that can show in words what is being done."""

    def describe(self, what: str) -> None:
        """Show what is being done now."""


class Progress(Protocol):
    """A listener."""

    def stage(self, title: str, total: float | None) -> AbstractContextManager[Stage]:
        """Begin to show a piece of work; a total of None means that its length is unknown."""


@runtime_checkable
class NotingProgress(Progress, Protocol):
    """A listener that also takes lines that should stay."""

    def note(self, line: str) -> None:
        """Show a line."""


class _Silent:
    def advance(self, amount: float = 1) -> None:
        check_deadline()


_listener: ContextVar[Progress | None] = ContextVar("ramify_progress", default=None)
_deadline: ContextVar[tuple[float, Clock] | None] = ContextVar("ramify_deadline", default=None)


@contextmanager
def set_in_block(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Give a context variable a value in this block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def stage(title: str, total: float | None = None) -> AbstractContextManager[Stage]:
    """Begin a piece of work; deadlines are checked here, and wherever it advances."""
    check_deadline()
    listener = _listener.get()
    return nullcontext(_Silent()) if listener is None else listener.stage(title, total)


def note(line: str, level: int = logging.WARNING) -> None:
    """Report an event to the listener, or else to the log, at this level."""
    listener = _listener.get()
    if isinstance(listener, NotingProgress):
        listener.note(line)
    else:
        logging.getLogger("ramify").log(level, line)


def describe(step: Stage, what: str) -> None:
    """Show what is being done now, if the stage can."""
    if isinstance(step, DescribedStage):
        step.describe(what)


def reporting_to(progress: Progress | None) -> AbstractContextManager[None]:
    """Report all work of this block to `progress`; None for nobody."""
    return set_in_block(_listener, progress)


class SingleStage:
    """One stage for all work inside it, which is shown in words."""

    def __init__(self, step: Stage, outer: Progress | None = None) -> None:
        self._step, self._outer, self._current = step, outer, ""

    def advance(self, amount: float = 1) -> None:
        """Report that some more of it is done."""
        self._step.advance(amount)

    def describe(self, what: str) -> None:
        """Show what is being done now."""
        self._current = what
        describe(self._step, what)

    @contextmanager
    def stage(self, title: str, total: float | None) -> Iterator[Stage]:
        """Show an inner stage as words."""
        describe(self._step, f"{self._current}: {title}" if self._current else title)
        try:
            yield _Silent()
        finally:
            describe(self._step, self._current)

    def note(self, line: str) -> None:
        """Pass a line on to the outer listener, or else to the log."""
        with reporting_to(self._outer):
            note(line)


@contextmanager
def single_stage(title: str, total: float | None = None) -> Iterator[SingleStage]:
    """A stage that alone shows the progress of everything in this block."""
    with stage(title, total) as step:
        whole = SingleStage(step, _listener.get())
        with reporting_to(whole):
            yield whole


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
