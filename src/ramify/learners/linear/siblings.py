"""Documents of sibling classes and their products with each other, with which a group of siblings is settled at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from ramify.execution import Executor
from ramify.learners.linear.forest import Forest
from ramify.learners.linear.rows import Rows
from ramify.native import multiply_siblings

DOCUMENTS = 512  # of one group at most
SCORES = 1 << 17  # documents × classes of one group at most


@dataclass(frozen=True, slots=True)
class Siblings:
    """For every unit some documents of the classes right below it, and the square matrix of their products."""

    offsets: NDArray[np.int64]
    documents: NDArray[np.int32]
    product_offsets: NDArray[np.int64]
    products: NDArray[np.float32]

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arguments of the kernel that settles siblings."""
        return self.offsets, self.documents, self.product_offsets, self.products


def gather_siblings(rows: Rows, own: csc_array, forest: Forest, executor: Executor) -> Siblings:
    """Choose the documents of every group, evenly from its classes, and multiply them with each other."""
    chosen: list[NDArray[np.int32]] = [np.zeros(0, dtype=np.int32)] * len(forest)
    for unit, classes in _groups(forest).items():
        if len(classes) > 1:
            most = min(DOCUMENTS, SCORES // len(classes)) // len(classes)
            each = [own.indices[own.indptr[k] : own.indptr[k + 1]][:most] for k in classes]
            chosen[unit] = np.unique(np.concatenate(each)).astype(np.int32)
    lengths = np.asarray([len(documents) for documents in chosen])
    offsets, product_offsets = _offsets(lengths), _offsets(lengths**2)
    documents = np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.int32)
    products = np.empty(product_offsets[-1], dtype=np.float32)

    def work(first: int) -> None:
        last = min(first + 16, len(forest))
        multiply_siblings(*rows.arrays, offsets, documents, product_offsets, first, last, products)

    for _ in executor.map(work, range(0, len(forest), 16)):
        pass
    return Siblings(offsets, documents, product_offsets, products)


def _groups(forest: Forest) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for parent, number in zip(forest.parent.tolist(), forest.class_of.tolist(), strict=True):
        if parent >= 0 and number >= 0:
            groups.setdefault(parent, []).append(number)
    return groups


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
