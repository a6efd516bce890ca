"""Main parents of a DAG, and values of its main-parent tree carried over to the DAG, node by node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def main_parents(parents: Sequence[Sequence[int]], rows: Sequence[set[int]]) -> list[int]:
    """Of each node the parent with the fewest documents at or below it, the deepest of these, and the first listed; or -1."""
    closed = [{above for node in row for above in [node, *ancestors(parents, node)]} for row in rows]
    depth = [longest_path(parents, node) for node in range(len(parents))]
    found = []
    for above in parents:
        documents = {parent: sum(parent in row for row in closed) for parent in above}
        found.append(min(above, key=lambda p: (documents[p], -depth[p], above.index(p)), default=-1))
    return found


def ancestors(parents: Sequence[Sequence[int]], node: int) -> set[int]:
    return {node for parent in parents[node] for node in [parent, *ancestors(parents, parent)]}


def longest_path(parents: Sequence[Sequence[int]], node: int) -> int:
    return max((1 + longest_path(parents, parent) for parent in parents[node]), default=0)


def largest_below(values: np.ndarray, parents: Sequence[Sequence[int]]) -> np.ndarray:
    """Documents × nodes: the largest value at or below each node, NaN only where all are."""
    found = np.full(values.shape, np.nan)
    for node in range(len(parents)):
        below = [other for other in range(len(parents)) if other == node or node in ancestors(parents, other)]
        for document, row in enumerate(values):
            known = [row[other] for other in below if not np.isnan(row[other])]
            found[document, node] = max(known, default=np.nan)
    return found


def sums_of_ends(P: np.ndarray, parents: Sequence[Sequence[int]], main: Sequence[int]) -> np.ndarray:
    """Documents × nodes: what ends at and below each node of the DAG, where P is over the tree of main parents."""
    n = len(parents)
    ends = np.array([[row[node] - sum(row[c] for c in range(n) if main[c] == node) for node in range(n)] for row in P])
    found = np.zeros(P.shape)
    for node in range(n):
        for above in {node, *ancestors(parents, node)}:
            found[:, above] += ends[:, node].clip(0)
    return found.clip(0, 1)
