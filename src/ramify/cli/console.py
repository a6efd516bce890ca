"""Where the command line prints: results to standard output, everything else to standard error.

Labels, texts, and names of files and columns come from others. What could steer a terminal is written out here, they cannot
begin a line of their own, and they are never read as markup.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.segment import Segment
from rich.text import Text

from ramify.cli.main import discard
from ramify.errors import InputError
from ramify.formatting import UNPRINTABLE, cut, visible, visible_name

if TYPE_CHECKING:
    from ramify.parallel import Stage

EVERY = 60.0  # seconds between progress lines, where there is no terminal
WIDE = 140  # columns of tables, where there is no terminal


class SafeConsole(Console):
    """A console on which control characters in texts are written out, and words between colons are no pictures."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, emoji=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        """A string as rich text; its control characters are written out before it is measured."""
        return super().render_str(visible(text), **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """What is printed. The control characters that rich itself writes are in segments of their own."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Nobody reads any more; rich would end the process here, with an exit code of its own."""
        raise BrokenPipeError


output = SafeConsole(width=None if sys.stdout.isatty() else WIDE)
messages = SafeConsole(stderr=True, soft_wrap=True)


def literal(name: str) -> str:
    """A name of others in a table: no markup, and on one line."""
    return escape(visible_name(name))


def say(message: str) -> None:
    """Print a plain line on standard error; work goes on even if it cannot be written there."""
    try:
        messages.print(visible_name(cut(message)), markup=False)
    except OSError:
        discard(sys.stderr)


def print_plain(*lines: str, style: str | None = None) -> None:
    """Print plain lines on standard output, without wrapping."""
    for line in lines:
        output.print(visible_name(line), markup=False, soft_wrap=True, style=style)


def print_json(value: Any) -> None:
    """Print one JSON document on standard output; what could steer a terminal is escaped, as JSON allows."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    sys.stdout.write(UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


class Terminal:
    """Standard output for rows: as they are into a file or a pipe, with control characters written out on a terminal."""

    def __init__(self, file: IO[str]) -> None:
        self._file, self._shown = file, visible if file.isatty() else str

    def write(self, text: str) -> int:
        """Write some rows."""
        return self._file.write(self._shown(text))

    def flush(self) -> None:
        """Write what is still waiting."""
        self._file.flush()


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
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
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
        task = self.bars.add_task(visible_name(title), total=total)
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
        self.progress.bars.update(self.task, description=visible_name(f"{self.title}  {what}" if what else self.title))
        progress = self.progress
        if what and progress.is_hidden and time.monotonic() - progress.last_line >= EVERY:
            progress.last_line = time.monotonic()
            say(f"{self.title}: {what}")
