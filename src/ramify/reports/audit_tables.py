"""What an audit says in words, the same in the terminal and on the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ramify.formatting import counted
from ramify.workflows import Audit, LabelIssue
from ramify.workflows.auditing.findings import LabelInfo, told_words

KIND_WORDS = {"wrong": "seems wrong", "too many": "seems too much", "missing": "seems to be missing"}


def beginning(text: str, most: int) -> str:
    """The first characters of a text in one line.

    >>> beginning("no  picture\\non my new television", 20)
    'no picture on my ne…'
    """
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1] + "…"


def chance(p: float) -> str:
    """A probability as a percentage that is never rounded to none or all.

    >>> chance(0.5), chance(0.0004), chance(0.9996)
    ('50%', '< 0.1%', '> 99.9%')
    """
    if p < 0.001:
        return "< 0.1%"
    if p > 0.999:
        return "> 99.9%"
    return f"{p:.1%}" if p < 0.1 or p > 0.9 else f"{p:.0%}"


def summary_of(found: Audit) -> str:
    """What was done, in a sentence or two."""
    unjudged = f" {found.unjudged:,} documents are the only ones of their class and were not judged." if found.unjudged else ""
    return (
        f"{found.documents:,} documents of {found.source}, judged by {found.system} in {found.folds} folds: each by what "
        f"learnt from the others.{unjudged}"
    )


# --------------------------------------------------------------------------------------------------------------
# An audit in the terminal.


TEXT = 110  # characters of a document that are shown
MOST_KEPT, MOST_ALIKE = 3, 6  # further labels of a document, and documents of a group of duplicates


def render_audit(found: Audit, most: int) -> RenderableType:
    """The whole audit, with so many entries of each kind."""
    parts = [Text(summary_of(found)), *_findings(found, most), *_twins(found, most)]
    return Group(*parts, *_duplicates(found, most), *_classes(found, most))


def _findings(found: Audit, most: int) -> list[RenderableType]:
    about = f"; about {found.estimated_wrong:,.0f} labels are wrong, by estimate"
    told = f"\n{counted(found.doubtful, 'label')} with a likelier one{about}"
    parts: list[RenderableType] = [Text(told, style="bold")]
    for rank, finding in enumerate(found.findings[:most], start=1):
        parts += [Text(), *_finding(rank, finding)]
    return [*parts, *_more(len(found.findings), most, "--show, --page and --out tell more")]


def _finding(rank: int, finding: LabelIssue) -> list[RenderableType]:
    far = f", {counted(finding.distance, 'step')} apart" if finding.distance else ""
    head = Text(f"{rank:>3}  ").append(finding.place, style="bold").append(f"  {KIND_WORDS[finding.kind]}{far}", style="dim")
    lines: list[RenderableType] = [head]
    better = "also" if finding.kind == "missing" else "rather"
    if finding.text is not None:
        lines.append(Text(f"     {beginning(finding.text, TEXT)}"))
    lines += [_label(*each) for each in (("given", finding.given, "red"), (better, finding.suggested, "green")) if each[1]]
    lines += [_label("keeps", view, "") for view in finding.kept[:MOST_KEPT]]
    lines += [Text(f"             and {n:,} more") for n in [len(finding.kept) - MOST_KEPT] if n > 0]
    words = told_words(finding)
    return [*lines, *([Text(f"     words   {words}", style="dim")] if words else [])]


def _label(name: str, view: LabelInfo | None, style: str) -> Text:
    assert view is not None
    return Text(f"     {name:<7} ").append(" > ".join(view.path), style=style).append(f"  {chance(view.probability)}")


def _twins(found: Audit, most: int) -> list[RenderableType]:
    rows = [
        (p.first, p.second, f"{p.documents[0]:,}", f"{p.documents[1]:,}", f"{p.share:.0%}", f"{p.p_value:.2g}")
        for p in found.twins
    ]
    head = ("one", "other", "documents", "of other", "told right", "p, corrected")
    return _section("Siblings that cannot be told apart (guessing is right for 50%)", head, rows, most, right=range(2, 6))


def _duplicates(found: Audit, most: int) -> list[RenderableType]:
    rows: list[Sequence[str]] = []
    for group in found.duplicates[:most]:
        kind = "same words" if group.is_equal else "nearly the same"
        for k, place in enumerate(group.places[:MOST_ALIKE]):
            text = "" if group.texts[k] is None else beginning(group.texts[k] or "", TEXT // 2)
            rows.append((kind if k == 0 else "", place, " | ".join(group.labels[k]), text))
        if len(group.places) > MOST_ALIKE:
            rows.append(("", f"and {len(group.places) - MOST_ALIKE:,} more", "", ""))
    head = ("", "where", "labels", "text")
    told = _section("Duplicates with different labels", head, rows, len(rows))
    return [*told, *_more(len(found.duplicates), most, "--page tells all", "group")]


def _classes(found: Audit, most: int) -> list[RenderableType]:
    rows = [
        (each.label, each.kind, f"{each.documents:,}", "" if each.taken_for is None else f"{each.taken_for} ({each.taken:,})")
        for each in found.classes
    ]
    head = ("class", "trouble", "documents", "mostly taken for")
    return _section("Classes that cannot be learnt", head, rows, most, right=(2,))


def _section(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], most: int, right: Any = ()
) -> list[RenderableType]:
    if not rows:
        return []
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, name in enumerate(head):
        table.add_column(name, justify="right" if place in right else "left")
    for row in rows[:most]:
        table.add_row(*(Text(cell) for cell in row))
    return [Text(f"\n{title}", style="bold"), table, *_more(len(rows), most, "--show and --page tell more")]


def _more(n: int, most: int, how: str, thing: str = "") -> list[RenderableType]:
    what = counted(n - most, thing) if thing else f"{n - most:,}"
    return [Text(f"and {what} more; {how}", style="dim")] if n > most else []
