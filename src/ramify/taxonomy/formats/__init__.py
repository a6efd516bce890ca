"""One file a format, each with the same skeleton.

``looks_like(text)`` says whether a text is of the format, ``parse(text)`` makes a taxonomy of it, and
``render(taxonomy)`` writes one back. The first format that recognizes a text reads it.
"""

from __future__ import annotations

from typing import Protocol

from ramify.taxonomy.formats import edges, indented, json_nodes, lshtc, paths, skos
from ramify.taxonomy.hierarchy import Taxonomy


class Format(Protocol):
    """What every module of this package offers."""

    def looks_like(self, text: str, /) -> bool:
        """Whether a text is of this format."""

    def parse(self, text: str, /) -> Taxonomy:
        """Make a taxonomy of a text."""

    def render(self, taxonomy: Taxonomy, /) -> str:
        """Write a taxonomy as text."""


# in the order in which they are tried: from the unmistakable to the catch-all
FORMATS: dict[str, Format] = {
    "json": json_nodes,
    "skos": skos,
    "lshtc": lshtc,
    "edges": edges,
    "indented": indented,
    "paths": paths,
}
