"""A list of paths, one a line: ``food/fruit/apple`` or ``Food > Fruit > Apple``.

A list of plain names is a flat forest.
"""

from __future__ import annotations

from collections.abc import Iterable

from ramify.errors import TaxonomyError
from ramify.taxonomy.hierarchy import PATH_SEPARATORS, Taxonomy

ARROW = " > "


def looks_like(text: str) -> bool:
    """Any text with a line in it: the catch-all."""
    return bool(text.strip())


def parse(text: str) -> Taxonomy:
    """Read the lines; every prefix of a path is a node."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    seen: set[str] = set()
    for line in lines:
        if line in seen:
            raise TaxonomyError(f"path {line!r} is listed twice; keep one of the two lines.")
        seen.add(line)
    return Taxonomy.from_paths(lines, _separator_of(lines) or "")


def render(taxonomy: Taxonomy) -> str:
    """Write the path of every node, parents first; with its own separator where that reads back, or else with an arrow."""
    taxonomy.require_tree("a list of paths")
    paths = [taxonomy.path_of(node) for node in range(len(taxonomy))]
    for separator in (taxonomy.separator, ARROW):
        lines = [separator.join(path) for path in paths]
        expected = separator if taxonomy.n_levels > 1 else None
        if _separator_of(lines) == expected and not any(separator in title for title in taxonomy.titles):
            return "".join(f"{line}\n" for line in lines)
    raise TaxonomyError("the names hold separators of their own, so paths could not be told apart; write .tsv or .json.")


def _separator_of(lines: list[str]) -> str | None:
    """In a list of paths one arrow is enough; other marks also stand inside names."""
    return ARROW if any(ARROW in line for line in lines) else find_separator(lines)


def find_separator(labels: Iterable[str]) -> str | None:
    """What joins the parts of paths: the first known separator that stands in half of the distinct labels.

    >>> find_separator(["Food > Fruit", "Food > Bread"]), find_separator(["TCP/IP", "Fonts", "Mice"])
    (' > ', None)
    """
    distinct = set(labels)
    for separator in PATH_SEPARATORS:
        if distinct and 2 * sum(separator in label for label in distinct) >= len(distinct):
            return separator
    return None
