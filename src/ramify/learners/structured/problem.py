"""A structured support vector machine: documents, the outputs that compete for each, and their margins.

    min over W   ½ tr(Wᵀ M W) + Σ_i cost_i max over outputs a of [margin(y_i, a) + φ_a·W x_i − φ_own·W x_i]

W is units × features; an output a is a vector φ_a over the units. The dual distributes the cost of every document over its
outputs, α_ia ≥ 0 with Σ_a α_ia = cost_i:

    max over α   Σ_ia α_ia margin(y_i, a) − ½ tr(Wᵀ M W),    W = M⁻¹ Σ_ia α_ia (φ_own − φ_a) x_iᵀ

Source: margin rescaling of Tsochantaridis et al. 2005. Duplicates are merged into one document with the sum of their costs, in
an order of their own, so that the solution depends neither on the order of documents nor on whether one came twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify import native
from ramify.errors import InputError
from ramify.learners.linear.problem import Costs, Rows, arrange_rows, take_rows
from ramify.learners.linear.weights import Weights

MIXERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # odd multipliers that diffuse every bit of a word
MOST_NUMBERS = 1 << 29  # of 8 bytes each, that a problem may hold at once

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs that compete, by label.

    offsets, outputs, margins: for every label its outputs and their margins, its own first with margin 0.
    unit_offsets, units, signs: φ of every output.
    """

    offsets: NDArray[np.int64]
    outputs: NDArray[np.int32]
    margins: Floats
    unit_offsets: NDArray[np.int64]
    units: NDArray[np.int32]
    signs: Floats

    def vectors(self, n_units: int) -> csr_array:
        """φ, outputs × units."""
        return csr_array((self.signs, self.units, self.unit_offsets), shape=(len(self.unit_offsets) - 1, n_units))

    def products(self, n_units: int) -> Floats:
        """φ_a·φ_b, outputs × outputs."""
        phi = self.vectors(n_units)
        return np.asarray((phi @ phi.T).toarray())


@dataclass(frozen=True, slots=True)
class Problem:
    """Documents, the label and the cost of each, and the outputs of every label.

    alpha_offsets: where the dual variables of every document begin. margins: one per dual variable.
    """

    rows: Rows
    labels: NDArray[np.int32]
    costs: Floats
    outputs: Outputs
    n_units: int
    alpha_offsets: NDArray[np.int64] = field(init=False)
    margins: Floats = field(init=False)

    def __post_init__(self) -> None:
        offsets, places = take_rows(self.outputs.offsets, self.labels)
        object.__setattr__(self, "alpha_offsets", offsets)
        object.__setattr__(self, "margins", self.outputs.margins[places])

    def __len__(self) -> int:
        return len(self.labels)

    def to_native(self) -> native.StructuredProblem:
        """The problem as kernels take it; to be made once for many calls."""
        rows, outputs = self.rows, self.outputs
        phi = native.DoubleRows(outputs.unit_offsets, outputs.units, outputs.signs, self.n_units)
        competing = native.Pattern(outputs.offsets, outputs.outputs, len(outputs.unit_offsets) - 1)
        documents, squared = rows.block(slice(0, len(rows))), rows.squared_norms.astype(np.float64)
        return native.StructuredProblem(documents, squared, self.labels, competing, outputs.margins, phi)


def build_problem(X: csr_array, own: csr_array, outputs: Outputs, n_units: int, costs: Costs, bias: bool) -> Problem:
    """The problem of documents with one label each (own: documents × labels)."""
    labels = own.indices.astype(np.int32)
    by_document = costs.positive[labels].astype(np.float64) * costs.documents  # the cost of its class, times its own weight
    rows, by_document = merge_duplicates(X, labels, by_document)
    return Problem(arrange_rows(X[rows], bias), labels[rows], by_document, outputs, n_units)


def merge_duplicates(
    X: csr_array, labels: NDArray[np.int32], costs: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """One of each group of equal documents with the same label, and the cost of the group; documents without cost are dropped.

    >>> merge_duplicates(csr_array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]]), np.asarray([0, 1, 0]), np.asarray([1.0, 1.0, 3.0]))[1]
    array([4., 1.])
    """
    positive, hashes = np.flatnonzero(costs > 0), row_hashes(X)
    order = positive[np.lexsort((hashes[positive], labels[positive]))]
    is_first = np.ones(len(order), dtype=bool)
    alike = (hashes[order[1:]] == hashes[order[:-1]]) & (labels[order[1:]] == labels[order[:-1]])
    for k in np.flatnonzero(alike).tolist():
        a, b = (slice(X.indptr[d], X.indptr[d + 1]) for d in (order[k], order[k + 1]))
        is_first[k + 1] = not (np.array_equal(X.indices[a], X.indices[b]) and np.array_equal(X.data[a], X.data[b]))
    begins = np.flatnonzero(is_first)
    return order[begins], np.add.reduceat(costs[order], begins) if len(begins) else np.zeros(0)


def row_hashes(X: csr_array) -> NDArray[np.uint64]:
    """A hash of the features and values of every row."""
    words = (X.indices.astype(np.uint64) << np.uint64(32)) | X.data.astype(np.float32).view(np.uint32)
    for mixer in MIXERS:
        words = (words ^ (words >> np.uint64(31))) * np.uint64(mixer)
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(words, dtype=np.uint64)])
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


def to_weights(W: Floats, rows: Rows, parent: NDArray[np.int32], class_units: NDArray[np.int64]) -> Weights:
    """W (features of the rows × units) as linear learners store weights, over the original features."""
    features = csr_array(W[rows.place].T.astype(np.float32))
    bias = W[0].copy() if rows.has_bias else np.zeros(W.shape[1])
    return Weights(features, bias, parent, class_units)


def refuse_too_large(n_features: int, n_units: int, n_alphas: int, what: str, instead: str, n_copies: int = 2) -> None:
    """Refuse a problem that does not fit into memory. n_copies: of the weights, that exist at the same time."""
    needed = n_copies * n_features * n_units + 3 * n_alphas
    if needed > MOST_NUMBERS:
        raise InputError(
            f"{what} would hold weights for {n_units:,} units × {n_features:,} features and {n_alphas:,} dual variables "
            f"at once, about {needed * 8 / 1e9:,.0f} GB, and takes up to {MOST_NUMBERS * 8 / 1e9:,.0f}; choose fewer terms, or "
            f"use {instead}, which scales."
        )
