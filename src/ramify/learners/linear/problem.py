"""The training problem of linear learners: objective, losses, costs, documents, and the pairs that a solver works on.

    min over δ   ½ Σ_v ‖δ_v‖² + Σ_n Σ_i U_in L(y_in w_n·x_i)        (Gopal & Yang 2013, section 3)

over all units v and classes n; w_n is the sum of δ over n and its ancestors, in a tree δ_v = w_v − w_parent(v)
(taxonomy_ties.py). L is the loss; U_in, the cost of a unit of loss, is C times the class weight for positive documents of class
n, C for negative ones, times the sample weight of document i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from ramify import native
from ramify.errors import InputError, ModelError
from ramify.learners.linear.taxonomy_ties import Forest
from ramify.parallel import Arrays
from ramify.parallel.checkpoints import invalid_checkpoint, take_array
from ramify.persistence import are_finite, are_indices, are_offsets

Floats = NDArray[np.float32]
LARGEST_NORM = 1e32  # squared length of a document
LOSSES = ("hinge", "squared_hinge", "logistic")  # L(z): max(0, 1 − z), max(0, 1 − z)², ln(1 + e^−z)
FEW, VERY_FEW, DENSE = 256, 64, 0.25  # features, and the fraction of them that a document has
BLOCKS = 1 << 27  # numbers in the blocks of all classes: a gigabyte


@dataclass(frozen=True, slots=True)
class Settings:
    """How to solve: loss, relative duality gap to reach, most rounds, and seed.

    fast: train on candidate negatives only; the cost of all other pairs is estimated on a sample of the classes.
    """

    loss: str = "hinge"
    tolerance: float = 1e-3
    max_iter: int = 1000
    seed: int = 0
    fast: bool = False


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of a unit of loss: per class for positive and negative documents, times a weight per document."""

    positive: Floats
    negative: Floats
    documents: Floats

    def of(self, classes: Any) -> Costs:
        """Those of some classes."""
        return Costs(self.positive[classes], self.negative[classes], self.documents)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The objective of the weights, a lower bound of the objective, and the rounds it took."""

    primal: float
    dual: float
    rounds: int

    @property
    def gap(self) -> float:
        """The relative duality gap, (primal − dual) / primal."""
        return max(0.0, self.primal - self.dual) / max(self.primal, 1e-300)


@dataclass(frozen=True, slots=True)
class Problem:
    """Documents, the positive documents of every class (documents × classes), how classes are tied, and costs.

    held: fixed weights of the first unit, which is above all others, if it is not to be solved.
    """

    rows: Rows
    own: csc_array
    forest: Forest
    costs: Costs
    settings: Settings
    held: Floats | None = None

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.own.shape[1])

    @property
    def classes(self) -> NDArray[np.int32]:
        """The numbers of all classes."""
        return np.arange(self.n_classes, dtype=np.int32)

    def part(self, first: int, last: int) -> tuple[Problem, NDArray[np.int32]]:
        """The problem of a range of classes and the units above them, and the numbers of these units."""
        if (first, last) == (0, self.n_classes):
            return self, np.arange(len(self.forest), dtype=np.int32)
        forest, units = self.forest.part(first, last)
        some = slice(first, last)
        own = csc_array(self.own[:, some])
        return Problem(self.rows, own, forest, self.costs.of(some), self.settings, self.held), units


# ---- documents ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rows:
    """Documents as CSR arrays; features are sorted by falling document frequency, so that frequent ones share cache lines.

    offsets, features, values: the rows; with a bias, feature 0 is 1 in every row. squared_norms: ‖x‖² of every row.
    place: the new number of every feature of the given documents.
    """

    offsets: NDArray[np.int64]
    features: NDArray[np.int32]
    values: Floats
    squared_norms: Floats
    place: NDArray[np.int32]
    has_bias: bool

    def __len__(self) -> int:
        return len(self.squared_norms)

    @property
    def n_features(self) -> int:
        """Features of the rows, the constant one of the bias included."""
        return len(self.place) + self.has_bias

    def of(self, documents: NDArray[np.int64]) -> Rows:
        """Some of the documents."""
        offsets, taken = take_rows(self.offsets, documents)
        norms = self.squared_norms[documents]
        return Rows(offsets, self.features[taken], self.values[taken], norms, self.place, self.has_bias)

    def matrix(self) -> csr_array:
        """Documents × features."""
        return csr_array((self.values, self.features, self.offsets), shape=(len(self), self.n_features))

    def block(self, some: slice) -> native.Rows:
        """Some neighbouring documents as kernels take them."""
        return native.Rows(self.offsets[some.start : some.stop + 1], self.features, self.values, self.n_features)

    def to_native(self) -> native.Documents:
        """All documents as kernels take them; to be made once for many calls."""
        rows = native.Rows(self.offsets, self.features, self.values, self.n_features)
        return native.Documents(rows, self.squared_norms)


def arrange_rows(X: csr_array, bias: bool = True) -> Rows:
    """Renumber features by falling document frequency, and prepend a constant 1 to every row for the bias."""
    n_docs, n_features = X.shape
    frequency = np.bincount(X.indices, minlength=n_features)
    place = np.empty(n_features, dtype=np.int32)
    place[np.argsort(-frequency, kind="stable")] = np.arange(bias, n_features + bias, dtype=np.int32)
    offsets = X.indptr.astype(np.int64)
    features, values = place[X.indices], X.data.astype(np.float32, copy=False)
    if bias:
        features, values = np.insert(features, offsets[:-1], 0), np.insert(values, offsets[:-1], 1)
        offsets = offsets + np.arange(n_docs + 1)
    sums = np.concatenate([[0.0], np.cumsum(values.astype(np.float64) ** 2)])
    norms = sums[offsets[1:]] - sums[offsets[:-1]]
    if not norms.max(initial=0.0) <= LARGEST_NORM:
        found = f"a document has a length above {LARGEST_NORM**0.5:g}, too much for a linear learner"
        raise InputError(f"{found}; scale the features.")
    norms = norms.astype(np.float32)
    return Rows(offsets, features, values, norms, place, bias)


def take_rows(offsets: NDArray[np.int64], rows: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of some CSR rows on their own, and the places of their entries among all."""
    lengths = np.diff(offsets)[rows]
    taken = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return taken, np.repeat(offsets[rows] - taken[:-1], lengths) + np.arange(taken[-1])


# ---- pairs of a document and a class ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pairs:
    """The (document, class) pairs that a solver works on, class by class: first positive documents, then negative ones.

    offsets: where each class starts. documents, alphas: of every pair; the solver changes the alphas in place.
    n_positive: positive documents of each class. cost_positive, cost_negative: by class, times the weight of the document.
    """

    offsets: NDArray[np.int64]
    documents: NDArray[np.int32]
    n_positive: NDArray[np.int64]
    cost_positive: Floats
    cost_negative: Floats
    alphas: Floats

    def __len__(self) -> int:
        return len(self.n_positive)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All of its arrays."""
        return self.offsets, self.documents, self.n_positive, self.cost_positive, self.cost_negative, self.alphas

    def part(self, first: int, last: int) -> Pairs:
        """The pairs of a range of classes."""
        if (first, last) == (0, len(self)):
            return self
        pairs, some = slice(self.offsets[first], self.offsets[last]), slice(first, last)
        costs = self.cost_positive[some], self.cost_negative[some]
        offsets = self.offsets[first : last + 1] - self.offsets[first]
        return Pairs(offsets, self.documents[pairs], self.n_positive[some], *costs, self.alphas[pairs])

    @classmethod
    def joined(cls, parts: Sequence[Pairs]) -> Pairs:
        """The pairs of all classes, from those of ranges of classes."""
        if len(parts) == 1:
            return parts[0]
        starts = np.cumsum([0, *(part.offsets[-1] for part in parts)])
        offsets = [np.zeros(1, dtype=np.int64), *(part.offsets[1:] + start for part, start in zip(parts, starts, strict=False))]
        columns = zip(*(part.arrays[1:] for part in parts), strict=True)
        return cls(np.concatenate(offsets), *(np.concatenate(column) for column in columns))


def in_order(pairs: Pairs, classes: NDArray[np.int64]) -> Pairs:
    """Sort pairs by class. classes: the number of every class of the pairs."""
    order = np.argsort(classes)
    lengths = np.diff(pairs.offsets)[order]
    taken = _places(pairs.offsets[:-1][order], lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    costs = pairs.cost_positive[order], pairs.cost_negative[order]
    return Pairs(offsets, pairs.documents[taken], pairs.n_positive[order], *costs, pairs.alphas[taken])


def pair_up(own: csc_array, others: csc_array, cost_positive: Floats, cost_negative: Floats) -> Pairs:
    """Pairs of positive and negative documents, each documents × classes; all alphas are 0."""
    n_positive, n_others = np.diff(own.indptr).astype(np.int64), np.diff(others.indptr).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(n_positive + n_others)]).astype(np.int64)
    documents = np.empty(offsets[-1], dtype=np.int32)
    documents[_places(offsets[:-1], n_positive)] = own.indices
    documents[_places(offsets[:-1] + n_positive, n_others)] = others.indices
    return Pairs(offsets, documents, n_positive, cost_positive, cost_negative, np.zeros(offsets[-1], dtype=np.float32))


def widen(pairs: Pairs, documents: NDArray[np.int32], classes: NDArray[np.int32]) -> Pairs:
    """Append new negative pairs to those of each class."""
    order = np.argsort(classes, kind="stable")
    added = np.bincount(classes, minlength=len(pairs)).astype(np.int64)
    lengths = np.diff(pairs.offsets)
    offsets = np.concatenate([[0], np.cumsum(lengths + added)]).astype(np.int64)
    old, new = _places(offsets[:-1], lengths), _places(offsets[:-1] + lengths, added)
    empty = np.empty(offsets[-1], dtype=np.int32), np.zeros(offsets[-1], dtype=np.float32)
    wider = replace(pairs, offsets=offsets, documents=empty[0], alphas=empty[1])
    wider.documents[old], wider.documents[new] = pairs.documents, documents[order]
    wider.alphas[old] = pairs.alphas
    return wider


def take_pairs(state: Arrays, first: Pairs, n_documents: int) -> Pairs:
    """The pairs of a checkpoint, after checking that they are `first` and later additions."""
    offsets = take_array(state, "offsets", np.int64, len(first) + 1)
    documents = take_array(state, "documents", np.int32, int(offsets[-1]))
    alphas = take_array(state, "alphas", np.float32, len(documents))
    if not are_offsets(offsets, len(first), len(documents)):
        raise invalid_checkpoint("classes whose pairs do not follow each other")
    if not are_indices(documents, n_documents):
        raise invalid_checkpoint("pairs of documents that are not there")
    if np.any(alphas < 0):
        raise invalid_checkpoint("dual variables below 0")
    lengths = np.diff(first.offsets)
    if np.any(np.diff(offsets) < lengths) or np.any(documents[_places(offsets[:-1], lengths)] != first.documents):
        raise invalid_checkpoint("pairs of other classes")
    return replace(first, offsets=offsets, documents=documents, alphas=alphas)


def all_others(own: csc_array) -> csc_array:
    """All negative documents of every class."""
    n_docs, n_classes = own.shape
    is_own = np.zeros(n_docs * n_classes, dtype=bool)
    is_own[np.repeat(np.arange(n_classes), np.diff(own.indptr)) * n_docs + own.indices] = True
    others = np.flatnonzero(~is_own)
    ends = np.cumsum(n_docs - np.diff(own.indptr))
    documents = (others % n_docs).astype(np.int32)
    return csc_array((np.ones(len(others), dtype=bool), documents, np.concatenate([[0], ends])), shape=own.shape)


def _places(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """start, start + 1, … for every start, as many as its length."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)


# ---- dual variables stored with a model -----------------------------------------------------------------------------------
#
# A later training starts from them when documents or classes have changed. The duality gap certifies a solution wherever its
# dual variables started; good ones only save rounds.

MOST_DOCUMENTS = (1 << 31) - 1
LARGEST_OBJECTIVE = 1e100  # of a model file: sums stay finite
DUAL_NAMES = ("dual_offsets", "dual_documents", "dual_values")


@dataclass(frozen=True, slots=True)
class Dual:
    """Class by class, the documents of its active pairs and their α y: above 0 for positive documents."""

    offsets: NDArray[np.int64]
    documents: NDArray[np.int32]
    values: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, pairs: Pairs, order: NDArray[np.int64]) -> Dual:
        """From the pairs of a solution, whose document k is number order[k]."""
        lengths = np.diff(pairs.offsets)
        place = np.arange(len(pairs.documents)) - np.repeat(pairs.offsets[:-1], lengths)
        sign = np.where(place < np.repeat(pairs.n_positive, lengths), np.float32(1), np.float32(-1))
        return cls(pairs.offsets, order[pairs.documents].astype(np.int32), sign * pairs.alphas)

    def numbered(self, place: NDArray[np.int64]) -> Dual:
        """Renumber documents; drops those with a number below 0."""
        documents = place[self.documents]
        kept = documents >= 0
        ends = np.concatenate([[0], np.cumsum(kept)])[self.offsets].astype(np.int64)
        return Dual(ends, documents[kept].astype(np.int32), self.values[kept])

    def of_classes(self, old: NDArray[np.int64]) -> Dual:
        """Renumber classes. old: the old number of every class, -1 for a new one."""
        lengths = np.where(old >= 0, np.diff(self.offsets)[old], 0)
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        taken = np.repeat(self.offsets[old] - ends[:-1], lengths) + np.arange(ends[-1])
        return Dual(ends, self.documents[taken], self.values[taken])

    @classmethod
    def none(cls) -> Dual:
        """Without classes."""
        return cls(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))

    def followed_by(self, other: Dual) -> Dual:
        """These classes, then those of another."""
        offsets = np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]])
        documents, values = (self.documents, other.documents), (self.values, other.values)
        return Dual(offsets, np.concatenate(documents), np.concatenate(values))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays for a model file."""
        return dict(zip(DUAL_NAMES, (self.offsets, self.documents, self.values), strict=True))

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], n_classes: int) -> Dual:
        """From the arrays of a model file, after checking types, shapes and ranges."""
        made = cls(*(arrays[name] for name in DUAL_NAMES))
        typed = [array.dtype.name for array in (made.offsets, made.documents, made.values)] == ["int64", "int32", "float32"]
        if not typed or not 0 < made.offsets.size <= n_classes + 1 or made.documents.shape != made.values.shape:
            raise ModelError("the dual variables do not fit the classes of the linear model; train the model again.")
        fits = are_offsets(made.offsets, len(made), len(made.documents)) and are_indices(made.documents, MOST_DOCUMENTS)
        if not fits or not are_finite(made.values):
            raise ModelError("the dual variables are not ones that the linear model writes; train the model again.")
        return made


def resume(dual: Dual, problem: Problem, complete: bool) -> Pairs:
    """The pairs that were active, or all pairs if complete, with their dual variables.

    Those of a document that has become positive or negative start at 0; all are clipped to their bounds.
    """
    n_docs, own = len(problem.rows), problem.own
    keys = np.repeat(np.arange(len(dual)), np.diff(dual.offsets)) * n_docs + dual.documents
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], dual.values[order]
    mine = np.repeat(np.arange(own.shape[1]), np.diff(own.indptr)) * n_docs + own.indices
    if complete:
        others = all_others(own)
    else:
        new = np.setdiff1d(keys, mine)  # rising numbers class · documents + document
        ends = np.searchsorted(new, np.arange(own.shape[1] + 1) * n_docs)
        others = csc_array((np.ones(len(new), dtype=bool), (new % n_docs).astype(np.int32), ends), shape=own.shape)
    pairs = pair_up(own, others, problem.costs.positive, problem.costs.negative)
    lengths = np.diff(pairs.offsets)
    classes = np.repeat(np.arange(len(pairs)), lengths)
    is_own = np.arange(len(classes)) - pairs.offsets[classes] < pairs.n_positive[classes]
    if len(keys):
        asked = classes * n_docs + pairs.documents
        found = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        known = np.where(keys[found] == asked, values[found], 0) * np.where(is_own, 1, -1)
        most = np.where(is_own, pairs.cost_positive[classes], pairs.cost_negative[classes])
        bound = most * problem.costs.documents[pairs.documents]
        pairs.alphas[:] = np.clip(known, 0, np.inf if problem.settings.loss == "squared_hinge" else bound)
    return pairs


def suits_dense_solver(n_docs: int, n_features: int, nnz: int, n_classes: int) -> bool:
    """Whether features are few: at most 64, or at most 256 of which a document has a quarter.

    A step takes documents × features² time for every class, and features² memory: at most a gigabyte in all.

    >>> suits_dense_solver(10_000, 81, 700_000, 63), suits_dense_solver(10_000, 40_000, 700_000, 63)
    (True, False)
    """
    dense = n_features <= FEW and nnz >= DENSE * n_docs * n_features
    return (n_features <= VERY_FEW or dense) and n_classes * n_features**2 <= BLOCKS
