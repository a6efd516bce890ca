import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles import pachinko as oracle
from strategies import as_matrix, as_sets, build, trees

from ramify import Taxonomy
from ramify.errors import InputError, ModelError
from ramify.learners import PachinkoNaiveBayes
from ramify.taxonomy import most_specific

TAXONOMY = Taxonomy.from_paths(["a/x", "a/y", "b/x", "b/z/deep", "c"])


@st.composite
def problems(draw):
    parents = draw(trees(max_nodes=7, min_nodes=2))
    counts = draw(hnp.arrays(np.int64, st.tuples(st.integers(2, 7), st.integers(1, 5)), elements=st.integers(0, 4)))
    labels = st.sets(st.integers(0, len(parents) - 1), max_size=2)
    rows = draw(st.lists(labels, min_size=len(counts), max_size=len(counts)))
    return parents, counts.astype(float), rows


@given(problems(), st.sampled_from([1.0, 0.1]), st.booleans(), st.sampled_from([None, 1, 2]))
def test_scores_equal_the_oracle(problem, alpha, fit_prior, n_words):
    parents, counts, rows = problem
    taxonomy, Y = build(parents), as_matrix(rows, len(parents))
    own = as_sets(most_specific(Y, taxonomy))
    if len(set().union(*own)) < 2:
        return
    learner = PachinkoNaiveBayes(taxonomy, alpha=alpha, fit_prior=fit_prior, n_words=n_words).fit(counts, Y)
    sets = None if learner.sets_ is None else {node: words.tolist() for node, words in learner.sets_.items()}
    for d, scores in enumerate(learner.scores(counts)):
        above = [up[0] if up else -1 for up in parents]
        expected = oracle.log_softmax(above, counts.tolist(), own, counts[d].tolist(), alpha, fit_prior, sets)
        assert set(np.flatnonzero(np.isfinite(scores)).tolist()) == set(expected)
        np.testing.assert_allclose([scores[n] for n in expected], list(expected.values()), rtol=1e-4, atol=1e-4)


def example():
    rng = np.random.default_rng(0)
    y = [["a/x", "a/y", "b", "b/z/deep", "c"][i % 5] for i in range(40)]
    X = rng.poisson(0.4, (40, 12)) + 3 * np.eye(12)[[hash_of(label) for label in y]]
    return X.astype(np.float32), y


def hash_of(label):
    return sum(map(ord, label)) % 12


def test_it_goes_down_and_stays_where_documents_stay():
    X, y = example()
    fitted = PachinkoNaiveBayes(TAXONOMY).fit(X, y)
    assert np.mean(fitted.predict(X) == np.asarray(y)) > 0.9
    assert "b" in fitted.predict(X)


def test_nodes_look_at_few_words_of_their_own():
    X, y = example()
    fitted = PachinkoNaiveBayes(TAXONOMY, n_words=2).fit(X, y)
    assert all(len(words) <= 2 for words in fitted.sets_.values())
    deep = TAXONOMY.index("a/x")
    step = [int(n) for n in TAXONOMY.nodes_to(deep)]
    features, added, _ = fitted.contributions(fitted._validate(X[:1], reset=False), deep)
    looked_at = set(fitted.sets_[-1].tolist()) | set(fitted.sets_[step[0]].tolist())
    assert {int(f) for f, value in zip(features, added, strict=True) if value != 0} <= looked_at


def test_contributions_add_up_to_differences_of_scores():
    X, y = example()
    fitted = PachinkoNaiveBayes(TAXONOMY).fit(X, y)
    x = fitted._validate(X[:1], reset=False)
    left, right = (fitted.contributions(x, TAXONOMY.index(name)) for name in ("a/x", "a/y"))
    S = fitted.scores(X[:1])[0]
    difference = left[1].sum() + left[2] - right[1].sum() - right[2]
    assert difference == pytest.approx(float(S[TAXONOMY.index("a/x")] - S[TAXONOMY.index("a/y")]), abs=1e-4)


@pytest.mark.parametrize("n_words", [None, 3])
def test_state_makes_the_same_learner(n_words):
    X, y = example()
    fitted = PachinkoNaiveBayes(TAXONOMY, n_words=n_words, alpha=0.5).fit(X, y)
    again = PachinkoNaiveBayes.from_state(TAXONOMY, *fitted.state())
    np.testing.assert_array_equal(again.scores(X), fitted.scores(X))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("set_nodes", np.asarray([0, 0, 1])),
        ("set_offsets", np.asarray([0, 3, 1, 4])),
        ("set_words", np.asarray([0, 1, 99, 0, 1, 2])),
        ("set_words", np.asarray([1, 0, 2, 0, 1, 2])),
        ("set_words", np.asarray([0, 1, 2, 0, 1, 2], dtype=np.int32)),
    ],
)
def test_sets_that_do_not_fit_are_refused(name, array):
    X, y = example()
    values, arrays = PachinkoNaiveBayes(TAXONOMY, n_words=2).fit(X, y).state()
    with pytest.raises(ModelError, match="train the model again"):
        PachinkoNaiveBayes.from_state(TAXONOMY, values, {**arrays, name: array})


def test_bad_parameters_are_refused():
    X, y = example()
    with pytest.raises(InputError, match="n_words is 0"):
        PachinkoNaiveBayes(TAXONOMY, n_words=0).fit(X, y)
    with pytest.raises(InputError, match="measure is 'foo'"):
        PachinkoNaiveBayes(TAXONOMY, measure="foo", n_words=2).fit(X, y)
    with pytest.raises(InputError, match="alpha is 0"):
        PachinkoNaiveBayes(TAXONOMY, alpha=0).fit(X, y)


def test_top_terms_are_those_of_a_branch():
    X, y = example()
    fitted = PachinkoNaiveBayes(TAXONOMY).fit(X, y)
    assert fitted.top_terms("a/x", 1)[0][0] == hash_of("a/x")
    with pytest.raises(InputError, match="has no classifier"):
        fitted.top_terms("b/x")
