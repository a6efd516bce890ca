"""The header of a table: which row it is, and how its columns are called.

People write titles above their tables, and spread headings over groups of columns. So a row with few cells above a full one
that reads like names of columns is skipped, and told.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ramify.errors import DataError

TEXT_NAMES = (
    "text", "texts", "body", "message", "description", "content", "document", "request", "question", "review", "abstract",
    "comment", "title", "subject", "summary", "sentence", "utterance", "query",
)  # fmt: skip
SURE_LABEL_NAMES = (  # of two of these, neither is the obvious one
    "label", "labels", "category", "categories", "class", "classes", "topic", "topics", "intent", "intents",
)  # fmt: skip
LABEL_NAMES = (*SURE_LABEL_NAMES, "path", "target", "node", "code", "tag", "tags", "type", "genre", "genres")
LEVEL_NAME = re.compile(r"(?:level|lvl|l|cat|category|tier|label|class)[ _-]?(\d+)", re.IGNORECASE)
DELIMITERS = ("\t", ";", ",", "|")
FIRST_ROWS = 30  # that a header is looked for in
LONGEST_NAME = 60  # characters of a column name, where it is not the first row
USUAL_AGREEMENT = 0.8  # fraction of the lines of CSV with equally many delimiters
MOST_LINES = 6  # of a header row
NUMBER = re.compile(r"[-+]?[\d.,' ]*\d[\d.,' ]*%?")


class ColumnNames(list[str]):
    """The names of the columns. above: the texts of rows above them, which are no part of the table."""

    above: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Header:
    """The header row of CSV. n_lines: of the file up to its end. above: the texts of rows above it."""

    cells: list[str]
    delimiter: str
    n_lines: int
    above: tuple[str, ...] = ()


def find_csv_header(lines: Sequence[str], delimiter: str | None = None) -> Header:
    r"""The header among the first lines of CSV. delimiter: as the file says; None to find it.

    >>> find_csv_header(["My tickets\n", "\n", "text;label\n", "a, b;c\n"])
    Header(cells=['text', 'label'], delimiter=';', n_lines=3, above=('My tickets',))
    """
    delimiter = delimiter or find_delimiter(lines)
    rows: list[list[str]] = []
    ends: list[int] = []
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for row in reader:
            rows.append(row)
            ends.append(reader.line_num)
    except csv.Error:
        if not rows:
            raise
    position = find_header(rows)
    if ends[position] - (ends[position - 1] if position else 0) > MOST_LINES:  # an open quote
        return Header(next(csv.reader([lines[0]], delimiter=delimiter)), delimiter, 1)
    return Header(rows[position], delimiter, ends[position], texts_of(rows[:position]))


def find_delimiter(lines: Sequence[str]) -> str:
    r"""The mark between cells: one that is in most lines equally often, and most often in the first line.

    >>> find_delimiter(["ham\tHello, you\n", "spam\tFree, free, free\n", "ham\tok\n"])
    '\t'
    """
    unquoted = [line for line in re.sub(r'"[^"]*"', "", "".join(lines)).splitlines() if line.strip(" \r\n")]

    def fitness(mark: str) -> tuple[bool, int, float, bool]:
        counts = [line.count(mark) for line in unquoted]
        usual = Counter(counts).most_common(1)[0][0] if counts else 0
        agreement = counts.count(usual) / len(counts) if usual else 0.0
        return agreement >= USUAL_AGREEMENT, counts[0] if counts else 0, agreement, mark == ","

    return max(DELIMITERS, key=fitness)


def find_header(rows: Sequence[Sequence[str]]) -> int:
    """The position of the header: the first row, or one below rows that have few cells.

    >>> find_header([["Tickets 2024", ""], ["text", "label"], ["late", "Orders"]])
    1
    """
    sizes = [sum(bool(cell.strip()) for cell in row) for row in rows]
    width = max(sizes, default=0)
    first = next((k for k, size in enumerate(sizes) if size), 0)
    full = next((k for k, size in enumerate(sizes) if 2 * size > width), first)
    above = [cell.strip().lower() for row in rows[first:full] for cell in row if cell.strip()]
    if full == first or any(is_usual(name) for name in above):
        return first
    names = [cell.strip() for cell in rows[full] if cell.strip()]
    is_set_apart = not all(sizes[first:full])  # by an empty row
    is_header = all(len(name) <= LONGEST_NAME and not NUMBER.fullmatch(name) for name in names)
    return full if is_header and len(set(names)) == len(names) and (is_set_apart or any(map(is_usual, names))) else first


def is_usual(name: str) -> bool:
    """Whether a column of this name holds texts or labels in most tables."""
    plain = name.strip().lower()
    return plain in TEXT_NAMES or plain in LABEL_NAMES or LEVEL_NAME.fullmatch(plain) is not None


def texts_of(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """What stands in the rows above a header."""
    joined = (" ".join(cell.strip() for cell in row if cell.strip()) for row in rows)
    return tuple(text for text in joined if text)


def named_columns(path: Path, cells: Sequence[str], above: tuple[str, ...] = ()) -> ColumnNames:
    """The names in a header row; columns without one are numbered, and those at the end left out.

    >>> named_columns(Path("t.csv"), ["text ", "", "label", "note", "note", "", ""])
    ['text', 'column 2', 'label', 'note', 'note (2)']
    """
    names = [" ".join(cell.split()) for cell in cells]
    while len(names) > 1 and not names[-1]:
        names.pop()
    if len(names) > 1:
        names = [name or f"column {number}" for number, name in enumerate(names, start=1)]
    seen: Counter[str] = Counter()
    for position, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            names[position] = second_name(name, seen[name])
    if len(set(names)) < len(names):
        twice = next(column for column, n_times in Counter(names).items() if n_times > 1)
        raise DataError(f"{path} has two columns named {twice[:40]!r}; rename one of them.")
    found = ColumnNames(names)
    found.above = above
    return found


def second_name(name: str, number: int = 2) -> str:
    """How another column of the same name is called."""
    return f"{name} ({number})"
