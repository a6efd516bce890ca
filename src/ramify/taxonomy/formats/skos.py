"""SKOS concept schemes as Turtle, RDF/XML or N-Triples. The only file that imports rdflib (extra: ``ramify[skos]``).

A concept's URI is its name and its preferred label its title, English first unless another language is asked for. A relative
URI is taken as it is, wherever the file lies. ``skos:broader`` and ``skos:narrower`` both count.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, unquote

from ramify.errors import InputError, TaxonomyError, first_sentence
from ramify.formatting import counted, cut
from ramify.parallel import note
from ramify.taxonomy.hierarchy import Taxonomy

URN = "urn:ramify:"  # prefix of names that are not URIs, removed on reading
BASE = "http://relative.invalid/"  # stands before relative URIs while a file is parsed; no host has such a name
SHOWN_LANGUAGES = 20
DECLARATIONS = ("<!DOCTYPE", "<!ENTITY")
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|^`\\]+")


def parse(text: str, language: str | None = None) -> Taxonomy:
    """Read the concepts, sorted by URI, and their broader concepts. language: of the titles, where there are some."""
    rdf = _rdflib()
    graph, skos = rdf.Graph(), rdf.SKOS
    is_xml = text.lstrip().startswith(("<?xml", "<rdf:", "<!DOCTYPE", "<!--"))
    if is_xml and any(mark in text for mark in DECLARATIONS):  # a few entities stand for gigabytes, or for other files
        found = "the SKOS file declares a document type or entities, which are not read"
        raise TaxonomyError(f"{found}; remove <!DOCTYPE …> and write its entities out, or save the file as Turtle.")
    try:
        with _silent_parser():
            graph.parse(data=text, format="xml" if is_xml else "turtle", publicID=BASE)  # N-Triples is a part of Turtle
    except Exception as error:  # rdflib's parsers raise whatever their syntax makes them raise
        raise TaxonomyError(f"the SKOS file cannot be parsed: {first_sentence(error)[:160]}.") from None
    parents: dict[Any, set[Any]] = {concept: set() for concept in graph.subjects(None, skos.Concept)}
    for child, parent in (*graph.subject_objects(skos.broader), *((c, p) for p, c in graph.subject_objects(skos.narrower))):
        parents.setdefault(parent, set())
        parents.setdefault(child, set()).add(parent)
    if not parents:
        raise TaxonomyError("the SKOS file has no concept; expected skos:Concept, skos:broader or skos:narrower.")
    for concept in parents:
        if not isinstance(concept, rdf.URIRef):  # a blank node has another name each time, and a text is no concept
            found = (
                "a concept without a URI"
                if isinstance(concept, rdf.BNode)
                else f"{cut(str(concept), 60)!r} instead of a concept"
            )
            raise TaxonomyError(f"the SKOS file has {found}; give each concept, broader and narrower ones too, a URI.")
    edges: list[tuple[str, str | None]] = []
    labels: dict[str, list[tuple[str, str]]] = {}
    for concept in sorted(parents):
        name = _name(concept)
        edges += [(name, _name(parent)) for parent in sorted(parents[concept])] or [(name, None)]
        found = graph.objects(concept, skos.prefLabel)
        labels[name] = [(str(getattr(label, "language", None) or "").lower(), str(label)) for label in found]
    return Taxonomy.from_edges(edges, titles=_english(labels) if language is None else _titles_in(language.lower(), labels))


def _english(labels: Mapping[str, Sequence[tuple[str, str]]]) -> dict[str, str]:
    """The English label of each concept, or else any."""
    ranked = {name: [(tag != "en", label) for tag, label in found] for name, found in labels.items()}
    return {name: min(found)[1] if found else _last_part(name) for name, found in ranked.items()}


def _titles_in(language: str, labels: Mapping[str, Sequence[tuple[str, str]]]) -> dict[str, str]:
    """The label of each concept in a language, or else without a language, in English, or any; says how many have none."""
    best = {name: min((_rank(tag, language), tag, label) for tag, label in found) for name, found in labels.items() if found}
    missing = [name for name in labels if name not in best or best[name][0] > 1]
    if len(missing) == len(labels):
        tags = sorted({tag for found in labels.values() for tag, _ in found if tag})
        known = f"it has labels in {', '.join(tags[:SHOWN_LANGUAGES])}" if tags else "its labels name no language"
        raise TaxonomyError(f"no concept of the SKOS file has a label in {language!r}; {known}. Ask for another, or for none.")
    titles = {name: best[name][2] if name in best else _last_part(name) for name in labels}
    if missing:
        found = f"{len(missing):,} of {counted(len(labels), 'concept')} without a label in {language!r} keep another one"
        note(f"{found}, such as {titles[missing[0]][:60]!r}")
    return titles


def _rank(tag: str, language: str) -> int:
    """How well a label with this language tag suits: the language, a variety of it, no language, English, any other."""
    is_variety = tag.split("-")[0] == language.split("-")[0]
    is_english = tag.split("-")[0] == "en"
    return next(rank for rank, suits in enumerate((tag == language, is_variety, not tag, is_english, True)) if suits)


def _last_part(name: str) -> str:
    return name.rstrip("/#").replace("#", "/").rsplit("/", 1)[-1]


def render(taxonomy: Taxonomy, language: str | None = None) -> str:
    """Write Turtle; a name that is not a URI gets the prefix ``urn:ramify:``. language: of the titles."""
    rdf = _rdflib()
    graph = rdf.Graph()
    graph.bind("skos", rdf.SKOS)
    are_uris = [URI.fullmatch(name) is not None and not name.startswith(URN) for name in taxonomy.names]
    names = (name if is_uri else URN + quote(name, safe="") for name, is_uri in zip(taxonomy.names, are_uris, strict=True))
    uris = [rdf.URIRef(name) for name in names]
    for node, uri in enumerate(uris):
        graph.add((uri, rdf.RDF.type, rdf.SKOS.Concept))
        graph.add((uri, rdf.SKOS.prefLabel, rdf.Literal(taxonomy.titles[node], lang=language)))
        for parent in taxonomy.parents_of(node):
            graph.add((uri, rdf.SKOS.broader, uris[parent]))
    return str(graph.serialize(format="turtle"))


def _rdflib() -> Any:
    try:
        import rdflib
    except ImportError:
        raise InputError("reading and writing SKOS needs rdflib; install it with: pip install 'ramify[skos]'.") from None
    return rdflib


def _name(concept: Any) -> str:
    uri = str(concept).removeprefix(BASE)
    return unquote(uri.removeprefix(URN)) if uri.startswith(URN) else uri


@contextmanager
def _silent_parser() -> Iterator[None]:
    """Keep rdflib from printing what it finds odd in a file: it would quote the file as it is, with tracebacks."""
    log = logging.getLogger("rdflib.term")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before
