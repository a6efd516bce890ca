"""The training problem of one committee: the documents of its node, and the classes to separate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import InputError
from ramify.features import TermSelector
from ramify.learners.boosting.committee import ABOVE_ROOTS, Committee, Floats, Ints
from ramify.native import Pattern, compact_columns_in_place, take_columns, take_rows, transpose_rows

MOST_BYTES = 8 << 30
MOST_WEIGHT = 1e100


@dataclass(frozen=True)
class Rows:
    """The items of each row, rising: those of row r are items[offsets[r]:offsets[r + 1]]."""

    offsets: NDArray[np.int64]
    items: NDArray[np.int32]
    n_items: int

    @classmethod
    def of(cls, matrix: csr_array) -> Rows:
        """The columns that a matrix stores in each row."""
        matrix.sort_indices()
        return cls(matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False), matrix.shape[1])

    @cached_property
    def pattern(self) -> Pattern:
        """The rows as kernels take them."""
        return Pattern(self.offsets, self.items, self.n_items)

    def take(self, rows: NDArray[np.int32], items: Ints | None = None) -> Rows:
        """Some of the rows; with `items`, only these, numbered by their places among them."""
        if items is None:
            offsets, taken = take_rows(self.pattern, rows)
            return Rows(offsets, taken, self.n_items)
        offsets, taken = take_columns(self.pattern, rows, items.astype(np.int32))
        return Rows(offsets, taken, len(items))

    def transposed(self) -> Rows:
        """The rows of each item."""
        offsets, rows = transpose_rows(self.pattern)
        return Rows(offsets, rows, len(self.offsets) - 1)

    def to_matrix(self) -> csr_array:
        """As a matrix of ones."""
        shape = (len(self.offsets) - 1, self.n_items)
        return csr_array((np.ones(len(self.items), dtype=np.float32), self.items, self.offsets), shape=shape)


@dataclass(frozen=True, slots=True)
class Problem:
    """Documents and classes to separate.

    node: whose documents they are. classes: nodes. terms, labels: the terms (of n_terms) and the classes of each document.
    weights: of the documents, above 0. votes: documents × classes, the sums of earlier rounds; None where there were none.
    """

    node: int
    classes: Ints
    terms: Rows
    n_terms: int
    labels: Rows
    weights: Floats
    votes: Floats | None

    def of(self, rows: NDArray[np.int32]) -> Problem:
        """The same with some of the documents."""
        votes = None if self.votes is None else self.votes[rows]
        terms, labels = self.terms.take(rows), self.labels.take(rows)
        return replace(self, terms=terms, labels=labels, weights=self.weights[rows], votes=votes)

    def compact(self) -> tuple[Ints, list[Pattern]]:
        """The terms that occur, and over these: terms of documents, documents of terms, and classes of documents.

        Refuses a problem whose sums do not fit into memory.
        """
        items = self.terms.items.copy()
        columns = compact_columns_in_place(items, self.n_terms).astype(np.int64)
        n_documents, n_classes, n_terms = len(self.weights), len(self.classes), len(columns)
        needed = 8 * (2 * n_terms * (n_classes + 3) + n_documents * n_classes * (1 if self.votes is None else 2))
        if needed > MOST_BYTES:
            raise InputError(
                f"boosting {n_classes:,} classes over {n_terms:,} terms and {n_documents:,} documents needs {needed / 1e9:.0f} "
                "GB; keep fewer terms (--select 2000), or use treeboost-mh, which boosts a few classes at a time."
            )
        terms = Rows(self.terms.offsets, items, n_terms)
        return columns, [terms.pattern, terms.transposed().pattern, self.labels.pattern]


@dataclass(frozen=True, slots=True)
class TermSelection:
    """How many terms each committee may use, and how they are selected; see :class:`~ramify.features.TermSelector`."""

    n_terms: int
    measure: str
    join: str

    def apply(self, problem: Problem) -> Problem:
        """A problem over the selected terms."""
        terms = problem.terms
        if not len(terms.items):
            return problem
        selector = TermSelector(self.n_terms, measure=self.measure, join=self.join)
        selector.fit(terms.to_matrix(), problem.labels.to_matrix())
        is_selected = np.zeros(problem.n_terms, dtype=bool)
        is_selected[selector.columns_] = True
        kept = is_selected[terms.items]
        ends = np.concatenate([[0], np.cumsum(kept)])[terms.offsets]
        return replace(problem, terms=Rows(ends, terms.items[kept], terms.n_items))


class Documents:
    """All documents and their labels, documents × nodes; gives the problem of any node."""

    def __init__(self, X: csr_array, Y: csr_array, weights: Floats) -> None:
        if weights.max(initial=0) > MOST_WEIGHT:
            raise InputError(f"a document weighs {weights.max():g}; give weights of about 1, and no more than {MOST_WEIGHT:g}.")
        self.terms, self.labels, self.weights = Rows.of(X), Rows.of(Y), weights
        self.n_terms, self.n_nodes = X.shape[1], Y.shape[1]
        self._of_node = self.labels.transposed()
        self._lengths = np.diff(X.indptr) + 1

    def at(self, node: int) -> NDArray[np.int32]:
        """The documents of a node with a positive weight."""
        if node == ABOVE_ROOTS:
            return np.flatnonzero(self.weights > 0).astype(np.int32)
        rows = self._of_node.items[self._of_node.offsets[node] : self._of_node.offsets[node + 1]]
        return rows[self.weights[rows] > 0]

    def work(self, node: int, n_classes: int) -> int:
        """The approximate work of a round at a node."""
        return int(self._lengths[self.at(node)].sum()) * n_classes

    def problem(self, so_far: Committee) -> Problem:
        """The training problem of a committee, with the votes of its rounds so far."""
        rows = self.at(so_far.node)
        terms, labels = self.terms.take(rows), self.labels.take(rows, so_far.classes)
        votes = so_far.sum_votes(terms.to_matrix()) if so_far.n_rounds else None
        return Problem(so_far.node, so_far.classes, terms, self.n_terms, labels, self.weights[rows], votes)
