"""A taxonomy: a tree, forest or directed acyclic graph of named nodes, as frozen arrays; and label matrices over its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.arguments import as_numbers, check_kind, describe, entries
from ramify.errors import InputError, LabelError, TaxonomyError, suggest
from ramify.native import Pattern, close_upward, keep_most_general, keep_most_specific
from ramify.results import Result
from ramify.taxonomy.bounds import refuse_disproportion
from ramify.taxonomy.edges import (
    check_label,
    check_titles,
    labels_of,
    name_by_path,
    nodes_of_paths,
    parents_by_child,
    parents_first,
    split_paths,
    stripped,
)
from ramify.taxonomy.matrices import as_boolean_matrix

IntArray = NDArray[np.int64]
ARROW = " > "
NARROW = 16  # nodes of a level for which arrays take longer than a set; the levels of a chain have one
PATH_SEPARATORS = (ARROW, "/", ">", "::", "\\", " › ", " » ", " → ", "|", " - ", ".", "›", "»")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Taxonomy(Result):
    """Named nodes, parents before children; node order is the column order of all label and score matrices.

    names: unique. A taxonomy made from paths names each node by its whole path.
    parent_offsets, parent_nodes: the parents of node i are ``parent_nodes[parent_offsets[i]:parent_offsets[i + 1]]``.
    titles: display names; the last part of a path, or the preferred label of a SKOS concept.
    separator: between the titles of a path.
    main_parents: in a DAG, the parent of each node in its main-parent tree (:attr:`tree`), -1 for roots; None before they are
    chosen (:meth:`with_main_parents`), and of a tree.

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
    main_parents: IntArray | None = None
    child_offsets: IntArray = field(init=False)
    child_nodes: NDArray[np.int32] = field(init=False)
    depth: NDArray[np.int32] = field(init=False)
    is_leaf: NDArray[np.bool_] = field(init=False)
    _position: dict[str, int] = field(init=False)
    _nodes_by_title: dict[str, tuple[int, ...]] = field(init=False)
    _tree: Taxonomy | None = field(init=False)  # None of a tree

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
        if self.main_parents is not None:
            arrays["main_parents"] = np.array(self.main_parents, dtype=np.int64)
        for array in arrays.values():
            array.setflags(write=False)
        titles = tuple(self.titles) or self.names
        titled: dict[str, tuple[int, ...]] = {}
        repeated: dict[str, list[int]] = {}
        for node, title in enumerate(titles):
            if titled.setdefault(title, (node,)) != (node,):
                repeated.setdefault(title, [*titled[title]]).append(node)
        looked_up = {"titles": titles, "_position": {name: node for node, name in enumerate(self.names)}}
        titled.update((title, tuple(nodes)) for title, nodes in repeated.items())
        looked_up["_nodes_by_title"] = titled
        for name, value in {**arrays, **looked_up}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_tree", None if self.is_tree else self._main_parent_tree())

    def _main_parent_tree(self) -> Taxonomy:
        has_parent, main = np.diff(self.parent_offsets) > 0, self.main_parents
        parents: Any = self.parent_nodes[self.parent_offsets[:-1][has_parent]] if main is None else main[has_parent]
        return Taxonomy(self.names, np.append(0, np.cumsum(has_parent)), parents, self.titles, self.separator)

    # ---- constructors -------------------------------------------------------------------------------------------------

    @classmethod
    def from_edges(
        cls, edges: Iterable[tuple[str, str | None]], *, titles: dict[str, str] | None = None, separator: str = ARROW
    ) -> Taxonomy:
        """Make a taxonomy from (child, parent) pairs; a root has the pair ``(root, None)``.

        Nodes keep the order of their first pair, except that parents move before their children.
        """
        check_titles(titles, separator)
        parents = parents_by_child(edges)
        order = parents_first(parents)
        position = {name: node for node, name in enumerate(order)}
        offsets = np.zeros(len(order) + 1, dtype=np.int64)
        np.cumsum([len(parents[name]) for name in order], out=offsets[1:])
        nodes = np.asarray([position[parent] for name in order for parent in parents[name]], dtype=np.int32)
        shown = tuple((titles or {}).get(name, name) for name in order)
        made = cls(tuple(order), offsets, nodes, titles=shown, separator=separator)
        refuse_disproportion(made)
        return made

    @classmethod
    def from_paths(cls, paths: Iterable[str], separator: str = "/") -> Taxonomy:
        """Make a forest from paths such as ``food/fruit/apple``; a node's name is its whole path.

        >>> Taxonomy.from_paths(["food/fruit/apple"]).names
        ('food', 'food/fruit', 'food/fruit/apple')
        """
        return cls._from_parts(split_paths(paths, separator), separator)

    @classmethod
    def from_title_paths(cls, paths: Iterable[Sequence[str]]) -> Taxonomy:
        """Make a forest from paths given as sequences of titles, which may contain any separator."""
        listed = stripped(paths)
        together = "\n".join(title for path in listed for title in path)
        free = [separator for separator in (" > ", "/", "::", " » ", "→") if separator.strip() not in together]
        if not free:
            raise TaxonomyError("the titles use every known separator; list the nodes with their parents instead.")
        return cls._from_parts(listed, free[0])

    @classmethod
    def _from_parts(cls, paths: Iterable[Sequence[str]], separator: str) -> Taxonomy:
        """Make a forest whose nodes are the prefixes of paths; the name of a node is its joined path."""
        parents, titles = name_by_path(nodes_of_paths(paths), separator)
        return cls.from_edges(parents.items(), titles=titles, separator=separator or ARROW)

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
        return cls.from_edges([(name, None) for name in entries(names, "names", TaxonomyError)])

    @classmethod
    def from_state(cls, state: Any) -> Taxonomy:
        """Make a taxonomy from the plain values of :meth:`state`, which may come from a file."""
        if not isinstance(state, dict) or not isinstance(state.get("nodes"), list):
            raise TaxonomyError("expected an object with a list of 'nodes'.")
        edges: list[tuple[str, str | None]] = []
        titles: dict[str, str] = {}
        main: dict[str, str] = {}
        for node in state["nodes"]:
            if not isinstance(node, dict) or not isinstance(node.get("name"), str):
                raise TaxonomyError(f"each node needs a 'name' that is a string; found {str(node)[:80]!r}.")
            name, parents, title = node["name"], node.get("parents") or [], node.get("title", node["name"])
            if not isinstance(parents, list) or not isinstance(title, str):
                raise TaxonomyError(f"node {name!r} needs 'parents' as a list of names and 'title' as a string.")
            if name in titles:
                raise TaxonomyError(f"node {name!r} is listed twice; keep one of the two entries.")
            if "main_parent" in node:
                if node["main_parent"] not in parents:
                    found = f"node {name!r} has the main parent {str(node['main_parent'])[:80]!r}"
                    raise TaxonomyError(f"{found}, which is not one of its parents; give one of {str(parents)[1:-1]}.")
                main[name] = node["main_parent"]
            edges += [(name, parent) for parent in parents] or [(name, None)]
            titles[name] = title
        made = cls.from_edges(edges, titles=titles, separator=state.get("separator", ARROW))
        return made._placed_under(main) if main else made

    def state(self) -> dict[str, Any]:
        """The separator and the nodes as plain values, with titles only where they differ from names.

        A main parent that was chosen is stored where a node has several parents.
        """
        nodes = []
        for node, name in enumerate(self.names):
            entry: dict[str, Any] = {"name": name, "parents": [self.names[p] for p in self.parents_of(node)]}
            if self.main_parents is not None and len(entry["parents"]) > 1:
                entry["main_parent"] = self.names[self.main_parents[node]]
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
        """Whether names, titles, separator and parents are the same; main parents may differ."""
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
        return Taxonomy, (self.names, self.parent_offsets, self.parent_nodes, self.titles, self.separator, self.main_parents)

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
            "Drop an edge, or give Taxonomy.tree, the tree of main parents."
        )

    @property
    def tree(self) -> Taxonomy:
        """The taxonomy itself if it is a tree; otherwise the main-parent tree: the same nodes, each under one of its parents.

        Main parents are those listed first, unless others were chosen (:meth:`with_main_parents`).
        """
        return self if self._tree is None else self._tree

    def with_main_parents(self, counts: NDArray[Any]) -> Taxonomy:
        """The same DAG with a main parent for each node: the most specific one. counts: documents at or below each node.

        All documents of a node belong to all its parents, so its parents differ in the other documents that they have. The most
        specific parent has the fewest; of equal ones it is the deepest, then the one listed first. Main parents that were
        chosen before are kept; a tree has none to choose.

        >>> dag = Taxonomy.from_edges([("a", None), ("b", None), ("x", "a"), ("x", "b")])
        >>> dag.with_main_parents(np.array([5, 3, 2])).tree.path_of(2)
        ('b', 'x')
        """
        if self.is_tree or self.main_parents is not None:
            return self
        counts = as_numbers(counts, "counts", "give the number of documents at or below each node", (len(self),))
        child, above = np.repeat(np.arange(len(self)), np.diff(self.parent_offsets)), self.parent_nodes
        order = np.lexsort((-self.depth[above], counts[above], child))
        main, has_parent = np.full(len(self), -1, dtype=np.int64), np.diff(self.parent_offsets) > 0
        main[has_parent] = above[order[self.parent_offsets[:-1][has_parent]]]
        return replace(self, main_parents=main)

    def with_main_parents_of(self, known: Taxonomy) -> Taxonomy:
        """The same DAG with the main parents of another one; nodes that are new keep the one listed first."""
        check_taxonomy(known)
        found = enumerate(known.tree.parent.tolist())
        return self._placed_under({known.names[node]: known.names[parent] for node, parent in found if parent >= 0})

    def _placed_under(self, main: dict[str, str]) -> Taxonomy:
        """The same DAG with some main parents by name, where these are parents."""
        if self.is_tree:
            return self
        made = np.array(self.tree.parent)
        for node in np.flatnonzero(np.diff(self.parent_offsets) > 1).tolist():
            parent = self._position.get(main.get(self.names[node], ""), -1)
            made[node] = parent if parent in self.parents_of(node) else made[node]
        return replace(self, main_parents=made)

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
        is_found, offsets, children = np.zeros(len(self), dtype=bool), self.child_offsets, self.child_nodes
        level: Any = [node]
        while len(level):
            if len(level) < NARROW:
                below = {child for each in level for child in children[offsets[each] : offsets[each + 1]].tolist()}
                level = [child for child in below if not is_found[child]]
            else:
                nodes = np.asarray(level)
                starts, lengths = offsets[nodes], offsets[nodes + 1] - offsets[nodes]
                before = np.cumsum(lengths) - lengths
                level = np.unique(children[np.arange(lengths.sum()) + np.repeat(starts - before, lengths)])
                level = level[~is_found[level]]
            is_found[level] = True
        return np.flatnonzero(is_found)

    def path_of(self, node: int) -> tuple[str, ...]:
        """Titles from a root down to the node; in a DAG, along main parents."""
        return tuple(self.titles[each] for each in self.nodes_to(node))

    def nodes_to(self, node: int) -> list[int]:
        """The nodes from a root down to the node; in a DAG, along main parents."""
        self._refuse_outside(node)
        nodes, tree = [node], self.tree
        while (start := tree.parent_offsets[nodes[-1]]) < tree.parent_offsets[nodes[-1] + 1]:
            nodes.append(int(tree.parent_nodes[start]))
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
        known = suggest(label, (*self.names[:20_000], *self.titles[:20_000]))
        raise LabelError(f"label {label!r} is not in the taxonomy of {len(self)} nodes.{known}")

    def encode(self, labels: Iterable[str | Iterable[str] | None]) -> csr_array:
        """Label sets of documents as a boolean CSR matrix over nodes, closed upward.

        A document's labels are one label, any number of them, or None; each is a name, path or title that :meth:`index` finds.
        """
        known: dict[str, int] = {}
        offsets, nodes = [0], []
        for document, given in enumerate(entries(labels, "labels", LabelError), 1):
            for label in labels_of(given):
                if not isinstance(label, str):
                    raise LabelError(f"document {document} has label {describe(label)}; labels are names or paths, as strings.")
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
        check_label(title)
        return self._nodes_by_title.get(title, ())

    def _refuse_outside(self, node: int) -> None:
        try:
            is_node = 0 <= index(node) < len(self.names)
        except TypeError:
            raise InputError(f"a node is {describe(node)}; give its number, such as Taxonomy.index(name).") from None
        if not is_node:
            raise InputError(f"node {node} is not one of the {len(self)} nodes, numbered from 0; -1 means no parent.")

    def _find(self, label: str) -> tuple[int, ...]:
        """The nodes with this name, else this title, else this path."""
        check_label(label)
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
    check_taxonomy(taxonomy)
    matrix = as_boolean_matrix(Y, "a label matrix", "nodes")
    if matrix.shape[1] != len(taxonomy):
        raise InputError(f"the label matrix has {matrix.shape[1]} columns, but the taxonomy has {len(taxonomy)} nodes.")
    return matrix


def check_taxonomy(taxonomy: Any) -> None:
    """Refuse what is not a taxonomy."""
    check_kind(taxonomy, Taxonomy, "taxonomy", "a ramify.Taxonomy")


def ancestor_matrix(taxonomy: Taxonomy) -> csr_array:
    """nodes × nodes: row i holds node i and all its ancestors."""
    return _apply(close_upward, np.arange(len(taxonomy) + 1), np.arange(len(taxonomy), dtype=np.int32), taxonomy)


def _apply(kernel: Callable[..., Any], offsets: NDArray[Any], nodes: NDArray[Any], taxonomy: Taxonomy) -> csr_array:
    n_nodes = len(taxonomy)
    parents = Pattern(taxonomy.parent_offsets, taxonomy.parent_nodes, n_nodes)
    ends, found = kernel(Pattern(offsets.astype(np.int64), nodes.astype(np.int32), n_nodes), parents)
    return csr_array((np.ones(len(found), dtype=bool), found, ends), shape=(len(ends) - 1, n_nodes))
