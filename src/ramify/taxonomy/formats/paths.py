"""A list of paths, one per line: ``food/fruit/apple`` or ``Food > Fruit > Apple``.

A list of plain names is a flat forest.
"""

from __future__ import annotations

from collections.abc import Iterable

from ramify.errors import TaxonomyError
from ramify.taxonomy.hierarchy import ARROW, PATH_SEPARATORS, Taxonomy, refuse_unprintable


def recognizes(text: str) -> bool:
    """Any text with a line in it: the catch-all."""
    return bool(text.strip())


def parse(text: str) -> Taxonomy:
    """Read the lines; every prefix of a path is a node."""
    lines: dict[str, None] = {}
    for line in filter(None, map(str.strip, text.split("\n"))):
        if line in lines:
            raise TaxonomyError(f"path {line!r} is listed twice; keep one of the two lines.")
        lines[line] = None
    return Taxonomy.from_paths(lines, find_separator(lines) or "")


def render(taxonomy: Taxonomy) -> str:
    """Write the path of each node, parents first, with the taxonomy's separator if that can be parsed, else with an arrow."""
    taxonomy.require_tree("a list of paths")
    refuse_unprintable(taxonomy)
    paths = [taxonomy.path_of(node) for node in range(len(taxonomy))]
    for separator in (taxonomy.separator, ARROW):
        lines = [separator.join(path) for path in paths]
        expected = separator if taxonomy.n_levels > 1 else None
        if find_separator(lines) == expected and not any(separator in title for title in taxonomy.titles):
            return "".join(f"{line}\n" for line in lines)
    raise TaxonomyError("the names contain separators, so paths would be ambiguous; write .tsv or .json.")


def find_separator(labels: Iterable[str]) -> str | None:
    """The separator of paths: an arrow between spaces, or another separator that is in half of the distinct labels.

    >>> find_separator(["Food", "Food > Bread"]), find_separator(["a/b", "a/c"]), find_separator(["TCP/IP", "Fonts", "Mice"])
    (' > ', '/', None)
    """
    distinct = set(labels)
    if any(ARROW in label for label in distinct):
        return ARROW
    for separator in PATH_SEPARATORS:
        if distinct and 2 * sum(separator in label for label in distinct) >= len(distinct):
            return separator
    return None
