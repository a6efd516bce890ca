"""What a learner says of the ways of a document down a taxonomy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Energies:
    """Logarithms of how likely things are, up to a factor and a sum; documents × nodes.

    ends: that a document ends at a node; NaN where none does.
    steps: that it goes on from a node's parent to the node; None where this follows from where it may end.
    """

    ends: NDArray[np.floating[Any]]
    steps: NDArray[np.floating[Any]] | None = None

    def __len__(self) -> int:
        return len(self.ends)

    def of(self, documents: Any) -> Self:
        """Of some of the documents."""
        return type(self)(self.ends[documents], None if self.steps is None else self.steps[documents])

    @classmethod
    def joined(cls, parts: Sequence[Energies]) -> Self:
        """Of the documents of all parts, one part after the other."""
        steps = [part.steps for part in parts if part.steps is not None]
        return cls(np.concatenate([part.ends for part in parts]), np.concatenate(steps) if steps else None)
