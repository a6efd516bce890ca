"""One way for long work to tell how far it is; silent until someone listens.

Work says ``with stage("training", total=n) as step: … step.advance()``.
A front end listens with ``with reporting_to(progress):``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Protocol


class Stage(Protocol):
    """One piece of work under way."""

    def advance(self, amount: float = 1) -> None:
        """Say that some more of it is done."""


class Progress(Protocol):
    """Someone who listens."""

    def stage(self, title: str, total: float | None) -> AbstractContextManager[Stage]:
        """Begin to show a piece of work; a total of None means that nobody knows how long it is."""


class _Silent:
    def advance(self, amount: float = 1) -> None:
        pass


_listener: ContextVar[Progress | None] = ContextVar("ramify_progress", default=None)


def stage(title: str, total: float | None = None) -> AbstractContextManager[Stage]:
    """A piece of work, told to whoever listens."""
    listener = _listener.get()
    return nullcontext(_Silent()) if listener is None else listener.stage(title, total)


@contextmanager
def reporting_to(progress: Progress) -> Iterator[None]:
    """Let `progress` hear of all work in this block."""
    token = _listener.set(progress)
    try:
        yield
    finally:
        _listener.reset(token)
