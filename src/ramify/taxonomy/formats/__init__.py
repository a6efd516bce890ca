"""The file formats of taxonomies: functions that parse and render each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ramify.taxonomy.formats import json_nodes, skos, text
from ramify.taxonomy.hierarchy import Taxonomy


class Format(NamedTuple):
    """How a format is read and written."""

    parse: Callable[[str], Taxonomy]
    render: Callable[[Taxonomy], str]


FORMATS = {
    "json": Format(json_nodes.parse, json_nodes.render),
    "skos": Format(skos.parse, skos.render),
    "lshtc": Format(text.parse_lshtc, text.render_lshtc),
    "edges": Format(text.parse_edges, text.render_edges),
    "indented": Format(text.parse_indented, text.render_indented),
    "paths": Format(text.parse_paths, text.render_paths),
}
