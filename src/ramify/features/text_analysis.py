"""How a text becomes terms: lower case, words, stop words, stems, n-grams. The only file that imports snowballstemmer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from threading import Lock
from typing import Any

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from ramify.errors import InputError, suggest
from ramify.features.term_counts import TermList
from ramify.native import TermIndex, count_new_terms
from ramify.native import WordRules as NativeRules

MAX_NGRAM = 20
WORD = re.compile(r"\w\w+")

Place = tuple[int, int, str]  # start, end, word or term

# Function words of English by kind, and contractions split at the apostrophe.
_LONG = """
a an the this that these those such same other another others either neither each every both all any some many much more most
few fewer fewest less least several enough none no one ones

i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its
itself they them their theirs themselves who whom whose which what whoever whomever whichever whatever somebody someone
something anybody anyone anything everybody everyone everything nobody nothing oneself thee thou thy thine ye

about above across after against along alongside amid amidst among amongst around as at atop before behind below beneath beside
besides between beyond but by concerning considering despite down during except excepting excluding following for from in inside
into like minus near next of off on onto opposite out outside over past per plus regarding round save since than through
throughout till to toward towards under underneath unlike until unto up upon versus via with within without

and or nor so yet because although though even if unless while whereas whether once provided lest albeit whereby wherein
whereupon whence whither hence thence thereby therein thereof thereupon thereafter hereby herein hereafter hereupon therefore
thus however nevertheless nonetheless moreover furthermore otherwise instead meanwhile accordingly consequently likewise namely

am is are was were be been being do does did doing done have has had having can could may might must shall should will would
ought need dare used get gets got gotten getting go goes going gone went come comes coming came let lets make makes made making
take takes taken took say says said saying see seen seem seems seemed seeming become becomes became becoming keep keeps kept
give given put know known think use using

not never ever always often sometimes sometime seldom rarely usually again also too very rather quite just only almost nearly
already still soon now then here there where when why how ago away back far further farther indeed perhaps maybe please else
elsewhere everywhere somewhere anywhere nowhere anyhow anyway somehow afterwards afterward beforehand formerly latterly later
latter former lately recently together apart alone well mostly mainly largely merely really actually certainly probably
especially particularly generally simply etc eg ie viz vs yes oh ok okay

zero two three four five six seven eight nine ten first second third last own

isn aren wasn weren don doesn didn hasn haven hadn won wouldn shan shouldn couldn mustn needn ain ll ve re
"""

STOP_LISTS: dict[str, frozenset[str]] = {"english": frozenset(ENGLISH_STOP_WORDS), "english-long": frozenset(_LONG.split())}


@dataclass(frozen=True)
class WordRules:
    """What counts as a term.

    A word is two or more letters, digits and underscores, as in scikit-learn. Stop words are left out, then words are
    stemmed, then each n-gram of `shortest` to `longest` words is a term.
    """

    shortest: int
    longest: int
    lowercase: bool
    stop_words: frozenset[str]
    stemmer: str | None

    def for_kernel(self, texts: list[str]) -> NativeRules:
        """The rules in the form that kernels take, for some texts."""
        stemmed: tuple[Any, Any] = (None, None)
        if self.stemmer is not None:
            found = count_new_terms(texts, NativeRules(self.lowercase, 1, 1, self._stop_index, None, None), False)
            if stems := _stemming(self.stemmer).stems_of(TermList(found[0], found[1]).names):
                stemmed = TermList.of(list(stems)).index, TermList.of(list(stems.values())).packed
        return NativeRules(self.lowercase, self.shortest, self.longest, self._stop_index, *stemmed)

    @cached_property
    def _stop_index(self) -> TermIndex | None:
        return TermList.of(sorted(self.stop_words)).index if self.stop_words else None


def make_rules(
    ngram_range: tuple[int, int], lowercase: bool, stop_words: str | Iterable[str] | None, stemmer: str | None
) -> WordRules:
    """Make rules from checked settings."""
    try:
        shortest, longest = (int(n) for n in ngram_range)
    except (TypeError, ValueError):
        raise InputError(f"ngram_range is {ngram_range!r}; give two whole numbers, such as (1, 2).") from None
    if not 1 <= shortest <= longest <= MAX_NGRAM:
        allowed = f"the first number is at least 1, the second between it and {MAX_NGRAM}"
        raise InputError(f"ngram_range is {ngram_range!r}; {allowed}.")
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
        raise InputError("stop_words is not a list of words; give one, each word as a string.")
    return frozenset(stop_words)


class _Stemming:
    """A stemmer of one language, with a lock (it is not thread-safe) and a cache."""

    MAX_CACHED = 1 << 20  # words

    def __init__(self, stemmer: Any) -> None:
        self._stemmer = stemmer
        self._lock = Lock()
        self._known: dict[str, str] = {}

    def stems_of(self, words: list[str]) -> dict[str, str]:
        """The stem of every word."""
        with self._lock:
            if len(self._known) > self.MAX_CACHED:
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


def locate_terms(text: str, rules: WordRules) -> list[Place]:
    """(start, end, term) of every term, in the order of their starts, shorter ones first; offsets count characters of `text`.

    For one text, in Python; kernels count many texts.

    >>> locate_terms("Red fox", WordRules(1, 2, True, frozenset(), None))
    [(0, 3, 'red'), (0, 7, 'red fox'), (4, 7, 'fox')]
    """
    lowered = str.lower(text) if rules.lowercase else text
    found = [(match.start(), match.end(), match.group()) for match in WORD.finditer(lowered)]
    if len(lowered) != len(text):  # lower case may turn one character into two, as of 'İ', which shifts what follows
        origin = list(chain.from_iterable([position] * len(letter.lower()) for position, letter in enumerate(text)))
        found = [(origin[start], origin[end - 1] + 1, word) for start, end, word in found]
    words, sizes = [word for word in found if word[2] not in rules.stop_words], range(rules.shortest, rules.longest + 1)
    if rules.stemmer is not None:
        stems = _stemming(rules.stemmer).stems_of([word for _, _, word in words])
        words = [(start, end, stems[word]) for start, end, word in words]
    runs = (words[first : first + size] for first in range(len(words)) for size in sizes if first + size <= len(words))
    return [(run[0][0], run[-1][1], " ".join(word for _, _, word in run)) for run in runs]
