"""What boosting is measured on: two corpora as words that are there or not, and balanced trees made on the spot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.data import Corpus, make_web_directory, read_corpus
from ramify.features import TermSelector, Vectorizer
from ramify.taxonomy import Taxonomy, read_taxonomy

ARITY = 3
N_TERMS = 12_000  # of a balanced tree, whatever its depth
LENGTH = 60  # words of a document of a balanced tree, repetitions included


@dataclass(frozen=True, slots=True)
class Split:
    """Documents × terms and documents × nodes, closed upward, to train on and to test on."""

    X: csr_array
    Y: csr_array
    X_test: csr_array
    Y_test: csr_array
    taxonomy: Taxonomy

    def some(self, n: int, seed: int = 0) -> Split:
        """The same with fewer documents to train on, by chance."""
        rows = np.sort(np.random.default_rng(seed).permutation(self.X.shape[0])[:n])
        return replace(self, X=csr_array(self.X[rows]), Y=csr_array(self.Y[rows]))

    def selected(self, n_terms: int) -> Split:
        """The same with the terms that tell most, classes taking turns."""
        selector = TermSelector(n_terms, join="round-robin", taxonomy=self.taxonomy).fit(self.X, self.Y)
        return replace(self, X=selector.transform(self.X), X_test=selector.transform(self.X_test))

    def classes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The leaf of every document that has just one, to train on and to test on."""
        leaves = np.flatnonzero(self.taxonomy.is_leaf)
        train, test = (csr_array(Y[:, leaves]).indices for Y in (self.Y, self.Y_test))
        return leaves[train], leaves[test]


def read_reuters(folder: Path) -> Split:
    """Reuters-21578 with its 90 categories below their official groups."""
    return _read(folder, read_taxonomy(folder / "taxonomy.tsv"), min_df=1)


def read_newsgroups(folder: Path) -> Split:
    """The 20 newsgroups, words of three posts or more."""
    return _read(folder, read_taxonomy(folder / "taxonomy.tsv"), min_df=3)


def _read(folder: Path, taxonomy: Taxonomy, min_df: int) -> Split:
    vectorizer = Vectorizer("binary", stop_words="english-long", stemmer="porter", min_df=min_df, n_jobs=2)
    train, test = (_labelled(folder / f"{part}.jsonl.gz", taxonomy) for part in ("train", "test"))
    X, X_test = vectorizer.fit_transform(train.documents), vectorizer.transform(test.documents)
    return Split(X, taxonomy.encode(train.labels), X_test, taxonomy.encode(test.labels), taxonomy)


def _labelled(path: Path, taxonomy: Taxonomy) -> Corpus:
    return read_corpus(path, text="text", label="labels", is_label=lambda name: name in taxonomy.names).labelled()


def directory(n_classes: int, n_documents: int, n_words: int) -> Split:
    """A made-up web directory in a language of 8,000 words, nothing to test on."""
    made = make_web_directory(n_classes, n_documents, n_features=8_000, n_words=n_words)
    return Split(made.X, made.Y, made.X[:0], made.Y[:0], made.taxonomy)


def balanced_tree(depth: int, n_documents: int, seed: int = 0) -> Split:
    """A tree whose inner nodes have three children each; as many documents to train on as to test on, alike at all leaves.

    Whatever the depth, there are as many documents, words in each, and words in the language. Each level has an equal share of
    the language, and each node of a level an equal share of that: words of its own, some frequent and most rare. A document
    draws its words from the nodes on its path, alike from all.
    """
    rng = np.random.default_rng(seed)
    levels = range(1, depth + 1)
    edges = [(f"{lv}.{k}", f"{lv - 1}.{k // ARITY}" if lv > 1 else None) for lv in levels for k in range(ARITY**lv)]
    taxonomy = Taxonomy.from_edges(edges)
    leaf = rng.permutation(np.arange(2 * n_documents) % ARITY**depth)
    level = rng.integers(1, depth + 1, (2 * n_documents, LENGTH))
    share = N_TERMS / depth / ARITY**level
    rank = np.minimum(np.exp(rng.random(level.shape) * np.log(share + 1)) - 1, 0.999 * share)
    words = (level - 1) * N_TERMS / depth + leaf[:, None] // ARITY ** (depth - level) * share + rank
    X = _presence(words.astype(np.int64))
    Y = taxonomy.encode(f"{depth}.{k}" for k in leaf)
    return Split(X[:n_documents], Y[:n_documents], X[n_documents:], Y[n_documents:], taxonomy)


def _presence(words: NDArray[np.int64]) -> csr_array:
    """Documents × places to documents × terms, 1 where a term occurs."""
    ends = np.arange(len(words) + 1) * words.shape[1]
    X = csr_array((np.ones(words.size, dtype=np.float32), words.ravel(), ends), shape=(len(words), N_TERMS))
    X.sum_duplicates()
    X.data[:] = 1
    return X
