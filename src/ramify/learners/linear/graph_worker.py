"""A worker that owns some units of a graph: it moves its classes along the ties, solves them, and measures the objective.

Vectors of its own units stay with the worker. What it gives are sums over them, and its part of the right-hand sides of
boundary units. Features are solved for in blocks, so that dense vectors of all units stay small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from ramify.learners.linear.graph_partition import (
    BLOCK,
    SENT,
    Given,
    GraphPartition,
    OwnedUnits,
    PartialSystem,
    partial_system,
    partial_system_with_fixed,
)
from ramify.learners.linear.graph_problem import AndersonHistory, Classes, GraphProblem, SolvedClasses
from ramify.learners.linear.problem import Pairs
from ramify.learners.linear.taxonomy_ties import Structure
from ramify.learners.linear.weights import Weights, stack_rows
from ramify.parallel import Arrays, Executor, choose_executor, row_blocks
from ramify.parallel.checkpoints import invalid_checkpoint, take_array

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Right = Callable[[slice], Doubles]  # right-hand sides, classes × features, for some of the features

MOST_SENT = 1 << 27  # bytes of boundary vectors that are sent at once
ROWS = 1 << 26  # bytes of dense weights that are made sparse at once


def feature_ranges(n_features: int, n_boundary: int) -> list[slice]:
    """Ranges of features for which boundary vectors are sent one after the other."""
    return row_blocks(n_features, 8 * n_boundary, MOST_SENT)


class Ties:
    """M between a worker's units and those next to them, and three linear systems.

    tied: with M. shifted: with M + T. fixed: with M where the weights of classes are given, so that only the others are solved
    for. Without a boundary the systems are whole from the start; otherwise the parts of all workers must be added up first.
    """

    def __init__(self, structure: Structure, partition: GraphPartition, executor: Executor, block: int = BLOCK) -> None:
        self.owned = OwnedUnits.of(structure.M, partition.units, partition.boundary)
        self.M = self.owned.submatrix(structure.M)
        self.tied, self.energy = partial_system(self.owned, self.M), self.owned.energy(self.M)
        place = np.zeros(len(structure), dtype=np.int64)
        place[self.owned.units] = np.arange(len(self.owned))
        self.classes = place[structure.class_units[partition.classes]]
        self.is_class = np.isin(self.owned.units, structure.class_units)
        self.executor, self.block = executor, block

    def stiffness(self) -> Doubles:
        """T_n = √(M_nn / (M⁻¹)_nn) of its own classes."""
        inverse = np.empty(len(self.classes))
        for some in row_blocks(len(self.classes), 8 * len(self.owned), self.block):
            unit, column = self.classes[some], np.arange(some.stop - some.start)
            ones = np.zeros((len(self.owned), len(column)))
            ones[unit, column] = 1
            inverse[some] = self.tied.solve_alone(ones)[unit, column]
        T: Doubles = np.sqrt(self.M.diagonal()[self.classes] / inverse)
        return T

    def shift(self, T: Doubles) -> None:
        """Prepare the systems that depend on T."""
        self.T, diagonal = T, np.zeros(len(self.owned))
        diagonal[self.classes] = T
        self.shifted = partial_system(self.owned, csr_array(self.M + diags_array(diagonal)))
        self.fixed = partial_system_with_fixed(self.owned, self.M, self.is_class)

    def complements(self, systems: Sequence[PartialSystem]) -> Given:
        """Its part of the Schur complement of some systems."""
        return self.owned.places, np.stack([system.complement() for system in systems])

    # ---- for some of the features -------------------------------------------------------------------------------------

    def condense(self, features: slice, asked: Sequence[tuple[PartialSystem, Right]]) -> Given:
        """Its part of the right-hand sides of the boundary, of some systems."""
        touched = self.owned.touched
        found = np.empty((len(asked), len(touched), features.stop - features.start), dtype=SENT)

        def work(some: slice) -> None:
            local = slice(some.start - features.start, some.stop - features.start)
            for k, (system, right) in enumerate(asked):
                found[k, :, local] = system.condense(self._by_unit(right(some)))

        if len(touched):
            self._map(features, work)
        return self.owned.places[touched], found

    def move(self, features: slice, right: Right, given: NDArray[Any], V: Floats) -> None:
        """Write V of the classes for some features."""

        def work(some: slice) -> None:
            V[:, some] = self.shifted.solve(self._by_unit(right(some)), _columns_of(given[0], some, features))[self.classes]

        self._map(features, work)

    def measure(self, features: slice, u: Right, W: Right, given: NDArray[Any]) -> list[Doubles]:
        """Its part of W·MW and u·M⁻¹u, for one block of features after the other."""

        def work(some: slice) -> Doubles:
            right, boundary = u(some), _columns_of(given, some, features)
            whole = self._complete(W(some), boundary[1])
            bound = self.tied.solve(self._by_unit(right), boundary[0])[self.classes]
            return np.array([np.vdot(whole, self.energy @ whole), np.vdot(right, bound)])

        return self._map(features, work)

    def complete(self, features: slice, W: Right, given: NDArray[Any], whole: Floats) -> None:
        """Write the weights of all of its units, those without loss as the weighted means of their neighbours."""

        def work(some: slice) -> None:
            whole[:, some] = self._complete(W(some), _columns_of(given[0], some, features))[: self.owned.n_own]

        self._map(features, work)

    def _complete(self, W: Doubles, given: NDArray[Any]) -> Doubles:
        whole = self.fixed.solve(self._by_unit(W), given)
        whole[self.classes] = W
        return whole

    def _by_unit(self, by_class: Doubles) -> Doubles:
        whole = np.zeros((len(self.owned), by_class.shape[1]))
        whole[self.classes] = by_class
        return whole

    def _map(self, features: slice, work: Callable[[slice], Any]) -> list[Any]:
        first = features.start
        blocks = row_blocks(features.stop - first, 8 * len(self.owned), self.block)
        return list(self.executor.map(work, [slice(first + some.start, first + some.stop) for some in blocks]))


def _columns_of(given: NDArray[Any], some: slice, features: slice) -> NDArray[Any]:
    """Columns for some features, out of those for a range of features."""
    return given[..., some.start - features.start : some.stop - features.start]


class GraphWorker:
    """Owns some units, and the losses of the classes among them.

    point: the state s of its classes. W: the best weights of its classes so far.
    """

    def __init__(self, problem: GraphProblem, partition: GraphPartition, memory_saving: int = 0) -> None:
        self.problem, self.partition = problem, partition
        self.executor = choose_executor(1 if memory_saving else partition.n_threads)
        self.ties = Ties(problem.structure, partition, self.executor, BLOCK >> 2 * memory_saving)
        self.point: Floats = np.zeros((len(partition.classes), problem.rows.n_features), dtype=np.float32)
        self.W = self.V = self.point
        self.ranges = feature_ranges(problem.rows.n_features, len(partition.boundary))
        self.n_received = 0  # ranges of features whose boundary vectors have been received
        self.measured: list[Doubles] = []

    # ---- before the first round ---------------------------------------------------------------------------------------

    def give_ties(self) -> Given:
        """Its part of the Schur complement of M."""
        return self.ties.complements([self.ties.tied])

    def take_ties(self, complements: Doubles) -> None:
        """With the complement of M, which ties its classes to all others, choose T."""
        self._close_ties(complements)
        self._shift(self.ties.stiffness())

    def give_shifted(self) -> Given:
        """Its parts of the Schur complements of M + T, and of M where classes are fixed."""
        return self.ties.complements([self.ties.shifted, self.ties.fixed])

    def take_shifted(self, complements: Doubles) -> None:
        """Get ready for the first round."""
        self.shifted_complements = complements
        for system, S in zip((self.ties.shifted, self.ties.fixed), complements, strict=True):
            system.close(S)

    def _close_ties(self, complements: Doubles) -> None:
        self.tied_complements = complements
        self.ties.tied.close(complements[0])

    def _shift(self, T: Doubles) -> None:
        self.ties.shift(T)
        self.classes = Classes.of(self.problem, self.partition.classes, T, self.executor)
        self.history = AndersonHistory(self.partition.depth, T)

    # ---- a round ------------------------------------------------------------------------------------------------------

    def give_point(self) -> Given:
        """Its part of the right-hand sides T s at the boundary."""
        return self.ties.condense(self._features, [(self.ties.shifted, self._right)])

    def take_point(self, given: NDArray[Any]) -> None:
        """Move its classes along the ties: V = (M + T)⁻¹ T s."""
        if not self.n_received:
            self.V = np.empty_like(self.point)
        self.ties.move(self._features, self._right, given, self.V)
        self._next_range()

    def solve_classes(self, passes: int, tolerance: float, n_rounds: int) -> None:
        """Solve its classes in a few inner passes, each regularized towards its own centre."""
        self.found: SolvedClasses = self.classes.solve(2 * self.V - self.point, passes, tolerance, n_rounds)
        self.measured = []

    def give_solved(self) -> Given:
        """Its part of u and W at the boundary."""
        asked = [(self.ties.tied, _columns(self.found.u)), (self.ties.fixed, _columns(self.found.W))]
        return self.ties.condense(self._features, asked)

    def take_solved(self, given: NDArray[Any]) -> None:
        """Measure both sides of its part of the problem."""
        self.measured += self.ties.measure(self._features, _columns(self.found.u), _columns(self.found.W), given)
        self._next_range()

    def measure(self) -> list[float]:
        """½ W·MW, ½ u·M⁻¹u, Σ U h(α/U), the classes' gap, Σ U L for every scale of the weights; then products for mixing."""
        found, sizes = self.found, 0.5 * np.sum(self.measured, axis=0)
        products = self.history.add(self.point, found.W - self.V)
        return [*sizes.tolist(), float(found.entropy.sum()), float(found.gap.sum()), *found.loss.tolist(), *products]

    def keep_best(self, scale: float) -> None:
        """Take the weights just found, scaled, as the best ones."""
        self.W = np.float32(scale) * self.found.W

    def step(self, gamma: list[float] | None) -> None:
        """Go to the next point. gamma: how the last steps are mixed; None to step back."""
        del self.found
        self.point = self.history.step(gamma)

    # ---- results ------------------------------------------------------------------------------------------------------

    def give_best(self) -> Given:
        """Its part of the best weights at the boundary."""
        return self.ties.condense(self._features, [(self.ties.fixed, _columns(self.W))])

    def take_best(self, given: NDArray[Any]) -> None:
        """Complete the best weights by those of units without loss."""
        if not self.n_received:
            self.history = AndersonHistory(0, self.ties.T)  # the weights need the memory
            self.whole = np.empty((len(self.partition.units), self.W.shape[1]), dtype=np.float32)
        self.ties.complete(self._features, _columns(self.W), given, self.whole)
        self._next_range()

    def weights(self) -> Weights:
        """The weights of its own units, in the original order of the features."""
        rows, n = self.problem.rows, len(self.whole)

        def to_sparse(some: slice) -> Any:
            sparse = csr_array(self.whole[some, rows.place])
            return np.arange(some.start, some.stop), sparse.indptr[1:], sparse.indices, sparse.data

        parts = list(self.executor.map(to_sparse, row_blocks(n, 4 * self.whole.shape[1], ROWS)))
        deltas = stack_rows(parts, n, len(rows.place), self.executor)
        bias = self.whole[:, 0].astype(np.float64) if rows.has_bias else np.zeros(n)
        return Weights(deltas, bias, np.full(n, -1, dtype=np.int32), self.ties.classes.copy())

    def dual_variables(self) -> Pairs:
        """The pairs of its classes, with their dual variables."""
        return self.classes.true_pairs()

    # ---- checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> Arrays:
        """Everything that has changed since the worker was created, after a step."""
        return self.history.state() | {
            "point": self.point, "W": self.W, "alphas": self.classes.pairs.alphas, "T": self.ties.T,
            "tied_complements": self.tied_complements, "shifted_complements": self.shifted_complements,
        }  # fmt: skip

    def restore(self, state: Arrays) -> None:
        """Set the state that another worker of the same partition had."""
        n_classes, n_boundary = len(self.partition.classes), len(self.partition.boundary)
        T = take_array(state, "T", np.float64, n_classes)
        if np.any(T <= 0):
            raise invalid_checkpoint("a T that is not positive")
        self._close_ties(take_array(state, "tied_complements", np.float64, 1, n_boundary, n_boundary))
        self._shift(T)
        self.take_shifted(take_array(state, "shifted_complements", np.float64, 2, n_boundary, n_boundary))
        self.history.restore(state, self.problem.rows.n_features)
        self.point, self.W = (take_array(state, name, np.float32, *self.point.shape) for name in ("point", "W"))
        alphas = self.classes.pairs.alphas
        alphas[:] = take_array(state, "alphas", np.float32, len(alphas))
        if np.any(alphas < 0):
            raise invalid_checkpoint("dual variables below 0")

    @property
    def _features(self) -> slice:
        """The features whose boundary vectors are sent now."""
        return self.ranges[self.n_received]

    def _next_range(self) -> None:
        self.n_received = (self.n_received + 1) % len(self.ranges)

    def _right(self, some: slice) -> Doubles:
        """T s, for some features."""
        right: Doubles = self.ties.T[:, None] * self.point[:, some]
        return right


def _columns(by_class: Floats) -> Callable[[slice], Doubles]:
    return lambda some: by_class[:, some].astype(np.float64)
