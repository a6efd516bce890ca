"""JSON: ``{"nodes": [{"name": "apple", "parents": ["fruit"]}, …]}``, or nested objects and lists.

The nested forms are ``{"food": {"fruit": ["apple", "pear"]}}`` and
``{"name": "food", "children": [{"name": "fruit"}]}``; their nodes are named by their paths.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ramify.errors import TaxonomyError
from ramify.taxonomy.formats.nested import taxonomy_of
from ramify.taxonomy.hierarchy import Taxonomy

DONE = object()
MOST_BRACKETS, USUAL_CHARACTERS = 1 << 17, 6  # that open; characters for each: an empty list takes 20 times its text


def parse(text: str) -> Taxonomy:
    """Read any of the three forms."""
    n_brackets = text.count("[") + text.count("{")
    if MOST_BRACKETS < n_brackets > len(text) / USUAL_CHARACTERS:
        raise TaxonomyError(
            f"the taxonomy's JSON is mostly brackets, {n_brackets:,} that open; leave empty lists and objects out."
        )
    try:
        tree = json.loads(text, object_pairs_hook=_refuse_repeats)
        if isinstance(tree, dict) and isinstance(tree.get("nodes"), list):
            return Taxonomy.from_state(tree)
        parents, titles = [], []
        for parent, title in _nodes(tree):
            parents.append(parent)
            titles.append(title)
        del tree
        return taxonomy_of(parents, titles)
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
        twice = next(name for name, n_times in Counter(name for name, _ in pairs).items() if n_times > 1)
        raise TaxonomyError(f"{twice!r} is listed twice in one JSON object; keep one of the two entries.")
    return found


def _nodes(tree: Any) -> Iterator[tuple[int, str]]:
    """The position of the parent, -1 of a root, and the title of each node; parents come first."""
    n_nodes = 0
    open_parts: list[tuple[int, Iterator[Any]]] = [(-1, iter([tree]))]
    while open_parts:
        parent, parts = open_parts[-1]
        part = next(parts, DONE)
        if part is DONE:
            open_parts.pop()
        elif isinstance(part, list):
            open_parts.append((parent, iter(part)))
        elif isinstance(part, dict) and not isinstance(part.get("name"), str):
            open_parts.append((parent, iter(part.items())))
        else:
            title, below = _title_and_children(part)
            yield parent, title.strip()
            if below is not None:
                open_parts.append((n_nodes, iter([below])))
            n_nodes += 1


def _title_and_children(part: Any) -> tuple[str, Any]:
    if isinstance(part, str):
        return part, None
    if isinstance(part, tuple):  # an entry of an object; JSON itself has no tuples
        return part
    if isinstance(part, dict):
        return part["name"], part.get("children") or None
    raise TaxonomyError(f"a taxonomy is made of names, lists and objects; found {str(part)[:80]!r}.")
