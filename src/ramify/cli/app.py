"""The commands, and what may happen to any of them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import typer

from ramify import __version__
from ramify.cli.audit import audit
from ramify.cli.compare import compare
from ramify.cli.decide import decide
from ramify.cli.demo import demo
from ramify.cli.evaluate import evaluate
from ramify.cli.explain import explain
from ramify.cli.inspect import inspect
from ramify.cli.keys import add, remove, show
from ramify.cli.main import INTERRUPTED, drop_output
from ramify.cli.predict import predict
from ramify.cli.reviews import export, summary, take_in
from ramify.cli.score import score
from ramify.cli.serve import serve
from ramify.cli.systems import systems
from ramify.cli.taxonomy import diff, learn
from ramify.cli.train import train
from ramify.cli.update import update
from ramify.errors import RamifyError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn an interruption, and output that cannot be written, into errors of ours, before the library does otherwise."""

    @functools.wraps(command)
    def wrapped(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise RamifyError(INTERRUPTED) from None
        except BrokenPipeError:
            drop_output()
            raise SystemExit(0) from None
        except OSError as error:
            drop_output()
            where = error.filename or "standard output"
            raise RamifyError(f"cannot read or write {where}: {error.strerror}.") from None

    return wrapped


for command in (
    train, update, predict, explain, evaluate, compare, audit, score, decide, inspect, serve, systems, demo,
):  # fmt: skip
    app.command()(guarded(command))

taxonomy = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="""Make a taxonomy where there is none, or tell two of them apart.

    \b
    Examples:
      ramify taxonomy learn tickets.csv --out taxonomy.tsv
      ramify taxonomy diff taxonomy.tsv newer.tsv
    """,
)
taxonomy.command()(guarded(learn))
taxonomy.command()(guarded(diff))
app.add_typer(taxonomy, name="taxonomy")

reviews = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="""Use what people decided in the review queue of a server.

    \b
    Examples:
      ramify reviews add ramify-reviews.db findings.jsonl --model out
      ramify reviews export ramify-reviews.db --out reviews.csv
      ramify reviews summary ramify-reviews.db
    """,
)
reviews.command("add")(guarded(take_in))
reviews.command()(guarded(export))
reviews.command()(guarded(summary))
app.add_typer(reviews, name="reviews")

keys = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="""Say who may use a server.

    \b
    Examples:
      ramify keys add keys.json ann --role review
      ramify keys list keys.json
    """,
)
keys.command()(guarded(add))
keys.command()(guarded(remove))
keys.command("list")(guarded(show))
app.add_typer(keys, name="keys")


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"ramify {__version__}\n")
        raise typer.Exit


@app.callback(invoke_without_command=False)
def options(
    version: bool = typer.Option(False, "--version", is_eager=True, help="Print the version.", callback=_version),
) -> None:
    """Classify text into a taxonomy: train, predict label paths, evaluate level by level.

    \b
    Examples:
      ramify demo
      ramify train tickets.csv --model out --report report.html
      ramify predict out new.csv > classified.csv
    """
