"""All systems on a DAG: they work over its main-parent tree or with all parents, and answers are closed over the whole DAG."""

import warnings
from functools import cache

import numpy as np
import pytest
from oracles.main_parents import largest_below, sums_of_ends

import ramify
from ramify import Taxonomy, TextClassifier
from ramify.classifier import explain_nodes, make_rule
from ramify.classifier.fitting import RULES
from ramify.data import Corpus
from ramify.errors import ModelError
from ramify.persistence import read_model, write_model
from ramify.systems import SYSTEMS
from ramify.taxonomy import expand_to_ancestors
from ramify.workflows.folds import make_folds
from ramify.workflows.training import train_classifier
from ramify.workflows.tuning.candidates import Candidate
from ramify.workflows.tuning.trials import problem_with, rules_for, run_fold

# 'pie' is under 'fruit' and 'baked', 'tart' is under 'pie' and the deeper 'french'; 'herb' is under both roots
DAG = Taxonomy.from_edges(
    [
        *(("food", None), ("drink", None), ("fruit", "food"), ("baked", "food"), ("french", "baked")),
        *(("pie", "fruit"), ("pie", "baked"), ("tart", "pie"), ("tart", "french"), ("bread", "baked")),
        *(("tea", "drink"), ("herb", "food"), ("herb", "drink"), ("mint", "herb"), ("mint", "tea"), ("juice", "drink")),
    ]
)
LABELS = ["fruit", "pie", "tart", "bread", "tea", "herb", "mint", "juice", "french", "pie", "herb"]
TREE_SYSTEMS = [name for name, system in SYSTEMS.items() if system.uses_main_parents]


def write_documents(n=165, seed=0, multi_label=False):
    rng = np.random.default_rng(seed)
    labels = [[LABELS[k % len(LABELS)]] for k in range(n)]
    if multi_label:
        labels = [sorted({*row, str(rng.choice(LABELS))}) if rng.random() < 0.4 else row for row in labels]
    names = {label: [label, *(DAG.names[node] for node in DAG.ancestors_of(DAG.index(label)))] for label in LABELS}
    texts = []
    for row in labels:
        words = [f"{name}word{rng.integers(3)}" for label in row for name in names[label] if rng.random() < 0.7]
        texts.append(" ".join([*words, f"noise{rng.integers(20)}"]))
    return texts, labels


def fit(system, multi_label=False, taxonomy=DAG, **settings):
    multi_label = multi_label and SYSTEMS[system].learner().supports_multi_label
    texts, labels = write_documents(multi_label=multi_label)
    labels = DAG.decode(DAG.encode(labels))  # the most specific ones
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TextClassifier(system, taxonomy, **settings).fit(texts, labels), texts


@cache
def trained(system, multi_label=False):
    """A system trained on documents with one label or, where it takes them, with several."""
    return fit(system, multi_label, n_jobs=1)


def edges(taxonomy):
    return np.repeat(np.arange(len(taxonomy)), np.diff(taxonomy.parent_offsets)), taxonomy.parent_nodes


CASES = [(name, multi) for name in SYSTEMS for multi in (False, True)]


def test_eleven_systems_work_over_the_main_parent_tree():
    others = {"path-svm", "ensemble", "nb", "svm", "lr", "hr-svm", "hr-lr", "adaboost-mh"}
    assert set(TREE_SYSTEMS) == set(SYSTEMS) - others


@pytest.mark.parametrize("case", CASES, ids=str)
def test_labels_and_probabilities_are_consistent_over_the_dag(case):
    clf, texts = trained(*case)
    assert clf.calibration_ is not None
    assert clf.guarantee_ is not None
    child, parent = edges(DAG)
    Y = clf.predict_matrix(texts).toarray()
    assert Y.any(axis=1).mean() > 0.5
    assert (Y[:, child] <= Y[:, parent]).all()
    for probabilities in (clf.predict_proba(texts), clf.uncalibrated().predict_proba(texts)):
        assert ((probabilities >= 0) & (probabilities <= 1)).all()
        assert (probabilities[:, child] <= probabilities[:, parent] + 1e-6).all()
    safe = clf.decide_with_guarantee(texts, risk=0.3)[0].toarray()
    assert (safe[:, child] <= safe[:, parent]).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_saved_model_answers_the_same(case, tmp_path):
    clf, texts = trained(*case)
    clf.save(tmp_path / "model")
    loaded = ramify.load(tmp_path / "model")
    assert loaded.taxonomy_ == DAG
    assert loaded.taxonomy_.tree == clf.taxonomy_.tree
    np.testing.assert_array_equal(loaded.predict_matrix(texts).toarray(), clf.predict_matrix(texts).toarray())
    np.testing.assert_array_equal(loaded.predict_proba(texts), clf.predict_proba(texts))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_explanations_follow_main_parents_and_tell_what_was_decided(case):
    clf, texts = trained(*case)
    P, Y = clf.predict_proba(texts[:9]), clf.predict_matrix(texts[:9]).toarray()
    for row, text in enumerate(texts[:9]):
        for label in (None, "tart", "mint"):
            why = clf.explain(text, label)
            nodes = [step.node for step in why.steps]
            assert nodes == clf.taxonomy_.tree.nodes_to(nodes[-1])
            assert [step.is_taken for step in why.steps] == Y[row, nodes].tolist()
            np.testing.assert_allclose(why.probabilities, P[row, nodes], atol=1e-5)


@pytest.mark.parametrize("case", [case for case in CASES if case[0] in TREE_SYSTEMS], ids=str)
def test_a_system_over_the_main_parent_tree_answers_as_on_that_tree(case):
    """The oracle: the same system on the tree, with the same most specific labels; its labels are then closed over the DAG."""
    system, multi = case
    clf, texts = trained(*case)
    tree = clf.taxonomy_.tree
    on_tree, _ = fit(system, multi, tree, n_jobs=1, decision=None if not hasattr(clf.decision_, "unfitted") else clf.decision_)
    np.testing.assert_array_equal(on_tree.learner_.scores(on_tree.vectorizer_.transform(texts)), scores_of(clf, texts))
    expected = expand_to_ancestors(on_tree.predict_matrix(texts), DAG).toarray()
    np.testing.assert_array_equal(clf.predict_matrix(texts).toarray(), expected)
    parents = [DAG.parents_of(node).tolist() for node in range(len(DAG))]
    pairs = [(clf.uncalibrated(), on_tree.uncalibrated())] + [(clf, on_tree)] * (clf.calibration_.kind == "nested")
    for ours, theirs in pairs:  # where every document ends at one node, probabilities add up
        P = theirs.predict_proba(texts).astype(np.float64)
        is_sum = ours is clf or system not in ("h-svm", "b-svm", "treeboost-mh", "isotonic-svm", "isotonic-nb")
        expected = sums_of_ends(P, parents, tree.parent.tolist()) if is_sum else largest_below(P, parents)
        np.testing.assert_allclose(ours.predict_proba(texts), expected, atol=1e-5)


def scores_of(clf, texts):
    return clf.learner_.scores(clf.vectorizer_.transform(texts))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("system", ["nb", "svm", "hr-lr", "td-svm", "h-svm", "treeboost-mh"])
def test_every_rule_works_on_a_dag(system, rule):
    clf, texts = fit(system, decision=make_rule(rule, {}), calibrate=False)
    child, parent = edges(DAG)
    Y = clf.predict_matrix(texts).toarray()
    assert (Y[:, child] <= Y[:, parent]).all()
    assert len(clf.explain(texts[0]).steps) >= 1


def test_the_main_parent_is_the_one_with_the_fewest_documents():
    clf, _ = trained("h-svm")
    tree, sizes = clf.taxonomy_.tree, clf.sizes_
    assert [tree.names[tree.parent[tree.index(name)]] for name in ("pie", "tart", "mint", "herb")] == [
        *("fruit", "french", "tea", "drink")
    ]
    assert sizes[DAG.index("fruit")] < sizes[DAG.index("baked")]
    assert sizes[DAG.index("french")] < sizes[DAG.index("pie")]


@pytest.mark.parametrize("system", TREE_SYSTEMS)
def test_a_learner_alone_chooses_main_parents_itself(system):
    texts, labels = write_documents()
    X = SYSTEMS[system].vectorizer().fit_transform(texts)
    learner = SYSTEMS[system].learner().set_params(taxonomy=DAG).fit(X, DAG.encode(labels))
    assert learner.taxonomy_.main_parents.tolist() == trained(system)[0].taxonomy_.main_parents.tolist()
    child, parent = edges(DAG)
    Y, P = learner.predict(X).toarray(), learner.predict_proba(X)
    assert (Y[:, child] <= Y[:, parent]).all()
    assert (P[:, child] <= P[:, parent] + 1e-6).all()


@pytest.mark.parametrize("main", ["juice", "nowhere", None, 3])
def test_a_main_parent_that_is_no_parent_is_refused(main, tmp_path):
    trained("h-svm")[0].save(tmp_path / "model")
    stored = read_model(tmp_path / "model")
    nodes = stored.documents["taxonomy"]["nodes"]
    entry = next(node for node in nodes if node["name"] == "mint")
    assert entry["main_parent"] == "tea"
    entry["main_parent"] = main
    write_model(tmp_path / "other", stored)
    with pytest.raises(ModelError, match="node 'mint' has the main parent .*, which is not one of its parents; give one of"):
        ramify.load(tmp_path / "other")


def test_branches_of_other_main_parents_are_refused(tmp_path):
    trained("td-svm")[0].save(tmp_path / "model")
    stored = read_model(tmp_path / "model")
    next(node for node in stored.documents["taxonomy"]["nodes"] if node["name"] == "mint")["main_parent"] = "herb"
    write_model(tmp_path / "other", stored)
    with pytest.raises(ModelError, match="do not lead down the taxonomy"):
        ramify.load(tmp_path / "other")


@pytest.mark.parametrize("system", ["h-svm", "b-svm", "td-svm", "treeboost-mh"])
def test_a_node_contradicts_its_main_parent_only(system):
    """Products along paths are consistent over the tree; of other parents the learner does not know."""
    clf, texts = trained(system)
    assert not any(node.contradicts for text in texts[:11] for node in explain_nodes(clf, text))


def with_soda():
    """The same DAG with one more node of two parents."""
    known = [(DAG.names[c], DAG.names[p]) for c, p in zip(*edges(DAG), strict=True)]
    return Taxonomy.from_edges([*known, ("food", None), ("drink", None), ("soda", "juice"), ("soda", "herb")])


@pytest.mark.parametrize("system", ["shrinkage-nb", "pachinko-nb"])
def test_partial_fit_on_a_larger_dag_equals_one_fit(system):
    texts, labels = write_documents()
    larger = with_soda()
    clf = TextClassifier(system, DAG).fit(texts, labels)
    main = {name: clf.taxonomy_.tree.names[p] for name, p in zip(DAG.names, clf.taxonomy_.tree.parent, strict=True) if p >= 0}
    clf.partial_fit(["sodaword0 sodaword1"] * 3, ["soda"] * 3, larger)
    tree = clf.taxonomy_.tree
    assert {name: tree.names[tree.parent[tree.index(name)]] for name in main} == main
    assert clf.taxonomy_.main_parents.tolist() == clf.learner_.taxonomy_.main_parents.tolist()
    assert clf.predict(["sodaword1"]) == [["soda"]]
    whole = TextClassifier(system, clf.taxonomy_).fit([*texts, *["sodaword0 sodaword1"] * 3], [*labels, *[["soda"]] * 3])
    agreement = np.mean([one == other for one, other in zip(clf.predict(texts), whole.predict(texts), strict=True)])
    assert agreement >= (0.9 if system == "shrinkage-nb" else 1)  # its mixture weights come from the documents at hand


@pytest.mark.parametrize("system", ["td-svm", "h-svm", "treeboost-mh", "isotonic-svm"])
def test_an_update_places_a_new_node(system):
    texts, labels = write_documents()
    clf = TextClassifier(system, DAG, keep_training_data=True, calibrate=False).fit(texts, labels)
    new = with_soda()
    more = ["sodaword0 juiceword1", "sodaword1 herbword1", "sodaword2 sodaword1"] * 4
    updated = ramify.update(clf, new, more, [["soda"]] * 12).classifier
    tree = updated.taxonomy_.tree
    assert tree.names[tree.parent[tree.index("soda")]] in ("juice", "herb")
    assert updated.taxonomy_.main_parents.tolist() == updated.learner_.taxonomy_.main_parents.tolist()
    Y = updated.predict_matrix(texts).toarray()
    child, parent = edges(updated.taxonomy_)
    assert (Y[:, child] <= Y[:, parent]).all()


def corpus():
    return Corpus("memory", *write_documents())


def test_an_audit_takes_a_dag():
    texts, labels = write_documents()
    labels[3] = ["juice"]  # of a text about bread
    found = ramify.audit(TextClassifier("td-svm", DAG), Corpus("memory", texts, labels))
    assert 3 in [issue.document for issue in found.issues]


@pytest.mark.parametrize("system", TREE_SYSTEMS)
def test_tuning_tries_every_system_on_a_dag(system):
    folds = make_folds(corpus(), DAG, seed=0, n_jobs=1)
    candidate = Candidate(system)
    assert problem_with(candidate, folds) is None
    rules = rules_for(candidate, is_multi_label=False, n_scores=0)
    found = run_fold(candidate, folds, 0, 1.0, rules)
    child, parent = edges(DAG)
    for Y in found.predictions.values():
        assert (Y.toarray()[:, child] <= Y.toarray()[:, parent]).all()


def test_a_model_that_is_trained_again_keeps_the_main_parents_of_its_calibration(monkeypatch):
    chosen = []
    choose = Taxonomy.with_main_parents
    monkeypatch.setattr(Taxonomy, "with_main_parents", lambda self, counts: chosen.append(choose(self, counts)) or chosen[-1])
    trained = train_classifier(TextClassifier("td-svm", DAG), corpus())
    assert trained.refitted
    assert trained.classifier.calibration_ is not None
    assert trained.classifier.taxonomy_ is chosen[0]
