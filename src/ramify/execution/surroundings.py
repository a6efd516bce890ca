"""Where work runs and is kept, for all that happens in a block: said once, by whoever starts it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ramify.execution.checkpoints import Checkpoints
    from ramify.execution.contract import Executor

_executor: ContextVar[Executor | None] = ContextVar("ramify_executor", default=None)
_checkpoints: ContextVar[Checkpoints | None] = ContextVar("ramify_checkpoints", default=None)
_shards: ContextVar[Path | None] = ContextVar("ramify_shards", default=None)


@contextmanager
def running_on(executor: Executor | None) -> Iterator[None]:
    """Let crews and spread work of this block run on an executor, such as a cluster; None for threads, as always.

    >>> from ramify.execution import ThreadExecutor, choose_executor
    >>> with running_on(ThreadExecutor(3)):
    ...     choose_executor(1).teams
    (3,)
    """
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


@contextmanager
def kept_in(checkpoints: Checkpoints | None) -> Iterator[None]:
    """Let the work of this block be kept, so that it can be taken up again; other runs cannot use the same directory then."""
    with nullcontext() if checkpoints is None else checkpoints.in_use():
        token = _checkpoints.set(checkpoints)
        try:
            yield
        finally:
            _checkpoints.reset(token)


@contextmanager
def sharded_in(directory: Path | None) -> Iterator[None]:
    """Let large models that crews of this block find be written there by their members, shard by shard, and never gathered."""
    token = _shards.set(directory)
    try:
        yield
    finally:
        _shards.reset(token)


def current_shards() -> Path | None:
    """What :func:`sharded_in` said."""
    return _shards.get()


def current_executor() -> Executor | None:
    """What :func:`running_on` said."""
    return _executor.get()


def is_elsewhere() -> bool:
    """Whether spread work of this block may run on other machines, where paths must say all."""
    return _executor.get() is not None


def current_checkpoints() -> Checkpoints | None:
    """What :func:`kept_in` said."""
    return _checkpoints.get()
