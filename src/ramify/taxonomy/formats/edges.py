"""A table of ``child, parent`` rows, separated by tabs, commas or semicolons; a third column may hold a title.

An empty parent, or the word ROOT, means "no parent". A header row may give another order of columns.
"""

from __future__ import annotations

import csv
import io

from ramify.errors import TaxonomyError
from ramify.taxonomy.hierarchy import Taxonomy

ROOT_WORDS = ("", "ROOT")
DELIMITERS = ("\t", ";", ",")
CHILD_WORDS = ("child", "node", "id", "name", "code", "label", "category", "class")
PARENT_WORDS = ("parent", "broader", "parent_id", "parentid", "parent_name", "parent_code")
DOCUMENT_WORDS = ("text", "body", "message", "label", "labels", "category")
TITLE_WORDS = ("title", "description", "text", "pref_label", "name", "label")


def recognizes(text: str) -> bool:
    """Rows of two or three cells between tabs; with commas or semicolons, the table must also have parents."""
    return _delimiter(text) == "\t" or names_a_parent(text)


def parse(text: str) -> Taxonomy:
    """Read the rows; nodes keep the order of their rows."""
    delimiter, columns = _delimiter(text) or "\t", (0, 1, 2)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    edges: list[tuple[str, str]] = []
    titles: dict[str, str] = {}
    try:
        for row in rows:
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            if not edges and (named := _header(cells)):
                columns = named
                continue
            if len(cells) not in (2, 3) or max(columns[:2]) >= len(cells) or not cells[columns[0]]:
                found = f"line {rows.line_num} has {len(cells)} cells: {delimiter.join(row)[:60]!r}"
                raise TaxonomyError(f"{found}; give a child and its parent.")
            child = cells[columns[0]]
            edges.append((child, cells[columns[1]]))
            if columns[2] < len(cells) and cells[columns[2]]:
                titles[child] = cells[columns[2]]
    except csv.Error as error:
        raise TaxonomyError(f"line {rows.line_num} cannot be read: {error}.") from None
    children = {child for child, _ in edges}
    roots = [word for word in ROOT_WORDS if word not in children]  # a root word may be a node itself
    return Taxonomy.from_edges([(child, None if parent in roots else parent) for child, parent in edges], titles=titles)


def names_a_parent(text: str) -> bool:
    """Whether a table has a parent column: by name, or because half of its second cells are roots or nodes of the first."""
    delimiter = _delimiter(text)
    if delimiter is None:
        return False
    rows = [[cell.strip() for cell in row] for row in _rows(text.split("\n"), delimiter)]
    if not rows:
        return False
    if _header(rows[0]) is not None:
        return True
    if any(word.lower() in DOCUMENT_WORDS for word in rows[0]):
        return False
    nodes = {row[0] for row in rows}
    above = [row[1] for row in rows if len(row) > 1]
    return 2 * sum(parent in nodes or parent in ROOT_WORDS for parent in above) >= len(rows)


def render(taxonomy: Taxonomy) -> str:
    """Write tab-separated rows, with titles only where they differ from names."""
    if any(word != word.strip() for word in (*taxonomy.names, *taxonomy.titles)):
        raise TaxonomyError("a name begins or ends with a space, which a table does not keep; write .json.")
    has_titles = taxonomy.titles != taxonomy.names
    root = "" if "ROOT" in taxonomy.names else "ROOT"
    out = io.StringIO(newline="")
    table = csv.writer(out, delimiter="\t", lineterminator="\n")
    for node, name in enumerate(taxonomy.names):
        parents = [taxonomy.names[parent] for parent in taxonomy.parents_of(node)] or [root]
        for parent in parents:
            table.writerow([name, parent, taxonomy.titles[node]] if has_titles else [name, parent])
    return out.getvalue()


def _delimiter(text: str) -> str | None:
    lines = [line for line in text.split("\n")[:50] if line.strip()]
    if any(" > " in line for line in lines):
        return "\t" if lines and all("\t" in line.strip() for line in lines) else None
    for delimiter in DELIMITERS:
        rows = _rows(lines, delimiter)
        if rows and all(len(row) in (2, 3) for row in rows):
            return delimiter
    return None


def _rows(lines: list[str], delimiter: str) -> list[list[str]]:
    """The rows that are not empty; none if the text is not a table."""
    try:
        return [row for row in csv.reader(lines, delimiter=delimiter) if any(row)]
    except csv.Error:
        return []


def _header(cells: list[str]) -> tuple[int, int, int] | None:
    """The positions of child, parent and title in a header row."""
    words = [cell.lower() for cell in cells]
    parent = next((i for i, word in enumerate(words) if word in PARENT_WORDS), None)
    if parent is None:
        return None
    rest = [i for i in range(len(words)) if i != parent]
    child = next((i for i in rest if words[i] in CHILD_WORDS), None)
    if child is None:
        return None
    title = next((i for i in rest if i != child and words[i] in TITLE_WORDS), len(words))
    return child, parent, title
