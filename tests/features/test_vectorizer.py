import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import vectorizer as slow
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.estimator_checks import parametrize_with_checks

from ramify.errors import InputError, ModelError
from ramify.features import Vectorizer, Vectors
from ramify.features.vectorizer import WEIGHTINGS

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
    {"analyzer": "char", "ngram_range": (2, 5)},
    {"analyzer": "char_wb", "ngram_range": (2, 5)},
]


@parametrize_with_checks([Vectorizer(), Vectors()])
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("settings", [*SETTINGS, {"sublinear_tf": True}, {"min_df": 0.001, "max_df": 40}], ids=str)
def test_tf_idf_equals_scikit_learn_to_the_last_bit(settings, shop):
    for texts in (TEXTS, shop.train.documents):
        ours, theirs = Vectorizer(**settings), TfidfVectorizer(dtype=np.float32, **settings)
        if max_features := settings.get("max_features"):  # which of equal terms stay is what its usual precision decides
            theirs.vocabulary = TfidfVectorizer(max_features=max_features).fit(texts).get_feature_names_out()
        assert slow.is_same(ours.fit_transform(texts), theirs.fit_transform(texts))
        assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
        assert slow.is_same(ours.transform(texts[::-1]), theirs.transform(texts[::-1]))
        assert ours.idf_.tolist() == theirs.idf_.tolist()


LIMITS = st.one_of(st.integers(1, 4), st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 2 / 3, 1.0]))
SMALL_TEXTS = st.lists(
    st.lists(st.sampled_from(["ab", "cd", "ef", "gh", "ij", "kl"]), max_size=8).map(" ".join), min_size=1, max_size=9
)


@given(SMALL_TEXTS, LIMITS, LIMITS, st.none() | st.integers(1, 5), st.booleans())
def test_limits_keep_the_terms_that_scikit_learn_keeps(texts, min_df, max_df, max_features, sublinear):
    limits = {"min_df": min_df, "max_df": max_df, "max_features": max_features, "ngram_range": (1, 2)}
    try:
        kept = TfidfVectorizer(**limits).fit(texts).get_feature_names_out()
    except ValueError:
        with pytest.raises(InputError, match="no word|leave no term"):
            Vectorizer(**limits).fit(texts)
        return
    ours = Vectorizer(**limits, sublinear_tf=sublinear)
    theirs = TfidfVectorizer(ngram_range=(1, 2), vocabulary=kept, sublinear_tf=sublinear, dtype=np.float32)
    assert slow.is_same(ours.fit_transform(texts), theirs.fit_transform(texts))
    assert ours.terms_.tolist() == kept.tolist()


@pytest.mark.parametrize("n_terms", [40, 700, 5000])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_of_equally_frequent_terms_those_stay_that_scikit_learn_keeps(n_terms, share):
    rng = np.random.default_rng(n_terms)
    texts = [" ".join(f"w{k}" for k in rng.integers(0, n_terms, 30)) for _ in range(n_terms // 6)]
    n_kept = int(share * n_terms)
    terms = Vectorizer("counts", max_features=n_kept).fit(texts).terms_.tolist()
    for theirs in (CountVectorizer, TfidfVectorizer):
        assert terms == theirs(max_features=n_kept).fit(texts).get_feature_names_out().tolist()


@given(st.lists(st.text("abAB éß", max_size=25), min_size=1, max_size=6), st.sampled_from(["english", "porter", "french"]))
def test_weights_of_stems_equal_the_oracle(texts, stemmer):
    texts = [*texts, "running runner ran"]
    ours = Vectorizer(stemmer=stemmer, stop_words=["aa", "ran"])
    X, expected = ours.fit_transform(texts), slow.weigh(slow.count_terms(texts, stemmer=stemmer, stop_words=["aa", "ran"]))
    for found, row in zip(slow.as_dicts(X, ours.terms_), expected, strict=True):
        assert found == pytest.approx(row, rel=1e-6)


def test_binary_weights_are_ones():
    theirs = CountVectorizer(binary=True, dtype=np.float32)
    assert slow.is_same(Vectorizer("binary").fit_transform(TEXTS), theirs.fit_transform(TEXTS))


def test_fit_count_then_weigh_is_fit_transform():
    for weighting in WEIGHTINGS:
        ours = Vectorizer(weighting, sublinear_tf=True)
        counts = ours.fit_count(TEXTS)
        assert slow.is_same(counts, CountVectorizer(dtype=np.float32).fit_transform(TEXTS))
        assert slow.is_same(ours.weight_counts(counts), Vectorizer(weighting, sublinear_tf=True).fit_transform(TEXTS))


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_kept_columns_are_columns_of_the_whole(weighting):
    whole, some = Vectorizer(weighting).fit(TEXTS), Vectorizer(weighting).fit(TEXTS)
    some.select_columns(np.asarray([0, 2, 3, 7]))
    some.select_columns(np.asarray([1, 2]))
    expected = Vectorizer("counts").fit_transform(TEXTS)[:, [2, 3]]
    if weighting == "tf-idf":  # terms keep their weights, and rows of the kept ones are of unit length again
        expected.data *= whole.idf_[[2, 3]][expected.indices]
        expected = normalize(expected)
    elif weighting == "binary":
        expected.data[:] = 1
    assert some.terms_.tolist() == whole.terms_[[2, 3]].tolist()
    assert slow.is_same(some.transform(TEXTS), expected)
    assert slow.is_same(Vectorizer.from_state(*some.state()).transform(TEXTS), expected)
    assert slow.is_same(some.fit_transform(TEXTS), whole.transform(TEXTS))


def test_a_grown_vectorizer_knows_old_and_new_terms():
    more = ["zebra and apple", "Übermut", "aardvark red"]
    ours = Vectorizer("counts", ngram_range=(1, 2)).fit(TEXTS)
    before = ours.terms_
    columns = ours.add_terms(more)
    whole = Vectorizer("counts", ngram_range=(1, 2)).fit([*TEXTS, *more])
    assert ours.terms_.tolist() == whole.terms_.tolist()
    assert ours.terms_[columns].tolist() == before.tolist()
    assert slow.is_same(ours.transform([*TEXTS, *more]), whole.transform([*TEXTS, *more]))
    assert ours.add_terms([]).tolist() == list(range(len(whole.terms_)))


@pytest.mark.parametrize("settings", [{"weighting": "tf-idf"}, {"weighting": "counts", "hashing": 8}], ids=str)
def test_only_plain_counts_of_terms_can_grow(settings):
    with pytest.raises(InputError, match="plain counts"):
        Vectorizer(**settings).fit(TEXTS).add_terms(["more"])


def test_what_was_not_learnt_yet_cannot_be_kept_grown_or_stored():
    for ask in (
        Vectorizer.state,
        lambda v: v.select_columns(np.asarray([0])),
        lambda v: v.add_terms(["more"]),
        lambda v: v.terms_,
    ):
        with pytest.raises(NotFittedError):
            ask(Vectorizer("counts"))


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
        (iter([]), "the 0 texts have no words"),
        ((text for text in ["fine", b"bytes"]), "text 2 is bytes"),
        (b"one text", "a list of texts is needed"),
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
        ({"ngram_range": (0, 1)}, "ngram_range is"),
        ({"ngram_range": (1, 21)}, "ngram_range is"),
        ({"analyzer": "chars"}, "analyzer is 'chars'; give one of 'word', 'char', 'char_wb'"),
        ({"analyzer": "char", "stop_words": "english"}, "stop words and stems are of words"),
        ({"stop_words": [3]}, "stop_words is not a list of words"),
        ({"min_df": 10}, "leave no term"),
        ({"min_df": 0}, "min_df is 0"),
        ({"min_df": 1.5}, "min_df is 1.5"),
        ({"max_df": True}, "max_df is True"),
        ({"max_df": float("nan")}, "max_df is nan"),
        ({"max_features": 0}, "max_features is 0"),
        ({"n_jobs": 0}, "n_jobs is 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Vectorizer(**settings).fit(TEXTS)


def test_texts_that_are_too_short_for_a_term_are_refused():
    with pytest.raises(InputError, match="the 2 texts have too few characters for a term; give longer texts"):
        Vectorizer(analyzer="char", ngram_range=(4, 5)).fit(["abc", ""])


def test_transform_before_fit_says_so():
    with pytest.raises(NotFittedError):
        Vectorizer().transform(TEXTS)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda values, arrays: values["terms"].append("more"),
        lambda values, arrays: values["terms"].__setitem__(0, "\ud800"),
        lambda values, arrays: values["terms"].__setitem__(0, 5),
        lambda values, arrays: values["terms"].__setitem__(0, values["terms"][1]),
        lambda values, arrays: values.__setitem__("terms", []),
        lambda values, arrays: values.__setitem__("terms", None),
        lambda values, arrays: arrays.__setitem__("idf", arrays["idf"].astype(np.float64)),
        lambda values, arrays: arrays.__setitem__("idf", arrays["idf"][:, None]),
        lambda values, arrays: arrays.__setitem__("idf", arrays["idf"] * np.float32("nan")),
        lambda values, arrays: arrays.pop("idf"),
        lambda values, arrays: values["params"].__setitem__("weighting", "counts"),
        lambda values, arrays: values["params"].__setitem__("hashing", 8),
        lambda values, arrays: arrays.__setitem__("columns", np.arange(3)),
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


def test_settings_that_change_after_fitting_change_nothing_learnt():
    hashed = Vectorizer(hashing=16).fit(TEXTS)
    before = hashed.transform(TEXTS)
    assert (hashed.set_params(hashing=1 << 28).transform(TEXTS) != before).nnz == 0
    counted = Vectorizer("counts").fit(TEXTS)
    before = counted.transform(TEXTS)
    assert (counted.set_params(weighting="tf-idf").transform(TEXTS) != before).nnz == 0
    assert Vectorizer.from_state(*counted.state()).weighting == "counts"


def test_a_string_of_another_class_is_read_as_the_string_it_is():
    class Odd(str):
        def lower(self):
            return [0] * 1000

    texts = ["ab ΣΣ cd", "AB"]
    assert Vectorizer().fit([Odd(text) for text in texts]).terms_.tolist() == Vectorizer().fit(texts).terms_.tolist()


def test_settings_may_be_numbers_of_numpy():
    settings = {
        "min_df": np.int64(1),
        "max_features": np.int32(7),
        "ngram_range": np.asarray([1, 2]),
        "lowercase": np.bool_(True),
    }
    values, _ = Vectorizer(**settings).fit(TEXTS).state()
    assert json.loads(json.dumps(values))["params"]["max_features"] == 7


@pytest.mark.parametrize("settings", [{"stop_words": iter(["red"])}, {"lowercase": []}, {"sublinear_tf": "no"}])
def test_settings_of_the_wrong_kind_are_refused(settings):
    with pytest.raises(InputError, match="stop_words is not a list|give true or false"):
        Vectorizer(**settings).fit(TEXTS)


def test_the_most_frequent_terms_of_a_binary_matrix_are_those_in_most_documents():
    texts = ["aa aa aa aa", "bb", "bb"]
    theirs = CountVectorizer(binary=True, max_features=1).fit(texts)
    assert Vectorizer("binary", max_features=1).fit(texts).terms_.tolist() == theirs.get_feature_names_out().tolist() == ["bb"]
