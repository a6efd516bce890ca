"""Undirected graphs of related labels. The only file that imports networkx (extra: ``ramify[networkx]``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from ramify.arguments import entries, pairs
from ramify.errors import InputError, LabelError, TaxonomyError, suggest
from ramify.taxonomy.edges import check_label
from ramify.taxonomy.hierarchy import Taxonomy


@dataclass(frozen=True, slots=True, eq=False)
class LabelGraph:
    """Labels and undirected, unweighted edges between them.

    names: unique names, in order of first mention.
    adjacency: labels × labels, boolean, symmetric, nothing on the diagonal.

    >>> graph = LabelGraph.from_edges([("wine", "grape"), ("grape", "raisin")], names=["tea"])
    >>> [graph.names[n] for n in graph.neighbours_of(graph.index("grape"))]
    ['wine', 'raisin']
    """

    names: tuple[str, ...]
    adjacency: csr_array
    _position: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_position", {name: node for node, name in enumerate(self.names)})
        for array in (self.adjacency.data, self.adjacency.indices, self.adjacency.indptr):
            array.setflags(write=False)

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[str, str]], names: Iterable[str] = ()) -> LabelGraph:
        """Make a graph from pairs of names; `names` adds labels that may have no neighbour."""
        position: dict[str, int] = {name: node for node, name in enumerate(dict.fromkeys(_labels(names)))}
        found: list[tuple[int, int]] = []
        for a, b in map(_labels, pairs(edges, "edges", "two labels", TaxonomyError)):
            if a == b:
                raise TaxonomyError(f"label {a!r} has an edge to itself; drop it.")
            found.append((position.setdefault(a, len(position)), position.setdefault(b, len(position))))
        ends, size = np.asarray(found, dtype=np.int64).reshape(-1, 2), len(position)
        rows, columns = np.concatenate([ends, ends[:, ::-1]]).T
        adjacency = csr_array(coo_array((np.ones(len(rows), dtype=bool), (rows, columns)), shape=(size, size)))
        adjacency.sum_duplicates()
        return cls(tuple(position), adjacency)

    @classmethod
    def from_taxonomy(cls, taxonomy: Taxonomy) -> LabelGraph:
        """The undirected graph of a taxonomy's edges."""
        edges = ((name, taxonomy.names[p]) for node, name in enumerate(taxonomy) for p in taxonomy.parents_of(node))
        return cls.from_edges(edges, names=taxonomy.names)

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """The position of a label."""
        check_label(name)
        if name not in self._position:
            raise LabelError(f"label {name!r} is not in the graph of {len(self)}.{suggest(name, self.names)}")
        return self._position[name]

    def neighbours_of(self, node: int) -> NDArray[np.int64]:
        """The neighbours of a label, in order."""
        indices, indptr = self.adjacency.indices, self.adjacency.indptr
        return np.array(indices[indptr[node] : indptr[node + 1]], dtype=np.int64)

    def components(self) -> NDArray[np.int64]:
        """The number of each label's connected component."""
        _, component = connected_components(self.adjacency, directed=False)
        return np.asarray(component, dtype=np.int64)


def _labels(names: Iterable[str]) -> list[str]:
    listed = list(entries(names, "names", TaxonomyError))
    for name in listed:
        check_label(name)
    return listed


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
