"""SVMs along paths with naive Bayes: their scores added, against both learners trained by themselves."""

from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array
from seeds import each_seed

import ramify
from ramify import Taxonomy, TextClassifier
from ramify.errors import InputError, ModelError
from ramify.learners import Ensemble, PathSVM, ShrinkageNaiveBayes
from ramify.learners.ensemble import WEIGHTS, select_weight

TREE = Taxonomy.from_paths(["a", "a/x", "a/y/p", "a/y/q", "b/z", "c", "empty"])
LABELS = ["a", "a/x", "a/y/p", "a/y/q", "b/z", "c"]
DAG = Taxonomy.from_edges(
    [("top", None), ("left", "top"), ("right", "top"), ("both", "left"), ("both", "right"), ("far", None)]
)


def make_texts(taxonomy, labels, seed, n_docs=150, n_features=160):
    """Sparse documents of unit length with features of their label and of everything above it; one label is rare."""
    rng = np.random.default_rng(seed)
    rows = [[str(rng.choice(labels[:-1]))] for _ in range(n_docs - 1)] + [[labels[-1]]]
    Y = taxonomy.encode(rows)
    dense = (rng.random((n_docs, n_features)) < 0.05).astype(float)
    for i, node in zip(*Y.nonzero(), strict=True):
        dense[i, rng.integers(15 * node, 15 * node + 12, 2)] += 1
    dense[:, -1] += 0.1
    return csr_array((dense / np.linalg.norm(dense, axis=1, keepdims=True)).astype(np.float32)), Y


@pytest.mark.parametrize(("taxonomy", "labels"), [(TREE, LABELS), (DAG, ["both", "left", "right", "far"])], ids=["tree", "DAG"])
@pytest.mark.parametrize("weight", [0.0, 0.05, 1.0])
@each_seed(2)
def test_scores_are_those_of_both_learners_added(taxonomy, labels, weight, seed):
    X, Y = make_texts(taxonomy, labels, seed)
    fitted = Ensemble(taxonomy, C=2.0, ancestors=0.3, bayes_weight=weight).fit(X, Y)
    svm = PathSVM(taxonomy, C=2.0, ancestors=0.3).fit(X, Y).scores(X)
    bayes = ShrinkageNaiveBayes(taxonomy).fit(X, Y).scores(X)
    np.testing.assert_allclose(fitted.scores(X), svm + weight * np.where(np.isfinite(bayes), bayes, 0), rtol=1e-5, atol=1e-5)


def test_an_empty_node_is_never_predicted_and_an_inner_one_has_no_score():
    X, Y = make_texts(TREE, LABELS, 0)
    S = Ensemble(TREE, bayes_weight=0.1).fit(X, Y).scores(X)
    alone = PathSVM(TREE).fit(X, Y).scores(X)
    np.testing.assert_array_equal(np.isnan(S), np.isnan(alone))
    np.testing.assert_array_equal(np.isneginf(S), np.isneginf(alone))


def test_the_weight_is_that_of_most_correct_held_out_documents():
    rng = np.random.default_rng(3)
    own = csr_array(np.eye(3)[rng.integers(0, 3, 400)])
    truth = own.toarray()
    noise, signal = rng.normal(size=truth.shape), 10 * truth + rng.normal(size=truth.shape)
    chosen = partial(select_weight, own=own, class_nodes=np.arange(3))
    assert chosen(noise.astype(np.float32), signal.astype(np.float32)) == max(WEIGHTS)
    assert chosen(signal.astype(np.float32), (200 * noise).astype(np.float32)) < 0.05
    assert chosen(signal.astype(np.float32), np.zeros(truth.shape, np.float32)) == 0.05  # no difference: the first


def test_held_out_scores_are_of_learners_that_have_not_seen_the_document():
    X, Y = make_texts(TREE, LABELS, 2)
    learner = Ensemble(TREE, C=1.0, ancestors=0.5, bayes_weight=0.1)
    learner.keeps_held_out = True
    documents, S = learner.fit(X, Y).held_out_
    assert documents.tolist() == list(range(X.shape[0]))
    assert np.isfinite(S[:, learner.class_nodes_]).all()
    own = ramify.taxonomy.most_specific(Y, TREE)
    assert S[own.nonzero()].mean() < learner.scores(X)[own.nonzero()].mean()
    rare = TREE.index(LABELS[-1])  # its one document belongs to a class that its fold does not know
    assert S[-1, rare] < learner.scores(X)[-1, rare]
    svm = PathSVM(TREE, C=1.0, ancestors=0.5)
    svm.keeps_held_out = True
    of_bayes = (S - svm.fit(X, Y).held_out_[1]) / 0.1
    one_out = ShrinkageNaiveBayes(TREE).fit(X[1:], Y[1:]).scores(X[:1])[0]
    classes = learner.class_nodes_[learner.class_nodes_ != rare]
    np.testing.assert_allclose(of_bayes[0, classes], one_out[classes], atol=2.0)  # a quarter of the others is left out, too


def test_chosen_parameters_train_the_same_again():
    X, Y = make_texts(TREE, LABELS, 1)
    fitted = Ensemble(TREE).fit(X, Y)
    assert fitted.bayes_weight_ in WEIGHTS
    assert set(fitted.selected_params()) == {"C", "ancestors", "bayes_weight"}
    assert fitted.training_facts()["bayes_weight"] == fitted.bayes_weight_
    again = Ensemble(TREE, **fitted.selected_params()).fit(X, Y)
    np.testing.assert_allclose(again.scores(X), fitted.scores(X), atol=0.1)


def test_features_below_zero_are_for_the_svm_alone():
    X, Y = make_texts(TREE, LABELS, 1)
    fitted = Ensemble(TREE).fit(-X, Y)
    assert (fitted.bayes_, fitted.bayes_weight_) == (None, 0.0)
    np.testing.assert_array_equal(fitted.scores(-X), fitted.svm_.scores(-X))
    with pytest.raises(InputError, match="Negative"):
        Ensemble(TREE, bayes_weight=0.1).fit(-X, Y)


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf"), "some", True, None])
def test_bad_weights_are_refused(weight):
    X, Y = make_texts(TREE, LABELS, 0)
    with pytest.raises(InputError, match="bayes_weight is"):
        Ensemble(TREE, bayes_weight=weight).fit(X, Y)


def test_top_terms_have_the_largest_contributions():
    X, Y = make_texts(TREE, LABELS, 0)
    fitted = Ensemble(TREE, bayes_weight=0.1).fit(X, Y)
    node = TREE.index("b/z")
    terms = fitted.top_terms("b/z", 5)
    own = {15 * above + n for above in (node, TREE.index("b")) for n in range(12)}  # of the class and of its parent
    assert own >= {feature for feature, _ in terms}
    features, added, _ = fitted.contributions(X[[int(Y[:, [node]].nonzero()[0][0])]], node)
    assert added.shape == features.shape
    with pytest.raises(InputError):
        fitted.top_terms("empty")


def test_a_saved_model_is_the_same_and_a_broken_one_is_refused(tmp_path):
    texts = [f"{word} {word}s and more {n}" for word in ("apple", "pear", "rye", "tea") for n in range(30)]
    labels = [label for label in ("food/fruit/apple", "food/fruit/pear", "food/bread", "drink") for _ in range(30)]
    clf = TextClassifier("ensemble").fit(texts, labels)
    assert clf.score(texts, labels) == 1
    clf.save(tmp_path / "model")
    np.testing.assert_array_equal(ramify.load(tmp_path / "model").predict_proba(texts), clf.predict_proba(texts))
    values, arrays = clf.learner_.state()
    assert clf.learner_.bayes_weight_ > 0
    for weight in (float("nan"), -1.0, float("inf")):
        with pytest.raises(ModelError):
            Ensemble.from_state(clf.taxonomy_, {**values, "bayes_weight": weight}, arrays)
    other = Ensemble(clf.taxonomy_, bayes_weight=0.1).fit(csr_array(np.eye(4, dtype=np.float32)), sorted(set(labels)))
    _, of_other = other.state()
    swapped = {name: of_other[name] if name.startswith("bayes_") else array for name, array in arrays.items()}
    with pytest.raises(ModelError):
        Ensemble.from_state(clf.taxonomy_, values, swapped)
