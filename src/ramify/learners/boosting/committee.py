"""A committee of stumps for the children of one node, and all committees of a tree merged into one scorer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import ModelError
from ramify.native import Committees, Pattern, predict_committees, renumber_rows, rows_of, score_committees_in_place
from ramify.persistence import are_offsets, is_increasing
from ramify.taxonomy import Taxonomy

ABOVE_ROOTS = -1  # the node of the committee that separates the roots
ALWAYS = -1  # the host of nodes that every document passes
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
        return self._with_rounds(*(part[:rounds] for part in self._rounds()))

    def extended(self, more: Committee) -> Self:
        """The same committee with the rounds of another for the same classes after its own."""
        return self._with_rounds(*map(np.concatenate, zip(self._rounds(), more._rounds(), strict=True)))

    def _rounds(self) -> tuple[NDArray[Any], ...]:
        return self.pivots, self.absent, self.present, self.z, self.normalizers

    def _with_rounds(self, pivots: Ints, absent: Floats, present: Floats, z: Floats, normalizers: Floats) -> Self:
        return replace(self, pivots=pivots, absent=absent, present=present, z=z, normalizers=normalizers)

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


def offsets_of(lengths: list[int]) -> Ints:
    """Where each of several ranges begins, and where the last ends.

    >>> offsets_of([2, 3])
    array([0, 2, 5])
    """
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


@dataclass(frozen=True, slots=True)
class MergedVotes:
    """The votes of all committees with merged stumps: by class a bias, and by pivot and class what its presence adds."""

    pivot_offsets: Ints
    pivots: NDArray[np.int32]
    class_offsets: Ints
    bias: Floats
    sum_offsets: Ints
    sums: Floats

    def of(self, number: int) -> tuple[NDArray[np.int32], Floats]:
        """The pivots of a committee, and what each adds to each of its classes."""
        pivots = self.pivots[self.pivot_offsets[number] : self.pivot_offsets[number + 1]]
        sums = self.sums[self.sum_offsets[number] : self.sum_offsets[number + 1]]
        return pivots, sums.reshape(len(pivots), self.class_offsets[number + 1] - self.class_offsets[number])

    def to_native(self, n_columns: int, roots: NDArray[np.int32], below: Pattern) -> Committees:
        """The same as kernels take it. roots: committees that score every document. below: those that a class leads to."""
        pivots = Pattern(self.pivot_offsets, self.pivots, n_columns)
        return Committees(pivots, self.class_offsets, self.bias, self.sum_offsets, self.sums, roots, below)


@dataclass(frozen=True, slots=True)
class CommitteeTree:
    """All committees from the top down, with merged stumps, ready to score.

    columns: the pivots of all committees. nodes: of every class that has a score. merged, hosts: nodes that share the score of
    another, and the places of these among the classes (-1: passed by every document). committees: as kernels take them.
    """

    columns: Ints
    nodes: Ints
    merged: Ints
    hosts: Ints
    votes: MergedVotes
    committees: Committees

    @classmethod
    def of(cls, committees: Sequence[Committee], merged: Ints, merged_with: Ints) -> CommitteeTree:
        """merged, merged_with: nodes that are passed whenever another is, which is -1 for the top; parents before children."""
        stumps = [committee.merge_stumps() for committee in committees]
        columns = _join([part[0] for part in stumps], np.int64)
        columns = np.unique(columns)
        nodes = _join([committee.classes for committee in committees], np.int64)
        host = {ALWAYS: ALWAYS} | {int(node): slot for slot, node in enumerate(nodes)}
        for node, other in zip(merged.tolist(), merged_with.tolist(), strict=True):
            host[node] = host[other]
        below: dict[int, list[int]] = {slot: [] for slot in range(ALWAYS, len(nodes))}  # committees, by the class above
        for number, committee in enumerate(committees):
            below[host[committee.node]].append(number)
        by_slot = [below[slot] for slot in range(len(nodes))]
        votes = MergedVotes(
            offsets_of([len(part[0]) for part in stumps]),
            _join([np.searchsorted(columns, part[0]) for part in stumps], np.int32),
            offsets_of([len(committee.classes) for committee in committees]),
            _join([part[1] for part in stumps], np.float64),
            offsets_of([part[2].size for part in stumps]),
            _join([part[2].ravel() for part in stumps], np.float64),
        )
        lists = offsets_of([len(part) for part in by_slot]), _join([np.asarray(part) for part in by_slot], np.int32)
        hosts, roots = (
            np.asarray([host[int(node)] for node in merged], dtype=np.int64),
            np.asarray(below[ALWAYS], dtype=np.int32),
        )
        native = votes.to_native(len(columns), roots, Pattern(*lists, len(committees)))
        return cls(columns, nodes, merged, hosts, votes, native)

    def score(self, X: csr_array, n_nodes: int, threshold: float = -np.inf) -> NDArray[np.float32]:
        """Scores of documents × nodes; NaN where no committee scores a node, and below nodes that do not pass the threshold."""
        found = np.empty((X.shape[0], len(self.nodes)), dtype=np.float32)
        score_committees_in_place(self.committees, self._rows(X), threshold, found)
        S = np.full((X.shape[0], n_nodes), np.nan, dtype=np.float32)
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
        number = int(np.searchsorted(self.votes.class_offsets, slots[0], side="right")) - 1
        pivots, sums = self.votes.of(number)
        column = slots[0] - self.votes.class_offsets[number]
        return self.columns[pivots], sums[:, column], float(self.votes.bias[slots[0]])

    def _rows(self, X: csr_array) -> Pattern:
        """Documents over the pivots alone."""
        numbers = np.full(X.shape[1], -1, dtype=np.int32)
        numbers[self.columns] = np.arange(len(self.columns))
        offsets, columns, _ = renumber_rows(rows_of(X), numbers, len(self.columns))
        return Pattern(offsets, columns, len(self.columns))


def _join(parts: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=dtype), *(part.astype(dtype) for part in parts)])


# ---- model files ----------------------------------------------------------------------------------------------------------

_DTYPES = {
    "committee_nodes": "i8",
    "class_offsets": "i8",
    "classes": "i8",
    "round_offsets": "i8",
    "pivots": "i8",
    "absent": "f8",
    "present": "f8",
    "z": "f8",
    "normalizers": "f8",
}


def committee_arrays(committees: list[Committee]) -> Arrays:
    """One array per field, with the committees one after the other."""
    return {
        "committee_nodes": np.asarray([committee.node for committee in committees], dtype=np.int64),
        "class_offsets": offsets_of([len(committee.classes) for committee in committees]),
        "classes": _join([committee.classes for committee in committees], "i8"),
        "round_offsets": offsets_of([committee.n_rounds for committee in committees]),
        "pivots": _join([committee.pivots for committee in committees], "i8"),
        "absent": _join([committee.absent.ravel() for committee in committees], "f8"),
        "present": _join([committee.present.ravel() for committee in committees], "f8"),
        "z": _join([committee.z for committee in committees], "f8"),
        "normalizers": _join([committee.normalizers for committee in committees], "f8"),
    }


def read_committees(arrays: Arrays, n_features: int, n_nodes: int) -> list[Committee]:
    """Committees from their arrays; refuses what boosting does not write."""
    if any(arrays[name].dtype != kind or arrays[name].ndim != 1 for name, kind in _DTYPES.items()):
        raise ModelError("the committees are of another type than boosting writes; train the model again.")
    nodes, n = arrays["committee_nodes"], len(arrays["committee_nodes"])
    widths = _lengths(arrays["class_offsets"], n, len(arrays["classes"]))
    rounds = _lengths(arrays["round_offsets"], n, len(arrays["pivots"]))
    sizes = [len(arrays[name]) for name in ("absent", "present")]
    if sizes != [int(widths @ rounds)] * 2 or any(len(arrays[name]) != rounds.sum() for name in ("z", "normalizers")):
        raise ModelError("the rounds of boosting have shapes that do not fit together; train the model again.")
    _check_range(arrays["pivots"], 0, n_features, "a pivot")
    _check_range(arrays["classes"], 0, n_nodes, "a class")
    _check_range(nodes, -1, n_nodes, "a committee")
    if (
        not is_increasing(nodes, strictly=True)
        or np.any(widths < 1)
        or len(np.unique(arrays["classes"])) < len(arrays["classes"])
    ):
        raise ModelError("the committees of boosting do not score distinct nodes; train the model again.")
    if not all(np.isfinite(arrays[name]).all() for name in ("absent", "present", "z", "normalizers")):
        raise ModelError("the votes of boosting are not all finite numbers; train the model again.")
    return [_committee(arrays, k, widths, rounds) for k in range(n)]


def read_label_nodes(arrays: Arrays, committees: list[Committee]) -> Ints:
    """The nodes of a model file that may be labels; refuses those that no committee scores."""
    listed = [arrays[name] for name in ("class_nodes", "merged", "merged_with")]
    if any(array.dtype != np.int64 or array.ndim != 1 for array in listed):
        raise ModelError("the nodes of boosting are of another type than it writes; train the model again.")
    nodes, merged, _ = listed
    known = np.concatenate([merged, *(committee.classes for committee in committees)])
    if not is_increasing(nodes, strictly=True) or not np.isin(nodes, known).all():
        raise ModelError("the labels of boosting are not nodes that it scores; train the model again.")
    return nodes


def check_merged(merged: Ints, merged_with: Ints, committees: list[Committee], taxonomy: Taxonomy) -> None:
    """Refuse merged nodes that are not children of what they are merged with."""
    if len(merged) != len(merged_with):
        raise ModelError("the merged nodes of boosting are not what it writes; train the model again.")
    _check_range(merged, 0, len(taxonomy), "a merged node")
    scored = _join([committee.classes for committee in committees], np.int64)
    known = {-1, *merged.tolist(), *scored.tolist()}
    leads = np.array_equal(taxonomy.parent[merged], merged_with) and is_increasing(merged, strictly=True)
    if not leads or np.isin(merged, scored).any() or not known.issuperset(merged_with.tolist()):
        raise ModelError("the merged nodes of boosting are not children of nodes that it scores; train the model again.")
    if not known.issuperset(committee.node for committee in committees):
        raise ModelError("a committee of boosting is at a node that no document reaches; train the model again.")


def _committee(arrays: Arrays, k: int, widths: Ints, rounds: Ints) -> Committee:
    classes = slice(*arrays["class_offsets"][k : k + 2])
    made = slice(*arrays["round_offsets"][k : k + 2])
    start = int(widths[:k] @ rounds[:k])
    shape = (int(rounds[k]), int(widths[k]))
    votes = [arrays[name][start : start + shape[0] * shape[1]].reshape(shape) for name in ("absent", "present")]
    others = [arrays[name][made] for name in ("z", "normalizers")]
    return Committee(int(arrays["committee_nodes"][k]), arrays["classes"][classes], arrays["pivots"][made], *votes, *others)


def _lengths(offsets: Ints, n: int, total: int) -> Ints:
    if not are_offsets(offsets, n, total):
        raise ModelError("the committees of boosting have shapes that do not fit together; train the model again.")
    return np.diff(offsets)


def _check_range(values: Ints, low: int, end: int, what: str) -> None:
    if len(values) and (values.min() < low or values.max() >= end):
        raise ModelError(f"{what} of boosting lies outside {low} to {end - 1}; train the model again.")
