"""Anderson's mixing: the next point of a fixed-point iteration, from what the last few steps changed.

With residuals g = F(s) − s, the step is s + g − Σ_j γ_j (Δs_j + Δg_j), with the γ for which g − Σ_j γ_j Δg_j is smallest
(Walker & Ni 2011, section 2). A point whose residual is twice that of the one before is given up for the plain step from
there, and the memory is emptied (Zhang, O'Donoghue & Boyd 2020 guard theirs in the same way).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
WORSE = 2.0  # times the residual before: too much
RIDGE = 1e-10  # relative to the changes seen


@dataclass(slots=True)
class Mixer:
    """The last few changes of points and residuals, at most `depth` of them; `weights` is the metric, by row."""

    depth: int
    weights: NDArray[np.float64]
    moves: list[Floats] = field(default_factory=list)
    turns: list[Floats] = field(default_factory=list)
    last: tuple[Floats, Floats] | None = None
    size: float = np.inf

    def next(self, point: Floats, residual: Floats) -> Floats:
        """The point to go to from a point with a residual."""
        size = self._product(residual, residual) ** 0.5
        if self.last is not None and size > WORSE * self.size:
            return self._step_back()
        self._remember(point, residual)
        self.size = size
        return self._mix(point + residual, residual)

    def _step_back(self) -> Floats:
        assert self.last is not None
        point, residual = self.last
        self.moves, self.turns, self.last = [], [], None
        return point + residual

    def _remember(self, point: Floats, residual: Floats) -> None:
        if self.depth and self.last is not None:
            self.moves.append(point - self.last[0])
            self.turns.append(residual - self.last[1])
            del self.moves[: -self.depth], self.turns[: -self.depth]
        self.last = point, residual

    def _mix(self, plain: Floats, residual: Floats) -> Floats:
        if not self.turns:
            return plain
        gram = np.array([[self._product(a, b) for b in self.turns] for a in self.turns])
        ridge = RIDGE * max(float(np.trace(gram)), 1e-300) * np.eye(len(gram))
        gamma = np.linalg.solve(gram + ridge, [self._product(a, residual) for a in self.turns])
        for share, move, turn in zip(gamma, self.moves, self.turns, strict=True):
            plain -= np.float32(share) * (move + turn)
        return plain

    def _product(self, a: Floats, b: Floats) -> float:
        return float(np.einsum("ij,ij->i", a, b) @ self.weights)
