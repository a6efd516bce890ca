"""Nodes without training documents: no learner, rule, calibration or option ever gives one."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from seeds import each_seed
from strategies import build, random_forest

import ramify
from ramify import PredictOptions, Taxonomy, TextClassifier
from ramify.classifier.fitting import values_for
from ramify.decisions import (
    Best,
    Descend,
    IsotonicSmooth,
    MinimizeHLoss,
    PCut,
    PredictedCut,
    RCut,
    SCut,
    Sign,
    TopDown,
)
from ramify.learners import NodeClassifiers
from ramify.systems import SYSTEMS
from ramify.workflows.predictor import Predictor

# empty: a leaf beside others, both children of an inner node with documents, a subtree, a root, and the whole deepest level
TREE = Taxonomy.from_paths(["a/x", "a/y", "a/none", "b/z", "b/p/none1", "b/p/none2", "c/none/deep/deeper", "d"])
EMPTY = {"a/none", "b/p/none1", "b/p/none2", "c", "c/none", "c/none/deep", "c/none/deep/deeper", "d"}
WORDS = {"a/x": "apple pear", "a/y": "bread rye", "b/z": "tea cup", "b/p": "wine glass"}


def corpus(n=60, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(list(WORDS), size=n).tolist()
    return [f"{WORDS[label]} noise{rng.integers(9)} some{rng.integers(9)}" for label in labels], labels


def eager_rules(n_nodes):
    """Every rule, set so that it takes whatever it may."""
    low, all_low = -1e9, [-1e9] * n_nodes
    yield from (Best(), Best(leaves_only=True), Sign(low), TopDown(low), Descend(), RCut(k=n_nodes))
    yield from (MinimizeHLoss(), MinimizeHLoss("uniform"), MinimizeHLoss([0.0] * n_nodes))
    yield from (SCut(thresholds=all_low), SCut(thresholds=[np.inf] * n_nodes, at_least_one=True))
    yield from (PCut(factor=1.0, thresholds=all_low), PredictedCut(intercept=low, coefficients=[0.0]))
    for penalty in (0.0, 1.0, "inf"):
        yield IsotonicSmooth(penalty=penalty, threshold=low)
        yield IsotonicSmooth(penalty=penalty, threshold=2.0, at_least_one=True)
    yield IsotonicSmooth(penalty="inf", weights=[1.0 + k % 3 for k in range(n_nodes)], at_least_one=True)
    yield IsotonicSmooth(penalty=1.0, prior_weight=0.5, priors=[0.9] * n_nodes, threshold=low)


def random_documents(seed, system):
    """A random forest, documents at some of its nodes (one each, where the learner takes only one), and which are empty."""
    rng = np.random.default_rng(seed)
    taxonomy = build(random_forest(rng, 12))
    used = rng.choice(12, size=rng.integers(2, 6), replace=False)
    own = np.resize(used, 30)
    X = np.column_stack([own[:, None] == used, rng.random((30, 4)) < 0.4]).astype(np.float32)
    Y = taxonomy.encode([[taxonomy.names[node]] for node in own])
    if SYSTEMS[system].is_multi_label:
        more = taxonomy.encode([[taxonomy.names[node]] if rng.random() < 0.3 else [] for node in rng.permutation(own)])
        Y = csr_array(Y + more)
    return taxonomy, csr_array(X), Y, np.bincount(Y.indices, minlength=12) == 0


@pytest.mark.parametrize("system", SYSTEMS)
@each_seed(4)
def test_no_rule_ever_gives_a_node_that_had_no_training_document(system, seed):
    taxonomy, X, Y, empty = random_documents(seed, system)
    learner = SYSTEMS[system].learner().set_params(taxonomy=taxonomy)
    S = learner.fit(X, Y).scores(X)
    np.testing.assert_array_equal(learner.is_empty_, empty)
    assert (S[:, empty] == -np.inf).all()
    assert not np.isneginf(S[:, ~empty]).any()
    assert (learner.to_probabilities(S)[:, empty] == 0).all()
    assert (learner.conditionals(S)[:, empty] == 0).all()
    for quantity in ("scores", "memberships", "margins"):
        assert (learner.convert_scores(S, quantity)[:, empty] == -np.inf).all(), quantity
    for rule in eager_rules(len(taxonomy)):
        given = rule.decide(values_for(rule, learner, S), taxonomy).toarray()
        assert not given[:, empty].any(), rule
    again = type(learner).from_state(taxonomy, *learner.state())
    np.testing.assert_array_equal(again.scores(X), S)


@pytest.mark.parametrize("is_multi_label", [False, True])
@pytest.mark.parametrize("system", SYSTEMS)
def test_no_calibration_or_option_gives_one(system, is_multi_label, tmp_path):
    texts, labels = corpus(200)
    if is_multi_label:
        if not SYSTEMS[system].is_multi_label:
            pytest.skip("this system takes one label per document")
        labels = [[label, "b/z"] if k % 2 else [label] for k, label in enumerate(labels)]
    clf = TextClassifier(system, TREE).fit(texts, labels)
    empty = np.isin(TREE.names, list(EMPTY))
    assert clf.calibration_ is not None
    strange = [*texts[:20], "unknown words", "apple wine"]
    for model in (clf, clf.uncalibrated()):
        assert (model.predict_proba(strange)[:, empty] == 0).all()
    for options in (PredictOptions(top=9), PredictOptions(top=9, threshold=0.0), PredictOptions(risk=0.5)):
        for labels_of, others in Predictor(clf, options).predict(strange):
            assert not {TREE.names[node] for node, _ in labels_of + others} & EMPTY
    clf.explain("apple", "a/none")  # has no reason, and no rival that was never seen
    assert not set(clf.explain("apple", "a/x").rival) & {"none", "c", "d"}


def test_an_is_empty_child_takes_no_document_from_its_siblings_or_its_parent():
    texts, labels = corpus()
    for system in ("isotonic-svm", "isotonic-nb"):
        for penalty in (0.0, 1.0, "inf"):
            rule = IsotonicSmooth(penalty=penalty, at_least_one=True)
            clf = TextClassifier(system, TREE, decision=rule).fit(texts, labels)
            assert clf.score(texts, labels) == 1.0, (system, penalty)


def test_a_node_that_was_left_without_a_classifier_is_filled_in_but_an_is_empty_one_is_not():
    texts, labels = corpus()
    X = TextClassifier("nb", TREE).fit(texts, labels).vectorizer_.transform(texts)
    for seed in range(5):
        learner = NodeClassifiers(TREE, negatives="all", missing=0.5, random_state=seed).fit(X, labels)
        S = learner.memberships(learner.scores(X))
        empty = np.isin(TREE.names, list(EMPTY))
        assert np.isnan(S[:, ~empty]).any()
        assert (S[:, empty] == -np.inf).all()
        smoothed = IsotonicSmooth(penalty=1.0).refine(S, TREE)
        for top in ("a", "b"):
            tree = [node for node in np.flatnonzero(~empty) if TREE.names[node].startswith(top)]
            assert np.isfinite(smoothed[:, tree]).all() or np.isnan(S[:, tree]).all()
        assert (smoothed[:, empty] == -np.inf).all()


def test_a_model_of_an_earlier_version_knows_its_is_empty_nodes():
    texts, labels = corpus()
    clf = TextClassifier("isotonic-svm", TREE).fit(texts, labels)
    values, arrays = clf.learner_.state()
    arrays.pop("is_empty")
    older = NodeClassifiers.from_state(TREE, values, arrays)
    assert {TREE.names[node] for node in np.flatnonzero(older.is_empty_)} == EMPTY
    with pytest.raises(ramify.errors.ModelError, match="without documents"):
        NodeClassifiers.from_state(TREE, values, arrays | {"is_empty": ~older.is_empty_})
