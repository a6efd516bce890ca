"""Documents as learners see them that have not learnt from them: each fold is judged by what learnt from the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone

from ramify.classifier.fitting import alike, fit_features, selector_for
from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.parallel import stage
from ramify.systems import find_system
from ramify.taxonomy import Taxonomy, most_specific

BLOCK_VALUES = 1 << 22  # documents × nodes that are looked at together
SAMPLE_VALUES = 1 << 22  # and that probabilities are learnt from
FEWEST = 1000  # documents of a sample, however many nodes there are

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Judge = Callable[[Any, NDArray[np.float32]], Any]  # what is made of a learner and the scores of some documents


@dataclass(frozen=True, slots=True)
class Unseen:
    """Documents, and for each fold of them a learner that has not seen it.

    X: documents × features. own: documents × nodes, where each ends. fold: of every document. learners: one a fold.
    """

    X: csr_array
    own: csr_array
    taxonomy: Taxonomy
    vectorizer: Any
    fold: Ints
    learners: tuple[Any, ...]

    @property
    def classes(self) -> Ints:
        """The nodes at which documents end."""
        return np.unique(self.own.indices).astype(np.int64)

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """Every label with its document: documents, and nodes."""
        return np.repeat(np.arange(self.own.shape[0]), np.diff(self.own.indptr)), self.own.indices.astype(np.int64)

    def was_learnt(self) -> NDArray[np.bool_]:
        """Of every pair: whether the learner of the document's fold knew another document with this label."""
        documents, nodes = self.pairs
        there = np.zeros((len(self.learners), len(self.taxonomy)), dtype=np.int64)
        np.add.at(there, (self.fold[documents], nodes), 1)
        return np.asarray((there.sum(axis=0) - there)[self.fold[documents], nodes] > 0)

    def sample(self) -> Ints:
        """Some documents of all folds, or all of them, to learn from what probabilities mean."""
        enough = max(FEWEST, SAMPLE_VALUES // len(self.taxonomy))
        n = self.own.shape[0]
        return np.arange(n) if n <= enough else np.sort(np.random.default_rng(0).permutation(n)[:enough])

    def judged(self, documents: Ints, judge: Judge) -> Iterator[tuple[Ints, Any]]:
        """Some documents after the other, and what the judge makes of their scores."""
        at_once = max(1, BLOCK_VALUES // len(self.taxonomy))
        for k, learner in enumerate(self.learners):
            mine = documents[self.fold[documents] == k]
            for start in range(0, len(mine), at_once):
                rows = mine[start : start + at_once]
                yield rows, judge(learner, learner.scores(self.X[rows]))


def learn_in_folds(classifier: TextClassifier, corpus: Corpus, parts: list[Ints]) -> Unseen:
    """Read the features once, and learn from all but one fold, for each of them."""
    system, taxonomy = find_system(classifier.system), classifier.taxonomy
    assert isinstance(taxonomy, Taxonomy)
    if system.needs_tree:
        taxonomy.require_tree(f"system {system.name!r}")
    vectorizer, learner = classifier._new_vectorizer(system), classifier._new_learner(system, taxonomy)
    Y = taxonomy.encode(corpus.labels)
    X = fit_features(vectorizer, corpus.documents, selector_for(classifier.selector, learner), Y)
    fold, learners = np.zeros(len(corpus), dtype=np.int64), list[Any]()
    with stage("learning without one part after the other", len(parts)) as step:
        for k, held_out in enumerate(parts):
            fold[held_out] = k
            seen = np.setdiff1d(np.arange(len(corpus)), held_out)
            made = alike(learners[0]) if learners else clone(learner)
            learners.append(made.fit(X[seen], Y[seen]))
            step.advance()
    return Unseen(X, csr_array(most_specific(Y, taxonomy)), taxonomy, vectorizer, fold, tuple(learners))
