"""Where the command line prints: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from ramify.errors import InputError

if TYPE_CHECKING:
    from ramify.parallel import Stage

EVERY = 60.0  # seconds between progress lines, where there is no terminal
WIDE = 140  # columns of tables, where there is no terminal

output = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)
messages = Console(stderr=True, highlight=False, soft_wrap=True)


def say(message: str) -> None:
    """Print a plain line on standard error."""
    messages.print(message, markup=False)


def print_plain(message: str, style: str | None = None) -> None:
    """Print plain text on standard output, without wrapping."""
    output.print(message, markup=False, soft_wrap=True, style=style)


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


@contextmanager
def progress_shown(cluster: str | None = None, checkpoints: Path | None = None, resume: bool = False) -> Iterator[None]:
    """Show the progress of work in this block; run it on a cluster, and keep checkpoints until it is done, if given."""
    from ramify.parallel import Checkpoints, checkpointing, open_cluster, reporting_to, running_on

    if resume and checkpoints is None:
        raise InputError("--resume continues from checkpoints; give their directory with --checkpoints.")
    kept = None if checkpoints is None else Checkpoints(checkpoints, resume)
    with RichProgress() as progress, reporting_to(progress), checkpointing(kept), ExitStack() as stack:
        if cluster is not None:
            stack.enter_context(running_on(stack.enter_context(open_cluster(cluster))))
        try:
            yield
        except KeyboardInterrupt:
            if kept is not None and kept.has_begun:
                say(f"The work done so far is in {checkpoints}; run the same command with --resume to continue.")
            raise
        if kept is not None:
            kept.remove()


class RichProgress:
    """Progress bars on standard error, removed when the work is done; without a terminal, a line now and then."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        times = (TimeElapsedColumn(), TimeRemainingColumn())
        self.is_hidden, self.last_line = not sys.stderr.isatty(), time.monotonic()
        self.bars = Bars(SpinnerColumn(), *columns, *times, console=messages, transient=True, disable=self.is_hidden)

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
        """Print a line that stays."""
        say(line)


class _Step:
    def __init__(self, progress: RichProgress, task: Any, title: str) -> None:
        self.progress, self.task, self.title = progress, task, title

    def advance(self, amount: float = 1) -> None:
        self.progress.bars.advance(self.task, amount)

    def describe(self, what: str) -> None:
        self.progress.bars.update(self.task, description=f"{self.title}  {escape(what)}" if what else self.title)
        progress = self.progress
        if what and progress.is_hidden and time.monotonic() - progress.last_line >= EVERY:
            progress.last_line = time.monotonic()
            say(f"{self.title}: {what}")
