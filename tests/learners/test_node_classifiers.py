"""A classifier of its own at every node."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.tree import DecisionTreeClassifier

import ramify
from ramify import Taxonomy
from ramify.errors import InputError, ModelError
from ramify.learners import NodeClassifiers, OneVsRestLogistic, OneVsRestSVM

TREE = Taxonomy.from_paths(["a/x", "a/y", "b/z", "b/w", "c"])
BASES = {"svm": OneVsRestSVM, "lr": OneVsRestLogistic}


def problem(n=90, seed=0, taxonomy=TREE):
    """Counts in which every node on a document's path has a word of its own, with noise; one or two labels, some inner."""
    rng = np.random.default_rng(seed)
    labels = [[taxonomy.names[k] for k in rng.choice(len(taxonomy), size=1 + (i % 7 == 0), replace=False)] for i in range(n)]
    Y = taxonomy.encode(labels)
    X = rng.poisson(0.4, size=(n, 2 * len(taxonomy))).astype(np.float32)
    X[:, : len(taxonomy)] += 2 * Y.toarray()
    return csr_array(X), Y


def training_set_of(node, Y, negatives):
    parent = TREE.parent[node]
    return np.arange(Y.shape[0]) if negatives == "all" or parent < 0 else np.flatnonzero(Y.toarray()[:, parent])


@pytest.mark.parametrize("negatives", ["parent", "all"])
@pytest.mark.parametrize("base", ["svm", "lr"])
def test_every_node_has_the_classifier_of_its_own_documents_against_the_others_of_its_training_set(base, negatives):
    X, Y = problem()
    fitted = NodeClassifiers(TREE, base=base, negatives=negatives, calibration=None, tol=1e-6).fit(X, Y)
    S = fitted.scores(X)
    for node in range(len(TREE)):
        included = training_set_of(node, Y, negatives)
        true = Y.toarray()[included, node]
        alone = BASES[base](tol=1e-6).fit(X[included], true.astype(int))
        np.testing.assert_allclose(S[:, node], alone.scores(X)[:, 1], atol=2e-2)


@pytest.mark.parametrize("negatives", ["parent", "all"])
def test_naive_bayes_at_a_node_is_that_of_yes_and_no(negatives):
    X, Y = problem()
    fitted = NodeClassifiers(TREE, base="nb", negatives=negatives, calibration=None, alpha=0.5).fit(X, Y)
    S = fitted.scores(X)
    for node in range(len(TREE)):
        included = training_set_of(node, Y, negatives)
        log_p = MultinomialNB(alpha=0.5).fit(X[included], Y.toarray()[included, node]).predict_joint_log_proba(X)
        np.testing.assert_allclose(S[:, node], log_p[:, 1] - log_p[:, 0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("estimator", [LogisticRegression(), DecisionTreeClassifier(max_depth=2, random_state=0)])
def test_any_classifier_of_scikit_learns_kind_may_sit_at_the_nodes(estimator):
    X, Y = problem()
    fitted = NodeClassifiers(TREE, base=estimator).fit(X, Y)
    P = fitted.conditionals(fitted.scores(X))
    assert P.shape == (90, len(TREE))
    assert np.mean((P >= 0.5) == Y.toarray()) > 0.8


def test_a_model_with_foreign_classifiers_cannot_be_saved(tmp_path):
    clf = ramify.TextClassifier("b-svm", learner=NodeClassifiers(base=DecisionTreeClassifier(random_state=0)))
    clf.fit(["red apple", "rye bread", "green tea"] * 6, ["food/fruit", "food/bread", "tea"] * 6)
    with pytest.raises(InputError, match="DecisionTreeClassifier at its nodes cannot be saved.*hold no code"):
        clf.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("base", ["svm", "lr", "nb"])
@pytest.mark.parametrize("calibration", ["sigmoid", "platt", "isotonic", None])
@pytest.mark.parametrize("negatives", ["parent", "all"])
def test_a_learner_from_its_state_is_the_same(base, calibration, negatives):
    X, Y = problem()
    fitted = NodeClassifiers(TREE, base=base, negatives=negatives, calibration=calibration, missing=0.2).fit(X, Y)
    values, arrays = fitted.state()
    again = NodeClassifiers.from_state(TREE, values, arrays)
    S = fitted.scores(X)
    np.testing.assert_array_equal(again.scores(X), S)
    for what in ("classifier_probabilities", "conditionals", "memberships", "to_probabilities"):
        np.testing.assert_array_equal(getattr(again, what)(S), getattr(fitted, what)(S))


@pytest.mark.parametrize("negatives", ["parent", "all"])
def test_a_node_of_all_its_training_documents_has_no_classifier_and_a_high_probability(negatives):
    chain = Taxonomy.from_paths(["root/a", "root/b/only"])
    X, Y = csr_array(np.eye(6, dtype=np.float32)), chain.encode(["root/a", "root/b/only"] * 3)
    fitted = NodeClassifiers(chain, negatives=negatives).fit(X, Y)
    always = [chain.names[node] for node in fitted.always_]
    assert always == (["root", "root/b/only"] if negatives == "parent" else ["root"])
    P = fitted.classifier_probabilities(fitted.scores(X))
    np.testing.assert_allclose(P[:, 0], 7 / 8)
    if negatives == "parent":
        np.testing.assert_allclose(P[:, chain.index("root/b/only")], 4 / 5)


def test_a_node_without_documents_has_no_classifier_and_is_never_taken():
    X, labels = np.eye(8), ["a/x", "a/y", "b/z", "c"] * 2
    fitted = NodeClassifiers(TREE).fit(X, labels)
    S = fitted.scores(X)
    assert (S[:, TREE.index("b/w")] == -np.inf).all()
    assert not ramify.decisions.minimize_h_loss(fitted.conditionals(S), TREE).toarray()[:, TREE.index("b/w")].any()


@pytest.mark.parametrize("missing", [0.0, 0.25, 0.5, 0.9])
def test_a_fraction_of_nodes_is_left_without_a_classifier(missing):
    X, Y = problem()
    S = NodeClassifiers(TREE, negatives="all", missing=missing, calibration=None).fit(X, Y).scores(X)
    assert np.isnan(S).all(axis=0).sum() == round(missing * len(TREE))
    again = NodeClassifiers(TREE, negatives="all", missing=missing, calibration=None).fit(X, Y).scores(X)
    np.testing.assert_array_equal(np.isnan(S), np.isnan(again))


def test_documents_without_labels_are_negatives_of_the_roots():
    X = csr_array(np.vstack([np.eye(3)] * 4).astype(np.float32))
    Y = Taxonomy.flat(["a", "b"]).encode([["a"], ["b"], []] * 4)
    fitted = NodeClassifiers(Taxonomy.flat(["a", "b"])).fit(X, Y)
    assert (fitted.scores(X)[2::3] < 0).all()


def test_probabilities_with_the_parents_documents_multiply_along_the_path():
    X, Y = problem()
    fitted = NodeClassifiers(TREE).fit(X, Y)
    S = fitted.scores(X)
    P, shares = fitted.to_probabilities(S), fitted.conditionals(S)
    x, a = TREE.index("a/x"), TREE.index("a")
    np.testing.assert_allclose(P[:, x], shares[:, x] * shares[:, a], rtol=1e-5)


def test_a_gap_on_the_path_says_nothing_about_memberships_below_it():
    X, Y = problem()
    fitted = NodeClassifiers(TREE).fit(X, Y)
    S = fitted.scores(X)
    x, a = TREE.index("a/x"), TREE.index("a")
    S[:, a] = np.nan
    told, shares = fitted.memberships(S), fitted.conditionals(S)
    assert np.isnan(told[:, a]).all()
    np.testing.assert_allclose(told[:, x], shares[:, x])


@pytest.mark.parametrize("C", [1e-6, 1e-5, 0.01, 1.0])
def test_probabilities_are_right_on_average_whatever_the_cost(C):
    """A fold has fewer documents than the whole; with a small cost its margins would be smaller, too."""
    X, Y = problem(n=600)
    X_new, Y_new = problem(n=600, seed=9)
    fitted = NodeClassifiers(TREE, negatives="all", calibration="platt", C=C).fit(X, Y)
    P = fitted.classifier_probabilities(fitted.scores(X_new))
    np.testing.assert_allclose(P.mean(axis=0), Y_new.toarray().mean(axis=0), atol=0.08)


def test_memberships_of_independent_classifiers_may_contradict_the_tree_but_probabilities_do_not():
    X, Y = problem(seed=3)
    fitted = NodeClassifiers(TREE, negatives="all").fit(X, Y)
    S = fitted.scores(X)
    inner = np.flatnonzero(TREE.parent >= 0)
    raw, P = fitted.memberships(S), fitted.to_probabilities(S)
    assert (raw[:, inner] > raw[:, TREE.parent[inner]]).any()
    assert (P[:, inner] <= P[:, TREE.parent[inner]]).all()


def test_calibrated_probabilities_are_more_likely_than_raw_sigmoids_on_new_documents():
    X, Y = problem(n=600, seed=1)
    X_new, Y_new = problem(n=600, seed=2)
    truth = Y_new.toarray()

    def surprise(calibration):
        fitted = NodeClassifiers(TREE, negatives="all", calibration=calibration, C=10).fit(X, Y)
        p = fitted.classifier_probabilities(fitted.scores(X_new)).clip(1e-6, 1 - 1e-6)
        return -np.mean(np.where(truth, np.log(p), np.log(1 - p)))

    assert max(surprise("sigmoid"), surprise("platt")) < surprise(None)


def test_scores_for_learning_a_rule_come_from_learners_that_had_not_seen_the_document():
    """Words of its own tell a document's label to a learner that has seen it, and nothing to one that has not."""
    n = 60
    rng = np.random.default_rng(0)
    labels = [TREE.names[k] for k in rng.choice(np.flatnonzero(TREE.is_leaf), size=n)]
    fitted = NodeClassifiers(TREE, negatives="all", C=100).fit(csr_array(np.eye(n, dtype=np.float32)), labels)
    documents, S = fitted.held_out_
    Y = TREE.encode(labels).toarray()
    assert sorted(documents.tolist()) == list(range(n))
    seen = fitted.scores(np.eye(n))
    assert ((seen > 0) == Y).all()
    held_out = np.nan_to_num(S, nan=-1.0)
    assert (held_out[Y[documents]] <= 0).all()


def test_a_cost_is_chosen_by_cross_validation():
    X, Y = problem()
    fitted = NodeClassifiers(TREE, C="auto").fit(X, Y)
    assert fitted.C_scores_[fitted.C_] == max(fitted.C_scores_.values())
    np.testing.assert_array_equal(fitted.scores(X), NodeClassifiers(TREE, C=fitted.C_).fit(X, Y).scores(X))


@pytest.mark.parametrize("base", ["svm", "nb"])
def test_weights_of_documents_count_like_copies(base):
    X, Y = problem(n=40)
    weights = np.random.default_rng(0).integers(1, 3, size=40)
    copies = np.repeat(np.arange(40), weights)
    once = NodeClassifiers(TREE, base=base, calibration=None, tol=1e-6).fit(X, Y, sample_weight=weights)
    often = NodeClassifiers(TREE, base=base, calibration=None, tol=1e-6).fit(X[copies], Y[copies])
    np.testing.assert_allclose(once.scores(X), often.scores(X), atol=1e-2)


def test_a_fit_that_fails_leaves_the_earlier_one_whole():
    X, Y = problem()
    fitted = NodeClassifiers(TREE).fit(X, Y)
    before = fitted.scores(X)
    fitted.set_params(base="nb")
    with pytest.raises(InputError, match="Negative values"):
        fitted.fit(-X, Y)
    np.testing.assert_array_equal(fitted.scores(X), before)


def test_a_clone_of_what_was_kept_leaves_out_the_same_nodes():
    X, Y = problem()
    fitted = NodeClassifiers(TREE, missing=0.5, random_state=7, calibration=None).fit(X, Y)
    again = clone(NodeClassifiers.from_state(TREE, *fitted.state())).fit(X, Y)
    np.testing.assert_array_equal(np.isnan(again.scores(X)), np.isnan(fitted.scores(X)))


@pytest.mark.parametrize("negatives", ["parent", "all"])
def test_no_node_of_a_dag_is_more_probable_than_any_of_its_parents(diamond, negatives):
    X, labels = np.eye(9), ["bottom", "left", "right"] * 3
    P = NodeClassifiers(diamond, negatives=negatives).fit(X, labels).predict_proba(X)
    for parent in ("left", "right"):
        assert (P[:, diamond.index("bottom")] <= P[:, diamond.index(parent)]).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base": "svmm"}, "base is 'svmm'.*Did you mean 'svm'"),
        ({"base": 3}, "base is 3; give 'svm', 'lr', 'nb', or a classifier"),
        ({"negatives": "siblings"}, "negatives is 'siblings'; give 'parent' or 'all'"),
        ({"calibration": "beta"}, "calibration is 'beta'; give one of"),
        ({"missing": 1.0}, "missing is 1.0; give the fraction"),
        ({"missing": "half"}, "missing is 'half'"),
        ({"alpha": 0}, "alpha is 0; give a number above 0"),
        ({"C": -1}, "C is -1"),
        ({"missing": 0.99}, "no node has documents of both kinds"),
        ({"base": "nb", "class_weight": "balanced"}, "class_weight is for base='svm' and 'lr'"),
        ({"base": "nb", "C": "abc"}, "C is 'abc'"),
        ({"base": LinearRegression()}, "base is LinearRegression"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(settings, message):
    X, Y = problem(n=20)
    with pytest.raises(InputError, match=message):
        NodeClassifiers(TREE, **settings).fit(X, Y)


def test_naive_bayes_refuses_negative_values():
    with pytest.raises(InputError, match="Negative values"):
        NodeClassifiers(TREE, base="nb").fit(-np.eye(8), ["a/x", "a/y", "b/z", "c"] * 2)


@pytest.mark.parametrize("base", ["svm", "nb"])
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("unit_nodes", np.array([0, 0])),
        ("unit_nodes", np.array([99])),
        ("unit_nodes", np.array([0.0])),
        ("always_counts", np.array([-1.0])),
        ("curve_offsets", np.array([0])),
        ("log_odds", np.zeros((2, 2), dtype=np.float32)),
        ("prior", np.array([1, 2])),
        ("class_units", np.array([0])),
    ],
)
def test_arrays_that_do_not_fit_are_refused(base, name, wrong):
    X, Y = problem()
    values, arrays = NodeClassifiers(TREE, base=base).fit(X, Y).state()
    if name not in arrays:
        pytest.skip(f"{base} keeps no {name}")
    with pytest.raises(ModelError, match="again"):
        NodeClassifiers.from_state(TREE, values, arrays | {name: wrong})


def test_words_add_up_to_the_score_of_a_node():
    X, Y = problem()
    for base in ("svm", "nb"):
        fitted = NodeClassifiers(TREE, base=base).fit(X, Y)
        node = TREE.index("a/x")
        _, added, bias = fitted.contributions(X[[4]], node)
        assert added.sum() + bias == pytest.approx(fitted.scores(X[[4]])[0, node], abs=1e-3)
