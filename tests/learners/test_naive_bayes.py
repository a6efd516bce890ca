import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles import naive_bayes as oracle
from oracles.taxonomy import close_upward
from sklearn.naive_bayes import MultinomialNB
from strategies import as_matrix, as_sets, build, parent_lists

from ramify.errors import InputError, ModelError
from ramify.learners import MultinomialNaiveBayes
from ramify.taxonomy import most_specific


@st.composite
def problems(draw):
    parents = draw(parent_lists(max_nodes=6, min_nodes=2))
    counts = draw(hnp.arrays(np.int64, st.tuples(st.integers(2, 6), st.integers(1, 5)), elements=st.integers(0, 4)))
    labels = st.sets(st.integers(0, len(parents) - 1), max_size=2)
    rows = draw(st.lists(labels, min_size=len(counts), max_size=len(counts)))
    return parents, counts.astype(float), rows


@given(problems(), st.sampled_from([1.0, 0.1, 3.0]), st.booleans())
def test_scores_equal_the_oracle(problem, alpha, fit_prior):
    parents, counts, rows = problem
    taxonomy, Y = build(parents), as_matrix(rows, len(parents))
    own = as_sets(most_specific(Y, taxonomy))
    if len(set().union(*own)) < 2:
        return
    learner = MultinomialNaiveBayes(taxonomy, alpha=alpha, fit_prior=fit_prior).fit(counts, Y)
    S, P = learner.scores(counts), learner.predict_proba(counts)
    for d, document in enumerate(counts.tolist()):
        expected = oracle.log_posteriors(counts.tolist(), own, document, alpha, fit_prior)
        assert set(np.flatnonzero(np.isfinite(S[d])).tolist()) == set(expected)
        np.testing.assert_allclose([S[d, c] for c in expected], list(expected.values()), rtol=1e-4, atol=1e-4)
        for node in range(len(parents)):
            below = [np.exp(p) for c, p in expected.items() if node in close_upward(parents, {c})]
            assert P[d, node] == pytest.approx(sum(below), abs=1e-4)


@given(problems())
def test_single_labels_equal_scikit_learn(problem):
    _, counts, _ = problem
    y = np.arange(len(counts)) % 2
    ours, theirs = MultinomialNaiveBayes().fit(counts, y), MultinomialNB().fit(counts, y)
    np.testing.assert_allclose(ours.predict_proba(counts), theirs.predict_proba(counts), atol=1e-5)


def test_sample_weights_count_as_repetitions(food):
    X, y = np.asarray([[1, 0], [0, 1], [1, 1]]), ["apple", "pear", "drink"]
    weighted = MultinomialNaiveBayes(food).fit(X, y, sample_weight=[2, 1, 1]).scores(X)
    repeated = MultinomialNaiveBayes(food).fit(X[[0, 0, 1, 2]], [y[i] for i in (0, 0, 1, 2)]).scores(X)
    np.testing.assert_allclose(weighted, repeated)


def test_a_class_of_weight_zero_stays_defined():
    X = np.eye(3)
    learner = MultinomialNaiveBayes().fit(X, [0, 1, 2], sample_weight=[1, 1, 0])
    assert np.isfinite(learner.scores(X)).all()
    assert learner.predict(X[:2]).tolist() == [0, 1]


def test_contributions_add_up_to_the_score(food):
    X, y = np.asarray([[2, 0, 1], [0, 3, 1], [1, 1, 0]], dtype=np.float32), ["apple", "pear", "drink"]
    learner = MultinomialNaiveBayes(food).fit(X, y)
    x = learner._validate(X[:1], reset=False)
    total = {}
    for node in learner.class_nodes_.tolist():
        _, added, prior = learner.contributions(x, node)
        total[node] = added.sum() + prior
    S = learner.scores(X[:1])[0]
    for a in total:
        for b in total:
            assert total[a] - total[b] == pytest.approx(float(S[a]) - float(S[b]), abs=1e-5)


def test_negative_counts_and_alpha_zero_are_refused():
    with pytest.raises(ValueError, match="Negative values"):
        MultinomialNaiveBayes().fit([[-1, 0], [0, 1]], [0, 1])
    with pytest.raises(InputError, match="alpha is 0; give a number above 0"):
        MultinomialNaiveBayes(alpha=0).fit([[1, 0], [0, 1]], [0, 1])


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("class_nodes", np.asarray([0, 99])),
        ("class_nodes", np.asarray([-1, 2])),
        ("class_nodes", np.asarray([2, 2])),
        ("class_nodes", np.asarray([0, 1], dtype=np.int32)),
        ("counts", np.zeros(3)),
        ("counts", np.asarray([1.0, np.nan])),
        ("counts", np.asarray([1.0, -1.0])),
        ("counts", np.asarray([1.0, 1.0], dtype=np.float32)),
        ("count_classes", np.asarray([0, 2], dtype=np.int32)),
        ("count_classes", np.asarray([-1, 0], dtype=np.int32)),
        ("count_offsets", np.asarray([0, 2, 1])),
        ("count_offsets", np.asarray([1, 1, 2])),
        ("class_weight", np.zeros(3)),
    ],
)
def test_weights_out_of_range_are_refused(food, name, array):
    values, arrays = MultinomialNaiveBayes(food).fit([[1, 0], [0, 1]], ["apple", "pear"]).state()
    with pytest.raises(ModelError, match="train the model again"):
        MultinomialNaiveBayes.from_state(food, values, {**arrays, name: array})


@pytest.mark.parametrize("alpha", [1e-320, 1e308, np.inf, -1.0])
def test_an_alpha_without_logarithms_is_refused(alpha):
    with pytest.raises(InputError, match="alpha is"):
        MultinomialNaiveBayes(alpha=alpha).fit([[1, 0], [0, 1]], [0, 1])
