"""Build the arrays of a :class:`~ramify.taxonomy.Taxonomy` from edges and paths."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ramify.errors import TaxonomyError

Parents = dict[str, list[str]]


def parents_by_child(edges: Iterable[tuple[str, str | None]]) -> Parents:
    """The parents of each node, in order of first mention as a child; refuses invalid edges."""
    parents: Parents = {}
    roots: set[str] = set()
    for child, parent in edges:
        if isinstance(child, str) and any("\ud800" <= letter <= "\udfff" for letter in child):
            raise TaxonomyError(f"the name {child!r} contains a lone surrogate, which is not valid text; fix it.")
        if not isinstance(child, str) or not child.strip():
            raise TaxonomyError(f"a node needs a name that is a non-empty string, not {child!r} (below {parent!r}).")
        if parent is not None and (not isinstance(parent, str) or not parent.strip()):
            raise TaxonomyError(f"the parent of {child!r} is {parent!r}; give a name, or None for a root.")
        known = parents.setdefault(child, [])
        if child in roots or parent in known or (parent is None and known):
            below = parent if parent is not None else known[0] if known else None
            if parent in known or below is None:
                where = f"twice below {parent!r}" if parent in known else "twice as a root"
            else:
                where = f"both as a root and below {below!r}"
            raise TaxonomyError(f"node {child!r} is listed {where}; keep one of the two rows.")
        if parent is None:
            roots.add(child)
        else:
            known.append(parent)
    for child, parent in ((child, parent) for child, above in parents.items() for parent in above):
        if parent not in parents:
            advice = "add one, with its parent or as a root"
            raise TaxonomyError(f"{parent!r}, the parent of {child!r}, has no row of its own; {advice}.")
    return parents


def parents_first(parents: Parents) -> list[str]:
    """Topological order: parents before children, otherwise in order of first mention."""
    rank = {name: position for position, name in enumerate(parents)}
    waiting_for = {name: len(above) for name, above in parents.items()}
    children: dict[str, list[str]] = {name: [] for name in parents}
    for name, above in parents.items():
        for parent in above:
            children[parent].append(name)
    ready = [(rank[name], name) for name, count in waiting_for.items() if count == 0]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        _, name = heapq.heappop(ready)
        order.append(name)
        for child in children[name]:
            waiting_for[child] -= 1
            if waiting_for[child] == 0:
                heapq.heappush(ready, (rank[child], child))
    if len(order) < len(parents):  # follow parents among the unplaced nodes until one repeats
        placed, seen = set(order), dict[str, int]()
        name = next(name for name in parents if name not in placed)
        while name not in seen:
            seen[name] = len(seen)
            name = next(parent for parent in parents[name] if parent not in placed)
        loop = [repr(each) for each in (*list(seen)[seen[name] :], name)]
        shown = " is below ".join(loop if len(loop) <= 8 else [*loop[:4], "…", *loop[-3:]])
        raise TaxonomyError(f"the taxonomy has a cycle: {shown}; drop one of these edges.")
    return order


def pack_parents(order: Sequence[str], parents: Parents) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Parents as offsets and node numbers in the given order."""
    position = {name: node for node, name in enumerate(order)}
    offsets = np.zeros(len(order) + 1, dtype=np.int64)
    np.cumsum([len(parents[name]) for name in order], out=offsets[1:])
    nodes = [position[parent] for name in order for parent in parents[name]]
    return offsets, np.asarray(nodes, dtype=np.int32)


def edges_of_paths(paths: Iterable[Sequence[str]], separator: str) -> tuple[list[tuple[str, str | None]], dict[str, str]]:
    """(child, parent) pairs and titles of every prefix of paths of titles; the name of a node is its joined path."""
    edges: dict[tuple[str, str | None], None] = {}
    titles: dict[str, str] = {}
    for path in paths:
        parent = None
        for title in path:
            name = title if parent is None else parent + separator + title
            edges.setdefault((name, parent))
            titles[name] = title
            parent = name
    return list(edges), titles


def free_separator(titles: Iterable[str]) -> str:
    """A separator that occurs in none of the titles, so that paths can be split again."""
    joined = "\n".join(titles)
    for separator in (" > ", "/", "::", " » ", "→"):
        if separator.strip() not in joined:
            return separator
    raise TaxonomyError("the titles use every known separator; list the nodes with their parents instead.")


def split_path(path: str, separator: str) -> list[str]:
    """The parts of a path, without outer spaces; refuses an empty part."""
    parts = [part.strip() for part in path.split(separator)] if separator else [path.strip()]
    bare = separator.strip()
    # splitting "a > > b" and "a >" at " > " leaves "> b" and "a >", parts with a bare separator
    leftover = bare != separator and any(f" {bare} " in f" {part} " for part in parts)
    if leftover or not all(parts):
        raise TaxonomyError(f"path {path!r} has an empty part beside a {separator!r}; give every part a name.")
    return parts


def children(parent_offsets: NDArray[np.int64], parent_nodes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The children of each node, in node order, from the parents."""
    n_nodes = len(parent_offsets) - 1
    child_of_edge = np.repeat(np.arange(n_nodes, dtype=np.int32), np.diff(parent_offsets))
    offsets = np.zeros(n_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(parent_nodes, minlength=n_nodes), out=offsets[1:])
    return offsets, child_of_edge[np.argsort(parent_nodes, kind="stable")]


def depths(parent_offsets: NDArray[np.int64], parent_nodes: NDArray[np.int32]) -> NDArray[np.int32]:
    """The length of the longest path from a root to each node."""
    depth = [0] * (len(parent_offsets) - 1)
    starts, parents = parent_offsets.tolist(), parent_nodes.tolist()
    # parents come first, so a forward sweep sees final depths
    for node in range(len(depth)):
        for parent in parents[starts[node] : starts[node + 1]]:
            depth[node] = max(depth[node], depth[parent] + 1)
    return np.asarray(depth, dtype=np.int32)


def nodes_by_title(titles: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The nodes with each title."""
    found: dict[str, list[int]] = {}
    for node, title in enumerate(titles):
        found.setdefault(title, []).append(node)
    return {title: tuple(nodes) for title, nodes in found.items()}


def descendants(start: int, child_offsets: NDArray[np.int64], child_nodes: NDArray[np.int32]) -> NDArray[np.int64]:
    """All nodes below a node, sorted; computed level by level."""
    is_found = np.zeros(len(child_offsets) - 1, dtype=bool)
    level = np.asarray([start])
    while len(level):
        starts, lengths = child_offsets[level], child_offsets[level + 1] - child_offsets[level]
        before = np.cumsum(lengths) - lengths
        level = np.unique(child_nodes[np.arange(lengths.sum()) + np.repeat(starts - before, lengths)])
        level = level[~is_found[level]]
        is_found[level] = True
    return np.flatnonzero(is_found)


def reachable(start: int, step: Callable[[int], NDArray[np.int64]]) -> NDArray[np.int64]:
    """All nodes reachable by repeated steps, sorted."""
    seen: set[int] = set()
    queue = [start]
    while queue:
        for node in step(queue.pop()).tolist():
            if node not in seen:
                seen.add(node)
                queue.append(node)
    return np.asarray(sorted(seen), dtype=np.int64)
