"""Folds for cross-validation: every document is predicted once, by a model that was not trained on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.data import Corpus
from ramify.errors import InputError, LabelError
from ramify.learners.linear.select_C import assign_folds
from ramify.learners.targets import refuse_single_class
from ramify.metrics.flat import per_node
from ramify.taxonomy import Taxonomy, most_specific


def split_into_folds(corpus: Corpus, taxonomy: Taxonomy, folds: int, seed: int = 0) -> list[NDArray[np.int64]]:
    """Positions of the documents of each fold, sorted; stratified by class, and equal texts are in the same fold.

    >>> corpus = Corpus("memory", ["a", "b", "c", "c", "d", "e"], [["x"], ["x"], ["y"], ["y"], ["x"], ["y"]])
    >>> parts = split_into_folds(corpus, Taxonomy.flat(["x", "y"]), 2)
    >>> any({2, 3} <= set(part.tolist()) for part in parts)
    True
    """
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
        _refuse_few_classes(own, fold == k, k + 1)
    return [np.flatnonzero(fold == k) for k in range(folds)]


def _refuse_few_classes(own: csr_array, tested: NDArray[np.bool_], number: int) -> None:
    if (per_node(own[~tested]) > 0).sum() < 2:
        raise LabelError(
            f"without the documents of fold {number} fewer than two classes are left to train on; "
            "give fewer folds, or more documents."
        )
