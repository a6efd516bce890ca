"""``ramify train --auto``: what may be said beside it, and what it shows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ramify.cli import main
from ramify.cli.console import answers
from ramify.decisions import DecisionRule
from ramify.errors import InputError
from ramify.features import Vectorizer
from ramify.reports.tuning_section import cells_of, columns_of_trials
from ramify.workflows.comparison import LABELS
from ramify.workflows.tuning import Fixed, TuningResult
from ramify.workflows.tuning.result import choice_in_words, options_by_hand

SHOWN = 12  # trials; --json and the report have them all
DEFAULT_MINUTES = 5.0

Auto = Annotated[
    bool, typer.Option("--auto", help="Choose features, system, C, rule and thresholds by cross-validation, within --minutes.")
]
Minutes = Annotated[float | None, typer.Option(help="With --auto: how long all of it may take; 5 unless told.")]
By = Annotated[str | None, typer.Option(help=f"With --auto: the measure to choose by: {', '.join(LABELS)}.")]


def refuse_without_auto(minutes: float | None, by: str | None) -> None:
    """Refuse what only a choice could use."""
    for option, value in (("--minutes", minutes), ("--by", by)):
        if value is not None:
            raise InputError(f"{option} is for a choice; give --auto as well, or leave {option} out.")


def refuse_beside_auto(given: Mapping[str, Any], system: str | None, params: Sequence[str] | None) -> None:
    """Refuse options that a choice cannot keep to, and parameters of a system that nobody named."""
    for option, value in given.items():
        if value:
            raise InputError(f"--auto and {option} were given; --auto cannot work with it, so leave one of them out.")
    if params and system is None:
        raise InputError("--auto and --param were given; say whose parameter it is with --system, or let it be chosen.")


def fixed_parts(system: str | None, params: dict[str, Any], features: dict[str, Any], rule: DecisionRule | None) -> Fixed:
    """What is not to be chosen: everything that was said and is not what it would be anyway."""
    usual = Vectorizer().get_params()
    given = {name: value for name, value in features.items() if value != usual[name]}
    return Fixed(system, params, given, rule)


def moment_begun() -> float:
    """From when on time counts: the start of the program, or now, within another one."""
    return time.monotonic() if main.began is None else main.began


def seconds_of(minutes: float | None) -> float:
    """How long all may take."""
    return 60 * (DEFAULT_MINUTES if minutes is None else minutes)


def show_choice(choice: TuningResult, data: Path, is_reported: bool) -> None:
    """Print what was tried and chosen, and on a line of its own, to be copied, how to train the same by hand."""
    answers.print(render_choice(choice, is_reported))
    by_hand = f"\nThe same by hand, with the other options as here: ramify train {data} {options_by_hand(choice)}\n"
    answers.print(by_hand, markup=False, soft_wrap=True, style="dim")


def render_choice(choice: TuningResult, is_reported: bool) -> RenderableType:
    """What was tried, what was taken, how sure that is, and what would be next."""
    n_tried, n_finalists = len(choice.trials), sum(trial.is_finalist for trial in choice.trials)
    many = max(SHOWN, n_finalists)
    table = Table(title=f"{n_tried} tried", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, name in enumerate(columns_of_trials(choice)):
        table.add_column(name, justify="right" if place > 2 else "left", no_wrap=place != 1)
    for trial in choice.trials[:many]:
        table.add_row(*map(escape, cells_of(trial)), style="bold" if trial is choice.trials[0] else "")
    hidden = [Text(f"and {n_tried - many} more, in --report and --json", style="dim")] if n_tried > many else []
    first, *others = choice_in_words(choice, is_reported)
    words = Text("\n").append(first, style="bold").append("".join(f"\n{each}" for each in others))
    return Group(table, *hidden, words)
