"""Warm start: what a learner can reuse of an earlier one, when labels have changed or documents were added or removed.

Problems are matched by their documents, whatever their nodes are called now: two classifiers with the same positive and the
same negative documents are the same classifier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

Ints = NDArray[np.int64]
NEW = -1


@dataclass(frozen=True, slots=True)
class WarmStart:
    """An earlier learner, and its training documents.

    own: its documents × the nodes of its taxonomy, their most specific labels. documents: the number that each of them has now,
    -1 where it was removed. n_documents: how many there are now. leaves: nodes without documents that start with the weights of
    their parents, where a learner can do that.
    """

    learner: Any
    own: csr_array
    documents: Ints
    n_documents: int
    leaves: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def has_same_documents(self) -> bool:
        """Whether no document was added or removed."""
        return len(self.documents) == self.n_documents and bool(np.all(self.documents >= 0))

    def renumber(self, columns: csc_array) -> csc_array:
        """Earlier documents × anything, over the current documents; a column with removed documents becomes empty."""
        numbers = self.documents[columns.indices]
        removed = np.add.reduceat(np.append(numbers < 0, False), columns.indptr[:-1]) if columns.shape[1] else np.zeros(0)
        whole = (removed == 0) & (np.diff(columns.indptr) > 0)
        lengths = np.where(whole, np.diff(columns.indptr), 0)
        kept = np.repeat(whole, np.diff(columns.indptr))
        ends = np.concatenate([[0], np.cumsum(lengths)])
        ones = np.ones(int(ends[-1]), dtype=bool)
        made = csc_array((ones, numbers[kept], ends), shape=(self.n_documents, columns.shape[1]))
        made.sort_indices()
        return made

    def most_similar(self, were: csr_array, are: csr_array) -> Ints:
        """For every current class the earlier one with the most documents in common; -1 where there is none.

        were, are: earlier and current documents × classes.
        """
        there = np.flatnonzero(self.documents >= 0)
        shared = csr_array(csr_array(are[self.documents[there]].T).astype(np.int64) @ were[there].astype(np.int64))
        found = np.full(are.shape[1], NEW, dtype=np.int64)
        for k, (start, end) in enumerate(zip(shared.indptr[:-1].tolist(), shared.indptr[1:].tolist(), strict=True)):
            if end > start:
                found[k] = shared.indices[start + int(np.argmax(shared.data[start:end]))]
        return found


def match_columns(were: list[csc_array], are: list[csc_array]) -> Ints:
    """For every column of the current matrices the earlier one with the same documents in all of them; -1 where there is none.

    >>> old, new = csc_array([[1, 0], [0, 1]]), csc_array([[0, 1], [1, 1]])
    >>> match_columns([old], [new])
    array([ 1, -1])
    """
    known = {key: k for k, key in enumerate(_keys(were)) if key[0]}
    return np.asarray([known.get(key, NEW) for key in _keys(are)], dtype=np.int64)


def _keys(matrices: list[csc_array]) -> Iterator[tuple[bytes, ...]]:
    rows = [(matrix.indptr.tolist(), matrix.indices.astype(np.int32, copy=False)) for matrix in matrices]
    for k in range(matrices[0].shape[1]):
        yield tuple(indices[ends[k] : ends[k + 1]].tobytes() for ends, indices in rows)
