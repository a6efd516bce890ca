"""The owner of some units of a graph: it draws its classes along the ties, settles them, and says what they cost.

Vectors of its own units stay with it. What it gives are sums over them, and its part of the right-hand sides of boundary units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.execution import Arrays, choose_executor, row_blocks
from ramify.execution.states import strange, take_array
from ramify.learners.linear.anderson import Trail
from ramify.learners.linear.collecting import stack_rows
from ramify.learners.linear.divided import BLOCK, Given
from ramify.learners.linear.dividing import GraphShare
from ramify.learners.linear.graph_classes import Classes, Settled
from ramify.learners.linear.graph_problem import GraphProblem
from ramify.learners.linear.graph_ties import Ties
from ramify.learners.linear.pairs import Pairs
from ramify.learners.linear.weights import Weights

TRAVEL = 1 << 27  # bytes of boundary vectors that travel at once
ROWS = 1 << 26  # bytes of dense weights that are made sparse at once

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


def stretches_of(n_features: int, n_boundary: int) -> list[slice]:
    """Stretches of features for which boundary vectors travel one after the other."""
    return row_blocks(n_features, 8 * n_boundary, TRAVEL)


class GraphMember:
    """The owner of some units, and of the losses of the classes among them.

    point: the state s of its classes. W: the best weights of its classes so far.
    """

    def __init__(self, problem: GraphProblem, share: GraphShare, frugality: int = 0) -> None:
        self.problem, self.share = problem, share
        self.executor = choose_executor(1 if frugality else share.n_threads)
        self.ties = Ties(problem.structure, share, self.executor, BLOCK >> 2 * frugality)
        self.point: Floats = np.zeros((len(share.classes), problem.rows.n_features), dtype=np.float32)
        self.W = self.V = self.point
        self.stretches = stretches_of(problem.rows.n_features, len(share.boundary))
        self.n_taken = 0
        self.measured: list[Doubles] = []

    # ---- before the first round -------------------------------------------------------------------------------------

    def give_ties(self) -> Given:
        """Its part of Schur's complement of M."""
        return self.ties.complements([self.ties.tied])

    def take_ties(self, complements: Doubles) -> None:
        """Know how its classes are held by all others."""
        self._close_ties(complements)
        self._draw(self.ties.stiffness())

    def give_drawn(self) -> Given:
        """Its parts of Schur's complements of M + T, and of M where classes are fixed."""
        return self.ties.complements([self.ties.drawn, self.ties.fixed])

    def take_drawn(self, complements: Doubles) -> None:
        """Be ready for the first round."""
        self.drawn_complements = complements
        for system, S in zip((self.ties.drawn, self.ties.fixed), complements, strict=True):
            system.close(S)

    def _close_ties(self, complements: Doubles) -> None:
        self.tied_complements = complements
        self.ties.tied.close(complements[0])

    def _draw(self, T: Doubles) -> None:
        self.ties.draw(T)
        self.classes = Classes.of(self.problem, self.share.classes, T, self.executor)
        self.trail = Trail(self.share.depth, T)

    # ---- a round ----------------------------------------------------------------------------------------------------

    def give_pull(self) -> Given:
        """Its part of what boundary units are drawn by."""
        return self.ties.condense(self._stretch, [(self.ties.drawn, self._draught)])

    def take_pull(self, given: NDArray[Any]) -> None:
        """Draw its classes along the ties."""
        if not self.n_taken:
            self.V = np.empty_like(self.point)
        self.ties.pull(self._stretch, self._draught, given, self.V)
        self._go_on()

    def settle(self, passes: int, tolerance: float, n_rounds: int) -> None:
        """Solve its classes, each drawn to its own centre."""
        self.found: Settled = self.classes.settle(2 * self.V - self.point, passes, tolerance, n_rounds)
        self.measured = []

    def give_found(self) -> Given:
        """Its part of u and W at the boundary."""
        asked = [(self.ties.tied, _columns(self.found.u)), (self.ties.fixed, _columns(self.found.W))]
        return self.ties.condense(self._stretch, asked)

    def take_found(self, given: NDArray[Any]) -> None:
        """Measure both sides of its part of the problem."""
        self.measured += self.ties.measure(self._stretch, _columns(self.found.u), _columns(self.found.W), given)
        self._go_on()

    def measure(self) -> list[float]:
        """½ W·MW, ½ u·M⁻¹u, Σ U h(α/U), what classes lack, Σ U L for every stretch; then products for mixing."""
        found, sizes = self.found, 0.5 * np.sum(self.measured, axis=0)
        products = self.trail.add(self.point, found.W - self.V)
        return [*sizes.tolist(), float(found.entropy.sum()), float(found.lack.sum()), *found.loss.tolist(), *products]

    def hold(self, stretch: float) -> None:
        """Take the weights just found, stretched, for the best ones."""
        self.W = np.float32(stretch) * self.found.W

    def move(self, gamma: list[float] | None) -> None:
        """Go to the next point, with the last steps mixed so."""
        del self.found
        self.point = self.trail.step(gamma)

    # ---- at the end -------------------------------------------------------------------------------------------------

    def give_best(self) -> Given:
        """Its part of the best weights at the boundary."""
        return self.ties.condense(self._stretch, [(self.ties.fixed, _columns(self.W))])

    def take_best(self, given: NDArray[Any]) -> None:
        """Complete the best weights by those of units without loss."""
        if not self.n_taken:
            self.trail = Trail(0, self.ties.T)  # the weights need the room
            self.whole = np.empty((len(self.share.units), self.W.shape[1]), dtype=np.float32)
        self.ties.complete(self._stretch, _columns(self.W), given, self.whole)
        self._go_on()

    def weights(self) -> Weights:
        """The weights of its own units, in the features as they came."""
        rows, n = self.problem.rows, len(self.whole)

        def pack(some: slice) -> Any:
            sparse = csr_array(self.whole[some, rows.place])
            return np.arange(some.start, some.stop), sparse.indptr[1:], sparse.indices, sparse.data

        parts = list(self.executor.map(pack, row_blocks(n, 4 * self.whole.shape[1], ROWS)))
        deltas = stack_rows(parts, n, len(rows.place), self.executor)
        bias = self.whole[:, 0].astype(np.float64) if rows.has_bias else np.zeros(n)
        return Weights(deltas, bias, np.full(n, -1, dtype=np.int32), self.ties.classes.copy())

    def dual_variables(self) -> Pairs:
        """The pairs of its classes, with their dual variables."""
        return self.classes.true_pairs()

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def state(self) -> Arrays:
        """All that has changed since the member was made, after a move."""
        return self.trail.state() | {
            "point": self.point, "W": self.W, "alphas": self.classes.pairs.alphas, "T": self.ties.T,
            "tied_complements": self.tied_complements, "drawn_complements": self.drawn_complements,
        }  # fmt: skip

    def restore(self, state: Arrays) -> None:
        """Become as the member was whose state this is."""
        n_classes, n_boundary = len(self.share.classes), len(self.share.boundary)
        T = take_array(state, "T", np.float64, n_classes)
        if np.any(T <= 0):
            raise strange("ties that hold nothing")
        self._close_ties(take_array(state, "tied_complements", np.float64, 1, n_boundary, n_boundary))
        self._draw(T)
        self.take_drawn(take_array(state, "drawn_complements", np.float64, 2, n_boundary, n_boundary))
        self.trail.restore(state, self.problem.rows.n_features)
        self.point, self.W = (take_array(state, name, np.float32, *self.point.shape) for name in ("point", "W"))
        alphas = self.classes.pairs.alphas
        alphas[:] = take_array(state, "alphas", np.float32, len(alphas))
        if np.any(alphas < 0):
            raise strange("dual variables below 0")

    # ---- how --------------------------------------------------------------------------------------------------------

    @property
    def _stretch(self) -> slice:
        """The features for which boundary vectors travel now."""
        return self.stretches[self.n_taken]

    def _go_on(self) -> None:
        self.n_taken = (self.n_taken + 1) % len(self.stretches)

    def _draught(self, some: slice) -> Doubles:
        """T s, for some features."""
        drawn: Doubles = self.ties.T[:, None] * self.point[:, some]
        return drawn


def _columns(of_classes: Floats) -> Callable[[slice], Doubles]:
    return lambda some: of_classes[:, some].astype(np.float64)
