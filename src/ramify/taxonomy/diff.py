"""Differences between two versions of a taxonomy, and where the documents of each old node go.

    renamed   same node, new title            added     node that did not exist
    moved     same node, new parents          retired   node that no longer exists
    merged    several nodes became one        split     one node became several

Nodes of the same name are the same. A name that is a whole path changes with every node above it, so nodes named by their paths
are matched by path, and then by context, as far as the match is unambiguous:

    renamed   same parent, another title, the same titles of children, and no second node like it
    moved     another parent, the same title and mostly the same children; for a leaf, a title that no second node has
    below     the same title, under a matched parent

Other nodes stay unmatched. Two taxonomies cannot show merging and splitting: a table of reassignments does. A change lists the
topmost node only, with the number of nodes below that changed with it. A retired node is unassigned until a reassignment says
where its documents go.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.errors import LabelError, TaxonomyError
from ramify.taxonomy.hierarchy import Taxonomy

UNMATCHED = -1
Key = Callable[[Taxonomy, int, bool], Hashable | None]  # (taxonomy, node, is_old); None if the node has no key


def match_nodes(old: Taxonomy, new: Taxonomy) -> NDArray[np.int64]:
    """The new node that equals each old node, -1 where there is none.

    >>> old, new = Taxonomy.from_paths(["a/x", "a/y", "b/z"]), Taxonomy.from_paths(["a/x", "b/y", "b/z"])
    >>> [new.names[node] for node in match_nodes(old, new)]
    ['a', 'a/x', 'b/y', 'b', 'b/z']
    """
    if not (is_named_by_paths(old) and is_named_by_paths(new)):
        position = {name: node for node, name in enumerate(new.names)}
        return np.asarray([position.get(name, UNMATCHED) for name in old.names], dtype=np.int64)
    matching = _Matching(old, new)
    matching.run()
    return matching.successor


def is_named_by_paths(taxonomy: Taxonomy) -> bool:
    """Whether every node's name is its whole path, as in taxonomies made from paths; true of a flat list of names."""
    if not taxonomy.is_tree:
        return False
    above = [f"{taxonomy.names[parent]}{taxonomy.separator}" if parent >= 0 else "" for parent in taxonomy.parent.tolist()]
    parts = zip(taxonomy.names, above, taxonomy.titles, strict=True)
    return all(name == before + title for name, before, title in parts)


class _Matching:
    """Match the nodes of two taxonomies that are named by their paths."""

    def __init__(self, old: Taxonomy, new: Taxonomy) -> None:
        self.old, self.new = old, new
        self.successor = np.full(len(old), UNMATCHED, dtype=np.int64)
        self.predecessor = np.full(len(new), UNMATCHED, dtype=np.int64)
        self.parent = {id(old): old.parent, id(new): new.parent}  # the property computes it on every access

    def run(self) -> None:
        """Match by path, then by context until no unambiguous match is left."""
        by_path = {self.new.path_of(node): node for node in range(len(self.new))}
        for node in range(len(self.old)):
            if (same := by_path.get(self.old.path_of(node))) is not None:
                self._take(node, same)
        while self._match_by(self._context) or self._match_by(self._subtree) or self._match_by(self._unique_title):
            self._match_children()

    def _take(self, node: int, same: int) -> None:
        self.successor[node], self.predecessor[same] = same, node

    def _match_children(self) -> None:
        """Match children of matched nodes by title; parents come first, so one sweep is enough."""
        for node in np.flatnonzero(self.successor < 0).tolist():
            parent = int(self.parent[id(self.old)][node])
            if parent < 0 or self.successor[parent] < 0:
                continue
            for child in self.new.children_of(int(self.successor[parent])).tolist():
                if self.predecessor[child] < 0 and self.new.titles[child] == self.old.titles[node]:
                    self._take(node, child)

    def _match_by(self, key: Key) -> bool:
        """Match nodes whose key is unique on both sides; return whether there were any."""
        ours, theirs = self._by_key(self.old, self.successor, key, True), self._by_key(self.new, self.predecessor, key, False)
        found = [(nodes[0], theirs[it][0]) for it, nodes in ours.items() if len(nodes) == len(theirs.get(it, ())) == 1]
        certain = [(node, same) for node, same in found if self._fits(node, same)]
        for node, same in certain:
            if self.successor[node] < 0 and self.predecessor[same] < 0:
                self._take(node, same)
        return bool(certain)

    def _by_key(self, taxonomy: Taxonomy, matched: NDArray[np.int64], key: Key, is_old: bool) -> dict[Hashable, list[int]]:
        found: dict[Hashable, list[int]] = defaultdict(list)
        for node in np.flatnonzero(matched < 0).tolist():
            if (it := key(taxonomy, node, is_old)) is not None:
                found[it].append(node)
        return found

    def _context(self, taxonomy: Taxonomy, node: int, is_old: bool) -> Hashable | None:
        """The parent, as a node of the new taxonomy, and the titles of the children; inner nodes only."""
        parent = int(self.parent[id(taxonomy)][node])
        above = int(self.successor[parent]) if is_old and parent >= 0 else parent
        is_certain = not taxonomy.is_leaf[node] and (parent < 0 or above >= 0)
        return (above, _titles_below(taxonomy, node)) if is_certain else None

    def _subtree(self, taxonomy: Taxonomy, node: int, is_old: bool) -> Hashable | None:
        """The title of an inner node."""
        return None if taxonomy.is_leaf[node] else taxonomy.titles[node]

    def _unique_title(self, taxonomy: Taxonomy, node: int, is_old: bool) -> Hashable | None:
        """The title of a leaf, if no other node has it, matched or not."""
        title = taxonomy.titles[node]
        return title if taxonomy.is_leaf[node] and len(taxonomy.nodes_titled(title)) == 1 else None

    def _fits(self, node: int, same: int) -> bool:
        """Whether two nodes have most of their children in common."""
        ours, theirs = _titles_below(self.old, node), _titles_below(self.new, same)
        return 2 * len(ours & theirs) > len(ours | theirs) or not (ours or theirs)


def _titles_below(taxonomy: Taxonomy, node: int) -> frozenset[str]:
    return frozenset(taxonomy.titles[child] for child in taxonomy.children_of(node).tolist())


KINDS = ("renamed", "moved", "merged", "split", "added", "retired")
Nodes = tuple[int, ...]
Reassignments = Mapping[int, Nodes]  # old node: new nodes; empty to discard its documents


@dataclass(frozen=True, slots=True)
class Change:
    """One change. old, new: nodes of the two taxonomies. nodes_below: how many nodes below changed with it."""

    kind: str
    old: Nodes
    new: Nodes
    nodes_below: int = 0


@dataclass(frozen=True, slots=True)
class TaxonomyDiff:
    """What changed from one taxonomy to another.

    successors: for each old node, the new nodes that its documents go to; empty if it is retired.
    unassigned: retired nodes without a reassignment.
    """

    old: Taxonomy
    new: Taxonomy
    successors: tuple[Nodes, ...]
    changes: tuple[Change, ...]
    unassigned: Nodes

    def of(self, kind: str) -> list[Change]:
        """The changes of one kind, such as "moved"."""
        return [change for change in self.changes if change.kind == kind]

    @property
    def counts(self) -> dict[str, int]:
        """The number of changes of each kind."""
        return {kind: len(self.of(kind)) for kind in KINDS}

    @property
    def is_renaming(self) -> bool:
        """Whether only titles, names or the order of nodes differ."""
        return all(change.kind == "renamed" for change in self.changes) and len(self.old) == len(self.new)

    def __bool__(self) -> bool:
        return bool(self.changes)

    def as_dict(self) -> dict[str, Any]:
        """The changes as plain values, nodes by name."""

        def row(change: Change) -> dict[str, Any]:
            old, new = [self.old.names[node] for node in change.old], [self.new.names[node] for node in change.new]
            return {"old": old, "new": new, "nodes_below": change.nodes_below}

        listed = {kind: [row(change) for change in self.of(kind)] for kind in KINDS}
        unassigned = [{"old": self.old.names[node], "suggestion": suggestion_for(self, node)} for node in self.unassigned]
        return {"counts": self.counts, **listed, "unassigned": unassigned}


def diff_taxonomies(old: Taxonomy, new: Taxonomy, reassignments: Reassignments | None = None) -> TaxonomyDiff:
    """Compare two taxonomies. reassignments: where documents of old nodes go; see :func:`read_reassignments`.

    >>> old = Taxonomy.from_edges([("food", None), ("apple", "food"), ("pear", "food")])
    >>> new = Taxonomy.from_edges([("food", None), ("fruit", "food"), ("apple", "fruit")])
    >>> changes = diff_taxonomies(old, new)
    >>> changes.counts
    {'renamed': 0, 'moved': 1, 'merged': 0, 'split': 0, 'added': 1, 'retired': 1}
    >>> [old.names[node] for node in changes.unassigned]
    ['pear']
    """
    reassignments = reassignments or {}
    direct = [reassignments.get(node, () if same < 0 else (int(same),)) for node, same in enumerate(match_nodes(old, new))]
    return _Comparison(old, new, direct, reassignments).result()


class _Comparison:
    """direct: for each old node the new nodes that it became, by its own match or reassignment."""

    def __init__(self, old: Taxonomy, new: Taxonomy, direct: list[Nodes], reassignments: Reassignments) -> None:
        self.old, self.new, self.direct, self.reassignments = old, new, direct, reassignments
        self.origins: dict[int, list[int]] = defaultdict(list)
        for node, became in enumerate(direct):
            for each in became:
                self.origins[each].append(node)

    def result(self) -> TaxonomyDiff:
        successors, unassigned = self._successors()
        changes = [*self._same_nodes(), *self._merged(), *self._split(), *self._added(), *self._retired()]
        changes.sort(key=lambda change: KINDS.index(change.kind))
        return TaxonomyDiff(self.old, self.new, tuple(successors), tuple(changes), tuple(unassigned))

    def _successors(self) -> tuple[list[Nodes], list[int]]:
        """A retired node follows the reassignment of its nearest reassigned ancestor; without one it is unassigned."""
        successors, unassigned = list(self.direct), []
        is_assigned = [node in self.reassignments for node in range(len(self.old))]
        for node in range(len(self.old)):  # parents come first
            if self.direct[node] or is_assigned[node]:
                continue
            above = [parent for parent in self.old.parents_of(node).tolist() if is_assigned[parent]]
            if above:
                is_assigned[node] = True
                successors[node] = tuple(dict.fromkeys(each for parent in above for each in successors[parent]))
            else:
                unassigned.append(node)
        return successors, unassigned

    def _same_nodes(self) -> Iterable[Change]:
        """Renamed and moved nodes: each became one node that no other node became."""
        for node, became in enumerate(self.direct):
            if len(became) != 1 or len(self.origins[became[0]]) > 1:
                continue
            has_moved = self._has_moved(node, became[0])
            is_reassigned = node in self.reassignments and self.old.names[node] != self.new.names[became[0]]
            if self.old.titles[node] != self.new.titles[became[0]] or (is_reassigned and not has_moved):
                yield Change("renamed", (node,), became, self._count_below(node, became[0]))
            if has_moved:
                yield Change("moved", (node,), became, self._count_below(node, became[0]))

    def _has_moved(self, node: int, same: int) -> bool:
        """Whether an old parent has no successor among the new parents, or a new parent no predecessor among the old."""
        parents = set(self.new.parents_of(same).tolist())
        became = [set(self.direct[parent]) for parent in self.old.parents_of(node).tolist()]
        return any(not (each & parents) for each in became) or bool(parents - set().union(*became))

    def _count_below(self, node: int, same: int) -> int:
        """How many nodes are below a node in both taxonomies."""
        below = set(self.old.descendants_of(node).tolist())
        return sum(any(o in below for o in self.origins[each]) for each in self.new.descendants_of(same).tolist())

    def _merged(self) -> Iterable[Change]:
        for same, origins in sorted(self.origins.items()):
            if len(origins) > 1:
                yield Change("merged", tuple(origins), (same,))

    def _split(self) -> Iterable[Change]:
        for node, became in enumerate(self.direct):
            if len(became) > 1:
                yield Change("split", (node,), became)

    def _added(self) -> Iterable[Change]:
        is_new = np.asarray([not self.origins[node] for node in range(len(self.new))], dtype=bool)
        return (Change("added", (), (node,), below) for node, below in _topmost(self.new, is_new))

    def _retired(self) -> Iterable[Change]:
        is_gone = np.asarray([not became for became in self.direct], dtype=bool)
        return (Change("retired", (node,), (), below) for node, below in _topmost(self.old, is_gone))


def _topmost(taxonomy: Taxonomy, chosen: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Chosen nodes without a chosen parent, and how many chosen nodes are connected below each."""
    top_of: dict[int, int] = {}
    for node in np.flatnonzero(chosen).tolist():  # parents come first
        above = [parent for parent in taxonomy.parents_of(node).tolist() if chosen[parent]]
        top_of[node] = top_of[above[0]] if above else node
    counts = Counter(top_of.values())
    return [(node, counts[node] - 1) for node in sorted(counts)]


def suggestion_for(changes: TaxonomyDiff, node: int) -> str | None:
    """A new node where documents of a retired node may belong, by its title; for people to check."""
    old, new = changes.old, changes.new
    titled = new.nodes_titled(old.titles[node])
    if len(titled) == 1:
        return new.names[titled[0]]
    above = [each for parent in old.parents_of(node).tolist() for each in changes.successors[parent]]
    around = [int(each) for parent in above for each in new.children_of(parent)] if above else new.roots.tolist()
    title = old.titles[node].casefold()
    similar = [each for each in around if title in new.titles[each].casefold()]
    return new.names[similar[0]] if len(similar) == 1 else None


def refuse_unassigned(changes: TaxonomyDiff, nodes: Sequence[int], how: str) -> None:
    """Refuse unassigned nodes that have documents. how: what to do about it."""
    if not nodes:
        return
    shown = ", ".join(repr(changes.old.names[node]) for node in nodes[:3])
    more = f" and {len(nodes) - 3:,} more" if len(nodes) > 3 else ""
    what = "a node that has documents is" if len(nodes) == 1 else f"{len(nodes):,} nodes that have documents are"
    raise TaxonomyError(f"{what} not in the new taxonomy: {shown}{more}; reassign their documents. {how}")


# ---- the table of reassignments ---------------------------------------------------------------------------------------


DISCARD = "-"
HEADER = ("old", "new", "suggestion")


def read_reassignments(path: str | Path, old: Taxonomy, new: Taxonomy) -> Reassignments:
    """Read a table of old and new nodes, separated by tabs or commas; a first row may name the columns ``old`` and ``new``.

    Several rows with the same new node merge the old ones, several with the same old node split it, and ``-`` as the new node
    discards the documents. A row without a new node is skipped.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise TaxonomyError(f"cannot read the reassignments in {path}: {why}; give a table of old and new nodes.") from None
    try:
        return parse_reassignments(text, old, new)
    except TaxonomyError as error:
        raise TaxonomyError(f"{path}, {error}") from None


def parse_reassignments(text: str, old: Taxonomy, new: Taxonomy) -> Reassignments:
    """Parse the table that :func:`read_reassignments` reads.

    >>> food = Taxonomy.flat(["apple", "pear", "rye"])
    >>> dict(parse_reassignments("apple\\tfruit\\npear\\tfruit\\nrye\\t-\\n", food, Taxonomy.flat(["fruit"])))
    {0: (0,), 1: (0,), 2: ()}
    """
    rows = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if "\t" in text.split("\n")[0] else ",")
    found: dict[int, tuple[int, ...]] = {}
    try:
        for row in rows:
            cells = [cell.strip() for cell in row]
            if any(cells) and not (rows.line_num == 1 and tuple(cells[:2]) == HEADER[:2]):
                _add(found, cells, rows.line_num, old, new)
    except csv.Error as error:
        raise TaxonomyError(f"line {rows.line_num} cannot be read: {error}.") from None
    return found


def _add(found: dict[int, tuple[int, ...]], cells: list[str], line: int, old: Taxonomy, new: Taxonomy) -> None:
    if len(cells) < 2 or not cells[0]:
        raise TaxonomyError(f"line {line} has {len(cells)} cells: {' '.join(cells)[:60]!r}; give an old node and a new one.")
    if not cells[1]:
        return
    node = _find(old, cells[0], line, "old")
    became = () if cells[1] == DISCARD else (_find(new, cells[1], line, "new"),)
    before = found.get(node)
    if before is not None and (not became or not before or became[0] in before):
        raise TaxonomyError(f"line {line} assigns {cells[0]!r} a second time; list each new node once, or '-' alone.")
    found[node] = (before or ()) + became


def _find(taxonomy: Taxonomy, label: str, line: int, which: str) -> int:
    try:
        return taxonomy.index(label)
    except LabelError as error:
        raise TaxonomyError(f"line {line}, {which} taxonomy: {error}") from None


def render_reassignment_template(changes: TaxonomyDiff) -> str:
    """A table of unassigned nodes, to be filled in and read back as reassignments."""
    out = io.StringIO(newline="")
    table = csv.writer(out, delimiter="\t", lineterminator="\n")
    table.writerow(HEADER)
    for node in changes.unassigned:
        table.writerow([changes.old.names[node], "", suggestion_for(changes, node) or ""])
    return out.getvalue()
