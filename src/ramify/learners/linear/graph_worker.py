"""A worker that owns some units of a graph: it moves its classes along the ties, solves them, and measures the objective.

Vectors of its own units stay with the worker. What it gives are sums over them, and its part of the right-hand sides of
boundary units. Features are solved for in blocks, so that dense vectors of all units stay small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from ramify.learners.linear import graph_partition
from ramify.learners.linear.graph_partition import BLOCK, SENT, Given, GraphPartition, OwnedUnits, PartialSystem
from ramify.learners.linear.graph_problem import AndersonHistory, Classes, GraphProblem, SolvedClasses
from ramify.learners.linear.problem import Pairs
from ramify.learners.linear.weights import Weights, stack_rows
from ramify.parallel import Arrays, choose_executor, row_blocks
from ramify.parallel.checkpoints import invalid_checkpoint, take_array

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

MOST_SENT = 1 << 27  # bytes of boundary vectors that are sent at once
ROWS = 1 << 26  # bytes of dense weights that are made sparse at once


def feature_ranges(n_features: int, n_boundary: int) -> list[slice]:
    """Ranges of features for which boundary vectors are sent one after the other."""
    return row_blocks(n_features, 8 * n_boundary, MOST_SENT)


class GraphWorker:
    """Owns some units, and the losses of the classes among them.

    point: the state s of its classes. W: the best weights of its classes so far. M: between its units and those next to them.
    places: of its classes among these units. There are three linear systems: tied, with M; shifted, with M + T; and fixed, with
    M where the weights of classes are given, so that only the others are solved for. Without a boundary they are whole from the
    start; otherwise the parts of all workers must be added up first.
    """

    def __init__(self, problem: GraphProblem, partition: GraphPartition, memory_saving: int = 0) -> None:
        self.problem, self.partition, structure = problem, partition, problem.structure
        self.executor = choose_executor(1 if memory_saving else partition.n_threads)
        self.block = BLOCK >> 2 * memory_saving
        self.owned = OwnedUnits.of(structure.M, partition.units, partition.boundary)
        self.M = self.owned.submatrix(structure.M)
        self.tied, self.energy = graph_partition.partial_system(self.owned, self.M), self.owned.energy(self.M)
        place = np.zeros(len(structure), dtype=np.int64)
        place[self.owned.units] = np.arange(len(self.owned))
        self.places = place[structure.class_units[partition.classes]]
        self.point: Floats = np.zeros((len(partition.classes), problem.rows.n_features), dtype=np.float32)
        self.W = self.V = self.point
        self.ranges = feature_ranges(problem.rows.n_features, len(partition.boundary))
        self.n_received = 0  # ranges of features whose boundary vectors have been received
        self.measured: list[Doubles] = []

    # ---- before the first round ---------------------------------------------------------------------------------------

    def give_ties(self) -> Given:
        """Its part of the Schur complement of M."""
        return self.owned.places, np.stack([self.tied.complement()])

    def take_ties(self, complements: Doubles) -> None:
        """With the complement of M, which ties its classes to all others, choose T_n = √(M_nn / (M⁻¹)_nn)."""
        self._close_ties(complements)
        inverse = np.empty(len(self.places))
        for some in row_blocks(len(self.places), 8 * len(self.owned), self.block):
            unit, column = self.places[some], np.arange(some.stop - some.start)
            ones = np.zeros((len(self.owned), len(column)))
            ones[unit, column] = 1
            inverse[some] = self.tied.solve_alone(ones)[unit, column]
        self._shift(np.sqrt(self.M.diagonal()[self.places] / inverse))

    def give_shifted(self) -> Given:
        """Its parts of the Schur complements of M + T, and of M where classes are fixed."""
        return self.owned.places, np.stack([self.shifted.complement(), self.fixed.complement()])

    def take_shifted(self, complements: Doubles) -> None:
        """Get ready for the first round."""
        self.shifted_complements = complements
        for system, S in zip((self.shifted, self.fixed), complements, strict=True):
            system.close(S)

    def _close_ties(self, complements: Doubles) -> None:
        self.tied_complements = complements
        self.tied.close(complements[0])

    def _shift(self, T: Doubles) -> None:
        """Prepare what depends on T."""
        self.T, diagonal = T, np.zeros(len(self.owned))
        diagonal[self.places] = T
        self.shifted = graph_partition.partial_system(self.owned, csr_array(self.M + diags_array(diagonal)))
        is_class = np.isin(self.owned.units, self.problem.structure.class_units)
        self.fixed = graph_partition.partial_system_with_fixed(self.owned, self.M, is_class)
        self.classes = Classes.of(self.problem, self.partition.classes, T, self.executor)
        self.history = AndersonHistory(self.partition.depth, T)

    # ---- a round ------------------------------------------------------------------------------------------------------

    def give_point(self) -> Given:
        """Its part of the right-hand sides T s at the boundary."""
        return self._condense((self.shifted, self.point, self.T[:, None]))

    def take_point(self, given: NDArray[Any]) -> None:
        """Move its classes along the ties: V = (M + T)⁻¹ T s."""
        if not self.n_received:
            self.V = np.empty_like(self.point)

        def work(some: slice, columns: slice) -> None:
            right = self._by_unit(self.point, some, self.T[:, None])
            self.V[:, some] = self.shifted.solve(right, given[0][:, columns])[self.places]

        self._take(work)

    def solve_classes(self, passes: int, tolerance: float, n_rounds: int) -> None:
        """Solve its classes in a few inner passes, each regularized towards its own centre."""
        self.found: SolvedClasses = self.classes.solve(2 * self.V - self.point, passes, tolerance, n_rounds)
        self.measured = []

    def give_solved(self) -> Given:
        """Its part of u and W at the boundary."""
        return self._condense((self.tied, self.found.u, 1.0), (self.fixed, self.found.W, 1.0))

    def take_solved(self, given: NDArray[Any]) -> None:
        """Measure its part of W·MW and u·M⁻¹u."""

        def work(some: slice, columns: slice) -> Doubles:
            right, whole = self._by_unit(self.found.u, some), self._complete(self.found.W, some, given[1][:, columns])
            bound = self.tied.solve(right, given[0][:, columns])[self.places]
            return np.array([np.vdot(whole, self.energy @ whole), np.vdot(right[self.places], bound)])

        self.measured += self._take(work)

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
        return self._condense((self.fixed, self.W, 1.0))

    def take_best(self, given: NDArray[Any]) -> None:
        """Complete the best weights by those of units without loss."""
        if not self.n_received:
            self.history = AndersonHistory(0, self.T)  # the weights need the memory
            self.whole = np.empty((len(self.partition.units), self.W.shape[1]), dtype=np.float32)

        def work(some: slice, columns: slice) -> None:
            self.whole[:, some] = self._complete(self.W, some, given[0][:, columns])[: self.owned.n_own]

        self._take(work)

    def weights(self) -> Weights:
        """The weights of its own units, in the original order of the features."""
        rows, n = self.problem.rows, len(self.whole)

        def to_sparse(some: slice) -> Any:
            sparse = csr_array(self.whole[some, rows.place])
            return np.arange(some.start, some.stop), sparse.indptr[1:], sparse.indices, sparse.data

        parts = list(self.executor.map(to_sparse, row_blocks(n, 4 * self.whole.shape[1], ROWS)))
        deltas = stack_rows(parts, n, len(rows.place), self.executor)
        bias = self.whole[:, 0].astype(np.float64) if rows.has_bias else np.zeros(n)
        return Weights(deltas, bias, np.full(n, -1, dtype=np.int32), self.places.copy())

    def dual_variables(self) -> Pairs:
        """The pairs of its classes, with their dual variables."""
        return self.classes.true_pairs()

    # ---- checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> Arrays:
        """Everything that has changed since the worker was created, after a step."""
        return self.history.state() | {
            "point": self.point, "W": self.W, "alphas": self.classes.pairs.alphas, "T": self.T,
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

    # ---- the features whose boundary vectors are sent now, block by block ---------------------------------------------

    def _condense(self, *asked: tuple[PartialSystem, Floats, Any]) -> Given:
        """Its part of the right-hand sides of the boundary. asked: systems, vectors of its classes, and a factor of these."""
        touched, features = self.owned.touched, self.ranges[self.n_received]
        found = np.empty((len(asked), len(touched), features.stop - features.start), dtype=SENT)

        def work(some: slice, columns: slice) -> None:
            for k, (system, *right) in enumerate(asked):
                found[k, :, columns] = system.condense(self._by_unit(right[0], some, right[1]))

        if len(touched):
            self._map(work)
        return self.owned.places[touched], found

    def _complete(self, W: Floats, some: slice, given: NDArray[Any]) -> Doubles:
        """The weights of all units, those without loss as the weighted means of their neighbours."""
        whole = self.fixed.solve(self._by_unit(W, some), given)
        whole[self.places] = W[:, some]
        return whole

    def _by_unit(self, by_class: Floats, some: slice, factor: Any = 1.0) -> Doubles:
        """Some features of vectors of its classes, times a factor; zero for all other units."""
        whole = np.zeros((len(self.owned), some.stop - some.start))
        whole[self.places] = factor * by_class[:, some]
        return whole

    def _map(self, work: Callable[[slice, slice], Any]) -> list[Any]:
        """work: takes the features of a block, and their columns in boundary vectors."""
        features = self.ranges[self.n_received]
        blocks = row_blocks(features.stop - features.start, 8 * len(self.owned), self.block)
        some = [slice(features.start + columns.start, features.start + columns.stop) for columns in blocks]
        return list(self.executor.map(lambda block: work(*block), zip(some, blocks, strict=True)))

    def _take(self, work: Callable[[slice, slice], Any]) -> list[Any]:
        """As `_map`; then the next features are sent."""
        results = self._map(work)
        self.n_received = (self.n_received + 1) % len(self.ranges)
        return results
