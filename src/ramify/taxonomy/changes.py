"""What changed between two taxonomies, and where the documents of every old node go.

    renamed   the same node with another title            added     a node that was not there
    moved     the same node under other parents           retired   a node that is there no longer
    merged    several nodes became one                    split     one node became several

Merging and splitting cannot be seen in two taxonomies: answers say so. Nodes that follow a change of a node above them are not
listed one by one; the topmost change tells how many there are. Retired nodes that nobody has answered for are questions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.errors import TaxonomyError
from ramify.taxonomy.hierarchy import Taxonomy
from ramify.taxonomy.matching import match_nodes

KINDS = ("renamed", "moved", "merged", "split", "added", "retired")
Nodes = tuple[int, ...]
Answers = Mapping[int, Nodes]  # by old node, the new ones; none where documents are given up


@dataclass(frozen=True, slots=True)
class Change:
    """One change. old, new: nodes of the two taxonomies. along: how many nodes below go with it."""

    kind: str
    old: Nodes
    new: Nodes
    along: int = 0


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed from one taxonomy to another.

    successors: for every old node the new ones to which its documents go; none where it is retired.
    listed: the changes. questions: retired nodes of which nobody knows where their documents go.
    """

    old: Taxonomy
    new: Taxonomy
    successors: tuple[Nodes, ...]
    listed: tuple[Change, ...]
    questions: Nodes

    def of(self, kind: str) -> list[Change]:
        """The changes of one kind, such as "moved"."""
        return [change for change in self.listed if change.kind == kind]

    @property
    def counts(self) -> dict[str, int]:
        """How many changes of every kind there are."""
        return {kind: len(self.of(kind)) for kind in KINDS}

    @property
    def is_renaming(self) -> bool:
        """Whether every node is still there, under the same parents: other titles, names or another order at most."""
        return all(change.kind == "renamed" for change in self.listed) and len(self.old) == len(self.new)

    def __bool__(self) -> bool:
        return bool(self.listed)

    def as_dict(self) -> dict[str, Any]:
        """Plain values: nodes by their names."""

        def row(change: Change) -> dict[str, Any]:
            old, new = [self.old.names[node] for node in change.old], [self.new.names[node] for node in change.new]
            return {"old": old, "new": new, "nodes_below": change.along}

        listed = {kind: [row(change) for change in self.of(kind)] for kind in KINDS}
        asked = [{"old": self.old.names[node], "suggestion": suggestion_for(self, node)} for node in self.questions]
        return {"counts": self.counts, **listed, "questions": asked}


def compare_taxonomies(old: Taxonomy, new: Taxonomy, answers: Answers | None = None) -> Changes:
    """Find out what changed. answers: where documents of some old nodes go; see :func:`read_answers`.

    >>> old = Taxonomy.from_edges([("food", None), ("apple", "food"), ("pear", "food")])
    >>> new = Taxonomy.from_edges([("food", None), ("fruit", "food"), ("apple", "fruit")])
    >>> changes = compare_taxonomies(old, new)
    >>> changes.counts
    {'renamed': 0, 'moved': 1, 'merged': 0, 'split': 0, 'added': 1, 'retired': 1}
    >>> [old.names[node] for node in changes.questions]
    ['pear']
    """
    answers = answers or {}
    direct = [answers.get(node, () if same < 0 else (int(same),)) for node, same in enumerate(match_nodes(old, new))]
    return _Comparison(old, new, direct, answers).result()


class _Comparison:
    """direct: for every old node the new ones that it became, by what is the same or by an answer about it itself."""

    def __init__(self, old: Taxonomy, new: Taxonomy, direct: list[Nodes], answers: Answers) -> None:
        self.old, self.new, self.direct, self.answers = old, new, direct, answers
        self.origins: dict[int, list[int]] = defaultdict(list)
        for node, became in enumerate(direct):
            for each in became:
                self.origins[each].append(node)

    def result(self) -> Changes:
        successors, questions = self._follow_answers()
        listed = [*self._same_nodes(), *self._merged(), *self._split(), *self._added(), *self._retired()]
        listed.sort(key=lambda change: KINDS.index(change.kind))
        return Changes(self.old, self.new, tuple(successors), tuple(listed), tuple(questions))

    def _follow_answers(self) -> tuple[list[Nodes], list[int]]:
        """A retired node goes where the answer about the nearest node above it says; without one it is a question."""
        successors, questions = list(self.direct), []
        is_answered = [node in self.answers for node in range(len(self.old))]
        for node in range(len(self.old)):  # parents come first
            if self.direct[node] or is_answered[node]:
                continue
            above = [parent for parent in self.old.parents_of(node).tolist() if is_answered[parent]]
            if above:
                is_answered[node] = True
                successors[node] = tuple(dict.fromkeys(each for parent in above for each in successors[parent]))
            else:
                questions.append(node)
        return successors, questions

    def _same_nodes(self) -> Iterable[Change]:
        """Nodes that became one which no other became: with another title, or under other parents."""
        for node, became in enumerate(self.direct):
            if len(became) != 1 or len(self.origins[became[0]]) > 1:
                continue
            has_moved = self._has_moved(node, became[0])
            is_answered = node in self.answers and self.old.names[node] != self.new.names[became[0]]
            if self.old.titles[node] != self.new.titles[became[0]] or (is_answered and not has_moved):
                yield Change("renamed", (node,), became, self._along(node, became[0]))
            if has_moved:
                yield Change("moved", (node,), became, self._along(node, became[0]))

    def _has_moved(self, node: int, same: int) -> bool:
        """Whether a parent has no successor among the new parents, or a new parent no predecessor among the old ones."""
        here = set(self.new.parents_of(same).tolist())
        became = [set(self.direct[parent]) for parent in self.old.parents_of(node).tolist()]
        return any(not (each & here) for each in became) or bool(here - set().union(*became))

    def _along(self, node: int, same: int) -> int:
        """How many nodes stood below a node, and still do."""
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
        return (Change("added", (), (node,), along) for node, along in _topmost(self.new, is_new))

    def _retired(self) -> Iterable[Change]:
        is_gone = np.asarray([not became for became in self.direct], dtype=bool)
        return (Change("retired", (node,), (), along) for node, along in _topmost(self.old, is_gone))


def _topmost(taxonomy: Taxonomy, chosen: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Of chosen nodes those with no chosen parent, and how many chosen ones hang below each by chosen ones alone."""
    top_of: dict[int, int] = {}
    for node in np.flatnonzero(chosen).tolist():  # parents come first
        above = [parent for parent in taxonomy.parents_of(node).tolist() if chosen[parent]]
        top_of[node] = top_of[above[0]] if above else node
    counts = Counter(top_of.values())
    return [(node, counts[node] - 1) for node in sorted(counts)]


def suggestion_for(changes: Changes, node: int) -> str | None:
    """Where documents of a retired node may belong, for people to look at: a new node with its title, children or place."""
    old, new = changes.old, changes.new
    titled = new.bearers_of(old.titles[node])
    if len(titled) == 1:
        return new.names[titled[0]]
    above = [each for parent in old.parents_of(node).tolist() for each in changes.successors[parent]]
    around = [int(each) for parent in above for each in new.children_of(parent)] if above else new.roots.tolist()
    title = old.titles[node].casefold()
    holding = [each for each in around if title in new.titles[each].casefold()]
    return new.names[holding[0]] if len(holding) == 1 else None


def refuse_questions(changes: Changes, nodes: Sequence[int], how: str) -> None:
    """Refuse to go on where documents of retired nodes have nowhere to go. how: what to do about it."""
    if not nodes:
        return
    shown = ", ".join(repr(changes.old.names[node]) for node in nodes[:3])
    more = f" and {len(nodes) - 3:,} more" if len(nodes) > 3 else ""
    what = "a node that has documents is" if len(nodes) == 1 else f"{len(nodes):,} nodes that have documents are"
    raise TaxonomyError(f"{what} not in the new taxonomy: {shown}{more}; say where their documents go. {how}")
