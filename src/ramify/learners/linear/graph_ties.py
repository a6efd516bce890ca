"""The ties of a graph, as one owner of units sees them: M with its factorizations, and what is solved for with them.

Features are taken in blocks, so that dense vectors of all units stay small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from ramify.execution import Executor, row_blocks
from ramify.learners.linear.divided import BLOCK, CARRIED, Divided, Given, Part, divide_matrix, divide_with_fixed
from ramify.learners.linear.dividing import GraphShare
from ramify.learners.linear.structure import Structure

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Right = Callable[[slice], Doubles]  # right-hand sides, classes × features, for some of the features


class Ties:
    """M between an owner's units and those next to them.

    tied: with M. drawn: with M + T. fixed: with M where classes have their weights, so that only the others are solved for.
    Without a boundary these are whole from the start; otherwise parts of all owners must be added up first.
    """

    def __init__(self, structure: Structure, share: GraphShare, executor: Executor, block: int = BLOCK) -> None:
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
