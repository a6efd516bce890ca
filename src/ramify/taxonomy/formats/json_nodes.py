"""JSON: ``{"nodes": [{"name": "apple", "parents": ["fruit"]}, …]}``, or nested objects and lists.

The nested forms are ``{"food": {"fruit": ["apple", "pear"]}}`` and
``{"name": "food", "children": [{"name": "fruit"}]}``; their nodes are named by their paths.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ramify.errors import TaxonomyError
from ramify.taxonomy.hierarchy import ARROW, Taxonomy


def recognizes(text: str) -> bool:
    """The text starts as a JSON object or list."""
    return re.match(r'\s*(\{\s*("|\})|\[\s*("|\{|\[|\]))', text) is not None


def parse(text: str) -> Taxonomy:
    """Read any of the three forms."""
    try:
        tree = json.loads(text, object_pairs_hook=_refuse_repeats)
        if _lists_nodes(tree):
            return from_values(tree)
        paths: dict[tuple[str, ...], None] = {}
        for path in _paths(tree, ()):
            if path in paths:
                raise TaxonomyError(f"{ARROW.join(path)!r} is listed twice; keep one of the two entries.")
            paths[path] = None
        return Taxonomy.from_title_paths(paths)
    except json.JSONDecodeError as error:
        raise TaxonomyError(f"the taxonomy is not valid JSON: {error}.") from None
    except RecursionError:
        raise TaxonomyError("the taxonomy's JSON is nested too deeply; list its nodes with their parents instead.") from None


def render(taxonomy: Taxonomy) -> str:
    """Write the first form, one node per line."""
    rows = ",\n".join(f"  {json.dumps(node, ensure_ascii=False)}" for node in to_values(taxonomy)["nodes"])
    return f'{{"separator": {json.dumps(taxonomy.separator)}, "nodes": [\n{rows}\n]}}\n'


def to_values(taxonomy: Taxonomy) -> dict[str, Any]:
    """The first form as plain values."""
    nodes = []
    for node, name in enumerate(taxonomy.names):
        entry: dict[str, Any] = {"name": name, "parents": [taxonomy.names[p] for p in taxonomy.parents_of(node)]}
        if taxonomy.titles[node] != name:
            entry["title"] = taxonomy.titles[node]
        nodes.append(entry)
    return {"separator": taxonomy.separator, "nodes": nodes}


def from_values(tree: Any) -> Taxonomy:
    """Parse plain values of the first form."""
    if not _lists_nodes(tree):
        raise TaxonomyError("expected an object with a list of 'nodes'.")
    edges: list[tuple[str, str | None]] = []
    titles: dict[str, str] = {}
    for node in tree["nodes"]:
        if not isinstance(node, dict) or not isinstance(node.get("name"), str):
            raise TaxonomyError(f"each node needs a 'name' that is a string; found {str(node)[:80]!r}.")
        name, parents, title = node["name"], node.get("parents") or [], node.get("title", node["name"])
        if not isinstance(parents, list) or not isinstance(title, str):
            raise TaxonomyError(f"node {name!r} needs 'parents' as a list of names and 'title' as a string.")
        if name in titles:
            raise TaxonomyError(f"node {name!r} is listed twice; keep one of the two entries.")
        edges += [(name, parent) for parent in parents] or [(name, None)]
        titles[name] = title
    separator = tree.get("separator", ARROW)
    if not isinstance(separator, str) or not separator:
        raise TaxonomyError(f"the separator is {separator!r}; give a non-empty string.")
    return Taxonomy.from_edges(edges, titles=titles, separator=separator)


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise TaxonomyError(f"{twice!r} is listed twice in one JSON object; keep one of the two entries.")
    return found


def _lists_nodes(tree: Any) -> bool:
    return isinstance(tree, dict) and isinstance(tree.get("nodes"), list)


def _paths(tree: Any, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(tree, str):
        yield (*above, tree)
    elif isinstance(tree, list):
        for part in tree:
            yield from _paths(part, above)
    elif isinstance(tree, dict) and isinstance(tree.get("name"), str):
        yield (*above, tree["name"])
        yield from _paths(tree.get("children") or [], (*above, tree["name"]))
    elif isinstance(tree, dict):
        for name, below in tree.items():
            yield (*above, name)
            yield from _paths([] if below is None else below, (*above, name))
    else:
        raise TaxonomyError(f"a taxonomy is made of names, lists and objects; found {str(tree)[:80]!r}.")
