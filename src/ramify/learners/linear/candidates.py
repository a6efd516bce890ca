"""Candidate classes of a document, found by the most distinctive features of each class.

The signature of a class holds the features whose mean weight in its documents exceeds the mean of all documents most.
Signatures are stored by feature as an inverted index: a document is compared only with classes that share a distinctive feature
with it, so a lookup does not slow down with the number of classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, vstack

from ramify import native
from ramify.errors import ModelError
from ramify.learners.linear.problem import Rows, take_rows
from ramify.parallel import Executor, row_blocks
from ramify.persistence import are_finite, are_indices, are_offsets

SIGNATURE = 100
LONGEST = 500  # classes listed for a feature at most
CANDIDATES = (5, 10, 20)  # numbers of candidates that the fast mode tries
RECALL = 0.99  # of training labels that should be among the candidates
SAMPLE = 2000  # documents on which recall is measured
CLASSES_PER_BLOCK, DOCUMENTS_PER_BLOCK = 512, 4096


@dataclass(frozen=True)
class Signatures:
    """By feature: the classes that have it in their signatures, and its weight there."""

    offsets: NDArray[np.int64]
    classes: NDArray[np.int32]
    weights: NDArray[np.float32]
    n_classes: int

    @cached_property
    def rows(self) -> native.Rows:
        """Features × classes as kernels take them."""
        return native.Rows(self.offsets, self.classes, self.weights, self.n_classes)

    def in_original_order(self, place: NDArray[np.int32]) -> Signatures:
        """The same with features in the order of the given documents (place: of every feature in these rows)."""
        offsets, taken = take_rows(self.offsets, place)
        return Signatures(offsets, self.classes[taken], self.weights[taken], self.n_classes)

    def to_arrays(self, kind: str = "signature") -> dict[str, NDArray[Any]]:
        """Plain arrays from which :meth:`from_arrays` makes the same signatures."""
        return {f"{kind}_offsets": self.offsets, f"{kind}_classes": self.classes, f"{kind}_weights": self.weights}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, NDArray[Any]], n_features: int, n_classes: int, kind: str = "signature"
    ) -> Signatures:
        """Make signatures after checking types, shapes and ranges."""
        offsets, classes, weights = (arrays[f"{kind}_{name}"] for name in ("offsets", "classes", "weights"))
        typed = classes.dtype == np.int32 and weights.dtype == np.float32
        fits = classes.ndim == 1 and classes.shape == weights.shape
        if not typed or not fits or not are_offsets(offsets, n_features, len(classes)):
            raise ModelError("the signatures of the linear model do not fit its features; train the model again.")
        if not are_indices(classes, n_classes) or not are_finite(weights):
            raise ModelError(
                "the signatures of the linear model name classes that the model does not have; train the model again."
            )
        return cls(offsets, classes, weights, n_classes)


def learn_signatures(rows: Rows, own: csc_array, executor: Executor, placed: Any = None, size: int = SIGNATURE) -> Signatures:
    """Signatures of all classes (own: documents × classes). placed: the rows, if the executor has them already."""
    overall = np.bincount(rows.features, rows.values, minlength=rows.n_features) / max(1, len(rows))
    known = executor.place((rows if placed is None else placed, own, overall.astype(np.float32), size))
    blocks = row_blocks(own.shape[1], 1, CLASSES_PER_BLOCK)
    signatures = csr_array(vstack(list(executor.distribute(_sign_classes, known, blocks)), format="csr"))
    index = csc_array(signatures)
    if np.diff(index.indptr).max(initial=0) > LONGEST:  # of features that very many classes have, keep the largest weights
        kept = largest_of_rows(csr_array(index.T), LONGEST)
        kept.sort_indices()
        index = csc_array(kept.T)
    return Signatures(index.indptr.astype(np.int64), index.indices.astype(np.int32), index.data, own.shape[1])


def _sign_classes(known: tuple[Rows, csc_array, NDArray[np.float32], int], classes: slice) -> csr_array:
    """For some classes the features whose mean exceeds the mean of all documents most."""
    rows, own, overall, size = known
    mine = own[:, classes]
    counts = np.maximum(np.diff(mine.indptr), 1).astype(np.float32)
    means = csr_array(csr_array(mine.T).astype(np.float32) @ rows.matrix())
    means.data /= np.repeat(counts, np.diff(means.indptr))
    means.data -= overall[means.indices]
    kept = largest_of_rows(means, size)
    norms = np.sqrt(np.asarray(kept.multiply(kept).sum(axis=1))).ravel()
    kept.data /= np.repeat(np.maximum(norms, 1e-30), np.diff(kept.indptr))
    return kept


def largest_of_rows(matrix: csr_array, size: int) -> csr_array:
    """The `size` largest entries above zero of each row."""
    kept, ends = [], [0]
    for start, end in zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True):
        row = matrix.data[start:end]
        best = np.argpartition(row, -size)[-size:] if len(row) > size else np.arange(len(row))
        best = best[row[best] > 0]
        kept.append(start + best)
        ends.append(ends[-1] + len(best))
    places = np.concatenate(kept)
    return csr_array((matrix.data[places], matrix.indices[places], ends), shape=matrix.shape)


def count_candidates(rows: Rows, index: Signatures, own: csr_array, executor: Executor) -> int:
    """The smallest number of candidates that includes nearly all labels of the training documents."""
    documents = np.arange(0, len(rows), 1 + len(rows) // SAMPLE)
    some, theirs = rows.of(documents), own[documents]
    nothing = csr_array(theirs.shape, dtype=bool)
    for count in CANDIDATES:
        if find_candidates(some, index, nothing, count, executor).multiply(theirs).sum() >= RECALL * theirs.nnz:
            break
    return count


def find_candidates(
    rows: Rows, index: Signatures, own: csr_array, n_candidates: int, executor: Executor, placed: Any = None
) -> csr_array:
    """The candidate classes of every document, without its own (documents × classes).

    placed: the rows, if the executor has them already.
    """
    n_candidates = min(n_candidates, index.n_classes)
    mine = own.indptr.astype(np.int64), own.indices.astype(np.int32)
    known = executor.place((rows if placed is None else placed, index, mine, n_candidates))
    found = np.concatenate([
        np.empty((0, n_candidates), dtype=np.int32),
        *executor.distribute(_find_in_block, known, row_blocks(len(rows), 1, DOCUMENTS_PER_BLOCK)),
    ])  # fmt: skip
    there = found >= 0
    ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    classes = found[there]
    return csr_array((np.ones(len(classes), dtype=bool), classes, ends), shape=(len(rows), index.n_classes))


def _find_in_block(known: tuple[Rows, Signatures, tuple[Any, Any], int], block: slice) -> NDArray[np.int32]:
    """The candidates of some documents, -1 where there are fewer."""
    rows, index, (offsets, classes), n_candidates = known
    nearest = np.empty((block.stop - block.start, n_candidates), dtype=np.int32)
    start = np.zeros(index.n_classes, dtype=np.float32)
    own = native.Pattern(offsets[block.start : block.stop + 1], classes, index.n_classes)
    native.find_negative_candidates_in_place(rows.block(block), index.rows, start, own, nearest)
    return nearest
