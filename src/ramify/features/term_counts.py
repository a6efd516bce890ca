"""Vocabularies and blocks of term counts in the form that kernels take, and the limits on document frequency."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.arguments import entries
from ramify.errors import InputError
from ramify.native import Rows as NativeRows
from ramify.native import TermIndex, Terms, index_terms, renumber_rows, sort_terms

PADDING = 8  # bytes that kernels may read after the last term
SMALL_BLOCK, LARGE_BLOCK = 1 << 20, 1 << 25  # characters in a block of texts
MAX_TEXTS = 1 << 14  # texts in a block

Ints = NDArray[np.int64]
Rows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]  # offsets, columns, counts


@dataclass(frozen=True)
class TermList:
    """Concatenated terms in UTF-8: term t is ``bytes[offsets[t]:offsets[t + 1]]``.

    >>> TermList.of(["tea", "thé"]).names
    ['tea', 'thé']
    """

    bytes: NDArray[np.uint8]
    offsets: Ints

    @classmethod
    def of(cls, names: Sequence[str]) -> TermList:
        """A list of given terms."""
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
        offsets = np.concatenate([[0], np.cumsum([len(term) for term in encoded])]).astype(np.int64)
        return cls(np.frombuffer(b"".join(encoded) + bytes(PADDING), dtype=np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def packed(self) -> Terms:
        """The terms as kernels take them."""
        return Terms(self.bytes, self.offsets)

    @cached_property
    def names(self) -> list[str]:
        """The terms as strings."""
        content, ends = self.bytes[: int(self.offsets[-1])].tobytes(), self.offsets.tolist()
        if content.isascii():
            text = content.decode("ascii")
            return [text[a:b] for a, b in pairwise(ends)]
        return [content[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]

    def names_of(self, numbers: Ints) -> list[str]:
        """Some of the terms as strings."""
        ends = zip(self.offsets[numbers].tolist(), self.offsets[numbers + 1].tolist(), strict=True)
        return [self.bytes[a:b].tobytes().decode("utf-8", "surrogatepass") for a, b in ends]

    @cached_property
    def index(self) -> TermIndex:
        """The hash table for kernels; the seed is random, so that nobody can construct collisions."""
        seed = secrets.randbits(64)
        return TermIndex(self.packed, index_terms(self.packed, seed), seed)

    def take(self, numbers: Ints) -> TermList:
        """Some of the terms."""
        lengths = np.diff(self.offsets)[numbers]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        sources = np.repeat(self.offsets[numbers] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return TermList(np.concatenate([self.bytes[sources], np.zeros(PADDING, dtype=np.uint8)]), offsets)


def cut(texts: Iterable[str], workers: int) -> tuple[Iterator[list[str]], int | None]:
    """Blocks of checked texts, and the number of texts, if known."""
    texts = entries(texts, "texts")
    if not isinstance(texts, Sized):
        return _blocks(texts, SMALL_BLOCK), None
    listed = list(texts)
    if not all(issubclass(kind, str) for kind in set(map(type, listed))):
        for position, text in enumerate(listed):
            _check_text(text, position)
    ends = np.cumsum(np.fromiter(map(len, listed), dtype=np.int64, count=len(listed)))
    size = min(LARGE_BLOCK, max(SMALL_BLOCK, int(ends[-1:].sum()) // (2 * workers)))
    return _slices(listed, ends, size), len(listed)


def _slices(texts: list[str], ends: Ints, size: int) -> Iterator[list[str]]:
    """The same blocks as those of :func:`_blocks`, without looking at each text. ends: of texts, in characters."""
    start = 0
    while start < len(texts):
        before = int(ends[start - 1]) if start else 0
        end = min(int(np.searchsorted(ends, before + size)) + 1, start + MAX_TEXTS, len(texts))
        yield texts[start:end]
        start = end


def _blocks(texts: Iterable[Any], size: int) -> Iterator[list[str]]:
    """Divide texts into blocks of about so many characters."""
    block: list[str] = []
    n_characters = 0
    for position, text in enumerate(texts):
        _check_text(text, position)
        block.append(text)
        n_characters += len(text)
        if n_characters >= size or len(block) >= MAX_TEXTS:
            yield block
            block, n_characters = [], 0
    if block:
        yield block


def _check_text(text: Any, position: int) -> None:
    if not isinstance(text, str):
        found = "null" if text is None else f"{type(text).__name__} {str(text)[:40]!r}"
        raise InputError(f"text {position + 1} is {found}; every text is a string. Drop it or give it some words.")


def merge(
    found: TermList, documents: Any, occurrences: Any, parts: list[tuple[Any, ...]]
) -> tuple[TermList, Any, Any, NDArray[np.int32]]:
    """Merge the terms of blocks into a sorted list and add up their counts; also the positions of each block's terms in it."""
    lists = [found.packed, *(Terms(part[0], part[1]) for part in parts)]
    terms, offsets, positions = sort_terms(lists)
    n_terms = len(offsets) - 1
    sums = [
        np.bincount(positions, np.concatenate([first, *(part[k] for part in parts)]), minlength=n_terms)
        for first, k in ((documents, 2), (occurrences, 3))
    ]
    return TermList(terms, offsets), *sums, positions[len(found) :]


def merge_all(parts: Iterable[tuple[Any, ...]]) -> tuple[TermList, Any, Any]:
    """Merge any number of blocks; few are in memory at a time."""
    found, documents, occurrences = TermList.of([]), np.zeros(0), np.zeros(0)
    waiting: list[tuple[Any, ...]] = []
    for part in parts:
        waiting.append(part)
        if sum(len(some[1]) for some in waiting) > len(found):  # so that each term is sorted a few times only
            found, documents, occurrences = merge(found, documents, occurrences, waiting)[:3]
            waiting = []
    return merge(found, documents, occurrences, waiting)[:3]


def with_positions(parts: list[tuple[Any, ...]], positions: NDArray[np.int32]) -> Iterator[tuple[Rows, NDArray[np.int32]]]:
    """The rows of each block, with the positions of its terms in the merged list."""
    starts = np.cumsum([0, *(len(part[1]) - 1 for part in parts)])
    for part, start, end in zip(parts, starts[:-1], starts[1:], strict=True):
        yield part[4], positions[start:end]


def renumber(rows: Rows, numbers: NDArray[np.int32], n_columns: int) -> Rows:
    """Rows over other columns. numbers: the new column of each, below n_columns; below 0 to drop it."""
    renumbered: Rows = renumber_rows(NativeRows(*rows, len(numbers)), numbers, n_columns)
    return renumbered


def take_columns(rows: Rows, wanted: NDArray[Any]) -> Rows:
    """Rows over some columns, rising; takes no memory for the others, however many there are."""
    offsets, columns, counts = rows
    place = np.searchsorted(wanted, columns)
    is_wanted = place < len(wanted)
    is_wanted[is_wanted] = wanted[place[is_wanted]] == columns[is_wanted]
    ends = np.concatenate([[0], np.cumsum(is_wanted)])[offsets]
    return ends.astype(np.int64), place[is_wanted].astype(np.int32), counts[is_wanted]


def joined(blocks: list[Rows]) -> Rows:
    """Concatenate the rows of blocks."""
    starts = np.cumsum([0, *(int(offsets[-1]) for offsets, _, _ in blocks)])
    offsets = np.concatenate([[0], *(block[0][1:] + start for block, start in zip(blocks, starts[:-1], strict=True))])
    columns = np.concatenate([block[1] for block in blocks] or [np.zeros(0, dtype=np.int32)])
    values = np.concatenate([block[2] for block in blocks] or [np.zeros(0, dtype=np.float32)])
    return offsets.astype(np.int64, copy=False), columns, values


def stacked(blocks: list[Rows], n_columns: int) -> csr_array:
    """The rows of blocks as one matrix."""
    return as_matrix(joined(blocks), n_columns)


def as_matrix(rows: Rows, n_columns: int) -> csr_array:
    """Rows as a matrix."""
    offsets, columns, values = rows
    kind = np.int32 if offsets[-1] < 1 << 31 else np.int64
    return csr_array((values, columns, offsets.astype(kind)), shape=(len(offsets) - 1, n_columns))


# fewest and most documents of a term; the number of terms to use, None for all
Limits = tuple[float, float, int | None]


def find_limits(min_df: Any, max_df: Any, max_features: Any, n_texts: int) -> Limits:
    """Turn settings into numbers of documents; a float is a fraction of the texts."""
    bounds = []
    for name, value in (("min_df", min_df), ("max_df", max_df)):
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 1:
            bounds.append(float(value))
        elif isinstance(value, (float, np.floating)) and 0 <= value <= 1:
            bounds.append(float(value) * n_texts)
        else:
            raise InputError(f"{name} is {value!r}; give a whole number of documents from 1 on, or a fraction from 0.0 to 1.0.")
    if max_features is not None and (not isinstance(max_features, (int, np.integer)) or max_features < 1):
        raise InputError(f"max_features is {max_features!r}; give a whole number of 1 or more, or None.")
    return bounds[0], bounds[1], None if max_features is None else int(max_features)


def are_none(min_df: Any, max_df: Any, max_features: Any) -> bool:
    """Whether the settings leave out no term; max_df=1 means one document, max_df=1.0 all of them."""
    return find_limits(min_df, max_df, max_features, 2) == (1.0, 2.0, None)


def keep_within(limits: Limits, documents: NDArray[Any], occurrences: NDArray[Any]) -> NDArray[np.int64]:
    """The terms within limits, increasing; equally frequent terms are chosen as scikit-learn does."""
    fewest, most, at_most = limits
    kept = np.flatnonzero((documents >= fewest) & (documents <= most))
    if at_most is not None and len(kept) > at_most:
        kept = np.sort(kept[(-occurrences[kept].astype(np.float64)).argsort()[:at_most]])
    if not len(kept):
        raise InputError("min_df, max_df and max_features leave no term; loosen them.")
    return kept
