"""Formats of plain text: a table of edges, LSHTC's pairs, indented titles, and a list of paths.

edges     ``child, parent`` rows, separated by tabs, commas or semicolons; a third column may hold a title. An empty parent, or
          the word ROOT, means "no parent". A header row may give another order of columns.
lshtc     ``cat_hier``: one ``parent child`` pair of whole numbers per line; a node without a parent is a root.
indented  one node per line, children indented below their parent. Nodes are named by their paths.
paths     one path per line: ``food/fruit/apple`` or ``Food > Fruit > Apple``. A list of plain names is a flat forest.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from ramify.errors import TaxonomyError
from ramify.taxonomy.formats.nested import taxonomy_of
from ramify.taxonomy.hierarchy import ARROW, Taxonomy

ROOT_WORDS = ("", "ROOT")
DELIMITERS = ("\t", ";", ",")
CHILD_WORDS = ("child", "node", "id", "name", "code", "label", "category", "class")
PARENT_WORDS = ("parent", "broader", "parent_id", "parentid", "parent_name", "parent_code")
DOCUMENT_WORDS = ("text", "body", "message", "label", "labels", "category")
TITLE_WORDS = ("title", "description", "text", "pref_label", "name", "label")
PAIR = re.compile(r"\s*(\d+) +(\d+)\s*")


# ---- edges ---------------------------------------------------------------------------------------------------------------


def parse_edges(text: str) -> Taxonomy:
    """Read the rows of a table; nodes keep their order."""
    delimiter, columns = find_delimiter(text) or "\t", (0, 1, 2)
    edges: list[tuple[str, str]] = []
    titles: dict[str, str] = {}
    for line, row in numbered_rows(text, delimiter):
        cells = [cell.strip() for cell in row]
        if not edges and (named := _header(cells)):
            columns = named
            continue
        if len(cells) not in (2, 3) or max(columns[:2]) >= len(cells) or not cells[columns[0]]:
            found = f"line {line} has {len(cells)} cells: {delimiter.join(row)[:60]!r}"
            raise TaxonomyError(f"{found}; give a child and its parent.")
        child = cells[columns[0]]
        edges.append((child, cells[columns[1]]))
        if columns[2] < len(cells) and cells[columns[2]]:
            titles[child] = cells[columns[2]]
    children = {child for child, _ in edges}
    roots = [word for word in ROOT_WORDS if word not in children]  # a root word may be a node itself
    return Taxonomy.from_edges(((child, None if parent in roots else parent) for child, parent in edges), titles=titles)


def render_edges(taxonomy: Taxonomy) -> str:
    """Write tab-separated rows, with titles only where they differ from names."""
    if any(word != word.strip() for word in (*taxonomy.names, *taxonomy.titles)):
        raise TaxonomyError("a name begins or ends with a space, which a table does not keep; write .json.")
    has_titles = taxonomy.titles != taxonomy.names
    root = "" if "ROOT" in taxonomy.names else "ROOT"
    out = io.StringIO(newline="")
    table = csv.writer(out, delimiter="\t", lineterminator="\n")
    for node, name in enumerate(taxonomy.names):
        for parent in [taxonomy.names[parent] for parent in taxonomy.parents_of(node)] or [root]:
            table.writerow([name, parent, taxonomy.titles[node]] if has_titles else [name, parent])
    return out.getvalue()


def numbered_rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table that are not empty, with their lines."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        yield from ((rows.line_num, row) for row in rows if any(map(str.strip, row)))
    except csv.Error as error:
        raise TaxonomyError(f"line {rows.line_num} cannot be read: {error}.") from None


def names_a_parent(text: str) -> bool:
    """Whether a table has a parent column: by name, or because half of its second cells are roots or nodes of the first."""
    delimiter = find_delimiter(text)
    rows = [] if delimiter is None else [[cell.strip() for cell in row] for row in _rows(text.split("\n"), delimiter)]
    if not rows or _header(rows[0]) is not None:
        return bool(rows)
    if any(word.lower() in DOCUMENT_WORDS for word in rows[0]):
        return False
    nodes = {row[0] for row in rows}
    above = [row[1] for row in rows if len(row) > 1]
    return 2 * sum(parent in nodes or parent in ROOT_WORDS for parent in above) >= len(rows)


def names_documents(text: str) -> bool:
    """Whether the first line names columns of documents, and no parent."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    for delimiter in (*DELIMITERS, "|"):
        cells = [cell.strip().strip('"').lower() for cell in first.split(delimiter)]
        if len(cells) > 1 and any(cell in DOCUMENT_WORDS for cell in cells):
            return not any(cell in PARENT_WORDS for cell in cells)
    return False


def find_delimiter(text: str) -> str | None:
    """The delimiter of a table of two or three columns; None if the text is none."""
    lines = [line for line in text.split("\n")[:50] if line.strip()]
    if any(ARROW in line for line in lines):
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
    child = next((i for i, word in enumerate(words) if word in CHILD_WORDS and i != parent), None)
    if parent is None or child is None:
        return None
    title = next((i for i, word in enumerate(words) if word in TITLE_WORDS and i not in (child, parent)), len(words))
    return child, parent, title


# ---- pairs of numbers ----------------------------------------------------------------------------------------------------


def parse_lshtc(text: str) -> Taxonomy:
    """Read the pairs; nodes keep the order of their first mention."""
    parents: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        pair = PAIR.fullmatch(line)
        if pair is None:
            raise TaxonomyError(f"line {number} is {line[:60]!r}; a line of cat_hier is a parent and a child number.")
        parent, child = pair.groups()
        parents.setdefault(parent, [])
        parents.setdefault(child, []).append(parent)
    edges: list[tuple[str, str | None]] = []
    for child, above in parents.items():
        edges += [(child, parent) for parent in above] or [(child, None)]
    return Taxonomy.from_edges(edges)


def render_lshtc(taxonomy: Taxonomy) -> str:
    """Write the pairs; refuses names that are not numbers, and single nodes."""
    lines = []
    for node, name in enumerate(taxonomy.names):
        parents, children = taxonomy.parents_of(node), taxonomy.children_of(node)
        if not name.isdecimal() or not (len(parents) or len(children)):
            found = f"node {name!r} does not fit cat_hier, which joins whole numbers in pairs"
            raise TaxonomyError(f"{found}; write another format.")
        lines += [f"{taxonomy.names[parent]} {name}" for parent in parents]
    return "\n".join(lines) + "\n"


# ---- indented titles and paths -------------------------------------------------------------------------------------------


def parse_indented(text: str) -> Taxonomy:
    """Read the lines with a stack of open nodes."""
    parents: list[int] = []
    titles: list[str] = []
    known: set[tuple[int, str]] = set()
    open_nodes: list[tuple[int, int]] = []  # the indents and positions of the last node and of those above it
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.expandtabs(4)
        indent, title = len(line) - len(line.lstrip()), line.strip()
        if not title:
            continue
        width = indent  # of the first node that is no longer open
        while open_nodes and open_nodes[-1][0] >= indent:
            width, _ = open_nodes.pop()
        if width != indent:
            found = f"line {number}, {title!r}, is indented by {indent}, but no line above it is"
            raise TaxonomyError(f"{found}; align it with a sibling.")
        parent = open_nodes[-1][1] if open_nodes else -1
        if (parent, title) in known:
            raise TaxonomyError(f"line {number} lists {title!r} a second time; keep one of the two lines.")
        known.add((parent, title))
        open_nodes.append((indent, len(titles)))
        parents.append(parent)
        titles.append(title)
    return taxonomy_of(parents, titles)


def render_indented(taxonomy: Taxonomy) -> str:
    """Write each node below its parent, indented by two spaces."""
    _printable_paths(taxonomy, "the indented format")
    lines: list[str] = []
    stack = [(int(root), 0) for root in taxonomy.roots[::-1]]
    while stack:
        node, level = stack.pop()
        lines.append("  " * level + taxonomy.titles[node])
        stack += [(int(child), level + 1) for child in taxonomy.children_of(node)[::-1]]
    return "\n".join(lines) + "\n"


def parse_paths(text: str) -> Taxonomy:
    """Read the lines; every prefix of a path is a node."""
    lines: dict[str, None] = {}
    for line in filter(None, map(str.strip, text.split("\n"))):
        if line in lines:
            raise TaxonomyError(f"path {line!r} is listed twice; keep one of the two lines.")
        lines[line] = None
    return Taxonomy.from_paths(lines, find_separator(lines) or "")


def render_paths(taxonomy: Taxonomy) -> str:
    """Write the path of each node, parents first, with the taxonomy's separator if that can be parsed, else with an arrow."""
    paths = _printable_paths(taxonomy, "a list of paths")
    for separator in (taxonomy.separator, ARROW):
        lines = [separator.join(path) for path in paths]
        expected = separator if taxonomy.n_levels > 1 else None
        if find_separator(lines) == expected and not any(separator in title for title in taxonomy.titles):
            return "".join(f"{line}\n" for line in lines)
    raise TaxonomyError("the names contain separators, so paths would be ambiguous; write .tsv or .json.")


def _printable_paths(taxonomy: Taxonomy, what: str) -> list[tuple[str, ...]]:
    """The path of each node; refuses titles that do not fit on a line of text, and duplicate paths."""
    taxonomy.require_tree(what)
    for title in taxonomy.titles:
        if title != title.strip() or len(title.splitlines()) > 1 or "\t" in title:
            raise TaxonomyError(f"the title {title!r} does not fit on a line of text; write .json.")
    paths = [taxonomy.path_of(node) for node in range(len(taxonomy))]
    if len(set(paths)) < len(paths):
        twice = next(path for path, n_times in Counter(paths).items() if n_times > 1)
        raise TaxonomyError(f"two nodes have the path {ARROW.join(twice)!r}; write .tsv or .json.")
    return paths


# marks between the parts of a path: those that are hardly ever anything else, those that are in names too but not in half of
# them, and those that need more evidence
ARROWS = (ARROW, " › ", " » ", " → ")
MARKS = ("›", "»", "→", ">", "::", "--", "\\", "/")
WEAK_MARKS = ("|", " - ", ".")
LEAST_WEAK = 4  # labels with a weak mark
MOST_WANDERING = 0.2  # fraction of the parts of paths that occur at more than one depth


def find_separator(labels: Iterable[str]) -> str | None:
    """The separator of paths, from what all distinct labels do: an arrow; or another mark that is in half of them.

    Bars, dashes and dots are common in names. They separate paths only where the parts form a tree: the first parts repeat, and
    a part stands at one depth.

    >>> find_separator(["Food", "Food > Bread"]), find_separator(["a/b", "a/c"]), find_separator(["TCP/IP", "Fonts", "Mice"])
    (' > ', '/', None)
    >>> find_separator(["rec.autos", "rec.sport.hockey", "sci.space", "sci.med"]), find_separator(["Dr. No", "No. 5"])
    ('.', None)
    """
    distinct = set(labels)
    for separator in ARROWS:
        if any(separator in label for label in distinct):
            return separator
    for separator in MARKS:
        if distinct and 2 * sum(separator in label for label in distinct) >= len(distinct):
            return f" {separator} " if _stands_alone(separator, distinct) else separator
    for separator in WEAK_MARKS:
        if _forms_tree(separator, distinct):
            return f" {separator} " if _stands_alone(separator, distinct) else separator
    return None


def _stands_alone(separator: str, labels: set[str]) -> bool:
    """Whether spaces surround a mark wherever it is."""
    return all(label.count(separator) == label.count(f" {separator} ") for label in labels)


def _forms_tree(separator: str, labels: set[str]) -> bool:
    """Whether labels look like paths with a weak mark: heads repeat, and parts keep their depth."""
    paths = [[part.strip() for part in label.split(separator)] for label in labels if separator in label]
    if len(paths) < LEAST_WEAK or 2 * len(paths) < len(labels) or not all(map(all, paths)):
        return False
    if separator == "." and any(" " in label or (label[:1] + label[-1:]).isdigit() for label in labels):  # sentences, numbers
        return False
    heads = {path[0] for path in paths}
    depths: dict[str, set[int]] = {}
    for path in paths:
        for depth, part in enumerate(path):
            depths.setdefault(part, set()).add(depth)
    wandering = sum(len(found) > 1 for found in depths.values())
    return 2 * len(heads) <= len(paths) and wandering <= MOST_WANDERING * len(depths)
