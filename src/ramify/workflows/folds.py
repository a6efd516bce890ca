"""Folds for cross-validation: every document is predicted once, by a model that was not trained on it."""

from __future__ import annotations

import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.arguments import check_count
from ramify.data import Corpus
from ramify.errors import InputError, LabelError, RamifyError
from ramify.learners.linear.select_C import assign_folds
from ramify.learners.targets import refuse_single_class
from ramify.metrics.flat import per_node
from ramify.metrics.resampling import modified_classes
from ramify.parallel import Clock
from ramify.taxonomy import Taxonomy, most_specific

if TYPE_CHECKING:
    from ramify.workflows.tuning.candidates import Candidate


def split_into_folds(corpus: Corpus, taxonomy: Taxonomy, folds: int, seed: int = 0) -> list[NDArray[np.int64]]:
    """Positions of the documents of each fold, sorted; stratified by class, and equal texts are in the same fold.

    >>> corpus = Corpus("memory", ["a", "b", "c", "c", "d", "e"], [["x"], ["x"], ["y"], ["y"], ["x"], ["y"]])
    >>> parts = split_into_folds(corpus, Taxonomy.flat(["x", "y"]), 2)
    >>> any({2, 3} <= set(part.tolist()) for part in parts)
    True
    """
    check_count(seed, "seed", 0)
    if not 2 <= folds <= len(corpus):
        raise InputError(f"folds is {folds}; give 2 or more, and no more than there are documents, {len(corpus):,}.")
    own = most_specific(taxonomy.encode(corpus.labels), taxonomy)
    fold = assign_folds(own, np.random.default_rng(seed), folds)
    if not corpus.has_vectors:
        # a training text must not be a test text, so all equal texts go to the fold of the first one
        first: dict[str, int] = {}
        fold = fold[[first.setdefault(text, i) for i, text in enumerate(corpus.documents)]]
    if len(np.unique(fold)) < folds:
        raise InputError("equal texts stay in one fold, which leaves a fold without documents; give fewer folds.")
    refuse_single_class(np.flatnonzero(per_node(own)), taxonomy)
    for k in range(folds):
        if (per_node(own[fold != k]) > 0).sum() < 2:
            few = f"without the documents of fold {k + 1} fewer than two classes are left to train on"
            raise LabelError(f"{few}; give fewer folds, or more documents.")
    return [np.flatnonzero(fold == k) for k in range(folds)]


# ---- folds for tuning: features are made once for all candidates with the same vectorizer -----------------------------

FOLDS = (5, 3, 2)  # the first number that the documents allow
MAX_TEST = 10_000  # test documents of a fold
MIN_TRAINING = 500  # documents, if there are so many
MAX_CACHED = 6  # folds whose features are cached


@dataclass(slots=True)
class TuningFolds:
    """Training and test documents of every fold, each document in one `fold`.

    order: all positions, shuffled; a fraction of the documents is the first of them. classes: nodes that F1 is averaged over.
    """

    corpus: Corpus
    taxonomy: Taxonomy
    fold: NDArray[np.int64]
    order: NDArray[np.int64]
    classes: NDArray[np.int64]
    n_jobs: int | None = None
    clock: Clock = time.monotonic
    _positions: dict[tuple[int, float], tuple[NDArray[np.int64], NDArray[np.int64]]] = field(default_factory=dict)
    _truth: dict[int, csr_array] = field(default_factory=dict)
    _seconds: dict[Any, float] = field(default_factory=dict)
    _made: OrderedDict[Any, tuple[Corpus, Corpus]] = field(default_factory=OrderedDict)

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return int(self.fold.max()) + 1

    @property
    def n_not_single(self) -> int:
        """The number of documents with no label, or with more than one."""
        own = most_specific(self.taxonomy.encode(self.corpus.labels), self.taxonomy)
        return int((np.diff(own.indptr) != 1).sum())

    def split(self, candidate: Candidate, number: int, fraction: float) -> tuple[Corpus, Corpus]:
        """Training and test vectors of a fold; fraction: of the other folds, for training."""
        key, began = self._key(candidate, number, fraction), self.clock()
        if key in self._made:
            self._made.move_to_end(key)
            return self._made[key]
        training, tested = (self.corpus.take(some) for some in self.positions(number, fraction))
        if self.corpus.has_vectors:
            return training, tested
        while len(self._made) >= MAX_CACHED:
            self._made.popitem(last=False)
        vectorizer = candidate.vectorizer().set_params(n_jobs=self.n_jobs)
        X = vectorizer.fit_transform(training.documents)
        self._made[key] = replace(training, documents=X), replace(tested, documents=vectorizer.transform(tested.documents))
        self._seconds[key] = self.clock() - began
        return self._made[key]

    def seconds_saved(self, candidate: Candidate, number: int, fraction: float) -> float:
        """Seconds that a fold does not need because its features are cached."""
        key = self._key(candidate, number, fraction)
        return self._seconds[key] if key in self._made else 0.0

    @staticmethod
    def _key(candidate: Candidate, number: int, fraction: float) -> Any:
        return number, fraction, repr(candidate.vectorizer().get_params())

    def positions(self, number: int, fraction: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions of the training and test documents, rising."""
        if (number, fraction) not in self._positions:
            is_tested = self.fold[self.order] == number
            others, tested = self.order[~is_tested], self.order[is_tested][:MAX_TEST]
            training = others[: max(MIN_TRAINING, round(fraction * len(others)))]
            self._positions[number, fraction] = np.sort(training), np.sort(tested)
        return self._positions[number, fraction]

    def size(self, number: int, fraction: float) -> int:
        """The number of training and test documents."""
        return sum(len(some) for some in self.positions(number, fraction))

    def truth(self, number: int) -> csr_array:
        """The labels of the test documents of a fold."""
        if number not in self._truth:
            self._truth[number] = self.taxonomy.encode([self.corpus.labels[i] for i in self.positions(number, 0.0)[1]])
        return self._truth[number]


def make_folds(corpus: Corpus, taxonomy: Taxonomy, seed: int, n_jobs: int | None) -> TuningFolds:
    """Split documents into folds, or refuse them."""
    for n_folds in FOLDS:
        with suppress(RamifyError):
            parts = split_into_folds(corpus, taxonomy, n_folds, seed)
            break
    else:
        own = most_specific(taxonomy.encode(corpus.labels), taxonomy)
        refuse_single_class(np.unique(own.indices), taxonomy)
        many = f"the {len(corpus):,} documents are too few, or too similar, for cross-validation"
        raise InputError(f"{many}; name the system to train, or give more documents.")
    fold = np.empty(len(corpus), dtype=np.int64)
    for number, part in enumerate(parts):
        fold[part] = number
    order = np.random.default_rng(seed).permutation(len(corpus))
    Y = taxonomy.encode(corpus.labels)
    taxonomy = taxonomy.with_main_parents(np.bincount(Y.indices, minlength=len(taxonomy)))  # the same in all trials
    return TuningFolds(corpus, taxonomy, fold, order, modified_classes(Y, taxonomy), n_jobs)
