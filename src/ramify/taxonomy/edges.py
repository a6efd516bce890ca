"""Edges and paths as users give them: checks, and an order of the nodes in which parents come first."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from ramify.errors import TaxonomyError


def parents_by_child(edges: Iterable[tuple[str, str | None]]) -> dict[str, list[str]]:
    """The parents of each node, in order of first mention as a child; refuses invalid edges."""
    parents: dict[str, list[str]] = {}
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
            missing = f"{parent!r}, the parent of {child!r}, has no row of its own"
            raise TaxonomyError(f"{missing}; add one, with its parent or as a root.")
    return parents


def parents_first(parents: dict[str, list[str]]) -> list[str]:
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


def split_path(path: str, separator: str) -> list[str]:
    """The parts of a path, without outer spaces; refuses an empty part."""
    parts = [part.strip() for part in path.split(separator)] if separator else [path.strip()]
    bare = separator.strip()
    # splitting "a > > b" and "a >" at " > " leaves "> b" and "a >", parts with a bare separator
    leftover = bare != separator and any(f" {bare} " in f" {part} " for part in parts)
    if leftover or not all(parts):
        raise TaxonomyError(f"path {path!r} has an empty part beside a {separator!r}; give every part a name.")
    return parts
