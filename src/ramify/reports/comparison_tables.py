"""A comparison of systems as tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ramify.formatting import counted, duration, memory, p_value, speed
from ramify.metrics import Measured
from ramify.metrics.resampling import LOSSES
from ramify.workflows.comparison import (
    CORRECTED_AFTER,
    LABELS,
    LEVEL,
    TESTS,
    Comparison,
    Pair,
    Recommendation,
    SystemResult,
    letters_of,
    needed_resamples,
)

ONE_LINE = 118  # columns that a value and its interval need side by side
FEW_SYSTEMS = 5  # up to so many, every pair is shown
TEST_WIDTH, PAIR_WIDTH = 45, 10
# what stands above the marks of a test, below its letter
SHORT = {"precision": "prec", "recall": "rec", "accuracy": "dec", "bootstrap_accuracy": "right", "bootstrap_micro_f1": "micro"}
SHORT |= {"bootstrap_macro_f1": "macro", "bootstrap_hierarchical_f1": "hier", "bootstrap_h_loss": "loss"}


def render_comparison(found: Comparison, advice: Recommendation, width: int) -> RenderableType:
    """The systems, their measures, their tests and the advice; of many systems, tests against the one to take."""
    many = len(found.systems) > FEW_SYSTEMS
    systems = found.ranked(advice.by) if many else found.systems
    letters = letters_of(systems)
    intervals = (advice.by,) if many and width < ONE_LINE else tuple(LABELS)
    parts: list[RenderableType] = [_systems(found, systems, letters), Text()]
    parts += [_measures(systems, letters, width, intervals), _about_measures(found)]
    parts += _against_one(found, systems, advice, letters) if many else _every_pair(found, letters, width)
    return Group(*parts, *_told(found), _advice(advice))


# ---- systems and measures -----------------------------------------------------------------------------------------------


def _systems(found: Comparison, systems: Iterable[SystemResult], letters: dict[str, str]) -> Table:
    title = counted(found.documents, "document") + (f" in {found.folds} folds" if found.folds > 1 else "")
    table = _table(title, "", "system", "training", "documents/s", "memory", right=range(2, 5))
    for system in systems:
        costs = duration(system.training_seconds), speed(system.documents_per_second), memory(system.peak_memory)
        table.add_row(letters[system.name], escape(system.name), *costs)
    return table


def _measures(systems: Sequence[SystemResult], letters: dict[str, str], width: int, intervals: Sequence[str]) -> Table:
    table = _table("", "", *LABELS.values())
    values = {name: [round(system.measures[name].value, 3) for system in systems] for name in LABELS}
    best = {name: min(given) if name in LOSSES else max(given) for name, given in values.items()}
    join, digits = (" ", _three) if width >= ONE_LINE or len(intervals) == 1 else ("\n", _short)
    for system in systems:
        cells = []
        for name in LABELS:
            cells.append(_value(system.measures[name], best[name]))
            if name in intervals:
                low, high = digits(system.measures[name].low), digits(system.measures[name].high)
                cells[-1].append(f"{join}[{low}, {high}]", style="not bold dim")
        table.add_row(letters[system.name], *cells)
    return table


def _value(measured: Measured, best: float) -> Text:
    is_best = round(measured.value, 3) == best
    return Text(f"{measured.value:.3f}{'*' if is_best else ' '}", style="bold" if is_best else "")


def _three(value: float) -> str:
    return f"{value:.3f}"


def _short(value: float) -> str:
    """Three decimals, without the zero before the point.

    >>> _short(0.25), _short(1.25)
    ('.250', '1.250')
    """
    return f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:.3f}"


def _about_measures(found: Comparison) -> Text:
    mean = f"means of {found.folds} folds" if found.folds > 1 else "values"
    note = f"* best; {mean} [95% interval, {counted(found.n_resamples, 'resample')} of the documents]. "
    where = f"F1 over {counted(found.classes, 'class')}: leaves, and inner nodes at which documents stop."
    seen = f" {counted(found.seen_before, 'test document')} with the text of one learnt from." if found.seen_before else ""
    return Text(note + where + seen + "\n", style="dim")


# ---- tests --------------------------------------------------------------------------------------------------------------


def _every_pair(found: Comparison, letters: dict[str, str], width: int) -> list[RenderableType]:
    """The p-values of every pair; as many pairs side by side as fit."""
    parts: list[RenderableType] = []
    at_once = max(1, (width - TEST_WIDTH) // PAIR_WIDTH)
    for start in range(0, len(found.pairs), at_once):
        parts += [_p_values(found.pairs[start : start + at_once], letters), Text()]
    legend = f"Two-sided, {_correction(found)}; the letter is the system ahead where p < {LEVEL}."
    return [*parts[:-1], Text(legend + _untold(found), style="dim")]


def _p_values(pairs: Sequence[Pair], letters: dict[str, str]) -> Table:
    heads = [f"{letters[pair.a]} – {letters[pair.b]}" for pair in pairs]
    table = _table("p-values", "", "what is compared", *heads)
    for test, (symbol, about) in TESTS.items():
        table.add_row(symbol, about, *(_p_value(pair, test, letters) for pair in pairs))
    return table


def _p_value(pair: Pair, test: str, letters: dict[str, str]) -> Text:
    """A corrected p-value and, where it is small, who is ahead."""
    p, ahead = pair.corrected[test], pair.ahead(test)
    shown = p_value(p, LEVEL) if math.isnan(p) else p_value(p, LEVEL).rjust(6)
    return Text(shown, style="dim") if ahead is None else Text(f"{shown} {letters[ahead]}", style="bold")


def _against_one(
    found: Comparison, systems: Sequence[SystemResult], advice: Recommendation, letters: dict[str, str]
) -> list[RenderableType]:
    """What each test says of every system and the one to take."""
    to_take = next(system for system in systems if system.name == advice.system)
    heads = [f"{symbol}\n{SHORT.get(test, '')}" for test, (symbol, _) in TESTS.items()]
    title = (
        f"Against {letters[advice.system]}, {escape(advice.system)}: how far apart in {LABELS[advice.by]}, and what tests say"
    )
    table = _table(title, "", "\napart", *heads)
    for system in systems:
        if system is not to_take:
            apart = system.measures[advice.by].value - to_take.measures[advice.by].value
            marks = (_mark(found.pair(system.name, to_take.name), test, system.name) for test in TESTS)
            table.add_row(letters[system.name], _signed(apart), *marks)
    legend = (
        f"+ ahead of {letters[advice.system]}, − behind it by more than luck (p < {LEVEL}, two-sided, {_correction(found)}), "
        "· cannot tell. s: decisions that one alone got right; S, T, T', W: F1 of classes; p: micro precision, recall, share "
        f"of decisions that are right; b: measures on resampled documents.{_untold(found)} --report and --json have every pair."
    )
    return [table, Text(legend, style="dim")]


def _signed(difference: float) -> str:
    """Three decimals and a sign, unless they are all zero.

    >>> _signed(-0.0312), _signed(0.5), _signed(-0.0001)
    ('−0.031', '+0.500', ' 0.000')
    """
    shown = f"{difference:+z.3f}".replace("-", "−")
    return " 0.000" if shown == "+0.000" else shown


def _mark(pair: Pair, test: str, name: str) -> Text:
    ahead = pair.ahead(test)
    if math.isnan(pair.corrected[test]):
        return Text("–")
    return Text("·", style="dim") if ahead is None else Text("+" if ahead == name else "−", style="bold")


def _correction(found: Comparison) -> str:
    many = len(found.pairs)
    if many == 1:
        return "one comparison, so not corrected"
    after = CORRECTED_AFTER.get(found.correction)
    return "not corrected" if after is None else f"corrected for {counted(many, 'comparison')} after {after}"


def _untold(found: Comparison) -> str:
    """What the tests cannot say."""
    few = " – where there are fewer than two classes." if any(math.isnan(pair.corrected["t"]) for pair in found.pairs) else ""
    needed = needed_resamples(len(found.systems), found.correction)
    if found.n_resamples >= needed:
        return few
    return f"{few} With so few resamples b cannot fall below {LEVEL}; give --resamples {needed:,}."


# ---- words --------------------------------------------------------------------------------------------------------------


def _told(found: Comparison) -> list[RenderableType]:
    """What was left out, and what else is good to know."""
    parts: list[RenderableType] = []
    if found.skipped:
        table = _table("Left out", "system", "why")
        for each in found.skipped:
            table.add_row(escape(each.name), escape(each.reason))
        parts += [Text(), table]
    if found.notes:
        parts += [Text(), *(Text(f"Note: {note}.", style="dim") for note in found.notes)]
    return parts


def _advice(advice: Recommendation) -> Text:
    first, *others = advice.words
    return Text("\n").append(first, style="bold").append("".join(f"\n{each}" for each in others))


def _table(title: str, *columns: str, right: Iterable[int] = ()) -> Table:
    table = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=name not in ("system", "why"))
    for place in right:
        table.columns[place].justify = "right"
    return table
