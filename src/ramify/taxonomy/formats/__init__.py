"""One file per format, each with the same functions.

``recognizes(text)`` recognizes the format, ``parse(text)`` reads a taxonomy, and ``render(taxonomy)`` writes one. The first
format that recognizes a text reads it.
"""

from __future__ import annotations

from typing import Protocol

from ramify.taxonomy.formats import edges, indented, json_nodes, lshtc, paths, skos
from ramify.taxonomy.hierarchy import Taxonomy


class Format(Protocol):
    """The functions of each module of this package."""

    def recognizes(self, text: str, /) -> bool:
        """Whether a text is of this format."""

    def parse(self, text: str, /) -> Taxonomy:
        """Parse a taxonomy."""

    def render(self, taxonomy: Taxonomy, /) -> str:
        """Write a taxonomy as text."""


# tried in this order: the most specific first, the catch-all last
FORMATS: dict[str, Format] = {"json": json_nodes, "skos": skos, "lshtc": lshtc}
FORMATS |= {"edges": edges, "indented": indented, "paths": paths}
