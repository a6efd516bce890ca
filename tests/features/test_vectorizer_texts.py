"""Any text, and every character, becomes the same terms as in scikit-learn."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import vectorizer as slow
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from ramify.features import Vectorizer

ANALYZERS = st.sampled_from(["word", "char", "char_wb"])
ANY = st.characters(exclude_categories=())  # lone surrogates too
HARD = "aAzZ09_ \n\t\0.ΣσςΑαİıIißẞKÅµǅDžﬁŒſȺⱥÀ่̀́ー中文字漢あアلعرहिन्दी٠١२३𝟘𝔸𐐀𐐨😀\u200d\u200c\u200e\u200f\u202e\u2060\ufeff\u00ad\u0345'’\ud800\udfff\U0010ffff"
HARD_TEXTS = {
    "final sigma": "ΟΔΥΣΣΕΥΣ Σ ΣΣ ΣΑ ΑΣ ΑΣ. ΑΣΑ ΑΣ'Α ΑΣ\u0301 ΑΣ\u0301Α ΑΣ\u00ad ΑΣ\u00adΑ .ΣΑ ΣΑΣ 1Σ Σ1 ΣΣΣ _Σ_ aΣ Σa",
    "dotted i": "İstanbul DİYARBAKIR İİ aİ İa Iİ ıİı ΑΣİ İΣ",
    "sharp s": "Straße STRASSE STRAẞE ßß ẞẞ",
    "ligatures": "ﬁnance ﬂow oﬃce ŒUVRE Œuvre Æon ǅungla ǄUNGLA ŉa",
    "letters that leave their block in lower case": "ȺȺ ȾȾ ⱯⱯ KKelvin ÅÅngström ΩΩhm ẞẞ ꞪꞪ ꞰꞰ Ჰა",
    "combining marks": "école e\u0301cole ǹaı̈ve a\u0300\u0301\u0302b Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L",
    "Chinese": "我喜欢读书。中文 文本，没有空格 㐀㐁 𠀀𠀁𠀂",
    "Japanese and Thai": "カタカナ ひらがな ーー 漢字かな交じり文 ภาษาไทย ที่นี่",
    "Arabic": "السَّلَامُ عَلَيْكُمْ كتاب ـــكـــ ١٢٣ ۱۲۳",
    "Devanagari": "हिन्दी में लिखा हुआ पाठ १२३ क्षत्रिय",
    "emoji": "👩‍👩‍👧‍👦 family ❤️ red👍🏽thumb 🇩🇪 flag ab😀cd",
    "marks of direction": "\u200fשלום\u200e world \u202aleft\u202c \u2066iso\u2069lated \u061cعربي",
    "zero width": "zero\u200bwidth non\u200cjoiner joi\u200dner no\u2060break \ufeffmark soft\u00adhyphen",
    "digits": "٤٢ ४२ 𝟜𝟚 ４２ ²³ ½¼ ⅣⅤ ①② 一二",
    "capitals of other scripts": "ПРИВЕТ Привет ԱՐԵՎ ᏣᎳᎩ ꮳꮃꭹ 𐐐𐐯 Ⓐⓐ 𝐀𝐁 Ａｂ Ꭰꭰ ՈՒ և",
    "empty": "",
    "blank": " \n\t\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\u3000",
    "nul": "\0ab\0cd\0\0ef\0",
    "lone surrogates": "ab\ud800cd \udfff\udfff \udc00ef\ud83d \ud83dgh\ude00",
    "one letter": "a b c é 中 1 _ __ a1 ___",
}


def assert_same(texts, **settings):
    """Terms and counts equal scikit-learn's, when they are learnt and when they are known."""
    ours, theirs = Vectorizer("counts", **settings), CountVectorizer(dtype=np.float32, **settings)
    assert slow.is_same(ours.fit_transform(texts), theirs.fit_transform(texts))
    assert ours.terms_.tolist() == theirs.get_feature_names_out().tolist()
    assert slow.is_same(ours.transform(texts), theirs.transform(texts))


def with_words(texts):
    return [*texts, "Some words"]


RANGES = st.sampled_from([(1, 1), (1, 2), (2, 3), (3, 9)])


@given(st.lists(st.text(ANY, max_size=30), max_size=5), ANALYZERS, RANGES, st.booleans())
def test_any_text_has_the_terms_that_scikit_learn_finds(texts, analyzer, ngram_range, lowercase):
    texts = [*texts, "Some words in nine other longer words, here and there"]
    assert_same(texts, analyzer=analyzer, ngram_range=ngram_range, lowercase=lowercase)


@given(st.lists(st.text(HARD, max_size=40), max_size=5), ANALYZERS, st.booleans())
@example(["ΑΣ", "ΑΣΑ", "İΣ"], "word", True)
@example(["ΑΣ", "ΑΣΑ", "İΣ"], "char", True)
@example(["a\n\nb c\t", "\x1c\x85 a", "  "], "char", True)
@example(["a\n\nb c\t", "\x1c\x85 a", "  "], "char_wb", True)
def test_hard_characters_have_the_terms_that_scikit_learn_finds(texts, analyzer, lowercase):
    assert_same(with_words(texts), analyzer=analyzer, ngram_range=(1, 2), lowercase=lowercase)


@given(st.lists(st.text(HARD + "abcdefgh", max_size=30), max_size=4), st.sampled_from(["english", "german", "turkish"]))
def test_stems_of_any_text_equal_the_oracle(texts, stemmer):
    texts, rules = with_words(texts), {"ngram_range": (1, 2), "stemmer": stemmer, "stop_words": ["ab", "αα"]}
    ours = Vectorizer("counts", **rules)
    X, expected = ours.fit_transform(texts), slow.count_terms(texts, **rules)
    assert slow.as_dicts(X, ours.terms_) == expected
    assert ours.terms_.tolist() == sorted(set().union(*expected))
    assert slow.as_dicts(ours.transform(texts), ours.terms_) == expected


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("text", HARD_TEXTS.values(), ids=HARD_TEXTS)
def test_hard_texts_have_the_terms_that_scikit_learn_finds(text, lowercase):
    for analyzer in ("word", "char", "char_wb"):
        assert_same([text, "Some words"], analyzer=analyzer, lowercase=lowercase, ngram_range=(1, 2))
        assert_same([text] * 70 + ["Some words"], analyzer=analyzer, lowercase=lowercase)


@pytest.mark.parametrize(
    ("before", "lowercase", "analyzer"),
    [("", True, "word"), ("", False, "word"), ("ΟΔΟΣ ", True, "word"), ("", True, "char"), ("ΟΔΟΣ ", False, "char_wb")],
)
def test_every_character_is_read_as_python_reads_it(before, lowercase, analyzer):
    """Alone, doubled, and inside a word; beside a capital sigma, for which Python itself makes the lower case."""
    settings = {"lowercase": lowercase, "analyzer": analyzer}
    pieces = [f"ab{chr(c)}cd {chr(c)}{chr(c)}" for c in range(0x110000)]
    texts = [before + " . ".join(pieces[start : start + 1024]) for start in range(0, len(pieces), 1024)]
    ours, analyze = Vectorizer("counts", **settings), CountVectorizer(**settings).build_analyzer()
    X, expected = ours.fit_transform(texts), [Counter(analyze(text)) for text in texts]
    assert slow.as_dicts(X, ours.terms_) == expected
    assert ours.terms_.tolist() == sorted(set().union(*expected))
    assert slow.is_same(ours.transform(texts), X)


@pytest.mark.parametrize("letter", ["a", "é", "中", "𐐨", "Σ", "Ⱥ"])
def test_words_of_any_length_are_told_apart(letter):
    """Tables compare the first eight bytes, and lengths up to 255; words here differ behind that only."""
    lengths = (2, 3, 7, 8, 9, 15, 16, 17, 84, 85, 86, 127, 128, 253, 254, 255, 256, 257, 300)
    words = [letter * (n - k) + end * k for n in lengths for k in (0, 1) for end in "xyz" if n > k]
    rng = random.Random(0)
    assert_same([" ".join(rng.choices(words, k=40)) for _ in range(100)])
    assert_same([" ".join(rng.choices(words, k=40)) for _ in range(20)], ngram_range=(1, 3))


def test_many_terms_with_the_same_beginning_and_length_are_told_apart():
    texts = [" ".join(f"beginning{k:06d}" for k in range(start, 60_000, 7)) for start in range(9)]
    assert_same(texts)


def test_a_word_of_a_million_letters_is_one_term():
    word = "Abcdefghij" * 100_000
    assert_same([f"{word} {word}x", word, "ab"])


def test_ten_million_characters_in_one_line():
    words = [f"word{k}" for k in range(50_000)] + ["Größe", "ΣΟΦΟΣ", "日本"]
    text = " ".join(random.Random(1).choices(words, k=1_100_000))
    assert len(text) > 10_000_000
    ours = Vectorizer("counts")
    assert slow.as_dicts(ours.fit_transform([text]), ours.terms_) == slow.count_terms([text])
    assert slow.is_same(ours.transform([text]), ours.fit_transform([text]))


def test_tf_idf_of_hard_texts_is_the_same_to_the_last_bit():
    texts = [*HARD_TEXTS.values(), *map(str.upper, HARD_TEXTS.values())]
    ours, theirs = Vectorizer(ngram_range=(1, 2)), TfidfVectorizer(ngram_range=(1, 2), dtype=np.float32)
    assert slow.is_same(ours.fit_transform(texts), theirs.fit_transform(texts))
    assert slow.is_same(ours.transform(texts[::-1]), theirs.transform(texts[::-1]))
