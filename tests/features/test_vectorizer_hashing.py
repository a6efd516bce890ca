"""Terms that go to columns by their hash."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import vectorizer as slow
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.utils import murmurhash3_32

from ramify.errors import InputError, ModelError
from ramify.features import Vectorizer

TEXTS = ["The red fox and the dog", "a red red apple", "Ünïcode wörds über alles 中文", "dog dog fox", ""]
ANY = st.characters(exclude_categories=())


def hashed_counts(texts, n_columns, **settings):
    """What scikit-learn counts."""
    plain = {"alternate_sign": False, "norm": None, "dtype": np.float32}
    return HashingVectorizer(n_features=n_columns, **plain, **settings).transform(texts)


@given(
    st.lists(st.text(ANY, max_size=40), min_size=1, max_size=4),
    st.sampled_from([1, 2, 3, 7, 64, 1000, 1 << 20]),
    st.sampled_from([(1, 1), (1, 3)]),
    st.sampled_from(["word", "char", "char_wb"]),
)
def test_counts_of_any_text_equal_scikit_learn(texts, n_columns, ngram_range, analyzer):
    texts, settings = [*texts, *TEXTS], {"ngram_range": ngram_range, "analyzer": analyzer}
    if analyzer != "word":  # scikit-learn cannot hash lone surrogates
        texts = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    expected = hashed_counts(texts, n_columns, **settings)
    ours = Vectorizer("counts", hashing=n_columns, **settings)
    assert slow.is_same(ours.fit_transform(texts), expected)
    assert slow.is_same(ours.transform(texts), expected)


@pytest.mark.parametrize("n_columns", [5, 1 << 10, 1 << 18])
@pytest.mark.parametrize("settings", [{}, {"stop_words": "english", "lowercase": False}], ids=str)
@pytest.mark.parametrize("sublinear_tf", [False, True])
def test_tf_idf_equals_scikit_learn_to_the_last_bit(n_columns, settings, sublinear_tf, shop):
    texts = shop.train.documents[:500]
    counts = hashed_counts(texts, n_columns, **settings)
    ours, theirs = (
        Vectorizer(hashing=n_columns, sublinear_tf=sublinear_tf, **settings),
        TfidfTransformer(sublinear_tf=sublinear_tf),
    )
    expected = theirs.fit_transform(counts)
    assert slow.is_same(ours.fit_transform(texts), expected)
    assert ours.idf_.tolist() == theirs.idf_.tolist()
    assert slow.is_same(Vectorizer.from_state(*ours.state()).transform(texts), expected)


def test_terms_in_one_column_add_up():
    assert Vectorizer("counts", hashing=1).fit_transform(["red fox red", "", "dog"]).toarray().tolist() == [[3], [0], [1]]


def test_stems_are_hashed_and_not_their_words():
    ours = Vectorizer("counts", hashing=1 << 16, stemmer="english").fit([])
    column = abs(murmurhash3_32("charg")) % (1 << 16)
    assert ours.transform(["charging charged"]).indices.tolist() == [column]
    assert ours.transform(["charging charged"]).data.tolist() == [2.0]


def test_no_terms_are_kept_whatever_the_texts_hold():
    ours = Vectorizer(hashing=16).fit(f"word{k} other{k}" for k in range(5000))
    values, arrays = ours.state()
    assert values["terms"] is None
    assert {name: array.shape for name, array in arrays.items()} == {"idf": (16,)}
    assert ours.terms_.tolist() == [f"#{k}" for k in range(16)]


def test_texts_without_words_are_rows_of_nothing():
    assert Vectorizer(hashing=4).fit_transform(["", "a"]).toarray().tolist() == [[0] * 4] * 2
    assert Vectorizer(hashing=4).fit_transform([]).shape == (0, 4)


@pytest.mark.parametrize("weighting", ["tf-idf", "counts"])
def test_kept_columns_survive_storing(weighting, shop):
    texts, columns = shop.train.documents[:100], np.asarray([1, 5, 6, 30, 63])
    whole, some = (Vectorizer(weighting, hashing=64).fit(texts) for _ in range(2))
    some.select_columns(columns)
    counts = hashed_counts(texts, 64)[:, columns]
    if weighting == "tf-idf":
        weigher = TfidfTransformer().fit(hashed_counts(texts, 64)[:, columns])
        weigher.idf_ = whole.idf_[columns]
        counts = weigher.transform(counts)
    again = Vectorizer.from_state(*some.state())
    assert slow.is_same(some.transform(texts), counts)
    assert slow.is_same(again.transform(texts), counts)
    assert again.terms_.tolist() == [f"#{k}" for k in columns]
    again.select_columns(np.asarray([0, 3]))
    assert again.selected_columns_.tolist() == [1, 30]


@pytest.mark.parametrize("learn", ["fit", "fit_transform"])
def test_learning_again_forgets_which_columns_were_kept(learn):
    ours, new = Vectorizer(hashing=16).fit(TEXTS), Vectorizer(hashing=16).fit(TEXTS)
    ours.select_columns(np.asarray([3, 5, 9]))
    getattr(ours, learn)(TEXTS)
    assert ours.idf_.tolist() == new.idf_.tolist()
    assert slow.is_same(ours.transform(TEXTS), new.transform(TEXTS))


@pytest.mark.parametrize(
    "columns",
    [
        np.asarray([0, 16]),
        np.asarray([-1, 3]),
        np.asarray([3, 3]),
        np.asarray([5, 3]),
        np.asarray([], dtype=np.int64),
        np.asarray([[1, 2]]),
        np.asarray([1, 2], dtype=np.int32),
        np.asarray([1.0, 2.0]),
    ],
    ids=str,
)
def test_kept_columns_that_do_not_fit_are_refused(columns):
    values, _ = Vectorizer("counts", hashing=16).fit(TEXTS).state()
    with pytest.raises(ModelError, match="train the model again"):
        Vectorizer.from_state(values, {"columns": columns})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda values, arrays: values.__setitem__("terms", ["some"]),
        lambda values, arrays: values["params"].__setitem__("hashing", None),
        lambda values, arrays: values["params"].__setitem__("hashing", 15),
        lambda values, arrays: values["params"].__setitem__("weighting", "counts"),
        lambda values, arrays: arrays.pop("idf"),
        lambda values, arrays: arrays["idf"].__setitem__(0, np.inf),
    ],
)
def test_a_state_that_does_not_fit_together_is_refused(spoil):
    values, arrays = Vectorizer(hashing=16).fit(TEXTS).state()
    spoil(values, arrays)
    with pytest.raises(ModelError, match="train the model again"):
        Vectorizer.from_state(values, arrays)


@pytest.mark.parametrize("hashing", [0, -1, 2.0, "many", 1 << 40])
def test_a_number_of_columns_that_cannot_be_is_refused(hashing):
    with pytest.raises(InputError, match="hashing is"):
        Vectorizer(hashing=hashing).fit(TEXTS)


@pytest.mark.parametrize("limit", [{"min_df": 2}, {"max_df": 0.5}, {"max_df": 1}, {"max_features": 3}], ids=str)
def test_limits_need_a_list_of_terms(limit):
    with pytest.raises(InputError, match="stores no vocabulary"):
        Vectorizer(hashing=16, **limit).fit(TEXTS)
