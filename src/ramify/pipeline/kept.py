"""The documents that a model learnt from, kept with it so that it can be updated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from ramify.errors import InputError, ModelError
from ramify.learners.linear.weights import are_finite

NAMES = ("offsets", "features", "values", "label_offsets", "labels")
TYPES = ("int64", "int32", "float32", "int64", "int32")


@dataclass(frozen=True, slots=True)
class KeptDocuments:
    """Documents as the learner saw them.

    X: documents × features. own: documents × nodes, their most specific labels.
    """

    X: csr_array
    own: csr_array

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def followed_by(self, X: csr_array, own: csr_array, columns: NDArray[np.int64] | None, nodes: NDArray[np.int64]) -> Self:
        """With more documents after them. columns, nodes: the numbers that features and nodes so far have among theirs."""
        mine = self.X if columns is None else _renumbered(self.X, columns, X.shape[1])
        labels = _renumbered(self.own, nodes, own.shape[1])
        return type(self)(csr_array(vstack([mine, X], format="csr")), csr_array(vstack([labels, own], format="csr")))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file keeps."""
        parts = (self.X.indptr, self.X.indices, self.X.data, self.own.indptr, self.own.indices)
        return {name: part.astype(kind, copy=False) for name, kind, part in zip(NAMES, TYPES, parts, strict=True)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], n_features: int, n_nodes: int) -> Self:
        """Make them of what was kept, after checking types, shapes and ranges."""
        offsets, features, values, label_offsets, labels = (arrays[name] for name in NAMES)
        typed = all(arrays[name].dtype.name == kind and arrays[name].ndim == 1 for name, kind in zip(NAMES, TYPES, strict=True))
        if not typed or len(offsets) != len(label_offsets) or len(features) != len(values) or not are_finite(values):
            raise ModelError("the documents that the model keeps are not such as it writes; train the model again.")
        _check_rows(offsets, features, n_features, "features")
        _check_rows(label_offsets, labels, n_nodes, "labels")
        ones = np.ones(len(labels), dtype=bool)
        X = csr_array((values, features, offsets), shape=(len(offsets) - 1, n_features))
        return cls(X, csr_array((ones, labels, label_offsets), shape=(len(offsets) - 1, n_nodes)))


def _renumbered(matrix: csr_array, columns: NDArray[np.int64], n_columns: int) -> csr_array:
    made = csr_array((matrix.data, columns[matrix.indices], matrix.indptr), shape=(matrix.shape[0], n_columns))
    made.sort_indices()
    return made


def _check_rows(offsets: NDArray[Any], columns: NDArray[Any], n_columns: int, what: str) -> None:
    fits = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(columns) and not np.any(offsets[1:] < offsets[:-1])
    if not fits or (len(columns) and (columns.min() < 0 or columns.max() >= n_columns)):
        raise ModelError(f"the {what} of the documents that the model keeps do not fit it; train the model again.")


def refuse_unkeepable(learner: Any) -> None:
    """Refuse to keep documents for a learner that could not learn the same from them once more."""
    if learner.get_params().get("class_weight") is not None:
        raise InputError("a model with class_weight cannot keep documents, since files do not hold the weights; leave one out.")
