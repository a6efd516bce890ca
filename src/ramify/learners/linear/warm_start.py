"""Dual variables stored with a model, from which a later training starts when documents or classes have changed.

The duality gap certifies a solution wherever its dual variables started; good ones only save rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from ramify.errors import ModelError
from ramify.learners.linear.problem import Pairs, Problem, all_others, pair_up
from ramify.learners.linear.weights import are_finite

Ints = NDArray[np.int64]
NAMES = ("dual_offsets", "dual_documents", "dual_values")


@dataclass(frozen=True, slots=True)
class Dual:
    """Class by class, the documents of its active pairs and their α y: above 0 for positive documents."""

    offsets: Ints
    documents: NDArray[np.int32]
    values: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, pairs: Pairs, order: Ints) -> Dual:
        """From the pairs of a solution, whose document k is number order[k]."""
        lengths = np.diff(pairs.offsets)
        place = np.arange(len(pairs.documents)) - np.repeat(pairs.offsets[:-1], lengths)
        sign = np.where(place < np.repeat(pairs.n_positive, lengths), np.float32(1), np.float32(-1))
        return cls(pairs.offsets, order[pairs.documents].astype(np.int32), sign * pairs.alphas)

    def numbered(self, place: Ints) -> Dual:
        """Renumber documents; drops those with a number below 0."""
        documents = place[self.documents]
        kept = documents >= 0
        ends = np.concatenate([[0], np.cumsum(kept)])[self.offsets].astype(np.int64)
        return Dual(ends, documents[kept].astype(np.int32), self.values[kept])

    def of_classes(self, old: Ints) -> Dual:
        """Renumber classes. old: the old number of every class, -1 for a new one."""
        lengths = np.where(old >= 0, np.diff(self.offsets)[old], 0)
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        taken = np.repeat(self.offsets[old] - ends[:-1], lengths) + np.arange(ends[-1])
        return Dual(ends, self.documents[taken], self.values[taken])

    @classmethod
    def none(cls) -> Dual:
        """Without classes."""
        return cls(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))

    def followed_by(self, other: Dual) -> Dual:
        """These classes, then those of another."""
        offsets = np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]])
        documents, values = (self.documents, other.documents), (self.values, other.values)
        return Dual(offsets, np.concatenate(documents), np.concatenate(values))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays for a model file."""
        return dict(zip(NAMES, (self.offsets, self.documents, self.values), strict=True))

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], n_classes: int) -> Dual:
        """From the arrays of a model file, after checking types, shapes and ranges."""
        made = cls(*(arrays[name] for name in NAMES))
        typed = [array.dtype.name for array in (made.offsets, made.documents, made.values)] == ["int64", "int32", "float32"]
        if not typed or not 0 < made.offsets.size <= n_classes + 1 or made.documents.shape != made.values.shape:
            raise ModelError("the dual variables do not fit the classes of the linear model; train the model again.")
        fits = made.offsets[0] == 0 and made.offsets[-1] == len(made.values) and np.all(np.diff(made.offsets) >= 0)
        if not fits or not are_finite(made.values) or np.any(made.documents < 0):
            raise ModelError("the dual variables are not ones that the linear model writes; train the model again.")
        return made


def resume(dual: Dual, problem: Problem, complete: bool) -> Pairs:
    """The pairs that were active, or all pairs if complete, with their dual variables.

    Those of a document that has become positive or negative start at 0; all are clipped to their bounds.
    """
    n_docs, own = len(problem.rows), problem.own
    keys = np.repeat(np.arange(len(dual)), np.diff(dual.offsets)) * n_docs + dual.documents
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], dual.values[order]
    mine = np.repeat(np.arange(own.shape[1]), np.diff(own.indptr)) * n_docs + own.indices
    if complete:
        others = all_others(own)
    else:
        new = np.setdiff1d(keys, mine)  # rising numbers class · documents + document
        ends = np.searchsorted(new, np.arange(own.shape[1] + 1) * n_docs)
        others = csc_array((np.ones(len(new), dtype=bool), (new % n_docs).astype(np.int32), ends), shape=own.shape)
    pairs = pair_up(own, others, problem.costs.positive, problem.costs.negative)
    lengths = np.diff(pairs.offsets)
    classes = np.repeat(np.arange(len(pairs)), lengths)
    is_own = np.arange(len(classes)) - pairs.offsets[classes] < pairs.n_positive[classes]
    if len(keys):
        asked = classes * n_docs + pairs.documents
        found = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        known = np.where(keys[found] == asked, values[found], 0) * np.where(is_own, 1, -1)
        most = np.where(is_own, pairs.cost_positive[classes], pairs.cost_negative[classes])
        bound = most * problem.costs.documents[pairs.documents]
        pairs.alphas[:] = np.clip(known, 0, np.inf if problem.settings.loss == "squared_hinge" else bound)
    return pairs
