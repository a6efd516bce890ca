"""What a study shows, block by block, and the page made of it: HTML that needs nothing else.

>>> block = Beside("Table 1", [Row("B-SVM", 0.35, 0.25, "less noise")])
>>> "<td>−0.10</td>" in render_page("A paper", "What it is about.", [Section("first", "", [block])])
True
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from experiments.charts import Chart, Line, draw
from ramify.reports.page import table, whole_page

__all__ = ["Beside", "Block", "Chart", "Line", "Row", "Section", "Table", "Text", "render_page"]

Cell = str | int | float | None
NOTHING = "–"
CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph of plain words; what stands in `backticks` is code."""

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
    return whole_page(title, lead, "".join(_section(section) for section in sections))


def _section(section: Section) -> str:
    # charts that follow each other stand side by side
    runs = groupby(section.blocks, key=lambda block: isinstance(block, Chart))
    inside = (f'<div class="plots">{_all(blocks)}</div>' if are_charts else _all(blocks) for are_charts, blocks in runs)
    return f"<h2>{escape(section.title)}</h2>{_lead(section.lead)}{''.join(inside)}"


def _all(blocks: Iterator[Block]) -> str:
    return "".join(map(_block, blocks))


def _block(block: Block) -> str:
    if isinstance(block, Text):
        return f"<p>{_words(block.words)}</p>"
    if isinstance(block, Chart):
        note = f'<p class="lead">{_words(block.note)}</p>' if block.note else ""
        return f"<figure><figcaption>{_words(block.title)}</figcaption>{draw(block)}{note}</figure>"
    return _table(block.as_table() if isinstance(block, Beside) else block)


def _table(block: Table) -> str:
    rows = [[shown(cell, block.digits) for cell in row] for row in block.rows]
    return f"<h3>{_words(block.title)}</h3>{table(block.columns, rows, _texts(block))}{_lead(block.note)}"


def _texts(block: Table) -> list[int]:
    """The columns of words: the first, and those with more than numbers and signed numbers."""
    columns = list(zip(*block.rows, strict=True))
    return [k for k in range(len(block.columns)) if k == 0 or (k < len(columns) and any(map(_has_words, columns[k])))]


def _has_words(cell: Cell) -> bool:
    return isinstance(cell, str) and any(letter.isalpha() for letter in cell)


def _lead(words: str) -> str:
    return f'<p class="lead">{_words(words)}</p>' if words else ""


def _words(words: str) -> str:
    return CODE.sub(r"<code>\1</code>", escape(words))
