"""Weights in shards: each holds a stretch of a model's classes, is a file of its own, and is mapped rather than read.

A shard is whole in itself: the units above its classes are in it, whoever else has a copy of them. Beside the weights it has an
index, by feature, in which the likely classes of a document are looked up: the strongest weights of every class, or the
signatures of classes that know near documents only. Nothing as large as the weights is ever made of a mapped shard.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, vstack

from ramify.errors import InputError, ModelError
from ramify.learners.base import Contributions
from ramify.learners.linear.candidates import Signatures, largest_of_rows
from ramify.learners.linear.weights import Weights, kernel_arrays
from ramify.persistence import MAX_SHARDS, ArrayFile, LazyArrays, MappedFile, open_array_file, write_array_file

STRONGEST = 200  # weights of a class in the index
FAINT = 0.05  # of a class's largest weight: below it a weight is left out of the index
CLASSES_A_CHUNK = 256
MOST_WEIGHTS = 1 << 31  # from here on, scipy would copy what is mapped

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Shard:
    """A stretch of a model's classes, and how to find the likely ones among them.

    start: what is added to products with the index; of classes that are out of the question, -inf. rows: deltas, bias and the
    units on the path to every class, as the kernel that scores takes them. is_fast: whether its classes know near documents
    only, so that no others may be likely. file: where it is kept, if it is.
    """

    weights: Weights
    index: Signatures
    start: NDArray[np.float32]
    rows: tuple[Any, ...]
    is_fast: bool = False
    file: MappedFile | None = None

    def __reduce__(self) -> Any:
        """A shard that has a file is sent as its name, and opened where it comes to."""
        if self.file is None:
            return Shard, (self.weights, self.index, self.start, self.rows, self.is_fast)
        return _reopen, (str(self.file.path.absolute()), _stamp(self.file.path), self.start)

    @classmethod
    def by_weights(cls, weights: Weights, index: Signatures, file: MappedFile | None = None) -> Self:
        """Likely are classes whose bias and strongest weights say so."""
        start = (weights.paths() @ weights.bias).astype(np.float32)
        return cls(weights, index, start, _rows_of(weights), False, file)

    @classmethod
    def by_nearness(cls, weights: Weights, near: Signatures, file: MappedFile | None = None) -> Self:
        """Likely are classes that are near, and no others."""
        return cls(weights, near, np.zeros(near.n_classes, dtype=np.float32), _rows_of(weights), True, file)

    def among(self, allowed: NDArray[np.bool_]) -> Self:
        """The same shard, of which only some classes can be likely."""
        return replace(self, start=np.where(allowed, self.start, np.float32(-np.inf)))

    @property
    def n_bytes(self) -> int:
        """How much there is in its arrays."""
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> Arrays:
        """What a file of it holds."""
        return self.weights.arrays() | self.index.kept("near" if self.is_fast else "index")

    def to_file(self) -> ArrayFile:
        """Its file, or one that is still to be made."""
        return LazyArrays(self.arrays) if self.file is None else self.file


def _stamp(path: str | Path) -> tuple[int, int]:
    """Size and age of a file, by which it is known again; one that took its place has others."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise ModelError(f"the shard {path} is gone ({error.strerror}); machines must reach it under the same name.") from None
    return found.st_size, found.st_mtime_ns


def _reopen(path: str, stamp: tuple[int, int], start: NDArray[np.float32]) -> Shard:
    if _stamp(path) != stamp:
        raise ModelError(f"the shard {path} was replaced meanwhile; begin anew with the model that is there.")
    return replace(_opened(path, stamp), start=start)


@lru_cache(maxsize=MAX_SHARDS)
def _opened(path: str, stamp: tuple[int, int]) -> Shard:
    """A shard that was sent here before is open already."""
    return open_shard(path)


def _rows_of(weights: Weights) -> tuple[Any, ...]:
    return *kernel_arrays(weights.deltas), weights.bias, *kernel_arrays(weights.paths())[:2]


@dataclass(frozen=True, slots=True)
class ShardedWeights:
    """The weights of a model, shard by shard; classes are numbered through."""

    shards: tuple[Shard, ...]

    @classmethod
    def open(cls, files: Sequence[MappedFile | str | Path]) -> Self:
        """Make weights of shard files, in the order of their classes."""
        shards = tuple(open_shard(file) for file in files)
        if len({(shard.weights.n_features, shard.is_fast) for shard in shards}) != 1:
            raise ModelError("the shards are not of one model: their features or their modes differ; train the model again.")
        return cls(shards)

    @property
    def n_features(self) -> int:
        """The width of the documents that can be scored."""
        return self.shards[0].weights.n_features

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return sum(self.sizes)

    @property
    def sizes(self) -> list[int]:
        """The number of classes in each shard."""
        return [shard.weights.n_classes for shard in self.shards]

    @property
    def is_fast(self) -> bool:
        """Whether classes know near documents only."""
        return self.shards[0].is_fast

    def of_class(self, k: int) -> tuple[NDArray[np.float64], float]:
        """Weights and bias of one class."""
        weights, place = self._find(k)
        return weights.of_class(place)

    def contributions(self, x: csr_array, k: int) -> Contributions:
        """Features of one document, what each adds to the score of a class, and the bias."""
        weights, place = self._find(k)
        return weights.contributions(x, place)

    def among(self, allowed: NDArray[np.bool_]) -> Self:
        """The same weights, of which only some classes can be likely."""
        parts = np.split(allowed, np.cumsum(self.sizes)[:-1])
        return replace(self, shards=tuple(shard.among(part) for shard, part in zip(self.shards, parts, strict=True)))

    def _find(self, k: int) -> tuple[Weights, int]:
        """The shard of a class, and the number that the class has there."""
        ends = np.cumsum(self.sizes)
        number = int(np.searchsorted(ends, k, side="right"))
        return self.shards[number].weights, k - int(ends[number] - self.sizes[number])


# ---- files --------------------------------------------------------------------------------------------------------------


def write_shard(path: str | Path, weights: Weights, near: Signatures | None = None) -> None:
    """Write one shard, whole or not at all; an older one at the same place is replaced.

    near: the signatures of its classes, where these know near documents only; otherwise an index of weights is made.
    """
    write_array_file(path, arrays_of(weights, near))


def open_shard(file: MappedFile | str | Path) -> Shard:
    """Map a shard after checking types, shapes and ranges of all that is in it."""
    file = file if isinstance(file, MappedFile) else open_array_file(file)
    is_fast = "near_offsets" in file.arrays
    kind = "near" if is_fast else "index"
    try:
        n_features = len(file.arrays[f"{kind}_offsets"]) - 1
        weights = Weights.from_arrays(file.arrays, n_features)
        index = Signatures.from_kept(file.arrays, n_features, weights.n_classes, kind)
    except KeyError as error:
        raise ModelError(f"{file.path} is no shard of a linear model: it has no {error}; train the model again.") from None
    except (ModelError, TypeError) as error:
        raise ModelError(f"{file.path}: {error}") from None
    if not weights.n_classes:
        raise ModelError(f"{file.path} is a shard without classes; train the model again.")
    return (Shard.by_nearness if is_fast else Shard.by_weights)(weights, index, file)


def arrays_of(weights: Weights, near: Signatures | None) -> Arrays:
    """The arrays of a shard file."""
    if weights.deltas.nnz >= MOST_WEIGHTS:
        raise InputError(f"a shard has {weights.deltas.nnz:,} weights; make more shards, of fewer than {MOST_WEIGHTS:,} each.")
    found = index_weights(weights).kept("index") if near is None else near.kept()
    return weights.arrays() | found


def index_weights(weights: Weights) -> Signatures:
    """The strongest weights of every class, by feature."""
    paths = weights.paths().astype(np.float32)
    chunks = [
        _strongest_of_rows(csr_array(paths[start : start + CLASSES_A_CHUNK] @ weights.deltas))
        for start in range(0, paths.shape[0], CLASSES_A_CHUNK)
    ]
    index = csc_array(vstack(chunks, format="csc"))
    return Signatures(*kernel_arrays(index), paths.shape[0])


def _strongest_of_rows(weights: csr_array) -> csr_array:
    rows = largest_of_rows(weights, STRONGEST)
    heights = rows.max(axis=1).toarray()
    kept = rows.data >= FAINT * np.repeat(heights, np.diff(rows.indptr))
    offsets = np.concatenate([[0], np.cumsum(kept)])[rows.indptr]
    return csr_array((rows.data[kept], rows.indices[kept], offsets), shape=rows.shape)


# ---- cutting ------------------------------------------------------------------------------------------------------------


def cut_evenly(n_classes: int, n_shards: int) -> list[slice]:
    """Stretches of about as many classes each; never more than there are classes.

    >>> cut_evenly(5, 2), cut_evenly(1, 3)
    ([slice(0, 2, None), slice(2, 5, None)], [slice(0, 1, None)])
    """
    whole = isinstance(n_shards, (int, np.integer)) and not isinstance(n_shards, bool)
    if not whole or not 1 <= n_shards <= MAX_SHARDS:
        raise InputError(f"the number of shards is {n_shards!r}; give a whole number from 1 to {MAX_SHARDS:,}.")
    n = min(int(n_shards), n_classes)
    ends = [n_classes * k // n for k in range(n + 1)]
    return [slice(start, end) for start, end in pairwise(ends)]


def take_classes(weights: Weights, stretch: slice) -> Weights:
    """The weights of some classes: their units and those above them, in the same order."""
    classes = weights.class_units[stretch]
    units = np.unique(weights.paths()[stretch].indices)
    place = np.full(len(weights.parent) + 1, -1, dtype=np.int64)  # the last place is what is above a root
    place[units] = np.arange(len(units))
    parent = place[weights.parent[units]].astype(np.int32)
    return Weights(csr_array(weights.deltas[units]), weights.bias[units], parent, place[classes])


def take_signatures(near: Signatures, stretch: slice) -> Signatures:
    """The signatures of a stretch of classes."""
    first, n_classes = np.int32(stretch.start), stretch.stop - stretch.start
    inside = (near.classes >= first) & (near.classes < first + n_classes)
    offsets = np.concatenate([[0], np.cumsum(inside)])[near.offsets]
    return Signatures(offsets, near.classes[inside] - first, near.weights[inside], n_classes)


def files_of(weights: Weights, near: Signatures | None, stretches: Sequence[slice]) -> list[ArrayFile]:
    """Shard files to write, one stretch of classes each; none is made before its turn."""

    def make(stretch: slice) -> Arrays:
        return arrays_of(take_classes(weights, stretch), None if near is None else take_signatures(near, stretch))

    return [LazyArrays(lambda stretch=stretch: make(stretch)) for stretch in stretches]  # type: ignore[misc]
