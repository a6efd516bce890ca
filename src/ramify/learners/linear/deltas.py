"""δ of the inner units as sparse vectors: the change of weights from a unit's parent to the unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

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
    start, end = np.zeros(len(share), dtype=np.int64), np.zeros(len(share), dtype=np.int64)
    features, values, length = [], [], 0
    for units, ends, part_features, part_values in _unshared(parts, share) + _shared(parts, share, before, n_features):
        start[units], end[units] = np.concatenate([[0], ends])[:-1] + length, ends + length
        features.append(part_features)
        values.append(part_values)
        length += len(part_features)
    return Deltas(start, end, np.concatenate(features), np.concatenate(values))


def _unshared(parts: list[tuple[Any, ...]], share: NDArray[np.float32]) -> list[tuple[Any, ...]]:
    """Of every walk the units that it alone passed."""
    made = []
    for units, ends, features, values, *_ in parts:
        lengths = np.diff(ends, prepend=0)
        alone = share[units] <= 1
        kept = np.repeat(alone, lengths)
        made.append((units[alone], np.cumsum(lengths[alone]), features[kept], values[kept]))
    return made


def _shared(parts: list[tuple[Any, ...]], share: NDArray[np.float32], before: Deltas, n_features: int) -> list[tuple[Any, ...]]:
    """Units that several walks passed: what they were before, plus all changes."""
    crown: dict[int, NDArray[np.float32]] = {}
    for units, ends, features, values, *_ in parts:
        starts = np.concatenate([[0], ends])[:-1].astype(np.int64)
        for k in np.flatnonzero(share[units] > 1).tolist():
            here = slice(starts[k], ends[k])
            _dense_of(crown, int(units[k]), before, n_features)[features[here]] += values[here]
    found = {unit: np.flatnonzero(dense).astype(np.int32) for unit, dense in crown.items()}
    return [(np.asarray([u]), np.asarray([len(found[u])]), found[u], dense[found[u]]) for u, dense in crown.items()]


def _dense_of(crown: dict[int, Any], unit: int, before: Deltas, n_features: int) -> NDArray[np.float32]:
    if unit not in crown:
        crown[unit] = np.zeros(n_features, dtype=np.float32)
        features, values = before.of(unit)
        crown[unit][features] = values
    return cast(NDArray[np.float32], crown[unit])
