"""A taxonomy: a tree, forest or directed acyclic graph of named nodes, as frozen arrays; and label matrices over its nodes."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ramify.errors import InputError, LabelError, TaxonomyError, suggest
from ramify.native import Pattern, close_upward, keep_most_general, keep_most_specific

IntArray = NDArray[np.int64]
ARROW = " > "
PATH_SEPARATORS = (ARROW, "/", ">", "::", "\\")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Taxonomy:
    """Named nodes, parents before children; node order is the column order of all label and score matrices.

    names: unique. A taxonomy made from paths names each node by its whole path.
    parent_offsets, parent_nodes: the parents of node i are ``parent_nodes[parent_offsets[i]:parent_offsets[i + 1]]``.
    titles: display names; the last part of a path, or the preferred label of a SKOS concept.
    separator: between the titles of a path.

    >>> fruit = Taxonomy.from_edges([("apple", "fruit"), ("pear", "fruit"), ("fruit", None)])
    >>> fruit.names
    ('fruit', 'apple', 'pear')
    >>> fruit.decode(fruit.encode([["apple"], []]))
    [['apple'], []]
    """

    names: tuple[str, ...]
    parent_offsets: IntArray
    parent_nodes: NDArray[np.int32]
    titles: tuple[str, ...] = ()
    separator: str = ARROW
    child_offsets: IntArray = field(init=False)
    child_nodes: NDArray[np.int32] = field(init=False)
    depth: NDArray[np.int32] = field(init=False)
    is_leaf: NDArray[np.bool_] = field(init=False)
    _position: dict[str, int] = field(init=False)
    _nodes_by_title: dict[str, tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        offsets, parents = np.array(self.parent_offsets, dtype=np.int64), np.array(self.parent_nodes, dtype=np.int32)
        n_nodes = len(offsets) - 1
        child_of_edge = np.repeat(np.arange(n_nodes, dtype=np.int32), np.diff(offsets))
        child_offsets = np.zeros(n_nodes + 1, dtype=np.int64)
        np.cumsum(np.bincount(parents, minlength=n_nodes), out=child_offsets[1:])
        depth, starts, above = [0] * n_nodes, offsets.tolist(), parents.tolist()
        for node in range(n_nodes):  # parents come first, so a forward sweep sees final depths
            for parent in above[starts[node] : starts[node + 1]]:
                depth[node] = max(depth[node], depth[parent] + 1)
        arrays: dict[str, NDArray[Any]] = {"parent_offsets": offsets, "parent_nodes": parents, "child_offsets": child_offsets}
        arrays["child_nodes"] = child_of_edge[np.argsort(parents, kind="stable")]
        arrays |= {"depth": np.asarray(depth, dtype=np.int32), "is_leaf": np.diff(child_offsets) == 0}
        for array in arrays.values():
            array.setflags(write=False)
        titles = tuple(self.titles) or self.names
        titled: dict[str, list[int]] = {}
        for node, title in enumerate(titles):
            titled.setdefault(title, []).append(node)
        looked_up = {"titles": titles, "_position": {name: node for node, name in enumerate(self.names)}}
        looked_up["_nodes_by_title"] = {title: tuple(nodes) for title, nodes in titled.items()}
        for name, value in {**arrays, **looked_up}.items():
            object.__setattr__(self, name, value)

    # ---- constructors -------------------------------------------------------------------------------------------------

    @classmethod
    def from_edges(
        cls, edges: Iterable[tuple[str, str | None]], *, titles: dict[str, str] | None = None, separator: str = ARROW
    ) -> Taxonomy:
        """Make a taxonomy from (child, parent) pairs; a root has the pair ``(root, None)``.

        Nodes keep the order of their first pair, except that parents move before their children.
        """
        parents = _parents_by_child(edges)
        order = _parents_first(parents)
        position = {name: node for node, name in enumerate(order)}
        offsets = np.zeros(len(order) + 1, dtype=np.int64)
        np.cumsum([len(parents[name]) for name in order], out=offsets[1:])
        nodes = np.asarray([position[parent] for name in order for parent in parents[name]], dtype=np.int32)
        shown = tuple((titles or {}).get(name, name) for name in order)
        return cls(tuple(order), offsets, nodes, titles=shown, separator=separator)

    @classmethod
    def from_paths(cls, paths: Iterable[str], separator: str = "/") -> Taxonomy:
        """Make a forest from paths such as ``food/fruit/apple``; a node's name is its whole path.

        >>> Taxonomy.from_paths(["food/fruit/apple"]).names
        ('food', 'food/fruit', 'food/fruit/apple')
        """
        return cls._from_parts((_split_path(path, separator) for path in paths), separator)

    @classmethod
    def from_title_paths(cls, paths: Iterable[Sequence[str]]) -> Taxonomy:
        """Make a forest from paths given as sequences of titles, which may contain any separator."""
        listed = [[title.strip() for title in path] for path in paths]
        together = "\n".join(title for path in listed for title in path)
        free = [separator for separator in (" > ", "/", "::", " » ", "→") if separator.strip() not in together]
        if not free:
            raise TaxonomyError("the titles use every known separator; list the nodes with their parents instead.")
        return cls._from_parts(listed, free[0])

    @classmethod
    def _from_parts(cls, paths: Iterable[Sequence[str]], separator: str) -> Taxonomy:
        """Make a forest whose nodes are the prefixes of paths; the name of a node is its joined path."""
        edges: dict[tuple[str, str | None], None] = {}
        titles: dict[str, str] = {}
        for path in paths:
            parent = None
            for title in path:
                name = title if parent is None else parent + separator + title
                edges[name, parent], titles[name] = None, title
                parent = name
        return cls.from_edges(edges, titles=titles, separator=separator or ARROW)

    @classmethod
    def from_networkx(cls, graph: Any) -> Taxonomy:
        """Make a taxonomy from a networkx ``DiGraph`` whose edges go from parent to child; uses the attribute ``title``."""
        try:
            is_directed = graph.is_directed()
        except AttributeError:  # not a networkx graph
            is_directed = False
        if not is_directed:
            raise TaxonomyError("a taxonomy needs a directed networkx graph, with edges from parent to child.")
        edges: list[tuple[str, str | None]] = []
        for node in graph.nodes:
            edges += [(str(node), str(parent)) for parent in graph.predecessors(node)] or [(str(node), None)]
        titles = {str(node): str(title) for node, title in graph.nodes(data="title") if title is not None}
        return cls.from_edges(edges, titles=titles)

    @classmethod
    def flat(cls, names: Iterable[str]) -> Taxonomy:
        """Make a flat taxonomy: a forest of single nodes."""
        return cls.from_edges([(name, None) for name in names])

    @classmethod
    def from_state(cls, state: Any) -> Taxonomy:
        """Make a taxonomy from the plain values of :meth:`state`, which may come from a file."""
        if not isinstance(state, dict) or not isinstance(state.get("nodes"), list):
            raise TaxonomyError("expected an object with a list of 'nodes'.")
        edges: list[tuple[str, str | None]] = []
        titles: dict[str, str] = {}
        for node in state["nodes"]:
            if not isinstance(node, dict) or not isinstance(node.get("name"), str):
                raise TaxonomyError(f"each node needs a 'name' that is a string; found {str(node)[:80]!r}.")
            name, parents, title = node["name"], node.get("parents") or [], node.get("title", node["name"])
            if not isinstance(parents, list) or not isinstance(title, str):
                raise TaxonomyError(f"node {name!r} needs 'parents' as a list of names and 'title' as a string.")
            if name in titles:
                raise TaxonomyError(f"node {name!r} is listed twice; keep one of the two entries.")
            edges += [(name, parent) for parent in parents] or [(name, None)]
            titles[name] = title
        separator = state.get("separator", ARROW)
        if not isinstance(separator, str) or not separator:
            raise TaxonomyError(f"the separator is {separator!r}; give a non-empty string.")
        return cls.from_edges(edges, titles=titles, separator=separator)

    def state(self) -> dict[str, Any]:
        """The separator and the nodes as plain values, with titles only where they differ from names."""
        nodes = []
        for node, name in enumerate(self.names):
            entry: dict[str, Any] = {"name": name, "parents": [self.names[p] for p in self.parents_of(node)]}
            nodes.append(entry if self.titles[node] == name else {**entry, "title": self.titles[node]})
        return {"separator": self.separator, "nodes": nodes}

    # ---- structure ---------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, label: object) -> bool:
        return isinstance(label, str) and len(self._find(label)) == 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        ours, theirs = (self.names, self.titles, self.separator), (other.names, other.titles, other.separator)
        has_same_parents = np.array_equal(self.parent_offsets, other.parent_offsets)
        return ours == theirs and has_same_parents and np.array_equal(self.parent_nodes, other.parent_nodes)

    def __hash__(self) -> int:
        return hash((self.names, self.parent_nodes.tobytes()))

    def __repr__(self) -> str:
        kind = "tree or forest" if self.is_tree else "DAG"
        return f"<Taxonomy: {kind}, {len(self)} nodes, {int(self.is_leaf.sum())} leaves, {self.n_levels} levels>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Taxonomy, (self.names, self.parent_offsets, self.parent_nodes, self.titles, self.separator)

    def __copy__(self) -> Taxonomy:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Taxonomy:
        return self  # frozen, so no copy is needed

    @property
    def n_levels(self) -> int:
        """The number of levels: the greatest depth plus one, 0 without nodes."""
        return int(self.depth.max()) + 1 if len(self) else 0

    @property
    def roots(self) -> IntArray:
        """The nodes without a parent."""
        return np.flatnonzero(np.diff(self.parent_offsets) == 0)

    @property
    def is_tree(self) -> bool:
        """Whether no node has more than one parent (a forest counts as a tree)."""
        return bool(np.all(np.diff(self.parent_offsets) <= 1))

    @property
    def parent(self) -> IntArray:
        """The parent of each node, -1 for roots; only for a tree or forest."""
        self.require_tree("Taxonomy.parent")
        parent = np.full(len(self), -1, dtype=np.int64)
        parent[np.diff(self.parent_offsets) == 1] = self.parent_nodes
        return parent

    def require_tree(self, what: str) -> None:
        """Refuse a DAG where a tree is needed. what: needs the tree."""
        if self.is_tree:
            return
        node = int(np.argmax(np.diff(self.parent_offsets) > 1))
        first, second = (self.names[p] for p in self.parents_of(node)[:2])
        raise TaxonomyError(
            f"node {self.names[node]!r} has two parents, {first!r} and {second!r}; {what} needs a tree. "
            "Drop an edge, or use a system that accepts a DAG."
        )

    def parents_of(self, node: int) -> IntArray:
        """The direct parents of a node."""
        self._refuse_outside(node)
        return self.parent_nodes[self.parent_offsets[node] : self.parent_offsets[node + 1]].astype(np.int64)

    def children_of(self, node: int) -> IntArray:
        """The direct children of a node."""
        self._refuse_outside(node)
        return self.child_nodes[self.child_offsets[node] : self.child_offsets[node + 1]].astype(np.int64)

    def ancestors_of(self, node: int) -> IntArray:
        """All nodes above a node, in node order (roots first), without the node itself."""
        found: set[int] = set()
        waiting = [node]
        while waiting:
            new = set(self.parents_of(waiting.pop()).tolist()) - found
            found |= new
            waiting += new
        return np.asarray(sorted(found), dtype=np.int64)

    def descendants_of(self, node: int) -> IntArray:
        """All nodes below a node, in node order, without the node itself."""
        self._refuse_outside(node)
        is_found = np.zeros(len(self), dtype=bool)
        level = np.asarray([node])
        while len(level):
            starts, lengths = self.child_offsets[level], self.child_offsets[level + 1] - self.child_offsets[level]
            before = np.cumsum(lengths) - lengths
            level = np.unique(self.child_nodes[np.arange(lengths.sum()) + np.repeat(starts - before, lengths)])
            level = level[~is_found[level]]
            is_found[level] = True
        return np.flatnonzero(is_found)

    def path_of(self, node: int) -> tuple[str, ...]:
        """Titles from a root down to the node; in a DAG, along first parents."""
        return tuple(self.titles[each] for each in self.nodes_to(node))

    def nodes_to(self, node: int) -> list[int]:
        """The nodes from a root down to the node; in a DAG, along first parents."""
        nodes = [node]
        while (start := self.parent_offsets[nodes[-1]]) < self.parent_offsets[nodes[-1] + 1]:
            nodes.append(int(self.parent_nodes[start]))
        return nodes[::-1]

    def show(self, node: int) -> str:
        """The path of a node as one line of text."""
        return self.separator.join(self.path_of(node))

    # ---- labels -----------------------------------------------------------------------------------------------------

    def index(self, label: str) -> int:
        """The position of a node, found by its name, its path, or its title if it is unique."""
        found = self._find(label)
        if len(found) == 1:
            return found[0]
        if found:
            example = self.show(found[0])
            raise LabelError(f"more than one node has the title {label!r}; give the whole path, for example {example!r}.")
        known = suggest(label, self.names[:20_000])
        raise LabelError(f"label {label!r} is not in the taxonomy of {len(self)} nodes.{known}")

    def encode(self, labels: Iterable[str | Iterable[str] | None]) -> csr_array:
        """Label sets of documents as a boolean CSR matrix over nodes, closed upward.

        A document's labels are one label, any number of them, or None; each is a name, path or title that :meth:`index` finds.
        """
        known: dict[str, int] = {}
        offsets, nodes = [0], []
        for document, given in enumerate(labels, 1):
            listed = () if given is None else given if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
            for label in listed:
                if not isinstance(label, str):
                    raise LabelError(f"document {document} has label {label!r}; labels are names or paths, as strings.")
                if label not in known:
                    try:
                        known[label] = self.index(label)
                    except LabelError as error:
                        raise LabelError(f"document {document}: {error}") from None
                nodes.append(known[label])
            offsets.append(len(nodes))
        return _apply(close_upward, np.asarray(offsets), np.asarray(nodes, dtype=np.int32), self)

    def decode(self, Y: Any) -> list[list[str]]:
        """The most specific names of each row of a label matrix."""
        own = most_specific(Y, self)
        nodes, ends = own.indices.tolist(), own.indptr.tolist()
        return [[self.names[node] for node in nodes[a:b]] for a, b in pairwise(ends)]

    def has_node(self, label: str) -> bool:
        """Whether at least one node has this name, title or path."""
        return len(self._find(label)) > 0

    def nodes_titled(self, title: str) -> tuple[int, ...]:
        """The nodes with this title."""
        return self._nodes_by_title.get(title, ())

    def _refuse_outside(self, node: int) -> None:
        if not 0 <= node < len(self.names):
            raise InputError(f"node {node} is not one of the {len(self)} nodes, numbered from 0; -1 means no parent.")

    def _find(self, label: str) -> tuple[int, ...]:
        """The nodes with this name, else this title, else this path."""
        if label in self._position:
            return (self._position[label],)
        if titled := self._nodes_by_title.get(label):
            return titled
        for separator in dict.fromkeys((self.separator, *PATH_SEPARATORS)):
            *above, last = [part.strip() for part in label.split(separator)] if separator else [label]
            named = (self._position[last],) if above and last in self._position else ()
            ends = dict.fromkeys((*named, *self._nodes_by_title.get(last, ()))) if above else ()
            found = tuple(node for node in ends if self._has_path(node, above))
            if found:
                return found
        return ()

    def _has_path(self, node: int, parts: Sequence[str]) -> bool:
        """Whether `parts` is a path from a root to a parent of the node."""
        level = {node}
        for part in reversed(parts):
            above = {p for each in level for p in self.parents_of(each).tolist()}
            level = {p for p in above if part in (self.titles[p], self.names[p])}
        return any(len(self.parents_of(top)) == 0 for top in level)


# ---- label matrices ------------------------------------------------------------------------------------------------------


def expand_to_ancestors(Y: Any, taxonomy: Taxonomy) -> csr_array:
    """Y with all ancestors of its labels added."""
    Y = as_label_matrix(Y, taxonomy)
    return _apply(close_upward, Y.indptr, Y.indices, taxonomy)


def most_specific(Y: Any, taxonomy: Taxonomy) -> csr_array:
    """The nodes of each row that have no child in the row, after closing the row upward."""
    Y = expand_to_ancestors(Y, taxonomy)
    return _apply(keep_most_specific, Y.indptr, Y.indices, taxonomy)


def most_general(Y: Any, taxonomy: Taxonomy) -> csr_array:
    """The nodes of each row that have no parent in the row; nothing is added."""
    Y = as_label_matrix(Y, taxonomy)
    return _apply(keep_most_general, Y.indptr, Y.indices, taxonomy)


def as_label_matrix(Y: Any, taxonomy: Taxonomy) -> csr_array:
    """Any 0/1 matrix over the taxonomy's nodes as boolean CSR with sorted columns; nothing is added."""
    if not issparse(Y):
        Y = np.asarray(Y)
        if Y.ndim != 2:
            raise InputError(f"a label matrix has documents as rows and nodes as columns, not {Y.ndim} dimensions.")
    if Y.shape[1] != len(taxonomy):
        raise InputError(f"the label matrix has {Y.shape[1]} columns, but the taxonomy has {len(taxonomy)} nodes.")
    if isinstance(Y, csr_array) and Y.dtype == bool and Y.has_canonical_format and Y.data.all():
        return Y
    matrix = csr_array(Y).astype(bool)
    matrix.eliminate_zeros()
    matrix.sum_duplicates()
    return matrix


def ancestor_matrix(taxonomy: Taxonomy) -> csr_array:
    """nodes × nodes: row i holds node i and all its ancestors."""
    return _apply(close_upward, np.arange(len(taxonomy) + 1), np.arange(len(taxonomy), dtype=np.int32), taxonomy)


def _apply(kernel: Callable[..., Any], offsets: NDArray[Any], nodes: NDArray[Any], taxonomy: Taxonomy) -> csr_array:
    n_nodes = len(taxonomy)
    parents = Pattern(taxonomy.parent_offsets, taxonomy.parent_nodes, n_nodes)
    ends, found = kernel(Pattern(offsets.astype(np.int64), nodes.astype(np.int32), n_nodes), parents)
    return csr_array((np.ones(len(found), dtype=bool), found, ends), shape=(len(ends) - 1, n_nodes))


# ---- edges and paths -----------------------------------------------------------------------------------------------------


def _parents_by_child(edges: Iterable[tuple[str, str | None]]) -> dict[str, list[str]]:
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


def _parents_first(parents: dict[str, list[str]]) -> list[str]:
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


def _split_path(path: str, separator: str) -> list[str]:
    """The parts of a path, without outer spaces; refuses an empty part."""
    parts = [part.strip() for part in path.split(separator)] if separator else [path.strip()]
    bare = separator.strip()
    # splitting "a > > b" and "a >" at " > " leaves "> b" and "a >", parts with a bare separator
    leftover = bare != separator and any(f" {bare} " in f" {part} " for part in parts)
    if leftover or not all(parts):
        raise TaxonomyError(f"path {path!r} has an empty part beside a {separator!r}; give every part a name.")
    return parts
