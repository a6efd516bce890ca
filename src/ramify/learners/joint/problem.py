"""Large margins over joint answers: what competes for a document, and by what margin its own answer must win.

    min over W   ½ tr(Wᵀ M W) + Σ_i cost_i max over answers a of [margin(y_i, a) + φ_a·W x_i − φ_own·W x_i]

W is units × features; an answer a is a vector φ_a over the units. The dual shares out the cost of every document over its
answers, α_ia ≥ 0 with Σ_a α_ia = cost_i:

    max over α   Σ_ia α_ia margin(y_i, a) − ½ tr(Wᵀ M W),    W = M⁻¹ Σ_ia α_ia (φ_own − φ_a) x_iᵀ
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import InputError
from ramify.learners.joint.twins import unite
from ramify.learners.linear.problem import Costs
from ramify.learners.linear.rows import Rows, arrange_rows, take_rows
from ramify.learners.linear.weights import Weights

Floats = NDArray[np.float64]
MOST_NUMBERS = 1 << 29  # that a problem may hold at once, of 8 bytes each


@dataclass(frozen=True, slots=True)
class Answers:
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
    answers: Answers
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


def pose(X: csr_array, own: csr_array, answers: Answers, n_units: int, costs: Costs, bias: bool) -> Problem:
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
