"""Documents of sibling classes and their products with each other, with which a group of siblings is settled at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from ramify.learners.linear.candidates import Signatures
from ramify.learners.linear.flat_worker import FlatWorker, Known
from ramify.learners.linear.partition import Share, Vectors, pack
from ramify.learners.linear.problem import Pairs, Problem, Rows, widen
from ramify.learners.linear.taxonomy_ties import Deltas, Forest, ThreadPartition, add_changes, join, partition_by_thread
from ramify.learners.linear.weights import Weights
from ramify.native import ascend_tree_in_place, gather_tree, hold_classes, multiply_siblings, regather_tree_in_place
from ramify.parallel import Arrays, Executor
from ramify.parallel.checkpoints import strange, take_array

DOCUMENTS = 512  # of one group at most
SCORES = 1 << 17  # documents × classes of one group at most


@dataclass(frozen=True, slots=True)
class Siblings:
    """For every unit some documents of the classes right below it, and the square matrix of their products."""

    offsets: NDArray[np.int64]
    documents: NDArray[np.int32]
    product_offsets: NDArray[np.int64]
    products: NDArray[np.float32]

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arguments of the kernel that settles siblings."""
        return self.offsets, self.documents, self.product_offsets, self.products


def gather_siblings(rows: Rows, own: csc_array, forest: Forest, executor: Executor) -> Siblings:
    """Choose the documents of every group, evenly from its classes, and multiply them with each other."""
    chosen: list[NDArray[np.int32]] = [np.zeros(0, dtype=np.int32)] * len(forest)
    for unit, classes in _groups(forest).items():
        if len(classes) > 1:
            most = min(DOCUMENTS, SCORES // len(classes)) // len(classes)
            each = [own.indices[own.indptr[k] : own.indptr[k + 1]][:most] for k in classes]
            chosen[unit] = np.unique(np.concatenate(each)).astype(np.int32)
    lengths = np.asarray([len(documents) for documents in chosen])
    offsets, product_offsets = _offsets(lengths), _offsets(lengths**2)
    documents = np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.int32)
    products = np.empty(product_offsets[-1], dtype=np.float32)

    def work(first: int) -> None:
        last = min(first + 16, len(forest))
        multiply_siblings(*rows.arrays, offsets, documents, product_offsets, first, last, products)

    for _ in executor.map(work, range(0, len(forest), 16)):
        pass
    return Siblings(offsets, documents, product_offsets, products)


def _groups(forest: Forest) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for parent, number in zip(forest.parent.tolist(), forest.class_of.tolist(), strict=True):
        if parent >= 0 and number >= 0:
            groups.setdefault(parent, []).append(number)
    return groups


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


# --------------------------------------------------------------------------------------------------------------
# The owner of a stretch of a tree's classes: it climbs the joint dual in rounds, and settles its classes in between.
#
# δ of units that other members pass, too, is the same in all of them. A round changes it by what all of them give.


EVERY, SETTLING = 2, 3  # every which round over a tree settles siblings first, with how many passes over their documents
MOST_HELD = 1 << 27  # entries of the vectors of a tree's classes that are held between rounds
WAKING = 5  # rounds over a tree after which idle pairs are visited again


@dataclass(slots=True)
class Climb:
    """Where the ascent of a tree's dual stands."""

    walks: ThreadPartition
    held: list[Any]
    awake: NDArray[np.uint8]
    slack: NDArray[np.float32]


class TreeWorker(FlatWorker):
    """The owner of classes that are tied along the paths of a tree.

    pairs: those on which it climbs. leaves: the same, as settling the classes left them. rounds: how many there were.
    """

    def __init__(self, problem: Problem, share: Share, frugality: int = 0) -> None:
        super().__init__(problem, share, frugality)
        self.leaves, self.wider, self.rounds = self.pairs, self.pairs, 0
        self.is_far = np.isin(self.units, share.shared)  # units that others pass, too
        self.is_theirs = self.is_far & ~np.isin(self.units, share.answers_for)

    @cached_property
    def siblings(self) -> Siblings:
        """Documents of sibling classes, and their products with each other."""
        return gather_siblings(self.problem.rows, self.problem.own, self.problem.forest, self.executor)

    # ---- climbing ---------------------------------------------------------------------------------------------------

    def count_walks(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Units that others pass, too, and how many of its own walks pass each."""
        self.walks = self._share_out()
        return self.units[self.is_far], self.walks.share[self.is_far]

    def _share_out(self) -> ThreadPartition:
        walks = partition_by_thread(self.problem.forest, np.diff(self.pairs.offsets), self.share.n_walks)
        if self.problem.held is not None:
            walks.share[0] = 0
        return walks

    def begin(self, walks: tuple[NDArray[np.int64], NDArray[np.float32]]) -> None:
        """Start to climb, with so many walks over shared units in all."""
        units, counts = walks
        self.walks.share[self.is_far] = counts[np.searchsorted(units, self.units[self.is_far])]
        self._begin(self.walks)

    def _begin(self, walks: ThreadPartition) -> None:
        awake = np.ones(len(self.pairs.documents), dtype=np.uint8)
        slack = np.full(len(self.pairs), np.inf, dtype=np.float32)
        self.deltas = self._gather(walks)
        self.climb = Climb(walks, self._hold(walks), awake, slack)

    def give_deltas(self) -> Vectors:
        """What its own classes add to δ of the shared units; these are zero then, until they are taken back."""
        return self._take_far([])

    def ascend(self) -> Vectors:
        """One round over all classes; gives the changes of shared units."""
        problem, forest, walks, climb = self.problem, self.problem.forest, self.climb.walks, self.climb
        if self.rounds % WAKING == 0:
            climb.awake[:] = 1
        seed = problem.settings.seed + 1_000_003 * self.rounds
        passes = SETTLING if self.rounds % EVERY == 0 else 0

        def work(mine: tuple[Any, Any]) -> Any:
            visited, held = mine
            return ascend_tree_in_place(
                *problem.rows.arrays, problem.loss, forest.parent, forest.class_of, walks.share, visited,
                *self.deltas.arrays, *self.pairs.arrays, *held, problem.costs.documents, *self.siblings.arrays,
                climb.awake, climb.slack, passes, 1, seed,
            )  # fmt: skip

        parts = list(self.executor.map(work, zip(walks.visited, climb.held, strict=True)))
        self.rounds += 1
        return self._sort_out(parts)

    def regather(self) -> Vectors:
        """δ anew, made of the dual variables: sums of changes in 32 bits drift, and what is certified must not."""
        problem, forest, walks = self.problem, self.problem.forest, self.walks  # all classes, whoever climbs
        self.deltas.values[:] = 0
        if problem.held is not None:
            self.deltas.values[self.deltas.start[0] : self.deltas.end[0]] = problem.held

        def work(visited: NDArray[np.uint8]) -> Any:
            tree = forest.parent, forest.class_of, walks.share, visited
            return regather_tree_in_place(*problem.rows.arrays, *tree, *self.deltas.arrays, *self.pairs.arrays)

        return self._sort_out(list(self.executor.map(work, walks.visited)))

    def take_changes(self, changes: Vectors) -> None:
        """Add to shared units what all members changed."""
        units, ends, features, values = changes
        places = np.minimum(np.searchsorted(self.units, units), len(self.units) - 1)
        mine = np.flatnonzero(self.units[places] == units)
        for k in mine.tolist():
            here = slice(int(ends[k - 1]) if k else 0, int(ends[k]))
            self.deltas.values[self.deltas.start[places[k]] + features[here]] += values[here]

    def judge(self, sample: list[int], tolerance: float) -> list[float]:
        """Of a sample of all classes, as far as these are its own: their part of the dual, and what they cost when settled."""
        mine, known = self._own_of(sample), Known.nothing(self.problem.n_classes)
        dual = self._duals(mine)
        leaves = replace(self.pairs, alphas=self.pairs.alphas.copy())
        self._settle(leaves, known, mine, 0.5 * tolerance)
        return [dual, float(known.certificates[mine, 0].sum()), self._inner()]

    def gains_by_class(self) -> NDArray[np.float64]:
        """By class, its part of the objective and of the dual, on the pairs that are known and without a step."""
        known = Known.nothing(self.problem.n_classes)
        self._settle(self.pairs, known, self.problem.classes, 1.0, most=0)
        return known.certificates[:, :2]

    def narrow(self, chosen: list[int]) -> None:
        """Go on climbing with some of all classes only, as far as these are its own; others stay as they are."""
        forest, visited = self.problem.forest, np.zeros_like(self.walks.visited)
        units = np.flatnonzero(np.isin(forest.class_of, self._own_of(chosen)))
        visited[:, units] = self.walks.visited[:, units]
        for unit in range(len(forest) - 1, -1, -1):  # parents come first
            if forest.parent[unit] >= 0:
                visited[:, forest.parent[unit]] |= visited[:, unit]
        # units that walks of others pass, too, keep their number of walks, which is then on the safe side
        share = np.where(self.is_far, self.walks.share, np.maximum(1, visited.sum(axis=0))).astype(np.float32)
        share[self.walks.share == 0] = 0
        first = (0, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))
        self.climb = replace(self.climb, walks=ThreadPartition(visited, share), held=[first] * len(visited))
        self.climb.awake[:] = 1

    # ---- settling ---------------------------------------------------------------------------------------------------

    def begin_settling(self) -> None:
        """Go on with copies of the dual variables, so that the climb can go on from its own."""
        self.leaves, self.wider = replace(self.pairs, alphas=self.pairs.alphas.copy()), self.pairs
        self.chosen = self.problem.classes

    def settle(self, tolerance: float, part: int = 0, parts: int = 1) -> int:
        """Solve the chosen classes, or one of several parts of them, with the weights above them held fixed."""
        return self._settle(self.leaves, self.known, np.array_split(self.chosen, parts)[part], tolerance)

    def look(self, margin: float, closely: bool) -> list[float]:
        """Take in pairs of the chosen classes that turn out to cost something; gives what they and all classes cost.

        From then on only classes for which something was found are solved.
        """
        documents, strays = self._screen(self.leaves, self.chosen, margin, closely)
        self.leaves, self.wider = widen(self.leaves, documents, strays), widen(self.wider, documents, strays)
        self.chosen = np.unique(strays)
        return [float(self.known.strays.sum()), float(self.known.certificates[:, 0].sum())]

    def estimate(self, sample: list[int]) -> float:
        """What unknown pairs of a sample of all classes cost at most, as far as these are its own."""
        mine = self._own_of(sample)
        self._screen(self.leaves, mine, 0.0, closely=False)
        cost = float(self.known.strays[mine].sum())
        self.known.strays[:] = 0
        return cost

    def certify(self) -> list[float]:
        """What its classes cost, their part of the dual, the size of the inner units, and how many pairs were taken in."""
        taken_in = len(self.wider.documents) - len(self.pairs.documents)
        self.duals = self._duals_of(self.problem.classes)
        return [self.known.primal, float(self.duals.sum()), self._inner(), taken_in]

    def figures_by_class(self) -> NDArray[np.float64]:
        """What each class costs, and its part of the dual, when they were last certified."""
        return np.column_stack([self.known.certificates[:, 0] + self.known.strays, self.duals])

    def grow(self) -> None:
        """Go on with the pairs that were taken in."""
        del self.climb  # the next one needs the room
        self.pairs = self.leaves = self.wider

    @property
    def solved(self) -> Pairs:
        """The pairs as settling left them."""
        return self.leaves

    def dual_variables(self) -> Pairs:
        """The pairs on which it climbed, and those that settling took in, which begin at 0."""
        return self.wider

    def weights(self) -> Weights:
        """Weights of all units; what they are made of is given up."""
        self.__dict__.pop("climb", None)
        return super().weights()

    def write_shards(self, directory: str, near: Signatures | None) -> list[str]:
        """Write the weights of all units to files, some classes at a time, and give their names."""
        self.__dict__.pop("climb", None)  # files need the room
        return super().write_shards(directory, near)

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def state(self) -> Arrays:
        """All that has changed since the member was made; what settling found is not needed to go on climbing."""
        climb = self.climb
        held = {f"held_{k}": vectors[3] for k, vectors in enumerate(climb.held)}
        numbers = {"rounds": np.array([self.rounds]), "share": self.walks.share}
        return super().state() | numbers | held | {
            "deltas": self.deltas.values, "awake": climb.awake, "slack": climb.slack,
        }  # fmt: skip

    def restore(self, state: Arrays) -> None:
        """Become as the member was whose state this is."""
        super().restore(state)
        self.leaves = self.wider = self.pairs
        self.rounds = int(take_array(state, "rounds", np.int64, 1)[0])
        if not 0 <= self.rounds <= self.problem.settings.max_iter + 1:
            raise strange("a number of rounds that there cannot be")
        self._take_walks(take_array(state, "share", np.float32, len(self.units)))
        self._begin(self.walks)
        self.deltas.values[:] = take_array(state, "deltas", np.float32, len(self.deltas.values))
        self.climb.awake[:] = take_array(state, "awake", np.uint8, len(self.climb.awake))
        self.climb.slack[:] = take_array(state, "slack", np.float32, len(self.climb.slack), may_be_infinite=True)
        for k, vectors in enumerate(self.climb.held):
            if vectors[3].size == state[f"held_{k}"].size:  # not so where it is more frugal than it was
                vectors[3][:] = take_array(state, f"held_{k}", np.float32, vectors[3].size)

    def _take_walks(self, share: NDArray[np.float32]) -> None:
        """Share out the classes as before. share: how many walks of all members passed each unit."""
        self.walks = self._share_out()
        own = self.walks.share
        if np.any(np.where(self.is_far, share < own, share != own)):
            raise strange("walks over other units")
        own[:] = share

    # ---- how --------------------------------------------------------------------------------------------------------

    def _gather(self, walks: ThreadPartition) -> Deltas:
        """δ of the inner units, made of the dual variables."""
        problem, forest = self.problem, self.problem.forest
        share = np.where(walks.share == 0, len(walks.visited) + 1, walks.share).astype(
            np.float32
        )  # shared units have all features

        def work(visited: NDArray[np.uint8]) -> Any:
            tree = forest.parent, forest.class_of, share, visited
            return gather_tree(*problem.rows.arrays, *tree, *self.pairs.arrays)

        gathered = join(list(self.executor.map(work, walks.visited)), len(forest))
        return gathered if problem.held is None else gathered.with_first(problem.held)

    def _hold(self, walks: ThreadPartition) -> list[Any]:
        """u of the classes of every walk over the features of their documents, unless that were too much."""
        rows, pairs = self.problem.rows, self.pairs
        touched = np.diff(pairs.offsets) * (len(rows.values) / max(1, len(rows)))
        is_too_much = self.frugality > 0 or np.minimum(touched, rows.n_features).sum() > MOST_HELD

        def hold(some: tuple[int, int]) -> Any:
            if is_too_much:
                return some[0], np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)
            return some[0], *hold_classes(*rows.arrays, *pairs.arrays, *some)

        return list(self.executor.map(hold, walks.classes(self.problem.forest)))

    def _sort_out(self, parts: list[Vectors]) -> Vectors:
        """Add changes of units that are its own; gives those of shared units."""
        if not self.is_far.any():
            add_changes(self.deltas, parts)
            return pack({})
        return self._take_far(parts)

    def _take_far(self, parts: list[Vectors]) -> Vectors:
        """Changes of shared units, added up; without changes, their δ itself, which is zero then."""
        width, far = self.problem.rows.n_features, np.flatnonzero(self.is_far).tolist()
        found = {unit: np.zeros(width, dtype=np.float32) for unit in far}
        if not parts:
            for unit, total in found.items():
                here = slice(self.deltas.start[unit], self.deltas.end[unit])
                total[self.deltas.features[here]] = self.deltas.values[here]
                self.deltas.values[here] = 0
        for units, ends, features, values, *_ in parts:
            for unit, start, end in zip(units.tolist(), [0, *ends.tolist()], ends.tolist(), strict=False):
                changed = features[start:end]
                if unit in found:
                    found[unit][changed] += values[start:end]
                else:
                    self.deltas.values[self.deltas.start[unit] + changed] += values[start:end]
        return pack({int(self.units[unit]): total for unit, total in found.items()})

    def _inner(self) -> float:
        """½ Σ ‖δ‖² over the units that it answers for."""
        theirs = (self.deltas.values[self.deltas.start[u] : self.deltas.end[u]] for u in np.flatnonzero(self.is_theirs))
        held = 0.0 if self.problem.held is None else 0.5 * float(np.square(self.problem.held, dtype=np.float64).sum())
        return (
            self.deltas.half_squares() - held - 0.5 * sum(float(np.square(values, dtype=np.float64).sum()) for values in theirs)
        )

    def _duals(self, classes: NDArray[np.int32]) -> float:
        """What classes add to the dual, beside the inner units: Σ U h(α/U) − u·w + ½‖u‖²."""
        return float(self._duals_of(classes).sum())

    def _duals_of(self, classes: NDArray[np.int32]) -> NDArray[np.float64]:
        known = Known.nothing(self.problem.n_classes)
        self._settle(self.pairs, known, classes, 1.0, most=0)
        return np.asarray(known.certificates[classes, 1])
