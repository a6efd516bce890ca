"""A comparison of systems as tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from string import ascii_uppercase

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ramify.cli.console import counted
from ramify.metrics import Measured
from ramify.metrics.sums import LOSSES
from ramify.pipeline.comparing import Comparison, Pair

LEVEL = 0.05  # below it a difference is called one
ONE_LINE = 118  # columns that a value and its interval need side by side
LABELS = {
    "accuracy": "exactly right",
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
    "hierarchical_f1": "hierarchical F1",
    "h_loss": "H-loss",
}
TESTS = {
    "sign": ("s", "decisions that one alone got right"),
    "macro_sign": ("S", "classes: on how many F1 is higher"),
    "t": ("T", "classes: F1"),
    "rank_t": ("T'", "classes: rank of F1"),
    "wilcoxon": ("W", "classes: rank of F1 difference"),
    "precision": ("p", "micro precision"),
    "recall": ("p", "micro recall"),
    "accuracy": ("p", "share of decisions that are right"),
    "bootstrap_micro_f1": ("b", "micro F1 on resampled documents"),
    "bootstrap_macro_f1": ("b", "macro F1 on resampled documents"),
}
NAMES = {"holm": "Holm", "bonferroni": "Bonferroni", "benjamini-hochberg": "Benjamini & Hochberg"}
TEST_WIDTH, PAIR_WIDTH = 40, 10


def render_comparison(found: Comparison, width: int) -> RenderableType:
    """The systems, their measures, and the p-values of every pair; as many pairs side by side as fit."""
    letters = dict(zip((system.name for system in found.systems), _letters(), strict=False))
    parts: list[RenderableType] = [_systems(found, letters), Text(), _measures(found, letters, width), _about_measures(found)]
    at_once = max(1, (width - TEST_WIDTH) // PAIR_WIDTH)
    for start in range(0, len(found.pairs), at_once):
        parts.append(_p_values(found.pairs[start : start + at_once], letters))
        parts.append(Text())
    return Group(*parts[:-1], _about_tests(found))


def _letters() -> Iterator[str]:
    """A, B, …, Z, A2, B2, and so on."""
    turn = 1
    while True:
        yield from (letter if turn == 1 else f"{letter}{turn}" for letter in ascii_uppercase)
        turn += 1


def _systems(found: Comparison, letters: dict[str, str]) -> Table:
    title = counted(found.documents, "document") + (f" in {found.folds} folds" if found.folds > 1 else "")
    table = _table(title, "", "system", "training", "documents/s")
    table.columns[2].justify = table.columns[3].justify = "right"
    for system in found.systems:
        seconds = "–" if system.training_seconds is None else f"{system.training_seconds:.2f} s"
        table.add_row(letters[system.name], escape(system.name), seconds, f"{system.documents_per_second:,.0f}")
    return table


def _measures(found: Comparison, letters: dict[str, str], width: int) -> Table:
    table = _table("", "", *LABELS.values())
    values = {name: [round(system.measures[name].value, 3) for system in found.systems] for name in LABELS}
    best = {name: min(given) if name in LOSSES else max(given) for name, given in values.items()}
    for system in found.systems:
        shown = (_measure(system.measures[name], best[name], width) for name in LABELS)
        table.add_row(letters[system.name], *shown)
    return table


def _measure(measured: Measured, best: float, width: int) -> Text:
    is_best = round(measured.value, 3) == best
    value = Text(f"{measured.value:.3f}{'*' if is_best else ' '}", style="bold" if is_best else "")
    join, show = (" ", "{:.3f}".format) if width >= ONE_LINE else ("\n", _short)
    return value.append(f"{join}[{show(measured.low)}, {show(measured.high)}]", style="not bold dim")


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


def _p_values(pairs: Sequence[Pair], letters: dict[str, str]) -> Table:
    heads = [f"{letters[pair.a]} – {letters[pair.b]}" for pair in pairs]
    table = _table("p-values", "", "what is compared", *heads)
    for test, (symbol, about) in TESTS.items():
        table.add_row(symbol, about, *(_p_value(pair, test, letters) for pair in pairs))
    return table


def _p_value(pair: Pair, test: str, letters: dict[str, str]) -> Text:
    """A corrected p-value and, where it is small, who is ahead."""
    p = pair.corrected[test]
    if math.isnan(p):
        return Text("–")
    shown = "<0.001" if p < 0.0005 else f"{p:.3f}".rjust(6)
    if p >= LEVEL:
        return Text(shown, style="dim")
    if float(shown.strip("<")) >= LEVEL:
        shown = f"{p:.4f}"  # just below the level, and rounded up to it
    return Text(f"{shown} {letters[pair.a if pair.tests[test].difference > 0 else pair.b]}", style="bold")


def _about_tests(found: Comparison) -> Text:
    many = len(found.pairs)
    corrected = "not corrected" if many > 1 else "one comparison, so not corrected"
    if many > 1 and found.correction != "none":
        corrected = f"corrected for {counted(many, 'comparison')} after {NAMES[found.correction]}"
    few = " – where there are fewer than two classes." if any(math.isnan(p.corrected["t"]) for p in found.pairs) else ""
    needed = math.ceil(2 * (many if found.correction in ("holm", "bonferroni") else 1) / LEVEL)
    short = (
        f" With so few resamples b cannot fall below {LEVEL}; give --resamples {needed:,}."
        if found.n_resamples < needed
        else ""
    )
    return Text(f"Two-sided, {corrected}; the letter is the system ahead where p < {LEVEL}.{few}{short}", style="dim")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=name != "system")
    return table
