"""From a text to its terms: lower case, words, stop list, stems, n-grams. The only file that names snowballstemmer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from ramify.errors import InputError, suggest

WORD = re.compile(r"(?u)\b\w\w+\b")  # words of two or more characters, as in scikit-learn
MAX_NGRAM = 20


@dataclass(frozen=True, slots=True)
class Analyzer:
    """A function from a text to its terms, in order.

    >>> make_analyzer((1, 2), True, ["the"], None)("The red fox")
    ['red', 'fox', 'red fox']
    """

    shortest: int
    longest: int
    lowercase: bool
    stop_words: frozenset[str]
    stemmer: str | None

    def __call__(self, text: str) -> list[str]:
        """The terms of a text."""
        words = WORD.findall(text.lower() if self.lowercase else text)
        if self.stop_words:
            words = [word for word in words if word not in self.stop_words]
        if self.stemmer is not None:
            words = list(_stemmer(self.stemmer).stemWords(words))
        return join_ngrams(words, self.shortest, self.longest)


def make_analyzer(
    ngram_range: tuple[int, int], lowercase: bool, stop_words: str | Iterable[str] | None, stemmer: str | None
) -> Analyzer:
    """An analyzer with checked settings."""
    shortest, longest = _checked_range(ngram_range)
    if stemmer is not None:
        _stemmer(stemmer)
    return Analyzer(shortest, longest, bool(lowercase), find_stop_words(stop_words), stemmer)


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
    if not 1 <= shortest <= longest <= MAX_NGRAM:
        allowed = f"the first number is at least 1, the second between it and {MAX_NGRAM}"
        raise InputError(f"ngram_range is {ngram_range!r}; {allowed}.")
    return shortest, longest


@cache
def _stemmer(language: str) -> Any:
    try:
        import snowballstemmer
    except ImportError:
        raise InputError("stemming needs snowballstemmer; install it with: pip install 'ramify[stem]'.") from None
    if language not in snowballstemmer.algorithms():
        known = snowballstemmer.algorithms()
        raise InputError(f"stemmer {language!r} is unknown.{suggest(str(language), known)} There are {', '.join(known)}.")
    return snowballstemmer.stemmer(language)
