"""The documents on which candidates are tried: folds, made into features once for all candidates that share them."""

from __future__ import annotations

import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.data import Corpus
from ramify.errors import InputError, RamifyError
from ramify.learners.targets import refuse_single_class
from ramify.metrics.resampling import modified_classes
from ramify.parallel import Clock
from ramify.taxonomy import Taxonomy, most_specific
from ramify.workflows.folds import split_into_folds
from ramify.workflows.tuning.candidates import Candidate

FOLDS = (5, 3, 2)  # the first number that the documents allow is taken
MOST_TESTED = 10_000  # documents of a fold
FEWEST = 500  # documents that are learnt from, if there are so many
REMEMBERED = 6  # rounds whose features are kept


@dataclass(slots=True)
class Ground:
    """What candidates learn from and are tested on.

    fold: the number of each document's fold. order: all positions, shuffled; fewer documents are the first of them.
    classes: nodes over which F1 is measured. n_jobs: threads.
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
        """How many folds there are."""
        return int(self.fold.max()) + 1

    @property
    def n_not_single(self) -> int:
        """How many documents do not have just one label."""
        own = most_specific(self.taxonomy.encode(self.corpus.labels), self.taxonomy)
        return int((np.diff(own.indptr) != 1).sum())

    def round(self, candidate: Candidate, number: int, share: float) -> tuple[Corpus, Corpus]:
        """Vectors to learn from, and others to be tested on; share: of the other folds to learn from."""
        if self.corpus.has_vectors:
            learnt, tested = self.positions(number, share)
            return self.corpus.take(learnt), self.corpus.take(tested)
        key = self._key(candidate, number, share)
        if key not in self._made:
            while len(self._made) >= REMEMBERED:
                self._made.popitem(last=False)
            began = self.clock()
            self._made[key] = self._vectors(candidate.vectorizer().set_params(n_jobs=self.n_jobs), number, share)
            self._seconds[key] = self.clock() - began
        self._made.move_to_end(key)
        return self._made[key]

    def spared(self, candidate: Candidate, number: int, share: float) -> float:
        """Seconds that a round does not take because its features are there already."""
        key = self._key(candidate, number, share)
        return self._seconds[key] if key in self._made else 0.0

    @staticmethod
    def _key(candidate: Candidate, number: int, share: float) -> Any:
        return number, share, repr(candidate.vectorizer().get_params())

    def positions(self, number: int, share: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions of the documents to learn from and to be tested on, rising."""
        if (number, share) not in self._positions:
            self._positions[number, share] = self._find(number, share)
        return self._positions[number, share]

    def _find(self, number: int, share: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        is_tested = self.fold[self.order] == number
        others, tested = self.order[~is_tested], self.order[is_tested][:MOST_TESTED]
        return np.sort(others[: max(FEWEST, round(share * len(others)))]), np.sort(tested)

    def size(self, number: int, share: float) -> int:
        """How many documents are learnt from and tested on."""
        return sum(len(some) for some in self.positions(number, share))

    def truth(self, number: int) -> csr_array:
        """The labels of the documents of a fold that are tested."""
        if number not in self._truth:
            self._truth[number] = self.taxonomy.encode([self.corpus.labels[i] for i in self.positions(number, 0.0)[1]])
        return self._truth[number]

    def _vectors(self, vectorizer: Any, number: int, share: float) -> tuple[Corpus, Corpus]:
        learn, tested = (self.corpus.take(some) for some in self.positions(number, share))
        X = vectorizer.fit_transform(learn.documents)
        return replace(learn, documents=X), replace(tested, documents=vectorizer.transform(tested.documents))


def make_ground(corpus: Corpus, taxonomy: Taxonomy, seed: int, n_jobs: int | None) -> Ground:
    """Deal documents into folds; refuses those that cannot be dealt."""
    parts = _deal(corpus, taxonomy, seed)
    fold = np.empty(len(corpus), dtype=np.int64)
    for number, part in enumerate(parts):
        fold[part] = number
    order = np.random.default_rng(seed).permutation(len(corpus))
    return Ground(corpus, taxonomy, fold, order, modified_classes(taxonomy.encode(corpus.labels), taxonomy), n_jobs)


def _deal(corpus: Corpus, taxonomy: Taxonomy, seed: int) -> list[NDArray[np.int64]]:
    *more, least = FOLDS
    for folds in more:
        with suppress(RamifyError):
            return split_into_folds(corpus, taxonomy, folds, seed)
    own = most_specific(taxonomy.encode(corpus.labels), taxonomy)
    refuse_single_class(np.unique(own.indices), taxonomy)
    try:
        return split_into_folds(corpus, taxonomy, least, seed)
    except RamifyError:
        raise InputError(
            f"the {len(corpus):,} documents are too few, or too much alike, to choose a system by testing on some of them; "
            "say which system to train, or give more documents."
        ) from None
