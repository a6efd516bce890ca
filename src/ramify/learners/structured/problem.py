"""Documents that are the same are one document with the sum of their costs, in an order that is theirs alone.

So a problem does not depend on the order in which documents came, nor on whether one came twice or with twice the weight.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import InputError
from ramify.learners.linear.problem import Costs, Rows, arrange_rows, take_rows
from ramify.learners.linear.weights import Weights

MIXERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # odd, with bits all over: products spread every bit of a word


def unite(X: csr_array, labels: NDArray[np.int32], costs: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """One of each group of equal documents with the same label, and the cost of the group; none that costs nothing.

    >>> unite(csr_array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]]), np.asarray([0, 1, 0]), np.asarray([1.0, 1.0, 3.0]))[1]
    array([4., 1.])
    """
    paid = np.flatnonzero(costs > 0)
    order = paid[np.lexsort((row_codes(X)[paid], labels[paid]))]
    begins = np.flatnonzero(_differ_from_last(X, labels, order))
    return order[begins], np.add.reduceat(costs[order], begins) if len(begins) else np.zeros(0)


def row_codes(X: csr_array) -> NDArray[np.uint64]:
    """A number for every row that depends on its features and values alone; different rows rarely share it."""
    words = (X.indices.astype(np.uint64) << np.uint64(32)) | X.data.astype(np.float32).view(np.uint32)
    for mixer in MIXERS:
        words = (words ^ (words >> np.uint64(31))) * np.uint64(mixer)
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(words, dtype=np.uint64)])
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


def _differ_from_last(X: csr_array, labels: NDArray[np.int32], order: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each document, in order, is another than the one before."""
    codes, differ = row_codes(X), np.ones(len(order), dtype=bool)
    alike = (codes[order[1:]] == codes[order[:-1]]) & (labels[order[1:]] == labels[order[:-1]])
    for k in np.flatnonzero(alike).tolist():
        a, b = (slice(X.indptr[d], X.indptr[d + 1]) for d in (order[k], order[k + 1]))
        same = np.array_equal(X.indices[a], X.indices[b]) and np.array_equal(X.data[a], X.data[b])
        differ[k + 1] = not same
    return differ


# --------------------------------------------------------------------------------------------------------------
# Large margins over joint answers: what competes for a document, and by what margin its own answer must win.
#
#     min over W   ½ tr(Wᵀ M W) + Σ_i cost_i max over answers a of [margin(y_i, a) + φ_a·W x_i − φ_own·W x_i]
#
# W is units × features; an answer a is a vector φ_a over the units. The dual shares out the cost of every document over its
# answers, α_ia ≥ 0 with Σ_a α_ia = cost_i:
#
#     max over α   Σ_ia α_ia margin(y_i, a) − ½ tr(Wᵀ M W),    W = M⁻¹ Σ_ia α_ia (φ_own − φ_a) x_iᵀ


Floats = NDArray[np.float64]
MOST_NUMBERS = 1 << 29  # that a problem may hold at once, of 8 bytes each


@dataclass(frozen=True, slots=True)
class Outputs:
    """The answers that compete, label by label.

    offsets, answers, margins: for every label its answers and their margins, its own first, with margin 0.
    unit_offsets, units, signs: φ of every answer.
    """

    offsets: NDArray[np.int64]
    answers: NDArray[np.int32]
    margins: Floats
    unit_offsets: NDArray[np.int64]
    units: NDArray[np.int32]
    signs: Floats

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As kernels take them."""
        return self.offsets, self.answers, self.margins, self.unit_offsets, self.units, self.signs

    def vectors(self, n_units: int) -> csr_array:
        """φ, answers × units."""
        return csr_array((self.signs, self.units, self.unit_offsets), shape=(len(self.unit_offsets) - 1, n_units))

    def products(self, n_units: int) -> Floats:
        """φ_a·φ_b, answers × answers."""
        phi = self.vectors(n_units)
        return np.asarray((phi @ phi.T).toarray())


@dataclass(frozen=True, slots=True)
class Problem:
    """Documents, the label and the cost of each, and the answers of every label.

    alpha_offsets: where the shares of every document begin. margins: the margin of every share.
    """

    rows: Rows
    labels: NDArray[np.int32]
    costs: Floats
    answers: Outputs
    n_units: int
    alpha_offsets: NDArray[np.int64] = field(init=False)
    margins: Floats = field(init=False)

    def __post_init__(self) -> None:
        offsets, places = take_rows(self.answers.offsets, self.labels)
        object.__setattr__(self, "alpha_offsets", offsets)
        object.__setattr__(self, "margins", self.answers.margins[places])

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As kernels take them."""
        rows = self.rows
        squared = rows.squared_norms.astype(np.float64)
        return rows.offsets, rows.features, rows.values, squared, self.labels, *self.answers.arrays


def pose(X: csr_array, own: csr_array, answers: Outputs, n_units: int, costs: Costs, bias: bool) -> Problem:
    """The problem of documents with one label each (own: documents × labels)."""
    labels = own.indices.astype(np.int32)
    paid = costs.positive[labels].astype(np.float64) * costs.documents  # what its class costs, times its own weight
    kept, paid = unite(X, labels, paid)
    return Problem(arrange_rows(X[kept], bias), labels[kept], paid, answers, n_units)


def weights_of(W: Floats, rows: Rows, parent: NDArray[np.int32], class_units: NDArray[np.int64]) -> Weights:
    """Weights (features of the rows × units) as linear learners keep them, in the features as they came."""
    features = csr_array(W[rows.place].T.astype(np.float32))
    bias = W[0].copy() if rows.has_bias else np.zeros(W.shape[1])
    return Weights(features, bias, parent, class_units)


def refuse_too_large(n_features: int, n_units: int, n_shares: int, what: str, instead: str, n_copies: int = 2) -> None:
    """Refuse a problem that no memory would hold; it works on all its weights and shares at once.

    n_copies: of the weights, that are there at the same time.
    """
    needed = n_copies * n_features * n_units + 3 * n_shares
    if needed > MOST_NUMBERS:
        raise InputError(
            f"{what} would hold weights for {n_units:,} units × {n_features:,} features and {n_shares:,} shares of documents "
            f"at once, about {needed * 8 / 1e9:,.0f} GB, and takes up to {MOST_NUMBERS * 8 / 1e9:,.0f}; choose fewer terms, or "
            f"use {instead}, which scales."
        )
