"""Scores that are added along the path, against flat classifiers of every node."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from seeds import each_seed

import ramify
from ramify import Taxonomy, TextClassifier
from ramify.errors import InputError, ModelError
from ramify.learners import OneVsRestSVM, PathSVM
from ramify.learners.linear.path_svm import SHARES
from ramify.learners.linear.taxonomy_ties import tie_along_paths
from ramify.taxonomy import expand_to_ancestors

TREE = Taxonomy.from_paths(["a", "a/x", "a/y/p", "a/y/q", "b/z", "c"])
LABELS = ["a", "a/x", "a/y/p", "a/y/q", "b/z", "c"]
DAG = Taxonomy.from_edges(
    [("top", None), ("left", "top"), ("right", "top"), ("both", "left"), ("both", "right"), ("far", None)]
)


def make_texts(taxonomy, labels, seed, n_docs=150, n_features=240):
    """Sparse documents of unit length with features of their label and of everything above it."""
    rng = np.random.default_rng(seed)
    rows = [[str(rng.choice(labels))] for _ in range(n_docs)]
    Y = taxonomy.encode(rows)
    dense = (rng.random((n_docs, n_features)) < 0.02).astype(float)
    for i, node in zip(*Y.nonzero(), strict=True):
        dense[i, rng.integers(20 * node, 20 * node + 12, 3)] += 1
    dense[:, -1] += 0.1
    return csr_array((dense / np.linalg.norm(dense, axis=1, keepdims=True)).astype(np.float32)), Y


def added_by_hand(taxonomy, X, Y, share, C):
    """Own scores of labelled nodes, and those of all ancestors times the share, each from a flat classifier by itself."""
    own = ramify.taxonomy.most_specific(Y, taxonomy).toarray()
    closed = expand_to_ancestors(Y, taxonomy).toarray()

    def scores(is_positive):
        pair = Taxonomy.flat(["yes", "no"])
        fitted = OneVsRestSVM(pair, C=C, loss="squared_hinge", tol=1e-5).fit(X, ["yes" if one else "no" for one in is_positive])
        return fitted.scores(X)[:, 0]

    found = np.full(Y.shape, np.nan)
    for node in np.flatnonzero(own.any(axis=0)):
        found[:, node] = scores(own[:, node])
        above = [*taxonomy.ancestors_of(node).tolist(), *([node] if (own[:, node] != closed[:, node]).any() else [])]
        for ancestor in above:
            if not closed[:, ancestor].all():
                found[:, node] += share * scores(closed[:, ancestor])
    return found


@pytest.mark.parametrize(("taxonomy", "labels"), [(TREE, LABELS), (DAG, ["both", "left", "right", "far"])], ids=["tree", "DAG"])
@pytest.mark.parametrize("share", [0.0, 0.3])
@each_seed(3)
def test_scores_are_those_of_flat_classifiers_added_over_all_ancestors(taxonomy, labels, share, seed):
    X, Y = make_texts(taxonomy, labels, seed)
    fitted = PathSVM(taxonomy, C=2.0, ancestors=share, tol=1e-5).fit(X, Y)
    np.testing.assert_allclose(fitted.scores(X), added_by_hand(taxonomy, X, Y, share, 2.0), atol=0.02)


def test_without_ancestors_it_is_flat():
    X, Y = make_texts(TREE, LABELS, 0)
    flat = OneVsRestSVM(TREE, C=1.0, loss="squared_hinge", tol=1e-5).fit(X, Y)
    np.testing.assert_allclose(PathSVM(TREE, C=1.0, ancestors=0.0, tol=1e-5).fit(X, Y).scores(X), flat.scores(X), atol=0.01)


def test_the_weight_of_ancestors_is_selected_and_reported():
    X, Y = make_texts(TREE, LABELS, 1)
    fitted = PathSVM(TREE).fit(X, Y)
    assert fitted.ancestors_ in SHARES
    assert fitted.training_facts()["ancestors"] == fitted.selected_params()["ancestors"] == fitted.ancestors_
    again = PathSVM(TREE, **fitted.selected_params()).fit(X, Y)
    np.testing.assert_allclose(again.scores(X), fitted.scores(X), atol=0.1)
    names = [f"c{node}" for node in np.asarray(Y.argmax(axis=1)).ravel()]
    assert PathSVM().fit(X, names).ancestors_ == 0  # a flat list has no ancestors


def test_held_out_scores_are_added_in_the_same_way():
    X, Y = make_texts(TREE, LABELS, 2)
    learner = PathSVM(TREE, C=1.0, ancestors=0.5)
    learner.keeps_held_out = True
    documents, S = learner.fit(X, Y).held_out_
    assert documents.tolist() == list(range(X.shape[0]))
    assert np.isfinite(S[:, learner.class_nodes_]).all()
    forest = tie_along_paths(TREE, learner.class_nodes_)
    assert set(forest.class_nodes) == set(learner.class_nodes_)
    true = ramify.taxonomy.most_specific(Y, TREE)
    seen = learner.scores(X)[true.nonzero()].mean()
    assert S[true.nonzero()].mean() < seen  # documents that were not seen fit less well


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"ancestors": 2}, "ancestors is 2"), ({"ancestors": "some"}, "ancestors is"), ({"mode": "fast"}, "mode")],
)
def test_bad_parameters_are_refused(settings, message):
    X, Y = make_texts(TREE, LABELS, 0)
    with pytest.raises(InputError, match=message):
        PathSVM(TREE, **settings).fit(X, Y)


def test_it_is_the_default_and_can_be_saved(tmp_path):
    texts = [f"{word} {word}s and more {n}" for word in ("apple", "pear", "rye", "tea") for n in range(30)]
    labels = [label for label in ("food/fruit/apple", "food/fruit/pear", "food/bread", "drink") for _ in range(30)]
    clf = TextClassifier().fit(texts, labels)
    assert (clf.system, clf.learner_.kind) == ("path-svm", "path-svm")
    assert clf.score(texts, labels) == 1
    clf.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(texts), clf.predict_proba(texts))
    assert again.learner_.ancestors_ == clf.learner_.ancestors_
    values, arrays = clf.learner_.state()
    with pytest.raises(ModelError):
        PathSVM.from_state(clf.taxonomy_, {**values, "chosen_ancestors": float("nan")}, arrays)
