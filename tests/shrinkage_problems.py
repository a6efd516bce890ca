"""Small corpora for naive Bayes with shrinkage: at random, and corner cases."""

import warnings

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles import shrinkage as oracle
from oracles.shrinkage import Corpus
from oracles.taxonomy import close_upward, most_specific
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from strategies import as_matrix, build, random_forest, trees

from ramify.learners import ShrinkageNaiveBayes

FAMILY = [[], [0], [0]]  # one root over two leaves


def corpus_of(parents, X, labels, s=None):
    own = [most_specific(parents, nodes) for nodes in labels]
    return Corpus(parents, np.asarray(X, dtype=np.float64), own, np.ones(len(own)) if s is None else np.asarray(s, dtype=float))


def fit(corpus, **options):
    """A learner that uses plain EM and the paper's weights by default, converged or not."""
    options = {"newton": False, "tol": 1e-6, "tie_weights": "never", **options}
    Y = as_matrix([close_upward(corpus.parents, nodes) for nodes in corpus.own], len(corpus.parents))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ShrinkageNaiveBayes(build(corpus.parents), **options).fit(csr_array(corpus.X), Y, sample_weight=corpus.s)


def lam_of(learner, node):
    return np.asarray([weight for _, weight in learner.mixture_weights(node)])


def assert_same_scores(learner, corpus, theta, documents, fit_prior=True, branches=None):
    S, P = learner.scores(csr_array(documents)), learner.predict_proba(csr_array(documents))
    for d, x in enumerate(np.asarray(documents, dtype=float)):
        expected = oracle.log_posteriors(corpus, theta, x, fit_prior, branches)
        assert set(np.flatnonzero(np.isfinite(S[d])).tolist()) == set(expected)
        reached = [c for c, p in expected.items() if p > -np.inf]
        np.testing.assert_allclose(S[d, reached], [expected[c] for c in reached], rtol=1e-4, atol=2e-4)
        assert all(S[d, c] < -1e29 for c in set(expected) - set(reached))
        for node in range(len(corpus.parents)):
            below = sum(np.exp(p) for c, p in expected.items() if node in close_upward(corpus.parents, {c}))
            assert P[d, node] == (pytest.approx(below, abs=2e-4) if below else 0)


def random_corpus(seed, weights="any"):
    """Forests from flat to deep; none to three labels a document; words that are whole, broken or missing, rows that repeat."""
    rng = np.random.default_rng(seed)
    parents = random_forest(rng, int(rng.integers(2, 9)))
    n_documents, n_words = int(rng.integers(3, 11)), int(rng.choice([1, 2, 3, 6]))
    X = rng.poisson(rng.choice([0.3, 1.0, 3.0]), size=(n_documents, n_words)).astype(np.float32)
    if rng.random() < 0.3:
        X *= rng.random(X.shape, dtype=np.float32)
    X = X[rng.integers(n_documents, size=n_documents)] if rng.random() < 0.3 else X
    X[rng.random(n_documents) < rng.choice([0.0, 0.3])] = 0
    most = min(int(rng.integers(1, 4)), len(parents))
    least = int(rng.random() > 0.2)
    rows = [set(rng.choice(len(parents), size=rng.integers(least, most + 1), replace=False).tolist()) for _ in X]
    rows[0], rows[1] = {len(parents) - 1}, {len(parents) - 2}
    s = {"any": rng.choice([0.0, 0.1, 1.0, 2.5], size=n_documents), "positive": rng.uniform(0.1, 3, size=n_documents)}
    corpus = corpus_of(parents, X, rows, s[weights] if rng.random() < 0.5 else None)
    return corpus if len(oracle.classes(corpus)) > 1 and any(corpus.s) else random_corpus(seed + 100_000, weights)


@st.composite
def corpora(draw):
    parents = draw(trees(max_nodes=7, min_nodes=2))
    shape = st.tuples(st.integers(2, 6), st.integers(1, 4))
    X = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 4)))
    labels = st.sets(st.integers(0, len(parents) - 1), max_size=3)
    rows = draw(st.lists(labels, min_size=len(X), max_size=len(X)))
    s = draw(st.lists(st.sampled_from([1.0, 0.0, 0.1, 0.7, 3.0]), min_size=len(X), max_size=len(X)))
    corpus = corpus_of(parents, X, rows, s)
    assume(len(oracle.classes(corpus)) > 1 and any(s))
    return corpus


CORNERS = {
    "one document a class": corpus_of(FAMILY, [[2, 1], [1, 3]], [{1}, {2}]),
    "one word": corpus_of(FAMILY, [[2], [1], [4]], [{1}, {2}, {2}]),
    "one word, forest": corpus_of([[], [], [1]], [[2], [1], [4]], [{0}, {2}, {2}]),
    "a root and a child": corpus_of([[], [0]], [[2, 0], [1, 1], [0, 2]], [{0}, {1}, {1}]),
    "no taxonomy to speak of": corpus_of([[], [], []], [[2, 0], [1, 1], [0, 2]], [{0}, {1}, {1}]),
    "a class without words": corpus_of(FAMILY, [[0, 0], [0, 0], [1, 2]], [{1}, {1}, {2}]),
    "a class of weight nothing": corpus_of(FAMILY, [[1, 2], [3, 1], [1, 2]], [{1}, {1}, {2}], [0, 0, 1]),
    "no class weighs anything": corpus_of(FAMILY, [[1, 2], [3, 1], [1, 2]], [{1}, {2}, set()], [0, 0, 1]),
    "no words anywhere": corpus_of(FAMILY, [[0, 0], [0, 0], [0, 0]], [{1}, {1}, {2}]),
    "a parent whose other child has no words": corpus_of(
        [[], [0], [1], [1], [0]], [[1, 2], [2, 1], [0, 0], [3, 0]], [{2}, {2}, {3}, {4}]
    ),
    "equal documents": corpus_of(FAMILY, [[1, 2, 0]] * 5, [{1}, {1}, {1}, {2}, {2}]),
    "equal documents, two classes each": corpus_of(FAMILY, [[1, 2, 0]] * 3, [{1, 2}, {1, 2}, {1, 2}]),
    "a document in every class": corpus_of(
        [[], [0], [0], []], [[1, 2, 0], [3, 0, 1], [0, 1, 1]], [{1, 2, 3}, {1}, {2, 3}], [0.7, 0.1, 1.3]
    ),
    "documents without labels": corpus_of(FAMILY, [[5, 0], [1, 2], [0, 3]], [set(), {1}, {2}]),
    "nodes without documents": corpus_of(
        [[], [0], [0], [2], [], [4], []], [[1, 2], [2, 0], [0, 3]], [{1}, {3}, {3}], [1, 2, 0.3]
    ),
}
