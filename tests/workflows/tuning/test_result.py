"""The result of tuning: the default is kept unless another candidate is clearly ahead of it, and sentences say by how much."""

import json
from dataclasses import replace

import numpy as np
import pytest
from fake_trials import Clock, Trials, new_search, run
from scipy.sparse import csr_array

from ramify.decisions import Best, RCut
from ramify.workflows.tuning import result
from ramify.workflows.tuning.candidates import Fixed
from ramify.workflows.tuning.result import command_options, describe_tuning, make_result
from ramify.workflows.tuning.trials import FoldResult, Trial

DEFAULT = Fixed().default


def result_of(skill, seconds=1000, **settings):
    """The winner and the result of a search in which candidates have these fractions of right predictions."""
    search = run(new_search(Trials(Clock(), 0.01, skill), seconds, **settings))
    return make_result(search, 0, seconds)


def skill_of(others, default=0.7):
    return lambda candidate: default if candidate == DEFAULT else others.get(candidate.system, 0.3)


def text_of(tuning):
    return " ".join(describe_tuning(tuning, has_holdout=True))


def test_a_candidate_clearly_ahead_of_the_default_wins_and_its_lead_is_told():
    winner, tuning = result_of(skill_of({"svm": 0.9}))
    assert winner.candidate.system == tuning.candidate.system == "svm"
    assert not tuning.keeps_default
    assert (tuning.default.settings, tuning.default.score) == (str(DEFAULT), pytest.approx(0.7))
    assert tuning.default.winning.lead == pytest.approx(0.2)
    assert 0 < tuning.default.winning.low < 0.2 < tuning.default.winning.high
    assert "It is 0.200 ahead of the default, path-svm decided by best (95% interval +0." in text_of(tuning)
    assert "The default is as good" not in text_of(tuning)


class RightElsewhere(Trials):
    """The right predictions of the default are those of other documents than the right predictions of the others."""

    def __call__(self, candidate, folds, number, *others):
        made = super().__call__(candidate, folds, number, *others)
        if candidate != DEFAULT:
            return made
        truth = folds.truth(number)
        rows, n_wrong = np.arange(truth.shape[0]), truth.shape[0] - round(self.skill(candidate) * truth.shape[0])
        columns = np.where(rows >= n_wrong, truth.indices, (truth.indices + 1) % 3)
        given = csr_array((np.ones(len(rows), dtype=bool), (rows, columns)), shape=truth.shape)
        return replace(made, predictions=dict.fromkeys(made.predictions, given))


def test_the_default_is_kept_where_another_is_ahead_by_chance():
    search = run(new_search(RightElsewhere(Clock(), 0.01, skill_of({"svm": 0.72})), 1000))
    winner, tuning = make_result(search, 0, 1000)
    assert tuning.trials[0].system == "svm"  # which has the highest score
    assert tuning.default.winning.lead > 0 >= tuning.default.winning.low
    assert winner.candidate == tuning.candidate == DEFAULT
    assert tuning.keeps_default
    assert "The default is as good: path-svm, decided by best: micro F1 0.700" in text_of(tuning)
    assert "that may be chance" in text_of(tuning)
    assert "Winner" not in text_of(tuning)
    assert command_options(tuning) == "--system path-svm"


def test_the_default_is_kept_where_another_is_ahead_by_very_little(monkeypatch):
    monkeypatch.setattr(result, "LEAST_LEAD", 0.25)
    winner, tuning = result_of(skill_of({"svm": 0.9}))
    assert winner.candidate == DEFAULT
    assert tuning.default.winning.low > 0
    assert "that is too little" in text_of(tuning)


def test_a_default_that_is_the_best_is_kept_and_the_next_is_behind():
    winner, tuning = result_of(skill_of({"svm": 0.5}))
    assert winner.candidate == DEFAULT
    assert tuning.default.winning.lead < 0
    assert "is 0.200 behind it" in text_of(tuning)


def test_with_nothing_to_compare_the_default_with_it_is_kept():
    only = Fixed("hblr", priors={}, has_texts=False)
    search = run(new_search(Trials(Clock(), 0.01), 1000, fixed=only))
    _, tuning = make_result(search, 0, 1000)
    assert tuning.keeps_default
    assert tuning.default.winning is None
    assert "No other candidate was compared with it." in text_of(tuning)


def test_the_default_has_its_own_rule_and_may_lose_to_itself_with_a_better_one():
    search = run(new_search(Trials(Clock(), 0.01, skill_of({})), 1000))
    trial = Trial(DEFAULT, 1.0, [Best(), RCut(k=1)])
    for number in range(5):
        own, other = (
            Trials(Clock(), 0.01, lambda _, skill=skill: skill)(DEFAULT, search.evaluator.folds, number, 1.0, trial.rules)
            for skill in (0.5, 0.9)
        )
        trial.results[number] = FoldResult({0: own.predictions[0], 1: other.predictions[1]}, {})
    trial.score_rules(search.evaluator.folds, "micro_f1")
    search.finalists = [trial]
    winner, tuning = make_result(search, 0, 1000)
    assert (winner.candidate, winner.place, tuning.is_own_rule) == (DEFAULT, 1, False)
    assert (tuning.default.rule, tuning.default.score) == ("best", pytest.approx(0.5))
    assert (tuning.default.best, tuning.default.best_rule) == (str(DEFAULT), "rcut")
    assert tuning.default.winning.lead == pytest.approx(0.4)


def test_without_a_trial_of_the_default_that_is_told():
    search = run(new_search(Trials(Clock(), 0.01, skill_of({"svm": 0.9})), 1000))
    search.finalists = [trial for trial in search.finalists if trial.candidate != DEFAULT]
    winner, tuning = make_result(search, 0, 1000)
    assert tuning.default is None
    assert winner is search.finalists[0]
    assert "There was no time to compare it with the default." in text_of(tuning)


def test_the_result_is_plain_json_and_says_what_is_missing():
    _, tuning = result_of(skill_of({"svm": 0.9}))
    facts = json.loads(json.dumps(tuning.as_dict()))
    assert facts["keeps_default"] is False
    assert facts["default"]["winning"]["lead"] == pytest.approx(0.2)
    assert facts["lacks_calibration"] is False
    assert "--risk" not in text_of(tuning)
    assert "no time to calibrate probabilities" in text_of(replace(tuning, lacks_calibration=True))


def test_a_union_is_written_as_options_of_the_command():
    _, tuning = result_of(lambda each: 0.9 if "3-5" in str(each) else 0.7)
    assert "--characters 3-5" in command_options(tuning)
