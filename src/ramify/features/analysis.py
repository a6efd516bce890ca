"""From a text to its terms: lower case, words, stop list, stems, n-grams. The only file that names snowballstemmer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from ramify.errors import InputError, suggest

WORD = re.compile(r"(?u)\b\w\w+\b")  # words of two or more characters, as in scikit-learn

Analyzer = Callable[[str], list[str]]


def make_analyzer(
    ngram_range: tuple[int, int], lowercase: bool, stop_words: str | Iterable[str] | None, stemmer: str | None
) -> Analyzer:
    """A function from a text to its terms, in order.

    >>> make_analyzer((1, 2), True, ["the"], None)("The red fox")
    ['red', 'fox', 'red fox']
    """
    shortest, longest = _checked_range(ngram_range)
    stop = find_stop_words(stop_words)
    stem = _find_stemmer(stemmer)

    def analyze(text: str) -> list[str]:
        words = WORD.findall(text.lower() if lowercase else text)
        words = [word for word in words if word not in stop] if stop else words
        return join_ngrams(stem(words) if stem else words, shortest, longest)

    return analyze


def find_stop_words(stop_words: str | Iterable[str] | None) -> frozenset[str]:
    """A named stop list, the user's own, or none."""
    if stop_words is None:
        return frozenset()
    if isinstance(stop_words, str):
        if stop_words != "english":
            raise InputError(f"stop_words is {stop_words!r}; give 'english', a list of words, or None.")
        return frozenset(ENGLISH_STOP_WORDS)
    return frozenset(stop_words)


def join_ngrams(words: list[str], shortest: int, longest: int) -> list[str]:
    """Every run of `shortest` to `longest` words, joined by spaces, shorter runs first."""
    if (shortest, longest) == (1, 1):
        return words
    sizes = range(shortest, min(longest, len(words)) + 1)
    return [" ".join(words[i : i + size]) for size in sizes for i in range(len(words) - size + 1)]


def _checked_range(ngram_range: tuple[int, int]) -> tuple[int, int]:
    try:
        shortest, longest = (int(n) for n in ngram_range)
    except (TypeError, ValueError):
        raise InputError(f"ngram_range is {ngram_range!r}; give two whole numbers, such as (1, 2).") from None
    if not 1 <= shortest <= longest <= 20:
        raise InputError(
            f"ngram_range is {ngram_range!r}; the first number is at least 1, the second between it and 20."
        )
    return shortest, longest


def _find_stemmer(language: str | None) -> Callable[[list[str]], list[str]] | None:
    if language is None:
        return None
    library = _snowball()
    if language not in library.algorithms():
        raise InputError(f"stemmer {language!r} is unknown.{suggest(language, library.algorithms())}")
    stemmer = library.stemmer(language)
    return lambda words: list(stemmer.stemWords(words))


def _snowball() -> Any:
    try:
        import snowballstemmer
    except ImportError:
        raise InputError("stemming needs snowballstemmer; install it with: pip install 'ramify[stem]'.") from None
    return snowballstemmer
