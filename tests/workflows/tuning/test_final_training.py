"""The last training: in the best mode for which there is time, and never without a model."""

import pytest
from fake_trials import FLAT, Clock, small_corpus

from ramify.classifier import TextClassifier
from ramify.decisions import Best
from ramify.errors import InputError
from ramify.parallel import check_deadline
from ramify.workflows.training import split_train_test
from ramify.workflows.tuning import final_training
from ramify.workflows.tuning.candidates import Candidate
from ramify.workflows.tuning.evaluator import TimeBudget, Timings
from ramify.workflows.tuning.final_training import QUICKEST, FinalTraining, TrainingMode
from ramify.workflows.tuning.trials import Trial

C = (("C", 3.0),)
SVM, HR_SVM, NB = (Trial(Candidate(name, params), 1.0, [Best()]) for name, params in (("svm", C), ("hr-svm", C), ("nb", ())))


@pytest.fixture
def clock():
    return Clock()


def new_finish(clock, seconds, each=1.0, refit=True, share=0.2):
    """A finish of 300 documents, of which machines take so many seconds, and naive Bayes a tenth of them."""
    timings = Timings()
    timings.add(SVM.candidate, 300, each)
    timings.add(HR_SVM.candidate, 300, each)
    timings.add(NB.candidate, 300, each / 10)
    parts = split_train_test(TextClassifier(taxonomy=FLAT), small_corpus(), None, holdout=share, seed=0, more=None)
    return FinalTraining(parts, refit, TimeBudget(seconds, clock.now, clock), timings)


@pytest.fixture
def trainings(monkeypatch, clock):
    """What was trained, and in which mode; and how long each takes, with calibration so many timings as long."""
    real_part, real_all, done, seconds = (
        final_training.train_on_part,
        final_training.train_on_all,
        [],
        {"svm": 1.0, "hr-svm": 1.0, "nb": 0.1, "times": 6},
    )

    def watched(real):
        def train(parts, *more):
            made = parts.classifier
            done.append((made.system, TrainingMode(getattr(made.learner, "tol", 0) < 0.01, made.calibrate), real is real_all))
            clock.work(seconds[made.system] * (seconds["times"] if made.calibrate else 1), steps=10_000)
            check_deadline()
            return real(parts, *more)

        return train

    monkeypatch.setattr(final_training, "train_on_part", watched(real_part))
    monkeypatch.setattr(final_training, "train_on_all", watched(real_all))
    return done, seconds


def test_with_time_enough_it_is_trained_accurately_calibrated_and_on_everything(clock, trainings):
    trial, trained = new_finish(clock, 500).run(SVM, [SVM, NB])
    assert trial is SVM
    assert trained.refitted
    assert [mode for _, mode, _ in trainings[0]] == [TrainingMode(True, True)] * 2
    assert trained.classifier.learner_.C == 3.0


def test_with_little_time_it_is_trained_loosely_and_still_calibrated(clock, trainings):
    trainings[1]["times"] = 1.5
    finish = new_finish(clock, 100)
    enough = finish.reserve(HR_SVM)
    _, trained = new_finish(clock, enough).run(HR_SVM, [HR_SVM, NB])
    assert [mode for _, mode, _ in trainings[0]] == [TrainingMode(False, True)] * 2
    assert trained.classifier.calibration_ is not None
    assert trained.classifier.guarantee_ is not None


def test_flat_classifiers_are_calibrated_without_further_trainings(clock):
    finish = new_finish(clock, 100, refit=False)
    quickest = finish.cost(SVM, QUICKEST) - final_training.OVERHEAD
    assert finish.cost(SVM, TrainingMode(False, True)) - final_training.OVERHEAD == pytest.approx(1.3 * quickest, rel=0.01)
    quickest = finish.cost(HR_SVM, QUICKEST) - final_training.OVERHEAD
    assert finish.cost(HR_SVM, TrainingMode(False, True)) - final_training.OVERHEAD > 5 * quickest


def test_flat_classifiers_are_calibrated_where_there_is_time_for_two_trainings(clock, trainings):
    trainings[1]["times"] = 1.5
    _, trained = new_finish(clock, 12).run(SVM, [SVM])
    assert trained.classifier.calibration_ is not None


def test_with_too_little_time_it_is_trained_loosely_and_not_calibrated(clock, trainings):
    _, trained = new_finish(clock, 8).run(SVM, [SVM, NB])
    assert [mode for _, mode, _ in trainings[0]] == [QUICKEST, QUICKEST]
    assert trained.classifier.calibration_ is None
    assert trained.report is not None


def test_what_took_too_long_is_trained_in_a_quicker_way(clock, trainings):
    trainings[1]["times"] = 1000.0
    finish = new_finish(clock, 60)
    _, trained = finish.run(SVM, [SVM])
    assert trainings[0][0][1].calibrated
    assert trainings[0][1][1] == QUICKEST
    assert clock.now <= finish.budget.end
    assert trained.report is not None


def test_where_the_best_cannot_be_trained_the_best_quick_one_is(clock, trainings):
    trainings[1]["svm"] = 1000.0
    finish = new_finish(clock, 12)
    trial, trained = finish.run(SVM, [SVM, NB])
    assert trial is NB
    assert trained.classifier.system == "nb"
    assert clock.now <= finish.budget.end


def test_where_there_is_no_time_for_all_documents_the_model_of_the_report_stays(clock, trainings, monkeypatch):
    watched = final_training.train_on_all

    def slower(*given):
        clock.work(1000, steps=1000)
        return watched(*given)

    monkeypatch.setattr(final_training, "train_on_all", slower)
    _, trained = new_finish(clock, 60).run(SVM, [SVM, NB])
    assert not trained.refitted
    assert trained.report is not None
    assert trained.classifier.figures_["tested_on"] == trained.tested_on


def test_where_nothing_can_be_trained_that_is_told(clock, trainings):
    trainings[1].update(svm=1e4, nb=1e4)
    with pytest.raises(InputError, match="no system could be trained within 12.0 s"):
        new_finish(clock, 12).run(SVM, [SVM, NB])


def test_what_is_kept_back_is_enough_for_the_quickest_way(clock):
    finish = new_finish(clock, 100)
    assert finish.reserve(SVM) > 2 * finish.cost(SVM, QUICKEST)
    assert finish.cost(SVM, QUICKEST) < finish.cost(SVM, TrainingMode(False, True)) < finish.cost(SVM, TrainingMode(True, True))
    assert new_finish(clock, 100, refit=False).cost(SVM, QUICKEST) < finish.cost(SVM, QUICKEST)
