"""A report as one HTML page that needs nothing else: no script, no request, light and dark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Any

from ramify.metrics.evaluation import Report
from ramify.reports import charts
from ramify.reports.terminal import (
    CALIBRATION_COLUMNS,
    GUARANTEE_COLUMNS,
    LABELS,
    MODIFIED_COLUMNS,
    calibration_cells,
    guarantee_cells,
    modified_cells,
)

MAX_DOTS, MAX_ROWS = 2_000, 100
STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5b6678; --line: #d9dee7; --card: #f6f8fb; --page: #fff;
  --c0: #2f6fde; --c1: #e0862c; --c2: #2f9e6e; --c3: #a14bc9; --c4: #d2445b; --c5: #4b8f9c; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e7ebf2; --soft: #9aa6ba; --line: #333c4b; --card: #1b212c; --page: #12161d;
  --c0: #6ea2ff; --c1: #f2a75c; --c2: #5bc896; --c3: #c98aea; --c4: #f07f90; --c5: #7cc3d0; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  max-width: 1040px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
p.lead { color: var(--soft); margin: .2rem 0 1.4rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(185px, 1fr)); gap: .7rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .7rem .9rem; }
.card b { display: block; font-size: 1.5rem; font-variant-numeric: tabular-nums; }
.card span { color: var(--soft); font-size: .85rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(340px, 100%), 1fr)); gap: 1rem; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .8rem; }
.plots figure { max-width: 600px; margin: 0; } .scroll + .plots { margin-top: 1rem; }
figcaption { font-weight: 600; margin-bottom: .4rem; } svg { width: 100%; height: auto; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 600; } .text { text-align: left; }
.grid { stroke: var(--line); } .dash { stroke-dasharray: 4 4; stroke: var(--soft); }
.tick { fill: var(--soft); font-size: 11px; text-anchor: middle; }
.end { text-anchor: end; } .start { text-anchor: start; }
.value { fill: var(--ink); font-size: 10px; text-anchor: middle; } .dot { opacity: .65; }
.name { fill: var(--ink); font-size: 11.5px; paint-order: stroke; stroke: var(--card); stroke-width: 3px; }
.spread { stroke: var(--soft); opacity: .35; stroke-width: 2; } figure + figure { margin-top: 1rem; }
.advice p { margin: .3rem 0; } summary { cursor: pointer; color: var(--soft); }
.matrix { width: auto; } .matrix td { text-align: center; } .ahead { color: var(--c2); } .behind { color: var(--c4); }
.unsure { color: var(--soft); } .whole td { white-space: nowrap; padding: .3rem .4rem; }
""" + "".join(
    f".s{i} {{ fill: var(--c{i}); }} .l{i} {{ stroke: var(--c{i}); fill: none; stroke-width: 2; }}\n" for i in range(6)
)


def render_page(report: Report, title: str, lead: str = "", more: str = "") -> str:
    """The whole page; every word that comes from the data is escaped. more: HTML that stands at the end."""
    notes = "".join(f"<p>Note: {escape(note)}.</p>" for note in report.notes)
    return whole_page(
        title,
        lead,
        f"{_cards(report)}<h2>At a glance</h2>{_plots(report)}"
        f"<h2>By level</h2>{_levels(report)}{_modified(report)}{_calibration(report)}{_guarantees(report)}{_branches(report)}"
        f"{_confusions(report)}{_distances(report)}{_nodes(report)}{notes}{more}",
    )


def whole_page(title: str, lead: str, body: str, style: str = "") -> str:
    """A page around a body of HTML; void elements are closed, so that readers of XML can read it, too."""
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"/><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"/><style>{STYLE}{style}</style></head><body><main>'
        f'<h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>{body}</main></body></html>\n'
    )


def _cards(report: Report) -> str:
    cards = [("documents", f"{report.documents:,}")]
    cards += [(label, f"{report.figures[key]:.3f}") for key, label in LABELS.items() if key in report.figures]
    return (
        '<div class="cards">'
        + "".join(f'<div class="card"><b>{v}</b><span>{escape(k)}</span></div>' for k, v in cards)
        + "</div>"
    )


def _plots(report: Report) -> str:
    levels = [(f"level {row['key'] + 1}", (row["f1"], row["macro_f1"])) for row in report.levels]
    plots = [("F1 at each level", charts.bars(levels, ("micro F1", "macro F1"), "F1 at each level"))]
    points = [(row["support"], row["f1"], row["path"]) for row in report.nodes if row["support"]][:MAX_DOTS]
    plots.append(("Support against F1, one dot a node", charts.dots(points, "Support against F1", "documents of the node")))
    if report.reliability:
        plots.append(("Predicted and observed frequency", _reliability_plot(report)))
    if report.confusions:
        worst = [(f"{row['true']} → {row['predicted']}", row["count"]) for row in report.confusions[:8]]
        plots.append(("Siblings taken for each other (true → said)", charts.rows(worst, "Siblings taken for each other")))
    return '<div class="plots">' + "".join(f"<figure><figcaption>{c}</figcaption>{p}</figure>" for c, p in plots) + "</div>"


def _reliability_plot(report: Report) -> str:
    depths = sorted({row["depth"] for row in report.reliability})[:6]
    series = [
        (f"level {d + 1}", [(row["predicted"], row["observed"]) for row in report.reliability if row["depth"] == d])
        for d in depths
    ]
    return charts.lines(series, "Predicted and observed frequency", "predicted probability")


def _levels(report: Report) -> str:
    head = ("level", "nodes", "support", "precision", "recall", "micro F1", "macro F1", "H-loss")
    ratios = ("precision", "recall", "f1", "macro_f1", "h_loss")
    rows = (
        [str(r["key"] + 1), f"{r['nodes']:,}", f"{r['support']:,}", *(f"{r[k]:.3f}" for k in ratios)] for r in report.levels
    )
    return table(head, rows)


def _modified(report: Report) -> str:
    if not report.modified:
        return ""
    return "<h2>Modified hierarchy</h2>" + table(MODIFIED_COLUMNS, map(modified_cells, report.modified), texts=range(1))


def _calibration(report: Report) -> str:
    if not report.calibration:
        return ""
    rows = map(calibration_cells, report.calibration)
    return "<h2>How far off probabilities are, by level</h2>" + table(CALIBRATION_COLUMNS, rows)


def _guarantees(report: Report) -> str:
    if not report.guarantees:
        return ""
    rows = map(guarantee_cells, report.guarantees)
    return "<h2>Backing off to a parent to keep the error rate</h2>" + table(GUARANTEE_COLUMNS, rows)


def _branches(report: Report) -> str:
    ratios = ("precision", "recall", "f1", "macro_f1")
    rows = (
        [r["name"], f"{r['nodes']:,}", f"{r['support']:,}", *(f"{r[k]:.3f}" for k in ratios)]
        for r in report.branches[:MAX_ROWS]
    )
    return "<h2>By branch</h2>" + table(
        ("branch", "nodes", "support", "precision", "recall", "micro F1", "macro F1"), rows, texts=range(1)
    )


def _confusions(report: Report) -> str:
    rows = ([r["true"], r["predicted"], r["parent"] or "(top level)", str(r["count"])] for r in report.confusions[:20])
    if not report.confusions:
        return ""
    return "<h2>Siblings taken for each other</h2>" + table(("true", "taken for", "below", "times"), rows, texts=range(3))


def _distances(report: Report) -> str:
    rows = ([str(d), f"{n:,}", f"{n / report.documents:.1%}"] for d, n in report.distances.items())
    return "<h2>How far from the truth</h2>" + table(("steps in the tree", "documents", "share"), rows)


def _nodes(report: Report) -> str:
    worst = sorted(report.nodes, key=lambda row: (row["f1"], -row["support"]))[:30]
    rows = (
        [r["path"], f"{r['support']:,}", f"{r['predicted']:,}", *(f"{r[k]:.2f}" for k in ("precision", "recall", "f1"))]
        for r in worst
    )
    return "<h2>Weakest nodes</h2>" + table(("node", "true", "predicted", "precision", "recall", "F1"), rows, texts=range(1))


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], texts: Collection[int] = ()) -> str:
    """A table of numbers; `texts` are the places of columns of words."""

    def line(cells: Iterable[Any], tag: str) -> str:
        kinds = (' class="text"' if i in texts else "" for i in range(len(head)))
        return (
            "<tr>" + "".join(f"<{tag}{kind}>{escape(str(c))}</{tag}>" for c, kind in zip(cells, kinds, strict=True)) + "</tr>"
        )

    body = "".join(line(row, "td") for row in rows)
    return f'<div class="scroll"><table><thead>{line(head, "th")}</thead><tbody>{body}</tbody></table></div>'
