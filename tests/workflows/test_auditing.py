"""Labels that are wrong, duplicates that contradict each other, and classes that cannot be learnt."""

import csv
import io
import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import auditing as oracle
from scipy.sparse import csr_array
from strategies import build, trees

from ramify import Taxonomy, TextClassifier
from ramify.data import Corpus
from ramify.errors import InputError, LabelError
from ramify.learners import OneVsRestLogistic
from ramify.workflows import audit
from ramify.workflows.auditing import noise_model
from ramify.workflows.auditing.audit import find_problem_classes
from ramify.workflows.auditing.issue_details import COLUMNS, IssueDescriber, issue_lines
from ramify.workflows.auditing.label_issues import MIN_DOCUMENTS, USEFUL, GivenLabels, SiblingConfusions, siblings_of
from ramify.workflows.auditing.noise_model import NoiseModel, distances_between, usual_confusions
from ramify.workflows.auditing.out_of_fold import ClassProbabilities, OutOfFold, Sample

FOOD = Taxonomy.from_paths(["fruit/apple", "fruit/pear", "bread/rye", "bread/white"])
WORDS = {
    "tv/picture": "screen dark picture lines colour",
    "tv/sound": "sound loud speaker crackles noise",
    "orders/late": "parcel late courier waiting week",
    "orders/wrong": "wrong item box instead swapped",
}


def texts_of(label, rng, n):
    return [" ".join([*rng.choice(WORDS[label].split(), size=4), f"n{rng.integers(10**9)}"]) for _ in range(n)]


def make_corpus(each=20, seed=0):
    rng = np.random.default_rng(seed)
    texts = [text for label in WORDS for text in texts_of(label, rng, each)]
    return Corpus("memory", texts, [[label] for label in WORDS for _ in range(each)], lines=list(range(2, 4 * each + 2)))


def relabelled(corpus, changes):
    return replace(corpus, labels=[changes.get(i, labels) for i, labels in enumerate(corpus.labels)])


def new_classifier(**settings):
    return TextClassifier("lr", learner=OneVsRestLogistic(C=10), **settings)


def out_of_fold_of(labels, taxonomy, learners=(None,), fold=None):
    """Documents of which nothing is known but their labels, sets of nodes."""
    own = np.zeros((len(labels), len(taxonomy)), dtype=bool)
    for row, nodes in enumerate(labels):
        own[row, sorted(nodes)] = True
    folds = np.zeros(len(labels), dtype=np.int64) if fold is None else fold
    return OutOfFold(csr_array((len(labels), 1)), csr_array(own), taxonomy, None, folds, tuple(learners))


# ---- labels -------------------------------------------------------------------------------------------------------------


def test_labels_that_were_moved_come_first_with_the_right_ones_and_their_words():
    moved = {3: ["tv/sound"], 25: ["orders/late"], 70: ["tv/picture"]}
    found = audit(new_classifier(), relabelled(make_corpus(), moved))
    first = found.issues[:3]
    assert {issue.document for issue in first} == set(moved)
    for issue in first:
        right = list(WORDS)[issue.document // 20]
        assert (issue.kind, issue.suggested.label) == ("wrong", right)
        assert issue.labels == (issue.given.label,) == tuple(moved[issue.document])
        assert issue.given.probability < 0.1 < 0.5 < issue.suggested.probability
        assert issue.words
        assert {word for word, _ in issue.words} <= set(WORDS[right].split())
        assert issue.place == f"memory, line {issue.line}"
        assert issue.line == issue.document + 2
    assert {issue.document: issue.distance for issue in first} == {3: 2, 25: 4, 70: 4}
    assert found.n_issues >= 3
    assert [issue.score for issue in found.issues] == sorted((f.score for f in found.issues), reverse=True)


def test_where_all_is_well_nothing_is_found():
    found = audit(new_classifier(), make_corpus())
    assert (found.issues, found.n_issues, found.duplicates, found.classes, found.inseparable_siblings) == ([], 0, [], [], [])
    assert found.estimated_wrong < 1


def test_an_audit_does_not_depend_on_threads_and_has_no_more_issues_than_wanted():
    corpus = relabelled(make_corpus(), {i: ["tv/sound"] for i in (1, 30, 50, 60)})
    one, two = (audit(new_classifier(n_jobs=n), corpus, seed=3) for n in (1, 2))
    assert [f.document for f in one.issues] == [f.document for f in two.issues]
    few = audit(new_classifier(), corpus, seed=3, max_issues=2)
    assert [f.document for f in few.issues] == [f.document for f in one.issues[:2]]
    assert few.n_issues == one.n_issues


def test_any_learner_may_be_used():
    corpus = relabelled(make_corpus(), {3: ["orders/late"]})
    for system in ("nb", "svm", "td-svm", "pachinko-nb", "h-svm"):
        found = audit(TextClassifier(system), corpus, folds=3)
        assert found.issues[0].document == 3, system
        assert found.issues[0].suggested.label == "tv/picture"


def test_vectors_are_audited_too():
    corpus = relabelled(make_corpus(), {3: ["orders/late"]})
    X = np.zeros((len(corpus), 21), dtype=np.float32)
    places = {word: k for k, word in enumerate(" ".join(WORDS.values()).split())}
    for row, text in enumerate(corpus.documents):
        X[row, 20] = row + 1
        for word in text.split()[:-1]:
            X[row, places[word]] += 100
    X[5], X[45] = X[4], X[4]
    found = audit(new_classifier(), replace(corpus, documents=csr_array(X)))
    assert {issue.document for issue in found.issues[:2]} == {3, 45}
    assert found.issues[0].text is None
    assert [group.lines for group in found.duplicates] == [(6, 7, 47)]


def test_a_label_above_the_right_one_is_not_wrong():
    corpus = relabelled(make_corpus(), {i: ["tv"] for i in (0, 5, 10, 21, 22, 35)} | {60: ["tv"]})
    found = audit(new_classifier(), corpus)
    assert [issue.document for issue in found.issues[:1]] == [60]
    assert not {0, 5, 10, 21, 22, 35} & {issue.document for issue in found.issues}


def test_labels_that_are_missing_or_superfluous_are_found_in_multi_label_corpora():
    rng, pairs = np.random.default_rng(5), [("tv/picture", "tv/sound"), ("tv/sound", "orders/late")]
    base = make_corpus()
    both = [(" ".join(texts_of(a, rng, 1) + texts_of(b, rng, 1)), [a, b]) for a, b in pairs * 15]
    texts, labels = [*base.documents, *(text for text, _ in both)], [*base.labels, *(given for _, given in both)]
    labels[81], labels[2] = ["orders/late"], ["tv/picture", "orders/wrong"]
    found = {issue.document: issue for issue in audit(new_classifier(), Corpus("memory", texts, labels)).issues}
    assert (found[81].kind, found[81].suggested.label) == ("missing", "tv/sound")
    assert found[81].given is None
    assert [view.label for view in found[81].proposed] == ["orders/late", "tv/sound"]
    assert found[81].distance == 4
    assert (found[2].kind, found[2].given.label, found[2].suggested) == ("extra", "orders/wrong", None)
    assert [view.label for view in found[2].unchanged] == ["tv/picture"]


def test_a_class_of_one_document_is_skipped_but_reported():
    base = make_corpus()
    corpus = Corpus("memory", [*base.documents, "screen dark lines"], [*base.labels, ["tv/remote"]])
    found = audit(new_classifier(), corpus)
    assert found.skipped == 1
    assert 80 not in {issue.document for issue in found.issues}
    assert [(each.label, each.kind, each.documents) for each in found.classes] == [("tv/remote", "tiny", 1)]


@pytest.mark.parametrize(
    ("corpus", "settings", "error", "said"),
    [
        (Corpus("memory", ["a", "b"], [[], []]), {}, InputError, "no document of memory has a label"),
        (Corpus("memory", ["a", "b", "c"], [["x"]] * 3), {"folds": 2}, LabelError, "class"),
        (make_corpus(1), {"folds": 9}, InputError, "folds is 9"),
        (make_corpus(1), {"similarity": 0.2}, InputError, "from 0.5 to 1"),
        (make_corpus(1), {"max_issues": -1}, InputError, "0 or more"),
        (make_corpus(1), {"taxonomy": Taxonomy.flat(["x", "y"])}, LabelError, "is not in the taxonomy"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_one_sentence(corpus, settings, error, said):
    classifier = new_classifier(taxonomy=settings.pop("taxonomy", None))
    with pytest.raises(error, match=said):
        audit(classifier, corpus, **settings)


@given(trees(max_nodes=7, min_nodes=3), st.data())
@settings(max_examples=40, deadline=None)
def test_scores_are_what_the_formula_says(parents, data):
    taxonomy = build(parents)
    n, seed = data.draw(st.integers(3, 12)), data.draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    labels = [{int(node)} for node in rng.integers(0, len(taxonomy), n)]
    labels[0] = {0, len(taxonomy) - 1} if len(taxonomy.ancestors_of(len(taxonomy) - 1)) == 0 else labels[0]
    out_of_fold = out_of_fold_of(labels, taxonomy)
    classes = out_of_fold.classes
    P = rng.dirichlet(np.full(len(classes), 0.5), size=n) * 0.99 + 0.01 / len(classes)
    kinds = distances_between(classes, taxonomy)
    kinds[noise_model.above_classes(classes, taxonomy)[:, classes].nonzero()] = 0
    distances = np.unique(kinds)
    rates = np.where(distances == 0, 0.0, rng.uniform(0.01, 0.1, len(distances)))
    noise = NoiseModel(distances.astype(np.int64), np.searchsorted(distances, kinds).astype(np.int16), rates, rates)
    given = GivenLabels(out_of_fold, classes, noise)
    for rows in np.array_split(rng.permutation(n), 2):
        given.add(rows, P[rows])
    documents, nodes = out_of_fold.pairs
    columns, taken = np.searchsorted(classes, nodes), P.argmax(axis=1)
    usual = usual_confusions(taken[documents], columns, len(classes))
    below = {
        c: {t for t in range(len(classes)) if classes[c] in {classes[t], *taxonomy.ancestors_of(classes[t])}}
        for c in range(len(classes))
    }
    score = np.log(given.p_noise + 1e-13) - np.log(given.p_given + 1e-13) - np.log(usual(given.best, columns) + 1e-13)
    for k, (document, column) in enumerate(zip(documents.tolist(), columns.tolist(), strict=True)):
        others = {int(c) for c in columns[documents == document]} - {column}
        if len(classes) - len(others | below[column]) == 0:
            continue
        best, p, value = oracle.issue_score(
            P[document].tolist(), column, others, below,
            lambda t, g: float(rates[np.searchsorted(distances, kinds[t, g])] ** noise_model.TRUST) or 1e-13, lambda s, g: float(usual(np.array([s]), np.array([g]))[0]),
        )  # fmt: skip
        assert given.best[k] == best
        assert given.p_given[k] == pytest.approx(p)
        assert score[k] == pytest.approx(value, abs=1e-6)


# ---- probabilities ------------------------------------------------------------------------------------------------------


def test_the_sharpness_under_which_labels_were_drawn_is_found_and_classes_get_their_documents():
    rng = np.random.default_rng(0)
    fits = rng.normal(size=(4000, 5))
    offsets = np.array([0.0, 1.0, -1.0, 0.5, -0.5])
    logs = 2.5 * fits + offsets
    labels = np.array([rng.choice(5, p=np.exp(row) / np.exp(row).sum()) for row in logs])
    sample = Sample(fits, np.arange(4000), labels, np.ones(4000))
    found = ClassProbabilities.fit(sample, np.arange(5))
    assert found.sharpness == pytest.approx(2.5, rel=0.15)
    P = found.predict(fits)
    assert P.sum(axis=1) == pytest.approx(1)
    assert P.sum(axis=0) == pytest.approx(np.bincount(labels), rel=0.01)


def test_how_often_labels_are_replaced_is_found_by_distance():
    rng, taxonomy = np.random.default_rng(1), Taxonomy.from_paths([f"{a}/{b}" for a in "abcd" for b in "xyz"])
    classes = np.flatnonzero(taxonomy.is_leaf)
    n, K = 20_000, len(classes)
    right = rng.integers(0, K, n)
    fits = rng.normal(size=(n, K)) + 12 * np.eye(K)[right]
    labels, move = right.copy(), rng.permutation(n)
    for i in move[:1000]:
        labels[i] = right[i] // 3 * 3 + (right[i] + rng.integers(1, 3)) % 3
    for i in move[1000:1200]:
        labels[i] = rng.choice([c for c in range(K) if c // 3 != right[i] // 3])
    sample = Sample(fits, np.arange(n), classes[labels], np.ones(n))
    found = NoiseModel.fit(sample, ClassProbabilities(classes, 1.0, np.zeros(K)), taxonomy)
    fractions = dict(zip(found.distances.tolist(), found.fractions.tolist(), strict=True))
    assert fractions[2] == pytest.approx(0.05, rel=0.1)
    assert fractions[4] == pytest.approx(0.01, rel=0.2)
    rates = dict(zip(found.distances.tolist(), found.rates.tolist(), strict=True))
    assert rates[2] == pytest.approx(0.025, rel=0.1)
    assert rates[4] == pytest.approx(0.01 / 9, rel=0.2)
    assert rates[0] == fractions[0] == 0


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_noise_rates_and_usual_confusions_are_those_of_the_oracle(seed):
    rng = np.random.default_rng(seed)
    n, K, n_kinds = int(rng.integers(6, 40)), int(rng.integers(2, 6)), 3
    P = rng.dirichlet(np.full(K, 0.3), size=n)
    kind = np.where(np.eye(K), 0, rng.integers(1, n_kinds, (K, K))).astype(np.int16)
    rows, columns = np.arange(n), np.concatenate([np.arange(K), rng.integers(0, K, n - K)])  # every class has a label
    rates, fractions = noise_model._rates(P, (rows, columns), kind, n_kinds)
    pairs = list(zip(rows.tolist(), columns.tolist(), strict=True))
    wanted = oracle.noise_rates(P.tolist(), pairs, kind.tolist(), n_kinds, noise_model.FAR_OFF)
    assert rates.tolist() == pytest.approx(wanted[0])
    assert fractions.tolist() == pytest.approx(wanted[1])
    taken = P.argmax(axis=1)
    found = usual_confusions(taken, columns, K)(taken, columns)
    for value, of, label in zip(found.tolist(), taken.tolist(), columns.tolist(), strict=True):
        assert value == pytest.approx(oracle.usual(taken.tolist(), columns.tolist(), K, 10.0, of, label))


@given(trees(max_nodes=8))
@settings(max_examples=40)
def test_distances_are_the_steps_of_a_path(parents):
    found = distances_between(np.arange(len(parents)), build(parents))
    assert found.tolist() == [[oracle.steps_between(parents, a, b) for b in range(len(parents))] for a in range(len(parents))]


def test_duplicates_are_reported_where_their_labels_differ():
    base = make_corpus()
    long = "please tell me when my parcel with the red lamp and two small chairs will arrive at last"
    texts = [*base.documents, long, long.replace("red", "blue"), "Screen dark!", "dark screen", "same words", "same words"]
    labels = [*base.labels, ["orders/late"], ["orders/wrong"], ["tv/picture"], ["tv/sound"], ["tv/sound"], ["tv/sound"]]
    found = audit(new_classifier(), Corpus("memory", texts, labels), similarity=0.8).duplicates
    assert [group.places for group in found] == [
        ("memory, document 81", "memory, document 82"),
        ("memory, document 83", "memory, document 84"),
    ]
    assert [group.is_equal for group in found] == [False, True]
    assert found[0].labels == (("orders/late",), ("orders/wrong",))
    strict = audit(new_classifier(), Corpus("memory", texts, labels), similarity=1.0).duplicates
    assert [group.is_equal for group in strict] == [True]


# ---- classes ------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=25, deadline=None)
def test_siblings_that_cannot_be_distinguished_are_those_of_the_oracle(seed, is_multi_label):
    rng, taxonomy = np.random.default_rng(seed), Taxonomy.from_paths(["a/x", "a/y", "a/z", "b/x", "b/y"])
    leaves = np.flatnonzero(taxonomy.is_leaf)
    right = rng.integers(0, 5, 90)
    labels = [{int(leaves[c])} | ({int(rng.choice(leaves))} if is_multi_label and rng.random() < 0.2 else set()) for c in right]
    blur = rng.choice([0.0, 1.0, 30.0], size=5)  # some classes are never recognized
    P = rng.dirichlet(np.ones(5), size=90) + np.eye(5)[right] * blur[right, None] / 10
    P = np.round(P / P.sum(axis=1, keepdims=True), 2)
    out_of_fold = out_of_fold_of(labels, taxonomy)
    siblings = SiblingConfusions(out_of_fold, leaves)
    for rows in np.array_split(np.arange(90), 3):
        siblings.add(rows, P[rows])
    found = {(pair.first, pair.second): (pair.correct, pair.p_value) for pair in siblings.inseparable()}
    closed = [set(map(int, nodes)) | {int(a) for node in nodes for a in taxonomy.ancestors_of(node)} for nodes in labels]
    sizes = [max(1, sum(node in nodes for nodes in closed)) for node in range(len(taxonomy))]
    chances = ((P @ noise_model.above_classes(leaves, taxonomy).toarray()) / sizes).tolist()
    wanted = oracle.inseparable([group.tolist() for group in siblings_of(taxonomy)], closed, chances, MIN_DOCUMENTS, USEFUL)
    assert found.keys() == wanted.keys()
    for pair, (right_ones, p) in wanted.items():
        assert found[pair][0] == right_ones
        assert found[pair][1] == pytest.approx(p)


def test_siblings_with_the_same_words_cannot_be_distinguished():
    rng, base = np.random.default_rng(2), make_corpus(60)
    labels = [[rng.choice(["tv/picture", "tv/sound"])] if given[0].startswith("tv") else given for given in base.labels]
    (pair,) = audit(new_classifier(), replace(base, labels=[list(map(str, given)) for given in labels])).inseparable_siblings
    assert (pair.first, pair.second) == ("tv/picture", "tv/sound")
    assert sum(pair.documents) == 120
    assert 0.3 < pair.accuracy < 0.65
    assert pair.p_value < 0.05


def test_classes_that_are_empty_tiny_or_never_recognized_are_reported():
    taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b/x", "b/y", "c/x/deep"])
    names = ["a/x"] * 3 + ["a/y"] * 6 + ["b/x"] * 6
    out_of_fold = out_of_fold_of([{taxonomy.index(name)} for name in names], taxonomy)
    taken = np.asarray([taxonomy.index(name) for name in ["a/x"] * 3 + ["b/x"] * 4 + ["a/x"] * 2 + ["b/x"] * 6])
    found = [
        (each.label, each.kind, each.documents)
        for each in find_problem_classes(out_of_fold, taken, 5, taxonomy.names.__getitem__)
    ]
    assert found == [("b/y", "empty", 0), ("c", "empty", 0), ("a/x", "tiny", 3), ("a/y", "never recognized", 6)]
    worst = find_problem_classes(out_of_fold, taken, 5, taxonomy.names.__getitem__)[-1]
    assert (worst.confused_with, worst.times) == ("b/x", 4)


# ---- files --------------------------------------------------------------------------------------------------------------


def test_issues_are_written_as_rows_that_hold_everything():
    found = audit(new_classifier(), relabelled(make_corpus(), {3: ["tv/sound"]}))
    rows = list(csv.DictReader(io.StringIO("".join(issue_lines(found.issues, "csv")))))
    assert tuple(rows[0]) == COLUMNS
    assert (rows[0]["given"], rows[0]["suggested"], rows[0]["place"]) == ("tv/sound", "tv/picture", "memory, line 5")
    tabbed = "".join(issue_lines(found.issues, "tsv")).splitlines()
    assert tabbed[0] == "\t".join(COLUMNS)
    (first, *_) = (json.loads(line) for line in issue_lines(found.issues, "jsonl"))
    assert first["rank"] == 1
    assert first["suggested"]["path"] == ["tv", "picture"]
    assert len(first["suggested"]["probabilities"]) == 2
    assert first["suggested"]["probabilities"][0] >= first["suggested"]["probabilities"][1]
    assert math.isfinite(first["score"])
    json.dumps(found.as_dict(), allow_nan=False)


def test_learners_of_other_kinds_have_no_words():

    foreign = SimpleNamespace(is_additive=False)
    out_of_fold = out_of_fold_of([{1}, {2}], FOOD, learners=(foreign,))
    describer = IssueDescriber(
        out_of_fold, Corpus("m", ["a", "b"], [["x"], ["y"]]), None, SimpleNamespace(classes=out_of_fold.classes)
    )
    assert describer._words(0, 1, 2, np.asarray([1]), None) == []
