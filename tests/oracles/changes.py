"""What changed between two taxonomies whose names are stable, read off parent and title tables."""

from __future__ import annotations

from ramify import Taxonomy


def table(taxonomy: Taxonomy) -> dict[str, tuple[frozenset[str], str]]:
    """By name, the names of the parents and the title."""
    return {
        name: (frozenset(taxonomy.names[p] for p in taxonomy.parents_of(node)), taxonomy.titles[node])
        for node, name in enumerate(taxonomy.names)
    }


def compare(old: Taxonomy, new: Taxonomy) -> dict[str, set[str]]:
    """Names of nodes that were renamed, moved, added and retired; of added and retired ones all, not the topmost alone."""
    before, after = table(old), table(new)
    both = before.keys() & after.keys()
    return {
        "renamed": {name for name in both if before[name][1] != after[name][1]},
        "moved": {name for name in both if before[name][0] != after[name][0]},
        "added": after.keys() - before.keys(),
        "retired": before.keys() - after.keys(),
    }
