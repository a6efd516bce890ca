"""One way for long work to tell how far it is; silent until someone listens.

Work says ``with stage("training", total=n) as step: … step.advance()``.
A front end listens with ``with reporting_to(progress):``. Work that is made of much other work shows itself as one piece with
``with single_stage("comparing", total=n) as whole: whole.describe("svm") … whole.advance()``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Protocol, runtime_checkable

from ramify.parallel.deadlines import check_deadline


class Stage(Protocol):
    """One piece of work under way."""

    def advance(self, amount: float = 1) -> None:
        """Say that some more of it is done."""


@runtime_checkable
class DescribedStage(Stage, Protocol):
    """One piece of work under way that can say in words where it is."""

    def describe(self, what: str) -> None:
        """Say what is being done now."""


class Progress(Protocol):
    """Someone who listens."""

    def stage(self, title: str, total: float | None) -> AbstractContextManager[Stage]:
        """Begin to show a piece of work; a total of None means that nobody knows how long it is."""


class _Silent:
    def advance(self, amount: float = 1) -> None:
        check_deadline()


_listener: ContextVar[Progress | None] = ContextVar("ramify_progress", default=None)


def stage(title: str, total: float | None = None) -> AbstractContextManager[Stage]:
    """A piece of work, told to whoever listens; work that must end by some moment is broken off here, and where it advances."""
    check_deadline()
    listener = _listener.get()
    return nullcontext(_Silent()) if listener is None else listener.stage(title, total)


@runtime_checkable
class NotingProgress(Progress, Protocol):
    """Someone who listens, and takes down lines that should stay."""

    def note(self, line: str) -> None:
        """Something that happened and that a person should know."""


def note(line: str, level: int = logging.WARNING) -> None:
    """Tell of something that happened: to whoever listens, or else to the log, at this level."""
    _note_to(_listener.get(), line, level)


def _note_to(listener: Progress | None, line: str, level: int = logging.WARNING) -> None:
    if isinstance(listener, NotingProgress):
        listener.note(line)
    else:
        logging.getLogger("ramify").log(level, line)


def describe(step: Stage, what: str) -> None:
    """Say what is being done now, where there is someone who shows it."""
    if isinstance(step, DescribedStage):
        step.describe(what)


@contextmanager
def reporting_to(progress: Progress | None) -> Iterator[None]:
    """Let `progress` hear of all work in this block; None for nobody."""
    token = _listener.set(progress)
    try:
        yield
    finally:
        _listener.reset(token)


class SingleStage:
    """One piece of work in the place of all that happens inside it; what happens there is told in words."""

    def __init__(self, step: Stage, above: Progress | None = None) -> None:
        self._step, self._above, self._at = step, above, ""

    def advance(self, amount: float = 1) -> None:
        """Say that some more of it is done."""
        self._step.advance(amount)

    def describe(self, what: str) -> None:
        """Say what is being done now."""
        self._at = what
        self._show(what)

    @contextmanager
    def stage(self, title: str, total: float | None) -> Iterator[Stage]:
        """Take a piece of work inside as words."""
        self._show(f"{self._at}: {title}" if self._at else title)
        try:
            yield _Silent()
        finally:
            self._show(self._at)

    def note(self, line: str) -> None:
        """Pass on what a person should know; to the log where nobody above takes it."""
        _note_to(self._above, line)

    def _show(self, what: str) -> None:
        describe(self._step, what)


@contextmanager
def single_stage(title: str, total: float | None = None) -> Iterator[SingleStage]:
    """A piece of work, told to whoever listens, which alone shows how far everything in this block is."""
    with stage(title, total) as step:
        whole = SingleStage(step, _listener.get())
        with reporting_to(whole):
            yield whole
