"""Synthetic problems for experiments and benchmarks; a seed fixes each of them.

:func:`make_web_directory` resembles a web directory: a deep tree grown by splitting leaves, long-tailed class sizes and
word frequencies, and words of its own for each node. A document draws most of its words from a common vocabulary, and the
others from its leaf or an ancestor, closer ones more often; so siblings have words in common, and few words distinguish a leaf.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import InputError
from ramify.taxonomy import Taxonomy, expand_to_ancestors

WORDS_OF_A_NODE = 40
COMMON = 0.8  # the fraction of words that do not depend on the class
STAY = 0.35  # the probability that an informative word is the leaf's; else the parent's, with the same probability, …

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Problem:
    """Documents × features, documents × nodes (closed upward), and the taxonomy."""

    X: csr_array
    Y: csr_array
    taxonomy: Taxonomy


def make_web_directory(
    n_leaves: int = 1000, n_docs: int = 20_000, *, n_features: int | None = None, n_words: int = 180, seed: int = 0
) -> Problem:
    """Make a web-directory-shaped problem: tf-idf rows of unit length, one leaf per document, at least one document per leaf.

    n_features: size of the vocabulary (default: 31 per leaf). n_words: of a typical document, with repetitions.

    >>> problem = make_web_directory(n_leaves=20, n_docs=100, seed=1)
    >>> problem.X.shape, int(problem.taxonomy.is_leaf.sum())
    ((100, 620), 20)
    """
    if not 2 <= n_leaves <= n_docs:
        raise InputError(f"n_leaves is {n_leaves} and n_docs {n_docs}; give at least two leaves, and a document for each.")
    rng = np.random.default_rng(seed)
    parent = grow_tree(n_leaves, rng)
    leaves = np.setdiff1d(np.arange(len(parent)), parent)
    # each leaf once, the rest from a long-tailed distribution
    ranked = rng.permutation(leaves)
    rest = ranked[_draw_ranks(len(leaves), 0.7, n_docs - len(leaves), rng)]
    leaf_of = rng.permutation(np.concatenate([leaves, rest]))
    counts = _draw_words(parent, leaf_of, n_features or 31 * n_leaves, n_words, rng)
    taxonomy = Taxonomy.from_edges((f"n{v}", None if p < 0 else f"n{p}") for v, p in enumerate(parent.tolist()))
    own = csr_array((np.ones(n_docs, dtype=bool), leaf_of, np.arange(n_docs + 1)), shape=(n_docs, len(parent)))
    return Problem(_weigh(counts), expand_to_ancestors(own, taxonomy), taxonomy)


def grow_tree(n_leaves: int, rng: np.random.Generator) -> Ints:
    """Split leaves into 2 to 12 until there are enough: the shallowest of three random leaves at a time."""
    parent, depth, leaves = [-1], [0], [0]
    while len(leaves) < n_leaves:
        picked = min(rng.integers(len(leaves), size=3).tolist(), key=lambda position: depth[leaves[position]])
        node, leaves[picked] = leaves[picked], leaves[-1]
        leaves.pop()
        for _ in range(min(int(rng.integers(2, 13)), n_leaves - len(leaves))):
            leaves.append(len(parent))
            parent.append(node)
            depth.append(depth[node] + 1)
    return np.asarray(parent)


def _draw_words(parent: Ints, leaf_of: Ints, n_features: int, n_words: int, rng: np.random.Generator) -> csr_array:
    """The word counts of each document."""
    n_docs = len(leaf_of)
    lengths = np.maximum(10, rng.lognormal(np.log(n_words), 0.5, n_docs)).astype(np.int64)
    document = np.repeat(np.arange(n_docs), lengths)
    word = _draw_ranks(n_features, 0.9, len(document), rng)
    own_words = _draw_ranks(n_features, 0.5, len(parent) * WORDS_OF_A_NODE, rng).reshape(len(parent), WORDS_OF_A_NODE)
    informative = np.flatnonzero(rng.random(len(document)) >= COMMON)
    node, steps = leaf_of[document[informative]], rng.geometric(STAY, len(informative)) - 1
    for step in range(int(steps.max(initial=0))):  # up by so many steps, at most to the root
        node = np.where((steps > step) & (parent[node] >= 0), parent[node], node)
    word[informative] = own_words[node, _draw_ranks(WORDS_OF_A_NODE, 1.0, len(informative), rng)]
    counts = csr_array((np.ones(len(word), dtype=np.float32), (document, word)), shape=(n_docs, n_features))
    counts.sum_duplicates()
    return counts


def _draw_ranks(n: int, exponent: float, size: int, rng: np.random.Generator) -> Ints:
    """Numbers from 0 to n − 1, by Zipf's law with the given exponent."""
    law = np.cumsum(np.arange(1, n + 1, dtype=np.float64) ** -exponent)
    ranks: Ints = np.minimum(np.searchsorted(law, rng.random(size) * law[-1]), n - 1)
    return ranks


def _weigh(counts: csr_array) -> csr_array:
    """(1 + ln count) · ln((1 + documents) / (1 + documents with the word)), rows of unit length, 32-bit indices."""
    n_docs, n_features = counts.shape
    frequency = np.bincount(counts.indices, minlength=n_features)
    idf = np.log((1 + n_docs) / (1 + frequency)) + 1e-6
    data = (1 + np.log(counts.data)) * idf[counts.indices]
    norms = np.sqrt(np.add.reduceat(data**2, counts.indptr[:-1]))
    data = (data / np.repeat(norms, np.diff(counts.indptr))).astype(np.float32)
    return csr_array((data, counts.indices.astype(np.int32), counts.indptr.astype(np.int32)), shape=counts.shape)
