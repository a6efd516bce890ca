"""Comparisons whose systems and folds run on a cluster: the same figures, the same skipped systems, and honest times."""

from contextlib import nullcontext

import numpy as np
import pytest
from apart import ApartExecutor

from ramify import TextClassifier
from ramify.data import Corpus
from ramify.errors import InputError, LabelError
from ramify.learners import MultinomialNaiveBayes
from ramify.parallel import (
    Checkpoints,
    ThreadExecutor,
    checkpointing,
    choose_executor,
    current_executor,
    reporting_to,
    running_on,
)
from ramify.taxonomy import taxonomy_of_labels
from ramify.workflows.compare_trials import NO_MEMORY
from ramify.workflows.comparing import compare
from ramify.workflows.folds import split_into_folds

pytestmark = pytest.mark.slow

WORDS = {
    "tv/picture": "screen dark picture lines colour",
    "tv/sound": "sound loud speaker crackles noise",
    "orders/late": "parcel late courier waiting week",
    "orders": "order question number account shop",
}


@pytest.fixture(scope="module")
def corpus():
    """Four classes, one of them an inner node; one document in ten has two labels."""
    rng = np.random.default_rng(0)
    every = " ".join(WORDS.values()).split()
    texts, labels = [], []
    for i in range(160):
        label = list(WORDS)[i % 4]
        texts.append(" ".join([*rng.choice(WORDS[label].split(), size=2), *rng.choice(every, size=4), f"n{i}"]))
        labels.append([label] if i % 10 or label == "tv/sound" else [label, "tv/sound"])
    return Corpus("memory", texts, labels)


def figures(found):
    """All that a comparison says, but for time and memory."""
    values = found.as_dict()
    for system in values["systems"]:
        assert system.pop("documents_per_second") > 0
        del system["training_seconds"], system["peak_memory"]
    values["notes"] = [note for note in values["notes"] if "slowed" not in note and "another node" not in note]
    return values


def compare_everywhere(systems, corpus, *executors, **options):
    """The comparison here, and on each of some executors; figures are the same, and all of the bar is filled."""
    here = compare(systems, corpus, n_resamples=20, **options)
    for executor in executors:
        bar = Listener()
        with running_on(executor), reporting_to(bar):
            there = compare(systems, corpus, n_resamples=20, **options)
        assert figures(there) == figures(here)
        assert bar.done == bar.total
    return here, there


class Listener:
    def __init__(self):
        self.total, self.done, self.words = None, 0, []

    def stage(self, title, total):
        assert title == "comparing"
        self.total = total
        return nullcontext(self)

    def advance(self, amount=1):
        self.done += amount

    def describe(self, what):
        self.words.append(what)


class OneLabelOnly(MultinomialNaiveBayes):
    """A learner that refuses documents with several labels."""

    def _fit(self, X, targets, weights):
        if (targets.own.sum(axis=1) > 1).any():
            raise LabelError("documents have several labels; this learner takes one a document.")
        super()._fit(X, targets, weights)


class Hungry(MultinomialNaiveBayes):
    """A learner that no machine has enough memory for."""

    def _fit(self, X, targets, weights):
        raise MemoryError


SEEN = []  # by the curious


class Curious(MultinomialNaiveBayes):
    """A learner that looks where it is, and with how many threads."""

    def _fit(self, X, targets, weights):
        SEEN.append((current_executor(), self.n_jobs, choose_executor(self.n_jobs).worker_threads))
        super()._fit(X, targets, weights)


NAMES = ("nb", "svm", "shrinkage-nb", "treeboost-mh")


def systems_of(*names, **options):
    return {name: TextClassifier(name, **options) for name in names}


def test_folds_give_the_same_figures_on_a_cluster(corpus):
    apart = ApartExecutor(1, 1)
    compare_everywhere(systems_of(*NAMES), corpus, apart, ThreadExecutor(1), folds=3, seed=2)
    assert set(apart.jobs) == {"run_remote_trial"}  # what systems spread themselves stays where they are


def test_a_test_corpus_gives_the_same_figures_on_a_cluster(corpus):
    learn, tested = corpus.take(range(100)), corpus.take(range(90, 160))
    here, _ = compare_everywhere(systems_of("nb", "svm"), learn, ApartExecutor(1), test=tested)
    assert here.duplicates == 10


def test_fitted_models_give_the_same_figures_on_a_cluster_and_stay_as_they_were(corpus):
    learn, tested = corpus.take(range(100)), corpus.take(range(100, 160))
    models = {name: TextClassifier(name).fit(learn.documents, learn.labels) for name in ("nb", "svm")}
    _, there = compare_everywhere(models, tested, ApartExecutor(1), ApartExecutor(2, 3), ThreadExecutor(2))
    assert all(system.training_seconds is None for system in there.systems)
    assert all(model.n_jobs is None and model.learner_.n_jobs is None for model in models.values())


def test_vectors_give_the_same_figures_on_a_cluster(corpus):
    fitted = TextClassifier("nb").fit(corpus.documents, corpus.labels)
    vectors = Corpus("memory", fitted.vectorizer_.transform(corpus.documents), corpus.labels)
    compare_everywhere(systems_of("nb", "shrinkage-nb"), vectors, ApartExecutor(1), folds=3)


def test_each_works_with_the_threads_of_one_machine_and_sends_nothing_on(corpus):
    SEEN.clear()
    systems = {"nb": TextClassifier("nb"), "curious": TextClassifier("nb", learner=Curious())}
    with running_on(ApartExecutor(4, 2, 3)):
        compare(systems, corpus, folds=2, n_resamples=5)
    assert SEEN == [(None, 2, (2,))] * 2
    assert systems["curious"].n_jobs is None


def test_nothing_of_a_comparison_on_a_cluster_is_kept(corpus, tmp_path):
    with running_on(ApartExecutor(1)), checkpointing(Checkpoints(tmp_path)):
        compare(systems_of("nb", "treeboost-mh"), corpus, folds=2, n_resamples=5)
    assert list(tmp_path.iterdir()) == []


# ---- systems that cannot take the data ----------------------------------------------------------------------------------


def test_what_cannot_take_the_data_is_skipped_on_a_cluster_with_the_same_reason(corpus):
    systems = systems_of("hsvm", "svm", "nb", "ot")
    systems["hungry"] = TextClassifier("nb", learner=Hungry())
    here, _ = compare_everywhere(systems, corpus, ApartExecutor(1, 1), folds=3)
    assert [each.name for each in here.skipped] == ["hsvm", "ot", "hungry"]
    assert here.skipped[2].reason == NO_MEMORY


def test_a_system_may_also_fail_on_a_cluster_in_a_later_fold(corpus):
    """The one document with several labels is tested in the first fold, and trained on in the second."""
    labels = [labels[:1] for labels in corpus.labels]
    parts = split_into_folds(Corpus("memory", corpus.documents, labels), taxonomy_of_labels(labels, None), 4)
    place = int(parts[0][0])
    labels[place] = [*labels[place], next(label for label in WORDS if label not in (*labels[place], "orders"))]
    systems = systems_of("nb", "svm") | {"one": TextClassifier("nb", learner=OneLabelOnly())}
    listener = Listener()
    with running_on(ApartExecutor(1)), reporting_to(listener):
        found = compare(systems, Corpus("memory", corpus.documents, labels), folds=4, n_resamples=5)
    assert [each.name for each in found.skipped] == ["one"]
    assert "one, fold 2 of 4" in listener.words
    assert "one, fold 3 of 4" not in listener.words
    assert listener.done == listener.total
    compare_everywhere(systems, Corpus("memory", corpus.documents, labels), ApartExecutor(1), folds=4)


def test_fewer_than_two_systems_left_are_refused_on_a_cluster_before_the_next_fold(corpus):
    systems = {"nb": TextClassifier("nb"), "one": TextClassifier("nb", learner=OneLabelOnly())}
    listener, apart = Listener(), ApartExecutor(1)
    messages = []
    for executor in (None, apart):
        with running_on(executor), reporting_to(listener), pytest.raises(InputError) as error:
            compare(systems, corpus, folds=4, n_resamples=5)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert messages[0].startswith("only 'nb' can be used on these documents")
    assert not any("fold 2" in word for word in listener.words)


# ---- times --------------------------------------------------------------------------------------------------------------


def test_times_that_were_taken_side_by_side_are_noted(corpus):
    here, there = compare_everywhere(systems_of("nb", "svm"), corpus, ApartExecutor(3, 2), folds=2)
    (note,) = set(there.notes) - set(here.notes)
    assert note.startswith("systems ran in parallel on a cluster, with 2 threads each; they may have slowed each other down")
    here, there = compare_everywhere(systems_of("nb", "svm"), corpus, ApartExecutor(1), folds=2)
    (note,) = set(there.notes) - set(here.notes)
    assert note == "systems were trained and timed on another node, with 1 thread each"


def test_trials_are_reported_when_they_are_done(corpus):
    """Where they run in parallel nobody knows which runs now; what is reported is done."""
    listener, told = Listener(), []

    class Watching(ApartExecutor):
        def _run(self, job, placed, blocks, stop, threads):
            for k, result in enumerate(super()._run(job, placed, blocks, stop, threads)):
                told.append((k, sum("fold" in word for word in listener.words)))
                yield result

    with running_on(Watching(1)), reporting_to(listener):
        compare(systems_of("nb", "svm"), corpus, folds=2, n_resamples=5)
    assert told == [(k, k) for k in range(4)]


def test_machines_are_warm_before_anything_is_measured(corpus, monkeypatch):
    """Every trial may be the first on its machine."""
    sizes = []

    class Sized(MultinomialNaiveBayes):
        def _fit(self, X, targets, weights):
            sizes.append(X.shape[0])
            super()._fit(X, targets, weights)

    monkeypatch.setattr("ramify.workflows.compare_trials.WARM_UP", 20)
    with running_on(ThreadExecutor(1)):
        compare({"a": TextClassifier("nb", learner=Sized()), "b": TextClassifier("nb")}, corpus, folds=2, n_resamples=5)
    assert sizes == [20, 80, 20, 20, 80, 20]
