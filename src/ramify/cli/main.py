"""The entry of the command line: find the command, run it, and turn every error into one sentence and an exit code.

Exit codes: 0 success; 2 an error that the user can fix, or an interruption; 1 a defect of Ramify itself.
Only the module of the command that is run is imported, so that ``--version`` and ``--help`` answer at once.
"""

from __future__ import annotations

import ast
import io
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from ramify.errors import InputError, RamifyError, suggest
from ramify.formatting import cut, visible, visible_name

INTERRUPTED = "interrupted; every file is unchanged or complete."
HELP_OPTIONS = ("-h", "--help")
SURROGATE = re.compile("[\ud800-\udfff]")  # what stands for bytes that are not UTF-8

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
    "Learn a taxonomy from flat labels, compare two taxonomies, or convert one.",
    (
        "ramify taxonomy learn flat.csv --out taxonomy.tsv",
        "ramify taxonomy diff taxonomy.tsv newer.tsv",
        "ramify taxonomy convert taxonomy.tsv --to label-studio --out config.xml",
    ),
    {name: Command("taxonomy", name) for name in ("learn", "diff", "convert")},
)
REVIEWS = Group(
    "Use the decisions that people made in the review queue of a server.",
    (
        "ramify reviews add ramify-reviews.db issues.jsonl --model out",
        "ramify reviews export ramify-reviews.db --out reviews.csv",
        "ramify reviews summary ramify-reviews.db",
    ),
    {name: Command("reviews", name) for name in ("add", "export", "tasks", "summary")},
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

    arguments: those of the process by default; then SIGTERM and SIGHUP interrupt like Ctrl+C.
    function: run this command instead.
    """
    global started_at
    if arguments is None:
        started_at = process_start_time()
        for kind in ("SIGTERM", "SIGHUP"):  # a terminal that is closed; nohup ignores that, and so do we
            if hasattr(signal, kind) and signal.getsignal(getattr(signal, kind)) != signal.SIG_IGN:
                signal.signal(getattr(signal, kind), signal.default_int_handler)
        open_missing_streams()
        for stream in (sys.stdout, sys.stderr):
            if (stream.encoding or "").lower().replace("-", "") != "utf8":
                stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    try:
        code = run(list(sys.argv[1:] if arguments is None else arguments), function, name)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return fail(INTERRUPTED)
    except RamifyError as error:
        return fail(str(error))
    except MemoryError:
        return fail("there is not enough memory; use fewer documents or terms (--min-df, --max-features).")
    except BrokenPipeError:
        discard(sys.stdout)
    except OSError as error:
        discard(sys.stdout)
        return fail(describe_error(error))
    return 0


def run(words: Sequence[str], function: Callable[..., None] | None, name: str) -> int:
    """Find the command, if none is given, and run it with the other words; returns the exit code."""
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
        with command.make_context(name, list(words)) as context:
            refuse_undecodable(command.params, context.params)
            refuse_empty_paths(command.params, context.params, words)
            command.invoke(context)
    except typer.Exit as stop:
        return int(stop.exit_code)
    except usage_error as error:
        if (option := getattr(error, "option_name", None)) is not None and hasattr(error, "possibilities"):
            known = [opt for parameter in command.params for opt in (*parameter.opts, *parameter.secondary_opts)]
            hint = suggest(option, [*(opt for opt in known if opt.startswith("-")), *HELP_OPTIONS])
            raise InputError(f"{name!r} has no option {option!r}; see '{name} --help'.{hint}") from None
        error.message = visible_name(error.message)
        usage = io.StringIO()
        error.show(usage)
        print_error("\n".join(visible(cut(line)) for line in usage.getvalue().split("\n")))
        return int(error.exit_code)
    return 0


def open_missing_streams() -> None:
    """Give standard streams that are closed to /dev/null, so that no file that is opened later takes their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_WRONLY)  # takes the lowest number; reading from standard input is an error
            os.set_inheritable(handle, True)
            setattr(sys, name, open(handle, mode, encoding="utf-8", errors="replace"))  # noqa: SIM115 - until the process ends


def refuse_undecodable(parameters: Sequence[Any], values: Mapping[str, Any]) -> None:
    """Refuse arguments that are not UTF-8, except paths: names of files may be any bytes, but what is stored is UTF-8."""
    for parameter in parameters:
        value = values.get(parameter.name)
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(each, str) and SURROGATE.search(each):
                option = parameter.metavar if parameter.param_type_name == "argument" else parameter.opts[0]
                raise InputError(f"{option} is {each!r}, which is not UTF-8; give it in UTF-8.")


def refuse_empty_paths(parameters: Sequence[Any], values: Mapping[str, Any], words: Sequence[str]) -> None:
    """Refuse an empty path, often a variable that is not set: it would mean the current directory."""
    named = [word.rpartition("=")[2] if word.startswith("--") else word for word in words]
    if "" not in named or any(word and Path(word) == Path() for word in named):  # the directory was named as well
        return
    for parameter in parameters:
        value = values.get(parameter.name)
        if Path() in (value if isinstance(value, (list, tuple)) else [value]):
            option = parameter.metavar if parameter.param_type_name == "argument" else parameter.opts[0]
            raise InputError(f"{option} is an empty path; name a file or directory, or . for the current one.")


def find_command(words: Sequence[str]) -> tuple[Command | Group, int]:
    """The command, or the group of commands, that a command line names, and the number of words that name it."""
    found: Command | Group = RAMIFY
    for depth, word in enumerate(words):
        if isinstance(found, Command) or word.startswith("-"):
            return found, depth
        if word not in found.commands:
            raise InputError(f"there is no command {word!r}; see 'ramify --help'.{suggest_command(word, found)}")
        found = found.commands[word]
    return found, len(words)


def suggest_command(word: str, group: Group) -> str:
    """The commands nearest to a mistyped one, also those of groups: learn is a command of taxonomy."""
    below = {name: entry.commands for name, entry in group.commands.items() if isinstance(entry, Group)}
    full = next((f"{name} {word}" for name, commands in below.items() if word in commands), None)
    return f" Did you mean {full!r}?" if full else suggest(word, group.commands)


def show_help(group: Group, words: Sequence[str]) -> int:
    """Print the version or the help of a group of commands."""
    if words == ["--version"]:
        from importlib.metadata import version

        sys.stdout.write(f"ramify {version('ramify')}\n")
        return 0
    asked = [word for word in words if word.startswith("-")]
    if unknown := [word for word in asked if word not in HELP_OPTIONS]:
        hint = suggest(unknown[0], (*HELP_OPTIONS, "--version"))
        raise InputError(f"there is no option {unknown[0]!r} before a command; see 'ramify --help'.{hint}")
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


def describe_error(error: OSError) -> str:
    """What cannot be read or written, in a sentence."""
    if error.filename is None:
        try:
            os.getcwd()
        except OSError:
            return "the directory in which you are has been removed; change to another one."
    return f"cannot read or write {error.filename or 'standard output'}: {error.strerror or error}."


def fail(message: str) -> int:
    """Print an error on standard error, on one line that cannot steer a terminal; returns the exit code."""
    print_error(f"ramify: {visible_name(cut(message))}\n")
    return 2


def print_error(text: str) -> None:
    """Write to standard error, if that is possible: the exit code tells, too."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Discard what is still to be written to a standard stream: the reader has gone, or the disk is full."""
    handle = os.open(os.devnull, os.O_WRONLY)
    os.dup2(handle, stream.fileno())
    os.close(handle)


if __name__ == "__main__":
    sys.exit(main())
