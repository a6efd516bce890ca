"""δ of the inner units as sparse vectors: the change of weights from a unit's parent to the unit.

A vector has all features that documents of the classes below the unit have, zeros included: rounds over a tree change the
values in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PART = 1 << 20


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

    def of(self, units: NDArray[np.int32]) -> Deltas:
        """Those of some units; vectors are not copied."""
        return Deltas(self.start[units], self.end[units], self.features, self.values)

    def with_first(self, weights: NDArray[np.float32]) -> Deltas:
        """The same with other weights of the first unit, over all features."""
        start, end = self.start.copy(), self.end.copy()
        self.values[start[0] : end[0]] = 0
        start[0], end[0] = len(self.values), len(self.values) + len(weights)
        features = np.concatenate([self.features, np.arange(len(weights), dtype=np.int32)])
        return Deltas(start, end, features, np.concatenate([self.values, weights]))

    def half_squares(self) -> float:
        """½ Σ ‖δ‖² over all units; summed part by part, since there may be hundreds of millions."""
        parts = (self.values[at : at + PART].astype(np.float64) for at in range(0, len(self.values), PART))
        return 0.5 * sum(float(part @ part) for part in parts)


def join(parts: list[tuple[Any, ...]], n_units: int) -> Deltas:
    """What walks gathered, as one; a unit that several of them passed has all features in each, and gets the sum.

    Each part is given up once it is copied.
    """
    size = sum(len(part[2]) for part in parts)
    features, values = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.float32)
    joined, before = Deltas(np.zeros(n_units, dtype=np.int64), np.zeros(n_units, dtype=np.int64), features, values), 0
    for k, (units, ends, part_features, part_values, *_) in enumerate(parts):
        parts[k] = ()
        here = slice(before, before + len(part_features))
        features[here], values[here] = part_features, part_values
        starts, ends, before = before + np.concatenate([[0], ends])[:-1], before + ends, here.stop
        again = joined.end[units] > joined.start[units]
        joined.start[units[~again]], joined.end[units[~again]] = starts[~again], ends[~again]
        for unit, start, end in zip(units[again], starts[again], ends[again], strict=True):
            values[joined.start[unit] : joined.end[unit]] += values[start:end]
            values[start:end] = 0
    return joined


def add_changes(deltas: Deltas, parts: list[tuple[Any, ...]]) -> None:
    """Add to the units that several walks passed, which have all features, what each of the walks changed."""
    for units, ends, features, values, *_ in parts:
        for unit, start, end in zip(units.tolist(), [0, *ends.tolist()], ends.tolist(), strict=False):
            deltas.values[deltas.start[unit] + features[start:end]] += values[start:end]
