"""Documents as the kernels of linear models take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class Rows:
    """Documents in compressed rows; features stand in order of falling document frequency, so that busy ones lie together.

    offsets, features, values: the rows; with a bias, feature 0 is 1 in every row.
    squared_norms: ‖x‖² of every row.
    place: the number here of every feature of the documents as they came.
    """

    offsets: NDArray[np.int64]
    features: NDArray[np.int32]
    values: NDArray[np.float32]
    squared_norms: NDArray[np.float32]
    place: NDArray[np.int32]
    has_bias: bool

    def __len__(self) -> int:
        return len(self.squared_norms)

    @property
    def n_features(self) -> int:
        """Features of the rows, the constant one of the bias included."""
        return len(self.place) + self.has_bias

    def of(self, documents: NDArray[np.int64]) -> Rows:
        """Some of the documents."""
        offsets, taken = take_rows(self.offsets, documents)
        norms = self.squared_norms[documents]
        return Rows(offsets, self.features[taken], self.values[taken], norms, self.place, self.has_bias)

    def matrix(self) -> csr_array:
        """Documents × features."""
        return csr_array((self.values, self.features, self.offsets), shape=(len(self), self.n_features))

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The first arguments of every kernel."""
        return self.offsets, self.features, self.values, self.squared_norms, self.n_features


def arrange_rows(X: csr_array, bias: bool = True) -> Rows:
    """Number features anew by falling document frequency, and put a constant 1 before every row for the bias."""
    n_docs, n_features = X.shape
    frequency = np.bincount(X.indices, minlength=n_features)
    place = np.empty(n_features, dtype=np.int32)
    place[np.argsort(-frequency, kind="stable")] = np.arange(bias, n_features + bias, dtype=np.int32)
    offsets = X.indptr.astype(np.int64)
    features, values = place[X.indices], X.data.astype(np.float32, copy=False)
    if bias:
        features, values = np.insert(features, offsets[:-1], 0), np.insert(values, offsets[:-1], 1)
        offsets = offsets + np.arange(n_docs + 1)
    return Rows(offsets, features, values, _squared_norms(offsets, values), place, bias)


def take_rows(offsets: NDArray[np.int64], rows: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of some compressed rows on their own, and where their entries stand among all."""
    lengths = np.diff(offsets)[rows]
    taken = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return taken, np.repeat(offsets[rows] - taken[:-1], lengths) + np.arange(taken[-1])


def _squared_norms(offsets: NDArray[np.int64], values: NDArray[np.float32]) -> NDArray[np.float32]:
    sums = np.concatenate([[0.0], np.cumsum(values.astype(np.float64) ** 2)])
    return np.asarray(sums[offsets[1:]] - sums[offsets[:-1]], dtype=np.float32)
