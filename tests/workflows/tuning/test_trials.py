"""Trials: rules that are fitted on other documents than they decide, scores, and the probability of winning."""

import numpy as np
import pytest
from fake_trials import FLAT, small_corpus
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from ramify.classifier import TextClassifier
from ramify.data import Corpus
from ramify.decisions import Best, RCut, SCut
from ramify.errors import InputError, LabelError
from ramify.metrics import accuracy
from ramify.workflows.folds import MAX_TEST, make_folds
from ramify.workflows.tuning.candidates import Candidate
from ramify.workflows.tuning.trials import (
    MAX_SCORES,
    Trial,
    cross_decide,
    estimate_winning,
    fraction_first,
    needs_fitting,
    problem_with,
    rules_for,
    run_fold,
)

NB = Candidate("nb", (("alpha", 0.1),))


@pytest.fixture(scope="module")
def folds(shop):
    few = shop.train.take(range(0, len(shop.train), 4))
    return make_folds(few, shop.taxonomy, 0, None)


def test_a_document_is_never_in_training_and_test_of_one_fold(folds):
    tested = []
    for number in range(folds.n_folds):
        for fraction in (0.3, 1.0):
            learnt, asked = folds.positions(number, fraction)
            assert not set(learnt) & set(asked)
        assert len(learnt) + len(asked) == len(folds.corpus)
        tested += asked.tolist()
    assert sorted(tested) == list(range(len(folds.corpus)))


def test_fewer_documents_are_among_more():
    folds = make_folds(small_corpus(3000), FLAT, 0, None)
    few, more = (set(folds.positions(0, fraction)[0]) for fraction in (0.5, 1.0))
    assert few < more


def test_of_very_many_documents_only_some_are_tested():
    folds = make_folds(small_corpus(MAX_TEST * 6), FLAT, 0, None)
    learnt, tested = folds.positions(0, 1.0)
    assert len(tested) == MAX_TEST
    assert not (folds.fold[learnt] == 0).any()


def test_a_trial_answers_as_the_classifier_that_is_trained_by_hand(folds):
    learnt, tested = folds.positions(1, 1.0)
    candidate = NB.with_features((("stop_words", "english"),))
    result = run_fold(candidate, folds, 1, 1.0, [Best()])
    by_hand = TextClassifier(
        "nb", folds.taxonomy, learner=candidate.learner(), features=candidate.vectorizer(), calibrate=False
    ).fit(folds.corpus.take(learnt).documents, folds.corpus.take(learnt).labels)
    assert (result.predictions[0] != by_hand.predict_matrix(folds.corpus.take(tested).documents)).nnz == 0


def test_a_trial_has_the_score_of_its_predictions(folds):
    trial = Trial(NB, 1.0, [Best()])
    trial.results = {number: run_fold(NB, folds, number, 1.0, trial.rules) for number in (0, 2)}
    trial.score_rules(folds, "accuracy")
    by_fold = [accuracy(folds.truth(k), trial.results[k].predictions[0], folds.taxonomy) for k in (0, 2)]
    assert trial.by_fold(folds, "accuracy") == pytest.approx(by_fold)
    sizes = [folds.truth(k).shape[0] for k in (0, 2)]
    assert trial.score == pytest.approx(np.average(by_fold, weights=sizes))
    trial.score_rules(folds, "h_loss")
    assert trial.score <= 0  # a loss, so that higher is better


def test_a_rule_never_learns_from_the_documents_that_it_decides():
    asked = []

    class Watching:
        takes = "scores"

        def __init__(self, seen=frozenset()):
            self.seen = seen

        def fit(self, values, truth, taxonomy):
            return Watching(frozenset(values[:, 0]))

        def decide(self, values, taxonomy):
            assert not self.seen & set(values[:, 0])
            assert len(self.seen) + len(values) == 30
            asked.extend(values[:, 0])
            return csr_array((values[:, 0] % 2 == 0)[:, None])

    folds = make_folds(small_corpus(30), FLAT, 0, None)
    values = np.arange(30, dtype=np.float32)[:, None]
    predictions = cross_decide(Watching(), values, csr_array((30, 3), dtype=bool), folds)
    assert sorted(asked) == list(range(30))
    assert predictions.toarray().ravel().tolist() == [i % 2 == 0 for i in range(30)]  # in the order of the documents


@pytest.mark.parametrize("is_multi_label", [False, True])
@pytest.mark.parametrize("system", ["nb", "svm", "td-svm", "isotonic-svm", "h-svm"])
def test_the_rule_of_the_system_is_the_first_and_none_is_there_twice(system, is_multi_label):
    rules = rules_for(Candidate(system), is_multi_label, 1000)
    assert len({repr(rule) for rule in rules}) == len(rules)
    assert any(isinstance(rule, Best) for rule in rules)
    assert any(isinstance(rule, RCut) for rule in rules) == is_multi_label
    assert not any(map(needs_fitting, rules_for(Candidate(system), is_multi_label, MAX_SCORES + 1)))
    assert rules_for(Candidate(system), is_multi_label, MAX_SCORES + 1)


def test_a_rule_that_is_given_leaves_no_choice():
    given = SCut(fbr=0.5)
    assert rules_for(NB, True, 10, given) == [given]


def test_systems_that_cannot_take_the_documents_are_known_before_they_are_tried():
    texts = [f"text {i}" for i in range(20)]
    is_multi_label = make_folds(Corpus("memory", texts, [["a", "b"], ["b"], ["c"], ["a"]] * 5), FLAT, 0, None)
    assert "5 documents have no label or more than one" in problem_with(Candidate("hsvm"), is_multi_label)
    assert problem_with(NB, is_multi_label) is None


def test_one_class_is_refused_as_training_refuses_it():
    corpus = Corpus("memory", ["one", "two", "three"], [["a"], ["a"], ["a"]])
    with pytest.raises(LabelError) as by_hand:
        TextClassifier("nb", FLAT).fit(corpus.documents, corpus.labels)
    with pytest.raises(LabelError) as chosen:
        make_folds(corpus, FLAT, 0, None)
    assert str(chosen.value) == str(by_hand.value)


def test_too_few_documents_to_test_on_any_are_told():
    with pytest.raises(InputError, match="too few, or too similar"):
        make_folds(Corpus("memory", ["one", "two"], [["a"], ["b"]]), FLAT, 0, None)


def test_few_documents_have_fewer_folds():
    assert make_folds(small_corpus(4), FLAT, 0, None).n_folds < 5


# ---- how sure -----------------------------------------------------------------------------------------------------------


@given(arrays(np.float64, (3, 8), elements=st.sampled_from([0.0, 0.5, 1.0])))
def test_the_fraction_of_first_places_is_what_counting_them_gives(drawn):
    places = []
    for column in drawn.T:
        winners = [row for row in range(3) if column[row] == max(column)]
        places.append(1 / len(winners) if 0 in winners else 0.0)
    assert fraction_first(drawn) == pytest.approx(sum(places) / len(places))


def made_trial(candidate, right):
    """A finalist with right predictions to so many documents of every fold."""
    trial, folds = Trial(candidate, 1.0, [Best()]), make_folds(small_corpus(300), FLAT, 0, None)
    from ramify.workflows.tuning.trials import FoldResult

    for number in range(folds.n_folds):
        truth = folds.truth(number)
        rows = np.arange(truth.shape[0])
        given = np.where(rows < right, truth.indices, (truth.indices + 1) % 3)
        predictions = csr_array((np.ones(len(rows), dtype=bool), (rows, given)), shape=truth.shape)
        trial.results[number] = FoldResult({0: predictions}, {})
    trial.score_rules(folds, "micro_f1")
    return trial, folds


def test_a_lead_of_many_documents_is_sure_and_one_of_few_is_not():
    best, folds = made_trial(NB, 50)
    near, far = made_trial(Candidate("svm"), 50)[0], made_trial(Candidate("lr"), 20)[0]
    assert estimate_winning([best, far], folds, "micro_f1").probability > 0.99
    alike = estimate_winning([best, near], folds, "micro_f1")
    assert alike.probability == pytest.approx(0.5)  # equal in every resample
    assert (alike.lead, alike.low, alike.high) == (0, 0, 0)


def test_the_standard_error_is_that_of_a_share_of_documents():
    best, folds = made_trial(NB, 45)
    sure = estimate_winning([best], folds, "micro_f1")
    assert sure.standard_error == pytest.approx(np.sqrt(0.75 * 0.25 / 300), rel=0.15)
    assert (sure.documents, sure.lead) == (300, None)
