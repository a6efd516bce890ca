"""The results as a table: every figure, and below it how it compares with one row of Ramify."""

from __future__ import annotations

from typing import Any

from rich.markup import escape
from rich.table import Table

COLUMNS = {
    "train s": ("train_seconds", 1.0, "{:,.2f}"),
    "predict docs/s": ("docs_per_second", 1.0, "{:,.0f}"),
    "peak MB": ("peak_bytes", 1e-6, "{:,.0f}"),
    "model MB": ("model_bytes", 1e-6, "{:,.1f}"),
    "accuracy": ("accuracy", 1.0, "{:.4f}"),
    "micro F1": ("micro_f1", 1.0, "{:.4f}"),
    "macro F1": ("macro_f1", 1.0, "{:.4f}"),
    "hier. F1": ("hierarchical_f1", 1.0, "{:.4f}"),
    "objective": ("objective", 1.0, "{:,.1f}"),
}


def choose_base(rows: dict[str, dict[str, Any]], wanted: str | None = None) -> str | None:
    """The row to compare with: the wanted one, or the first of Ramify's that has figures."""
    finished = [name for name, row in rows.items() if "failed" not in row]
    ours = [name for name in finished if name.startswith("ramify:")]
    return next((name for name in [wanted, *ours] if name in finished), None)


def make_table(problem: str, facts: dict[str, int], rows: dict[str, dict[str, Any]], base: str | None) -> Table:
    """One line a row; under each figure its ratio to the base row's."""
    size = ", ".join(f"{count:,} {name}" for name, count in facts.items())
    caption = f"×: the row's figure / that of {base}" if base else None
    table = Table(title=f"{problem}: {size}", caption=caption, show_lines=True)
    table.add_column("row", overflow="fold", min_width=32)
    for column in COLUMNS:
        table.add_column(column.replace(" ", "\n"), justify="right")
    for name, row in rows.items():
        note = f"[red]{escape(row['failed'])}" if "failed" in row else f"[dim]{row['version']}"
        table.add_row(f"{name}\n{note}", *_cells(row, rows.get(base or "", {})))
    return table


def one_line(name: str, row: dict[str, Any]) -> str:
    """A row as it comes in."""
    if "failed" in row:
        return f"{name}: {row['failed']}"
    cells = (f"{column} {_figure(row, column)}" for column in ("train s", "predict docs/s", "peak MB", "accuracy"))
    return f"{name}: {', '.join(cells)}"


def _cells(row: dict[str, Any], base: dict[str, Any]) -> list[str]:
    return [f"{_figure(row, column)}\n[dim]{_ratio(row, base, column)}" for column in COLUMNS]


def _figure(row: dict[str, Any], column: str) -> str:
    key, unit, form = COLUMNS[column]
    return form.format(row[key] * unit) if key in row else ""


def _ratio(row: dict[str, Any], base: dict[str, Any], column: str) -> str:
    key = COLUMNS[column][0]
    return f"×{row[key] / base[key]:.3g}" if key in row and base.get(key) else ""
