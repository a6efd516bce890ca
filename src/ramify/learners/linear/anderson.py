"""Anderson's mixing: the next point of a fixed-point iteration, from what the last few steps changed.

With residuals g = F(s) − s, the step is s + g − Σ_j γ_j (Δs_j + Δg_j), with the γ for which g − Σ_j γ_j Δg_j is smallest
(Walker & Ni 2011, section 2). A point whose residual is twice that of the one before is given up for the plain step from
there, and the memory is emptied (Zhang, O'Donoghue & Boyd 2020 guard theirs in the same way).

Points may be cut into rows that several own. Each has a `Trail` of its own rows and gives products of them; their sums are all
that a `Mixer` needs to say how the steps are mixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ramify.execution import Arrays
from ramify.execution.states import strange, take_array

Floats = NDArray[np.float32]
WORSE = 2.0  # times the residual before: too much
RIDGE = 1e-10  # relative to the changes seen


@dataclass(slots=True)
class Mixer:
    """How steps are mixed, from products of the last changes of residuals with each other and with the residual."""

    gram: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    size: float = np.inf
    is_first: bool = True

    def next(self, products: Sequence[float]) -> list[float] | None:
        """γ of the last changes, or None to step back. products: as trails give them, added up."""
        size = products[0] ** 0.5
        if not self.is_first and size > WORSE * self.size:
            self.is_first = True
            return None
        self.size, self.is_first = size, False
        n = len(products) // 2
        return self._solve(np.asarray(products[1 : n + 1]), products[n + 1 :]) if n else []

    def _solve(self, newest: NDArray[np.float64], aims: Sequence[float]) -> list[float]:
        n = len(newest)
        gram = np.empty((n, n))
        gram[:-1, :-1] = self.gram[len(self.gram) - n + 1 :, len(self.gram) - n + 1 :]
        gram[-1], gram[:, -1] = newest, newest
        self.gram = gram
        ridge = RIDGE * max(float(np.trace(gram)), 1e-300) * np.eye(n)
        gamma: list[float] = np.linalg.solve(gram + ridge, aims).tolist()
        return gamma


@dataclass(slots=True)
class Trail:
    """Rows of the last few changes of points and residuals, at most `depth` of them; `weights` is the metric, by row."""

    depth: int
    weights: NDArray[np.float64]
    moves: list[Floats] = field(default_factory=list)
    turns: list[Floats] = field(default_factory=list)
    last: tuple[Floats, Floats] | None = None
    before: tuple[Floats, Floats] | None = None

    def add(self, point: Floats, residual: Floats) -> list[float]:
        """Remember a point with its residual; gives ‖residual‖², then the last change's products and the residual's.

        Both are products with all changes that are remembered, the oldest first.
        """
        if self.depth and self.last is not None:
            self.moves.append(point - self.last[0])
            self.turns.append(residual - self.last[1])
            del self.moves[: -self.depth], self.turns[: -self.depth]
        self.before, self.last = self.last, (point, residual)
        newest = [self._product(turn, self.turns[-1]) for turn in self.turns]
        return [self._product(residual, residual), *newest, *(self._product(turn, residual) for turn in self.turns)]

    def step(self, gamma: Sequence[float] | None) -> Floats:
        """The next point, with the steps mixed as a mixer says; without γ, back and one plain step from there."""
        before, self.before = self.before, None
        if gamma is None:
            assert before is not None
            self.moves, self.turns, self.last = [], [], None
            return before[0] + before[1]
        assert self.last is not None
        point = self.last[0] + self.last[1]
        for share, move, turn in zip(gamma, self.moves, self.turns, strict=True):
            point -= np.float32(share) * (move + turn)
        return point

    def _product(self, a: Floats, b: Floats) -> float:
        return float(np.einsum("ij,ij->i", a, b) @ self.weights)

    def state(self) -> Arrays:
        """What is remembered between two steps."""
        kept = {f"move_{k}": move for k, move in enumerate(self.moves)} | {f"turn_{k}": t for k, t in enumerate(self.turns)}
        return kept if self.last is None else kept | {"last_point": self.last[0], "last_residual": self.last[1]}

    def restore(self, state: Arrays, width: int) -> None:
        """Remember what another did, with rows of a width."""

        def take(name: str) -> Floats:
            return take_array(state, name, np.float32, len(self.weights), width)

        n = sum(name.startswith("turn_") for name in state)
        if n > self.depth:
            raise strange("more steps than are mixed")
        self.moves, self.turns = ([take(f"{name}_{k}") for k in range(n)] for name in ("move", "turn"))
        self.last = (take("last_point"), take("last_residual")) if "last_point" in state else None
