"""A table of answers: where the documents of old nodes go, one row for each pair of an old and a new node.

Several rows with the same new node merge old ones, several with the same old node split it, and ``-`` in place of a new node
gives its documents up. A row without a new node is a question that is still open.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from ramify.errors import LabelError, TaxonomyError
from ramify.taxonomy.changes import Answers, Changes, suggestion_for
from ramify.taxonomy.hierarchy import Taxonomy

GIVEN_UP = "-"
HEADER = ("old", "new", "suggestion")


def read_answers(path: str | Path, old: Taxonomy, new: Taxonomy) -> Answers:
    """Read a table with tabs or commas: an old node, a new one, and anything else; a first row may name these columns."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise TaxonomyError(f"cannot read the answers in {path}: {why}; give a table of old and new nodes.") from None
    try:
        return parse_answers(text, old, new)
    except TaxonomyError as error:
        raise TaxonomyError(f"{path}, {error}") from None


def parse_answers(text: str, old: Taxonomy, new: Taxonomy) -> Answers:
    """Understand the rows of a table.

    >>> food = Taxonomy.flat(["apple", "pear", "rye"])
    >>> dict(parse_answers("apple\\tfruit\\npear\\tfruit\\nrye\\t-\\n", food, Taxonomy.flat(["fruit"])))
    {0: (0,), 1: (0,), 2: ()}
    """
    rows = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if "\t" in text.split("\n")[0] else ",")
    found: dict[int, tuple[int, ...]] = {}
    try:
        for row in rows:
            cells = [cell.strip() for cell in row]
            if any(cells) and not (rows.line_num == 1 and tuple(cells[:2]) == HEADER[:2]):
                _add(found, cells, rows.line_num, old, new)
    except csv.Error as error:
        raise TaxonomyError(f"line {rows.line_num} cannot be read: {error}.") from None
    return found


def _add(found: dict[int, tuple[int, ...]], cells: list[str], line: int, old: Taxonomy, new: Taxonomy) -> None:
    if len(cells) < 2 or not cells[0]:
        raise TaxonomyError(f"line {line} has {len(cells)} cells: {' '.join(cells)[:60]!r}; give an old node and a new one.")
    if not cells[1]:
        return
    node = _find(old, cells[0], line, "old")
    became = () if cells[1] == GIVEN_UP else (_find(new, cells[1], line, "new"),)
    before = found.get(node)
    if before is not None and (not became or not before or became[0] in before):
        raise TaxonomyError(f"line {line} answers for {cells[0]!r} a second time; give new nodes for it, each once, or '-'.")
    found[node] = (before or ()) + became


def _find(taxonomy: Taxonomy, label: str, line: int, which: str) -> int:
    try:
        return taxonomy.index(label)
    except LabelError as error:
        raise TaxonomyError(f"line {line}, {which} taxonomy: {error}") from None


def render_questions(changes: Changes) -> str:
    """A table of all open questions, to be filled in and read back as answers."""
    out = io.StringIO(newline="")
    table = csv.writer(out, delimiter="\t", lineterminator="\n")
    table.writerow(HEADER)
    for node in changes.questions:
        table.writerow([changes.old.names[node], "", suggestion_for(changes, node) or ""])
    return out.getvalue()
