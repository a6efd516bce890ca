"""Parameters of a system's parts by name."""

import pickle

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from some_texts import LABELS, TEXTS

import ramify
from ramify import TextClassifier
from ramify.decisions import TopDown
from ramify.errors import InputError
from ramify.features import Vectorizer
from ramify.learners import OneVsRestSVM


@pytest.mark.parametrize("name", ["C", "learner__C"])
@pytest.mark.parametrize(
    "given", [TextClassifier("svm"), TextClassifier("svm", learner=OneVsRestSVM())], ids=["system", "part"]
)
def test_a_search_sets_parameters_of_the_learner(name, given):
    search = GridSearchCV(given, {name: [0.3, 0.7]}, cv=2).fit(TEXTS, LABELS)
    assert search.best_params_ == {name: 0.3}
    assert search.best_estimator_.learner_.C == 0.3
    assert given.get_params()["learner__C"] != 0.3


def test_a_search_sets_parameters_of_features_and_rule():
    grid = {"features__ngram_range": [(1, 2)], "decision__threshold": [-0.5]}
    for given in (TextClassifier("h-svm"), TextClassifier("h-svm", features=Vectorizer(), decision=TopDown())):
        best = GridSearchCV(given, grid, cv=2).fit(TEXTS, LABELS).best_estimator_
        assert best.vectorizer_.ngram_range == (1, 2)
        assert best.decision_ == TopDown(threshold=-0.5)
        assert "red apple" in best.vectorizer_.terms_


def test_a_search_may_go_over_systems_and_their_parameters():
    grid = [{"system": ["nb"], "alpha": [0.1]}, {"system": ["svm"], "C": [0.3]}]
    search = GridSearchCV(TextClassifier(), grid, cv=2).fit(TEXTS, LABELS)
    assert search.cv_results_["params"] == [{"system": "nb", "alpha": 0.1}, {"system": "svm", "C": 0.3}]


def test_parameters_by_name_survive_clone_pickle_and_repr():
    given = TextClassifier("svm", params={"C": 0.3})
    assert repr(given) == "TextClassifier(params={'C': 0.3}, system='svm')"
    for made in (clone(given), pickle.loads(pickle.dumps(given))):
        assert made.get_params()["learner__C"] == 0.3
        assert made.fit(TEXTS, LABELS).learner_.C == 0.3
    assert clone(given).set_params(learner__C=2).params == {"learner__C": 2}
    assert given.params == {"C": 0.3}


def test_a_model_that_was_loaded_has_the_parameters_that_were_set(tmp_path):
    TextClassifier("svm", params={"C": 0.3, "ngram_range": (1, 2)}).fit(TEXTS, LABELS).save(tmp_path / "model")
    again = clone(ramify.load(tmp_path / "model")).fit(TEXTS, LABELS)
    assert (again.learner_.C, again.vectorizer_.ngram_range) == (0.3, (1, 2))


def test_deep_parameters_are_those_of_the_parts():
    found = TextClassifier("nb").get_params()
    assert (found["learner__alpha"], found["features__weighting"], found["decision__leaves_only"]) == (1.0, "counts", False)
    assert "learner__taxonomy" not in found
    assert "learner__alpha" not in TextClassifier("nb").get_params(deep=False)
    assert TextClassifier("no such system").get_params()["system"] == "no such system"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"learner__Cc": 1}, "'learner__Cc' is not a parameter of TextClassifier.'svm'.. Did you mean 'learner__C'"),
        ({"looss": 1}, "'looss' is not a parameter.*Did you mean 'loss'"),
        ({"sytem": 1}, "'sytem' is not a parameter.*Did you mean 'system'"),
        ({"features__ngrams": 2}, "'features__ngrams' is not a parameter.*Did you mean 'features__ngram_range'"),
        ({"decision__treshold": 2}, "'decision__treshold' is not a parameter.*Did you mean 'decision__threshold'"),
    ],
)
def test_an_unknown_parameter_is_refused_with_what_is_meant(params, message):
    with pytest.raises(InputError, match=message):
        TextClassifier("svm").set_params(**params)
    with pytest.raises(InputError, match=message):
        TextClassifier("svm", params=params).fit(TEXTS, LABELS)


def test_a_parameter_of_two_parts_needs_the_name_of_one():
    with pytest.raises(InputError, match="'weights' is a parameter of features and decision; write features__weights or"):
        TextClassifier(decision=ramify.decisions.IsotonicSmooth()).set_params(weights=None)


def test_a_parameter_that_the_rule_in_use_does_not_have_is_refused():
    with pytest.raises(InputError, match="rule 'best', which decides here, has no parameter 'threshold'; it has leaves_only"):
        TextClassifier("svm").set_params(decision__threshold=0.5).fit(TEXTS, LABELS)
    several = [[label, "drink/tea"] for label in LABELS]
    fitted = TextClassifier("svm").set_params(decision__threshold=0.5).fit(TEXTS, several)
    assert (fitted.decision_.kind, fitted.decision_.threshold) == ("gcut", 0.5)


@pytest.mark.parametrize("params", [1, [("C", 1)], {1: 2}])
def test_params_are_a_dictionary_of_names(params):
    with pytest.raises(InputError, match="params"):
        TextClassifier("svm", params=params).fit(TEXTS, LABELS)


@pytest.mark.parametrize("wrong", ["svn", "SVM", "Svm"])
def test_a_mistyped_system_is_suggested(wrong):
    with pytest.raises(InputError, match=f"system '{wrong}' is unknown.*Did you mean 'svm'"):
        TextClassifier(wrong).fit(TEXTS, LABELS)
