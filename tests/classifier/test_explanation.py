"""Explanations of every system: words and prior add up to scores, step by step, and agree with what was decided."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import explaining as slow
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import SVC
from strategies import build, parent_lists

import ramify
from ramify import Taxonomy, TextClassifier
from ramify.classifier import explain_nodes
from ramify.classifier.explanation import CLEAR, _contradictions, _depth_first
from ramify.decisions import Best, IsotonicSmooth, MinimizeHLoss, RCut, Sign, TopDown
from ramify.errors import LabelError
from ramify.features import Vectorizer, Vectors
from ramify.learners import NodeClassifiers, OneVsRestSVM, PachinkoNaiveBayes, ShrinkageNaiveBayes, TreeBoostMH
from ramify.systems import SYSTEMS

STEPS = dict.fromkeys(
    ("path-svm", "ensemble", "nb", "shrinkage-nb", "svm", "lr", "hr-svm", "hr-lr", "hsvm", "hblr", "adaboost-mh"),
    slow.among_classes,
)
STEPS |= dict.fromkeys(("td-svm", "ot", "pachinko-nb"), slow.among_siblings)
STEPS |= dict.fromkeys(("h-svm", "b-svm", "isotonic-svm", "isotonic-nb", "treeboost-mh"), slow.by_itself)

# a has documents of its own, and so has a/y; b/z/end hangs on a chain; c is alone; d has no documents
TREE = Taxonomy.from_paths(["a/x", "a/y/p", "a/y/q", "b/z/end", "b/z/other", "c", "e/only", "d"])
LABELS = ["a", "a/x", "a/y", "a/y/p", "a/y/q", "b/z/end", "b/z/other", "c", "e/only"]
DAG = Taxonomy.from_edges(
    [("top", None), ("left", "top"), ("right", "top"), ("both", "left"), ("both", "right"), ("low", "both"), ("far", None)]
)


def write_texts(labels, n=72, seed=0):
    """Texts with words of their label and of what lies above it, and words of nobody."""
    rng = np.random.default_rng(seed)
    rows = [sorted(rng.choice(labels, size=1 + (k % 4 == 0), replace=False).tolist()) for k in range(n)]
    rows[: len(labels)] = [[label] for label in labels]
    texts = [
        " ".join(
            [f"{part}word{rng.integers(3)}" for label in row for part in label.split("/") for _ in range(2)]
            + ["noise", f"some{k % 5}"]
        )
        for k, row in enumerate(rows)
    ]
    return texts, rows


def fit(system, taxonomy=TREE, labels=LABELS, **settings):
    texts, rows = write_texts(labels)
    supports_multi_label = settings.get("learner", SYSTEMS[system].learner()).supports_multi_label
    return TextClassifier(system, taxonomy, **settings).fit(
        texts, rows if supports_multi_label else [row[:1] for row in rows]
    ), texts


@pytest.fixture(scope="module")
def trained():
    return {name: fit(name) for name in SYSTEMS}


@pytest.fixture(scope="module")
def on_dag():
    labels = ["top", "left", "right", "both", "low", "far"]
    return {name: fit(name, DAG, labels) for name in SYSTEMS}


def parents_in(taxonomy):
    """The parents of each node, the main one first."""
    main = taxonomy.tree.parent.tolist()
    return [sorted(taxonomy.parents_of(node).tolist(), key=lambda p: p != main[node]) for node in range(len(taxonomy))]


def assert_adds_up(why):
    for part, total in [(why, why.margin), *((step, step.score) for step in why.steps)]:
        assert sum(weight for _, weight in part.words) + part.prior == pytest.approx(total, abs=1e-9, rel=1e-9)
        assert [abs(weight) for _, weight in part.words] == sorted((abs(weight) for _, weight in part.words), reverse=True)


def assert_steps_are_right(clf, text, step_of):
    scores = clf.learner_.scores(clf.vectorizer_.transform([text]))[0].astype(np.float64)
    tax = clf.taxonomy_
    parents = parents_in(tax.tree if step_of is slow.among_siblings else tax)
    size = max(1.0, np.abs(scores[np.isfinite(scores)]).max())
    for end in range(len(tax)):
        why = clf.explain(text, tax.names[end])
        assert_adds_up(why)
        assert why.additive
        assert [step.node for step in why.steps] == tax.nodes_to(end)
        for step in why.steps:
            expected, rival = step_of(scores.tolist(), parents, step.node, end)
            assert step.score == pytest.approx(expected, abs=2e-5 * size)
            if rival is not None and step.rival not in (None, tax.path_of(rival)) and abs(step.score - expected) < 1e-6 * size:
                continue  # as good as each other
            assert step.rival == (None if rival is None else tax.path_of(rival))


def test_every_system_has_a_kind_of_step():
    assert set(STEPS) == set(SYSTEMS)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_step_of_every_system_is_the_difference_of_scores_that_it_should_be(trained, system):
    clf, texts = trained[system]
    for text in [*texts[:12], "awordo noise", "cword1 cword2 bword0"]:
        assert_steps_are_right(clf, text, STEPS[system])


@pytest.mark.parametrize("system", SYSTEMS)
def test_steps_are_right_where_a_node_has_two_parents(on_dag, system):
    clf, texts = on_dag[system]
    for text in texts[:12]:
        assert_steps_are_right(clf, text, STEPS[system])


@pytest.mark.parametrize("system", SYSTEMS)
def test_steps_are_right_in_a_flat_list_of_classes(system):
    labels = ["c", "d", "e"]
    clf, texts = fit(system, Taxonomy.flat(labels), labels)
    assert_steps_are_right(clf, texts[0], STEPS[system])


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_step_tells_what_was_decided(trained, system):
    clf, texts = trained[system]
    P, Y = clf.predict_proba(texts[:20]), clf.predict_matrix(texts[:20]).toarray()
    for row, text in enumerate(texts[:20]):
        why = clf.explain(text)
        for step in why.steps:
            assert step.probability == P[row, step.node]
            assert step.is_taken == Y[row, step.node]
            assert step.name == clf.taxonomy_.names[step.node]
            assert step.reason
        assert why.path == tuple(step.title for step in why.steps)
        assert why.probabilities == tuple(step.probability for step in why.steps)
        assert all(step.is_taken for step in why.steps) or not Y[row].any()


@pytest.mark.parametrize("system", SYSTEMS)
def test_words_are_those_of_the_text_at_their_columns(trained, system):
    clf, texts = trained[system]
    names = clf.vectorizer_.get_feature_names_out()
    located = {names[column] for _, _, column in clf.vectorizer_.locate(texts[3])}
    for step in clf.explain(texts[3], "a/y/q").steps:
        assert [names[column] for column in step.columns] == [word for word, _ in step.words]
        assert {word for word, _ in step.words} in (located, set())


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_saved_model_explains_the_same(trained, system, tmp_path):
    clf, texts = trained[system]
    clf.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    for text in texts[:4]:
        assert_same(asdict(again.explain(text)), asdict(clf.explain(text)))
        assert_same([asdict(view) for view in explain_nodes(again, text)], [asdict(view) for view in explain_nodes(clf, text)])


def assert_same(one, other):
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        one, other = list(one.values()), list(other.values())
    if isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-5, abs=1e-5)
    else:
        assert one == other


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("text", ["unheard of", "...", ""])
def test_a_text_without_known_words_is_explained_by_what_it_has_no_say_in(trained, system, text):
    why = trained[system][0].explain(text)
    assert why.words == []
    assert_adds_up(why)
    assert all(step.words == [] and step.columns == [] for step in why.steps)


@pytest.mark.parametrize(
    "rule", [Best(), Best(leaves_only=True), Sign(), TopDown(), MinimizeHLoss(), IsotonicSmooth(penalty=1.0), RCut(k=2)]
)
@pytest.mark.parametrize("system", SYSTEMS)
def test_any_rule_gives_reasons_on_any_learner(trained, system, rule):
    clf, texts = trained[system]
    clf = clf.redecided(rule)
    for text in texts[:5]:
        assert all(step.reason for step in clf.explain(text).steps)
        assert all(view.reason for view in explain_nodes(clf, text))


@pytest.mark.parametrize(("label", "message"), [("zz", "'zz' is not in the taxonomy"), (1.5, "cannot be explained")])
def test_a_label_that_is_no_node_is_refused(trained, label, message):
    with pytest.raises(LabelError, match=message):
        trained["nb"][0].explain("noise", label=label)


def test_labels_that_are_numbers_may_be_given_as_such():
    clf = TextClassifier("nb").fit(["red apple", "rye bread"], [1, 2])
    assert clf.explain("red apple", 2).path == ("2",)
    assert clf.explain("red apple", 2).steps[0].rival == ("1",)


def test_a_node_below_which_nothing_was_labelled_has_nothing_to_say(trained):
    for system in SYSTEMS:
        why = trained[system][0].explain("awordo noise", "d")
        assert [step.score for step in why.steps] == [0.0]
        assert why.words == why.steps[0].words == []


def test_the_only_way_on_is_no_question(trained):
    for system in ("nb", "hr-svm", "td-svm", "pachinko-nb"):
        step = trained[system][0].explain("eword0 onlyword1", "e/only").steps[-1]
        assert (step.rival, step.score, step.words) == (None, 0.0, [])
        assert step.reason.startswith("the only way on; ")


def test_staying_at_the_parent_is_a_rival(trained):
    for system in ("nb", "td-svm", "pachinko-nb", "ot"):
        clf, texts = trained[system]
        steps = [clf.explain(text, "a/x").steps[-1] for text in texts]
        assert any(step.rival == ("a",) and step.score < 0 for step in steps)


def test_hashed_columns_are_called_by_the_words_that_fall_into_them():
    vectorizer = Vectorizer(hashing=1 << 16)
    clf, texts = fit("hr-svm", features=vectorizer)
    words = {word for word, _ in clf.explain(texts[0]).words}
    assert words == set(texts[0].split())


@pytest.mark.parametrize(
    ("base", "additive"), [(MultinomialNB(), False), (LogisticRegression(), True), (SVC(kernel="linear"), True)]
)
def test_classifiers_of_another_kind_are_explained_as_far_as_they_tell(base, additive):
    clf, texts = fit("h-svm", learner=NodeClassifiers(base=base, calibration=None))
    why = clf.explain(texts[3])
    scores = clf.learner_.scores(clf.vectorizer_.transform([texts[3]]))[0]
    assert why.additive is additive
    for step in why.steps:
        assert step.score == pytest.approx(scores[step.node], abs=1e-5)
        assert bool(step.words) == additive or step.prior == 1.0
    if additive:
        assert_adds_up(why)
    else:
        assert why.words == []


@pytest.mark.parametrize(
    ("system", "learner"),
    [
        ("pachinko-nb", PachinkoNaiveBayes(n_words=5)),
        ("shrinkage-nb", ShrinkageNaiveBayes(weights="held-out", random_state=0)),
        ("treeboost-mh", TreeBoostMH(n_rounds=20, variant="RA")),
        ("h-svm", NodeClassifiers(missing=0.3)),
        ("isotonic-svm", NodeClassifiers(negatives="all", calibration="platt", missing=0.3)),
    ],
)
def test_steps_are_right_with_other_settings(system, learner):
    clf, texts = fit(system, learner=learner)
    for text in texts[:6]:
        assert_steps_are_right(clf, text, STEPS[system])


def test_a_class_whose_branch_was_pruned_is_said_never_to_have_been_compared():
    clf, texts = fit("shrinkage-nb", learner=ShrinkageNaiveBayes(branches=1))
    scores = clf.learner_.scores(clf.vectorizer_.transform(texts[:1]))[0]
    for label in LABELS:
        is_pruned = scores[clf.taxonomy_.index(label)] < -1e29
        steps = clf.explain(texts[0], label).steps
        assert all(step.reason.startswith("its branch was pruned") == is_pruned for step in steps)


def test_near_classes_of_the_fast_mode_are_explained_exactly():
    clf, texts = fit("svm", learner=OneVsRestSVM(mode="fast"))
    for text in texts[:4]:
        why = clf.explain(text)
        scores = clf.learner_.scores(clf.vectorizer_.transform([text]))[0]
        assert_adds_up(why)
        assert why.margin == pytest.approx(
            scores[clf.taxonomy_.index("/".join(why.path))] - scores[clf.taxonomy_.index("/".join(why.rival))], abs=1e-5
        )


def test_other_vectorizers_are_asked_for_their_names():
    clf, texts = fit("svm", features=TfidfVectorizer())
    assert {word for word, _ in clf.explain(texts[0]).words} == set(texts[0].split())


def test_vectors_are_explained_by_numbered_features():
    X = np.eye(4, dtype=np.float32)[[0, 1, 2, 3] * 3]
    clf = TextClassifier("svm", features=Vectors()).fit(X, ["a", "b", "c", "d"] * 3)
    why = clf.explain(X[1])
    assert (why.path, why.words[0][0]) == (("b",), "feature 1")
    assert_adds_up(why)


# ---- looking at all nodes that matter ---------------------------------------------------------------------------------


def test_a_view_has_the_probability_and_the_reason(trained):
    for system in SYSTEMS:
        clf, texts = trained[system]
        P = clf.predict_proba(texts[:1])[0]
        steps = {step.node: step for step in clf.explain(texts[0]).steps}
        for view in explain_nodes(clf, texts[0]):
            assert view.probability == P[view.node]
            if view.node in steps:
                assert steps[view.node].reason.endswith(view.reason)


@given(parent_lists(), st.data())
def test_contradictions_and_walks_equal_their_slow_twins(parents, data):
    taxonomy = build(parents)
    P = np.asarray(
        data.draw(st.lists(st.sampled_from([0.0, 0.5, 0.505, 0.6, np.nan]), min_size=len(parents), max_size=len(parents)))
    )
    expected = {node for node, above in enumerate(parents) if any(P[node] > P[parent] + CLEAR for parent in above)}
    assert _contradictions(P, taxonomy) == expected
    shown = data.draw(st.sets(st.integers(0, len(parents) - 1)))
    closed = {above for node in shown for above in [node, *slow.ancestors(parents, node)]}
    assert _depth_first(shown, taxonomy) == [node for node in all_paths(parents) if node in closed]


def all_paths(parents):
    found = []

    def visit(node):
        if node not in found:
            found.append(node)
            for child in range(len(parents)):
                if node in parents[child]:
                    visit(child)

    for root in range(len(parents)):
        if not parents[root]:
            visit(root)
    return found
