"""A worker that owns a range of independent classes: it solves them, and finds missing pairs that violate the margin.

Every call concerns the worker's own classes and all documents; it returns sums over these classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ramify import native
from ramify.learners.linear.candidates import Signatures
from ramify.learners.linear.partition import Partition
from ramify.learners.linear.problem import Pairs, Problem, take_pairs, widen
from ramify.learners.linear.shards import take_signatures, write_shard
from ramify.learners.linear.taxonomy_ties import Deltas
from ramify.learners.linear.weights import Weights, assemble_weights, class_blocks
from ramify.parallel import Arrays, choose_executor
from ramify.parallel.checkpoints import invalid_checkpoint, take_array

MOST_VIOLATORS = 2048  # pairs of a class that one screening adds at most
SHARD_WEIGHTS = 1 << 25  # weights that are assembled at once when workers write shards

Classes = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class ClassResults:
    """For each class: objective, bound, scale and passes; the best scale of its weights; the cost of its missing pairs."""

    certificates: NDArray[np.float64]
    scale: NDArray[np.float64]
    missing_cost: NDArray[np.float64]

    @classmethod
    def empty(cls, n_classes: int) -> ClassResults:
        """Before anything is solved."""
        return cls(np.zeros((n_classes, 4)), np.ones(n_classes), np.zeros(n_classes))

    @property
    def primal(self) -> float:
        """The objective of all classes, missing pairs included."""
        return float(self.certificates[:, 0].sum() + self.missing_cost.sum())

    @property
    def dual(self) -> float:
        """The sum of the classes' bounds."""
        return float(self.certificates[:, 1].sum())


class FlatWorker:
    """Owns a range of independent classes.

    pairs: the working set of (document, class) pairs. solved: the same with the dual variables of the weights. wider: all pairs
    that were ever found, with dual variables to start from. Only in a tree do they differ. chosen: the classes that still have
    to be solved.
    """

    def __init__(self, problem: Problem, partition: Partition, memory_saving: int = 0) -> None:
        self.problem, self.units = problem.part(partition.first, partition.last)
        self.partition, self.memory_saving = partition, memory_saving
        self.n_threads = 1 if memory_saving else partition.n_threads
        self.executor = choose_executor(self.n_threads)
        self.X, forest = self.problem.rows.to_native(), self.problem.forest
        self.ancestors = native.Pattern(forest.above_offsets, forest.above, len(forest))
        self.pairs = self.solved = self.wider = replace(partition.pairs, alphas=partition.pairs.alphas.copy())
        self.results = ClassResults.empty(self.problem.n_classes)
        self.deltas = Deltas.zero(len(forest))
        self._made_vectors: tuple[Deltas, native.SparseVectors] | None = None
        self.chosen = self.problem.classes
        self._violators: tuple[Classes, Classes] | None = None

    # ---- a round ------------------------------------------------------------------------------------------------------

    def solve_classes(self, tolerance: float, part: int = 0, parts: int = 1) -> int:
        """Solve one of several parts of the chosen classes, with the weights above them fixed; gives the most passes."""
        classes, results = np.array_split(self.chosen, parts)[part], self.results
        self._inner_passes(self.solved, results, classes, tolerance)
        results.scale[classes] = results.certificates[classes, 2]
        return int(results.certificates[classes, 3].max(initial=0))

    def screen(self, margin: float, closely: bool) -> list[float]:
        """Find missing pairs of the chosen classes whose score may be above −1 − margin.

        Gives how many there are, the objective of all classes, and their bound.
        """
        self._violators = self._screen(self.pairs, self.chosen, margin, closely)
        return [len(self._violators[1]), self.results.primal, self.results.dual]

    def add_violators(self, only_their_classes: bool) -> None:
        """Add the pairs that screening found; from now on solve all classes, or only those of the added pairs."""
        assert self._violators is not None
        documents, classes = self._violators
        self.pairs = self.solved = self.wider = widen(self.pairs, documents, classes)
        self._violators = None
        self.chosen = np.unique(classes) if only_their_classes else self.problem.classes

    def estimate_missing_cost(self, sample: list[int]) -> float:
        """What the missing pairs of a sample of all classes cost at most, as far as the classes are its own."""
        mine = self._own_of(sample)
        self._screen(self.solved, mine, 0.0, closely=False)
        cost = float(self.results.missing_cost[mine].sum())
        self.results.missing_cost[:] = 0
        return cost

    def objective(self) -> list[float]:
        """The objective of all classes, and their bound."""
        return [self.results.primal, self.results.dual]

    # ---- results ------------------------------------------------------------------------------------------------------

    def objective_by_class(self) -> NDArray[np.float64]:
        """For each class its objective, missing pairs included, and its bound."""
        return np.column_stack([self.results.certificates[:, 0] + self.results.missing_cost, self.results.certificates[:, 1]])

    def weights(self) -> Weights:
        """The weights of all units, those above the classes included; the worker cannot be used afterwards."""
        self.free_memory()
        deltas, self.deltas, self._made_vectors = self.deltas, Deltas.zero(len(self.problem.forest)), None
        return assemble_weights(self.problem, self.solved, self.results.scale, deltas, self.n_threads, self.executor)

    def write_shards(self, directory: str, candidates: Signatures | None) -> list[str]:
        """Write the weights of all units to files, a range of classes at a time; gives the names.

        candidates: the signatures of all classes, if weights are trained on candidate documents only.
        """
        self.free_memory()
        # ranges of classes with so many weights that these can be assembled at once
        rows, names = self.problem.rows, []
        n_weights = np.minimum(np.diff(self.solved.offsets) * (len(rows.values) / max(1, len(rows))), rows.n_features)
        number = (np.cumsum(n_weights) // SHARD_WEIGHTS).astype(np.int64)
        ends = [*(np.flatnonzero(np.diff(number)) + 1).tolist(), self.problem.n_classes]
        for first, last in zip([0, *ends[:-1]], ends, strict=True):
            problem, units = self.problem.part(first, last)
            parts = self.solved.part(first, last), self.results.scale[first:last], self.deltas.of(units)
            weights = assemble_weights(problem, *parts, self.n_threads, self.executor)
            classes = slice(self.partition.first + first, self.partition.first + last)
            names.append(f"{classes.start:09d}.safetensors")
            signatures = None if candidates is None else take_signatures(candidates, classes)
            write_shard(Path(directory) / names[-1], weights, signatures)
        return names

    def dual_variables(self) -> Pairs:
        """The pairs and their dual variables, from which a problem with other costs can start."""
        return self.wider

    def free_memory(self) -> None:
        """Drop what the weights are not made of; only workers of a tree have such."""

    # ---- checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> Arrays:
        """Everything that has changed since the worker was created."""
        pairs, results = self.pairs, self.results
        return {
            "offsets": pairs.offsets, "documents": pairs.documents, "alphas": pairs.alphas, "chosen": self.chosen,
            "certificates": results.certificates, "scale": results.scale, "missing_cost": results.missing_cost,
        }  # fmt: skip

    def restore(self, state: Arrays) -> None:
        """Set the state that another worker of the same partition had."""
        n = self.problem.n_classes
        chosen = self._take_classes(state, "chosen")
        certificates = take_array(state, "certificates", np.float64, n, 4)
        self.results = ClassResults(
            certificates, *(take_array(state, name, np.float64, n) for name in ("scale", "missing_cost"))
        )
        self.pairs = self.solved = self.wider = take_pairs(state, self.pairs, len(self.problem.rows))
        self.chosen = chosen

    def _take_classes(self, state: Arrays, name: str) -> Classes:
        classes = take_array(state, name, np.int32, state[name].size)
        if np.any((classes < 0) | (classes >= self.problem.n_classes)) or np.any(classes[1:] <= classes[:-1]):
            raise invalid_checkpoint("classes that do not exist")
        return classes

    # ---- kernels ------------------------------------------------------------------------------------------------------

    @property
    def _vectors(self) -> native.SparseVectors:
        """δ as kernels take it; made once for each layout, because that reads all features."""
        if self._made_vectors is None or self._made_vectors[0] is not self.deltas:
            self._made_vectors = self.deltas, native.SparseVectors(*self.deltas.arrays, self.problem.rows.n_features)
        return self._made_vectors[1]

    def _own_of(self, sample: list[int]) -> Classes:
        found = np.asarray(sample, dtype=np.int32) - np.int32(self.partition.first)
        return found[(found >= 0) & (found < self.problem.n_classes)]

    def _inner_passes(self, pairs: Pairs, results: ClassResults, classes: Classes, tolerance: float, most: int = 2**31) -> None:
        """Solve classes with the weights above them fixed, in at most so many passes over their pairs.

        For each class the objective, bound, scale and passes are written to the certificates of the results.
        """
        rows, costs, settings = self.problem.rows, self.problem.costs, self.problem.settings
        above = self.ancestors, self._vectors
        data = self.X, native.Pairs(*pairs.arrays, len(rows)), costs.documents, *above
        how = settings.loss, tolerance, min(most, settings.max_iter), settings.seed, results.certificates
        blocks = class_blocks(classes, self.n_threads)
        list(self.executor.map(lambda some: native.solve_classes_in_place(*data, some, *how), blocks))

    def _screen(self, pairs: Pairs, classes: Classes, margin: float, closely: bool) -> tuple[Classes, Classes]:
        """Documents and classes of missing pairs whose score may be above −1 − margin; also updates what they cost at most."""
        rows, costs, results = self.problem.rows, self.problem.costs, self.results
        results.missing_cost[classes] = 0
        above = self.ancestors, self._vectors
        data = self.X, native.Pairs(*pairs.arrays, len(rows)), costs.documents, *above, results.scale
        how = self.problem.settings.loss, -1 - margin, closely, MOST_VIOLATORS, results.missing_cost
        blocks = class_blocks(classes, self.n_threads)
        found = list(self.executor.map(lambda some: native.screen_classes_in_place(*data, some, *how), blocks))
        none = np.zeros(0, dtype=np.int32)
        return np.concatenate([none, *(rows for rows, _ in found)]), np.concatenate([none, *(some for _, some in found)])
