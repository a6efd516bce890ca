"""Calibrated probabilities and guarantees of whole classifiers: invariants, saving, and errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

import ramify
from ramify import TextClassifier
from ramify.classifier.fitting import as_new, split_rows, take
from ramify.classifier.loading import from_stored
from ramify.classifier.saving import to_stored
from ramify.decisions import Best
from ramify.errors import InputError, ModelError
from ramify.features import Vectors
from ramify.metrics.calibration import is_covered
from ramify.persistence import StoredModel
from ramify.systems import SYSTEMS
from ramify.taxonomy import most_specific
from ramify.workflows import PredictOptions, Predictor, evaluate

WORDS = {
    "food/fruit/apple": "apple red sweet pie", "food/fruit/banana": "banana yellow sweet peel", "food/bread": "rye loaf crust",
    "drink/tea": "leaf green cup pot", "drink/coffee": "bean strong cup milk", "drink": "thirst glass bottle cup",
}  # fmt: skip


def made(n, seed=0):
    """Texts with words of their label, and of others, so that answers are not sure."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(list(WORDS), n).tolist()
    everything = " ".join(WORDS.values()).split()
    return [" ".join([*rng.choice(WORDS[name].split(), 2), *rng.choice(everything, 2)]) for name in labels], labels


@pytest.fixture(scope="module", params=list(SYSTEMS))
def fitted(request):
    return TextClassifier(request.param).fit(*made(150))


def test_probabilities_of_every_system_are_consistent_and_add_up(fitted):
    texts, taxonomy = made(40, seed=1)[0], fitted.taxonomy_
    P = fitted.predict_proba([*texts, "", "unheard of"]).astype(np.float64)
    np.testing.assert_allclose(P[:, taxonomy.roots].sum(axis=1), 1, atol=1e-5)
    for node in np.flatnonzero(~taxonomy.is_leaf).tolist():
        below = P[:, taxonomy.children_of(node)]
        assert (below <= P[:, [node]] + 1e-6).all()
        assert (below.sum(axis=1) <= P[:, node] + 1e-5).all()
        if taxonomy.names[node] != "drink":  # nobody stays there
            np.testing.assert_allclose(below.sum(axis=1), P[:, node], atol=1e-5)


def test_a_text_alone_has_the_probabilities_that_it_has_among_others(fitted):
    texts = made(20, seed=2)[0]
    together = fitted.predict_proba(texts)
    for row in (0, 7, 19):
        np.testing.assert_array_equal(fitted.predict_proba(texts[row : row + 1])[0], together[row])


def test_more_risk_never_goes_less_deep(fitted):
    texts, taxonomy = made(60, seed=3)[0], fitted.taxonomy_
    for nodes in (1, 3):
        before: list[list[int]] = [[] for _ in texts]
        for risk in (0.02, 0.05, 0.1, 0.3, 0.7):
            own = most_specific(fitted.decide_with_guarantee(texts, risk, nodes)[0], taxonomy)
            now = [own.indices[a:b].tolist() for a, b in itertools.pairwise(own.indptr)]
            for earlier, later in zip(before, now, strict=True):
                assert not earlier or all({node, *taxonomy.ancestors_of(node)} & set(earlier) for node in later)
                assert bool(later) >= bool(earlier)
            before = now


def test_documents_kept_back_are_not_used_in_training():
    texts, labels = made(200)
    learnt, kept = split_rows(200, 0.25)
    assert sorted([*learnt, *kept]) == list(range(200))
    some = TextClassifier("svm", keep_back=0.25).fit(texts, labels)
    others = TextClassifier("svm").fit([texts[i] for i in learnt], [labels[i] for i in learnt])
    np.testing.assert_array_equal(some.predict_proba(texts), others.predict_proba(texts))
    assert some.guarantee_.about() == {"kind": "coverage", "documents": 50, "is_proven": True, "least_risk": 1 / 51}
    assert (others.guarantee_.documents, others.guarantee_.is_proven) == (150, False)
    others.fit_guarantee([texts[i] for i in kept], [labels[i] for i in kept])
    np.testing.assert_array_equal(others.guarantee_.predictor.scores, some.guarantee_.predictor.scores)


def test_vectors_and_texts_that_come_one_by_one_can_be_kept_back():
    texts, labels = made(120)
    counts = csr_array(np.random.default_rng(0).random((120, 5)))
    assert TextClassifier("nb", features=Vectors(), keep_back=0.5).fit(counts, labels).guarantee_.documents == 60
    assert TextClassifier("nb", keep_back=0.5).fit(iter(texts), labels).guarantee_.documents == 60


def test_guarantees_hold_for_new_texts_on_average():
    texts, labels = made(1500)
    clf = TextClassifier("nb", keep_back=0.5).fit(texts[:600], labels[:600])
    held = []
    for start in range(600, 1500, 10):  # the guarantee is an average over the documents kept back, too
        rows = slice(start - 300, start)
        clf.fit_guarantee(texts[rows], labels[rows])
        truth = clf.taxonomy_.encode([[label] for label in labels[start : start + 10]])
        held.append(is_covered(truth, clf.decide_with_guarantee(texts[start : start + 10], 0.2)[0], clf.taxonomy_).mean())
    assert 0.76 < np.mean(held) < 0.86


def test_answers_have_the_form_of_the_labels():
    clf = TextClassifier("nb", keep_back=0.3).fit(*made(200))
    one = clf.predict(["apple pie", "cup"], risk=0.1)
    assert isinstance(one, np.ndarray)
    assert all(label == "" or label in clf.taxonomy_ for label in one)
    several = clf.predict(["apple pie", "cup"], 0.1, nodes=3)
    assert isinstance(several, list)
    assert all(len(labels) <= 3 for labels in several)


def test_the_fraction_of_wrong_labels_is_guaranteed_for_multi_label_documents():
    texts, labels = made(200)
    pairs = [[label, "drink/tea"] if place % 3 == 0 else [label] for place, label in enumerate(labels)]
    clf = TextClassifier("svm").fit(texts, pairs)
    assert clf.guarantee_.predictor.kind == "risk-control"
    P = clf.predict_proba(texts)
    for node in range(len(clf.taxonomy_)):
        for parent in clf.taxonomy_.parents_of(node).tolist():
            assert (P[:, node] <= P[:, parent]).all()
    few, many = (sum(map(len, clf.predict(texts, risk=risk))) for risk in (0.02, 0.5))
    assert few < many
    with pytest.raises(InputError, match="fraction of wrong labels"):
        clf.predict(texts, risk=0.1, nodes=2)


def test_a_saved_model_has_the_same_guarantee(tmp_path):
    clf = TextClassifier("svm", keep_back=0.2).fit(*made(200))
    clf.save(tmp_path / "model")
    again, asked = ramify.load(tmp_path / "model"), made(30, seed=5)[0]
    np.testing.assert_array_equal(again.predict_proba(asked), clf.predict_proba(asked))
    assert again.predict(asked, risk=0.1).tolist() == clf.predict(asked, risk=0.1).tolist()
    assert again.guarantee_.about() == clf.guarantee_.about()


@pytest.mark.parametrize("broken", [{"kind": "oath"}, {"documents": -1}, {"documents": True}, {"is_proven": 1}])
def test_a_guarantee_that_ramify_did_not_write_is_refused(broken):
    stored = to_stored(TextClassifier("nb", keep_back=0.2).fit(*made(120)))
    about = {**stored.metadata, "guarantee": {**stored.metadata["guarantee"], **broken}}
    with pytest.raises(ModelError):
        from_stored(StoredModel(about, stored.documents, stored.arrays, stored.shards))


def test_without_held_out_documents_there_is_no_guarantee():
    for clf in (TextClassifier("nb").fit(*made(50)), TextClassifier("nb", calibrate=False).fit(*made(150))):
        with pytest.raises(InputError, match="keep_back=0.1"):
            clf.predict(["apple"], risk=0.05)


@pytest.mark.parametrize("risk", [0, 5e-324, 1, -0.1, float("nan"), True, "0.05"])
def test_what_is_no_risk_is_refused(risk):
    clf = TextClassifier("nb").fit(*made(120))
    with pytest.raises(InputError, match="risk is"):
        clf.predict(["apple"], risk=risk)


@pytest.mark.parametrize("share", [1, -0.1, float("nan"), True, "some"])
def test_what_is_no_share_cannot_be_kept_back(share):
    with pytest.raises(InputError, match="keep_back is"):
        TextClassifier("nb", keep_back=share).fit(*made(20))


def test_a_risk_for_which_there_are_too_few_documents_says_how_many_it_takes():
    clf = TextClassifier("nb", keep_back=0.1).fit(*made(120))
    with pytest.raises(InputError, match="a risk of 0.05 needs at least 19 held-out documents, and there are 12"):
        clf.predict(["apple"], risk=0.05)


def test_branches_with_too_few_documents_are_named():
    texts, labels = made(300)
    small = [i for i, label in enumerate(labels) if label.startswith("drink")][6:]
    kept = [i for i in range(300) if i not in small]
    clf = TextClassifier("nb").fit([texts[i] for i in kept], [labels[i] for i in kept])
    with pytest.warns(UserWarning, match="too few documents were held out for a risk of 0.02 in 'drink'"):
        found = clf.predict(["leaf green pot leaf green pot", "apple pie apple"], risk=0.02, by_branch=True)
    assert found[0] == ""


@pytest.mark.parametrize(
    "options",
    [
        PredictOptions(nodes=2),
        PredictOptions(by_branch=True),
        PredictOptions(risk=0.1, threshold=0.5),
        PredictOptions(risk=0.1, within=("food",)),
        PredictOptions(risk=2),
    ],
)
def test_options_that_contradict_a_guarantee_are_refused(options):
    clf = TextClassifier("nb").fit(*made(120))
    with pytest.raises(InputError):
        Predictor(clf, options)


def test_predictions_with_options_are_those_of_predict():
    clf, asked = TextClassifier("svm", keep_back=0.3).fit(*made(200)), made(20, seed=4)[0]
    predictor = Predictor(clf, PredictOptions(risk=0.1, nodes=3))
    assert [sorted(name for name, _ in predictor.named(labels)) for labels, _ in predictor.predict(asked)] == [
        sorted(labels) for labels in clf.predict(asked, 0.1, nodes=3)
    ]


def test_the_report_shows_calibration_and_guarantees():
    corpus = ramify.data.Corpus("made", *(lambda t, y: (t, [[label] for label in y]))(*made(400, seed=8)))
    clf = TextClassifier("svm", keep_back=0.2).fit(*made(400))
    report = evaluate(clf, corpus)
    assert [row["depth"] for row in report.calibration] == [0, 1, 2]
    assert all(row["pairs"] < row["pairs_uncalibrated"] for row in report.calibration)
    assert [row["risk"] for row in report.guarantees] == [0.2, 0.1, 0.05, 0.02]
    for row in report.guarantees:
        Y = clf.decide_with_guarantee(corpus.documents, row["risk"])[0]
        truth = clf.taxonomy_.encode(corpus.labels)
        assert row["achieved"] == pytest.approx(is_covered(truth, Y, clf.taxonomy_).mean())
    depths = [row["depth"] for row in report.guarantees]
    assert depths == sorted(depths, reverse=True)
    assert depths[-1] < report.guarantees[-1]["depth_without_guarantee"]
    assert any("80 documents that were kept back from training" in note for note in report.notes)
    again = ramify.metrics.Report.from_dict(report.as_dict())
    assert again.guarantees == report.guarantees
    assert not evaluate(TextClassifier("svm", calibrate=False).fit(*made(100)), corpus).guarantees


def test_partial_fit_keeps_the_calibration_and_drops_the_guarantee():
    clf = TextClassifier("nb").fit(*made(120))
    calibration = clf.calibration_
    clf.partial_fit(["apple pie"], ["food/fruit/apple"])
    assert (clf.calibration_, clf.guarantee_) == (calibration, None)
    clf.partial_fit(["melon"], ["food/fruit/melon"])
    assert clf.calibration_ is None


def test_held_out_documents_are_scored_as_new_ones():
    texts = ["apple pie", "apple tart", "pie crust", "tart lemon"]
    whole = TextClassifier("svm").fit(texts, ["a", "b", "a", "b"])
    seen, held_out = np.asarray([0, 1, 2]), np.asarray([3])
    found = as_new(whole.vectorizer_.transform(texts), held_out, seen).toarray()[0]
    names = whole.vectorizer_.get_feature_names_out().tolist()
    assert found[names.index("lemon")] == 0
    assert found[names.index("tart")] == pytest.approx(1)
    counts = csr_array(np.asarray([[1.0, 0, 2], [0, 3, 1]]))
    np.testing.assert_array_equal(as_new(counts, np.asarray([1]), np.asarray([0])).toarray(), [[0, 0, 1]])
    np.testing.assert_array_equal(as_new(counts, np.asarray([0]), np.asarray([0, 1])).toarray(), [[1, 0, 2]])


def test_texts_and_labels_of_different_numbers_are_refused_also_where_some_are_kept_back():
    texts, labels = made(100)
    for some, others in ((texts, labels[:80]), (texts[:80], labels)):
        with pytest.raises(InputError, match="texts but labels for"):
            TextClassifier("nb", keep_back=0.2).fit(some, others)
    for no_texts in (" ".join(texts), []):
        with pytest.raises(InputError):
            TextClassifier("nb", keep_back=0.2).fit(no_texts, labels)


def test_a_share_that_keeps_nothing_or_everything_is_refused():
    for share in (0.01, 0.99):
        with pytest.raises(InputError, match="of 20 documents back; keep some, not all"):
            TextClassifier("nb", keep_back=share).fit(*made(20))


def test_texts_are_taken_by_position_whatever_their_index():
    class ByName(list):
        shape = (3,)

        def __getitem__(self, key):
            raise KeyError(key)

    assert take(ByName("abc"), np.asarray([0, 2])) == ["a", "c"]


@pytest.mark.parametrize("nodes", [0, 4, 2.0, True, "2", np.asarray([1, 2])])
@pytest.mark.parametrize("by_branch", [False, True])
def test_what_is_no_number_of_nodes_is_refused(nodes, by_branch):
    clf = TextClassifier("nb").fit(*made(120))
    with pytest.raises(InputError, match="nodes is"):
        clf.predict(["apple"], risk=0.3, nodes=nodes, by_branch=by_branch)
    with pytest.raises(InputError, match="nodes is"):
        Predictor(clf, PredictOptions(risk=0.3, nodes=nodes, by_branch=by_branch))


def test_nodes_and_branches_go_with_a_risk():
    clf = TextClassifier("nb").fit(*made(120))
    for options in ({"nodes": 3}, {"by_branch": True}):
        with pytest.raises(InputError, match="need a risk"):
            clf.predict(["apple"], **options)


def test_over_a_dag_all_guaranteed_labels_are_predicted():
    texts, labels = made(300)
    dag = ramify.Taxonomy.from_edges([(name, None) for name in ("x", "y")] + [(name, up) for name in WORDS for up in "xy"])
    clf = TextClassifier("svm", dag).fit(texts, labels)
    found = clf.predict(texts, risk=0.6)
    assert isinstance(found, list)
    assert max(map(len, found)) > 1


def test_documents_without_labels_leave_room_for_none():
    texts, labels = made(300)
    rows = [[] if place % 2 else [label] for place, label in enumerate(labels)]
    clf = TextClassifier("svm").fit([text if row else "nothing at all" for text, row in zip(texts, rows, strict=True)], rows)
    assert (clf.calibration_.kind, clf.guarantee_.predictor.kind) == ("multi-label", "risk-control")
    assert clf.predict_proba(["nothing at all"])[0, clf.taxonomy_.roots].sum() < 0.5


def test_another_rule_keeps_the_guarantee_only_where_probabilities_stay_the_same():
    for calibrate in (True, False):
        clf = TextClassifier("isotonic-svm", calibrate=calibrate, keep_back=0.3).fit(*made(200))
        assert (clf.redecided(Best()).guarantee_ is not None) == calibrate


def test_a_loaded_model_trains_as_it_did(tmp_path):
    TextClassifier("nb", calibrate=True, keep_back=0.25).fit(*made(60)).save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    assert (again.calibrate, again.keep_back, again.calibration_) == (True, 0.25, None)


def test_a_model_in_shards_has_no_guarantee(tmp_path):
    TextClassifier("svm").fit(*made(150)).save(tmp_path / "model", shards=2)
    again = ramify.load(tmp_path / "model")
    assert (again.calibration_, again.guarantee_) == (None, None)
    with pytest.raises(InputError, match="without shards"):
        again.predict(["apple"], risk=0.1)


def test_more_rounds_of_boosting_forget_what_scores_meant():
    clf = TextClassifier("treeboost-mh").fit(*made(120))
    assert clf.calibration_ is not None
    clf.partial_fit(*made(120))
    assert clf.calibration_ is None
