"""How a text becomes terms: lower case, words or characters, stop words, stems, n-grams.

The only file that imports snowballstemmer.
"""

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
from ramify.native import TermRules as NativeRules

MAX_NGRAM = 20
ANALYZERS = ("word", "char", "char_wb")
WORD, NOT_SPACE = re.compile(r"\w\w+"), re.compile(r"\S+")

Place = tuple[int, int, str]  # start, end; word, character or term

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
class TermRules:
    """What counts as a term, as in scikit-learn: each n-gram of `shortest` to `longest` words or characters.

    analyzer: "word": two or more letters, digits and underscores; stop words are left out, then words are stemmed. "char":
    all characters, where white space of two or more becomes one space. "char_wb": characters of each run without white space,
    with a space before and after it; one that is shorter than an n-gram is a term as it is.
    """

    analyzer: str
    shortest: int
    longest: int
    lowercase: bool
    stop_words: frozenset[str]
    stemmer: str | None

    def for_kernel(self, texts: list[str]) -> NativeRules:
        """The rules in the form that kernels take, for some texts."""
        stemmed: tuple[Any, Any] = (None, None)
        if self.stemmer is not None:
            found = count_new_terms(texts, NativeRules("word", self.lowercase, 1, 1, self._stop_index, None, None), False)
            if stems := _stemming(self.stemmer).stems_of(TermList(found[0], found[1]).names):
                stemmed = TermList.of(list(stems)).index, TermList.of(list(stems.values())).packed
        return NativeRules(self.analyzer, self.lowercase, self.shortest, self.longest, self._stop_index, *stemmed)

    @cached_property
    def _stop_index(self) -> TermIndex | None:
        return TermList.of(sorted(self.stop_words)).index if self.stop_words else None


def make_rules(
    analyzer: str, ngram_range: tuple[int, int], lowercase: bool, stop_words: str | Iterable[str] | None, stemmer: str | None
) -> TermRules:
    """Make rules from checked settings."""
    if analyzer not in ANALYZERS:
        hint = suggest(str(analyzer), ANALYZERS)
        raise InputError(f"analyzer is {analyzer!r}; give one of {', '.join(map(repr, ANALYZERS))}.{hint}")
    if analyzer != "word" and not (stop_words is None and stemmer is None):
        raise InputError(f"analyzer is {analyzer!r}, and stop words and stems are of words; leave them out, or use 'word'.")
    try:
        shortest, longest = (int(n) for n in ngram_range)
    except (TypeError, ValueError):
        raise InputError(f"ngram_range is {ngram_range!r}; give two whole numbers, such as (1, 2).") from None
    if not 1 <= shortest <= longest <= MAX_NGRAM:
        allowed = f"the first number is at least 1, the second between it and {MAX_NGRAM}"
        raise InputError(f"ngram_range is {ngram_range!r}; {allowed}.")
    if stemmer is not None:
        _stemming(stemmer)
    return TermRules(analyzer, shortest, longest, bool(lowercase), find_stop_words(stop_words), stemmer)


def find_stop_words(stop_words: str | Iterable[str] | None) -> frozenset[str]:
    """A named stop list, the user's own, or none."""
    if stop_words is None:
        return frozenset()
    if isinstance(stop_words, str):
        if stop_words not in STOP_LISTS:
            known = " or ".join(repr(name) for name in STOP_LISTS)
            raise InputError(
                f"stop_words is {stop_words!r}; give {known}, a list of words, or None.{suggest(stop_words, STOP_LISTS)}"
            )
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


def locate_terms(text: str, rules: TermRules) -> list[Place]:
    """(start, end, term) of every term, in the order of their starts, shorter ones first; offsets count characters of `text`.

    For one text, in Python; kernels count many texts.

    >>> locate_terms("Red fox", make_rules("word", (1, 2), True, None, None))
    [(0, 3, 'red'), (0, 7, 'red fox'), (4, 7, 'fox')]
    >>> locate_terms("Ox", make_rules("char_wb", (3, 3), True, None, None))
    [(0, 2, ' ox'), (0, 2, 'ox ')]
    """
    lowered = str.lower(text) if rules.lowercase else text
    origin = list(range(len(text) + 1))
    if len(lowered) != len(text):  # lower case may turn one character into two, as of 'İ', which shifts what follows
        origin = [*chain.from_iterable([at] * len(letter.lower()) for at, letter in enumerate(text)), len(text)]
    found, joint = list[Place](), " " if rules.analyzer == "word" else ""
    for run in _runs(lowered, rules):
        most = len(run) if rules.analyzer == "char_wb" else rules.longest  # a short word is one term
        sizes = sorted({min(size, most) for size in range(rules.shortest, rules.longest + 1)})
        for first in range(len(run)):
            for some in (run[first : first + size] for size in sizes if first + size <= len(run)):
                start, end = some[0][0], some[-1][1]
                places = origin[start], origin[end - 1] + 1 if end > start else origin[start]
                found.append((*places, joint.join(each for _, _, each in some)))
    return found


def _runs(text: str, rules: TermRules) -> list[list[Place]]:
    """Words or characters that terms are made of; no term goes from one list into the next."""
    if rules.analyzer == "word":
        words = [(m.start(), m.end(), m.group()) for m in WORD.finditer(text) if m.group() not in rules.stop_words]
        if rules.stemmer is not None:
            stems = _stemming(rules.stemmer).stems_of([word for _, _, word in words])
            words = [(start, end, stems[word]) for start, end, word in words]
        return [words]
    if rules.analyzer == "char_wb":
        spans = [match.span() for match in NOT_SPACE.finditer(text)]
        return [[(a, a, " "), *((at, at + 1, text[at]) for at in range(a, b)), (b, b, " ")] for a, b in spans]
    pieces = re.finditer(r"\s\s+|.", text, re.DOTALL)
    return [[(m.start(), m.end(), " " if m.end() - m.start() > 1 else m.group()) for m in pieces]]
