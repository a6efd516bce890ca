"""Where the terms of a text stand in it: the slow twin of the kernels that count them, for one text at a time."""

from __future__ import annotations

import re
from itertools import chain

from ramify.features.analysis import WordRules

WORD = re.compile(r"\w\w+")

Place = tuple[int, int, str]


def locate_terms(text: str, rules: WordRules) -> list[Place]:
    """(start, end, term) of every term, in the order of their starts, shorter ones first; offsets count characters of `text`.

    >>> locate_terms("Red fox", WordRules(1, 2, True, frozenset(), None))
    [(0, 3, 'red'), (0, 7, 'red fox'), (4, 7, 'fox')]
    """
    words = rules.reduce(_locate_words(text, rules.lowercase))
    sizes = range(rules.shortest, rules.longest + 1)
    runs = (words[first : first + size] for first in range(len(words)) for size in sizes if first + size <= len(words))
    return [(run[0][0], run[-1][1], " ".join(word for _, _, word in run)) for run in runs]


def _locate_words(text: str, lowercase: bool) -> list[Place]:
    written = str.lower(text) if lowercase else text
    found = [(match.start(), match.end(), match.group()) for match in WORD.finditer(written)]
    if len(written) == len(text):
        return found
    # a character may become two, as 'İ' does, so that what follows stands further on than in the text
    origin = list(chain.from_iterable([place] * len(letter.lower()) for place, letter in enumerate(text)))
    return [(origin[start], origin[end - 1] + 1, word) for start, end, word in found]
