"""Columns of a table: which hold the text and the labels, and how a cell lists several labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ramify.errors import DataError, suggest
from ramify.taxonomy import ARROW

# the fraction of pieces that must be known labels for a mark to be a separator; commas are common inside names
SEPARATORS = {"|": 0.5, ";": 0.5, ",": 0.9}


def find_label_separator(cells: Iterable[str], is_label: Callable[[str], bool] | None = None) -> str | None:
    """The separator between labels in a cell, or None if every cell holds one label.

    The pieces of split cells must be labels themselves: of the taxonomy, or else whole cells of other rows.

    >>> find_label_separator(["food|drink", "food", "drink"]), find_label_separator(["TV, audio", "phones"])
    ('|', None)
    """
    distinct = {cell.strip() for cell in cells if cell.strip()}
    known = is_label or distinct.__contains__
    for mark, fraction in SEPARATORS.items():
        joined = [cell for cell in distinct if mark in cell and not (is_label and is_label(cell))]
        pieces = [piece for cell in joined for piece in split_cell(cell, mark)]
        if pieces and sum(map(known, pieces)) >= fraction * len(pieces):
            return mark
    return None


def split_cell(cell: str, separator: str | None, is_label: Callable[[str], bool] | None = None) -> list[str]:
    """The distinct labels of a cell, stripped; a known label is not split."""
    pieces = cell.split(separator) if separator and not (is_label and is_label(cell.strip())) else [cell]
    return list(dict.fromkeys(piece.strip() for piece in pieces if piece.strip()))


def join_levels(cells: Iterable[Any]) -> str:
    """Join the cells of level columns into a path, up to the first empty cell."""
    parts: list[str] = []
    for cell in cells:
        if cell is None or not str(cell).strip():
            break
        parts.append(str(cell).strip())
    return ARROW.join(parts)


TEXT_NAMES = (
    "text", "body", "message", "description", "content", "document", "request", "question", "review", "abstract", "comment",
    "title", "subject",
)  # fmt: skip
LABEL_NAMES = (
    "label", "labels", "category", "categories", "class", "classes", "topic", "topics", "path", "target", "node", "code",
    "tag", "tags", "type",
)  # fmt: skip
Row = dict[str, Any]
LEVEL_NAME = re.compile(r"(?:level|lvl|l|cat|category|tier)[ _-]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns in use; more than one label column are the levels of a path, from the top."""

    text: str
    labels: tuple[str, ...]


def find_columns(
    source: str, names: Sequence[str], sample: Sequence[Row], text: str | None = None, labels: Sequence[str] | None = None
) -> Columns:
    """The named columns, or else columns that look like text and labels; `labels` may be empty."""
    for option, wanted in (("--text", [text] if text is not None else []), ("--label", labels or ())):
        for column in wanted:
            if column not in names:
                found = f"{source} has no column {column!r}; its columns are {list_names(names)}"
                raise DataError(f"{found}. Name one of them with {option}.{suggest(column, names)}")
    free = [name for name in names if name not in (labels or ())]
    text = text or next((name for wanted in TEXT_NAMES for name in free if name.lower() == wanted), None)
    if text is None and (len(free) > 1 or labels):  # the column with the longest texts; numbers do not count
        lengths = {}
        for name in free:
            texts = [row[name] for row in sample if isinstance(row.get(name), str) and not _is_number(row[name])]
            lengths[name] = sum(map(len, texts)) / len(texts) if texts else 0.0
        text = max((name for name in free if lengths[name] > 0), key=lambda name: lengths[name], default=None)
    if text is None:
        raise DataError(f"{source}: no column looks like text; name it with --text. The columns are {list_names(names)}.")
    return Columns(text, tuple(labels) if labels else _guess_labels([name for name in names if name != text], sample))


def _guess_labels(names: Sequence[str], sample: Sequence[Row]) -> tuple[str, ...]:
    """A column with a usual name, or level columns, or the only column that repeats its values; numbers do not count."""
    usual = next((name for wanted in LABEL_NAMES for name in names if name.lower() == wanted), None)
    if usual is not None:
        return (usual,)
    levels = sorted((int(match[1]), name) for name in names if (match := LEVEL_NAME.fullmatch(name)))
    if len(levels) > 1:
        return tuple(name for _, name in levels)
    repeated = []
    for name in names:
        cells = [str(row.get(name)) for row in sample if row.get(name) not in (None, "")]
        if len(cells) > 3 and 1 < len(set(cells)) <= 0.5 * len(cells) and not all(map(_is_number, cells)):
            repeated.append(name)
    return (repeated[0],) if len(repeated) == 1 else ()


def split_names(label: str, names: Sequence[str]) -> list[str]:
    """A column name, or a comma-separated list of column names."""
    return [label] if label in names else [part.strip() for part in label.split(",")]


def refuse_without_labels(source: str, names: Sequence[str], columns: Columns, sample: Sequence[Row]) -> None:
    """Refuse to train on a table without labels, with the text as label, or without a header row."""
    if not columns.labels:
        raise DataError(f"{source}: no column looks like labels; name it with --label. The columns are {list_names(names)}.")
    if columns.text in columns.labels:
        raise DataError(f"{source}: column {columns.text!r} cannot be both text and label; name two different columns.")
    first = columns.labels[0]
    known_name = first.lower() in LABEL_NAMES
    if len(columns.labels) == 1 and not known_name and any(row.get(first) == first for row in sample):
        found = f"the first row looks like a document, since its {first[:40]!r} is a label of other rows too"
        raise DataError(f"{source}: {found}; put a row with column names first.")


def list_names(names: Sequence[str]) -> str:
    """Columns in a message."""
    shown = ", ".join(repr(name if len(name) <= 40 else f"{name[:39]}…") for name in names[:20])
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
