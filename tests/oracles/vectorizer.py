"""The slow twin of the vectorizer: one word after the other, counts as dicts."""

import math
import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
import snowballstemmer

WORD = re.compile(r"(?u)\b\w\w+\b")


def words_of(text: str, lowercase: bool = True, stop_words: Iterable[str] = (), stemmer: str | None = None) -> list[str]:
    """Runs of two or more word characters; stop words are left out before words are reduced to stems."""
    found = WORD.findall(text.lower() if lowercase else text)
    words = [word for word in found if word not in set(stop_words)]
    return words if stemmer is None else [snowballstemmer.stemmer(stemmer).stemWord(word) for word in words]


def terms_of(text: str, ngram_range: tuple[int, int] = (1, 1), **rules: object) -> list[str]:
    """Every run of so many words, joined by a space."""
    words = words_of(text, **rules)
    sizes = range(ngram_range[0], ngram_range[1] + 1)
    return [" ".join(words[k : k + size]) for size in sizes for k in range(len(words) - size + 1)]


def count_terms(texts: Iterable[str], **rules: object) -> list[Counter[str]]:
    """How often each term is in each text."""
    return [Counter(terms_of(text, **rules)) for text in texts]


def weigh(counts: list[Counter[str]]) -> list[dict[str, float]]:
    """tf-idf with smoothed idf, rows of unit length."""
    documents = Counter(term for row in counts for term in row)
    idf = {term: math.log((1 + len(counts)) / (1 + n)) + 1 for term, n in documents.items()}
    rows = [{term: count * idf[term] for term, count in row.items()} for row in counts]
    lengths = [math.sqrt(sum(value**2 for value in row.values())) for row in rows]
    return [{term: value / length for term, value in row.items()} for row, length in zip(rows, lengths, strict=True)]


def as_dicts(X: object, terms: Iterable[str]) -> list[dict[str, float]]:
    """The rows of a matrix as dicts, to be compared with."""
    names = list(terms)
    rows = [slice(a, b) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    return [{names[c]: float(v) for c, v in zip(X.indices[row], X.data[row], strict=True)} for row in rows]


def is_same(X: object, Z: object) -> bool:
    """Whether two matrices hold the same numbers at the same places, bit for bit, once rows are sorted."""
    X, Z = X.copy(), Z.copy()
    X.sort_indices(), Z.sort_indices()
    return X.shape == Z.shape and all(
        np.array_equal(getattr(X, part), getattr(Z, part)) for part in ("indptr", "indices", "data")
    )
