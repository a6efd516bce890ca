"""Random taxonomies, label sets and scores for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from ramify import Taxonomy

Parents = list[list[int]]


@st.composite
def parent_lists(draw: st.DrawFn, max_nodes: int = 9, most_parents: int = 3, min_nodes: int = 1) -> Parents:
    """Parents of each node, all with smaller numbers: forests and DAGs, chains and stars, single nodes."""
    parents: Parents = []
    for node in range(draw(st.integers(min_nodes, max_nodes))):
        known = st.integers(0, node - 1) if node else st.nothing()
        parents.append(sorted(draw(st.sets(known, max_size=min(node, most_parents)))) if node else [])
    return parents


def trees(max_nodes: int = 9, min_nodes: int = 1) -> st.SearchStrategy[Parents]:
    return parent_lists(max_nodes, most_parents=1, min_nodes=min_nodes)


def random_forest(rng: np.random.Generator, n_nodes: int) -> Parents:
    """Parents of each node of a seeded random forest, from flat to deep: roots may be rare, chains and stars may be long."""
    is_root = rng.random(n_nodes) < rng.choice([0.0, 0.1, 0.3, 0.8])
    reach = rng.choice([1, 2, n_nodes])  # how far back a parent may lie
    back = rng.integers(1, reach + 1, size=n_nodes)
    towards_the_first = rng.random() < 0.2
    parents: Parents = [[]]
    for node in range(1, n_nodes):
        parent = 0 if towards_the_first and rng.random() < 0.7 else max(node - back[node], 0)
        parents.append([] if is_root[node] else [int(parent)])
    return parents


def build(parents: Parents) -> Taxonomy:
    """The taxonomy of parent lists; node i is named n<i> and keeps its number."""
    edges = [(f"n{i}", f"n{p}") for i, above in enumerate(parents) for p in above]
    roots = [(f"n{i}", None) for i, above in enumerate(parents) if not above]
    order = {f"n{i}": i for i in range(len(parents))}
    return Taxonomy.from_edges(sorted(edges + roots, key=lambda edge: order[edge[0]]))


@st.composite
def labelled(draw: st.DrawFn, matrices: int = 1, max_documents: int = 6, most_parents: int = 3) -> tuple[Parents, ...]:
    """Parent lists, and one list of label sets for each matrix; sets need not be closed and may be empty."""
    parents = draw(parent_lists(most_parents=most_parents))
    n_documents = draw(st.integers(0, max_documents))
    nodes = st.sets(st.integers(0, len(parents) - 1))
    return parents, *(draw(st.lists(nodes, min_size=n_documents, max_size=n_documents)) for _ in range(matrices))


def as_matrix(rows: list[set[int]], n_nodes: int) -> np.ndarray:
    Y = np.zeros((len(rows), n_nodes), dtype=bool)
    for d, nodes in enumerate(rows):
        Y[d, sorted(nodes)] = True
    return Y


def as_sets(Y: object) -> list[set[int]]:
    dense = Y.toarray() if hasattr(Y, "toarray") else np.asarray(Y)
    return [set(np.flatnonzero(row).tolist()) for row in dense]
