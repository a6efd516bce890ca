"""Reports, audits and comparisons as single HTML pages, rendered by the templates in ``templates/``.

Jinja2 escapes every value, since texts and labels come from users; only the charts, which escape by themselves, are taken
as they are. Jinja2 is imported when the first page is rendered.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from ramify.formatting import counted, duration
from ramify.metrics.evaluation import Report
from ramify.metrics.resampling import LOSSES
from ramify.reports import charts, tables
from ramify.reports.figures import scoped_style
from ramify.workflows.auditing.audit import Audit
from ramify.workflows.comparison import LABELS, LEVEL, TESTS, Comparison, Recommendation, SystemResult, letters_of
from ramify.workflows.tuning.result import TuningResult, describe_tuning

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_DOTS, MAX_GROUPS, MAX_LETTERS = 2_000, 200, 160  # nodes of a chart, groups of duplicates, and letters of their texts
KINDS = (("recommended", 4), ("not significantly different", 2), ("significantly worse", 0))  # names and colours of points
PAGE, NOTEBOOK = "base.html", "notebook.html"  # layouts: a whole page, and a part of one with its own style
SHORTEST = 1e-6  # seconds; a logarithmic axis has no place for 0


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    loader = PackageLoader("ramify.reports", "templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    # text in which `backticks` become code
    made.filters["code"] = lambda words: Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(words))))
    made.globals |= {
        "scoped_style": scoped_style,
        "counted": counted,
        "percentage": tables.percentage,
        "shorten": tables.shorten,
    }
    return made


def render(template: str, layout: str = PAGE, **values: Any) -> str:
    """A page by a template, or a part of one for a notebook; every value is escaped."""
    return _environment().get_template(template).render(layout=layout, **values) + "\n"


# ---- a report -----------------------------------------------------------------------------------------------------------


def report_page(
    report: Report,
    title: str,
    lead: str = "",
    tuning: TuningResult | None = None,
    has_holdout: bool = True,
    layout: str = PAGE,
) -> str:
    """A report and, if any, the tuning. has_holdout: whether the report is on documents that were not used for tuning."""
    sentences = None if tuning is None else describe_tuning(tuning, has_holdout)
    trials = None if tuning is None else {"sentences": sentences, "trials": tables.trials_table(tuning)}
    figures = [("documents", f"{report.documents:,}"), *tables.figure_rows(report)]
    plots = report_plots(report).values()
    parts: dict[str, Any] = {"figures": figures, "plots": plots, "notes": report.notes, "tuning": trials}
    return render("report.html", layout, title=title, lead=lead, tables=tables.report_tables(report).values(), **parts)


def report_plots(report: Report) -> dict[str, tuple[str, str]]:
    """The caption and the chart of what there is: levels, nodes, calibration, confusions."""
    levels = [(f"level {row['key'] + 1}", (row["f1"], row["macro_f1"])) for row in report.levels]
    points = [(row["support"], row["f1"], row["path"]) for row in report.nodes if row["support"]][:MAX_DOTS]
    plots = {
        "levels": ("F1 at each level", charts.bars(levels, ("micro F1", "macro F1"), "F1 at each level")),
        "nodes": ("F1 against support, one dot per node", charts.dots(points, "F1 against support", "documents of the node")),
    }
    if report.reliability:
        lines = []
        for depth in sorted({row["depth"] for row in report.reliability})[: charts.N_COLOURS]:
            at = [(row["predicted"], row["observed"]) for row in report.reliability if row["depth"] == depth]
            lines.append(charts.Line(f"level {depth + 1}", at))
        lines.append(charts.Line("", [(0.0, 0.0), (1.0, 1.0)], dashed=True))
        title = "Predicted probability against observed frequency"
        chart = charts.Chart(title, lines, "predicted probability", "observed frequency")
        plots["calibration"] = title, charts.line_chart(chart)
    if report.confusions:
        worst = [(f"{row['true']} → {row['predicted']}", row["count"]) for row in report.confusions[:8]]
        caption = "Most confused siblings (true → predicted)"
        plots["confusions"] = caption, charts.horizontal_bars(worst, "Most confused siblings")
    return plots


# ---- an audit -----------------------------------------------------------------------------------------------------------


def audit_page(found: Audit, title: str, layout: str = PAGE, most: int | None = None) -> str:
    """Everything that an audit found. most: of each kind (default: all)."""
    figures = (
        ("documents", f"{found.documents:,}"),
        ("wrong labels (estimate)", f"≈ {found.estimated_wrong:,.0f}"),
        ("label issues", f"{found.n_issues:,}"),
        ("groups of duplicates with different labels", f"{len(found.duplicates):,}"),
        ("pairs of siblings that cannot be distinguished", f"{len(found.inseparable_siblings):,}"),
        ("classes that cannot be learnt", f"{len(found.classes):,}"),
    )
    issues, n_groups = found.issues[:most], MAX_GROUPS if most is None else most
    shown = f"The first {len(issues):,} of {found.n_issues:,}, the most likely errors first." if issues else "None."
    groups = [tables.duplicates_table(group, MAX_LETTERS) for group in found.duplicates[:n_groups]]
    values: dict[str, Any] = {"lead": tables.describe_audit(found), "figures": figures, "shown": shown, "issues": issues}
    values |= {"kinds": tables.ISSUE_KINDS, "siblings": tables.siblings_table(found).first(most)}
    values |= {"classes": tables.classes_table(found).first(most)}
    values |= {"groups": groups, "more_groups": max(0, len(found.duplicates) - n_groups)}
    return render("audit.html", layout, title=title, **values)


# ---- a comparison -------------------------------------------------------------------------------------------------------


def comparison_page(found: Comparison, advice: Recommendation, title: str, layout: str = PAGE) -> str:
    """Everything that a comparison of systems found."""
    systems = found.ranked(advice.by)
    letters = letters_of(systems)
    folds = f" in {found.folds} folds" if found.folds > 1 else ""
    about = (
        f"▲ the system of the row is significantly better in {LABELS[advice.by]} than that of the column, ▼ worse: "
        f"paired bootstrap, two-sided, p < {LEVEL}, {tables.describe_correction(found)}; · not significant. "
        "Point at a cell for all tests."
    )
    matrix = []
    for one in systems:
        cells = [_cell(found, advice.by, one, other) for other in systems]
        matrix.append({"letter": letters[one.name], "name": one.name, "cells": cells})
    lead = f"{len(systems)} systems on {found.documents:,} documents{folds}, compared by {LABELS[advice.by]}."
    skipped = tables.Table("Skipped", ("system", "reason"), [(s.name, s.reason) for s in found.skipped], range(2))
    values: dict[str, Any] = {"advice": advice.sentences, "plots": comparison_plots(found, advice).values()}
    values |= {
        "matrix": matrix,
        "measures": tables.measures_table(found, systems, letters),
        "costs": tables.costs_table(systems, letters),
    }
    values |= {"pairs": tables.pairs_table(found, systems, letters), "about_matrix": about, "skipped": skipped}
    return render("comparison.html", layout, title=title, lead=lead, notes=found.notes, **values)


def comparison_plots(found: Comparison, advice: Recommendation) -> dict[str, tuple[str, str]]:
    """Quality against the time of training, where systems were trained, and of prediction: caption and chart."""
    systems = found.ranked(advice.by)
    label, is_loss = LABELS[advice.by], advice.by in LOSSES
    y = f"{label} [95% interval]{', less is better' if is_loss else ''}"
    prediction = [1000 / system.documents_per_second for system in systems]
    training = [system.training_seconds for system in systems if system.training_seconds is not None]
    times = [("prediction time", "seconds for 1,000 documents", prediction)]
    if len(training) == len(systems):
        times.insert(0, ("training time", "seconds of one training", training))
    plots = {}
    for name, x, all_seconds in times:
        points = []
        for system, seconds in zip(systems, all_seconds, strict=True):
            value = system.measures[advice.by]
            kind = 0 if system.name == advice.system else 1 if system.name in advice.not_worse else 2
            tip, at = f"{system.name}: {label} {value.value:.3f}, {duration(seconds)}", max(seconds, SHORTEST)
            points.append(charts.NamedPoint(system.name, at, value.value, value.low, value.high, kind, tip))
        title = f"{label} against {name}"
        plots[name] = title, charts.scatter(points, title, f"{x}, logarithmic", y, KINDS, less_is_up=is_loss)
    return plots


def _cell(found: Comparison, by: str, one: SystemResult, other: SystemResult) -> dict[str, str] | None:
    """A cell of the matrix: whether one system is better than another by the bootstrap, with all tests as a tip."""
    if one is other:
        return None
    pair = found.pair(one.name, other.name)
    winner = pair.winner(f"bootstrap_{by}")
    kind, mark = ("unsure", "·") if winner is None else ("ahead", "▲") if winner == one.name else ("behind", "▼")
    tests = [f"{symbol} {about}: {tables.p_and_winner(pair, test)}" for test, (symbol, about) in TESTS.items()]
    return {"kind": kind, "mark": mark, "tip": "\n".join([f"{pair.a}, {pair.b}", *tests])}
