"""Weights in shards, and the search for the best classes in them.

Each shard is a file with a range of a model's classes, and is memory-mapped instead of read.

A shard is complete: it contains the units above its classes, even if other shards contain them, too. Beside the weights it has
an index by feature, in which the candidate classes of a document are looked up: the largest weights of every class, or the
signatures of classes trained in the fast mode. Nothing as large as the weights is ever copied from a mapped shard.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, vstack

from ramify.errors import InputError, ModelError
from ramify.learners.linear.candidates import Signatures, largest_of_rows
from ramify.learners.linear.weights import Weights
from ramify.native import Rows, find_candidates_in_place, find_top_classes_in_place, rows_of, score_candidates_in_place
from ramify.parallel import Executor, choose_executor, row_blocks
from ramify.persistence import MAX_SHARDS, ArrayFile, LazyArrays, OpenedArrays, open_array_file, write_array_file

TOP_FEATURES = 200  # of a class in the index
SMALLEST = 0.05  # of a class's largest weight: the index leaves out smaller ones
CLASSES_PER_CHUNK = 256
MOST_WEIGHTS = 1 << 31  # from here on, scipy would copy what is mapped

BEAM = 20  # candidates of a document that a model in shards scores
FAR = np.float32(-1)  # the score of a class that is no candidate
ROWS = 512  # documents per block

Arrays = dict[str, NDArray[Any]]
Found = tuple[NDArray[np.int32], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Shard:
    """A range of a model's classes, and how to find candidates among them.

    start: added to products with the index; -inf for classes that are not allowed. is_fast: whether the classes were trained in
    the fast mode, so that only classes that share a feature with the document are candidates. file: where it is stored, if any.
    """

    weights: Weights
    index: Signatures
    start: NDArray[np.float32]
    is_fast: bool = False
    file: OpenedArrays | None = None

    def __reduce__(self) -> Any:
        """A shard with a mapped file is sent as its path, and opened by the receiver."""
        if self.file is None or self.file.stamp is None:
            return Shard, (self.weights, self.index, self.start, self.is_fast)
        return _reopen, (str(self.file.path.absolute()), self.file.stamp[2:], self.start)

    def __deepcopy__(self, memo: Any) -> Shard:
        """The same shard, which never changes; its file may be gone."""
        return self

    @classmethod
    def by_weights(cls, weights: Weights, index: Signatures, file: OpenedArrays | None = None) -> Self:
        """Candidates by bias and largest weights."""
        return cls(weights, index, (weights.paths @ weights.bias).astype(np.float32), False, file)

    @classmethod
    def by_signatures(cls, weights: Weights, signatures: Signatures, file: OpenedArrays | None = None) -> Self:
        """Candidates by signatures only."""
        return cls(weights, signatures, np.zeros(signatures.n_classes, dtype=np.float32), True, file)

    def among(self, allowed: NDArray[np.bool_]) -> Self:
        """The same shard with some classes as candidates only."""
        return replace(self, start=np.where(allowed, self.start, np.float32(-np.inf)))

    def arrays(self) -> Arrays:
        """The arrays of its file."""
        return self.weights.arrays() | self.index.to_arrays("signature" if self.is_fast else "index")


def _reopen(path: str, stamp: tuple[int, int], start: NDArray[np.float32]) -> Shard:
    try:
        found = os.stat(path)
    except OSError as error:
        why = f"the shard {path} is gone ({error.strerror}); all computers must find it under the same path."
        raise ModelError(why) from None
    if (found.st_size, found.st_mtime_ns) != stamp:
        raise _replaced(path)
    return replace(_opened(path, stamp), start=start)


def _replaced(path: str) -> ModelError:
    return ModelError(f"the shard {path} was replaced meanwhile; load the model again.")


@lru_cache(maxsize=MAX_SHARDS)
def _opened(path: str, stamp: tuple[int, int]) -> Shard:
    shard = open_shard(path)
    if shard.file is None or shard.file.stamp is None or shard.file.stamp[2:] != stamp:  # it was replaced a moment ago
        raise _replaced(path)
    return shard


@dataclass(frozen=True, slots=True)
class ShardedWeights:
    """The weights of a model, shard by shard; classes are numbered across shards."""

    shards: tuple[Shard, ...]

    @classmethod
    def open(cls, files: Sequence[OpenedArrays | str | Path]) -> Self:
        """Open shard files, in the order of their classes."""
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

    def of_class(self, k: int) -> tuple[NDArray[np.float64], float]:
        """Weights and bias of one class."""
        weights, k = self._holding(k)
        return weights.of_class(k)

    def at_features(self, k: int, features: NDArray[Any]) -> tuple[NDArray[np.float64], float]:
        """Weights of one class for distinct features, and its bias."""
        weights, k = self._holding(k)
        return weights.at_features(k, features)

    def _holding(self, k: int) -> tuple[Weights, int]:
        """The weights that hold a class, and its number there."""
        ends = np.cumsum(self.sizes)
        number = int(np.searchsorted(ends, k, side="right"))
        return self.shards[number].weights, k - int(ends[number] - self.sizes[number])

    def among(self, allowed: NDArray[np.bool_]) -> Self:
        """The same weights with some classes as candidates only."""
        parts = np.split(allowed, np.cumsum(self.sizes)[:-1])
        return replace(self, shards=tuple(shard.among(part) for shard, part in zip(self.shards, parts, strict=True)))


# ---- files --------------------------------------------------------------------------------------------------------------


def write_shard(path: str | Path, weights: Weights, signatures: Signatures | None = None) -> None:
    """Write one shard atomically, and replace an older one at the same path.

    signatures: of its classes, in the fast mode; otherwise an index of the weights is made.
    """
    write_array_file(path, arrays_of(weights, signatures))


def open_shard(file: OpenedArrays | str | Path) -> Shard:
    """Map a shard after checking types, shapes and ranges."""
    file = file if isinstance(file, OpenedArrays) else open_array_file(file)
    is_fast = "signature_offsets" in file.arrays
    kind = "signature" if is_fast else "index"
    try:
        n_features = len(file.arrays[f"{kind}_offsets"]) - 1
        weights = Weights.from_arrays(file.arrays, n_features)
        index = Signatures.from_arrays(file.arrays, n_features, weights.n_classes, kind)
    except KeyError as error:
        raise ModelError(f"{file.path} is no shard of a linear model: it has no {error}; train the model again.") from None
    except (ModelError, TypeError) as error:
        raise ModelError(f"{file.path}: {error}") from None
    if not weights.n_classes:
        raise ModelError(f"{file.path} is a shard without classes; train the model again.")
    return (Shard.by_signatures if is_fast else Shard.by_weights)(weights, index, file)


def arrays_of(weights: Weights, signatures: Signatures | None) -> Arrays:
    """The arrays of a shard file."""
    if weights.deltas.nnz >= MOST_WEIGHTS:
        raise InputError(f"a shard has {weights.deltas.nnz:,} weights; make more shards, of fewer than {MOST_WEIGHTS:,} each.")
    index = index_weights(weights).to_arrays("index") if signatures is None else signatures.to_arrays()
    return weights.arrays() | index


def index_weights(weights: Weights) -> Signatures:
    """The largest weights of every class, by feature."""
    paths = weights.paths.astype(np.float32)
    chunks = []
    for start in range(0, paths.shape[0], CLASSES_PER_CHUNK):
        rows = largest_of_rows(csr_array(paths[start : start + CLASSES_PER_CHUNK] @ weights.deltas), TOP_FEATURES)
        kept = rows.data >= SMALLEST * np.repeat(rows.max(axis=1).toarray(), np.diff(rows.indptr))
        offsets = np.concatenate([[0], np.cumsum(kept)])[rows.indptr]
        chunks.append(csr_array((rows.data[kept], rows.indices[kept], offsets), shape=rows.shape))
    index = csc_array(vstack(chunks, format="csc"))
    return Signatures(index.indptr.astype(np.int64), index.indices.astype(np.int32), index.data, paths.shape[0])


# ---- cutting ------------------------------------------------------------------------------------------------------------


def cut_evenly(n_classes: int, n_shards: int) -> list[slice]:
    """Ranges of about equally many classes; never more ranges than classes.

    >>> cut_evenly(5, 2), cut_evenly(1, 3)
    ([slice(0, 2, None), slice(2, 5, None)], [slice(0, 1, None)])
    """
    whole = isinstance(n_shards, (int, np.integer)) and not isinstance(n_shards, bool)
    if not whole or not 1 <= n_shards <= MAX_SHARDS:
        raise InputError(f"the number of shards is {n_shards!r}; give a whole number from 1 to {MAX_SHARDS:,}.")
    n = min(int(n_shards), n_classes)
    ends = [n_classes * k // n for k in range(n + 1)]
    return [slice(start, end) for start, end in pairwise(ends)]


def take_classes(weights: Weights, classes: slice) -> Weights:
    """The weights of a range of classes: their units and those above them, in the same order."""
    units = np.unique(weights.paths[classes].indices)
    place = np.full(len(weights.parent) + 1, -1, dtype=np.int64)  # the last one is for the parent of a root
    place[units] = np.arange(len(units))
    parent = place[weights.parent[units]].astype(np.int32)
    joins = None if weights.joins is None else weights.joins.part(units)
    rows, class_units = csr_array(weights.deltas[units]), place[weights.class_units[classes]]
    return Weights(rows, weights.bias[units], parent, class_units, joins)


def take_signatures(signatures: Signatures, classes: slice) -> Signatures:
    """The signatures of a range of classes."""
    first, n_classes = np.int32(classes.start), classes.stop - classes.start
    inside = (signatures.classes >= first) & (signatures.classes < first + n_classes)
    offsets = np.concatenate([[0], np.cumsum(inside)])[signatures.offsets]
    return Signatures(offsets, signatures.classes[inside] - first, signatures.weights[inside], n_classes)


def files_of(weights: Weights, signatures: Signatures | None, ranges: Sequence[slice]) -> list[ArrayFile]:
    """Shard files to write, one range of classes each; each is made when it is written."""

    def make(classes: slice) -> Arrays:
        return arrays_of(take_classes(weights, classes), None if signatures is None else take_signatures(signatures, classes))

    return [LazyArrays(partial(make, classes)) for classes in ranges]


# ---- the best classes of a document without scoring all -------------------------------------------------------------------
#
# Candidates are the likeliest classes by bias and the weights in the index alone; they are then scored with all their weights.
# Classes of a tree share the products of the units on their paths. The candidates of a model in shards are the likeliest of
# the candidates of all shards, so the result does not depend on how the model is cut.


def search(X: csr_array, shards: Sequence[Shard], k: int, width: int, executor: Executor) -> Found:
    """The k best of `width` candidates of each document and their scores, best first; -1 where there are fewer."""
    return best_first(*score_likeliest(X, shards, width, executor), k)


def score_likeliest(X: csr_array, shards: Sequence[Shard], width: int, executor: Executor) -> Found:
    """The candidates of each document in order of number, -1 where there are fewer, and their scores."""
    width = min(width, sum(shard.weights.n_classes for shard in shards))
    blocks = row_blocks(X.shape[0], 1, ROWS)

    def score_block(block: slice) -> Found:
        rows = rows_of(X[block] if len(blocks) > 1 else X)
        classes = _likeliest(rows, block.stop - block.start, shards, width)
        return classes, _scores(rows, shards, classes)

    parts = list(executor.map(score_block, blocks))
    nothing = np.zeros((0, width), dtype=np.int32), np.zeros((0, width), dtype=np.float32)
    classes, scores = zip(*parts or [nothing], strict=True)
    return np.concatenate(classes), np.concatenate(scores)


def score_classes(X: csr_array, weights: Weights, signatures: Signatures | None, width: int) -> NDArray[np.float32]:
    """Scores, documents × classes. signatures: of classes trained in the fast mode.

    In that mode the `width` candidates of a document are scored. All other classes were not trained on documents like it: they
    get a score just below -1, or just below the lowest of the candidates.
    """
    if signatures is None:
        return weights.score(X)
    candidates, scores = score_likeliest(X, [Shard.by_signatures(weights, signatures)], width, choose_executor(1))
    there = candidates >= 0
    lowest = np.where(there, scores, FAR).min(axis=1, initial=FAR)
    S = np.repeat(np.nextafter(lowest, -np.inf)[:, None], signatures.n_classes, axis=1)
    S[np.nonzero(there)[0], candidates[there]] = scores[there]
    return S


def _likeliest(rows: Rows, n_rows: int, shards: Sequence[Shard], width: int) -> NDArray[np.int32]:
    """The candidates of all shards, in order of number."""
    best = np.zeros((n_rows, 0), dtype=np.int32), np.zeros((n_rows, 0), dtype=np.float32)
    first = 0
    for shard in shards:
        shape = n_rows, min(width, shard.weights.n_classes)
        classes, likelihood = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.float32)
        find = find_candidates_in_place if shard.is_fast else find_top_classes_in_place
        find(rows, shard.index.rows, shard.start, classes, likelihood)
        classes[classes >= 0] += first
        classes[likelihood == -np.inf] = -1  # not allowed
        best = _likelier(*best, classes, likelihood, width) if len(shards) > 1 else (classes, likelihood)
        first += shard.weights.n_classes
    return best[0]


def _likelier(classes: Any, likelihood: Any, more: Any, their_likelihood: Any, width: int) -> Found:
    """The likeliest of two sets of classes, the second with higher numbers; in order of number, -1 last."""
    both, chances = np.hstack([classes, more]), np.hstack([likelihood, their_likelihood])
    # stable: of equally likely classes those with lower numbers stay in front
    kept = np.sort(np.argsort(-chances, axis=1, kind="stable")[:, :width], axis=1)
    both, chances = np.take_along_axis(both, kept, axis=1), np.take_along_axis(chances, kept, axis=1)
    order = np.argsort(both < 0, axis=1, kind="stable")
    return np.take_along_axis(both, order, axis=1), np.take_along_axis(chances, order, axis=1)


def _scores(rows: Rows, shards: Sequence[Shard], classes: NDArray[np.int32]) -> NDArray[np.float32]:
    """The scores of some classes of each document; -inf where there is none."""
    scores = np.full(classes.shape, -np.inf, dtype=np.float32)
    first = 0
    for shard in shards:
        last = first + shard.weights.n_classes
        local = classes if len(shards) == 1 else np.where((classes >= first) & (classes < last), classes - first, -1)
        score_candidates_in_place(rows, *shard.weights.along_paths, local.astype(np.int32, copy=False), scores)
        first = last
    return scores


def best_first(candidates: NDArray[Any], scores: NDArray[np.float32], k: int) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """The k best candidates of each document and their scores; equal ones as they stand, -1 where there are fewer."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    best, found = np.take_along_axis(candidates, order, axis=1), np.take_along_axis(scores, order, axis=1)
    missing = k - best.shape[1]
    if missing > 0:
        best = np.pad(best, ((0, 0), (0, missing)), constant_values=-1)
        found = np.pad(found, ((0, 0), (0, missing)), constant_values=-np.inf)
    return best, found
