"""What one committee learns from: some documents, and the classes among which it is to tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from ramify.errors import InputError
from ramify.learners.boosting.committee import Committee, Floats, Ints

ABOVE_ROOTS = -1
MOST_BYTES = 8 << 30
MOST_WEIGHT = 1e100


@dataclass(frozen=True, slots=True)
class Problem:
    """Documents and classes to tell apart.

    node: at which they are. classes: the nodes that are the classes. X: documents × terms, of which only the places of the
    non-zeros count. labels: documents × classes. weights: of the documents, above 0. votes: documents × classes, what earlier
    rounds say of them, None where there were none.
    """

    node: int
    classes: Ints
    X: csr_array
    labels: csr_array
    weights: Floats
    votes: Floats | None

    def of(self, rows: Any) -> Problem:
        """The same with some of the documents only."""
        X, labels = csr_array(self.X[rows]), csr_array(self.labels[rows])
        votes = None if self.votes is None else self.votes[rows]
        return Problem(self.node, self.classes, X, labels, self.weights[rows], votes)

    def compact(self) -> tuple[Ints, list[NDArray[Any]]]:
        """The terms that occur, and the problem as the kernel takes it, over these terms."""
        columns, terms = np.unique(self.X.indices, return_inverse=True)
        pattern = np.ones(len(terms), dtype=np.int8), terms.ravel(), self.X.indptr
        by_term = csc_array(csr_array(pattern, shape=(self.X.shape[0], len(columns))))
        by_term.sort_indices()
        self.labels.sort_indices()
        matrices = (pattern[2], pattern[1]), (by_term.indptr, by_term.indices), (self.labels.indptr, self.labels.indices)
        arrays = [array for offsets, items in matrices for array in (offsets.astype(np.int64), items.astype(np.int32))]
        return columns.astype(np.int64), arrays

    def refuse_huge(self, n_terms: int) -> None:
        """Refuse a problem whose sums do not fit into memory."""
        n_documents, n_classes = self.labels.shape
        needed = 8 * (2 * n_terms * (n_classes + 3) + n_documents * n_classes * (1 if self.votes is None else 2))
        if needed > MOST_BYTES:
            size = f"{n_classes:,} classes over {n_terms:,} terms and {n_documents:,} documents"
            raise InputError(
                f"boosting {size} needs {needed / 1e9:.0f} GB; "
                "keep fewer terms (--select 2000), or use treeboost-mh, which boosts a few classes at a time."
            )


class Documents:
    """All documents and what they are labelled with, documents × nodes; gives the problem of any node."""

    def __init__(self, X: csr_array, Y: csr_array, weights: Floats) -> None:
        if weights.max(initial=0) > MOST_WEIGHT:
            raise InputError(f"a document weighs {weights.max():g}; give weights of about 1, and no more than {MOST_WEIGHT:g}.")
        self.X, self.Y, self.weights = X, Y, weights
        self._by_node, self._lengths = csc_array(Y), np.diff(X.indptr) + 1

    def at(self, node: int) -> NDArray[np.integer[Any]]:
        """The documents of a node that weigh something."""
        if node == ABOVE_ROOTS:
            return np.flatnonzero(self.weights > 0)
        rows = self._by_node.indices[self._by_node.indptr[node] : self._by_node.indptr[node + 1]]
        return np.sort(rows[self.weights[rows] > 0])

    def work(self, node: int, n_classes: int) -> int:
        """How much a round at a node has to look at, more or less."""
        return int(self._lengths[self.at(node)].sum()) * n_classes

    def problem(self, so_far: Committee) -> Problem:
        """The documents of a committee's node, and which of its classes each of them has."""
        rows = self.at(so_far.node)
        X, labels = csr_array(self.X[rows]), csr_array(csr_array(self.Y[rows])[:, so_far.classes])
        votes = so_far.sum_votes(X) if so_far.n_rounds else None
        return Problem(so_far.node, so_far.classes, X, labels, self.weights[rows], votes)
