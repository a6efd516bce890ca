"""A corpus as matrices: texts as tf-idf words that two documents have, vectors standardized by the training documents.

The taxonomy gets one root above its own, as the paper's trees have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.preprocessing import StandardScaler, normalize

from experiments.trees import under_one_root
from ramify.data import Corpus
from ramify.features import Vectorizer
from ramify.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True)
class Problem:
    """Documents × features and documents × nodes, to train on and to test on.

    first: of the test documents' labels the first, against which F1 is measured with one class per document.
    """

    taxonomy: Taxonomy
    X: csr_array
    Y: csr_array
    X_test: csr_array
    Y_test: csr_array
    first: csr_array


def make_problem(train: Corpus, test: Corpus, taxonomy: Taxonomy, has_length_one: bool = False) -> Problem:
    """Matrices of a corpus. has_length_one: vectors are scaled to length 1 in the end, as those of texts are."""
    tree = under_one_root(taxonomy)
    X, X_test = vectors(train, test) if train.has_vectors else texts(train, test)
    if has_length_one:
        X, X_test = normalize(X), normalize(X_test)
    Y, Y_test = (tree.encode(part.labels) for part in (train, test))
    return Problem(tree, X, Y, X_test, Y_test, tree.encode([labels[:1] for labels in test.labels]))


def texts(train: Corpus, test: Corpus) -> tuple[csr_array, csr_array]:
    """tf-idf words."""
    vectorizer = Vectorizer(min_df=2, sublinear_tf=True).fit(train.documents)
    return vectorizer.transform(train.documents), vectorizer.transform(test.documents)


def vectors(train: Corpus, test: Corpus) -> tuple[csr_array, csr_array]:
    """Each feature with mean 0 and variance 1 over the training documents."""
    width = max(train.documents.shape[1], test.documents.shape[1])
    dense = [part.with_width(width).documents.toarray() for part in (train, test)]
    scaler = StandardScaler().fit(dense[0])
    X, X_test = (csr_array(scaler.transform(part).astype(np.float32)) for part in dense)
    return X, X_test


def some_of(corpus: Corpus, most: int | None, seed: int) -> Corpus:
    """So many documents of a corpus, drawn at random and in their order; None for all."""
    if most is None or most >= len(corpus):
        return corpus
    drawn = np.random.default_rng(seed).choice(len(corpus), most, replace=False)
    return corpus.take(np.sort(drawn))


def tell(problem: Problem) -> dict[str, Any]:
    """Numbers to compare with the paper's; the root above all is not counted."""
    return {
        "train": problem.X.shape[0],
        "test": problem.X_test.shape[0],
        "nodes": len(problem.taxonomy) - 1,
        "classes": int(problem.taxonomy.is_leaf.sum()),
        "features": len(np.unique(problem.X.indices)),
    }
