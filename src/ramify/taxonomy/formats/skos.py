"""SKOS concept schemes as Turtle, RDF/XML or N-Triples. The only file that imports rdflib (extra: ``ramify[skos]``).

A concept's URI is its name and its preferred label its title, English first.
``skos:broader`` and ``skos:narrower`` both count.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, unquote

from ramify.errors import InputError, TaxonomyError
from ramify.taxonomy.hierarchy import Taxonomy

URN = "urn:ramify:"  # prefix of names that are not URIs, removed on reading
MARK = "www.w3.org/2004/02/skos/core"


def recognizes(text: str) -> bool:
    """The SKOS namespace is near the top."""
    return MARK in text[:20_000]


def parse(text: str) -> Taxonomy:
    """Read the concepts, sorted by URI, and their broader concepts."""
    rdf = _rdflib()
    graph = rdf.Graph()
    try:
        graph.parse(data=text, format=_syntax(text))
    except Exception as error:  # rdflib's parsers raise whatever their syntax makes them raise
        raise TaxonomyError(f"the SKOS file cannot be parsed: {str(error).splitlines()[0][:160]}.") from None
    parents = _broader(graph, rdf.SKOS)
    edges: list[tuple[str, str | None]] = []
    for concept in sorted(parents):
        edges += [(_name(concept), _name(parent)) for parent in sorted(parents[concept])] or [(_name(concept), None)]
    titles = {_name(concept): _title(graph, concept, rdf.SKOS) for concept in parents}
    return Taxonomy.from_edges(edges, titles=titles)


def render(taxonomy: Taxonomy) -> str:
    """Write Turtle; a name that is not a URI gets the prefix ``urn:ramify:``."""
    rdf = _rdflib()
    graph = rdf.Graph()
    graph.bind("skos", rdf.SKOS)
    uris = [rdf.URIRef(_uri(name)) for name in taxonomy.names]
    for node, uri in enumerate(uris):
        graph.add((uri, rdf.RDF.type, rdf.SKOS.Concept))
        graph.add((uri, rdf.SKOS.prefLabel, rdf.Literal(taxonomy.titles[node])))
        for parent in taxonomy.parents_of(node):
            graph.add((uri, rdf.SKOS.broader, uris[parent]))
    return str(graph.serialize(format="turtle"))


def _rdflib() -> Any:
    try:
        import rdflib
    except ImportError:
        raise InputError("reading and writing SKOS needs rdflib; install it with: pip install 'ramify[skos]'.") from None
    return rdflib


def _syntax(text: str) -> str:
    start = text.lstrip()
    if start.startswith(("<?xml", "<rdf:", "<!DOCTYPE", "<!--")):
        return "xml"
    return "turtle"  # N-Triples is a part of Turtle


def _broader(graph: Any, skos: Any) -> dict[Any, set[Any]]:
    parents: dict[Any, set[Any]] = {concept: set() for concept in graph.subjects(None, skos.Concept)}
    pairs = [*graph.subject_objects(skos.broader), *((c, p) for p, c in graph.subject_objects(skos.narrower))]
    for child, parent in pairs:
        parents.setdefault(parent, set())
        parents.setdefault(child, set()).add(parent)
    if not parents:
        raise TaxonomyError("the SKOS file has no concept; expected skos:Concept, skos:broader or skos:narrower.")
    return parents


def _title(graph: Any, concept: Any, skos: Any) -> str:
    literal = _rdflib().Literal

    def is_english(label: Any) -> bool:
        return isinstance(label, literal) and label.language == "en"

    labels = sorted(graph.objects(concept, skos.prefLabel), key=lambda label: (not is_english(label), str(label)))
    return str(labels[0]) if labels else _name(concept).rstrip("/#").replace("#", "/").rsplit("/", 1)[-1]


def _uri(name: str) -> str:
    is_uri = re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|^`\\]+", name) is not None and not name.startswith(URN)
    return name if is_uri else URN + quote(name, safe="")


def _name(concept: Any) -> str:
    uri = str(concept)
    return unquote(uri.removeprefix(URN)) if uri.startswith(URN) else uri
