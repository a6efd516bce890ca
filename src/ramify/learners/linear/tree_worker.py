"""A worker that owns a range of a tree's classes: rounds of dual ascent along whole paths, and inner passes over its
classes.

Workers that have a unit in common all have the same δ of it. A round changes it by the sum of their changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify import native
from ramify.learners.linear.flat_worker import ClassResults, FlatWorker
from ramify.learners.linear.partition import MOST_CACHED, Partition, Vectors, to_sparse
from ramify.learners.linear.problem import Problem, widen
from ramify.learners.linear.taxonomy_ties import (
    Forest,
    ThreadPartition,
    add_changes,
    lay_out,
    partition_by_thread,
    visit_by_thread,
)
from ramify.parallel import Arrays, Executor
from ramify.parallel.checkpoints import invalid_checkpoint, take_array

SIBLING_ROUNDS, SIBLING_PASSES = 2, 3  # every second round starts with three passes over the documents of siblings
WORTHWHILE = 1.5  # threads of a DAG for every time that they shorten steps; with fewer, one thread is faster
CLASS_PASSES = 4  # over a class in a round, at most
REACTIVATION = 5  # rounds after which idle pairs are visited again
SIBLING_DOCUMENTS = 512  # of one group at most
SIBLING_SCORES = 1 << 17  # documents × classes of one group at most


@dataclass(slots=True)
class Ascent:
    """Where dual ascent stands.

    trees: for each thread, the units that it visits. cached: for each thread, u of its classes; vectors: the same as kernels
    take it, None if u is not cached. active: whether each pair is visited.
    """

    trees: list[native.TreePartition]
    cached: list[Any]
    vectors: list[native.ClassVectors | None]
    active: NDArray[np.uint8]
    slack: NDArray[np.float32]


class TreeWorker(FlatWorker):
    """Owns classes that are tied along the paths of a tree.

    pairs: those of dual ascent. solved: the same after inner passes over the classes. wider: with those that they added,
    whose dual variables are 0. active_classes: those that take part in dual ascent. rounds: how many there were.
    """

    def __init__(self, problem: Problem, partition: Partition, memory_saving: int = 0) -> None:
        super().__init__(problem, partition, memory_saving)
        self.rounds, self.active_classes = 0, self.problem.classes
        self.is_shared = np.isin(self.units, partition.shared)
        self.is_counted = ~self.is_shared | np.isin(self.units, partition.counted)
        self.ascent: Ascent | None = None
        self.siblings = gather_siblings(self.problem, self.X, self.executor)

    # ---- dual ascent --------------------------------------------------------------------------------------------------

    def count_paths(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Shared units, and how many of its threads visit each."""
        self.paths = self._assign_threads()
        return self.units[self.is_shared], self.paths.n_threads[self.is_shared]

    def begin_ascent(self, counts: tuple[NDArray[np.int64], NDArray[np.float32]] | None = None) -> None:
        """Begin an ascent in which all pairs are active; δ of the inner units are zero until they are recomputed.

        counts: shared units, and how many threads of all workers visit each; None where these are known already.
        """
        if counts is not None:
            units, totals = counts
            self.paths.n_threads[self.is_shared] = totals[np.searchsorted(units, self.units[self.is_shared])]
            self.active_classes = self.problem.classes
        problem, forest, pairs, paths = self.problem, self.problem.forest, self.pairs, self.paths
        listed, trees = self._listed_pairs, self._trees(paths.visited, paths.n_threads)
        is_inner = forest.class_of < 0
        has_all = is_inner & (paths.n_threads != 1) | self._is_read_often()
        is_listed = (is_inner & ~has_all).astype(np.uint8)
        parts = self.executor.map(lambda tree: native.list_tree_features(self.X, tree, listed, is_listed), trees)
        self.deltas = lay_out(list(parts), has_all, problem.rows.n_features)
        # u of each thread's classes over the features of their documents, unless that were too much
        rows, ranges = problem.rows, paths.classes(forest)
        n_entries = np.diff(pairs.offsets) * (len(rows.values) / max(1, len(rows)))
        if self.memory_saving > 0 or np.minimum(n_entries, rows.n_features).sum() > MOST_CACHED:
            cached: list[Any] = [_no_vectors(first) for first, _ in ranges]
        else:
            cached = list(self.executor.map(lambda some: (some[0], *native.sum_class_vectors(self.X, listed, *some)), ranges))
        active, slack = np.ones(len(pairs.documents), dtype=np.uint8), np.full(len(pairs), np.inf, dtype=np.float32)
        vectors = [native.ClassVectors(*mine, rows.n_features) if len(mine[1]) > 1 else None for mine in cached]
        self.ascent = Ascent(trees, cached, vectors, active, slack)

    def ascent_round(self) -> Vectors:
        """One round of dual ascent over its active classes; gives the changes of shared units."""
        problem, ascent = self.problem, self._ascent
        if self.rounds % REACTIVATION == 0:
            ascent.active[:] = 1
        seed = problem.settings.seed + 1_000_003 * self.rounds
        passes = SIBLING_PASSES if self.rounds % SIBLING_ROUNDS == 0 else 0
        duals, active = (self._vectors, self._listed_pairs), native.ActiveSet(ascent.active, ascent.slack)
        how = problem.costs.documents, self.siblings, active, problem.settings.loss, passes, CLASS_PASSES, seed

        def update(mine: tuple[native.TreePartition, Any]) -> Any:
            tree, vectors = mine
            return native.update_tree_duals_in_place(self.X, tree, *duals, vectors, *how)

        changes = self.executor.map(update, zip(ascent.trees, ascent.vectors, strict=True))
        self.rounds += 1
        return self._apply(list(changes))

    def recompute_deltas(self) -> Vectors:
        """δ from the dual variables, also in between: sums of changes in 32 bits drift, and a certificate must not."""
        problem, paths = self.problem, self.paths  # all classes, active or not
        self.deltas.values[:] = 0
        if problem.held is not None:
            self.deltas.values[self.deltas.start[0] : self.deltas.end[0]] = problem.held
        duals, trees = (self._vectors, self._listed_pairs), self._trees(paths.visited, paths.n_threads)
        changes = self.executor.map(lambda tree: native.assemble_tree_deltas_in_place(self.X, tree, *duals), trees)
        return self._apply(list(changes))

    def add_changes(self, changes: Vectors) -> None:
        """Add to shared units what all workers changed."""
        units, ends, features, values = changes
        places = np.minimum(np.searchsorted(self.units, units), len(self.units) - 1)
        mine = np.flatnonzero(self.units[places] == units)
        for k in mine.tolist():
            some = slice(int(ends[k - 1]) if k else 0, int(ends[k]))
            self.deltas.values[self.deltas.start[places[k]] + features[some]] += values[some]

    def estimate_gap(self, sample: list[int], tolerance: float) -> list[float]:
        """For a sample of all classes, as far as they are its own: their part of the dual, their objective once solved."""
        mine, results = self._own_of(sample), ClassResults.empty(self.problem.n_classes)
        self._inner_passes(self.pairs, results, mine, 1.0, most=0)
        dual = float(results.certificates[mine, 1].sum())
        solved = replace(self.pairs, alphas=self.pairs.alphas.copy())
        self._inner_passes(solved, results, mine, 0.1 * tolerance)
        return [dual, float(results.certificates[mine, 0].sum()), self._inner_squares()]

    def gap_by_class(self) -> NDArray[np.float64]:
        """For each class its part of the objective and of the dual, on the known pairs and without a step."""
        results = ClassResults.empty(self.problem.n_classes)
        self._inner_passes(self.pairs, results, self.problem.classes, 1.0, most=0)
        return results.certificates[:, :2]

    def select_active(self, classes: list[int]) -> None:
        """Continue dual ascent with some of all classes only, as far as they are its own; the others stay as they are."""
        self.active_classes = self._own_of(classes)
        self._restrict_ascent()
        self._ascent.active[:] = 1

    # ---- inner passes -------------------------------------------------------------------------------------------------

    def begin_inner_passes(self) -> None:
        """Start to solve the classes with the weights above them fixed, from the dual variables of the ascent."""
        self.solved, self.wider = replace(self.pairs, alphas=self.pairs.alphas.copy()), self.pairs
        self.chosen = self.problem.classes

    def screen_and_add(self, margin: float, closely: bool) -> list[float]:
        """Add missing pairs of the chosen classes that violate the margin; gives their cost, and the classes' objective.

        From then on only classes that got pairs are solved.
        """
        documents, classes = self._screen(self.solved, self.chosen, margin, closely)
        self.solved, self.wider = widen(self.solved, documents, classes), widen(self.wider, documents, classes)
        self.chosen = np.unique(classes)
        return [float(self.results.missing_cost.sum()), float(self.results.certificates[:, 0].sum())]

    def certify(self) -> list[float]:
        """The classes' objective and part of the dual, ½ Σ ‖δ‖² of the inner units, and how many pairs were added."""
        self.bounds = self.gap_by_class()[:, 1]
        n_added = len(self.wider.documents) - len(self.pairs.documents)
        return [self.results.primal, float(self.bounds.sum()), self._inner_squares(), n_added]

    def adopt_added(self) -> None:
        """Use the added pairs in dual ascent, too."""
        self.free_memory()
        self.pairs = self.solved = self.wider

    def objective_by_class(self) -> NDArray[np.float64]:
        """For each class its objective, missing pairs included, and its part of the dual when it was last certified."""
        return np.column_stack([super().objective_by_class()[:, 0], self.bounds])

    def free_memory(self) -> None:
        """Drop the ascent, which needs most memory."""
        self.ascent = self._made_vectors = None

    # ---- checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> Arrays:
        """Everything that has changed since the worker was created; inner passes are repeated from the last round of ascent."""
        ascent = self._ascent
        cached = {f"cached_{k}": vectors[3] for k, vectors in enumerate(ascent.cached)}
        return super().state() | cached | {
            "rounds": np.array([self.rounds]), "n_paths": self.paths.n_threads, "active_classes": self.active_classes,
            "deltas": self.deltas.values, "active": ascent.active, "slack": ascent.slack,
        }  # fmt: skip

    def restore(self, state: Arrays) -> None:
        """Set the state that another worker of the same partition had."""
        super().restore(state)
        self.rounds = int(take_array(state, "rounds", np.int64, 1)[0])
        if not 0 <= self.rounds <= self.problem.settings.max_iter + 1:
            raise invalid_checkpoint("an impossible number of rounds")
        self.paths = self._assign_threads()
        n_paths, own = take_array(state, "n_paths", np.float32, len(self.units)), self.paths.n_threads
        if np.any(np.where(self.is_shared, n_paths < own, n_paths != own)):
            raise invalid_checkpoint("paths over other units")
        own[:] = n_paths
        self.active_classes = self._take_classes(state, "active_classes")
        self.begin_ascent()
        if len(self.active_classes) < self.problem.n_classes:
            self._restrict_ascent()
        self.deltas.values[:] = take_array(state, "deltas", np.float32, len(self.deltas.values))
        self._ascent.active[:] = take_array(state, "active", np.uint8, len(self._ascent.active))
        self._ascent.slack[:] = take_array(state, "slack", np.float32, len(self._ascent.slack), may_be_infinite=True)
        for k, vectors in enumerate(self._ascent.cached):
            if vectors[3].size == state[f"cached_{k}"].size:  # not so if it has to save memory now
                vectors[3][:] = take_array(state, f"cached_{k}", np.float32, vectors[3].size)

    # ---- δ and paths --------------------------------------------------------------------------------------------------

    @property
    def _ascent(self) -> Ascent:
        assert self.ascent is not None
        return self.ascent

    @property
    def _listed_pairs(self) -> native.Pairs:
        """The pairs as kernels take them."""
        return native.Pairs(*self.pairs.arrays, len(self.problem.rows))

    def _assign_threads(self) -> ThreadPartition:
        forest, work, n = self.problem.forest, np.diff(self.pairs.offsets), self.partition.n_threads
        paths = partition_by_thread(forest, work, n)
        if not forest.is_tree and n < WORTHWHILE * _damping(forest, paths.n_threads):
            paths = partition_by_thread(forest, work, 1)
        if self.problem.held is not None:
            paths.n_threads[0] = 0
        return paths

    def _trees(self, visited: NDArray[np.uint8], n_threads: NDArray[np.float32]) -> list[native.TreePartition]:
        """The tree as each thread visits it."""
        forest = self.problem.forest
        joins = native.Pattern(forest.joins.offsets, forest.joins.units, len(forest))
        return [native.TreePartition(forest.parent, forest.class_of, n_threads, mine, joins) for mine in visited]

    def _restrict_ascent(self) -> None:
        """Visit only the paths of the active classes."""
        forest, active = self.problem.forest, self.active_classes
        some = visit_by_thread(forest, [active[(active >= a) & (active < b)] for a, b in self.paths.classes(forest)])
        # shared units keep the number of paths of all workers, which is then on the safe side
        n_paths = np.where(self.is_shared, self.paths.n_threads, np.maximum(1, some.n_threads)).astype(np.float32)
        n_paths[self.paths.n_threads == 0] = 0
        trees = self._trees(some.visited, n_paths)
        self.ascent = replace(self._ascent, trees=trees, cached=[_no_vectors(0)] * len(trees), vectors=[None] * len(trees))

    def _is_read_often(self) -> NDArray[np.bool_]:
        """Units that joins add: with all features, a join reads only its own of them, unless that were too much memory."""
        is_added = np.zeros(len(self.problem.forest), dtype=bool)
        is_added[self.problem.forest.joins.units] = True
        return is_added & (is_added.sum() * self.problem.rows.n_features <= MOST_CACHED and self.memory_saving == 0)

    def _apply(self, parts: list[Vectors]) -> Vectors:
        """Add changes of its own units; gives those of shared units."""
        if not self.is_shared.any():
            add_changes(self.deltas, parts)
            return to_sparse({})
        return self._take_shared(parts)

    def _take_shared(self, parts: list[Vectors]) -> Vectors:
        """Changes of shared units, added up."""
        found = {unit: np.zeros(self.problem.rows.n_features, np.float32) for unit in np.flatnonzero(self.is_shared).tolist()}
        for units, ends, features, values, *_ in parts:
            for unit, start, end in zip(units.tolist(), [0, *ends.tolist()], ends.tolist(), strict=False):
                changed = features[start:end]
                if unit in found:
                    found[unit][changed] += values[start:end]
                else:
                    self.deltas.values[self.deltas.start[unit] + changed] += values[start:end]
        return to_sparse({int(self.units[unit]): total for unit, total in found.items()})

    def _inner_squares(self) -> float:
        """½ Σ ‖δ‖² over the units that this worker counts."""
        others = (self.deltas.values[self.deltas.start[u] : self.deltas.end[u]] for u in np.flatnonzero(~self.is_counted))
        held = 0.0 if self.problem.held is None else 0.5 * float(np.square(self.problem.held, dtype=np.float64).sum())
        not_counted = 0.5 * sum(float(np.square(values, dtype=np.float64).sum()) for values in others)
        return self.deltas.half_squares() - held - not_counted


def _damping(forest: Forest, n_threads: NDArray[np.float32]) -> float:
    """How many times shorter steps are than those of one thread, on average over the classes."""
    lengths = np.diff(forest.above_offsets)
    return float((len(lengths) + n_threads[forest.above].sum()) / (len(lengths) + lengths.sum()))


def _no_vectors(first: int) -> tuple[int, NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    return first, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)


# ---- sibling classes, whose documents are solved together at the start of a round -----------------------------------------


def gather_siblings(problem: Problem, X: native.Documents, executor: Executor) -> native.SiblingProducts:
    """For every unit some documents of the classes right below it, evenly from these, and the matrix of their products."""
    forest, own = problem.forest, problem.own
    groups: dict[int, list[int]] = {}
    for parent, number in zip(forest.parent.tolist(), forest.class_of.tolist(), strict=True):
        if parent >= 0 and number >= 0:
            groups.setdefault(parent, []).append(number)
    chosen: list[NDArray[np.int32]] = [np.zeros(0, dtype=np.int32)] * len(forest)
    for unit, classes in groups.items():
        if len(classes) > 1:
            most = min(SIBLING_DOCUMENTS, SIBLING_SCORES // len(classes)) // len(classes)
            each = [own.indices[own.indptr[k] : own.indptr[k + 1]][:most] for k in classes]
            chosen[unit] = np.unique(np.concatenate(each)).astype(np.int32)
    lengths = np.asarray([len(documents) for documents in chosen])
    offsets, product_offsets = (np.concatenate([[0], np.cumsum(n)]).astype(np.int64) for n in (lengths, lengths**2))
    documents = np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.int32)
    products = np.empty(product_offsets[-1], dtype=np.float32)
    listed = native.Pattern(offsets, documents, len(problem.rows))
    blocks = [(first, min(first + 16, len(forest))) for first in range(0, len(forest), 16)]
    for _ in executor.map(lambda some: native.multiply_siblings_in_place(X, listed, product_offsets, *some, products), blocks):
        pass
    return native.SiblingProducts(listed, product_offsets, products)
