"""The entry of the command line: find the command, run it, and turn every error into one sentence and an exit code.

Exit codes: 0 success; 2 an error that the user can fix, or an interruption; 1 a defect of Ramify itself.
Only the module of the command that is run is imported, so that ``--version`` and ``--help`` answer at once.
"""

from __future__ import annotations

import ast
import io
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ramify.errors import InputError, RamifyError, suggest
from ramify.formatting import cut, visible

INTERRUPTED = "interrupted; every file is unchanged or complete."
HELP_OPTIONS = ("-h", "--help")

started_at: float | None = None  # monotonic time at which this process started; None inside another program


class Command(NamedTuple):
    """Where a command is defined: a module of ``ramify.cli`` and a function in it."""

    module: str
    function: str

    @property
    def help(self) -> str:
        """The first line of the function's docstring, found without importing its module."""
        body = ast.parse(Path(__file__).with_name(f"{self.module}.py").read_bytes()).body
        found = next(node for node in body if isinstance(node, ast.FunctionDef) and node.name == self.function)
        return (ast.get_docstring(found) or "").partition("\n")[0]


class Group(NamedTuple):
    """Commands under one name."""

    help: str
    examples: Sequence[str]
    commands: dict[str, Any]


TAXONOMY = Group(
    "Learn a taxonomy from flat labels, or compare two taxonomies.",
    ("ramify taxonomy learn tickets.csv --out taxonomy.tsv", "ramify taxonomy diff taxonomy.tsv newer.tsv"),
    {"learn": Command("taxonomy", "learn"), "diff": Command("taxonomy", "diff")},
)
REVIEWS = Group(
    "Use the decisions that people made in the review queue of a server.",
    (
        "ramify reviews add ramify-reviews.db issues.jsonl --model out",
        "ramify reviews export ramify-reviews.db --out reviews.csv",
        "ramify reviews summary ramify-reviews.db",
    ),
    {"add": Command("reviews", "add"), "export": Command("reviews", "export"), "summary": Command("reviews", "summary")},
)
KEYS = Group(
    "Manage the API keys of a server.",
    ("ramify keys add keys.json ann --role review", "ramify keys list keys.json"),
    {"add": Command("keys", "add"), "remove": Command("keys", "remove"), "list": Command("keys", "show")},
)
LEARNING = ("train", "update", "predict", "explain", "evaluate", "compare", "audit", "score")  # each in a module of its name
RAMIFY = Group(
    "Classify text into a taxonomy: train, predict label paths, evaluate level by level.",
    ("ramify demo", "ramify train tickets.csv --model out --report report.html", "ramify predict out new.csv > classified.csv"),
    {
        **{name: Command(name, name) for name in LEARNING},
        "decide": Command("score", "decide"),
        "inspect": Command("inspect", "inspect"),
        "serve": Command("serve", "serve"),
        "sign": Command("sign", "sign"),
        "systems": Command("inspect", "systems"),
        "demo": Command("demo", "demo"),
        "taxonomy": TAXONOMY,
        "reviews": REVIEWS,
        "keys": KEYS,
    },
)


def main(arguments: Sequence[str] | None = None, function: Callable[..., None] | None = None, name: str = "ramify") -> int:
    """Run a command and return its exit code; an error of the user never ends in a traceback.

    arguments: those of the process by default; then SIGTERM interrupts like Ctrl+C. function: run this command instead.
    """
    global started_at
    if arguments is None:
        started_at = process_start_time()
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        for stream in (sys.stdout, sys.stderr):
            if (stream.encoding or "").lower().replace("-", "") != "utf8":
                stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if function is None:
            found, depth = find_command(words)
            if not isinstance(found, Command):
                return show_help(found, words)
            name, words = " ".join(("ramify", *words[:depth])), words[depth:]
            function = vars(import_module(f"ramify.cli.{found.module}"))[found.function]
        import typer

        usage_error: Any = typer.BadParameter.__base__
        app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        app.command(context_settings={"help_option_names": list(HELP_OPTIONS), "max_content_width": 110})(function)
        command: Any = typer.main.get_command(app)
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                parameter.metavar = argument = parameter.name.upper()
                shown = (argument if parameter.required else f"[{argument}]") + ("" if parameter.nargs == 1 else "...")
                parameter.get_usage_pieces = lambda _, shown=shown: [shown]  # typer would put it in braces
        try:  # command.main() would handle interruptions and broken pipes in its own way
            with command.make_context(name, words) as context:
                command.invoke(context)
            sys.stdout.flush()
        except typer.Exit as stop:
            return int(stop.exit_code)
        except usage_error as error:
            shown = io.StringIO()
            error.show(shown)
            sys.stderr.write("\n".join(visible(cut(line)) for line in shown.getvalue().split("\n")))
            return int(error.exit_code)
    except KeyboardInterrupt:
        return fail(INTERRUPTED)
    except RamifyError as error:
        return fail(str(error))
    except MemoryError:
        return fail("there is not enough memory; use fewer documents or terms (--min-df, --max-features).")
    except BrokenPipeError:
        drop_output()
    except OSError as error:
        drop_output()
        return fail(f"cannot read or write {error.filename or 'standard output'}: {error.strerror}.")
    return 0


def find_command(words: Sequence[str]) -> tuple[Command | Group, int]:
    """The command, or the group of commands, that a command line names, and the number of words that name it."""
    found: Command | Group = RAMIFY
    for depth, word in enumerate(words):
        if isinstance(found, Command) or word.startswith("-"):
            return found, depth
        if word not in found.commands:
            raise InputError(f"there is no command {word!r}; see 'ramify --help'.{suggest(word, found.commands)}")
        found = found.commands[word]
    return found, len(words)


def show_help(group: Group, words: Sequence[str]) -> int:
    """Print the version or the help of a group of commands."""
    if words == ["--version"]:
        from importlib.metadata import version

        sys.stdout.write(f"ramify {version('ramify')}\n")
        return 0
    asked = [word for word in words if word.startswith("-")]
    if unknown := [word for word in asked if word not in HELP_OPTIONS]:
        raise InputError(f"there is no option {unknown[0]!r} before a command; see 'ramify --help'.")
    name = " ".join(["ramify", *(word for word in words if word not in HELP_OPTIONS)])
    width = max(map(len, group.commands)) + 2
    lines = [f"Usage: {name} [OPTIONS] COMMAND [ARGS]...", "", f"  {group.help}", "", "  Examples:"]
    lines += [f"    {example}" for example in group.examples]
    lines += ["", "Options:", "  --version   Print the version."] if group is RAMIFY else ["", "Options:"]
    lines += ["  -h, --help  Show this message.", "", "Commands:"]
    lines += [f"  {command:<{width}}{entry.help}" for command, entry in group.commands.items()]
    (sys.stdout if asked else sys.stderr).write("\n".join(lines) + "\n")
    return 0 if asked else 2


def process_start_time() -> float:
    """When this process started, before any library was loaded; now, where the system does not say."""
    now = time.monotonic()
    with suppress(OSError, ValueError, IndexError, AttributeError):
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        now -= max(0.0, float(Path("/proc/uptime").read_text().split()[0]) - ticks / os.sysconf("SC_CLK_TCK"))
    return now


def fail(message: str) -> int:
    """Print an error on standard error, on one line that cannot steer a terminal; returns the exit code."""
    shown = visible(cut(message)).replace("\n", "\\n")
    sys.stderr.write(f"ramify: {shown}\n")
    return 2


def drop_output() -> None:
    """Discard what is still to be written: the reader has gone, or the disk is full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
