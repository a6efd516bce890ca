"""A report as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ramify.metrics.evaluation import Report
from ramify.taxonomy.hierarchy import Taxonomy

LABELS = {
    "accuracy": "exactly right",
    "hierarchical_f1": "hierarchical F1 (with ancestors)",
    "micro_f1_own": "micro F1, most specific labels",
    "macro_f1_own": "macro F1, most specific labels",
    "micro_f1_leaves": "micro F1, leaves",
    "macro_f1_leaves": "macro F1, leaves that occur",
    "h_loss": "H-loss",
    "mean_distance_of_errors": "distance of a wrong answer (steps in the tree)",
    "document_auc": "AUC in a document",
    "leaf_precision_at_1": "best leaf is true",
    "leaf_precision_at_3": "precision of the best 3 leaves",
    "prediction_calibration_error": "calibration error of predicted labels",
}
MODIFIED_COLUMNS = ("", "leaves", "occur", "labels", "micro F1", "macro F1", "macro F1 (occur)")
LEAVES = {"all": "all leaves", "leaves": "original leaves", "dummies": "dummy leaves"}
CALIBRATION_KEYS = ("pairs", "pairs_uncalibrated", "top_label", "top_label_uncalibrated")
CALIBRATION_COLUMNS = ("level", "all nodes", "before calibration", "most probable node", "before calibration")
GUARANTEE_COLUMNS = ("risk", "guaranteed", "achieved", "mean depth", "depth without guarantee", "no label")
BAR = "█"


def render_report(report: Report, worst: int = 8) -> RenderableType:
    """The figures, the levels, the branches and the worst confusions."""
    parts: list[RenderableType] = [_figures(report), _levels(report)]
    if report.modified:
        parts.append(_modified(report.modified))
    if report.calibration:
        parts.append(_calibration(report.calibration))
    if report.guarantees:
        parts.append(_guarantees(report.guarantees))
    if 1 < len(report.branches) <= 40:
        parts.append(_branches(report.branches))
    if report.confusions:
        parts.append(_confusions(report.confusions[:worst]))
    parts += [Text(f"Note: {note}.", style="dim") for note in report.notes]
    return Group(*parts)


def _figures(report: Report) -> Table:
    table = _table(f"{report.documents:,} documents", ("", "left"), ("", "right"))
    for key, label in LABELS.items():
        if key in report.figures:
            table.add_row(label, f"{report.figures[key]:.3f}")
    return table


def _levels(report: Report) -> Table:
    columns = ("level", "nodes", "support", "precision", "recall", "micro F1", "macro F1", "H-loss")
    table = _table("By level", *((name, "right") for name in columns), ("", "left"))
    for row in report.levels:
        ratios = (f"{row[key]:.3f}" for key in ("precision", "recall", "f1", "macro_f1", "h_loss"))
        table.add_row(str(row["key"] + 1), f"{row['nodes']:,}", f"{row['support']:,}", *ratios, _bar(row["f1"]))
    return table


def modified_cells(row: dict[str, Any]) -> list[str]:
    """One row on the modified hierarchy as text; where there are no leaves of the kind, there is no F1 either."""
    counts = [f"{row[key]:,}" for key in ("n_classes", "n_occurring", "n_labels")]
    ratios = [f"{row[key]:.3f}" for key in ("micro_f1", "macro_f1", "macro_f1_occurring")]
    return [LEAVES[row["over"]], *counts, *(ratios if row["n_classes"] else ["–"] * len(ratios))]


def _modified(rows: list[dict[str, Any]]) -> Table:
    table = _table("Modified hierarchy", *((name, "right" if name else "left") for name in MODIFIED_COLUMNS))
    for row in rows:
        table.add_row(*modified_cells(row))
    return table


def calibration_cells(row: dict[str, Any]) -> list[str]:
    """How far off the probabilities of a level are, as text."""
    return [str(row["depth"] + 1), *(f"{row[key]:.3f}" if key in row else "–" for key in CALIBRATION_KEYS)]


def _calibration(rows: list[dict[str, Any]]) -> Table:
    table = _table("How far off probabilities are, by level", *((name, "right") for name in CALIBRATION_COLUMNS))
    for row in rows:
        table.add_row(*calibration_cells(row))
    return table


def guarantee_cells(row: dict[str, Any]) -> list[str]:
    """One guarantee and the achieved rate, as text."""
    shares = [f"{row[key]:.1%}" for key in ("guaranteed", "achieved")]
    return [
        f"{row['risk']:g}",
        *shares,
        *(f"{row[key]:.2f}" for key in ("depth", "depth_without_guarantee")),
        f"{row['without_label']:.1%}",
    ]


def _guarantees(rows: list[dict[str, Any]]) -> Table:
    table = _table("Backing off to a parent to keep the error rate", *((name, "right") for name in GUARANTEE_COLUMNS))
    for row in rows:
        table.add_row(*guarantee_cells(row))
    return table


def _branches(rows: list[dict[str, Any]]) -> Table:
    table = _table(
        "By branch", ("branch", "left"), ("nodes", "right"), ("support", "right"), ("micro F1", "right"), ("", "left")
    )
    for row in rows:
        table.add_row(escape(row["name"]), f"{row['nodes']:,}", f"{row['support']:,}", f"{row['f1']:.3f}", _bar(row["f1"]))
    return table


def _confusions(rows: Iterable[dict[str, Any]]) -> Table:
    table = _table("Most confused siblings", ("true", "left"), ("taken for", "left"), ("times", "right"), ("below", "left"))
    for row in rows:
        table.add_row(escape(row["true"]), escape(row["predicted"]), str(row["count"]), escape(row["parent"] or "(top level)"))
    return table


def _table(title: str, *columns: tuple[str, Any]) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        show_header=any(n for n, _ in columns),
    )
    for name, justify in columns:
        table.add_column(name, justify=justify)
    return table


def _bar(share: float, width: int = 10) -> Text:
    return Text(BAR * round(share * width), style="green" if share >= 0.8 else "yellow" if share >= 0.5 else "red")


# --------------------------------------------------------------------------------------------------------------
# A taxonomy drawn for the terminal.


def draw(taxonomy: Taxonomy, counts: Sequence[int] | None = None, levels: int = 3, width: int = 8) -> Tree:
    """A tree of the first levels, with at most `width` children a node, and how much is left out.

    counts: documents of each node, shown beside it.
    """
    top = Tree(_describe(taxonomy), guide_style="dim")
    _hang(top, taxonomy, [int(root) for root in taxonomy.roots], counts, levels, max(width, 20))
    return top


def _hang(branch: Tree, taxonomy: Taxonomy, nodes: list[int], counts: Sequence[int] | None, levels: int, width: int) -> None:
    if nodes and levels == 0:
        branch.add(f"[dim]… {len(nodes)} below[/dim]")
        return
    for node in nodes[:width]:
        count = f" [cyan]{counts[node]:,}[/cyan]" if counts is not None else ""
        twig = branch.add(escape(taxonomy.titles[node]) + count)
        _hang(twig, taxonomy, taxonomy.children_of(node).tolist(), counts, levels - 1, min(width, 8))
    if len(nodes) > width:
        branch.add(f"[dim]… and {len(nodes) - width:,} more[/dim]")


def _describe(taxonomy: Taxonomy) -> str:
    kind = "tree" if taxonomy.is_tree else "DAG"
    n_leaves = int(taxonomy.is_leaf.sum())
    return f"[bold]{kind} of {len(taxonomy):,} nodes, {n_leaves:,} leaves, {taxonomy.n_levels} levels[/bold]"
