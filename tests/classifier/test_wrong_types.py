"""Arguments of a wrong type end in one sentence that says what was found and what to give."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import ramify
from ramify import TextClassifier
from ramify.decisions import Best
from ramify.errors import InputError, LabelError, RamifyError
from ramify.features import Vectorizer
from ramify.learners import MultinomialNaiveBayes

TEXTS = ["red apple", "green pear", "old phone", "new tv"] * 5
LABELS = ["food > apple", "food > pear", "tech > phone", "tech > tv"] * 5
NOT_ITERABLE = [None, 1, 1.5, float("nan"), object(), lambda: 0, np.array(1)]
NO_LIST = [*NOT_ITERABLE, "a", b"a"]
MASKED = np.ma.array(LABELS, mask=[0, 1, *[0] * 18])


def short(value):
    return type(value).__name__ + (repr(value) if isinstance(value, (int, float, str, bytes)) else "")


def refuse(call, *words):
    """Call, and check that it is refused in one line that holds some words."""
    with pytest.raises(RamifyError) as caught:
        call()
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert all(word in message for word in words), message


def fit(X=TEXTS, y=LABELS, **settings):
    return TextClassifier(**{"system": "nb", **settings}).fit(X, y)


@pytest.fixture(scope="module")
def fitted():
    return fit()


@pytest.mark.parametrize("wrong", NO_LIST, ids=short)
@pytest.mark.parametrize("system", ["nb", "path-svm"])
def test_what_is_no_list_of_texts_is_not_trained_on(system, wrong):
    refuse(lambda: fit(X=wrong, system=system), "a list of texts is needed")
    refuse(lambda: fit(X=wrong, system=system, keep_back=0.2), "a list of texts is needed")


@pytest.mark.parametrize("wrong", NO_LIST, ids=short)
def test_what_is_no_list_of_texts_is_not_classified(fitted, wrong):
    for call in (fitted.predict, fitted.predict_proba, fitted.predict_matrix):
        refuse(lambda call=call: call(wrong), "a list of texts is needed")
    refuse(lambda: fit().partial_fit(wrong, LABELS), "a list of texts is needed")


def test_a_vectorizer_refuses_what_is_no_list_of_texts():
    for vectorizer in (Vectorizer(), Vectorizer(hashing=64)):
        refuse(lambda vectorizer=vectorizer: vectorizer.fit_transform(1), "a list of texts is needed, not 1.")


@pytest.mark.parametrize("wrong", NO_LIST[1:], ids=short)
def test_what_is_no_list_of_labels_is_not_trained_on(fitted, wrong):
    refuse(lambda: fit(y=wrong), "a list of labels, one entry per document, is needed")
    refuse(lambda: fitted.score(TEXTS, wrong), "a list of labels")
    refuse(lambda: fit().partial_fit(TEXTS, wrong), "a list of labels")
    refuse(lambda: fitted.fit_guarantee(TEXTS, wrong), "a list of labels")


def test_one_string_of_labels_is_told_to_go_in_brackets():
    with pytest.raises(LabelError, match="not one string; put it in brackets"):
        fit(y="food > apple")


@pytest.mark.parametrize("wrong", [MASKED, [object()] * 20, [np.array(1)] * 20, [b"a"] * 20], ids=short)
def test_a_label_that_is_no_string_names_its_document(wrong):
    refuse(lambda: fit(y=wrong), "document ", "labels are names or paths, as strings.")


@pytest.mark.parametrize(
    ("name", "wrong", "found"),
    [
        ("system", [], "system is a list of length 0; give the name of one"),
        ("system", {"a": 1}, "system is a dict of length 1; give the name of one"),
        ("system", np.array([1]), "system is an array of shape (1,); give the name of one"),
        ("taxonomy", "\ud800", r"path is '\ud800', which no file can be called"),
        ("taxonomy", "a\0b", "which no file can be called"),
        ("features", 1, "features is 1; give a vectorizer, such as ramify.features.Vectorizer(), or a list of them."),
        ("features", {}, "features is a dict of length 0; give a vectorizer"),
        ("features", Vectorizer, "features is the class Vectorizer; give a vectorizer"),
        ("features", MultinomialNaiveBayes(), "features is a MultinomialNaiveBayes, which turns no texts into features"),
        ("features", [1], "give a list of vectorizers"),
        ("features", [Vectorizer], "features"),
        ("learner", 1, "learner is 1; give a learner of ramify.learners"),
        ("learner", [], "learner is a list of length 0; give a learner"),
        ("learner", Vectorizer(), "learner is a Vectorizer; give a learner"),
        ("learner", MultinomialNaiveBayes, "learner is the class MultinomialNaiveBayes; give a learner"),
        ("decision", 1, "decision is 1; give a rule of ramify.decisions, such as Best()."),
        ("decision", "best", "decision is 'best'; give a rule"),
        ("decision", Best, "decision is the class Best; give a rule"),
        ("selector", 1, "selector is 1; give a ramify.features.TermSelector."),
        ("selector", {}, "selector is a dict of length 0"),
        ("separator", 1, "separator is 1; give a string, or None."),
        ("separator", [], "separator is a list of length 0; give a string, or None."),
        ("separator", b"/", "separator is b'/'; give a string, or None."),
        ("separator", "\ud800", r"separator is '\ud800', a lone surrogate, which is not valid text"),
        ("calibrate", "no", "calibrate is 'no'; give True or False."),
        ("calibrate", None, "calibrate is None; give True or False."),
        ("calibrate", 1, "calibrate is 1; give True or False."),
        ("keep_training_data", "a", "keep_training_data is 'a'; give True or False."),
    ],
    ids=short,
)
def test_a_parameter_of_a_wrong_type_is_refused_at_fit_and_not_before(name, wrong, found):
    made = TextClassifier(**{"system": "nb", name: wrong})
    assert getattr(made, name) is wrong
    refuse(lambda: made.fit(TEXTS, LABELS), found)


def test_a_flag_of_numpy_is_a_flag():
    assert fit(calibrate=np.False_, keep_training_data=np.True_).training_data_ is not None
    assert clone(TextClassifier(calibrate="no")).calibrate == "no"


def test_another_rule_is_refused_if_it_is_none(fitted):
    with pytest.raises(InputError, match="decision is 'best'; give a rule"):
        fitted.redecided("best")


@pytest.mark.parametrize("wrong", [None, 1, 1.5, [], {}, b"a", object(), csr_array((2, 2)), iter("a")], ids=short)
def test_what_is_no_path_is_neither_loaded_nor_saved_to(fitted, wrong):
    for call in (ramify.load, fitted.save, ramify.read_taxonomy):
        refuse(lambda call=call: call(wrong), "give a path, as a string or a pathlib.Path.")


def test_what_no_file_can_be_called_is_refused(fitted):
    for call in (ramify.load, fitted.save, ramify.read_taxonomy):
        for wrong in ("\ud800", "a\0b"):
            refuse(lambda call=call, wrong=wrong: call(wrong), "which no file can be called; give another path.")


@pytest.mark.parametrize("wrong", [None, 1, [["a"]], object()], ids=short)
def test_a_text_to_explain_that_is_no_string_is_refused(fitted, wrong):
    refuse(lambda: fitted.explain(wrong), "every text is a string")
