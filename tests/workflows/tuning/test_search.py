"""The search for what to train: what it tries, in which order, and that it ends in time."""

from dataclasses import replace

import numpy as np
import pytest
from fake_trials import Clock, Trials, new_search, run
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.errors import InputError
from ramify.systems import DEFAULT_SYSTEM, SYSTEMS
from ramify.workflows import FeatureOptions, TrainOptions
from ramify.workflows.tuning.candidates import TEXT_PRIORS, Candidate, Fixed, relative_cost
from ramify.workflows.tuning.evaluator import Timings
from ramify.workflows.tuning.search import final_round, propose

SVM, LR = Candidate("svm", (("C", 1.0),)), Candidate("lr", (("C", 10.0),))
SKILL = {"svm": 0.8, "lr": 0.85, "hr-lr": 0.9, "nb": 0.5}


def skill_of(candidate):
    """Systems differ, and each is best with some C."""
    return SKILL.get(candidate.system, 0.6) - 0.01 * abs(dict(candidate.params).get("C", 3.0) - 3.0)


# ---- what is proposed ---------------------------------------------------------------------------------------------------


def test_every_system_has_a_prior_whose_parameter_is_a_parameter_of_its_learner():
    assert set(TEXT_PRIORS) == set(SYSTEMS)
    for name, known in TEXT_PRIORS.items():
        if known.parameter is not None:
            assert known.parameter in SYSTEMS[name].learner().get_params()
            assert known.first in known.grid

        others = {name for change in (known.params, *known.variants) for name, _ in change}
        assert others <= set(SYSTEMS[name].learner().get_params())


def test_at_first_every_system_is_proposed_once_after_the_default_and_what_costs_little_for_its_merit_comes_first():
    proposed = propose(Fixed(), {}, ())
    assert sorted(each.system for each in proposed) == sorted(SYSTEMS)
    assert proposed[0] == Fixed().default == Candidate(DEFAULT_SYSTEM)
    worth = [TEXT_PRIORS[each.system].merit / relative_cost(each) for each in proposed[1:]]
    assert worth == sorted(worth, reverse=True)


@pytest.mark.parametrize(
    "fixed",
    [Fixed(), Fixed("svm"), Fixed("hr-svm", {"C": 2.0}, {"ngram_range": (1, 2)}), Fixed("nb", {}, {"characters": "3-4"})],
)
def test_the_default_is_what_is_trained_without_tuning_and_comes_first(fixed):
    options = TrainOptions(fixed.system, fixed.params, features=FeatureOptions(characters=fixed.features.get("characters")))
    by_hand, default = options.new_classifier(), propose(fixed, {}, ())[0]
    assert default == fixed.default
    assert default.learner().get_params() == by_hand.learner.get_params()
    if "ngram_range" not in fixed.features:
        assert repr(default.vectorizer()) == repr(by_hand.features)


def test_linear_systems_are_tried_with_characters_and_their_weights_and_naive_bayes_is_not():
    def characters(system, features=()):
        return {dict(each.features).get("characters") for each in Fixed().changes(Candidate(system, (), features))}

    assert characters("svm") == characters("path-svm") == {None, "3-4", "3-5", "2-4"}
    assert {"3-4:0.5", "3-4:2"} < characters("hr-svm", (("characters", "3-4"),))
    assert not [each for each in characters("svm", (("characters", "3-4:2"),)) if each.count(":") > 1]
    assert characters("nb") == characters("adaboost-mh") == {None}


@given(st.sampled_from(sorted(SYSTEMS)), st.data())
def test_whatever_is_proposed_can_be_made(system, data):
    fixed = Fixed(system)
    candidate = data.draw(st.sampled_from(fixed.starts()))
    for _ in range(2):
        others = [*fixed.steps(candidate), *fixed.changes(candidate)]
        candidate = data.draw(st.sampled_from(others)) if others else candidate
    assert candidate.learner().get_params().items() >= dict(candidate.params).items()
    candidate.vectorizer().check_settings()


def test_steps_and_changes_start_from_the_best_of_a_system():
    better = SVM.with_params((("C", 3.0),))
    proposed = propose(Fixed("svm"), {SVM: 0.5, better: 0.6}, ())
    assert better.with_params((("C", 10.0),)) in proposed
    assert SVM.with_params((("C", 0.3),)) not in proposed
    assert better.with_features((("stop_words", "english"),)) in proposed
    assert better not in proposed


def test_a_system_far_behind_is_left_as_it_is():
    proposed = propose(Fixed(), {SVM: 0.5, LR: 0.9}, ())
    assert not [each for each in proposed if each.system == "svm"]
    assert [each for each in proposed if each.system == "lr"]


def test_vectors_have_no_features_to_choose():
    assert not [each for each in propose(Fixed(has_texts=False), {SVM: 0.5}, ()) if each.features]


def test_what_the_user_said_is_not_chosen():
    fixed = Fixed("svm", {"C": 2.0}, {"ngram_range": (1, 2), "min_df": 3})
    (start,) = fixed.starts()
    assert dict(start.params) == {"C": 2.0}
    for other in propose(fixed, {start: 0.5}, ()):
        assert other.system == "svm"
        assert dict(other.params)["C"] == 2.0
        assert dict(other.features)["min_df"] == 3
        assert dict(other.features)["ngram_range"] in ((1, 2), (1, 3))


def test_hashed_words_are_not_counted_in_documents():
    fixed = Fixed("svm", {}, {"hashing": 1024})
    for other in fixed.changes(fixed.starts()[0]):
        assert "min_df" not in dict(other.features)
        other.vectorizer().check_settings()


def test_parameters_without_their_system_are_refused():
    with pytest.raises(InputError, match="name the system"):
        Fixed(params={"C": 1.0}).check()


@given(st.dictionaries(st.sampled_from(["svm", "lr", "nb", "td-svm"]), st.floats(0, 1), min_size=1), st.randoms())
def test_the_same_scores_give_the_same_order_however_they_came(scores, random):
    known = [(start, scores[start.system]) for start in Fixed().starts() if start.system in scores]
    first = propose(Fixed(), dict(known), ())
    random.shuffle(known)
    assert set(propose(Fixed(), dict(known), ())) == set(first)
    assert len(set(first)) == len(first)


# ---- time ---------------------------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(
    seconds=st.floats(5, 400),
    speed=st.floats(0.01, 20),
    last=st.floats(0, 3),
    slow=st.dictionaries(st.sampled_from(sorted(SYSTEMS)), st.floats(1, 300), max_size=4),
)
def test_a_search_never_ends_late_whatever_trials_take(seconds, speed, last, slow):
    clock = Clock()
    search = new_search(Trials(clock, speed, skill_of, slow), seconds, last=last)
    try:
        run(search)
    except InputError as error:
        assert "give more time" in str(error)
    else:
        # one step of a kernel may still be under way when time is up
        longest = max(speed * relative_cost(each) * slow.get(each.system, 1) for each in Fixed().starts()) / 10
        assert clock.now + last <= search.evaluator.budget.end + longest
        assert search.finalists


@pytest.mark.parametrize("last", [5.0, 30.0, 45.0])
def test_what_does_not_fit_is_never_begun(last):
    clock = Clock()
    trials = Trials(clock, speed=1.0, skill=skill_of)
    search = run(new_search(trials, seconds=60, last=last))
    assert "hblr" not in trials.names  # 60 timings as long as flat SVMs
    assert "hblr" in [candidate.system for candidate, _ in search.untried()]
    assert not search.evaluator.slow  # so nothing was started that had to be broken off
    assert clock.now <= search.evaluator.budget.end - last


def test_time_is_reserved_for_the_slower_of_the_best_and_the_default():
    clock = Clock()
    search = new_search(Trials(clock, speed=0.1, skill=skill_of), seconds=60)
    search.reserve = lambda trial: 30.0 if trial.candidate == search.fixed.default else 1.0
    run(search)
    assert search.finalists[0].candidate != search.fixed.default
    assert clock.now <= search.evaluator.budget.end - 30


def test_a_trial_that_takes_much_longer_than_was_thought_is_broken_off_and_the_search_goes_on():
    clock = Clock()
    trials = Trials(clock, speed=1.0, skill=skill_of, slow={"hr-svm": 100.0})
    search = run(new_search(trials, seconds=1000))
    (slow,) = search.evaluator.slow
    assert slow.system == "hr-svm"
    assert slow not in search.trials
    assert slow in [candidate for candidate, _ in search.untried()]
    assert {"lr", DEFAULT_SYSTEM} <= {candidate.system for candidate in search.trials}
    assert len([name for name in trials.names if name.startswith("hr-svm")]) == 1


def test_with_time_enough_the_speed_of_the_computer_changes_nothing():
    orders = []
    for speed in (0.01, 0.03):
        trials = Trials(Clock(), speed, skill_of)
        search = run(new_search(trials, seconds=10_000))
        orders.append([each[:3] for each in trials.began])
        assert str(search.finalists[0].candidate).startswith("hr-lr C=3 ")
        assert not search.untried()
    assert orders[0] == orders[1]


def test_more_time_never_means_fewer_trials():
    counts = []
    for seconds in (30, 100, 300, 3000):
        search = run(new_search(Trials(Clock(), 1.0, skill_of), seconds))
        counts.append(len(search.trials))
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_of_equals_the_first_that_was_tried_wins():
    search = run(new_search(Trials(Clock(), 0.01), seconds=1000, fixed=Fixed("svm")))
    assert search.finalists[0].candidate == next(iter(search.trials))


def test_time_that_is_gone_after_reading_is_told_before_anything_long_begins():
    clock = Clock()
    search = new_search(Trials(clock, speed=300.0), seconds=50, n=60_000)
    with pytest.raises(InputError, match="the fastest system here, would take about .* give more time"):
        run(search)
    assert clock.now <= search.evaluator.budget.end


def test_where_there_is_time_for_no_more_the_pilot_trials_are_all_there_is():
    trials = Trials(Clock(), speed=50.0, skill=skill_of)
    search = run(new_search(trials, seconds=60, last=25.0))
    assert search.trials == search.pilots
    assert search.finalists[0].candidate in search.pilots


def test_finalists_are_compared_on_the_same_folds_and_are_not_all_of_one_system():
    search = run(new_search(Trials(Clock(), 0.01, skill_of), seconds=1000, n=30_000))
    folds = {tuple(sorted(trial.results)) for trial in search.finalists}
    assert folds == {tuple(range(5))}
    systems = [trial.candidate.system for trial in search.finalists]
    assert all(systems.count(system) <= 2 for system in systems)


@pytest.mark.parametrize("skill", [0.2, 0.95])
def test_the_default_takes_part_in_the_final_round_however_good_it_is(skill):
    search = run(new_search(Trials(Clock(), 0.01, lambda each: skill_of(each) if each.system != "nb" else skill), 1000))
    default = [trial for trial in search.finalists if trial.candidate == search.fixed.default]
    assert [set(trial.results) for trial in default] == [set(search.finalists[0].results)]


def test_with_little_time_the_final_round_is_between_the_best_and_the_default():
    search = run(new_search(Trials(Clock(), 1.0, skill_of), seconds=60, last=20.0))
    assert search.fixed.default in [trial.candidate for trial in search.finalists]


def test_values_for_fitting_rules_are_stored_for_possible_finalists():
    trials = Trials(Clock(), 0.01, skill_of)

    def run_fold(*given):
        made = trials(*given)
        return replace(made, values={"scores": np.zeros((1, 1), dtype=np.float32)})

    search = new_search(trials, seconds=1000, n=30_000)
    search.evaluator.run = run_fold
    run(search)
    finalists = {
        candidate for candidate, trial in search.trials.items() if all(result.values for result in trial.results.values())
    }
    assert finalists == {trial.candidate for trial in search.finalists}


def test_a_finalist_that_is_broken_off_is_out():
    clock = Clock()
    trials = Trials(clock, 0.01, skill_of)

    def run_fold(candidate, folds, number, fraction, rules):
        if candidate.system == "hr-lr" and number > 0:
            clock.work(50, steps=1000)
        return trials(candidate, folds, number, fraction, rules)

    search = new_search(trials, seconds=1000, n=30_000)
    search.evaluator.run = run_fold
    run(search)
    assert search.ranked()[0].candidate.system == "hr-lr"
    assert "hr-lr" not in {trial.candidate.system for trial in search.finalists}
    assert set(search.finalists[0].results) == set(range(5))


def test_finalists_that_were_broken_off_on_different_folds_are_compared_on_their_common_folds():
    clock = Clock()
    trials = Trials(clock, 0.01, skill_of)
    search = new_search(trials, seconds=1000, n=30_000)
    evaluator = search.evaluator
    svm, lr = (evaluator.evaluate(each, [0], 1.0, evaluator.budget.end) for each in (SVM, LR))

    def run_fold(candidate, folds, number, fraction, rules):
        if number == {"svm": 1, "lr": 2}[candidate.system]:
            raise InputError("no more")
        return trials(candidate, folds, number, fraction, rules)

    evaluator.run = run_fold
    found = final_round(evaluator, [svm, lr], 0.0, lambda *_: None)
    assert [sorted(trial.results) for trial in found] == [[0], [0]]
    assert len({trial.predictions.shape for trial in found}) == 1


def test_trials_train_on_some_of_very_many_documents():
    search = run(new_search(Trials(Clock(), 60.0, skill_of), seconds=300, n=60_000))
    assert search.fraction < 1
    assert 10_000 <= len(search.evaluator.folds.positions(0, search.fraction)[0]) < 48_000


def test_systems_that_cannot_take_the_documents_are_refused_and_nothing_else():
    clock = Clock()
    trials = Trials(clock, 0.01, skill_of)

    def run_fold(candidate, *others):
        if candidate.system != "nb":
            raise InputError(f"{candidate.system} cannot")
        return trials(candidate, *others)

    search = new_search(trials, seconds=1000)
    search.evaluator.run = run_fold
    run(search)
    assert {trial.candidate.system for trial in search.finalists} == {"nb"}
    assert {candidate.system for candidate in search.evaluator.refused} == set(SYSTEMS) - {"nb"}


def test_where_nothing_can_take_the_documents_the_reason_is_told():
    def run_fold(*_):
        raise InputError("no negative values, please.")

    search = new_search(Trials(Clock()), seconds=100)
    search.evaluator.run = run_fold
    with pytest.raises(InputError, match="no negative values"):
        run(search)


# ---- predictions --------------------------------------------------------------------------------------------------------


def test_a_system_is_timed_by_itself_once_it_was_tried():
    timings = Timings()
    timings.add(SVM, 1000, 1.0)
    by_others = timings.predict(LR, 1000)
    timings.add(LR, 1000, 100.0)
    assert timings.predict(LR, 1000) == 100.0
    assert by_others < 50
    assert timings.predict(LR.with_params((("C", 30.0),)), 1000) > 100.0
    assert timings.predict(LR, 2000) > 200.0
