"""Reports, audits, comparisons and tuning as tables for the terminal, and a taxonomy drawn as a tree.

Labels and texts come from others: they are never read as markup, and what could steer a terminal, or begin a line, is written
out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text
from rich.tree import Tree

from ramify.formatting import counted, p_value, visible_name
from ramify.metrics.evaluation import Report
from ramify.reports import tables
from ramify.reports.tables import ISSUE_KINDS, Table, percentage, shorten
from ramify.taxonomy.hierarchy import Taxonomy
from ramify.workflows.auditing.audit import Audit
from ramify.workflows.auditing.issue_details import LabelInfo, LabelIssue, words_of
from ramify.workflows.comparison import LABELS, LEVEL, TESTS, Comparison, Recommendation, SystemResult, letters_of
from ramify.workflows.tuning.result import TuningResult, describe_tuning

MAX_TRIALS = 12  # --json and the report have all of them


def render_table(table: Table, most: int | None = None, wrapped: Collection[int] = (), heads: bool = True) -> RichTable:
    """A table for the terminal. most: rows that are shown. wrapped: columns whose text may wrap; without any, all may."""
    shown = _grid(_literal(table.title))
    shown.show_header = heads
    for place, name in enumerate(table.columns):
        is_text = place in table.text_columns
        shown.add_column(name, justify="left" if is_text else "right", no_wrap=bool(wrapped) and place not in wrapped)
    if table.bars:
        shown.add_column("")
    for number, row in enumerate(table.rows[:most]):
        shown.add_row(*(Text(visible_name(cell)) for cell in row), *([_bar(table.bars[number])] if table.bars else []))
    return shown


def _grid(title: str, *columns: str) -> RichTable:
    table = RichTable(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=True)
    return table


def _literal(name: str) -> str:
    """A name within markup, as it is."""
    return escape(visible_name(name))


def _bar(fraction: float, width: int = 10) -> Text:
    return Text("█" * round(fraction * width), style="green" if fraction >= 0.8 else "yellow" if fraction >= 0.5 else "red")


def _sentences(first: str, *others: str) -> Text:
    return Text("\n").append(visible_name(first), style="bold").append("".join(f"\n{visible_name(each)}" for each in others))


# ---- a report -----------------------------------------------------------------------------------------------------------


def render_report(report: Report, worst: int = 8) -> RenderableType:
    """The figures, the levels, the branches and the worst confusions."""
    figures = Table(f"{report.documents:,} documents", ("", ""), tables.figure_rows(report))
    found = tables.report_tables(report, worst)
    shown = [found[name] for name in ("levels", "modified", "calibration", "guarantees")]
    if 1 < len(report.branches) <= 40:
        branches, columns = found["branches"], (0, 1, 2, 5)
        rows = [[row[k] for k in columns] for row in branches.rows]
        shown.append(Table(branches.title, [branches.columns[k] for k in columns], rows, bars=branches.bars))
    shown.append(found["confusions"])
    notes = [Text(visible_name(f"Note: {note}."), style="dim") for note in report.notes]
    return Group(render_table(figures, heads=False), *(render_table(each) for each in shown if each.rows), *notes)


# ---- tuning -------------------------------------------------------------------------------------------------------------


def render_tuning(result: TuningResult, has_holdout: bool) -> RenderableType:
    """The trials, the recommendation with its probability of winning, and what more time would be used for."""
    most = max(MAX_TRIALS, sum(trial.is_finalist for trial in result.trials))
    shown = render_table(tables.trials_table(result), most, wrapped=(1,))
    shown.rows[0].style = "bold"
    n_hidden = len(result.trials) - most
    hidden = [Text(f"and {n_hidden} more, in --report and --json", style="dim")] if n_hidden > 0 else []
    return Group(shown, *hidden, _sentences(*describe_tuning(result, has_holdout)))


# ---- an audit -----------------------------------------------------------------------------------------------------------

TEXT_LENGTH, MAX_UNCHANGED, MAX_DUPLICATES = 110, 3, 6  # what is shown of a text, of further labels, of a group


def render_audit(found: Audit, most: int) -> RenderableType:
    """An audit with at most so many entries of each kind."""
    head = f"\n{counted(found.n_issues, 'label issue')}; an estimated {found.estimated_wrong:,.0f} labels are wrong"
    parts: list[RenderableType] = [Text(visible_name(tables.describe_audit(found))), Text(head, style="bold")]
    for rank, issue in enumerate(found.issues[:most], start=1):
        parts += [Text(), *_issue(rank, issue)]
    parts += _more(len(found.issues), most, "use --show, --report or --out to see them")
    parts += _section(tables.siblings_table(found), most)
    rows: list[Sequence[str]] = []
    for group in found.duplicates[:most]:
        table = tables.duplicates_table(group, TEXT_LENGTH // 2)
        rows += [(table.columns[0] if k == 0 else "", *row) for k, row in enumerate(table.rows[:MAX_DUPLICATES])]
        if len(table.rows) > MAX_DUPLICATES:
            rows.append(("", f"and {len(table.rows) - MAX_DUPLICATES:,} more", "", ""))
    parts += _section(Table("Duplicates with different labels", ("", "place", "labels", "text"), rows, range(4)), len(rows))
    parts += _more(len(found.duplicates), most, "use --report to see all", "group")
    return Group(*parts, *_section(tables.classes_table(found), most))


def _issue(rank: int, issue: LabelIssue) -> Iterable[RenderableType]:
    distance = f", {counted(issue.distance, 'step')} apart" if issue.distance else ""
    about = f"  {ISSUE_KINDS[issue.kind]}{distance}"
    yield Text(f"{rank:>3}  ").append(visible_name(issue.place), style="bold").append(about, style="dim")
    if issue.text is not None:
        yield Text(visible_name(f"     {shorten(issue.text, TEXT_LENGTH)}"))
    if issue.given is not None:
        yield _label("given", issue.given, "red")
    if issue.suggested is not None:
        yield _label("add" if issue.kind == "missing" else "suggested", issue.suggested, "green")
    yield from (_label("keep", info, "") for info in issue.unchanged[:MAX_UNCHANGED])
    if len(issue.unchanged) > MAX_UNCHANGED:
        yield Text(f"               and {len(issue.unchanged) - MAX_UNCHANGED:,} more")
    if issue.words:
        yield Text(visible_name(f"     words     {words_of(issue)}"), style="dim")


def _label(name: str, info: LabelInfo, style: str) -> Text:
    path = visible_name(" > ".join(info.path))
    return Text(f"     {name:<9} ").append(path, style=style).append(f"  {percentage(info.probability)}")


def _section(table: Table, most: int) -> list[RenderableType]:
    if not table.rows:
        return []
    note = [Text(table.note, style="dim")] if table.note else []
    return [Text(), render_table(table, most), *_more(len(table.rows), most, "use --show or --report to see them"), *note]


def _more(n: int, most: int, how: str, thing: str = "") -> list[RenderableType]:
    what = counted(n - most, thing) if thing else f"{n - most:,}"
    return [Text(f"and {what} more; {how}", style="dim")] if n > most else []


# ---- a comparison -------------------------------------------------------------------------------------------------------

ONE_LINE = 118  # columns that a value and its interval need side by side
FEW_SYSTEMS = 5  # up to this number, every pair is shown
TEST_WIDTH, PAIR_WIDTH = 45, 10
# what is written above the marks of a test, below its letter
SHORT = {"precision": "prec", "recall": "rec", "accuracy": "acc", "bootstrap_accuracy": "exact", "bootstrap_micro_f1": "micro"}
SHORT |= {"bootstrap_macro_f1": "macro", "bootstrap_hierarchical_f1": "hier", "bootstrap_h_loss": "loss"}


def render_comparison(found: Comparison, advice: Recommendation, width: int) -> RenderableType:
    """Costs, measures, tests and the recommendation; of many systems, only tests against the recommended one."""
    many = len(found.systems) > FEW_SYSTEMS
    systems = found.ranked(advice.by) if many else found.systems
    letters = letters_of(systems)
    costs = tables.costs_table(systems, letters)
    title = counted(found.documents, "document") + (f" in {found.folds} folds" if found.folds > 1 else "")
    parts: list[RenderableType] = [render_table(Table(title, costs.columns, costs.rows, range(2)), wrapped=(1,)), Text()]
    intervals = (advice.by,) if many and width < ONE_LINE else tuple(LABELS)
    parts += [_measures(found, systems, letters, width, intervals)]
    parts += [Text(tables.describe_measures(found) + "\n", style="dim")]
    parts += _against_recommended(found, systems, advice, letters) if many else _every_pair(found, letters, width)
    if found.skipped:
        skipped = Table("Skipped", ("system", "reason"), [(each.name, each.reason) for each in found.skipped], range(2))
        parts += [Text(), render_table(skipped)]
    if found.notes:
        parts += [Text(), *(Text(visible_name(f"Note: {note}."), style="dim") for note in found.notes)]
    return Group(*parts, _sentences(*advice.sentences))


def _measures(
    found: Comparison, systems: Sequence[SystemResult], letters: dict[str, str], width: int, intervals: Sequence[str]
) -> RichTable:
    table, best = _grid("", "", *LABELS.values()), tables.best_values(found)
    join, zero = (" ", "") if width >= ONE_LINE or len(intervals) == 1 else ("\n", "0")  # below the value, without its 0
    for system in systems:
        cells = []
        for name in LABELS:
            value = system.measures[name]
            is_best = round(value.value, 3) == best[name]
            cells.append(Text(f"{value.value:.3f}{'*' if is_best else ' '}", style="bold" if is_best else ""))
            if name in intervals:
                low, high = (f"{end:.3f}".removeprefix(zero) for end in (value.low, value.high))
                cells[-1].append(f"{join}[{low}, {high}]", style="not bold dim")
        table.add_row(letters[system.name], *cells)
    return table


def _every_pair(found: Comparison, letters: dict[str, str], width: int) -> list[RenderableType]:
    """The p-values of every pair; as many pairs side by side as fit."""
    parts: list[RenderableType] = []
    at_once = max(1, (width - TEST_WIDTH) // PAIR_WIDTH)
    for start in range(0, len(found.pairs), at_once):
        pairs = found.pairs[start : start + at_once]
        table = _grid("p-values", "", "test", *(f"{letters[pair.a]} – {letters[pair.b]}" for pair in pairs))
        for test, (symbol, about) in TESTS.items():
            cells = []
            for pair in pairs:
                p, winner = pair.corrected[test], pair.winner(test)
                shown = p_value(p, LEVEL) if math.isnan(p) else p_value(p, LEVEL).rjust(6)
                cells.append(Text(shown, "dim") if winner is None else Text(f"{shown} {letters[winner]}", "bold"))
            table.add_row(symbol, about, *cells)
        parts += [table, Text()]
    legend = f"Two-sided, {tables.describe_correction(found)}; the letter is the better system where p < {LEVEL}."
    return [*parts[:-1], Text(legend + tables.limits_of_tests(found), style="dim")]


def _against_recommended(
    found: Comparison, systems: Sequence[SystemResult], advice: Recommendation, letters: dict[str, str]
) -> list[RenderableType]:
    """All tests of every system against the recommended one."""
    best = next(system for system in systems if system.name == advice.system)
    heads = [f"{symbol}\n{SHORT.get(test, '')}" for test, (symbol, _) in TESTS.items()]
    letter = letters[advice.system]
    title = f"Against {letter}, {_literal(advice.system)}: difference in {LABELS[advice.by]}, and tests"
    table = _grid(title, "", "\ndifference", *heads)
    for system in (system for system in systems if system is not best):
        apart, marks = system.measures[advice.by].value - best.measures[advice.by].value, []
        pair = found.pair(system.name, best.name)
        for test in TESTS:
            winner, is_unknown = pair.winner(test), math.isnan(pair.corrected[test])
            mark = "–" if is_unknown else "·" if winner is None else "+" if winner == system.name else "−"
            marks.append(Text(mark, style={"–": "", "·": "dim"}.get(mark, "bold")))
        table.add_row(letters[system.name], _signed(apart), *marks)
    legend = (
        f"+ significantly better than {letter}, − significantly worse (p < {LEVEL}, two-sided, "
        f"{tables.describe_correction(found)}), · not significant. s: decisions that only one got right; S, T, T', W: F1 of "
        "classes; p: micro precision, recall, binary accuracy; b: measures on bootstrap resamples."
        f"{tables.limits_of_tests(found)} --report and --json have every pair."
    )
    return [table, Text(legend, style="dim")]


def _signed(difference: float) -> str:
    """Three decimals and a sign, except for zero.

    >>> _signed(-0.0312), _signed(0.5), _signed(-0.0001)
    ('−0.031', '+0.500', ' 0.000')
    """
    shown = f"{difference:+z.3f}".replace("-", "−")
    return " 0.000" if shown == "+0.000" else shown


# ---- a taxonomy ---------------------------------------------------------------------------------------------------------


def draw(taxonomy: Taxonomy, counts: Sequence[int] | None = None, levels: int = 3, width: int = 8) -> Tree:
    """A tree of the first levels, with at most `width` children per node. counts: documents of each node, shown beside it."""
    kind, n_leaves = "tree" if taxonomy.is_tree else "DAG", int(taxonomy.is_leaf.sum())
    title = f"[bold]{kind} of {len(taxonomy):,} nodes, {n_leaves:,} leaves, {taxonomy.n_levels} levels[/bold]"
    top = Tree(title, guide_style="dim")
    _draw_below(top, taxonomy, [int(root) for root in taxonomy.roots], counts, levels, max(width, 20))
    return top


def describe_main_parents(taxonomy: Taxonomy, n_shown: int = 3) -> str:
    """How many nodes of a DAG have several parents, and under which of them the first ones are placed.

    >>> from ramify import Taxonomy
    >>> describe_main_parents(Taxonomy.from_edges([("a", None), ("b", None), ("x", "a"), ("x", "b")]))
    "1 node with several parents: 'x' under 'a' (also below 'b')"
    """
    nodes = np.flatnonzero(np.diff(taxonomy.parent_offsets) > 1).tolist()
    parent, titles, shown = taxonomy.tree.parent, taxonomy.titles, []
    for node in nodes[:n_shown]:
        others = ", ".join(repr(titles[other]) for other in taxonomy.parents_of(node).tolist() if other != parent[node])
        shown.append(f"{titles[node]!r} under {titles[parent[node]]!r} (also below {others})")
    more = f"; and {len(nodes) - n_shown:,} more" if len(nodes) > n_shown else ""
    return f"{counted(len(nodes), 'node')} with several parents: {'; '.join(shown)}{more}"


def _draw_below(
    branch: Tree, taxonomy: Taxonomy, nodes: list[int], counts: Sequence[int] | None, levels: int, width: int
) -> None:
    if nodes and levels == 0:
        branch.add(f"[dim]… {len(nodes)} below[/dim]")
        return
    for node in nodes[:width]:
        count = f" [cyan]{counts[node]:,}[/cyan]" if counts is not None else ""
        twig = branch.add(_literal(taxonomy.titles[node]) + count)
        _draw_below(twig, taxonomy, taxonomy.children_of(node).tolist(), counts, levels - 1, min(width, 8))
    if len(nodes) > width:
        branch.add(f"[dim]… and {len(nodes) - width:,} more[/dim]")
