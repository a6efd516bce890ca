"""How a text becomes terms: lower case, words, stop list, stems, runs of words. The only file that names snowballstemmer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock
from typing import Any

from ramify.errors import InputError, suggest
from ramify.features.stop_words import STOP_LISTS
from ramify.features.terms import TermList
from ramify.native import count_new_terms

MAX_NGRAM = 20


@dataclass(frozen=True)
class WordRules:
    """What counts as a term.

    Words are runs of two or more letters, digits and underscores, as in scikit-learn. Stop words are left out, then words are
    reduced to stems, then every run of `shortest` to `longest` words is a term.
    """

    shortest: int
    longest: int
    lowercase: bool
    stop_words: frozenset[str]
    stemmer: str | None

    def for_kernel(self, texts: list[str]) -> tuple[Any, ...]:
        """The rules as kernels take them, for some texts."""
        stems = () if self.stemmer is None else self._stems_of(texts)
        stemmed = (TermList.of(list(stems)).index, TermList.of(list(stems.values())).packed) if stems else (None, None)
        return self.lowercase, self.shortest, self.longest, self._left_out, *stemmed

    def reduce(self, words: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
        """Words with their places, without stop words, each as its stem."""
        kept = [word for word in words if word[2] not in self.stop_words]
        if self.stemmer is None:
            return kept
        stems = _stemming(self.stemmer).stems_of([word for _, _, word in kept])
        return [(start, end, stems[word]) for start, end, word in kept]

    @cached_property
    def _left_out(self) -> Any:
        return TermList.of(sorted(self.stop_words)).index if self.stop_words else None

    def _stems_of(self, texts: list[str]) -> dict[str, str]:
        """The stem of every word in some texts; each different word is stemmed once."""
        assert self.stemmer is not None
        found = count_new_terms(texts, self.lowercase, 1, 1, self._left_out, None, None, False)
        return _stemming(self.stemmer).stems_of(TermList(found[0], found[1]).names)


def make_rules(
    ngram_range: tuple[int, int], lowercase: bool, stop_words: str | Iterable[str] | None, stemmer: str | None
) -> WordRules:
    """Rules with checked settings."""
    shortest, longest = _checked_range(ngram_range)
    if stemmer is not None:
        _stemming(stemmer)
    return WordRules(shortest, longest, bool(lowercase), find_stop_words(stop_words), stemmer)


def find_stop_words(stop_words: str | Iterable[str] | None) -> frozenset[str]:
    """A named stop list, the user's own, or none."""
    if stop_words is None:
        return frozenset()
    if isinstance(stop_words, str):
        if stop_words not in STOP_LISTS:
            known = " or ".join(repr(name) for name in STOP_LISTS)
            raise InputError(f"stop_words is {stop_words!r}; give {known}, a list of words, or None.")
        return STOP_LISTS[stop_words]
    if not isinstance(stop_words, (list, tuple, set, frozenset)) or not all(isinstance(word, str) for word in stop_words):
        raise InputError("stop_words is no list of words; give one, each word as a string.")
    return frozenset(stop_words)


def _checked_range(ngram_range: tuple[int, int]) -> tuple[int, int]:
    try:
        shortest, longest = (int(n) for n in ngram_range)
    except (TypeError, ValueError):
        raise InputError(f"ngram_range is {ngram_range!r}; give two whole numbers, such as (1, 2).") from None
    if not 1 <= shortest <= longest <= MAX_NGRAM:
        allowed = f"the first number is at least 1, the second between it and {MAX_NGRAM}"
        raise InputError(f"ngram_range is {ngram_range!r}; {allowed}.")
    return shortest, longest


class _Stemming:
    """One language's stemmer, which can do one word at a time, and what it found so far."""

    MOST = 1 << 20  # words that are remembered

    def __init__(self, stemmer: Any) -> None:
        self._stemmer = stemmer
        self._lock = Lock()
        self._known: dict[str, str] = {}

    def stems_of(self, words: list[str]) -> dict[str, str]:
        """The stem of every word."""
        with self._lock:
            if len(self._known) > self.MOST:
                self._known.clear()
            new = [word for word in words if word not in self._known]
            self._known.update(zip(new, self._stemmer.stemWords(new), strict=True))
            return {word: self._known[word] for word in words}


@cache
def _stemming(language: str) -> _Stemming:
    try:
        import snowballstemmer
    except ImportError:
        raise InputError("stemming needs snowballstemmer; install it with: pip install 'ramify[stem]'.") from None
    if language not in snowballstemmer.algorithms():
        known = snowballstemmer.algorithms()
        raise InputError(f"stemmer {language!r} is unknown.{suggest(str(language), known)} There are {', '.join(known)}.")
    return _Stemming(snowballstemmer.stemmer(language))
