"""A taxonomy as a page, with nodes that open and close, and as rows."""

from __future__ import annotations

from collections import deque
from typing import Any

from ramify.reports.pages import NOTEBOOK, render
from ramify.reports.tables import shorten
from ramify.taxonomy.hierarchy import Taxonomy

MAX_NODES, MAX_CHILDREN, MAX_LEVELS, OPEN_LEVELS = 300, 40, 25, 2
LONGEST = 120  # letters of a title


def describe_taxonomy(taxonomy: Taxonomy) -> str:
    """Kind and size, in one line.

    >>> describe_taxonomy(Taxonomy.from_paths(["food/fruit"]))
    'tree of 2 nodes, 1 leaf, 2 levels'
    """
    kind, n_leaves = "tree" if taxonomy.is_tree else "DAG", int(taxonomy.is_leaf.sum())
    leaves, levels = "leaf" if n_leaves == 1 else "leaves", "level" if taxonomy.n_levels == 1 else "levels"
    nodes = "node" if len(taxonomy) == 1 else "nodes"
    return f"{kind} of {len(taxonomy):,} {nodes}, {n_leaves:,} {leaves}, {taxonomy.n_levels} {levels}"


def taxonomy_part(taxonomy: Taxonomy) -> str:
    """Some hundred nodes, the top levels first, and how many more there are. A DAG is shown as the tree of main parents."""
    tree, n_shown = taxonomy.tree, 0
    top: dict[str, Any] = {"children": [], "hidden": 0}
    waiting = deque([(top, tree.roots.tolist(), 0)])
    while waiting:
        parent, children, level = waiting.popleft()
        room = 0 if level == MAX_LEVELS else max(0, min(MAX_CHILDREN, MAX_NODES - n_shown))
        parent["hidden"] = max(0, len(children) - room)
        for node in children[:room]:
            below = tree.children_of(node).tolist()
            shown: dict[str, Any] = {"title": shorten(tree.titles[node], LONGEST), "n_children": len(below), "children": []}
            parent["children"].append(shown | {"hidden": 0, "is_open": level + 1 < OPEN_LEVELS})
            waiting.append((parent["children"][-1], below, level + 1))
        n_shown += min(room, len(children))
    title = describe_taxonomy(taxonomy)
    return render("taxonomy.html", NOTEBOOK, title=title, lead="", roots=top["children"], hidden=len(taxonomy) - n_shown)


def taxonomy_rows(taxonomy: Taxonomy) -> list[dict[str, Any]]:
    """Every node with its path and its parents."""
    names = taxonomy.names
    return [
        {
            "name": name,
            "title": taxonomy.titles[node],
            "path": taxonomy.show(node),
            "depth": int(taxonomy.depth[node]),
            "is_leaf": bool(taxonomy.is_leaf[node]),
            "parents": [names[parent] for parent in taxonomy.parents_of(node).tolist()],
        }
        for node, name in enumerate(names)
    ]
