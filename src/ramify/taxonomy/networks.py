"""Taxonomies as networkx graphs. The only file that names networkx (extra: ``ramify[networkx]``)."""

from __future__ import annotations

from typing import Any

from ramify.errors import InputError
from ramify.taxonomy.hierarchy import Taxonomy


def to_networkx(taxonomy: Taxonomy) -> Any:
    """A ``networkx.DiGraph`` with edges from parent to child and the title of each node."""
    try:
        import networkx
    except ImportError:
        raise InputError("networkx is not installed; install it with: pip install 'ramify[networkx]'.") from None
    graph = networkx.DiGraph()
    for node, name in enumerate(taxonomy.names):
        graph.add_node(name, title=taxonomy.titles[node])
        graph.add_edges_from((taxonomy.names[parent], name) for parent in taxonomy.parents_of(node))
    return graph
