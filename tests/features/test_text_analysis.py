"""Where terms stand: as often as they are counted, and at the characters of the text as it was given."""

from collections import Counter

import pytest
from features.test_vectorizer_texts import HARD, HARD_TEXTS
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import vectorizer as slow

from ramify.features import Vectorizer

ANY = st.characters(exclude_categories=())
SETTINGS = st.fixed_dictionaries(
    {
        "ngram_range": st.sampled_from([(1, 1), (1, 3), (2, 2)]),
        "lowercase": st.booleans(),
        "stop_words": st.sampled_from([None, ["ab", "αα", "ας"]]),
        "stemmer": st.sampled_from([None, "english", "turkish"]),
        "hashing": st.sampled_from([None, 7, 1024]),
    }
) | st.fixed_dictionaries(
    {
        "analyzer": st.sampled_from(["char", "char_wb"]),
        "ngram_range": st.sampled_from([(1, 1), (1, 3), (2, 5)]),
        "lowercase": st.booleans(),
        "hashing": st.sampled_from([None, 7, 1024]),
    }
)


def assert_located(vectorizer, text):
    places = vectorizer.locate(text)
    counted = vectorizer.transform([text])
    assert Counter(column for _, _, column in places) == dict(zip(counted.indices.tolist(), counted.data.tolist(), strict=True))
    assert [start for start, _, _ in places] == sorted(start for start, _, _ in places)
    # the space before and after a word is no character of the text
    is_empty_allowed = vectorizer.analyzer == "char_wb" and vectorizer.ngram_range[0] == 1
    assert all(0 <= start <= end <= len(text) and (start < end or is_empty_allowed) for start, end, _ in places)
    return places


@given(st.text(ANY, max_size=40) | st.text(HARD, max_size=40), SETTINGS)
@example("İstanbul aİ İİab ΑΣ ΑΣΑ", {"ngram_range": (1, 2)})
@example("running runs ran", {"stemmer": "english"})
@example("İa  b\n", {"analyzer": "char_wb", "ngram_range": (1, 3)})
def test_a_column_is_located_as_often_as_it_is_counted(text, settings):
    assert_located(Vectorizer("counts", **settings).fit([text, "Some words and more words"]), text)


def alike(term):
    """Which sigma it is depends on what stands around a word."""
    return term.replace("ς", "σ")


@given(st.lists(st.text(HARD + "abcdefgh ", max_size=30), min_size=1, max_size=3), st.booleans())
def test_what_stands_at_a_place_reads_as_the_term(texts, lowercase):
    rules = {"ngram_range": (1, 2), "lowercase": lowercase}
    vectorizer = Vectorizer("counts", **rules).fit([*texts, "Some words"])
    for text in texts:
        for start, end, column in assert_located(vectorizer, text):
            assert alike(vectorizer.terms_[column]) in map(alike, slow.terms_of(text[start:end], **rules))


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("text", HARD_TEXTS.values(), ids=HARD_TEXTS)
def test_hard_texts_are_located(text, lowercase):
    assert_located(Vectorizer("counts", lowercase=lowercase, ngram_range=(1, 2)).fit([text, "Some words"]), text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("İstanbul", ["stanbul"]),  # 'i', then a dot of its own that ends the word
        ("xİ ab", ["xİ", "ab"]),
        ("ΟΔΟΣ ab", ["ΟΔΟΣ", "ab"]),
        ("👩‍👧 ab", ["ab"]),
        ("\ud800ab cd", ["ab", "cd"]),
    ],
)
def test_places_are_those_of_the_text_as_given(text, expected):
    vectorizer = Vectorizer().fit([text])
    assert [text[start:end] for start, end, _ in vectorizer.locate(text)] == expected


def test_runs_of_words_reach_over_stop_words_between_them():
    vectorizer = Vectorizer(ngram_range=(2, 2), stop_words=["of"]).fit(["king of spades"])
    assert vectorizer.terms_.tolist() == ["king spades"]
    assert vectorizer.locate("The King of Spades!") == [(4, 18, 0)]


def test_kept_columns_are_those_that_are_located():
    for hashing in (None, 64):
        vectorizer = Vectorizer("counts", hashing=hashing).fit(["red fox", "red cat"])
        there = vectorizer.transform(["fox"]).indices
        vectorizer.select_columns(there)
        assert vectorizer.locate("a red fox") == [(6, 9, 0)]
        assert vectorizer.term_names("a red fox", vectorizer.transform(["a red fox"]).indices) == ["fox"]


def test_hashed_columns_are_called_by_the_terms_that_fall_into_them():
    vectorizer = Vectorizer("counts", hashing=1).fit(["red fox"])
    assert vectorizer.term_names("red fox, red cat", vectorizer.transform(["red fox"]).indices) == ["red / fox / cat"]
    assert vectorizer.locate("nothing. a!") == [(0, 7, 0)]
    assert vectorizer.locate("") == []


def test_a_saved_vectorizer_locates_the_same():
    for settings in ({"stemmer": "english", "ngram_range": (1, 2)}, {"hashing": 16}):
        vectorizer = Vectorizer(**settings).fit(["running foxes run", "red foxes"])
        again = Vectorizer.from_state(*vectorizer.state())
        assert again.locate("Foxes, running") == vectorizer.locate("Foxes, running") != []
