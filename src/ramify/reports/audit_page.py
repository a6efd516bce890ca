"""An audit as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ramify.reports.audit_tables import KIND_WORDS, beginning, chance, summary_of
from ramify.reports.page import table, whole_page
from ramify.workflows.auditing.audit import Audit, Duplicates
from ramify.workflows.auditing.findings import LabelInfo, LabelIssue

TEXT, SHORT = 420, 160  # characters of a document that are shown
MOST_GROUPS, MOST_KEPT = 200, 5
STYLE = """
.cards { grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); }
.finding { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .8rem 1rem; margin: .7rem 0; }
.finding .top { display: flex; gap: .8rem; color: var(--soft); font-size: .85rem; flex-wrap: wrap; }
.finding .top b { color: var(--ink); } .finding .top .far { margin-left: auto; }
.finding p.said { margin: .5rem 0; overflow-wrap: anywhere; }
.change { display: grid; grid-template-columns: auto 1fr auto; gap: .15rem .7rem; font-size: .92rem; align-items: baseline; }
.change .was { color: var(--c4); }
  .change .now { color: var(--c2); } .change .p { text-align: right; font-variant-numeric: tabular-nums; }
.change span { overflow-wrap: anywhere; } .change b { font-weight: 600; }
.why { margin: .5rem 0 0; font-size: .85rem; color: var(--soft); }
.why span { display: inline-block; border: 1px solid var(--line); border-radius: 999px; padding: 0 .55rem;
  margin: .15rem .25rem 0 0; color: var(--ink); background: var(--page); }
td.text { overflow-wrap: anywhere; } .group { margin: .9rem 0; }
"""


def render_audit_page(found: Audit, title: str) -> str:
    """The whole page; every word that comes from users is escaped."""
    body = "".join((_cards(found), _findings(found), _twins(found), _duplicates(found), _classes(found)))
    return whole_page(title, summary_of(found), body, STYLE)


def _cards(found: Audit) -> str:
    cards = (
        (f"{found.documents:,}", "documents"),
        (f"≈ {found.estimated_wrong:,.0f}", "labels that are wrong, by estimate"),
        (f"{found.doubtful:,}", "labels with a likelier one"),
        (f"{len(found.duplicates):,}", "groups of duplicates with different labels"),
        (f"{len(found.twins):,}", "pairs of siblings that cannot be told apart"),
        (f"{len(found.classes):,}", "classes that cannot be learnt"),
    )
    drawn = (f'<div class="card"><b>{value}</b><span>{escape(name)}</span></div>' for value, name in cards)
    return f'<div class="cards">{"".join(drawn)}</div>'


# ---- labels -------------------------------------------------------------------------------------------------------------


def _findings(found: Audit) -> str:
    if not found.findings:
        return "<h2>Labels that seem wrong</h2><p>None.</p>"
    shown = "".join(_finding(rank, finding) for rank, finding in enumerate(found.findings, start=1))
    of = f"The first {len(found.findings):,} of {found.doubtful:,}, most doubtful first."
    return f"<h2>Labels that seem wrong</h2><p>{of}</p>{shown}"


def _finding(rank: int, finding: LabelIssue) -> str:
    far = f'<span class="far">{_steps(finding.distance)} apart</span>' if finding.distance else ""
    top = f"<b>{rank}</b><span>{escape(finding.place)}</span><span>{escape(KIND_WORDS[finding.kind])}</span>{far}"
    said = "" if finding.text is None else f'<p class="said">{escape(beginning(finding.text, TEXT))}</p>'
    better = "also" if finding.kind == "missing" else "rather"
    labels = _label("given", "was", finding.given) + _label(better, "now", finding.suggested)
    labels += "".join(_label("keeps", "kept", view) for view in finding.kept[:MOST_KEPT])
    change = f'<div class="change">{labels}</div>{_why(finding)}'
    return f'<section class="finding"><div class="top">{top}</div>{said}{change}</section>'


def _steps(distance: int) -> str:
    return "1 step" if distance == 1 else f"{distance} steps"


def _label(name: str, kind: str, view: LabelInfo | None) -> str:
    if view is None:
        return ""
    path = " › ".join(view.path)
    return f'<b>{name}</b><span class="{kind}">{escape(path)}</span><span class="p">{escape(chance(view.probability))}</span>'


def _why(finding: LabelIssue) -> str:
    words = "".join(f'<span title="{weight:+.2f}">{escape(word)}</span>' for word, weight in finding.words)
    return f'<p class="why">because of {words}</p>' if words else ""


# ---- the rest -----------------------------------------------------------------------------------------------------------


def _twins(found: Audit) -> str:
    if not found.twins:
        return ""
    head = ("siblings", "", "documents", "", "told right", "p, corrected")
    rows = (
        [
            pair.first,
            pair.second,
            f"{pair.documents[0]:,}",
            f"{pair.documents[1]:,}",
            f"{pair.share:.0%}",
            f"{pair.p_value:.2g}",
        ]
        for pair in found.twins
    )
    about = "Guessing is right for 50%. Join them, say more clearly what tells them apart, or look at their labels together."
    return f"<h2>Siblings that cannot be told apart</h2><p>{about}</p>{table(head, rows, texts=range(2))}"


def _duplicates(found: Audit) -> str:
    if not found.duplicates:
        return ""
    shown = found.duplicates[:MOST_GROUPS]
    more = len(found.duplicates) - len(shown)
    note = f"<p>And {more:,} groups more.</p>" if more else ""
    return f"<h2>Duplicates with different labels</h2>{''.join(map(_group, shown))}{note}"


def _group(group: Duplicates) -> str:
    kind = "same words" if group.is_equal else "nearly the same words"
    rows: Iterable[list[str]] = (
        [place, " | ".join(labels), "" if text is None else beginning(text, SHORT)]
        for place, labels, text in zip(group.places, group.labels, group.texts, strict=True)
    )
    return f'<div class="group">{table((kind, "labels", "text"), rows, texts=range(3))}</div>'


def _classes(found: Audit) -> str:
    if not found.classes:
        return ""
    rows = (
        [each.label, each.kind, f"{each.documents:,}", "" if each.taken_for is None else f"{each.taken_for} ({each.taken:,})"]
        for each in found.classes
    )
    head = ("class", "trouble", "documents", "mostly taken for")
    return f"<h2>Classes that cannot be learnt</h2>{table(head, rows, texts=(0, 1, 3))}"
