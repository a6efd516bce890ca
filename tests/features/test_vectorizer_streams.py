"""Blocks of texts: threads, iterators and their sizes change nothing, and few texts are held at a time."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import vectorizer as slow
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from ramify.features import Vectorizer, term_counts
from ramify.parallel import reporting_to

SETTINGS = [
    {},
    {"weighting": "counts", "ngram_range": (1, 2)},
    {"stemmer": "english", "stop_words": "english-long"},
    {"min_df": 2, "max_df": 0.5, "max_features": 30, "sublinear_tf": True},
    {"analyzer": "char_wb", "ngram_range": (2, 4)},
    {"analyzer": "char", "ngram_range": (1, 3), "hashing": 64},
    {"hashing": 50},
    {"weighting": "binary", "hashing": 1 << 12},
]
WAYS_IN = {"list": list, "tuple": tuple, "array": np.asarray, "iterator": iter, "generator": lambda texts: (t for t in texts)}


@pytest.fixture
def texts(shop):
    return [*shop.train.documents[:200], "", "ΣΟΦΟΣ Straße İstanbul", " "]


@pytest.fixture
def small_blocks(monkeypatch):
    """Make blocks of a few characters or texts."""

    def cut(characters, max_texts):
        for name, value in (("SMALL_BLOCK", characters), ("LARGE_BLOCK", characters), ("MAX_TEXTS", max_texts)):
            monkeypatch.setattr(term_counts, name, value)

    return cut


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("way_in", WAYS_IN)
def test_threads_and_iterators_change_nothing(settings, n_jobs, way_in, texts, small_blocks):
    whole = Vectorizer(**settings)
    expected = whole.fit_transform(texts)
    small_blocks(1000, 40)
    ours = Vectorizer(**settings, n_jobs=n_jobs)
    assert slow.is_same(ours.fit_transform(WAYS_IN[way_in](texts)), expected)
    assert slow.is_same(ours.transform(WAYS_IN[way_in](texts)), expected)
    assert ours.terms_.tolist() == whole.terms_.tolist()


@given(
    st.lists(st.text("abΑΣ 中é", max_size=30), min_size=1, max_size=12),
    st.integers(1, 50),
    st.integers(1, 5),
    st.sampled_from([1, 2]),
    st.sampled_from([None, 20]),
)
def test_the_size_of_blocks_changes_nothing(texts, characters, max_texts, n_jobs, hashing):
    texts = [*texts, "some words"]
    expected = Vectorizer(ngram_range=(1, 2), hashing=hashing).fit_transform(texts)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("SMALL_BLOCK", characters), ("LARGE_BLOCK", characters), ("MAX_TEXTS", max_texts)):
            patch.setattr(term_counts, name, value)
        ours = Vectorizer(ngram_range=(1, 2), hashing=hashing, n_jobs=n_jobs)
        assert slow.is_same(ours.fit_transform(iter(texts)), expected)
        assert slow.is_same(Vectorizer(ngram_range=(1, 2), hashing=hashing).fit(texts).transform(iter(texts)), expected)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("characters", [1, 7, 300, 1 << 20])
def test_fit_learns_what_fit_transform_learns(settings, characters, texts, small_blocks):
    small_blocks(characters, 16)
    one, other = Vectorizer(**settings).fit(iter(texts)), Vectorizer(**settings)
    X = other.fit_transform(texts)
    assert one.terms_.tolist() == other.terms_.tolist()
    assert one.idf_ is other.idf_ is None or one.idf_.tolist() == other.idf_.tolist()
    assert slow.is_same(one.transform(texts), X)


@pytest.mark.parametrize("settings", [{}, {"hashing": 300}], ids=str)
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 200])
def test_a_row_does_not_depend_on_how_many_come_with_it(settings, n, texts):
    ours = Vectorizer(**settings).fit(texts)
    together = ours.transform(texts)
    for start in range(0, len(texts) - n, n):
        assert slow.is_same(ours.transform(texts[start : start + n]), together[start : start + n])


@pytest.mark.parametrize("n_repeated", [1, 63, 64, 300])
def test_a_word_is_counted_as_often_as_it_comes(n_repeated):
    ours = Vectorizer("counts").fit(["red", "fox dog"])
    text = "red fox red " * n_repeated
    for texts in ([text], [text] * 64):
        assert ours.transform(texts).toarray().tolist() == [[0, n_repeated, 2 * n_repeated]] * len(texts)


class Text(str):
    """A text that is counted while it lives."""

    alive = most = 0

    def __new__(cls, text):
        cls.alive += 1
        cls.most = max(cls.most, cls.alive)
        return super().__new__(cls, text)

    def __del__(self):
        type(self).alive -= 1


@pytest.mark.parametrize("hashing", [None, 16])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_fit_holds_few_texts_at_a_time(n_jobs, hashing, small_blocks):
    small_blocks(1 << 20, 10)
    Text.alive = Text.most = 0
    Vectorizer(n_jobs=n_jobs, hashing=hashing).fit(Text(f"text number {k}") for k in range(2000))
    assert Text.most <= 10 * (2 * n_jobs + 2)
    assert Text.alive == 0


def test_fit_reads_no_further_than_the_text_that_it_refuses(small_blocks):
    small_blocks(1 << 20, 10)
    read = []

    def source():
        for k in range(1000):
            read.append(k)
            yield f"text {k}" if k != 57 else None

    with pytest.raises(ValueError, match="text 58 is null"):
        Vectorizer(n_jobs=2).fit(source())
    assert read[-1] == 57


def test_no_texts_are_no_rows():
    for settings in ({}, {"hashing": 8}):
        ours = Vectorizer(**settings).fit(["red fox"])
        for nothing in ([], iter([])):
            X = ours.transform(nothing)
            assert (X.shape, X.nnz) == ((0, ours.n_features_out), 0)


class Listener:
    """Adds up what it hears of."""

    def __init__(self):
        self.stages = []

    def stage(self, title, total):
        self.stages.append([title, total, 0])
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def advance(self, amount=1):
        self.stages[-1][2] += amount


@pytest.mark.parametrize("settings", [{}, {"hashing": 8}], ids=str)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_listener_hears_of_every_text_once(n_jobs, settings, texts, small_blocks):
    small_blocks(500, 10)
    ours, n, listener = Vectorizer(n_jobs=n_jobs, **settings), len(texts), Listener()
    with reporting_to(listener):
        ours.fit(texts)
        ours.fit_transform(texts)
        ours.transform(texts)
        ours.fit(iter(texts))
        ours.transform(texts[:3])
    totals = [(n, n), (n, n), (n, n), (None, n), (3, 3)]
    assert listener.stages == [["counting words", total, heard] for total, heard in totals]


def test_a_pickled_vectorizer_is_the_same(texts):
    ours = Vectorizer(stemmer="english", stop_words=["the"], n_jobs=2).fit(texts)
    assert slow.is_same(pickle.loads(pickle.dumps(ours)).transform(texts), ours.transform(texts))


def test_many_threads_share_one_vectorizer(shop):
    texts = shop.train.documents * 4
    ours = Vectorizer("counts", stop_words="english", n_jobs=8).fit(texts)
    theirs = CountVectorizer(stop_words="english", dtype=np.float32).fit(texts)
    assert slow.is_same(ours.transform(texts), theirs.transform(texts))
    assert slow.is_same(Vectorizer(n_jobs=8).fit_transform(iter(texts)), TfidfVectorizer(dtype=np.float32).fit_transform(texts))


def test_blocks_are_cut_by_characters_and_by_texts(small_blocks):
    small_blocks(10, 4)
    cut, total = term_counts.cut((text for text in ["abcdef", "abcdef", "x" * 30, "a", "b", "c", "d", "e"]), 1)
    assert total is None
    assert [len(block) for block in cut] == [2, 1, 4, 1]


@given(
    st.lists(st.integers(0, 12), max_size=40).map(lambda lengths: ["x" * length for length in lengths]),
    st.integers(1, 60),
    st.integers(1, 4),
)
def test_blocks_of_a_list_are_those_of_an_iterator(listed, characters, workers):
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SMALL_BLOCK", "LARGE_BLOCK"):
            patch.setattr(term_counts, name, characters)
        patch.setattr(term_counts, "MAX_TEXTS", 7)
        blocks, number = term_counts.cut(listed, workers)
        assert (list(blocks), number) == (list(term_counts.cut(iter(listed), workers)[0]), len(listed))
