"""Where the command line prints: answers to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from ramify.parallel import Stage

EVERY = 60.0  # seconds between lines on progress, where there is no terminal
WIDE = 140  # where there is no terminal, tables are not cut at 80 columns

answers = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)
notes = Console(stderr=True, highlight=False, soft_wrap=True)


class RichProgress:
    """Progress bars on standard error, gone when the work is done; when that is no terminal, a line now and then."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        times = (TimeElapsedColumn(), TimeRemainingColumn())
        self.is_hidden, self.said = not sys.stderr.isatty(), time.monotonic()
        self.bars = Bars(SpinnerColumn(), *columns, *times, console=notes, transient=True, disable=self.is_hidden)

    def __enter__(self) -> RichProgress:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    @contextmanager
    def stage(self, title: str, total: float | None) -> Iterator[Stage]:
        """Show one piece of work as a bar."""
        task = self.bars.add_task(title, total=total)
        try:
            yield _Step(self, task, title)
        finally:
            self.bars.remove_task(task)

    def note(self, line: str) -> None:
        """A line that stays."""
        say(line)

    def say_now_and_then(self, line: str) -> None:
        """A line for those who see no bars, if the last one was some time ago."""
        if self.is_hidden and time.monotonic() - self.said >= EVERY:
            self.said = time.monotonic()
            say(line)


class _Step:
    def __init__(self, progress: RichProgress, task: Any, title: str) -> None:
        self.progress, self.bars, self.task, self.title = progress, progress.bars, task, title

    def advance(self, amount: float = 1) -> None:
        self.bars.advance(self.task, amount)

    def describe(self, what: str) -> None:
        self.bars.update(self.task, description=f"{self.title}  {escape(what)}" if what else self.title)
        if what:
            self.progress.say_now_and_then(f"{self.title}: {what}")


def say(message: str) -> None:
    """A plain line on standard error."""
    notes.print(message, markup=False)


def print_json(value: Any) -> None:
    """One JSON document on standard output, for machines."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
