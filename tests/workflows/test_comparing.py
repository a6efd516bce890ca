"""Several systems on the same documents."""

import json
import math
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from ramify import Taxonomy, TextClassifier, metrics
from ramify.data import Corpus
from ramify.errors import InputError, LabelError
from ramify.learners import MultinomialNaiveBayes
from ramify.parallel import reporting_to
from ramify.taxonomy import most_specific
from ramify.workflows.comparing import compare
from ramify.workflows.folds import split_into_folds

WORDS = {
    "tv/picture": "screen dark picture lines colour",
    "tv/sound": "sound loud speaker crackles noise",
    "orders/late": "parcel late courier waiting week",
    "orders": "order question number account shop",
}


@pytest.fixture(scope="module")
def corpus():
    """Four classes, one of them an inner node, with words that overlap a little."""
    rng = np.random.default_rng(0)
    every = " ".join(WORDS.values()).split()
    texts, labels = [], []
    for i in range(160):
        label = list(WORDS)[i % 4]
        own = rng.choice(WORDS[label].split(), size=2)
        texts.append(" ".join([*own, *rng.choice(every, size=4), f"n{i}"]))
        labels.append([label] if i % 10 else [label, "tv/sound"] if label != "tv/sound" else [label])
    return Corpus("memory", texts, labels)


@pytest.fixture
def systems():
    return {"nb": TextClassifier("nb"), "again": TextClassifier("nb"), "svm": TextClassifier("svm")}


def in_folds(corpus, folds, seed=0):
    taxonomy = Taxonomy.from_paths(sorted({label for labels in corpus.labels for label in labels}))
    return taxonomy, split_into_folds(corpus, taxonomy, folds, seed)


# ---- folds --------------------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from("abcd"), min_size=8, max_size=40), st.integers(2, 8), st.integers(0, 50))
def test_every_document_is_tested_once_and_classes_are_spread_evenly(labels, folds, seed):
    corpus = Corpus("memory", [f"text {i}" for i in range(len(labels))], [[label] for label in labels])
    taxonomy = Taxonomy.flat(list("abcd"))
    try:
        parts = split_into_folds(corpus, taxonomy, folds, seed)
    except LabelError:
        assert max(map(labels.count, "abcd")) >= len(labels) - math.ceil(len(labels) / folds)
        return
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))
    for label in "abcd":
        sizes = [sum(labels[i] == label for i in part) for part in parts]
        assert max(sizes) - min(sizes) <= 1


def test_equal_texts_stay_in_one_fold():
    texts = [f"text {i // 3}" for i in range(60)]
    corpus = Corpus("memory", texts, [["a"] if i % 2 else ["b"] for i in range(60)])
    parts = split_into_folds(corpus, Taxonomy.flat(["a", "b"]), 4)
    seen = [{texts[i] for i in part} for part in parts]
    assert sum(map(len, seen)) == len(set.union(*seen)) == 20


def test_a_seed_fixes_the_folds(corpus):
    one, again, other = (in_folds(corpus, 5, seed)[1] for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("folds", [1, 0, -1, 161])
def test_folds_that_cannot_be_dealt_are_refused(corpus, folds):
    with pytest.raises(InputError, match=f"folds is {folds}; give 2 or more, and no more than there are documents, 160"):
        in_folds(corpus, folds)


def test_folds_that_leave_one_class_are_refused():
    corpus = Corpus("memory", ["x", "y", "z"], [["a"], ["a"], ["b"]])
    with pytest.raises(LabelError, match="without the documents of fold . fewer than two classes are left"):
        split_into_folds(corpus, Taxonomy.flat(["a", "b"]), 3)
    one = Corpus("memory", ["x", "y", "z"], [["a"], ["a"], ["a"]])
    with pytest.raises(LabelError, match="every label is 'a'; learning needs documents of at least two classes"):
        split_into_folds(one, Taxonomy.flat(["a", "b"]), 2)
    same = Corpus("memory", ["x"] * 4, [["a"], ["a"], ["b"], ["b"]])
    with pytest.raises(InputError, match="equal texts stay in one fold, which leaves a fold without documents"):
        split_into_folds(same, Taxonomy.flat(["a", "b"]), 2)


# ---- comparing ----------------------------------------------------------------------------------------------------------


def test_folds_are_trained_and_tested_as_one_would_by_hand(corpus):
    systems = {"nb": TextClassifier("nb"), "svm": TextClassifier("svm")}
    found = compare(systems, corpus, folds=4, seed=3, n_resamples=20)
    taxonomy, parts = in_folds(corpus, 4, 3)
    for system in found.systems:
        accuracies, micro = [], []
        for part in parts:
            learn, tested = corpus.take(np.setdiff1d(np.arange(160), part)), corpus.take(part)
            fitted = TextClassifier(system.name, taxonomy).fit(learn.documents, learn.labels)
            pair = taxonomy.encode(tested.labels), fitted.predict_matrix(tested.documents)
            accuracies.append(metrics.accuracy(*pair, taxonomy))
            micro.append(metrics.micro_f1(*pair, taxonomy, over="own"))
        assert system.measures["accuracy"].by_fold == pytest.approx(accuracies)
        assert system.measures["accuracy"].value == pytest.approx(np.mean(accuracies))
        # the same nodes are the most specific ones of some truth in every fold, and nothing stops anywhere else
        assert system.measures["micro_f1"].by_fold == pytest.approx(micro)
    assert (found.documents, found.folds, found.classes, found.duplicates) == (160, 4, 4, 0)


def test_pairs_are_tested_on_the_predictions_of_all_folds_together(corpus):
    systems = {"nb": TextClassifier("nb"), "svm": TextClassifier("svm")}
    found = compare(systems, corpus, folds=4, n_resamples=20)
    taxonomy, parts = in_folds(corpus, 4)
    T, A, B = [], [], []
    for part in parts:
        learn, tested = corpus.take(np.setdiff1d(np.arange(160), part)), corpus.take(part)
        T.append(taxonomy.encode(tested.labels).toarray())
        for name, answers in (("nb", A), ("svm", B)):
            fitted = TextClassifier(name, taxonomy).fit(learn.documents, learn.labels)
            answers.append(fitted.predict_matrix(tested.documents).toarray())
    by_hand = metrics.compare_predictions(*map(np.concatenate, (T, A, B)), taxonomy, n_resamples=20)
    (pair,) = found.pairs
    assert (pair.a, pair.b) == ("nb", "svm")
    assert {name: result.p_value for name, result in pair.tests.items()} == pytest.approx(
        {name: result.p_value for name, result in by_hand.items()}
    )
    assert pair.corrected == {name: result.p_value for name, result in pair.tests.items()}  # one pair: nothing to correct


def test_a_test_corpus_is_only_tested(corpus, systems):
    learn, tested = corpus.take(range(100)), corpus.take(range(100, 160))
    found = compare(systems, learn, test=tested, n_resamples=20)
    fitted = TextClassifier("svm", in_folds(corpus, 2)[0]).fit(learn.documents, learn.labels)
    assert found.systems[2].measures["accuracy"].value == pytest.approx(fitted.score(tested.documents, tested.labels))
    assert (found.documents, found.folds) == (60, 1)
    assert all(system.training_seconds > 0 and system.documents_per_second > 0 for system in found.systems)
    assert compare(systems, learn, test=corpus, n_resamples=5).duplicates == 100


def test_fitted_models_are_tested_as_they_are(corpus):
    learn, tested = corpus.take(range(100)), corpus.take(range(100, 160))
    models = {name: TextClassifier(name).fit(learn.documents, learn.labels) for name in ("nb", "svm")}
    learners = {name: model.learner_ for name, model in models.items()}
    found = compare(models, tested, n_resamples=20)
    for system in found.systems:
        assert system.measures["accuracy"].value == models[system.name].score(tested.documents, tested.labels)
        assert system.training_seconds is None
        assert models[system.name].learner_ is learners[system.name]


def test_the_classifiers_given_stay_unfitted(corpus, systems):
    compare(systems, corpus, folds=2, n_resamples=5)
    assert not any(hasattr(classifier, "taxonomy_") for classifier in systems.values())


def test_the_same_system_twice_is_not_different(corpus, systems):
    found = compare(systems, corpus, folds=3, n_resamples=50)
    same = next(pair for pair in found.pairs if (pair.a, pair.b) == ("nb", "again"))
    assert all(p == 1 for p in same.corrected.values())
    first, second, _ = (system.measures for system in found.systems)
    assert first == second  # intervals, too: all systems see the same resamples


@pytest.mark.parametrize("correction", ["holm", "bonferroni", "benjamini-hochberg", "none"])
def test_p_values_are_corrected_over_the_pairs_of_each_test(corpus, systems, correction):
    found = compare(systems, corpus, folds=3, n_resamples=50, correction=correction)
    assert [(pair.a, pair.b) for pair in found.pairs] == [("nb", "again"), ("nb", "svm"), ("again", "svm")]
    for test in found.pairs[0].tests:
        raw = [pair.tests[test].p_value for pair in found.pairs]
        assert [pair.corrected[test] for pair in found.pairs] == metrics.correct_p_values(raw, correction).tolist()


def test_a_seed_fixes_everything_but_the_time(corpus, systems):
    one, again = (compare(systems, corpus, folds=3, seed=4, n_resamples=30) for _ in range(2))
    assert [system.measures for system in one.systems] == [system.measures for system in again.systems]
    assert one.pairs == again.pairs


def test_a_comparison_is_ready_for_json():
    """One class in the truth: t tests give no number, which JSON cannot say."""
    texts = [f"word{i % 2} n{i}" for i in range(12)]
    learn = Corpus("memory", texts, [["a/b"] if i % 2 else ["a"] for i in range(12)])
    models = {name: TextClassifier("nb", Taxonomy.from_paths(["a/b"])).fit(learn.documents, learn.labels) for name in "xy"}
    only = learn.take(range(1, 12, 2))
    found = compare(models, only, n_resamples=5)
    values = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert values["pairs"][0]["corrected"]["t"] is None
    assert values["pairs"][0]["tests"]["sign"] == {"statistic": 0.0, "p_value": 1.0, "n": 0, "difference": 0.0}
    assert set(values["systems"][0]["measures"]["h_loss"]) == {"value", "low", "high", "by_fold"}
    assert values["systems"][0]["training_seconds"] is None


def test_vectors_can_be_compared_too(corpus):
    fitted = TextClassifier("nb").fit(corpus.documents, corpus.labels)
    vectors = Corpus("memory", fitted.vectorizer_.transform(corpus.documents), corpus.labels)
    systems = {"nb": TextClassifier("nb"), "shrinkage-nb": TextClassifier("shrinkage-nb")}
    by_text, by_vector = (compare(systems, some, folds=3, n_resamples=5) for some in (corpus, vectors))
    assert by_text.systems[0].measures["accuracy"].value == pytest.approx(
        by_vector.systems[0].measures["accuracy"].value, abs=0.05
    )


class Listener:
    """Hears of stages, of how far they are, and of what is done."""

    def __init__(self):
        self.stages, self.done, self.words = [], 0, []

    def stage(self, title, total):
        self.stages.append((title, total))
        return nullcontext(self)

    def advance(self, amount=1):
        self.done += amount

    def describe(self, what):
        self.words.append(what)


def test_progress_is_one_stage_with_descriptions(corpus):
    listener = Listener()
    with reporting_to(listener):
        compare({"a": TextClassifier("nb"), "b": TextClassifier("svm")}, corpus, folds=3, n_resamples=5)
    ((title, total),) = listener.stages
    assert (title, listener.done) == ("comparing", total)
    assert {"a, fold 1 of 3", "b, fold 3 of 3", "measuring a", "testing pairs"} <= set(listener.words)


# ---- systems that cannot take the data ----------------------------------------------------------------------------------


def test_a_system_that_needs_one_label_per_document_is_left_out_with_its_reason(corpus):
    systems = {name: TextClassifier(name) for name in ("hsvm", "svm", "nb", "hblr")}
    listener = Listener()
    with reporting_to(listener):
        found = compare(systems, corpus, folds=3, n_resamples=5)
    assert [system.name for system in found.systems] == ["svm", "nb"]
    assert [each.name for each in found.skipped] == ["hsvm", "hblr"]
    assert "hsvm takes one label per document" in found.skipped[0].reason
    assert [(pair.a, pair.b) for pair in found.pairs] == [("svm", "nb")]
    assert listener.done == listener.stages[0][1]  # what was left out does not hold the bar up


class OneLabelOnly(MultinomialNaiveBayes):
    """A learner that refuses documents with several labels."""

    def _fit(self, X, targets, weights):
        several = int((targets.own.sum(axis=1) > 1).sum())
        if several:
            raise LabelError(f"{several} documents have several labels; this learner takes one a document.")
        super()._fit(X, targets, weights)


class Hungry(MultinomialNaiveBayes):
    """A learner that no machine has enough memory for."""

    def _fit(self, X, targets, weights):
        raise MemoryError


def test_a_learner_that_refuses_several_labels_is_left_out_and_measured_where_there_is_one(corpus):
    systems = {"nb": TextClassifier("nb"), "svm": TextClassifier("svm"), "one": TextClassifier("nb", learner=OneLabelOnly())}
    found = compare(systems, corpus, folds=3, n_resamples=5)
    (skipped,) = found.skipped
    assert skipped.name == "one"
    assert "documents have several labels; this learner takes one a document." in skipped.reason
    single = Corpus("memory", corpus.documents, [labels[:1] for labels in corpus.labels])
    found = compare(systems, single, folds=3, n_resamples=5)
    assert found.skipped == []
    assert found.systems[2].measures == found.systems[0].measures


def test_what_there_is_not_enough_memory_for_is_left_out(corpus):
    systems = {"nb": TextClassifier("nb"), "hungry": TextClassifier("nb", learner=Hungry()), "svm": TextClassifier("svm")}
    found = compare(systems, corpus, folds=2, n_resamples=5)
    assert found.skipped[0].name == "hungry"
    assert "not enough memory" in found.skipped[0].reason


def test_fewer_than_two_systems_left_are_refused_with_each_reason_once(corpus):
    names = ("hsvm", "nb", "ot", "hsvm:C=2")
    systems = {name: TextClassifier(name.partition(":")[0]) for name in names}
    with pytest.raises(InputError) as caught:
        compare(systems, corpus, folds=2, n_resamples=5)
    message = str(caught.value)
    assert message.startswith("only 'nb' can be used on these documents, and a comparison needs two; ")
    assert "hsvm and hsvm:C=2: " in message
    assert message.count("ot: ") == 1
    assert "\n" not in message
    del systems["nb"]
    with pytest.raises(InputError, match="none of the systems can be used on these documents"):
        compare(systems, corpus, folds=2, n_resamples=5)


def test_a_system_may_also_fail_in_a_later_fold(corpus):
    """The one document with several labels is tested in the first fold, and trained on in the second."""
    labels = [labels[:1] for labels in corpus.labels]
    place = int(in_folds(Corpus("memory", corpus.documents, labels), 4)[1][0][0])
    labels[place] = [*labels[place], next(label for label in WORDS if label not in (*labels[place], "orders"))]
    systems = {"nb": TextClassifier("nb"), "svm": TextClassifier("svm"), "one": TextClassifier("nb", learner=OneLabelOnly())}
    listener = Listener()
    with reporting_to(listener):
        found = compare(systems, Corpus("memory", corpus.documents, labels), folds=4, n_resamples=5)
    assert [each.name for each in found.skipped] == ["one"]
    assert "one, fold 2 of 4" in listener.words
    assert "one, fold 3 of 4" not in listener.words
    assert listener.done == listener.stages[0][1]


def test_libraries_are_warm_before_anything_is_measured(corpus, monkeypatch):
    learnt = []

    class Telling(MultinomialNaiveBayes):
        def _fit(self, X, targets, weights):
            learnt.append(X.shape[0])
            super()._fit(X, targets, weights)

    monkeypatch.setattr("ramify.workflows.compare_trials.WARM_UP", 20)
    systems = {name: TextClassifier("nb", learner=Telling()) for name in ("one", "other")}
    compare(systems, corpus, test=corpus, n_resamples=5)
    assert learnt == [20, len(corpus), len(corpus)]


def test_memory_is_measured_for_each_system(corpus):
    found = compare({"nb": TextClassifier("nb"), "svm": TextClassifier("svm")}, corpus, folds=2, n_resamples=5)
    assert all(system.peak_memory is None or 0 <= system.peak_memory < 200 for system in found.systems)


def test_systems_that_predict_one_label_where_there_are_more_are_noted(corpus):
    systems = {name: TextClassifier(name) for name in ("nb", "shrinkage-nb", "svm")}
    found = compare(systems, corpus, folds=2, n_resamples=5)
    several = sum(len(labels) > 1 for labels in corpus.labels)
    assert found.notes == [
        f"{several} documents have more than one label; nb and shrinkage-nb are trained on all of them, but predict only one"
    ]


def test_as_many_resamples_are_drawn_as_the_pairs_need(corpus):
    small = corpus.take(range(40))
    names = [f"nb{k}" for k in range(6)]
    found = compare({name: TextClassifier("nb") for name in names}, small, folds=2)
    assert found.n_resamples == 2 * 15 * 2 * 20  # 15 pairs, two sides, one in twenty; and twice that
    assert compare({name: TextClassifier("nb") for name in names[:2]}, small, folds=2).n_resamples == 1000


def test_what_cannot_be_compared_is_refused(corpus, systems):
    with pytest.raises(InputError, match="needs two systems or more, not 1"):
        compare({"nb": systems["nb"]}, corpus)
    with pytest.raises(InputError, match="'nb' and 'other' have different taxonomies"):
        compare({"nb": systems["nb"], "other": TextClassifier("nb", Taxonomy.flat(["a", "b"]))}, corpus)
    fitted = clone(systems["nb"]).fit(corpus.documents, corpus.labels)
    with pytest.raises(InputError, match="some of the systems are trained and some are not"):
        compare({"nb": systems["nb"], "fitted": fitted}, corpus)
    with pytest.raises(InputError, match="the systems are trained already"):
        compare({"one": fitted, "two": fitted}, corpus, test=corpus)
    with pytest.raises(InputError, match="correction 'hom' is unknown"):
        compare(systems, corpus, correction="hom")
    with pytest.raises(InputError, match="n_resamples is 0"):
        compare(systems, corpus, n_resamples=0)
    with pytest.raises(LabelError, match="'tv/smell' is not in the taxonomy"):
        compare(systems, corpus, test=Corpus("test", ["odd"], [["tv/smell"]]))


def test_classes_are_taken_from_the_truth_of_all_documents(corpus):
    """A leaf that no fold's truth holds is a class, and so is an inner node where a document of any fold stops."""
    taxonomy = Taxonomy.from_paths([*WORDS, "tv/remote", "garden/hose"])
    systems = {name: TextClassifier(name, taxonomy) for name in ("nb", "svm")}
    own = most_specific(taxonomy.encode(corpus.labels), taxonomy)
    expected = set(np.flatnonzero(taxonomy.is_leaf)) | set(own.indices.tolist())
    assert compare(systems, corpus, folds=2, n_resamples=5).classes == len(expected) == 6
