"""What nested formats have in common: nodes below each other, which are named by their paths."""

from __future__ import annotations

from collections.abc import Sequence

from ramify.taxonomy.edges import free_separator, name_by_path
from ramify.taxonomy.hierarchy import Taxonomy


def taxonomy_of(parents: Sequence[int], titles: Sequence[str]) -> Taxonomy:
    """A forest of nodes given by the position of the parent, -1 of a root, and the title; parents come first.

    >>> taxonomy_of([-1, 0], ["TCP > IP", "Sockets"]).names
    ('TCP > IP', 'TCP > IP/Sockets')
    """
    separator = free_separator(titles)
    parent_names, shown = name_by_path(zip(parents, titles, strict=True), separator)
    return Taxonomy.from_edges(parent_names.items(), titles=shown, separator=separator)
