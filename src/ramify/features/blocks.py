"""Texts a block at a time, and the rows of blocks put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import InputError
from ramify.features.terms import TermList
from ramify.native import sort_terms

SMALL_BLOCK, LARGE_BLOCK = 1 << 20, 1 << 25  # characters that are read at a time
AT_ONCE = 1 << 14  # texts of a stream that are looked at before a block is cut

Rows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]


def cut(texts: Iterable[str], workers: int) -> tuple[Iterator[list[str]], int | None]:
    """Blocks of checked texts, and how many texts there are, where it is known."""
    if isinstance(texts, (str, bytes)):
        raise InputError("a list of texts is needed, not one text; put it in brackets: [text].")
    if not hasattr(texts, "__len__"):
        return _blocks(_checked(texts), SMALL_BLOCK), None
    listed = list(_checked(texts))
    n_characters = sum(map(len, listed))
    size = min(LARGE_BLOCK, max(SMALL_BLOCK, n_characters // (2 * workers)))
    return _blocks(iter(listed), size), len(listed)


def _blocks(texts: Iterator[str], size: int) -> Iterator[list[str]]:
    """Texts until they have so many characters."""
    block, n_characters = [], 0
    for text in texts:
        block.append(text)
        n_characters += len(text)
        if n_characters >= size or len(block) >= AT_ONCE:
            yield block
            block, n_characters = [], 0
    if block:
        yield block


def _checked(texts: Iterable[Any]) -> Iterator[str]:
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"text {position + 1} is {_name_of(text)}; every text is a string. Drop it or give it some words.")
        yield text


def _name_of(value: Any) -> str:
    if value is None:
        return "null"
    return f"{type(value).__name__} {str(value)[:40]!r}"


def merge(
    found: TermList, documents: Any, occurrences: Any, parts: list[tuple[Any, ...]]
) -> tuple[TermList, Any, Any, NDArray[np.int32]]:
    """Terms of several blocks as one sorted list with added counts; and where the terms of the blocks stand in it."""
    lists = [found.packed, *((part[0], part[1]) for part in parts)]
    terms, offsets, positions = sort_terms(lists)
    n_terms = len(offsets) - 1
    sums = [
        np.bincount(positions, np.concatenate([first, *(part[k] for part in parts)]), minlength=n_terms)
        for first, k in ((documents, 2), (occurrences, 3))
    ]
    return TermList(terms, offsets), *sums, positions[len(found) :]


def merge_all(parts: Iterable[tuple[Any, ...]]) -> tuple[TermList, Any, Any]:
    """Terms of any number of blocks as one sorted list with added counts; few blocks are held at a time."""
    found, documents, occurrences = TermList.of([]), np.zeros(0), np.zeros(0)
    waiting: list[tuple[Any, ...]] = []
    for part in parts:
        waiting.append(part)
        if sum(len(some[1]) for some in waiting) > len(found):  # so that every term is sorted a few times only
            found, documents, occurrences = merge(found, documents, occurrences, waiting)[:3]
            waiting = []
    return merge(found, documents, occurrences, waiting)[:3]


def noting_sizes(parts: Iterable[tuple[Any, ...]], sizes: list[int]) -> Iterator[tuple[Any, ...]]:
    """The same blocks, while the number of texts in each is noted."""
    for part in parts:
        sizes.append(len(part[4][0]) - 1)
        yield part


def with_positions(parts: list[tuple[Any, ...]], positions: NDArray[np.int32]) -> Iterator[tuple[Rows, NDArray[np.int32]]]:
    """The rows of every block, with where its terms stand in the merged list."""
    starts = np.cumsum([0, *(len(part[1]) - 1 for part in parts)])
    for part, start, end in zip(parts, starts[:-1], starts[1:], strict=True):
        yield part[4], positions[start:end]


def joined(blocks: list[Rows]) -> Rows:
    """Rows of several blocks, one after the other."""
    starts = np.cumsum([0, *(int(offsets[-1]) for offsets, _, _ in blocks)])
    offsets = np.concatenate([[0], *(block[0][1:] + start for block, start in zip(blocks, starts[:-1], strict=True))])
    columns = np.concatenate([block[1] for block in blocks] or [np.zeros(0, dtype=np.int32)])
    values = np.concatenate([block[2] for block in blocks] or [np.zeros(0, dtype=np.float32)])
    return offsets.astype(np.int64, copy=False), columns, values


def stacked(blocks: list[Rows], n_columns: int) -> csr_array:
    """Rows of several blocks as one matrix."""
    return as_matrix(joined(blocks), n_columns)


def as_matrix(rows: Rows, n_columns: int) -> csr_array:
    """Rows as a matrix."""
    offsets, columns, values = rows
    kind = np.int32 if offsets[-1] < 1 << 31 else np.int64
    return csr_array((values, columns, offsets.astype(kind)), shape=(len(offsets) - 1, n_columns))
