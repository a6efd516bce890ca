"""Label cells: how many labels a cell holds, and what stands between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ramify.taxonomy import ARROW

# how large a share of the pieces must be known labels before a mark counts as a separator;
# commas are common inside names
SEPARATORS = {"|": 0.5, ";": 0.5, ",": 0.9}


def find_label_separator(cells: Iterable[str], is_label: Callable[[str], bool] | None = None) -> str | None:
    """The mark that stands between several labels of one cell, or None when every cell holds one label.

    A mark counts when the pieces it makes are labels themselves: of the taxonomy, or else whole cells of other rows.

    >>> find_label_separator(["food|drink", "food", "drink"]), find_label_separator(["TV, audio", "phones"])
    ('|', None)
    """
    distinct = {cell.strip() for cell in cells if cell.strip()}
    known = is_label or distinct.__contains__
    for mark, share in SEPARATORS.items():
        joined = [cell for cell in distinct if mark in cell and not (is_label and is_label(cell))]
        pieces = [piece for cell in joined for piece in split_cell(cell, mark)]
        if pieces and sum(map(known, pieces)) >= share * len(pieces):
            return mark
    return None


def split_cell(cell: str, separator: str | None, is_label: Callable[[str], bool] | None = None) -> list[str]:
    """The labels of a cell, without outer spaces and repetitions; an empty cell has none, a known label stays whole."""
    pieces = cell.split(separator) if separator and not (is_label and is_label(cell.strip())) else [cell]
    return list(dict.fromkeys(piece.strip() for piece in pieces if piece.strip()))


def join_levels(cells: Iterable[Any]) -> str:
    """One path from the cells of level columns; it ends at the first empty one."""
    parts: list[str] = []
    for cell in cells:
        if cell is None or not str(cell).strip():
            break
        parts.append(str(cell).strip())
    return ARROW.join(parts)
