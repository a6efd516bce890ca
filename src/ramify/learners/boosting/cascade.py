"""Committees from the top down, folded into sums: which of them a document meets, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.learners.boosting.committee import Committee, Ints, offsets_of
from ramify.native import pass_committees, renumber_rows, score_committees_in_place

ALWAYS = -1  # what is merged with the top is passed by every document
YES = 1.0  # the score of a node that every document passes


@dataclass(frozen=True, slots=True)
class Cascade:
    """Folded committees, ready to score.

    columns: the terms that any of them asks for. nodes: of every class that has a score. merged, hosts: nodes that share the
    score of another, and the places of these among the classes (-1: passed by every document).
    arrays: what the kernel takes.
    """

    columns: Ints
    nodes: Ints
    merged: Ints
    hosts: Ints
    arrays: tuple[NDArray[Any], ...]

    def score(self, X: csr_array, n_nodes: int, threshold: float = -np.inf) -> NDArray[np.float32]:
        """Scores of documents × nodes; NaN at nodes below those that do not pass the threshold, and where nobody answers."""
        local = np.empty((X.shape[0], len(self.nodes)), dtype=np.float32)
        score_committees_in_place(*self.arrays, len(self.columns), *self._rows(X), threshold, local)
        S = np.full((X.shape[0], n_nodes), np.nan, dtype=np.float32)
        S[:, self.nodes] = local
        shares = self.hosts >= 0
        S[:, self.merged[shares]] = local[:, self.hosts[shares]]
        S[:, self.merged[~shares]] = YES
        return S

    def passed(self, X: csr_array, n_nodes: int) -> csr_array:
        """The nodes with a score above 0 that documents reach, documents × nodes."""
        slots, nodes = np.append(np.arange(len(self.nodes)), self.hosts), np.append(self.nodes, self.merged)
        order = np.argsort(slots, kind="stable")
        nodes, counts = nodes[order].astype(np.int32), np.bincount(slots + 1, minlength=len(self.nodes) + 1)
        ends = np.cumsum(counts)  # what is passed always comes first
        offsets, taken = pass_committees(
            *self.arrays, len(self.columns), *self._rows(X), ends - counts[0], nodes[counts[0] :], nodes[: counts[0]]
        )
        return csr_array((np.ones(len(taken), dtype=bool), taken, offsets), shape=(X.shape[0], n_nodes))

    def votes_for(self, node: int) -> tuple[Ints, NDArray[np.float64], float] | None:
        """The terms that the committee of a node asks for, what the presence of each adds, and the bias.

        A merged node has those of the node that it is merged with; None where every document passes, or nobody answers.
        """
        slots = np.append(self.hosts[self.merged == node], np.flatnonzero(self.nodes == node))
        if not len(slots) or slots[0] < 0:
            return None
        terms, columns, classes, biases, places, sums, *_ = self.arrays
        number = int(np.searchsorted(classes, slots[0], side="right")) - 1
        votes = sums[places[number] : places[number + 1]].reshape(-1, classes[number + 1] - classes[number])
        asked = self.columns[columns[terms[number] : terms[number + 1]]]
        return asked, votes[:, slots[0] - classes[number]], float(biases[slots[0]])

    def _rows(self, X: csr_array) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Documents as the columns that any committee asks for."""
        numbers = np.full(X.shape[1], -1, dtype=np.int32)
        numbers[self.columns] = np.arange(len(self.columns))
        given = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False), X.data
        offsets, columns, _ = renumber_rows(*given, numbers, len(self.columns))
        return offsets, columns


def make_cascade(committees: Sequence[Committee], merged: Ints, merged_with: Ints) -> Cascade:
    """Fold committees.

    merged, merged_with: nodes that are passed whenever another is, which is -1 for the top; parents before children.
    """
    folded = [committee.folded() for committee in committees]
    columns = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(part[0] for part in folded)]))
    nodes = np.concatenate([np.zeros(0, dtype=np.int64), *(committee.classes for committee in committees)])
    place = {int(node): slot for slot, node in enumerate(nodes)}
    host = {ALWAYS: ALWAYS} | place
    for node, other in zip(merged.tolist(), merged_with.tolist(), strict=True):
        host[node] = host[other]
    met_after: dict[int, list[int]] = {slot: [] for slot in range(ALWAYS, len(nodes))}
    for number, committee in enumerate(committees):
        met_after[host[committee.node]].append(number)
    below = [met_after[slot] for slot in range(len(nodes))]
    arrays = (
        offsets_of([len(part[0]) for part in folded]),
        _joined([np.searchsorted(columns, part[0]) for part in folded], np.int32),
        offsets_of([len(committee.classes) for committee in committees]),
        _joined([part[1] for part in folded], np.float64),
        offsets_of([part[2].size for part in folded]),
        _joined([part[2].ravel() for part in folded], np.float64),
        np.asarray(met_after[ALWAYS], dtype=np.int32),
        offsets_of([len(part) for part in below]),
        _joined([np.asarray(part) for part in below], np.int32),
    )
    return Cascade(columns, nodes, merged, np.asarray([host[int(node)] for node in merged], dtype=np.int64), arrays)


def _joined(parts: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=dtype), *(part.astype(dtype) for part in parts)])
