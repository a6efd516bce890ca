"""JSON: ``{"nodes": [{"name": "apple", "parents": ["fruit"]}, …]}``, or nested objects and lists.

The nested forms are ``{"food": {"fruit": ["apple", "pear"]}}`` and
``{"name": "food", "children": [{"name": "fruit"}]}``; their nodes are named by their paths.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ramify.errors import TaxonomyError
from ramify.taxonomy.hierarchy import ARROW, Taxonomy


def parse(text: str) -> Taxonomy:
    """Read any of the three forms."""
    try:
        tree = json.loads(text, object_pairs_hook=_refuse_repeats)
        if isinstance(tree, dict) and isinstance(tree.get("nodes"), list):
            return Taxonomy.from_state(tree)
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
    rows = ",\n".join(f"  {json.dumps(node, ensure_ascii=False)}" for node in taxonomy.state()["nodes"])
    return f'{{"separator": {json.dumps(taxonomy.separator)}, "nodes": [\n{rows}\n]}}\n'


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise TaxonomyError(f"{twice!r} is listed twice in one JSON object; keep one of the two entries.")
    return found


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
