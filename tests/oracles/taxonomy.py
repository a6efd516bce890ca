"""The slow twin of the taxonomy: every relation between nodes computed from its definition.

A taxonomy is `parents`, one list of parent numbers a node; parents have smaller numbers than their children.
"""

from collections.abc import Iterable


def ancestors(parents: list[list[int]], node: int) -> set[int]:
    """Every node above `node`, without the node itself."""
    above: set[int] = set()
    for parent in parents[node]:
        above |= {parent} | ancestors(parents, parent)
    return above


def close_upward(parents: list[list[int]], nodes: Iterable[int]) -> set[int]:
    """The nodes together with all their ancestors."""
    closed: set[int] = set()
    for node in nodes:
        closed |= {node} | ancestors(parents, node)
    return closed


def most_specific(parents: list[list[int]], nodes: Iterable[int]) -> set[int]:
    """The nodes of the upward closure that have no child in it."""
    closed = close_upward(parents, nodes)
    return {node for node in closed if not any(child in closed for child in children(parents, node))}


def children(parents: list[list[int]], node: int) -> list[int]:
    """The nodes that have `node` among their parents, in node order."""
    return [other for other in range(len(parents)) if node in parents[other]]


def descendants(parents: list[list[int]], node: int) -> set[int]:
    """Every node below `node`, without the node itself."""
    return {other for other in range(len(parents)) if node in ancestors(parents, other)}


def depth(parents: list[list[int]], node: int) -> int:
    """The length of the longest path from a root to `node`; roots have depth 0."""
    if not parents[node]:
        return 0
    return 1 + max(depth(parents, parent) for parent in parents[node])


def is_leaf(parents: list[list[int]], node: int) -> bool:
    """Whether `node` has no children."""
    return not children(parents, node)


def siblings(parents: list[list[int]], node: int) -> set[int]:
    """The nodes with exactly the same set of parents, `node` included; all roots are siblings."""
    return {other for other in range(len(parents)) if set(parents[other]) == set(parents[node])}
