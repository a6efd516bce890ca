"""What trials are worth: rules that learn from others than they decide, scores, and how sure a choice is."""

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
from ramify.workflows.tuning.candidates import Candidate
from ramify.workflows.tuning.folds import MOST_TESTED, make_ground
from ramify.workflows.tuning.trials import (
    MOST_SCORES,
    Look,
    answers_of,
    has_to_learn,
    how_sure,
    problem_with,
    rules_for,
    share_first,
    try_out,
)

NB = Candidate("nb", (("alpha", 0.1),))


@pytest.fixture(scope="module")
def ground(shop):
    few = shop.train.take(range(0, len(shop.train), 4))
    return make_ground(few, shop.taxonomy, 0, None)


def test_a_document_is_never_learnt_from_and_tested_in_one_round(ground):
    tested = []
    for number in range(ground.n_folds):
        for share in (0.3, 1.0):
            learnt, asked = ground.positions(number, share)
            assert not set(learnt) & set(asked)
        assert len(learnt) + len(asked) == len(ground.corpus)
        tested += asked.tolist()
    assert sorted(tested) == list(range(len(ground.corpus)))


def test_fewer_documents_are_among_more():
    ground = make_ground(small_corpus(3000), FLAT, 0, None)
    few, more = (set(ground.positions(0, share)[0]) for share in (0.5, 1.0))
    assert few < more


def test_of_very_many_documents_only_some_are_tested():
    ground = make_ground(small_corpus(MOST_TESTED * 6), FLAT, 0, None)
    learnt, tested = ground.positions(0, 1.0)
    assert len(tested) == MOST_TESTED
    assert not (ground.fold[learnt] == 0).any()


def test_a_trial_answers_as_the_classifier_that_is_trained_by_hand(ground):
    learnt, tested = ground.positions(1, 1.0)
    candidate = NB.with_features((("stop_words", "english"),))
    tried = try_out(candidate, ground, 1, 1.0, [Best()])
    by_hand = TextClassifier(
        "nb", ground.taxonomy, learner=candidate.learner(), vectorizer=candidate.vectorizer(), calibrate=False
    ).fit(ground.corpus.take(learnt).documents, ground.corpus.take(learnt).labels)
    assert (tried.answers[0] != by_hand.predict_matrix(ground.corpus.take(tested).documents)).nnz == 0


def test_a_look_is_worth_what_its_answers_are(ground):
    look = Look(NB, 1.0, [Best()])
    look.folds = {number: try_out(NB, ground, number, 1.0, look.rules) for number in (0, 2)}
    look.judge(ground, "accuracy")
    by_fold = [accuracy(ground.truth(k), look.folds[k].answers[0], ground.taxonomy) for k in (0, 2)]
    assert look.by_fold(ground, "accuracy") == pytest.approx(by_fold)
    sizes = [ground.truth(k).shape[0] for k in (0, 2)]
    assert look.score == pytest.approx(np.average(by_fold, weights=sizes))
    look.judge(ground, "h_loss")
    assert look.score <= 0  # a loss, so that higher is better


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

    ground = make_ground(small_corpus(30), FLAT, 0, None)
    values = np.arange(30, dtype=np.float32)[:, None]
    answers = answers_of(Watching(), values, csr_array((30, 3), dtype=bool), ground)
    assert sorted(asked) == list(range(30))
    assert answers.toarray().ravel().tolist() == [i % 2 == 0 for i in range(30)]  # in the order of the documents


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("system", ["nb", "svm", "td-svm", "isotonic-svm", "h-svm"])
def test_the_rule_of_the_system_is_the_first_and_none_is_there_twice(system, several):
    rules = rules_for(Candidate(system), several, 1000)
    assert len({repr(rule) for rule in rules}) == len(rules)
    assert any(isinstance(rule, Best) for rule in rules)
    assert any(isinstance(rule, RCut) for rule in rules) == several
    assert not any(map(has_to_learn, rules_for(Candidate(system), several, MOST_SCORES + 1)))
    assert rules_for(Candidate(system), several, MOST_SCORES + 1)


def test_a_rule_that_is_given_leaves_no_choice():
    given = SCut(fbr=0.5)
    assert rules_for(NB, True, 10, given) == [given]


def test_systems_that_cannot_take_the_documents_are_known_before_they_are_tried(diamond):
    texts = [f"text {i}" for i in range(20)]
    graph = make_ground(Corpus("memory", texts, [["bottom"], ["left"]] * 10), diamond, 0, None)
    assert "td-svm" in problem_with(Candidate("td-svm"), graph)
    assert problem_with(Candidate("hr-svm"), graph) is None
    several = make_ground(Corpus("memory", texts, [["a", "b"], ["b"], ["c"], ["a"]] * 5), FLAT, 0, None)
    assert "5 documents have several labels" in problem_with(Candidate("hsvm"), several)
    assert problem_with(NB, several) is None


def test_one_class_is_refused_as_training_refuses_it():
    corpus = Corpus("memory", ["one", "two", "three"], [["a"], ["a"], ["a"]])
    with pytest.raises(LabelError) as by_hand:
        TextClassifier("nb", FLAT).fit(corpus.documents, corpus.labels)
    with pytest.raises(LabelError) as chosen:
        make_ground(corpus, FLAT, 0, None)
    assert str(chosen.value) == str(by_hand.value)


def test_too_few_documents_to_test_on_any_are_told():
    with pytest.raises(InputError, match="too few, or too much alike"):
        make_ground(Corpus("memory", ["one", "two"], [["a"], ["b"]]), FLAT, 0, None)


def test_few_documents_have_fewer_folds():
    assert make_ground(small_corpus(4), FLAT, 0, None).n_folds < 5


# ---- how sure -----------------------------------------------------------------------------------------------------------


@given(arrays(np.float64, (3, 8), elements=st.sampled_from([0.0, 0.5, 1.0])))
def test_the_share_of_first_places_is_what_counting_them_gives(drawn):
    places = []
    for column in drawn.T:
        winners = [row for row in range(3) if column[row] == max(column)]
        places.append(1 / len(winners) if 0 in winners else 0.0)
    assert share_first(drawn) == pytest.approx(sum(places) / len(places))


def made_look(candidate, right):
    """A finalist with right answers to so many documents of every fold."""
    look, ground = Look(candidate, 1.0, [Best()]), make_ground(small_corpus(300), FLAT, 0, None)
    from ramify.workflows.tuning.trials import Tried

    for number in range(ground.n_folds):
        truth = ground.truth(number)
        rows = np.arange(truth.shape[0])
        given = np.where(rows < right, truth.indices, (truth.indices + 1) % 3)
        answers = csr_array((np.ones(len(rows), dtype=bool), (rows, given)), shape=truth.shape)
        look.folds[number] = Tried({0: answers}, {})
    look.judge(ground, "micro_f1")
    return look, ground


def test_a_lead_of_many_documents_is_sure_and_one_of_few_is_not():
    best, ground = made_look(NB, 50)
    near, far = made_look(Candidate("svm"), 50)[0], made_look(Candidate("lr"), 20)[0]
    assert how_sure([best, far], ground, "micro_f1").first > 0.99
    alike = how_sure([best, near], ground, "micro_f1")
    assert alike.first == pytest.approx(0.5)  # equal in every resample
    assert (alike.ahead, alike.low, alike.high) == (0, 0, 0)


def test_the_standard_error_is_that_of_a_share_of_documents():
    best, ground = made_look(NB, 45)
    sure = how_sure([best], ground, "micro_f1")
    assert sure.error == pytest.approx(np.sqrt(0.75 * 0.25 / 300), rel=0.15)
    assert (sure.documents, sure.ahead) == (300, None)
