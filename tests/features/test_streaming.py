"""Texts in shards: however they are cut, wherever they are counted, the matrix, the terms and the weights are those of one list."""

from itertools import pairwise

import numpy as np
import pytest
from apart import ApartExecutor
from hypothesis import given
from hypothesis import strategies as st
from oracles import vectorizer as slow

from ramify.data.corpus import HASH_BYTES, hash_text
from ramify.errors import InputError
from ramify.features import Vectorizer
from ramify.features.streaming import CountSettings, Shard, ShardedTexts, TextList
from ramify.parallel import SerialExecutor, ThreadExecutor, running_on

SETTINGS = [
    {},
    {"weighting": "counts", "ngram_range": (1, 2)},
    {"stemmer": "english", "stop_words": "english-long"},
    {"min_df": 2, "max_df": 0.5, "max_features": 30, "sublinear_tf": True},
    {"hashing": 50},
    {"weighting": "binary", "hashing": 1 << 12},
]


def hashes_of(texts):
    return np.frombuffer(b"".join(map(hash_text, texts)), dtype=f"V{HASH_BYTES}")


def in_shards(vectorizer, lists, folder=None):
    files = [None if folder is None else folder / f"{k}" for k in range(len(lists))]
    shards = [Shard(TextList(tuple(texts)), file) for texts, file in zip(lists, files, strict=True)]
    settings = CountSettings(vectorizer._rules(), vectorizer.hashing)
    return ShardedTexts.of(settings, shards, [hashes_of(texts) for texts in lists])


def cut_at(texts, places):
    edges = [0, *sorted(min(place, len(texts)) for place in places), len(texts)]
    return [texts[a:b] for a, b in pairwise(edges)]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("executor", [SerialExecutor(), ThreadExecutor(3), ApartExecutor()], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("is_left", [True, False])
def test_shards_give_what_one_list_gives(settings, executor, is_left, shop, tmp_path):
    texts = [*shop.train.documents[:150], "", "ΣΟΦΟΣ Straße İstanbul", " "]
    whole, ours = Vectorizer(**settings), Vectorizer(**settings)
    expected = whole.fit_transform(texts)
    counted = in_shards(ours, cut_at(texts, [0, 1, 40, 40, 151]), tmp_path if is_left else None)
    with running_on(executor):
        assert slow.is_same(ours.fit_transform(counted), expected)
        assert slow.is_same(ours.transform(counted), expected)
    assert ours.terms_.tolist() == whole.terms_.tolist()
    assert ours.idf_ is whole.idf_ is None or ours.idf_.tolist() == whole.idf_.tolist()
    assert len(list(tmp_path.iterdir())) == (4 if is_left else 0)  # two of six shards hold nothing, and nobody reads them


@given(
    st.lists(st.text("abΑΣ 中é", max_size=20), min_size=1, max_size=12),
    st.lists(st.integers(0, 12), max_size=4),
    st.sets(st.integers(0, 12)),
    st.sampled_from([None, 20]),
)
def test_some_texts_are_for_training_and_others_for_testing(texts, places, chosen, hashing):
    texts = [*texts, "some words"]
    learnt = sorted({i for i in chosen if i < len(texts)} | {len(texts) - 1})
    others = [i for i in range(len(texts)) if i not in learnt]
    whole, ours = (Vectorizer(ngram_range=(1, 2), hashing=hashing) for _ in range(2))
    counted = in_shards(ours, cut_at(texts, places))
    assert slow.is_same(ours.fit_transform(counted.take(learnt)), whole.fit_transform([texts[i] for i in learnt]))
    assert ours.terms_.tolist() == whole.terms_.tolist()
    assert slow.is_same(ours.transform(counted.take(others)), whole.transform([texts[i] for i in others]))
    assert list(counted.take(others)) == [texts[i] for i in others]
    assert counted.take(learnt).keys == [hash_text(texts[i]) for i in learnt]


def test_texts_at_hand_stand_behind_those_in_shards():
    ours, whole = Vectorizer(), Vectorizer()
    counted = in_shards(ours, [["red fox"], ["blue cat", "no dog"]]).take(np.array([0, 2]))
    both = counted.joined(["red dog", "a new word"], [hash_text("red dog"), hash_text("a new word")])
    texts = ["red fox", "no dog", "red dog", "a new word"]
    assert slow.is_same(ours.fit_transform(both), whole.fit_transform(texts))
    assert list(both) == texts
    assert both.keys == list(map(hash_text, texts))


def test_rows_over_chosen_columns(shop):
    texts = shop.train.documents[:60]
    for hashing in (None, 64):
        whole, ours = Vectorizer(hashing=hashing).fit(texts), Vectorizer(hashing=hashing).fit(texts)
        for vectorizer in (whole, ours):
            vectorizer.select_columns(np.arange(3, 40, 2))
        assert slow.is_same(ours.transform(in_shards(ours, cut_at(texts, [20]))), whole.transform(texts))


def test_counts_that_are_damaged_or_gone_are_counted_again(tmp_path):
    texts = [["red fox", "red cat"], ["blue cat"]]
    expected = Vectorizer().fit_transform(texts[0] + texts[1])
    for spoil in ("unlink", "truncate", "nothing"):
        ours = Vectorizer()
        counted = in_shards(ours, texts, tmp_path)
        for shard in counted.shards:
            shard.counts(counted.settings)
        if spoil == "unlink":
            (tmp_path / "0").unlink()
        elif spoil == "truncate":
            (tmp_path / "1").write_bytes((tmp_path / "1").read_bytes()[:-3])
        assert slow.is_same(ours.fit_transform(counted), expected)


def test_counts_are_used_where_they_are(tmp_path):
    class Once:
        def texts(self):
            assert not (tmp_path / "0").exists()
            return ["red fox", "red cat"]

    ours = Vectorizer()
    counted = ShardedTexts.of(CountSettings(ours._rules(), None), [Shard(Once(), tmp_path / "0")], [hashes_of(["a", "b"])])
    assert slow.is_same(ours.fit_transform(counted), Vectorizer().fit_transform(["red fox", "red cat"]))


def test_where_counts_cannot_be_left_they_are_counted_whenever_needed(tmp_path):
    texts = [["red fox", "red cat"], ["blue cat"]]
    ours = Vectorizer()
    counted = in_shards(ours, texts, tmp_path / "of another machine")
    assert slow.is_same(ours.fit_transform(counted), Vectorizer().fit_transform(texts[0] + texts[1]))
    assert not list(tmp_path.iterdir())


def test_other_rules_read_the_texts_again():
    texts = [["red red fox"], ["blue cat"]]
    counted = in_shards(Vectorizer(), texts)
    assert slow.is_same(
        Vectorizer(ngram_range=(1, 2)).fit_transform(counted), Vectorizer(ngram_range=(1, 2)).fit_transform(texts[0] + texts[1])
    )


def test_texts_without_words_are_refused_as_always():
    with pytest.raises(InputError, match="the 2 texts have no words"):
        Vectorizer().fit_transform(in_shards(Vectorizer(), [["?"], ["!"]]))


def test_texts_are_not_put_in_another_order():
    with pytest.raises(InputError, match="taken in order"):
        in_shards(Vectorizer(), [["a b", "c d"]]).take(np.array([1, 0]))
