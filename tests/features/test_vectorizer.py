import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from ramify.errors import InputError, ModelError
from ramify.features import Vectorizer, Vectors

TEXTS = ["The red fox and the dog", "a red red apple", "Ünïcode wörds über alles", "dog dog fox", ""]
SETTINGS = [
    {},
    {"ngram_range": (1, 2)},
    {"ngram_range": (2, 3)},
    {"stop_words": "english"},
    {"stop_words": ["red"]},
    {"lowercase": False},
    {"min_df": 2},
    {"max_df": 0.3},
    {"max_features": 3},
]


@parametrize_with_checks([Vectorizer(), Vectors()])
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("settings", [*SETTINGS, {"sublinear_tf": True}], ids=str)
def test_tfidf_equals_scikit_learn(settings):
    ours, theirs = Vectorizer(**settings), TfidfVectorizer(**settings)
    np.testing.assert_allclose(ours.fit_transform(TEXTS).toarray(), theirs.fit_transform(TEXTS).toarray(), rtol=1e-6)
    np.testing.assert_allclose(ours.transform(TEXTS[::-1]).toarray(), theirs.transform(TEXTS[::-1]).toarray(), rtol=1e-6)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()


@given(st.lists(st.text(max_size=40), min_size=1, max_size=5))
def test_counts_equal_scikit_learn_for_any_text(texts):
    texts = [*texts, "one word at least"]
    theirs = CountVectorizer(ngram_range=(1, 2))
    expected = theirs.fit_transform(texts).toarray()
    assert Vectorizer("counts", ngram_range=(1, 2)).fit_transform(texts).toarray().tolist() == expected.tolist()


def test_binary_weights_are_ones():
    assert set(Vectorizer("binary").fit_transform(TEXTS).data.tolist()) == {1.0}


def test_stems_join_inflections():
    terms = Vectorizer(stemmer="english", stop_words="english").fit(["charging chargers charged", "the battery"]).terms_
    assert terms.tolist() == ["batteri", "charg", "charger"]


@pytest.mark.parametrize("settings", [*SETTINGS, {"stemmer": "english"}], ids=str)
def test_state_makes_the_same_vectorizer(settings):
    vectorizer = Vectorizer(**settings).fit(TEXTS)
    again = Vectorizer.from_state(*vectorizer.state())
    assert (again.transform(TEXTS) != vectorizer.transform(TEXTS)).nnz == 0
    assert clone(again).get_params() == again.get_params()


def test_a_row_does_not_depend_on_its_batch():
    vectorizer = Vectorizer().fit(TEXTS)
    together = vectorizer.transform(TEXTS).toarray()
    for position, text in enumerate(TEXTS):
        assert (vectorizer.transform([text]).toarray()[0] == together[position]).all()


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", "a list of texts is needed"),
        (["fine", None], "text 2 is null"),
        ([3.5], "text 1 is float '3.5'"),
        (["", "a b"], "the 2 texts have no words"),
        ([], "the 0 texts have no words"),
    ],
)
def test_texts_that_cannot_be_read_are_refused(texts, message):
    with pytest.raises(InputError, match=message):
        Vectorizer().fit(texts)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weighting": "bm25"}, "weighting is 'bm25'; give one of"),
        ({"ngram_range": (2, 1)}, "ngram_range is"),
        ({"ngram_range": 3}, "ngram_range is 3"),
        ({"stop_words": "klingon"}, "stop_words is 'klingon'"),
        ({"stemmer": "englich"}, "Did you mean 'english'"),
        ({"min_df": 10}, "leave no term|cannot be turned"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Vectorizer(**settings).fit(TEXTS)


def test_transform_before_fit_says_so():
    with pytest.raises(NotFittedError):
        Vectorizer().transform(TEXTS)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda values, arrays: values["terms"].append("more"),
        lambda values, arrays: values["terms"].__setitem__(0, 5),
        lambda values, arrays: values["terms"].__setitem__(0, values["terms"][1]),
        lambda values, arrays: arrays.__setitem__("idf", arrays["idf"].astype(np.float64)),
    ],
)
def test_a_state_that_does_not_fit_together_is_refused(spoil):
    values, arrays = Vectorizer().fit(TEXTS).state()
    spoil(values, arrays)
    with pytest.raises(ModelError, match="train the model again"):
        Vectorizer.from_state(values, arrays)


def test_vectors_pass_through_and_check_their_width():
    X = np.asarray([[1, 0], [0, 2.0]])
    vectors = Vectors().fit(X)
    assert vectors.transform(X).toarray().tolist() == X.tolist()
    with pytest.raises(ValueError, match="features"):
        vectors.transform(np.zeros((1, 3)))
    with pytest.raises(ModelError, match="number of features"):
        Vectors.from_state({"features": -1}, {})
