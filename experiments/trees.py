"""Taxonomies made from others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ramify.taxonomy import Taxonomy

ROOT = "(root)"


def under_one_root(taxonomy: Taxonomy) -> Taxonomy:
    """The same tree with one more node, above all its roots.

    >>> under_one_root(Taxonomy.flat(["a", "b"])).names
    ('(root)', 'a', 'b')
    """
    above = [ROOT if parent < 0 else taxonomy.names[parent] for parent in taxonomy.parent.tolist()]
    return Taxonomy.from_edges([(ROOT, None), *zip(taxonomy.names, above, strict=True)])


def narrowed(taxonomy: Taxonomy, nodes: NDArray[np.int64]) -> Taxonomy:
    """Some nodes, all of whose ancestors are among them, as a taxonomy.

    >>> tree = Taxonomy.from_paths(["a/x", "a/y"])
    >>> narrowed(tree, np.asarray([tree.index("a"), tree.index("a/y")])).names
    ('a', 'a/y')
    """
    parents = [taxonomy.names[p] if p >= 0 else None for p in taxonomy.parent[nodes].tolist()]
    return Taxonomy.from_edges(zip([taxonomy.names[node] for node in nodes.tolist()], parents, strict=True))
