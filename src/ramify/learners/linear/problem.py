"""Documents as the kernels of linear models take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from ramify.learners.linear.taxonomy_ties import Forest
from ramify.parallel import Arrays
from ramify.parallel.checkpoints import strange, take_array


@dataclass(frozen=True, slots=True)
class Rows:
    """Documents in compressed rows; features stand in order of falling document frequency, so that busy ones lie together.

    offsets, features, values: the rows; with a bias, feature 0 is 1 in every row.
    squared_norms: ‖x‖² of every row.
    place: the number here of every feature of the documents as they came.
    """

    offsets: NDArray[np.int64]
    features: NDArray[np.int32]
    values: NDArray[np.float32]
    squared_norms: NDArray[np.float32]
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

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The first arguments of every kernel."""
        return self.offsets, self.features, self.values, self.squared_norms, self.n_features


def arrange_rows(X: csr_array, bias: bool = True) -> Rows:
    """Number features anew by falling document frequency, and put a constant 1 before every row for the bias."""
    n_docs, n_features = X.shape
    frequency = np.bincount(X.indices, minlength=n_features)
    place = np.empty(n_features, dtype=np.int32)
    place[np.argsort(-frequency, kind="stable")] = np.arange(bias, n_features + bias, dtype=np.int32)
    offsets = X.indptr.astype(np.int64)
    features, values = place[X.indices], X.data.astype(np.float32, copy=False)
    if bias:
        features, values = np.insert(features, offsets[:-1], 0), np.insert(values, offsets[:-1], 1)
        offsets = offsets + np.arange(n_docs + 1)
    return Rows(offsets, features, values, _squared_norms(offsets, values), place, bias)


def take_rows(offsets: NDArray[np.int64], rows: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of some compressed rows on their own, and where their entries stand among all."""
    lengths = np.diff(offsets)[rows]
    taken = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return taken, np.repeat(offsets[rows] - taken[:-1], lengths) + np.arange(taken[-1])


def _squared_norms(offsets: NDArray[np.int64], values: NDArray[np.float32]) -> NDArray[np.float32]:
    sums = np.concatenate([[0.0], np.cumsum(values.astype(np.float64) ** 2)])
    return np.asarray(sums[offsets[1:]] - sums[offsets[:-1]], dtype=np.float32)


# --------------------------------------------------------------------------------------------------------------
# The pairs of a document and a class on which a solver works; all others are known to cost nothing, or are not known yet.


Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Class after class: first its own documents, then others.

    offsets: where each class starts. documents, alphas: one entry a pair; the alphas are the solver's to change.
    n_positive: how many documents of its own each class has.
    cost_positive, cost_negative: what a unit of loss costs, by class; a document's weight multiplies it.
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
    def arrays(self) -> tuple[Any, ...]:
        """The arguments of every kernel that works on pairs."""
        return self.offsets, self.documents, self.n_positive, self.cost_positive, self.cost_negative, self.alphas

    def part(self, first: int, last: int) -> Pairs:
        """The pairs of some neighbouring classes."""
        if (first, last) == (0, len(self)):
            return self
        here, some = slice(self.offsets[first], self.offsets[last]), slice(first, last)
        costs = self.cost_positive[some], self.cost_negative[some]
        offsets = self.offsets[first : last + 1] - self.offsets[first]
        return Pairs(offsets, self.documents[here], self.n_positive[some], *costs, self.alphas[here])

    @classmethod
    def joined(cls, parts: Sequence[Pairs]) -> Pairs:
        """The pairs of all classes, from those of stretches of them."""
        if len(parts) == 1:
            return parts[0]
        before = np.cumsum([0, *(part.offsets[-1] for part in parts)])
        offsets = [np.zeros(1, dtype=np.int64), *(part.offsets[1:] + start for part, start in zip(parts, before, strict=False))]
        names = ("documents", "n_positive", "cost_positive", "cost_negative", "alphas")
        return cls(np.concatenate(offsets), *(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def in_order(pairs: Pairs, classes: NDArray[np.int64]) -> Pairs:
    """The pairs of class after class, from those of the same classes in any order. classes: which ones these are."""
    order = np.argsort(classes)
    lengths = np.diff(pairs.offsets)[order]
    taken = _places(pairs.offsets[:-1][order], lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    costs = pairs.cost_positive[order], pairs.cost_negative[order]
    return Pairs(offsets, pairs.documents[taken], pairs.n_positive[order], *costs, pairs.alphas[taken])


def pair_up(own: csc_array, others: csc_array, cost_positive: Floats, cost_negative: Floats) -> Pairs:
    """Join, class by class, its own documents and others (both documents × classes)."""
    n_positive, n_others = np.diff(own.indptr).astype(np.int64), np.diff(others.indptr).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(n_positive + n_others)]).astype(np.int64)
    documents = np.empty(offsets[-1], dtype=np.int32)
    documents[_places(offsets[:-1], n_positive)] = own.indices
    documents[_places(offsets[:-1] + n_positive, n_others)] = others.indices
    return Pairs(offsets, documents, n_positive, cost_positive, cost_negative, np.zeros(offsets[-1], dtype=np.float32))


def widen(pairs: Pairs, documents: NDArray[np.int32], classes: NDArray[np.int32]) -> Pairs:
    """Add new pairs behind those that each class has."""
    order = np.argsort(classes, kind="stable")
    added = np.bincount(classes, minlength=len(pairs)).astype(np.int64)
    old = np.diff(pairs.offsets)
    offsets = np.concatenate([[0], np.cumsum(old + added)]).astype(np.int64)
    kept, new = _places(offsets[:-1], old), _places(offsets[:-1] + old, added)
    wider = replace(
        pairs,
        offsets=offsets,
        documents=np.empty(offsets[-1], dtype=np.int32),
        alphas=np.zeros(offsets[-1], dtype=np.float32),
    )
    wider.documents[kept], wider.documents[new] = pairs.documents, documents[order]
    wider.alphas[kept] = pairs.alphas
    return wider


def take_pairs(state: Arrays, before: Pairs, n_documents: int) -> Pairs:
    """The pairs of a state, made of `before` by widening; refused where they are not."""
    offsets = take_array(state, "offsets", np.int64, len(before) + 1)
    documents = take_array(state, "documents", np.int32, int(offsets[-1]))
    alphas = take_array(state, "alphas", np.float32, len(documents))
    if offsets[0] != 0 or np.any(offsets[1:] < offsets[:-1]):
        raise strange("classes whose pairs do not follow each other")
    if np.any((documents < 0) | (documents >= n_documents)):
        raise strange("pairs of documents that are not there")
    if np.any(alphas < 0):
        raise strange("dual variables below 0")
    old = np.diff(before.offsets)
    if np.any(np.diff(offsets) < old) or np.any(documents[_places(offsets[:-1], old)] != before.documents):
        raise strange("pairs of other classes")
    return replace(before, offsets=offsets, documents=documents, alphas=alphas)


def all_others(own: csc_array) -> csc_array:
    """For every class all documents that are not its own."""
    n_docs, n_classes = own.shape
    mine = np.zeros(n_docs * n_classes, dtype=bool)
    mine[np.repeat(np.arange(n_classes), np.diff(own.indptr)) * n_docs + own.indices] = True
    others = np.flatnonzero(~mine)
    ends = np.cumsum(n_docs - np.diff(own.indptr))
    documents = (others % n_docs).astype(np.int32)
    return csc_array((np.ones(len(others), dtype=bool), documents, np.concatenate([[0], ends])), shape=own.shape)


def negatives_of(positive: csc_array, asked: csc_array) -> csc_array:
    """Documents × classes: those that are asked about a class and are not of it."""
    others = csc_array(asked.astype(np.int8) - positive.astype(np.int8))
    others.eliminate_zeros()
    return others


def by_class(labels: csr_array) -> csc_array:
    """Documents × classes, class by class."""
    return csc_array(labels)


def _places(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """start, start + 1, … for every start, as many as its length."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)


# --------------------------------------------------------------------------------------------------------------
# What every solver of linear models is told: documents, classes, how they are tied, and what a unit of loss costs.


LOSSES = {"hinge": 0, "squared_hinge": 1, "logistic": 2}


@dataclass(frozen=True, slots=True)
class Settings:
    """How to solve: the loss, the relative duality gap to reach, rounds at most, and the seed of all orders.

    fast: be content with the nearest negatives; what all other pairs cost is then estimated on a sample of the classes.
    """

    loss: str = "hinge"
    tolerance: float = 1e-3
    max_iter: int = 1000
    seed: int = 0
    fast: bool = False


@dataclass(frozen=True, slots=True)
class Costs:
    """What a unit of loss costs: by class for its own documents and for others, times a weight by document."""

    positive: NDArray[np.float32]
    negative: NDArray[np.float32]
    documents: NDArray[np.float32]

    def of(self, classes: slice) -> Costs:
        """Those of some classes."""
        return Costs(self.positive[classes], self.negative[classes], self.documents)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The objective of the weights, a bound that no weights go below, and their distance relative to the objective."""

    primal: float
    dual: float
    rounds: int

    @property
    def gap(self) -> float:
        """(primal − dual) / primal."""
        return max(0.0, self.primal - self.dual) / max(self.primal, 1e-300)


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: documents, the classes' own documents (documents × classes), how classes are tied, and costs.

    held: weights of the first unit, which stands above all others, where it is to stay as it is.
    """

    rows: Rows
    own: csc_array
    forest: Forest
    costs: Costs
    settings: Settings
    held: NDArray[np.float32] | None = None

    @property
    def loss(self) -> int:
        """The number by which kernels know the loss."""
        return LOSSES[self.settings.loss]

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.own.shape[1])

    @property
    def classes(self) -> NDArray[np.int32]:
        """All classes."""
        return np.arange(self.n_classes, dtype=np.int32)

    def part(self, first: int, last: int) -> tuple[Problem, NDArray[np.int32]]:
        """The same with some neighbouring classes and the units above them only, and which units these are."""
        if (first, last) == (0, self.n_classes):
            return self, np.arange(len(self.forest), dtype=np.int32)
        forest, units = self.forest.part(first, last)
        some = slice(first, last)
        own = csc_array(self.own[:, some])
        return Problem(self.rows, own, forest, self.costs.of(some), self.settings, self.held), units
