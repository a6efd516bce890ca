"""Indented text: one node per line, children indented below their parent. Nodes are named by their paths."""

from __future__ import annotations

from ramify.errors import TaxonomyError
from ramify.taxonomy.hierarchy import Taxonomy, refuse_unprintable


def recognizes(text: str) -> bool:
    """The first line starts at the margin and some other line does not."""
    lines = [line for line in text.splitlines()[:200] if line.strip()]
    return bool(lines) and not lines[0][0].isspace() and any(line[0].isspace() for line in lines)


def parse(text: str) -> Taxonomy:
    """Read the lines with a stack of open nodes."""
    paths: dict[tuple[str, ...], None] = {}
    open_nodes: list[tuple[int, str]] = []
    for number, line in enumerate(text.expandtabs(4).split("\n"), start=1):
        if not line.strip():
            continue
        indent, title = len(line) - len(line.lstrip()), line.strip()
        indents = [width for width, _ in open_nodes]
        if indent not in indents and indents and indent < indents[-1]:
            raise TaxonomyError(
                f"line {number}, {title!r}, is indented by {indent}, but no line above it is; align it with a sibling."
            )
        open_nodes = [*((width, above) for width, above in open_nodes if width < indent), (indent, title)]
        path = tuple(above for _, above in open_nodes)
        if path in paths:
            raise TaxonomyError(f"line {number} lists {title!r} a second time; keep one of the two lines.")
        paths[path] = None
    return Taxonomy.from_title_paths(paths)


def render(taxonomy: Taxonomy) -> str:
    """Write each node below its parent, indented by two spaces."""
    taxonomy.require_tree("the indented format")
    refuse_unprintable(taxonomy)
    lines: list[str] = []
    stack = [(int(root), 0) for root in taxonomy.roots[::-1]]
    while stack:
        node, level = stack.pop()
        lines.append("  " * level + taxonomy.titles[node])
        stack += [(int(child), level + 1) for child in taxonomy.children_of(node)[::-1]]
    return "\n".join(lines) + "\n"
