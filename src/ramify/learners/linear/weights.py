"""The weights of a linear model, stored sparsely as the difference δ of each unit from its parent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify import native
from ramify.errors import ModelError
from ramify.features.term_counts import stacked, take_columns
from ramify.learners.linear.problem import Pairs, Problem
from ramify.learners.linear.taxonomy_ties import Deltas, Joins
from ramify.parallel import Executor
from ramify.persistence import are_indices, are_offsets

MAX_HOLLOW = 1 << 24  # weights, features × classes
MOST_HOLLOW = 8  # features per stored weight
MOST_STEPS, USUAL_DEPTH = 1 << 24, 64  # units on the paths to all classes, and on one of them
LARGEST = 1e20  # weight of a model file
MOST_FEATURES = (1 << 31) - 1
MAX_TABLE = 1 << 28  # weights up to which scoring uses a dense table, features × classes
SMALLEST = 0.005  # of a class's largest weight: the fast mode drops smaller ones
BLOCK, BLOCKS_PER_THREAD = 32, 8  # classes that a thread takes together, and blocks of classes for every thread


@dataclass(frozen=True)
class Weights:
    """One sparse row per unit; the weights of a unit are the sum of the rows on its path and of those that joins on it add.

    deltas: units × features. bias: per unit, summed likewise. parent: of every unit, -1 for a root; parents come first.
    class_units: the unit of every class. joins: of a DAG.
    """

    deltas: csr_array
    bias: NDArray[np.float64]
    parent: NDArray[np.int32]
    class_units: NDArray[np.int64]
    joins: Joins | None = None

    @classmethod
    def flat(cls, deltas: csr_array, bias: NDArray[np.float64]) -> Weights:
        """Independent classes, whose rows are their weights."""
        return cls(deltas, bias, np.full(len(bias), -1, dtype=np.int32), np.arange(len(bias), dtype=np.int64))

    @property
    def is_flat(self) -> bool:
        """Whether classes are independent, and their rows are their weights, as :meth:`flat` makes them."""
        has_paths = self.joins is not None or bool((self.parent >= 0).any())
        return not has_paths and np.array_equal(self.class_units, np.arange(len(self.parent)))

    @property
    def n_features(self) -> int:
        """The width of the documents that can be scored."""
        return int(self.deltas.shape[1])

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.class_units)

    def of_class(self, k: int) -> tuple[NDArray[np.float64], float]:
        """Weights and bias of one class."""
        return self.of_unit(int(self.class_units[k]))

    def of_unit(self, unit: int) -> tuple[NDArray[np.float64], float]:
        """Weights and bias of one unit."""
        path = self.path_of(unit)
        return np.asarray(self.deltas[path].sum(axis=0), dtype=np.float64).ravel(), float(self.bias[path].sum())

    def at_features(self, k: int, features: NDArray[Any]) -> tuple[NDArray[np.float64], float]:
        """Weights of one class for some features, and its bias; the weights of all features would take more memory."""
        path = self.path_of(int(self.class_units[k]))
        rows, (asked, place) = self.deltas[path], np.unique(features, return_inverse=True)
        _, columns, values = take_columns((rows.indptr, rows.indices, rows.data), asked)
        w: NDArray[Any] = np.bincount(columns, values, minlength=len(asked))
        return w[place].astype(np.float64, copy=False), float(self.bias[path].sum())

    def path_of(self, unit: int) -> list[int]:
        """The units whose rows are the weights of one: from the root down to it, then those that joins add."""
        path = [unit]
        while self.parent[path[-1]] >= 0:
            path.append(int(self.parent[path[-1]]))
        added = [] if self.joins is None else [unit for join in path for unit in self.joins.added_by(join)]
        return path[::-1] + added

    def score(self, X: csr_array) -> NDArray[np.float32]:
        """Scores of documents, documents × classes."""
        if self.is_hollow:
            used, narrow = self._narrow
            rows = take_columns((X.indptr, X.indices, X.data), used)
            return narrow.score(stacked([rows], len(used)))
        if self.fits_table:
            table, bias = self._table
            S = np.empty((X.shape[0], len(bias)))
            native.score_rows_in_place(native.rows_of(X), table, bias, S)
            return S.astype(np.float32)
        # every unit once per document; then the scores of the units above are added from the root down
        S = np.empty((X.shape[0], len(self.parent)))
        parent = self.parent if self.joins is None else np.full_like(self.parent, -1)
        native.score_units_in_place(native.rows_of(X), self._by_feature, parent, self.bias, S)
        return (S[:, self.class_units] if self.joins is None else (self.paths @ S.T).T).astype(np.float32)

    def make_ready(self) -> None:
        """Arrange weights for scoring, before threads share them."""
        weights = self._narrow[1] if self.is_hollow else self
        _ = weights._table if weights.fits_table else weights._by_feature

    @property
    def is_hollow(self) -> bool:
        """Whether most features have no weight, and there are so many that they are left out for scoring."""
        return self.n_features * self.n_classes > MAX_HOLLOW and MOST_HOLLOW * self.deltas.nnz < self.n_features

    @cached_property
    def _narrow(self) -> tuple[NDArray[Any], Weights]:
        """The features with a weight, rising, and these weights over them alone."""
        used, place = np.unique(self.deltas.indices, return_inverse=True)
        used = used if len(used) else np.zeros(1, dtype=np.int32)
        rows = csr_array((self.deltas.data, place, self.deltas.indptr), shape=(self.deltas.shape[0], len(used)))
        return used, replace(self, deltas=rows)

    @property
    def fits_table(self) -> bool:
        """Whether documents are scored with a dense table of weights, features × classes."""
        return self.n_features * self.n_classes <= MAX_TABLE

    @cached_property
    def _by_feature(self) -> native.Rows:
        return native.rows_of(self.deltas.tocsc())

    @cached_property
    def _table(self) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        weights = (self.paths.astype(np.float32) @ self.deltas).T.toarray()
        return np.ascontiguousarray(weights, dtype=np.float32), self.paths @ self.bias

    @cached_property
    def along_paths(self) -> tuple[native.Rows, NDArray[np.float64], native.Pattern]:
        """Deltas, bias, and the units on the path to every class, as the kernel that scores a few classes takes them."""
        return native.rows_of(self.deltas), self.bias, native.pattern_of(self.paths)

    @cached_property
    def paths(self) -> csr_array:
        """Classes × units: one where a unit lies on the path to a class, or a join on the path adds it."""
        steps, level = [], self.class_units
        while (level >= 0).any():
            steps.append(level)
            level = np.where(level >= 0, self.parent[level], -1)
        # parents come first, so the units of a path rise from the root down
        table = np.stack(steps[::-1], axis=1) if steps else np.zeros((self.n_classes, 0), dtype=np.int64)
        there = table >= 0
        ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        paths = csr_array((np.ones(ends[-1]), table[there], ends), shape=(self.n_classes, len(self.parent)))
        return paths if self.joins is None else csr_array(paths + paths @ self.joins.matrix())

    # ---- saving -------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays from which :meth:`from_arrays` makes the same weights."""
        deltas = self.deltas
        arrays = deltas.indptr, deltas.indices, deltas.data, self.bias, self.parent, self.class_units
        typed = {name: array.astype(kind, copy=False) for (name, kind), array in zip(_TYPES.items(), arrays, strict=True)}
        return typed if self.joins is None else typed | {"join_offsets": self.joins.offsets, "join_units": self.joins.units}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], n_features: int) -> Weights:
        """Make weights after checking types, shapes and ranges."""
        offsets, features, values, bias, parent, class_units = (arrays[name] for name in _TYPES)
        for name, kind in _TYPES.items():
            if arrays[name].dtype != kind or arrays[name].ndim != 1:
                raise ModelError(f"{name} of the linear model has the wrong type; train the model again.")
        n_units = len(parent)
        fits = len(features) == len(values) and len(bias) == n_units and n_units > 0
        if not fits or not are_offsets(offsets, n_units, len(features)):
            raise ModelError("the weights of the linear model have shapes that do not fit together; train the model again.")
        _check_range("a feature", features, 0, n_features)
        _check_range("a class", class_units, 0, n_units)
        if len(np.unique(class_units)) < len(class_units):
            raise ModelError("two classes of the linear model have the same weights; train the model again.")
        _check_range("a unit's parent", parent - np.arange(n_units), -n_units - 1, 0)
        _check_range("a unit's parent", parent, -1, n_units)
        if not (are_moderate(values) and are_moderate(bias)):
            raise ModelError("the weights of the linear model are not all numbers that training gives; train the model again.")
        joins = _take_joins(arrays, n_units)
        _refuse_long_paths(parent, class_units, joins)
        # the arrays may be memory-mapped, and scipy's constructor would copy them
        deltas = csr_array((n_units, n_features), dtype=np.float32)
        narrow = np.int32 if len(features) < 2**31 else np.int64
        deltas.indptr, deltas.indices, deltas.data = offsets.astype(narrow), features.astype(narrow, copy=False), values
        return cls(deltas, bias, parent, class_units, joins)


def are_moderate(weights: NDArray[np.floating[Any]]) -> bool:
    """Whether all numbers are finite, and so small that no sum of them is infinite; makes no copy of a memory-mapped array."""
    return not weights.size or bool(weights.min() >= -LARGEST and weights.max() <= LARGEST)


_TYPES = {
    "delta_offsets": np.int64, "delta_features": np.int32, "delta_values": np.float32,
    "unit_bias": np.float64, "unit_parent": np.int32, "class_units": np.int64,
}  # fmt: skip


def _take_joins(arrays: dict[str, NDArray[Any]], n_units: int) -> Joins | None:
    """The joins of a model file, if it has any."""
    if "join_offsets" not in arrays:
        return None
    offsets, units = arrays["join_offsets"], arrays["join_units"]
    if units.dtype != np.int32 or units.ndim != 1 or not are_offsets(offsets, n_units, len(units)):
        raise ModelError("the joins of the linear model do not fit its units; train the model again.")
    _check_range("a join", units, 0, n_units)
    return Joins(offsets, units)


def _refuse_long_paths(parent: NDArray[np.int32], class_units: NDArray[np.int64], joins: Joins | None) -> None:
    """Refuse a small file whose paths would fill the memory: those of taxonomies have few units."""
    added = None if joins is None else np.diff(joins.offsets)
    level: NDArray[Any] = class_units
    n_levels, n_added = 0, 0
    while len(level):
        n_levels, n_added = n_levels + 1, n_added + (0 if added is None else int(added[level].sum()))
        if n_levels * len(class_units) + n_added > max(MOST_STEPS, USUAL_DEPTH * len(class_units)):
            raise ModelError("the classes of the linear model have too many units above them; train the model again.")
        level = parent[level]
        level = level[level >= 0]


def _check_range(what: str, numbers: NDArray[Any], low: int, high: int) -> None:
    if not are_indices(numbers, high, first=low):
        raise ModelError(f"{what} of the linear model has a number outside {low} to {high - 1}; train the model again.")


# ---- from dual variables to weights -------------------------------------------------------------------------------------


def assemble_weights(
    problem: Problem, leaves: Pairs, scale: NDArray[np.float64], deltas: Deltas, n_threads: int, executor: Executor
) -> Weights:
    """Inner units from the deltas, which are freed; classes from their dual variables, times the scale of each."""
    rows, forest = problem.rows, problem.forest
    units, inner = (np.flatnonzero(which).astype(np.int32) for which in (forest.class_of >= 0, forest.class_of < 0))
    bias, bias_of_classes = np.zeros(len(forest)), np.zeros(len(units))
    least = SMALLEST if problem.settings.fast else 0.0
    documents, pairs = rows.to_native(), native.Pairs(*leaves.arrays, len(rows))

    def gather(some: NDArray[np.int32]) -> Any:
        first, last = int(some[0]), int(some[-1]) + 1
        to = rows.place, least, first, last, bias_of_classes
        found = native.assemble_class_weights_in_place(documents, pairs, scale, *to)
        return units[first:last], *found[1:]

    held = [native.SparseVectors(*deltas.arrays, rows.n_features)]
    del deltas  # frees memory for the weights of classes

    def arrange(some: NDArray[np.int32]) -> Any:
        return native.reorder_features_in_place(held[0], some, rows.place, bias)

    parts = list(executor.map(arrange, class_blocks(inner, n_threads)))
    held.clear()
    parts += executor.map(gather, class_blocks(problem.classes, n_threads))
    stacked = stack_rows(parts, len(forest), len(rows.place), executor)
    bias[units] = bias_of_classes
    joins = None if forest.is_tree else forest.joins
    return Weights(stacked, bias if rows.has_bias else np.zeros(len(forest)), forest.parent, units.astype(np.int64), joins)


def class_blocks(classes: NDArray[np.int32], n_threads: int) -> list[NDArray[np.int32]]:
    """A few large blocks of classes for every thread."""
    size = BLOCK * max(1, len(classes) // (BLOCKS_PER_THREAD * n_threads * BLOCK))
    return [classes[start : start + size] for start in range(0, len(classes), size)]


def stack_rows(parts: list[Any], n_units: int, n_features: int, executor: Executor) -> csr_array:
    """Sparse rows in the order of their units; each part is freed once it is copied.

    parts: units, where the row of each ends, features and values.
    """
    lengths = np.zeros(n_units, dtype=np.int64)
    for units, ends, *_ in parts:
        lengths[units] = np.diff(ends, prepend=0)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    narrow = np.int32 if offsets[-1] < 2**31 else np.int64  # scipy copies features that are not as wide as offsets
    features, values = np.empty(offsets[-1], dtype=narrow), np.empty(offsets[-1], dtype=np.float32)

    def copy(k: int) -> None:
        units, ends, part_features, part_values, *_ = parts[k]
        parts[k], start = None, 0
        for run in np.split(np.arange(len(units)), np.flatnonzero(np.diff(units) != 1) + 1):
            target, taken = offsets[units[run[0]]], slice(start, int(ends[run[-1]]))
            placed, start = slice(target, target + taken.stop - taken.start), taken.stop
            features[placed], values[placed] = part_features[taken], part_values[taken]

    for _ in executor.map(copy, range(len(parts))):
        pass
    return csr_array((values, features, offsets.astype(narrow)), shape=(len(lengths), n_features))


def merge_weights(
    parts: list[Weights], units: Sequence[NDArray[Any]], parent: NDArray[np.int32], class_units: Any, executor: Executor,
    joins: Joins | None = None,
) -> Weights:  # fmt: skip
    """The weights of all units, from those of the workers, which are freed.

    units: the numbers of the units of every part. A unit of multiple parts is taken from the first one. parent, class_units,
    joins: of all units.
    """
    if len(parts) == 1:
        return parts[0]
    rows, bias, is_known, n_features = [], np.zeros(len(parent)), np.zeros(len(parent), dtype=bool), parts[0].n_features
    for mine, part in zip(units, parts, strict=True):
        new = np.flatnonzero(~is_known[mine])
        if len(new) and new[-1] - new[0] + 1 == len(new):  # units of a tree are in preorder, so new ones come last
            ends = part.deltas.indptr[new[0] : new[-1] + 2]
            features, values = (each[ends[0] : ends[-1]] for each in (part.deltas.indices, part.deltas.data))
        else:
            taken = part.deltas[new]
            ends, features, values = taken.indptr, taken.indices, taken.data
        rows.append((mine[new], ends[1:] - ends[0], features, values))
        bias[mine[new]], is_known[mine] = part.bias[new], True
    parts.clear()
    stacked = stack_rows(rows, len(parent), n_features, executor)
    return Weights(stacked, bias, parent, class_units, joins if joins is not None and len(joins.units) else None)
