"""Out-of-fold scores from one solution, against classifiers that were trained without each fold."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from seeds import each_seed

from ramify import Taxonomy
from ramify.learners import OneVsRestLogistic, OneVsRestSVM
from ramify.learners.linear import cross_fit
from ramify.learners.linear.cross_fit import CrossFit, HeldOut, as_new, best_unless_close, order_by_content
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


def folds_of(learner, X, names, compares_costs=False):
    """Folds from the learner's solution on all documents, and which documents belong to which class."""
    fitted = learner.fit(X, names)
    own = csr_array(np.asarray([[name == other for other in CLASSES] for name in names]))
    setup = check_setup(learner, learner.loss)
    flat = learner._tie(fitted.taxonomy_, np.arange(len(CLASSES)))
    learner.keeps_held_out = True
    trained, _, _ = learner._train_at_best_cost(X, own, flat, np.ones(X.shape[0]), setup)
    return CrossFit.of(trained, HeldOut.of(X, len(CLASSES), None, compares_costs), 1), own


def solve_exactly(monkeypatch):
    """Let folds go on until their duality gap is tiny."""
    monkeypatch.setattr(cross_fit, "TOLERANCE", 1e-6)
    monkeypatch.setattr(cross_fit, "PASSES", 500)


@pytest.mark.parametrize("make", [OneVsRestSVM, lambda *a, **k: OneVsRestSVM(*a, loss="squared_hinge", **k), OneVsRestLogistic])
@pytest.mark.parametrize("n_held_out", [N_DOCS, 50])
@each_seed(4)
def test_out_of_fold_scores_are_those_of_classifiers_trained_without_the_fold(make, n_held_out, seed, monkeypatch):
    solve_exactly(monkeypatch)
    monkeypatch.setattr(cross_fit, "MOST_DOCUMENTS", n_held_out)
    X, names = make_texts(seed)
    taxonomy = Taxonomy.flat(CLASSES)
    folds, _ = folds_of(make(taxonomy, C=1.0, tol=1e-5), X, names)
    held_out, found = folds.held_out, np.full((N_DOCS, len(CLASSES)), np.nan)
    found[folds.documents, folds.classes] = folds.found[:, 0]
    assert len(held_out.documents) == n_held_out
    assert np.isnan(np.delete(found, held_out.documents, axis=0)).all()
    for fold in range(8):
        documents, weight = held_out.documents[held_out.fold_of == fold], np.ones(N_DOCS)
        weight[documents] = 0
        alone = make(taxonomy, C=1.0, tol=1e-5).fit(X, names, sample_weight=weight)
        expected = alone.scores(held_out.rows[held_out.fold_of == fold])
        is_near = np.abs(found[documents]) < 1.4  # folds do not train on pairs far beyond the margin, and keep their score
        np.testing.assert_allclose(found[documents][is_near], expected[is_near], atol=0.1)


def test_costs_are_judged_by_held_out_predictions(monkeypatch):
    solve_exactly(monkeypatch)
    X, names = make_texts(0)
    taxonomy = Taxonomy.flat(CLASSES)
    folds, own = folds_of(OneVsRestSVM(taxonomy, C=0.1, tol=1e-5, loss="squared_hinge"), X, names, compares_costs=True)
    counts = folds.measure_costs(own, np.ones(len(CLASSES), dtype=bool), is_multi_label=False)
    true, held_out = np.asarray(names), folds.held_out
    for factor in cross_fit.COSTS:
        right = total = 0
        for fold in (0, 1):  # those with all costs
            documents, weight = held_out.documents[held_out.fold_of == fold], np.ones(N_DOCS)
            weight[documents] = 0
            alone = OneVsRestSVM(taxonomy, C=0.1 * factor, tol=1e-5, loss="squared_hinge").fit(X, names, sample_weight=weight)
            predicted = alone.predict(held_out.rows[held_out.fold_of == fold])
            right, total = right + int(np.sum(predicted == true[documents])), total + len(documents)
        true_positives, n_predicted, n_true = counts[factor].sum(axis=(0, 1))
        assert (n_predicted, n_true) == (total, total)
        assert true_positives == pytest.approx(right, abs=2)


def test_of_documents_with_several_labels_as_many_are_predicted_as_there_are():
    X, names = make_texts(3)
    folds, own = folds_of(OneVsRestSVM(Taxonomy.flat(CLASSES), C=1.0), X, names, compares_costs=True)
    several = csr_array(own.toarray() | np.array([True, False, False, False]))
    for counts in folds.measure_costs(several, np.ones(len(CLASSES), dtype=bool), is_multi_label=True).values():
        true_positives, n_predicted, n_true = counts.sum(axis=(0, 1))
        assert n_true <= n_predicted <= n_true + N_DOCS // 2
        assert 0 < true_positives <= n_true
    labels = np.array([True, False, True, True])
    for counts in folds.measure_costs(own, labels, is_multi_label=True).values():
        assert not counts[:, 1].any()


def test_the_selected_cost_is_used_and_small_problems_keep_the_first():
    X, names = make_texts(1)
    fitted = OneVsRestSVM(Taxonomy.flat(CLASSES), C="auto").fit(X, names)
    assert fitted.C_ in fitted.C_scores_
    assert len(fitted.C_scores_) >= len(cross_fit.COSTS)
    plain = OneVsRestSVM(Taxonomy.flat(CLASSES), C=fitted.C_).fit(X, names)
    np.testing.assert_allclose(fitted.scores(X), plain.scores(X), atol=0.02)
    few = OneVsRestSVM(Taxonomy.flat(CLASSES), C="auto").fit(X[:60], names[:60])
    assert (few.C_, few.C_scores_) == (3.0, {})


def test_folds_do_not_depend_on_the_order_of_documents():
    X, _ = make_texts(2)
    order = np.random.default_rng(0).permutation(N_DOCS)
    first, second = (HeldOut.of(some, len(CLASSES), None) for some in (X, X[order]))
    assert first.documents.tolist() == second.documents.tolist() == list(range(N_DOCS))
    assert second.fold_of.tolist() == first.fold_of[order].tolist()
    assert np.bincount(first.fold_of).tolist() == [20] * 8


def test_where_there_are_many_documents_a_sample_is_held_out(monkeypatch):
    monkeypatch.setattr(cross_fit, "MOST_DOCUMENTS", 40)
    X, _ = make_texts(2)
    held_out = HeldOut.of(X, len(CLASSES), None)
    assert held_out.documents.tolist() == sorted(order_by_content(X)[:40].tolist())
    assert held_out.rows.shape == (40, N_FEATURES)


def test_equal_documents_are_spread_over_folds():
    X = csr_array(np.ones((16, 2), dtype=np.float32))
    assert np.bincount(HeldOut.of(X, 2, None).fold_of).tolist() == [2] * 8


@each_seed(5)
def test_documents_as_new_lack_the_features_of_their_fold_alone(seed):
    X, _ = make_texts(seed, 40)
    documents, fold_of = np.arange(0, 40, 2), (np.arange(20) % 4).astype(np.uint8)
    new, dense = as_new(X, documents, fold_of, [150, N_FEATURES]).toarray(), X.toarray()
    for i, document in enumerate(documents):
        others = np.delete(dense, documents[fold_of == fold_of[i]], axis=0)
        expected = np.where((others != 0).any(axis=0), dense[document], 0)
        assert ((new[i] != 0) == (expected != 0)).all()
    lone = as_new(csr_array(dense / 2), documents, fold_of, [N_FEATURES]).toarray()
    lengths = np.linalg.norm(lone, axis=1)
    np.testing.assert_allclose(lengths[lengths > 0], 0.5, rtol=1e-5)


def counts_of(right, groups=8):
    """Counts of one class whose documents are right with the given share, by group."""
    return np.array([[[share * 100, 100, 100]] for share in np.broadcast_to(right, groups)])


def test_a_value_must_be_clearly_better_than_the_first():
    assert best_unless_close({1.0: counts_of(0.5), 2.0: counts_of(0.5)}, 1.0)[0] == 1.0
    assert best_unless_close({1.0: counts_of(0.5), 2.0: counts_of(0.501)}, 1.0)[0] == 1.0
    assert best_unless_close({1.0: counts_of(0.5), 2.0: counts_of(0.51)}, 1.0)[0] == 2.0
    by_chance = counts_of([0.9, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    assert best_unless_close({1.0: counts_of(0.5), 2.0: by_chance}, 1.0)[0] == 1.0
    best, quality = best_unless_close({1.0: counts_of(0.5), 2.0: counts_of(0.75)}, 1.0)
    assert (best, quality) == (2.0, pytest.approx({1.0: 0.5, 2.0: 0.75}))
