"""The edge: commands are found here, and errors become one sentence and an exit code.

Exit codes: 0 done; 2 something that the user can put right, or an interruption; 1 a defect of Ramify itself.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

import typer

from ramify import __version__
from ramify.cli.console import notes
from ramify.cli.demo import demo
from ramify.cli.evaluate import evaluate
from ramify.cli.inspect import inspect
from ramify.cli.predict import predict
from ramify.cli.systems import systems
from ramify.cli.train import train
from ramify.errors import RamifyError

app = typer.Typer(
    help="Classify text into a taxonomy. Start with 'ramify demo', then 'ramify train your.csv --model out'.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Turn an interruption into an error of ours before the command-line library makes something else of it."""

    @functools.wraps(command)
    def wrapped(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt:
            raise RamifyError("interrupted; nothing was saved, and existing files are as they were.") from None

    return wrapped


for command in (train, predict, evaluate, inspect, systems, demo):
    app.command()(_interruptible(command))


@app.callback(invoke_without_command=False)
def options(
    version: bool = typer.Option(
        False, "--version", is_eager=True, help="Print the version and stop.", callback=lambda on: _version(on)
    ),
) -> None:
    """Options of every command."""


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"ramify {__version__}\n")
        raise typer.Exit


def main() -> None:
    """Run a command; no mistake of a user's ends in a traceback."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command and give its exit code."""
    try:
        app(arguments)
        return 0
    except SystemExit as stop:  # the library ends every command this way; 2 for a line that it cannot understand
        return stop.code if isinstance(stop.code, int) else 0
    except RamifyError as error:
        return _fail(str(error))
    except MemoryError:
        return _fail("there is not enough memory; use fewer documents or terms (--min-df, --max-features).")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read the output has gone
        return 0


def _fail(message: str) -> int:
    notes.print(f"ramify: {message}", markup=False)
    return 2


if __name__ == "__main__":
    main()
