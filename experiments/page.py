"""What a study shows, block by block, and the page with these blocks.

>>> block = Beside("Table 1", [Row("B-SVM", 0.35, 0.25, "less noise")])
>>> "<td>−0.10</td>" in render_page("A paper", "What it is about.", [Section("first", "", [block])])
True
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ramify.reports.charts import Chart, Line, line_chart
from ramify.reports.pages import render
from ramify.reports.tables import Table as TextTable

__all__ = ["Beside", "Block", "Chart", "Line", "Row", "Section", "Table", "Text", "render_page"]

Cell = str | int | float | None
NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; words in `backticks` are code."""

    words: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of words and numbers; None is shown as a dash."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    digits: int = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: what it is, the paper's, ours, and why they differ."""

    what: str
    paper: float | None
    ours: float | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Beside:
    """Figures of the paper and ours, side by side."""

    title: str
    rows: Sequence[Row]
    note: str = ""
    digits: int = 2

    def as_table(self) -> Table:
        """What it is, the paper's, ours, the difference, and, where a row has a reason, why."""
        columns = ("", "paper", "ours", "difference", "why")
        rows = [(row.what, row.paper, row.ours, self._difference(row), row.why) for row in self.rows]
        shown = 5 if any(row.why for row in self.rows) else 4
        return Table(self.title, columns[:shown], [row[:shown] for row in rows], self.note, self.digits)

    def _difference(self, row: Row) -> str | None:
        if row.paper is None or row.ours is None:
            return None
        are_counts = isinstance(row.ours, int) and isinstance(row.paper, int)
        return f"{row.ours - row.paper:+z,.{0 if are_counts else self.digits}f}".replace("-", "−")


Block = Text | Table | Beside | Chart


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks below a heading."""

    title: str
    lead: str
    blocks: Sequence[Block]


def shown(cell: Cell, digits: int = 2) -> str:
    """A cell in words.

    >>> shown(None), shown(1200), shown(-0.5), shown("a")
    ('–', '1,200', '−0.50', 'a')
    """
    if cell is None:
        return NOTHING
    if isinstance(cell, str):
        return cell
    return (f"{cell:,}" if isinstance(cell, int) else f"{cell:z,.{digits}f}").replace("-", "−")


def render_page(title: str, lead: str, sections: Iterable[Section]) -> str:
    """The whole page; every word is escaped."""
    shown = [{"title": each.title, "lead": each.lead, "runs": list(_runs(each.blocks))} for each in sections]
    return render("experiment.html", title=title, lead=lead, sections=shown)


def _runs(blocks: Sequence[Block]) -> Iterator[dict[str, Any]]:
    """The blocks as the template takes them; charts that follow each other are drawn side by side."""
    for are_charts, run in groupby(blocks, key=lambda block: isinstance(block, Chart)):
        if are_charts:
            yield {"charts": [(block, line_chart(block)) for block in run if isinstance(block, Chart)]}
            continue
        for block in run:
            if isinstance(block, (Table, Beside)):
                table = block.as_table() if isinstance(block, Beside) else block
                yield {"charts": [], "table": _as_text(table), "note": table.note}
            elif isinstance(block, Text):
                yield {"charts": [], "table": None, "text": block.words}


def _as_text(table: Table) -> TextTable:
    rows = [[shown(cell, table.digits) for cell in row] for row in table.rows]
    return TextTable(table.title, table.columns, rows, _text_columns(table))


def _text_columns(table: Table) -> list[int]:
    """The first column, and those with letters."""
    columns = list(zip(*table.rows, strict=True))
    return [k for k in range(len(table.columns)) if k == 0 or (k < len(columns) and any(map(_has_words, columns[k])))]


def _has_words(cell: Cell) -> bool:
    return isinstance(cell, str) and any(letter.isalpha() for letter in cell)
