"""The file formats of taxonomies: functions that parse and render each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ramify.taxonomy.formats import doccano, json_nodes, label_studio, skos, text
from ramify.taxonomy.hierarchy import Taxonomy


class Format(NamedTuple):
    """How a format is read and written. has_languages: both functions take a language as their second argument."""

    parse: Callable[..., Taxonomy]
    render: Callable[..., str]
    has_languages: bool = False


FORMATS = {
    "json": Format(json_nodes.parse, json_nodes.render),
    "skos": Format(skos.parse, skos.render, has_languages=True),
    "lshtc": Format(text.parse_lshtc, text.render_lshtc),
    "edges": Format(text.parse_edges, text.render_edges),
    "indented": Format(text.parse_indented, text.render_indented),
    "paths": Format(text.parse_paths, text.render_paths),
    "label-studio": Format(label_studio.parse, label_studio.render),
    "doccano": Format(doccano.parse, doccano.render),
}
