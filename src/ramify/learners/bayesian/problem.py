"""Softmax regression whose weights are drawn around those of the node above, and the bound on its evidence.

    y_i ~ softmax over classes k of w_k·x_i,      w_u ~ N(w_above(u), 1/α_u), around 0 for a top unit,      α ~ Gamma(a, b)

u goes over the units of a :class:`Forest`: nodes with documents at or below them, classes among them. Units of a group share
their α, or have one each a feature. The posterior is approximated by q(W) q(α), products of N(μ_u, Ψ_u) and of Gamma(â, b̂),
and the softmax's denominator by Bouchard's bound (2007), which has one β a document and one ξ a document and class:

    ln Σ_k e^z_k ≤ β + Σ_k (z_k − β − ξ_k)/2 + λ(ξ_k) ((z_k − β)² − ξ_k²) + ln(1 + e^ξ_k),     λ(ξ) = tanh(ξ/2) / 4ξ

Documents count s_i times. Source: Gopal, Yang, Bai & Niculescu-Mizil 2012, sections 2 and 3: their M1 is one α a feature
shared by siblings, M2 one α shared by siblings, M3 one α a node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramify.learners.bayesian.documents import Documents, Floats
from ramify.learners.linear.forest import Forest

PRECISIONS = ("node", "siblings", "features")


@dataclass(frozen=True, slots=True)
class Groups:
    """Which units share their α: the group of every unit, how many units each has, and whether there is one α a feature."""

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
        """How many numbers an α of each group governs, groups × 1."""
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

    @property
    def has_above(self) -> NDArray[np.bool_]:
        """Whether a unit has one above it."""
        return self.forest.parent >= 0

    def from_above(self, table: Floats) -> Floats:
        """The row of the unit above each, 0 above a top unit."""
        return np.where(self.has_above[:, None], table[self.forest.parent], 0.0)

    def add_below(self, table: Floats) -> Floats:
        """The sum over the units right below each."""
        sums = np.zeros(table.shape)
        for unit, above in enumerate(self.forest.parent.tolist()):
            if above >= 0:
                sums[above] += table[unit]
        return sums

    def pull(self, alpha: Floats, table: Floats) -> Floats:
        """How the prior holds weights: the gradient of ½ Σ_u α_u ‖w_u − w_above(u)‖², units × features."""
        held = alpha * (table - self.from_above(table))
        return held - self.add_below(held)
