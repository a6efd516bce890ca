"""The owner of a stretch of classes: solves them with the weights above them held fixed, and looks for pairs that matter.

What a member is asked it does for its own classes, with all documents; what it gives back are sums over them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.learners.linear.candidates import Signatures
from ramify.learners.linear.partition import Share
from ramify.learners.linear.problem import Pairs, Problem, take_pairs, widen
from ramify.learners.linear.shards import take_signatures, write_shard
from ramify.learners.linear.taxonomy_ties import Deltas
from ramify.learners.linear.weights import Weights, assemble_weights
from ramify.native import screen_classes, solve_classes_in_place
from ramify.parallel import Arrays, choose_executor
from ramify.parallel.checkpoints import strange, take_array

STRAYS = 2048  # of a class that one screening adds at most
WEIGHTS_A_SHARD = 1 << 25  # that are made at once, when members write them
BLOCK, PARTS = 32, 8  # classes that are screened together, and parts of the classes for every thread

Classes = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Known:
    """What is certain of every class: objective, bound, stretch and passes; and what its unknown pairs cost at most."""

    certificates: NDArray[np.float64]
    stretch: NDArray[np.float64]
    strays: NDArray[np.float64]

    @classmethod
    def nothing(cls, n_classes: int) -> Known:
        """Before anything was solved."""
        return cls(np.zeros((n_classes, 4)), np.ones(n_classes), np.zeros(n_classes))

    @property
    def primal(self) -> float:
        """What all classes cost, unknown pairs included."""
        return float(self.certificates[:, 0].sum() + self.strays.sum())

    @property
    def dual(self) -> float:
        """The bounds of classes that stand alone, added up."""
        return float(self.certificates[:, 1].sum())


class FlatWorker:
    """The owner of classes that stand alone.

    pairs: those that are worked on. chosen: classes that are still to be solved.
    """

    def __init__(self, problem: Problem, share: Share, frugality: int = 0) -> None:
        self.problem, self.units = problem.part(share.first, share.last)
        self.share, self.frugality = share, frugality
        self.n_threads = 1 if frugality else share.n_walks
        self.executor = choose_executor(self.n_threads)
        self.pairs = replace(share.pairs, alphas=share.pairs.alphas.copy())
        self.known = Known.nothing(self.problem.n_classes)
        self.deltas = Deltas.zero(len(self.problem.forest))
        self.chosen = self.problem.classes
        self._found: tuple[Classes, Classes] | None = None

    # ---- what it is asked -------------------------------------------------------------------------------------------

    def settle(self, tolerance: float, part: int = 0, parts: int = 1) -> int:
        """Solve the chosen classes, or one of several parts of them; gives the most passes that one of them took."""
        return self._settle(self.pairs, self.known, np.array_split(self.chosen, parts)[part], tolerance)

    def screen(self, margin: float, closely: bool) -> list[float]:
        """Look for pairs of the chosen classes that are not worked on, and may have a score above −1 − margin.

        Gives how many there are, what all classes cost and their bound.
        """
        self._found = self._screen(self.pairs, self.chosen, margin, closely)
        return [len(self._found[1]), self.known.primal, self.known.dual]

    def widen(self, only_these: bool) -> None:
        """Take in what was found; from now on solve all classes, or only those for which something was found."""
        assert self._found is not None
        documents, strays = self._found
        self.pairs, self._found = widen(self.pairs, documents, strays), None
        self.chosen = np.unique(strays) if only_these else self.problem.classes

    def estimate(self, sample: list[int]) -> float:
        """What unknown pairs of a sample of all classes cost at most, as far as these are its own."""
        mine = self._own_of(sample)
        self._screen(self.pairs, mine, 0.0, closely=False)
        cost = float(self.known.strays[mine].sum())
        self.known.strays[:] = 0
        return cost

    def figures(self) -> list[float]:
        """What all classes cost, and their bound."""
        return [self.known.primal, self.known.dual]

    def figures_by_class(self) -> NDArray[np.float64]:
        """What each class costs, unknown pairs included, and its bound."""
        return np.column_stack([self.known.certificates[:, 0] + self.known.strays, self.known.certificates[:, 1]])

    def weights(self) -> Weights:
        """Weights of all units, of those above classes included; what they are made of is given up."""
        deltas, self.deltas = self.deltas, Deltas.zero(len(self.problem.forest))
        return assemble_weights(self.problem, self.solved, self.known.stretch, deltas, self._over, self.executor)

    def write_shards(self, directory: str, near: Signatures | None) -> list[str]:
        """Write the weights of all units to files, some classes at a time, and give their names.

        near: the signatures of all classes, where these know near documents only.
        """
        names = []
        for first, last in self._stretches():
            problem, units = self.problem.part(first, last)
            parts = self.solved.part(first, last), self.known.stretch[first:last], self.deltas.of(units)
            weights = assemble_weights(problem, *parts, self._over, self.executor)
            among_all = slice(self.share.first + first, self.share.first + last)
            names.append(f"{among_all.start:09d}.safetensors")
            write_shard(Path(directory) / names[-1], weights, None if near is None else take_signatures(near, among_all))
        return names

    def _stretches(self) -> list[tuple[int, int]]:
        """Neighbouring classes with so many weights that these can be made at once."""
        each = len(self.problem.rows.values) / max(1, len(self.problem.rows))
        touched = np.minimum(np.diff(self.solved.offsets) * each, self.problem.rows.n_features)
        number = (np.cumsum(touched) // WEIGHTS_A_SHARD).astype(np.int64)
        ends = [*(np.flatnonzero(np.diff(number)) + 1).tolist(), self.problem.n_classes]
        return list(zip([0, *ends[:-1]], ends, strict=True))

    @property
    def solved(self) -> Pairs:
        """The pairs that weights are made of."""
        return self.pairs

    def dual_variables(self) -> Pairs:
        """The pairs and their dual variables, from which other costs can start."""
        return self.pairs

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def state(self) -> Arrays:
        """All that has changed since the member was made."""
        pairs, known = self.pairs, self.known
        return {
            "offsets": pairs.offsets, "documents": pairs.documents, "alphas": pairs.alphas, "chosen": self.chosen,
            "certificates": known.certificates, "stretch": known.stretch, "strays": known.strays,
        }  # fmt: skip

    def restore(self, state: Arrays) -> None:
        """Become as the member was whose state this is."""
        n, chosen = self.problem.n_classes, take_array(state, "chosen", np.int32, state["chosen"].size)
        if np.any((chosen < 0) | (chosen >= n)) or np.any(chosen[1:] <= chosen[:-1]):
            raise strange("classes that are not there")
        certificates = take_array(state, "certificates", np.float64, n, 4)
        self.known = Known(certificates, *(take_array(state, name, np.float64, n) for name in ("stretch", "strays")))
        self.pairs, self.chosen = take_pairs(state, self.pairs, len(self.problem.rows)), chosen

    # ---- how --------------------------------------------------------------------------------------------------------

    def _over(self, classes: Classes, work: Callable[[Classes], Any]) -> list[Any]:
        """Results of `work` on some classes after the other, in a few large parts for every thread."""
        part = BLOCK * max(1, len(classes) // (PARTS * self.n_threads * BLOCK))
        return list(self.executor.map(lambda start: work(classes[start : start + part]), range(0, len(classes), part)))

    def _own_of(self, sample: list[int]) -> Classes:
        found = np.asarray(sample, dtype=np.int32) - np.int32(self.share.first)
        return found[(found >= 0) & (found < self.problem.n_classes)]

    @property
    def _above(self) -> tuple[Any, ...]:
        return self.problem.forest.above_offsets, self.problem.forest.above, *self.deltas.arrays

    def _settle(self, pairs: Pairs, known: Known, classes: Classes, tolerance: float, most: int = 2**31) -> int:
        """Solve classes with the weights above them held fixed, and note what is certain of each; gives the most passes."""
        problem, above, most = self.problem, self._above, min(most, self.problem.settings.max_iter)

        def work(some: Classes) -> None:
            solve_classes_in_place(
                *problem.rows.arrays, problem.loss, *pairs.arrays, problem.costs.documents, *above,
                some, tolerance, most, problem.settings.seed, known.certificates,
            )  # fmt: skip

        self._over(classes, work)
        known.stretch[classes] = known.certificates[classes, 2]
        return int(known.certificates[classes, 3].max(initial=0))

    def _screen(self, pairs: Pairs, classes: Classes, margin: float, closely: bool) -> tuple[Classes, Classes]:
        """Unknown pairs of some classes whose score may lie above −1 − margin; notes what they cost at most."""
        problem, known, above = self.problem, self.known, self._above
        known.strays[classes] = 0

        def look(some: Classes) -> Any:
            return screen_classes(
                *problem.rows.arrays, *pairs.arrays, *above, known.stretch, some, -1 - margin, closely, STRAYS,
                problem.loss, problem.costs.documents, known.strays,
            )  # fmt: skip

        parts = self._over(classes, look)
        nothing = np.zeros(0, dtype=np.int32)
        return np.concatenate([nothing, *(rows for rows, _ in parts)]), np.concatenate([nothing, *(c for _, c in parts)])
