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
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.errors import LabelError, TaxonomyError
from ramify.formatting import cut
from ramify.persistence.paths import read_at_most
from ramify.taxonomy.files import LONGEST, MAX_BYTES
from ramify.taxonomy.formats.text import numbered_rows
from ramify.taxonomy.hierarchy import Taxonomy

UNMATCHED = -1
MOST_AROUND = 500  # nodes among which a similar one is looked for


def match_nodes(old: Taxonomy, new: Taxonomy) -> NDArray[np.int64]:
    """The new node that equals each old node, -1 where there is none.

    >>> old, new = Taxonomy.from_paths(["a/x", "a/y", "b/z"]), Taxonomy.from_paths(["a/x", "b/y", "b/z"])
    >>> [new.names[node] for node in match_nodes(old, new)]
    ['a', 'a/x', 'b/y', 'b', 'b/z']
    """
    if is_named_by_paths(old) and is_named_by_paths(new):
        return _Matching(old, new).successor
    position = {name: node for node, name in enumerate(new.names)}
    return np.asarray([position.get(name, UNMATCHED) for name in old.names], dtype=np.int64)


def is_named_by_paths(taxonomy: Taxonomy) -> bool:
    """Whether every node's name is its whole path, as in taxonomies made from paths; true of a flat list of names."""
    if not taxonomy.is_tree:
        return False
    above = [f"{taxonomy.names[parent]}{taxonomy.separator}" if parent >= 0 else "" for parent in taxonomy.parent.tolist()]
    parts = zip(taxonomy.names, above, taxonomy.titles, strict=True)
    return all(name == before + title for name, before, title in parts)


class _Matching:
    """Match the nodes of two taxonomies that are named by their paths: by path, then by context while that is unambiguous."""

    def __init__(self, old: Taxonomy, new: Taxonomy) -> None:
        self.old, self.new = old, new
        self.successor = np.full(len(old), UNMATCHED, dtype=np.int64)
        self.predecessor = np.full(len(new), UNMATCHED, dtype=np.int64)
        self.parent = {id(old): old.parent, id(new): new.parent}  # the property computes it on every access
        by_path = {new.path_of(node): node for node in range(len(new))}
        for node in range(len(old)):
            if (same := by_path.get(old.path_of(node))) is not None:
                self._take(node, same)
        while any(self._match_by(kind) for kind in ("context", "title of an inner node", "title of a leaf")):
            # then the children of matched nodes by title; parents come first, so one sweep is enough
            free: dict[tuple[int, str], int] = {}  # unmatched new nodes by parent and title, which are unique among paths
            for child in np.flatnonzero(self.predecessor < 0).tolist():
                free[int(self.parent[id(new)][child]), new.titles[child]] = child
            for node in np.flatnonzero(self.successor < 0).tolist():
                parent = int(self.parent[id(old)][node])
                if parent >= 0 and self.successor[parent] >= 0:
                    same = free.pop((int(self.successor[parent]), old.titles[node]), None)
                    if same is not None:
                        self._take(node, same)

    def _take(self, node: int, same: int) -> None:
        self.successor[node], self.predecessor[same] = same, node

    def _match_by(self, kind: str) -> bool:
        """Match nodes with a key that is unique on both sides and mostly the same children; return whether there were any."""
        by_key: list[dict[Hashable, list[int]]] = []
        for taxonomy, matched in ((self.old, self.successor), (self.new, self.predecessor)):
            nodes_of: dict[Hashable, list[int]] = defaultdict(list)
            for node in np.flatnonzero(matched < 0).tolist():
                if (key := self._key(kind, taxonomy, node)) is not None:
                    nodes_of[key].append(node)
            by_key.append(nodes_of)
        certain = []
        for key, nodes in by_key[0].items():
            if len(nodes) == len(by_key[1].get(key, ())) == 1:
                node, same = nodes[0], by_key[1][key][0]
                ours, theirs = _titles_below(self.old, node), _titles_below(self.new, same)
                if 2 * len(ours & theirs) > len(ours | theirs) or not (ours or theirs):
                    certain.append((node, same))
        for node, same in certain:
            self._take(node, same)
        return bool(certain)

    def _key(self, kind: str, taxonomy: Taxonomy, node: int) -> Hashable | None:
        """What identifies a node; None if nothing of this kind does."""
        title, is_leaf = taxonomy.titles[node], bool(taxonomy.is_leaf[node])
        if kind == "title of a leaf":  # if no other node has it, matched or not
            return title if is_leaf and len(taxonomy.nodes_titled(title)) == 1 else None
        if is_leaf or kind == "title of an inner node":
            return None if is_leaf else title
        # context: the parent, as a node of the new taxonomy, and the titles of the children
        parent = int(self.parent[id(taxonomy)][node])
        above = int(self.successor[parent]) if taxonomy is self.old and parent >= 0 else parent
        return (above, _titles_below(taxonomy, node)) if parent < 0 or above >= 0 else None


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
    # a retired node follows the reassignment of its nearest reassigned ancestor; without one it is unassigned
    successors, unassigned = list(direct), []
    is_assigned = [node in reassignments for node in range(len(old))]
    for node in range(len(old)):  # parents come first
        if direct[node] or is_assigned[node]:
            continue
        above = [parent for parent in old.parents_of(node).tolist() if is_assigned[parent]]
        if above:
            is_assigned[node] = True
            successors[node] = tuple(dict.fromkeys(each for parent in above for each in successors[parent]))
        else:
            unassigned.append(node)
    return TaxonomyDiff(old, new, tuple(successors), tuple(_list_changes(old, new, direct, reassignments)), tuple(unassigned))


def _list_changes(old: Taxonomy, new: Taxonomy, direct: list[Nodes], reassignments: Reassignments) -> list[Change]:
    """The changes, by kind. direct: for each old node the new nodes that it became, by its own match or reassignment."""
    origins: dict[int, list[int]] = defaultdict(list)
    for node, became in enumerate(direct):
        for each in became:
            origins[each].append(node)
    changes = [Change("merged", tuple(nodes), (same,)) for same, nodes in sorted(origins.items()) if len(nodes) > 1]
    for node, became in enumerate(direct):
        if len(became) > 1:
            changes.append(Change("split", (node,), became))
        if len(became) != 1 or len(origins[became[0]]) > 1:
            continue
        same = became[0]
        # moved: an old parent has no successor among the new parents, or a new parent no predecessor among the old
        parents = set(new.parents_of(same).tolist())
        ours = [set(direct[parent]) for parent in old.parents_of(node).tolist()]
        has_moved = any(not (each & parents) for each in ours) or bool(parents - set().union(*ours))
        is_reassigned = node in reassignments and old.names[node] != new.names[same]
        is_renamed = old.titles[node] != new.titles[same] or (is_reassigned and not has_moved)
        if is_renamed or has_moved:
            below = set(old.descendants_of(node).tolist())
            n_below = sum(any(o in below for o in origins[each]) for each in new.descendants_of(same).tolist())
            kinds = ["renamed"] * is_renamed + ["moved"] * has_moved
            changes += [Change(kind, (node,), became, n_below) for kind in kinds]
    is_new = np.asarray([not origins[node] for node in range(len(new))], dtype=bool)
    changes += [Change("added", (), (node,), below) for node, below in _topmost(new, is_new)]
    is_gone = np.asarray([not became for became in direct], dtype=bool)
    changes += [Change("retired", (node,), (), below) for node, below in _topmost(old, is_gone)]
    return sorted(changes, key=lambda change: KINDS.index(change.kind))


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
    if (sum(len(new.children_of(parent)) for parent in above) if above else len(new.roots)) > MOST_AROUND:
        return None
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


DISCARD = "-"
HEADER = ("old", "new", "suggestion")


def read_reassignments(path: str | Path, old: Taxonomy, new: Taxonomy) -> Reassignments:
    """Read a table of old and new nodes, separated by tabs or commas; a first row may name the columns ``old`` and ``new``.

    Several rows with the same new node merge the old ones, several with the same old node split it, and ``-`` as the new node
    discards the documents. A row without a new node is skipped.
    """
    try:
        text = read_at_most(Path(path), MAX_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise TaxonomyError(f"cannot read the reassignments in {path}: {why}; give a table of old and new nodes.") from None
    try:
        return parse_reassignments(text, old, new)
    except TaxonomyError as error:
        raise TaxonomyError(cut(f"{path}, {error}", LONGEST)) from None


def parse_reassignments(text: str, old: Taxonomy, new: Taxonomy) -> Reassignments:
    """Parse the table that :func:`read_reassignments` reads.

    >>> food = Taxonomy.flat(["apple", "pear", "rye"])
    >>> dict(parse_reassignments("apple\\tfruit\\npear\\tfruit\\nrye\\t-\\n", food, Taxonomy.flat(["fruit"])))
    {0: (0,), 1: (0,), 2: ()}
    """
    found: dict[int, dict[int, None]] = {}
    for line, row in numbered_rows(text, "\t" if "\t" in text.split("\n")[0] else ","):
        cells = [cell.strip() for cell in row]
        if line == 1 and tuple(cells[:2]) == HEADER[:2]:
            continue
        if len(cells) < 2 or not cells[0]:
            shown = f"{len(cells)} cells: {' '.join(cells)[:60]!r}"
            raise TaxonomyError(f"line {line} has {shown}; give an old node and a new one.")
        if not cells[1]:
            continue
        node = _find(old, cells[0], line, "old")
        became = None if cells[1] == DISCARD else _find(new, cells[1], line, "new")
        before = found.get(node)
        if before is not None and (became is None or not before or became in before):
            raise TaxonomyError(f"line {line} assigns {cells[0]!r} a second time; list each new node once, or '-' alone.")
        found.setdefault(node, {})
        if became is not None:
            found[node][became] = None
    return {node: tuple(became) for node, became in found.items()}


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
