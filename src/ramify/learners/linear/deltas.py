"""δ of the inner units as sparse vectors: the change of weights from a unit's parent to the unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class Deltas:
    """One sparse vector a unit, from start to end."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    features: NDArray[np.int32]
    values: NDArray[np.float32]

    @classmethod
    def zero(cls, n_units: int) -> Deltas:
        """No change anywhere."""
        nowhere = np.zeros(n_units, dtype=np.int64)
        return cls(nowhere, nowhere, np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arguments of every kernel that takes deltas."""
        return self.start, self.end, self.features, self.values

    def of(self, unit: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Features and values of one unit."""
        here = slice(self.start[unit], self.end[unit])
        return self.features[here], self.values[here]

    def half_squares(self) -> float:
        """½ Σ ‖δ‖² over all units."""
        return 0.5 * float(np.sum(self.values.astype(np.float64) ** 2))

    def to_matrix(self, n_features: int) -> csr_array:
        """Units × features."""
        order = np.argsort(self.start, kind="stable")
        lengths = (self.end - self.start)[order]
        rows = np.repeat(order, lengths)
        return csr_array(csr_array((self.values, (rows, self.features)), shape=(len(self.start), n_features)))


def join(parts: list[tuple[Any, ...]], share: NDArray[np.float32], before: Deltas, n_features: int) -> Deltas:
    """What walks give back, as one: units that several of them passed get the sum of their changes."""
    n_units = len(share)
    start, end = np.zeros(n_units, dtype=np.int64), np.zeros(n_units, dtype=np.int64)
    features, values, length = [], [], 0
    crown: dict[int, NDArray[np.float32]] = {}
    for units, ends, part_features, part_values, *_ in parts:
        starts = np.concatenate([[0], ends])[:-1].astype(np.int64)
        start[units], end[units] = starts + length, ends + length
        for unit, a, b in zip(units.tolist(), starts.tolist(), ends.tolist(), strict=True):
            if share[unit] > 1:
                _dense_of(crown, unit, before, n_features)[part_features[a:b]] += part_values[a:b]
        features.append(part_features)
        values.append(part_values)
        length += len(part_features)
    for unit, dense in crown.items():
        found = np.flatnonzero(dense).astype(np.int32)
        start[unit], end[unit] = length, length + len(found)
        features.append(found)
        values.append(dense[found])
        length += len(found)
    return Deltas(start, end, np.concatenate(features), np.concatenate(values))


def _dense_of(crown: dict[int, Any], unit: int, before: Deltas, n_features: int) -> NDArray[np.float32]:
    if unit not in crown:
        crown[unit] = np.zeros(n_features, dtype=np.float32)
        features, values = before.of(unit)
        crown[unit][features] = values
    return crown[unit]
