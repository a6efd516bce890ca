"""Out-of-fold scores from one solution, against classifiers that were trained without each fold."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from seeds import each_seed

from ramify import Taxonomy
from ramify.learners import OneVsRestLogistic, OneVsRestSVM
from ramify.learners.linear import cross_fit
from ramify.learners.linear.cross_fit import CrossFit, as_new, best_unless_close, folds_by_content, measure_costs
from ramify.learners.linear.training import check_setup

N_DOCS, N_FEATURES, CLASSES = 160, 300, ("a", "b", "c", "d")


def make_texts(seed, n_docs=N_DOCS):
    """Sparse documents of unit length whose features depend on their class, and a class for each."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(CLASSES), n_docs)
    dense = random_array((n_docs, N_FEATURES), density=0.03, rng=rng).toarray()
    for i, k in enumerate(y):
        dense[i, rng.integers(20 * k, 20 * k + 30, 4)] += 1
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    return csr_array(dense.astype(np.float32)), [CLASSES[k] for k in y]


def solution_of(learner, X, names):
    """The learner's solution on all documents, and which documents belong to which class."""
    fitted = learner.fit(X, names)
    own = csr_array(np.asarray([[name == other for other in CLASSES] for name in names]))
    setup = check_setup(learner, learner.loss)
    flat = learner._tie(fitted.taxonomy_, np.arange(len(CLASSES)))
    learner.keeps_held_out = True
    trained, _ = learner._train_at_best_cost(X, own, flat, np.ones(X.shape[0]), setup)
    return CrossFit.of(trained, 1), own


@pytest.mark.parametrize("make", [OneVsRestSVM, lambda *a, **k: OneVsRestSVM(*a, loss="squared_hinge", **k), OneVsRestLogistic])
@each_seed(4)
def test_out_of_fold_scores_are_those_of_classifiers_trained_without_the_fold(make, seed, monkeypatch):
    monkeypatch.setattr(cross_fit, "TOLERANCE", 1e-6)
    X, names = make_texts(seed)
    taxonomy = Taxonomy.flat(CLASSES)
    fit, _ = solution_of(make(taxonomy, C=1.0, tol=1e-5), X, names)
    fold_of = folds_by_content(X, 8)
    scores, found = fit.scores(fold_of, passes=500)[:, 0], np.full((N_DOCS, len(CLASSES)), np.nan)
    found[fit.documents, fit.classes] = scores
    for fold in range(8):
        held_out = np.flatnonzero(fold_of == fold)
        alone = make(taxonomy, C=1.0, tol=1e-5).fit(X, names, sample_weight=(fold_of != fold).astype(float))
        expected = alone.scores(X[held_out])
        is_near = np.abs(found[held_out]) < 1.9  # scores far beyond the margin are kept from the solution
        np.testing.assert_allclose(found[held_out][is_near], expected[is_near], atol=0.05)


def test_costs_are_judged_by_held_out_predictions(monkeypatch):
    monkeypatch.setattr(cross_fit, "TOLERANCE", 1e-6)
    monkeypatch.setattr(cross_fit, "COST_PASSES", 500)
    X, names = make_texts(0)
    taxonomy = Taxonomy.flat(CLASSES)
    fit, own = solution_of(OneVsRestSVM(taxonomy, C=0.1, tol=1e-5, loss="squared_hinge"), X, names)
    quality = measure_costs(fit, X, own, np.ones(len(CLASSES), dtype=bool), is_multi_label=False)
    fold_of, true = folds_by_content(X, cross_fit.COST_FOLDS), np.asarray(names)
    for factor in cross_fit.COSTS:
        right = total = 0
        for fold in range(2):
            held_out = np.flatnonzero(fold_of == fold)
            weight = (fold_of != fold).astype(float)
            alone = OneVsRestSVM(taxonomy, C=0.1 * factor, tol=1e-5, loss="squared_hinge").fit(X, names, sample_weight=weight)
            right, total = right + int(np.sum(alone.predict(X[held_out]) == true[held_out])), total + len(held_out)
        assert quality[factor] == pytest.approx(right / total, abs=0.06)  # the mean of micro and macro F1


def test_the_selected_cost_is_used_and_small_problems_keep_the_first():
    X, names = make_texts(1)
    fitted = OneVsRestSVM(Taxonomy.flat(CLASSES), C="auto").fit(X, names)
    assert fitted.C_ in fitted.C_scores_
    assert len(fitted.C_scores_) >= len(cross_fit.COSTS)
    plain = OneVsRestSVM(Taxonomy.flat(CLASSES), C=fitted.C_).fit(X, names)
    np.testing.assert_allclose(fitted.scores(X), plain.scores(X), atol=0.02)
    few = OneVsRestSVM(Taxonomy.flat(CLASSES), C="auto").fit(X[:60], names[:60])
    assert (few.C_, few.C_scores_) == (1.0, {})


def test_folds_do_not_depend_on_the_order_of_documents():
    X, _ = make_texts(2)
    order = np.random.default_rng(0).permutation(N_DOCS)
    assert folds_by_content(X[order], 8).tolist() == folds_by_content(X, 8)[order].tolist()
    assert np.bincount(folds_by_content(X, 8)).tolist() == [20] * 8


def test_equal_documents_are_spread_over_folds():
    X = csr_array(np.ones((16, 2), dtype=np.float32))
    assert np.bincount(folds_by_content(X, 8)).tolist() == [2] * 8


@each_seed(5)
def test_documents_as_new_lack_the_features_of_their_fold_alone(seed):
    X, _ = make_texts(seed, 40)
    fold_of = folds_by_content(X, 8)
    new, dense = as_new(X, fold_of, [150, N_FEATURES]).toarray(), X.toarray()
    for i in range(40):
        others = dense[fold_of != fold_of[i]]
        expected = np.where((others != 0).any(axis=0), dense[i], 0)
        assert ((new[i] != 0) == (expected != 0)).all()
    lone = as_new(csr_array(dense / 2), fold_of, [N_FEATURES]).toarray()
    lengths = np.linalg.norm(lone, axis=1)
    np.testing.assert_allclose(lengths[lengths > 0], 0.5, rtol=1e-5)


def test_a_value_must_be_clearly_better_than_the_first():
    assert best_unless_close({1.0: 0.5, 2.0: 0.5}, 1.0, 10**9) == 1.0
    assert best_unless_close({1.0: 0.5, 2.0: 0.6}, 1.0, 10**4) == 2.0
    assert best_unless_close({1.0: 0.5, 2.0: 0.6}, 1.0, 0) == 1.0
