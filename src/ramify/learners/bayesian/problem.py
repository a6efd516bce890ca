"""The model and its data: softmax regression whose weights are regularized towards those of the node above.

    y_i ~ softmax over classes k of w_k·x_i,      w_u ~ N(w_above(u), 1/α_u), around 0 for a top unit,      α ~ Gamma(a, b)

u runs over the units of a :class:`Forest`: nodes with documents at or below them, classes among them. Units of a group share
their α, or one α per feature. The variational posterior is q(W) q(α), products of N(μ_u, Ψ_u) and of Gamma(â, b̂); the
denominator of the softmax is bounded as in Bouchard 2007, with one β per document and one ξ per document and class:

    ln Σ_k e^z_k ≤ β + Σ_k (z_k − β − ξ_k)/2 + λ(ξ_k) ((z_k − β)² − ξ_k²) + ln(1 + e^ξ_k),     λ(ξ) = tanh(ξ/2) / 4ξ

s_i is the weight of a document. Source: Gopal, Yang, Bai & Niculescu-Mizil 2012, sections 2 and 3: their M1 is one α per
feature shared by siblings, M2 one α shared by siblings, M3 one α per node. Documents are a dense table, with full covariances
Ψ, or sparse rows, with diagonal ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.learners.linear.taxonomy_ties import Forest
from ramify.native import DoubleRows, multiply_rows_in_place
from ramify.parallel import Executor

Floats = NDArray[np.float64]
BLOCK = 1 << 16  # non-zeros of one part
WIDTH = 32  # classes that sparse rows are multiplied with at a time
ROWS, CLASSES = 1 << 11, 16  # of a table in one part


@dataclass(frozen=True, slots=True)
class DenseDocuments:
    """A dense table; Ψ is full."""

    X: Floats
    executor: Executor

    @property
    def shape(self) -> tuple[int, int]:
        """Documents, and features."""
        return self.X.shape

    def score(self, W: Floats) -> Floats:
        """w_k·x of every document and class."""
        scores = np.empty((len(self.X), len(W)))
        parts = cut(len(self.X), ROWS)
        run_parts(self.executor, lambda part: np.matmul(self.X[part], W.T, out=scores[part]), parts)
        return scores

    def sum_by_class(self, T: Floats) -> Floats:
        """Σ_i t_ik x_i of every class."""
        sums = np.empty((T.shape[1], self.X.shape[1]))
        parts = cut(T.shape[1], CLASSES)
        run_parts(self.executor, lambda part: np.matmul(T[:, part].T, self.X, out=sums[part]), parts)
        return sums

    def squared_norms(self) -> Floats:
        """‖x‖² of every document."""
        return np.asarray(np.einsum("ij,ij->i", self.X, self.X))

    def second_moments(self, counts: Floats) -> Floats:
        """Σ_i c_ik x_i x_iᵀ of every class."""
        tables = np.empty((counts.shape[1], self.X.shape[1], self.X.shape[1]))

        def work(part: slice) -> None:
            scaled = self.X * np.sqrt(counts[:, part])
            np.matmul(scaled.T, scaled, out=tables[part.start])

        run_parts(self.executor, work, cut(len(tables), 1))
        return tables

    def score_variances(self, tables: Floats) -> Floats:
        """x_i'Ψ_k x_i of every document and class."""
        variances = np.empty((len(self.X), len(tables)))

        def work(part: slice) -> None:
            variances[:, part.start] = np.einsum("ij,ij->i", self.X @ tables[part.start], self.X)

        run_parts(self.executor, work, cut(len(tables), 1))
        return np.maximum(variances, 0.0)


@dataclass(frozen=True, slots=True)
class SparseDocuments:
    """Compressed rows, and the same by feature; Ψ is diagonal."""

    rows: csr_array
    by_feature: csr_array
    executor: Executor

    @classmethod
    def of(cls, X: csr_array, executor: Executor) -> SparseDocuments:
        """Store the rows and their transpose."""
        rows = csr_array(X, dtype=np.float64)
        return cls(rows, rows.T.tocsr(), executor)

    @property
    def shape(self) -> tuple[int, int]:
        """Documents, and features."""
        n_documents, n_features = self.rows.shape
        return n_documents, n_features

    def score(self, W: Floats) -> Floats:
        """w_k·x of every document and class."""
        return self._multiply(self.rows, self.rows.data, np.ascontiguousarray(W.T))

    def sum_by_class(self, T: Floats) -> Floats:
        """Σ_i t_ik x_i of every class."""
        return np.ascontiguousarray(self._multiply(self.by_feature, self.by_feature.data, T).T)

    def squared_norms(self) -> Floats:
        """‖x‖² of every document."""
        return np.asarray(self.rows.power(2).sum(axis=1)).ravel()

    def second_moments(self, counts: Floats) -> Floats:
        """Σ_i c_ik x_ij² of every class and feature."""
        return np.ascontiguousarray(self._multiply(self.by_feature, self.by_feature.data**2, counts).T)

    def score_variances(self, tables: Floats) -> Floats:
        """Σ_j ψ_kj x_ij² of every document and class."""
        return self._multiply(self.rows, self.rows.data**2, np.ascontiguousarray(tables.T))

    def _multiply(self, rows: csr_array, values: Floats, dense: Floats) -> Floats:
        """WIDTH classes at a time, so that the rows of frequent features stay in the cache."""
        narrow = (dense[:, first : first + WIDTH] for first in range(0, dense.shape[1], WIDTH))
        return np.hstack([self._multiply_some(rows, values, np.ascontiguousarray(some)) for some in narrow])

    def _multiply_some(self, rows: csr_array, values: Floats, dense: Floats) -> Floats:
        products = np.empty((rows.shape[0], dense.shape[1]))
        offsets, columns = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)

        def multiply(part: slice) -> None:
            some = DoubleRows(offsets[part.start : part.stop + 1], columns, values, len(dense))
            multiply_rows_in_place(some, dense, products[part])

        run_parts(self.executor, multiply, even_parts(offsets, BLOCK))
        return products


def run_parts(executor: Executor, work: Callable[[slice], object], parts: list[slice]) -> None:
    """Run work on every part in parallel."""
    for _ in executor.map(work, parts):
        pass


def cut(n: int, size: int) -> list[slice]:
    """Slices of n items, of a size each."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def even_parts(offsets: NDArray[np.int64], size: int) -> list[slice]:
    """Slices of rows with about equally many entries.

    >>> even_parts(np.asarray([0, 5, 9, 10, 30]), 10)
    [slice(0, 3, None), slice(3, 4, None)]
    """
    n_parts = max(1, int(offsets[-1]) // size)
    cuts = np.searchsorted(offsets, np.linspace(0, offsets[-1], n_parts + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], cuts, [len(offsets) - 1]]))
    return [slice(int(first), int(last)) for first, last in pairwise(edges)]


Documents = DenseDocuments | SparseDocuments
PRECISIONS = ("node", "siblings", "features")


@dataclass(frozen=True, slots=True)
class Groups:
    """Which units share their α: the group of every unit, how many units each has, and whether there is one α per feature."""

    of_unit: NDArray[np.int64]
    sizes: NDArray[np.int64]
    per_feature: bool

    @classmethod
    def of(cls, forest: Forest, precisions: str) -> Groups:
        """One group a unit, or one for the units below the same unit; the top units are siblings of each other."""
        n = len(forest)
        of_unit = np.arange(n) if precisions == "node" else np.unique(forest.parent, return_inverse=True)[1].reshape(n)
        return cls(of_unit.astype(np.int64), np.bincount(of_unit), precisions == "features")

    def add_up(self, squares: Floats) -> Floats:
        """The sums over each group, groups × features or groups × 1, of numbers given as units × features."""
        by_unit = squares if self.per_feature else squares.sum(axis=1, keepdims=True)
        sums = np.zeros((len(self.sizes), by_unit.shape[1]))
        for group, row in zip(self.of_unit.tolist(), by_unit, strict=True):
            sums[group] += row
        return sums

    def governed(self, n_features: int) -> Floats:
        """How many weights an α of each group governs, groups × 1."""
        return np.asarray(self.sizes[:, None] * (1.0 if self.per_feature else n_features), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Problem:
    """Documents, the class and the weight s of each, the units, and the prior on α: its shape a and rate b, by group."""

    documents: Documents
    labels: NDArray[np.int64]
    weights: Floats
    forest: Forest
    groups: Groups
    shape: Floats
    rate: Floats

    @property
    def n_features(self) -> int:
        """Features, the constant one of the bias included."""
        return self.documents.shape[1]

    @property
    def class_units(self) -> NDArray[np.intp]:
        """The unit of every class."""
        return np.flatnonzero(self.forest.class_of >= 0)

    def from_above(self, table: Floats) -> Floats:
        """The row of the unit above each, 0 above a top unit."""
        return np.where(self.forest.parent[:, None] >= 0, table[self.forest.parent], 0.0)

    def add_below(self, table: Floats) -> Floats:
        """The sum over the units right below each."""
        sums = np.zeros(table.shape)
        for unit, above in enumerate(self.forest.parent.tolist()):
            if above >= 0:
                sums[above] += table[unit]
        return sums

    def prior_gradient(self, alpha: Floats, table: Floats) -> Floats:
        """The gradient of ½ Σ_u α_u ‖w_u − w_above(u)‖², units × features."""
        change = alpha * (table - self.from_above(table))
        return change - self.add_below(change)
