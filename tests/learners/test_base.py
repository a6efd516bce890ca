"""What every learner keeps; subjects are found, not listed."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ramify import Taxonomy, learners
from ramify.errors import InputError, LabelError

LEARNERS = [
    member
    for _, member in inspect.getmembers(learners, inspect.isclass)
    if issubclass(member, learners.Learner) and not inspect.isabstract(member)
]
TAXONOMY = Taxonomy.from_paths(["a/x", "a/y", "b/x", "b/z/deep", "c"])


def problem(learner, seed=0, n_documents=60, n_features=20):
    """Non-negative sparse documents with none to two labels each, or with one where a learner takes no other; inner nodes too."""
    rng = np.random.default_rng(seed)
    X = csr_array(random_array((n_documents, n_features), density=0.3, rng=rng, format="csr")).astype(np.float32)
    low, high = (0, 3) if learner.supports_multi_label else (1, 2)
    nodes = [rng.choice(len(TAXONOMY), size=rng.integers(low, high), replace=False) for _ in range(n_documents)]
    return X, TAXONOMY.encode([[TAXONOMY.names[n] for n in row] for row in nodes])


def test_there_are_learners_to_check():
    assert learners.MultinomialNaiveBayes in LEARNERS


def _no_repetitions(estimator):
    """A document of weight two is left out whole; one of two copies is judged by estimates that have seen the other."""
    if not isinstance(estimator, learners.ShrinkageNaiveBayes | learners.Ensemble):
        return {}
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": "weights are no repetitions here" for kind in kinds}


@parametrize_with_checks([learner() for learner in LEARNERS], expected_failed_checks=_no_repetitions)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("method", ["scores", "decision_function", "predict_proba"])
def test_a_row_does_not_depend_on_the_batch_it_comes_in(learner, method):
    X, Y = problem(learner)
    fitted = learner(TAXONOMY).fit(X, Y)
    together = getattr(fitted, method)(X)
    for rows in ([3], [5, 3], list(range(59, -1, -1))):
        np.testing.assert_array_equal(getattr(fitted, method)(X[rows]), together[rows])


@pytest.mark.parametrize("learner", LEARNERS)
def test_threads_change_nothing(learner, monkeypatch):
    monkeypatch.setattr(
        "ramify.learners.base.row_blocks",
        lambda n, *_: [slice(i, i + 7) for i in range(0, n - 4, 7)] + [slice(n - 4, n)],
    )
    X, Y = problem(learner)
    serial, threads = (learner(TAXONOMY, n_jobs=jobs).fit(X, Y) for jobs in (1, 4))
    np.testing.assert_array_equal(serial.scores(X), threads.scores(X))


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_order_of_documents_changes_nothing_beyond_rounding(learner):
    X, Y = problem(learner)
    order = np.random.default_rng(1).permutation(X.shape[0])
    straight, shuffled = learner(TAXONOMY).fit(X, Y).scores(X), learner(TAXONOMY).fit(X[order], Y[order]).scores(X)
    np.testing.assert_allclose(straight, shuffled, rtol=1e-5)


@pytest.mark.parametrize("learner", LEARNERS)
def test_dense_and_sparse_documents_give_the_same(learner):
    X, Y = problem(learner)
    sparse, dense = learner(TAXONOMY).fit(X, Y), learner(TAXONOMY).fit(X.toarray(), Y.toarray())
    np.testing.assert_array_equal(sparse.scores(X), dense.scores(X.toarray()))


@pytest.mark.parametrize("learner", LEARNERS)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=30)
def test_a_parent_is_never_less_likely_than_a_child(learner, seed):
    X, Y = problem(learner, seed)
    P = learner(TAXONOMY).fit(X, Y).predict_proba(X)
    assert P.min() >= 0
    assert P.max() <= 1
    for node in range(len(TAXONOMY)):
        for parent in TAXONOMY.parents_of(node):
            assert np.all(P[:, parent] >= P[:, node])


@pytest.mark.parametrize("learner", LEARNERS)
def test_state_makes_the_same_learner(learner):
    X, Y = problem(learner)
    fitted = learner(TAXONOMY).fit(X, Y)
    again = learner.from_state(TAXONOMY, *fitted.state())
    np.testing.assert_array_equal(again.scores(X), fitted.scores(X))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize("learner", LEARNERS)
def test_labels_are_understood_in_every_form_and_come_back_in_it(learner):
    X, Y = problem(learner, n_documents=30)
    names = [row or ["c"] for row in TAXONOMY.decode(Y)]
    one = [row[0] for row in names]
    from_matrix = learner(TAXONOMY).fit(X, TAXONOMY.encode(names)).predict(X)
    from_lists = learner(TAXONOMY).fit(X, names).predict(X)
    from_names = learner(TAXONOMY).fit(X, one).predict(X)
    assert (TAXONOMY.encode(from_lists) != from_matrix).nnz == 0
    assert all(isinstance(row, list) for row in from_lists)
    assert set(from_names.tolist()) <= set(TAXONOMY.names)
    flat = learner().fit(X, [3 if name[0] == "a" else 7 for name in one]).predict(X)
    assert set(flat.tolist()) <= {3, 7}
    indicator = learner().fit(X, np.asarray([[name[0] == "a", name[0] == "b", name[0] == "c"] for name in one]))
    assert indicator.predict(X).shape == (30, 3)


@pytest.mark.parametrize("learner", LEARNERS)
def test_clone_grid_search_and_pipelines_work(learner):
    X, Y = problem(learner, n_documents=40)
    one = [row[0] if row else "c" for row in TAXONOMY.decode(Y)]
    assert clone(learner(TAXONOMY)).taxonomy is TAXONOMY
    pipeline = make_pipeline(MaxAbsScaler(), learner(TAXONOMY))
    assert len(cross_val_score(pipeline, X, np.asarray([name[0] for name in one]), cv=2, error_score="raise")) == 2
    name = next(iter(set(learner().get_params()) - {"taxonomy", "n_jobs"}))
    search = GridSearchCV(learner(), {name: [getattr(learner(), name)]}, cv=2)
    assert search.fit(X, np.asarray([n[0] for n in one])).best_estimator_ is not None


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a/x"] * 4, "every label is 'a/x'.*at least two classes"),
        ([[], [], [], []], "no document has a label"),
        ([["a/x"], ["nowhere"], [], []], "document 2: label 'nowhere' is not in the taxonomy"),
        (["a/x", "a/y"], "there are 4 documents but labels for 2"),
        (None, "y is None"),
    ],
)
def test_labels_that_cannot_be_learnt_are_refused(learner, labels, message):
    with pytest.raises((InputError, LabelError), match=message):
        learner(TAXONOMY).fit(np.eye(4), labels)


@pytest.mark.parametrize("learner", LEARNERS)
def test_documents_given_in_disorder_are_understood_and_left_as_they_are(learner):
    data, columns, offsets = np.asarray([1, 2, 3, 1, 1], dtype=np.float32), np.asarray([2, 0, 2, 1, 1]), np.asarray([0, 3, 5])
    X = csr_array((data, columns, offsets), shape=(2, 3))
    assert not X.has_canonical_format
    fitted = learner().fit(X, [0, 1])
    assert (X.data.tolist(), X.indices.tolist(), X.indptr.tolist()) == ([1, 2, 3, 1, 1], [2, 0, 2, 1, 1], [0, 3, 5])
    tidy = learner().fit(X.toarray(), [0, 1])
    np.testing.assert_array_equal(fitted.scores(X), tidy.scores(X.toarray()))


@pytest.mark.parametrize("learner", LEARNERS)
def test_learning_that_fails_leaves_the_earlier_model_whole(learner):
    X, Y = problem(learner)
    fitted = learner(TAXONOMY).fit(X, Y)
    before = fitted.scores(X)
    wider = csr_array(([1.0, 1.0], ([0, 1], [5_000_000, 3])), shape=(2, 5_000_001))
    with pytest.raises(LabelError):
        fitted.fit(wider, ["c", "c"])
    np.testing.assert_array_equal(fitted.scores(X), before)
    with pytest.raises(InputError, match="5000001 features"):
        fitted.scores(wider)
