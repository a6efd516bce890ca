"""Edges, paths and labels as users give them: checks, and an order of the nodes in which parents come first."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ramify.arguments import describe, entries, is_valid_text, pairs
from ramify.errors import LabelError, TaxonomyError

MOST_CHARACTERS, USUAL_LENGTH = 1 << 26, 1000  # of the names of all nodes that are named by their paths, and of one


def parents_by_child(edges: Iterable[tuple[str, str | None]]) -> dict[str, list[str]]:
    """The parents of each node, in order of first mention as a child; refuses invalid edges."""
    parents: dict[str, list[str]] = {}
    roots: set[str] = set()
    for child, parent in pairs(edges, "edges", "(child, parent), or (root, None)", TaxonomyError):
        if isinstance(child, str) and not is_valid_text(child):
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
    if _are_parents_first(parents):
        return list(parents)
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


def _are_parents_first(parents: dict[str, list[str]]) -> bool:
    """Whether the nodes are in such an order, as most files have them."""
    before: set[str] = set()
    for name, above in parents.items():
        if not before.issuperset(above):
            return False
        before.add(name)
    return True


def check_titles(titles: Mapping[str, str] | None, separator: str) -> None:
    """Refuse titles and a separator of which no path can be made."""
    if not isinstance(separator, str) or not separator:
        raise TaxonomyError(f"the separator is {describe(separator)}; give a non-empty string.")
    if titles is not None and not isinstance(titles, Mapping):
        raise TaxonomyError(f"titles is {describe(titles)}; give a mapping from names to titles.")
    for text in (separator, *(titles or {}).values()):
        _check_title(text)


def _check_title(title: str) -> None:
    if not isinstance(title, str):
        raise TaxonomyError(f"a title is {describe(title)}; give every title as a string.")
    if not is_valid_text(title):
        raise TaxonomyError(f"{describe(title)} contains a lone surrogate, which is not valid text; fix it.")


def stripped(paths: Iterable[Sequence[str]]) -> list[list[str]]:
    """Paths given as sequences of titles, without outer spaces."""
    listed = [list(entries(path, "titles", TaxonomyError)) for path in entries(paths, "paths", TaxonomyError)]
    for title in (title for path in listed for title in path):
        _check_title(title)
    return [[title.strip() for title in path] for path in listed]


def split_paths(paths: Iterable[str], separator: str) -> Iterable[list[str]]:
    """The parts of every path."""
    if not isinstance(separator, str):
        raise TaxonomyError(f"the separator is {describe(separator)}; give a string.")
    return (split_path(path, separator) for path in entries(paths, "paths", TaxonomyError))


def split_path(path: str, separator: str) -> list[str]:
    """The parts of a path, without outer spaces; refuses an empty part."""
    if not isinstance(path, str):
        raise TaxonomyError(f"a path is {describe(path)}; give every path as a string, such as 'food/fruit'.")
    parts = [part.strip() for part in path.split(separator)] if separator else [path.strip()]
    bare = separator.strip()
    # splitting "a > > b" and "a >" at " > " leaves "> b" and "a >", parts with a bare separator
    leftover = bare != separator and any(f" {bare} " in f" {part} " for part in parts)
    if leftover or not all(parts):
        raise TaxonomyError(f"path {path!r} has an empty part beside a {separator!r}; give every part a name.")
    return parts


def nodes_of_paths(paths: Iterable[Sequence[str]]) -> Iterator[tuple[int, str]]:
    """The prefixes of paths, each once: the position of the parent among them, -1 of a root, and the title.

    >>> list(nodes_of_paths([["food", "fruit"], ["food", "bread"]]))
    [(-1, 'food'), (0, 'fruit'), (0, 'bread')]
    """
    position: dict[tuple[int, str], int] = {}
    for path in paths:
        node = -1
        for title in path:
            parent, node = node, position.get((node, title), -1)
            if node < 0:
                node = position[parent, title] = len(position)
                yield parent, title


def name_by_path(nodes: Iterable[tuple[int, str]], separator: str) -> tuple[dict[str, str | None], dict[str, str]]:
    """The parents and the titles of nodes whose names are their paths.

    nodes: the position of the parent, -1 of a root, and the title of each; parents come first.

    >>> name_by_path([(-1, "food"), (0, "fruit")], "/")
    ({'food': None, 'food/fruit': 'food'}, {'food': 'food', 'food/fruit': 'fruit'})
    """
    names: list[str] = []
    parents: dict[str, str | None] = {}
    titles: dict[str, str] = {}
    n_characters = 0
    for parent, title in nodes:
        above = None if parent < 0 else names[parent]
        name = title if above is None else above + separator + title
        if name in parents:
            raise TaxonomyError(f"{name!r} is listed twice; keep one of the two entries.")
        n_characters += len(name)
        if MOST_CHARACTERS < n_characters > USUAL_LENGTH * (len(names) + 1):
            raise TaxonomyError("the paths are too long; give the taxonomy as a table of nodes and their parents.")
        names.append(name)
        parents[name], titles[name] = above, title
    return parents, titles


def free_separator(titles: Iterable[str]) -> str:
    """A separator that no title contains."""
    together = "\n".join(titles)
    for separator in (" > ", "/", "::", " » ", "→"):
        if separator.strip() not in together:
            return separator
    raise TaxonomyError("the titles use every known separator; list the nodes with their parents instead.")


def labels_of(given: Any) -> list[Any]:
    """The labels of one document, which has one, any number of them, or None."""
    if isinstance(given, (str, bytes, int)):
        return [given]
    try:
        return [] if given is None else list(given)
    except TypeError:
        return [given]


def check_label(label: Any) -> None:
    """Refuse a label that is not a string."""
    if not isinstance(label, str):
        raise LabelError(f"a label is {describe(label)}; labels are names or paths, as strings.")
