"""The ties of a graph, as one owner of units sees them: M with its factorizations, and what is solved for with them.

Features are taken in blocks, so that dense vectors of all units stay small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from ramify.learners.linear.graph_partition import (
    BLOCK,
    CARRIED,
    Divided,
    Given,
    GraphPartition,
    Part,
    divide_matrix,
    divide_with_fixed,
)
from ramify.learners.linear.graph_problem import AndersonHistory, Classes, GraphProblem, SolvedClasses
from ramify.learners.linear.problem import Pairs
from ramify.learners.linear.taxonomy_ties import Structure
from ramify.learners.linear.weights import Weights, stack_rows
from ramify.parallel import Arrays, Executor, choose_executor, row_blocks
from ramify.parallel.checkpoints import strange, take_array

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Right = Callable[[slice], Doubles]  # right-hand sides, classes × features, for some of the features


class Ties:
    """M between an owner's units and those next to them.

    tied: with M. drawn: with M + T. fixed: with M where classes have their weights, so that only the others are solved for.
    Without a boundary these are whole from the start; otherwise parts of all owners must be added up first.
    """

    def __init__(self, structure: Structure, share: GraphPartition, executor: Executor, block: int = BLOCK) -> None:
        self.part = Part.of(structure.M, share.units, share.boundary)
        self.M = self.part.cut_out(structure.M)
        self.tied, self.energy = divide_matrix(self.part, self.M), self.part.measure_of(self.M)
        place = np.zeros(len(structure), dtype=np.int64)
        place[self.part.units] = np.arange(len(self.part))
        self.classes = place[structure.class_units[share.classes]]
        self.is_class = np.isin(self.part.units, structure.class_units)
        self.executor, self.block = executor, block

    # ---- once -------------------------------------------------------------------------------------------------------

    def stiffness(self) -> Doubles:
        """T_n = √(M_nn / (M⁻¹)_nn) of its own classes."""
        inverse = np.empty(len(self.classes))
        for some in row_blocks(len(self.classes), 8 * len(self.part), self.block):
            unit, column = self.classes[some], np.arange(some.stop - some.start)
            ones = np.zeros((len(self.part), len(column)))
            ones[unit, column] = 1
            inverse[some] = self.tied.solve_alone(ones)[unit, column]
        T: Doubles = np.sqrt(self.M.diagonal()[self.classes] / inverse)
        return T

    def draw(self, T: Doubles) -> None:
        """Let classes be drawn with T."""
        self.T, drawn = T, np.zeros(len(self.part))
        drawn[self.classes] = T
        self.drawn = divide_matrix(self.part, csr_array(self.M + diags_array(drawn)))
        self.fixed = divide_with_fixed(self.part, self.M, self.is_class)

    def complements(self, systems: Sequence[Divided]) -> Given:
        """Its part of Schur's complement of some systems."""
        return self.part.places, np.stack([system.complement() for system in systems])

    # ---- for some of the features -----------------------------------------------------------------------------------

    def condense(self, features: slice, asked: Sequence[tuple[Divided, Right]]) -> Given:
        """Its part of the right-hand sides of the boundary, of some systems."""
        touched = self.part.touched
        found = np.empty((len(asked), len(touched), features.stop - features.start), dtype=CARRIED)

        def work(some: slice) -> None:
            here = slice(some.start - features.start, some.stop - features.start)
            for k, (system, right) in enumerate(asked):
                found[k, :, here] = system.condense(self._spread(right(some)))

        if len(touched):
            self._over(features, work)
        return self.part.places[touched], found

    def pull(self, features: slice, right: Right, given: NDArray[Any], V: Floats) -> None:
        """Write V of the classes for some features."""

        def work(some: slice) -> None:
            V[:, some] = self.drawn.solve(self._spread(right(some)), _of(given[0], some, features))[self.classes]

        self._over(features, work)

    def measure(self, features: slice, u: Right, W: Right, given: NDArray[Any]) -> list[Doubles]:
        """Its part of W·MW and u·M⁻¹u, for one block of features after the other."""

        def work(some: slice) -> Doubles:
            right, here = u(some), _of(given, some, features)
            whole, bound = self._complete(W(some), here[1]), self.tied.solve(self._spread(right), here[0])[self.classes]
            return np.array([np.vdot(whole, self.energy @ whole), np.vdot(right, bound)])

        return self._over(features, work)

    def complete(self, features: slice, W: Right, given: NDArray[Any], whole: Floats) -> None:
        """Write the weights of all of its units, those without loss as the weighted means of their neighbours."""

        def work(some: slice) -> None:
            whole[:, some] = self._complete(W(some), _of(given[0], some, features))[: self.part.n_own]

        self._over(features, work)

    def _complete(self, W: Doubles, given: NDArray[Any]) -> Doubles:
        whole = self.fixed.solve(self._spread(W), given)
        whole[self.classes] = W
        return whole

    def _spread(self, of_classes: Doubles) -> Doubles:
        whole = np.zeros((len(self.part), of_classes.shape[1]))
        whole[self.classes] = of_classes
        return whole

    def _over(self, features: slice, work: Callable[[slice], Any]) -> list[Any]:
        first = features.start
        blocks = row_blocks(features.stop - first, 8 * len(self.part), self.block)
        return list(self.executor.map(work, [slice(first + some.start, first + some.stop) for some in blocks]))


def _of(given: NDArray[Any], some: slice, features: slice) -> NDArray[Any]:
    """Columns for some features, out of those for a stretch of features."""
    return given[..., some.start - features.start : some.stop - features.start]


# --------------------------------------------------------------------------------------------------------------
# The owner of some units of a graph: it draws its classes along the ties, settles them, and says what they cost.
#
# Vectors of its own units stay with it. What it gives are sums over them, and its part of the right-hand sides of boundary
# units.


TRAVEL = 1 << 27  # bytes of boundary vectors that travel at once
ROWS = 1 << 26  # bytes of dense weights that are made sparse at once


def stretches_of(n_features: int, n_boundary: int) -> list[slice]:
    """Stretches of features for which boundary vectors travel one after the other."""
    return row_blocks(n_features, 8 * n_boundary, TRAVEL)


class GraphWorker:
    """The owner of some units, and of the losses of the classes among them.

    point: the state s of its classes. W: the best weights of its classes so far.
    """

    def __init__(self, problem: GraphProblem, share: GraphPartition, frugality: int = 0) -> None:
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
        self.trail = AndersonHistory(self.share.depth, T)

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
        self.found: SolvedClasses = self.classes.solve(2 * self.V - self.point, passes, tolerance, n_rounds)
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
        return [*sizes.tolist(), float(found.entropy.sum()), float(found.gap.sum()), *found.loss.tolist(), *products]

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
            self.trail = AndersonHistory(0, self.ties.T)  # the weights need the room
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
