"""LSHTC's ``cat_hier``: one ``parent child`` pair of whole numbers per line; a node without a parent is a root."""

from __future__ import annotations

import re

from ramify.errors import TaxonomyError
from ramify.taxonomy.hierarchy import Taxonomy

PAIR = re.compile(r"\s*(\d+) +(\d+)\s*")


def recognizes(text: str) -> bool:
    """The first lines are all pairs of whole numbers with spaces between."""
    lines = [line for line in text.splitlines()[:50] if line.strip()]
    return bool(lines) and all(PAIR.fullmatch(line) for line in lines)


def parse(text: str) -> Taxonomy:
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


def render(taxonomy: Taxonomy) -> str:
    """Write the pairs; refuses names that are not numbers, and single nodes."""
    lines = []
    for node, name in enumerate(taxonomy.names):
        parents, children = taxonomy.parents_of(node), taxonomy.children_of(node)
        if not name.isdecimal() or not (len(parents) or len(children)):
            raise TaxonomyError(
                f"node {name!r} does not fit cat_hier, which joins whole numbers in pairs; write another format."
            )
        lines += [f"{taxonomy.names[parent]} {name}" for parent in parents]
    return "\n".join(lines) + "\n"
