import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.data import make_web_directory
from ramify.errors import InputError
from ramify.learners import MultinomialNaiveBayes
from ramify.metrics import accuracy
from ramify.taxonomy import most_specific


@given(st.integers(2, 40), st.integers(0, 60), st.integers(0, 1000))
@settings(max_examples=40)
def test_a_directory_has_the_documented_properties(n_leaves, more, seed):
    problem = make_web_directory(n_leaves, n_leaves + more, seed=seed)
    taxonomy = problem.taxonomy
    own = most_specific(problem.Y, taxonomy)
    assert taxonomy.is_tree
    assert len(taxonomy.roots) == 1
    assert int(taxonomy.is_leaf.sum()) == n_leaves
    assert np.diff(own.indptr).tolist() == [1] * (n_leaves + more)
    assert set(own.indices.tolist()) == set(np.flatnonzero(taxonomy.is_leaf).tolist())
    np.testing.assert_allclose(np.sqrt(problem.X.multiply(problem.X).sum(axis=1)), 1, rtol=1e-5)
    assert problem.X.dtype == np.float32
    assert problem.X.has_canonical_format


def test_a_seed_fixes_it():
    one, two, other = (make_web_directory(30, 200, seed=seed) for seed in (3, 3, 4))
    assert (one.X != two.X).nnz == 0
    assert (one.Y != two.Y).nnz == 0
    assert one.taxonomy == two.taxonomy
    assert one.X.nnz != other.X.nnz


def test_it_is_deep_long_tailed_and_can_be_learnt():
    problem = make_web_directory(200, 4000, seed=0)
    sizes = np.sort(np.bincount(most_specific(problem.Y, problem.taxonomy).indices, minlength=len(problem.taxonomy)))[::-1]
    assert problem.taxonomy.n_levels >= 5
    assert sizes[0] > 10 * np.median(sizes[sizes > 0])
    learner = MultinomialNaiveBayes(problem.taxonomy, alpha=0.01).fit(problem.X[:3000], problem.Y[:3000])
    right = accuracy(problem.Y[3000:], learner.predict(problem.X[3000:]), problem.taxonomy)
    assert 0.5 < right < 0.99


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(InputError, match="at least two leaves, and a document for each"):
        make_web_directory(10, 5)
    with pytest.raises(InputError, match="n_leaves is 1"):
        make_web_directory(1, 5)
