"""A committee of stumps for the children of one node, and all committees of a tree merged into one scorer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import ModelError
from ramify.features.term_counts import take_columns
from ramify.native import Committees, Pattern, predict_committees, renumber_rows, rows_of, score_committees_in_place
from ramify.persistence import are_indices, are_offsets, is_increasing
from ramify.taxonomy import Taxonomy

ABOVE_ROOTS = -1  # the node of the committee that separates the roots
ALWAYS = -1  # the host of nodes that every document passes
LARGEST = 1e20  # number of a model file
WIDE = 1 << 24  # features up to which a table of them all renumbers the pivots
YES = 1.0  # the score of a node that every document passes

Arrays = dict[str, NDArray[Any]]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Committee:
    """The stumps for the classes of one node.

    node: whose documents it is trained on, -1 above the roots. classes: the nodes that it scores.
    pivots: the term of each round. absent, present: rounds × classes, the votes where a document lacks the pivot and where it
    has it. z: of each round, the criterion by which its pivot was chosen.
    normalizers: the sum of the weights after each round, before normalization; their product bounds the training error.
    """

    node: int
    classes: Ints
    pivots: Ints
    absent: Floats
    present: Floats
    z: Floats
    normalizers: Floats

    @classmethod
    def empty(cls, node: int, classes: Ints) -> Self:
        """A committee without stumps."""
        votes = np.zeros((0, len(classes)))
        return cls(node, classes, np.zeros(0, dtype=np.int64), votes, votes, np.zeros(0), np.zeros(0))

    @property
    def n_rounds(self) -> int:
        """The number of stumps."""
        return len(self.pivots)

    def first(self, rounds: int) -> Self:
        """The committee after some rounds; all of it where there were fewer."""
        return self.with_rounds(*(part[:rounds] for part in self.rounds()))

    def extended(self, more: Committee) -> Self:
        """The same committee with the rounds of another for the same classes after its own."""
        return self.with_rounds(*map(np.concatenate, zip(self.rounds(), more.rounds(), strict=True)))

    def rounds(self) -> tuple[NDArray[Any], ...]:
        """The arrays with one entry per round."""
        return self.pivots, self.absent, self.present, self.z, self.normalizers

    def with_rounds(self, *rounds: NDArray[Any]) -> Self:
        """The same committee with other rounds."""
        return type(self)(self.node, self.classes, *rounds)

    def merge_stumps(self) -> tuple[Ints, Floats, Floats]:
        """Stumps on the same pivot as one: the pivots, rising; a bias per class; and what each pivot adds, pivots × classes.

        >>> votes = np.array([[1.0], [2.0]])
        >>> c = Committee(-1, np.array([0]), np.array([7, 7]), votes, 3 * votes, np.ones(2), np.ones(2))
        >>> c.merge_stumps()
        (array([7]), array([3.]), array([[6.]]))
        """
        columns, of_round = np.unique(self.pivots, return_inverse=True)
        sums = np.zeros((len(columns), len(self.classes)))
        np.add.at(sums, of_round, self.present - self.absent)
        return columns, np.asarray(self.absent.sum(axis=0)), sums

    def sum_votes(self, X: csr_array) -> Floats:
        """The sum of the votes of all stumps, documents × classes; only which entries of X are stored counts."""
        columns, bias, sums = self.merge_stumps()
        present = csr_array((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape)
        return np.asarray(bias + present[:, columns] @ sums)


def join(parts: Sequence[Any], dtype: Any) -> tuple[Ints, NDArray[Any]]:
    """Where each of several vectors begins, and where the last ends; and the vectors one after the other.

    >>> join([[7, 8], [9]], np.int32)
    (array([0, 2, 3]), array([7, 8, 9], dtype=int32))
    """
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return offsets, np.concatenate([np.zeros(0, dtype=dtype), *(np.asarray(part, dtype=dtype) for part in parts)])


@dataclass(frozen=True, slots=True)
class CommitteeTree:
    """All committees from the top down, with merged stumps, ready to score.

    columns: the pivots of all committees. nodes: of every class that has a score. merged, hosts: nodes that share the score of
    another, and the places of these among the classes (-1: passed by every document). class_offsets, stumps: where the classes
    of each committee begin, and its merged stumps. committees: as kernels take them.
    """

    columns: Ints
    nodes: Ints
    merged: Ints
    hosts: Ints
    class_offsets: Ints
    stumps: list[tuple[Ints, Floats, Floats]]
    committees: Committees

    @classmethod
    def of(cls, committees: Sequence[Committee], merged: Ints, merged_with: Ints) -> CommitteeTree:
        """merged, merged_with: nodes that are passed whenever another is, which is -1 for the top; parents before children."""
        stumps = [committee.merge_stumps() for committee in committees]
        columns = np.unique(join([part[0] for part in stumps], np.int64)[1])
        class_offsets, nodes = join([committee.classes for committee in committees], np.int64)
        host = {ALWAYS: ALWAYS} | {int(node): slot for slot, node in enumerate(nodes)}
        for node, other in zip(merged.tolist(), merged_with.tolist(), strict=True):
            host[node] = host[other]
        below: dict[int, list[int]] = {slot: [] for slot in range(ALWAYS, len(nodes))}  # committees, by the class above
        for number, committee in enumerate(committees):
            below[host[committee.node]].append(number)
        native = Committees(
            Pattern(*join([np.searchsorted(columns, part[0]) for part in stumps], np.int32), len(columns)),
            *join([part[1] for part in stumps], np.float64),  # a bias per class
            *join([part[2].ravel() for part in stumps], np.float64),
            np.asarray(below[ALWAYS], dtype=np.int32),
            Pattern(*join([below[slot] for slot in range(len(nodes))], np.int32), len(committees)),
        )
        hosts = np.asarray([host[int(node)] for node in merged], dtype=np.int64)
        return cls(columns, nodes, merged, hosts, class_offsets, stumps, native)

    def score_in_place(self, X: csr_array, S: NDArray[np.float32], threshold: float = -np.inf) -> NDArray[np.float32]:
        """Fill in the scores of nodes that have a committee, documents × nodes; NaN below nodes under the threshold."""
        found = np.empty((X.shape[0], len(self.nodes)), dtype=np.float32)
        score_committees_in_place(self.committees, self._rows(X), threshold, found)
        S[:, self.nodes] = found
        has_host = self.hosts >= 0
        S[:, self.merged[has_host]] = found[:, self.hosts[has_host]]
        S[:, self.merged[~has_host]] = YES
        return S

    def passed(self, X: csr_array, n_nodes: int) -> csr_array:
        """The nodes with positive scores and positive ancestors, documents × nodes."""
        slots, nodes = np.append(np.arange(len(self.nodes)), self.hosts), np.append(self.nodes, self.merged)
        order = np.argsort(slots, kind="stable")
        nodes, counts = nodes[order].astype(np.int32), np.bincount(slots + 1, minlength=len(self.nodes) + 1)
        always = counts[0]  # what every document passes comes first
        by_class = Pattern(np.cumsum(counts) - always, nodes[always:], n_nodes)
        offsets, passed = predict_committees(self.committees, self._rows(X), by_class, nodes[:always])
        return csr_array((np.ones(len(passed), dtype=bool), passed, offsets), shape=(X.shape[0], n_nodes))

    def votes_for(self, node: int) -> tuple[Ints, Floats, float] | None:
        """The pivots of a node's committee, what the presence of each adds to the node's score, and the bias.

        A merged node has those of its host; None where every document passes, or no committee scores the node.
        """
        slots = np.append(self.hosts[self.merged == node], np.flatnonzero(self.nodes == node))
        if not len(slots) or slots[0] < 0:
            return None
        number = int(np.searchsorted(self.class_offsets, slots[0], side="right")) - 1
        pivots, bias, sums = self.stumps[number]
        column = slots[0] - self.class_offsets[number]
        return pivots, sums[:, column], float(bias[column])

    def _rows(self, X: csr_array) -> Pattern:
        """Documents over the pivots alone."""
        if X.shape[1] > WIDE:
            offsets, columns, _ = take_columns((X.indptr, X.indices, X.data), self.columns)
            return Pattern(offsets, columns, len(self.columns))
        numbers = np.full(X.shape[1], -1, dtype=np.int32)
        numbers[self.columns] = np.arange(len(self.columns))
        offsets, columns, _ = renumber_rows(rows_of(X), numbers, len(self.columns))
        return Pattern(offsets, columns, len(self.columns))


# ---- model files ----------------------------------------------------------------------------------------------------------

INTS = ("committee_nodes", "class_offsets", "classes", "round_offsets", "pivots")
FLOATS = ("absent", "present", "z", "normalizers")


def committee_arrays(*committees: Committee) -> Arrays:
    """One array per field, with the committees one after the other."""
    nodes = np.asarray([committee.node for committee in committees], dtype=np.int64)
    classes = join([committee.classes for committee in committees], np.int64)
    rounds = join([committee.pivots for committee in committees], np.int64)
    floats = zip(*(committee.rounds()[1:] for committee in committees), strict=True) if committees else [()] * len(FLOATS)
    votes = [join([part.ravel() for part in parts], np.float64)[1] for parts in floats]
    return dict(zip(INTS + FLOATS, [nodes, *classes, *rounds, *votes], strict=True))


def read_committees(arrays: Arrays, n_features: int, n_nodes: int) -> list[Committee]:
    """Committees from their arrays; refuses what boosting does not write."""
    kinds = dict.fromkeys(INTS, np.int64) | dict.fromkeys(FLOATS, np.float64)
    if any(arrays[name].dtype != kind or arrays[name].ndim != 1 for name, kind in kinds.items()):
        raise ModelError("the committees are of another type than boosting writes; train the model again.")
    nodes, class_offsets, classes, round_offsets, pivots = (arrays[name] for name in INTS)
    n, floats = len(nodes), [arrays[name] for name in FLOATS]
    if not are_offsets(class_offsets, n, len(classes)) or not are_offsets(round_offsets, n, len(pivots)):
        raise ModelError("the committees of boosting have shapes that do not fit together; train the model again.")
    widths, rounds = np.diff(class_offsets), np.diff(round_offsets)
    if [len(part) for part in floats] != [int(widths @ rounds)] * 2 + [len(pivots)] * 2:
        raise ModelError("the rounds of boosting have shapes that do not fit together; train the model again.")
    _check_range(pivots, 0, n_features, "a pivot")
    _check_range(classes, 0, n_nodes, "a class")
    _check_range(nodes, -1, n_nodes, "a committee")
    if not is_increasing(nodes, strictly=True) or np.any(widths < 1) or len(np.unique(classes)) < len(classes):
        raise ModelError("the committees of boosting do not score distinct nodes; train the model again.")
    if not all((np.abs(part) <= LARGEST).all() for part in floats):  # false for NaN
        raise ModelError("the votes of boosting are not all numbers that training gives; train the model again.")
    ends = np.cumsum(widths * rounds)[:-1]
    absent, present = (np.split(part, ends) for part in floats[:2])
    by_committee = (np.split(part, round_offsets[1:-1]) for part in (pivots, *floats[2:]))
    parts = zip(nodes.tolist(), np.split(classes, class_offsets[1:-1]), absent, present, *by_committee, strict=True)
    return [
        Committee(node, own, terms, no.reshape(-1, len(own)), yes.reshape(-1, len(own)), z, normalizers)
        for node, own, no, yes, terms, z, normalizers in (parts if n else ())
    ]


def check_merged(merged: Ints, merged_with: Ints, committees: list[Committee], taxonomy: Taxonomy) -> None:
    """Refuse merged nodes that are not children of what they are merged with."""
    if len(merged) != len(merged_with):
        raise ModelError("the merged nodes of boosting are not what it writes; train the model again.")
    _check_range(merged, 0, len(taxonomy), "a merged node")
    scored = join([committee.classes for committee in committees], np.int64)[1]
    known = {-1, *merged.tolist(), *scored.tolist()}
    leads = np.array_equal(taxonomy.parent[merged], merged_with) and is_increasing(merged, strictly=True)
    if not leads or np.isin(merged, scored).any() or not known.issuperset(merged_with.tolist()):
        raise ModelError("the merged nodes of boosting are not children of nodes that it scores; train the model again.")
    if not known.issuperset(committee.node for committee in committees):
        raise ModelError("a committee of boosting is at a node that no document reaches; train the model again.")


def _check_range(values: Ints, low: int, end: int, what: str) -> None:
    if not are_indices(values, end, first=low):
        raise ModelError(f"{what} of boosting lies outside {low} to {end - 1}; train the model again.")
