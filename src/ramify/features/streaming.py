"""Texts that are too many to be held: they lie in shards, and what is needed of them is counted where the shards are read.

Every shard is read and counted on a worker. Its rows over its own terms stay in a file, in a directory that all machines may
see; whoever does not see it counts the shard again. So a fit moves the terms of each shard with their counts (:meth:`terms`),
then the terms that are kept, and then the rows over these, once. Nothing here depends on how texts are cut into shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import InputError, ModelError
from ramify.features.term_counts import Rows, TermList, as_matrix, cut, joined, merge, merge_all, stacked, with_positions
from ramify.features.text_analysis import WordRules
from ramify.native import count_hashed_terms, count_new_terms, renumber_rows, sort_terms
from ramify.parallel import Executor, stage
from ramify.persistence.arrays import is_increasing, map_arrays, write_arrays
from ramify.persistence.atomic import name_beside

Ints = NDArray[np.int64]
Wanted = TermList | NDArray[np.int32] | None


class TextSource(Protocol):
    """A share of many texts, which can be read again, anywhere."""

    def texts(self) -> Iterable[str]:
        """The texts, always the same."""


@dataclass(frozen=True, slots=True)
class TextList:
    """A few texts that are at hand."""

    held: tuple[str, ...]

    def texts(self) -> Iterable[str]:
        """The texts."""
        return self.held


@dataclass(frozen=True, slots=True)
class TermCounts:
    """Rows of counted terms. terms: what the columns stand for; None where they are hashes."""

    terms: TermList | None
    rows: Rows

    def take(self, rows: Ints | None) -> Rows:
        """Some of the rows; None for all."""
        if rows is None:
            return self.rows
        offsets, columns, counts = self.rows
        taken = csr_array((counts, columns, offsets), shape=(len(offsets) - 1, 1 + int(columns.max(initial=0))))[rows]
        return taken.indptr.astype(np.int64, copy=False), taken.indices.astype(np.int32, copy=False), taken.data


@dataclass(frozen=True, slots=True)
class CountSettings:
    """How texts are counted: what a term is, and into how many columns terms are hashed, if they are."""

    rules: WordRules
    hashing: int | None

    def count(self, texts: Iterable[str]) -> TermCounts:
        """Count the terms of texts, of which a few are held at a time."""
        blocks = ((some, self.rules.for_kernel(some)) for some in cut(iter(texts), 1)[0])
        if self.hashing is not None:
            return TermCounts(None, joined([count_hashed_terms(some, *rules, self.hashing) for some, rules in blocks]))
        parts = [count_new_terms(some, *rules, True) for some, rules in blocks]
        terms, _, _, positions = merge(TermList.of([]), np.zeros(0), np.zeros(0), parts)
        renumbered = [renumber_rows(*rows, here, len(terms)) for rows, here in with_positions(parts, positions)]
        return TermCounts(terms, joined(renumbered))


@dataclass(frozen=True, slots=True)
class Shard:
    """source: who reads its texts. file: where its counts are, once it has been counted; None to count it whenever asked."""

    source: TextSource
    file: Path | None = None

    def counts(self, settings: CountSettings) -> TermCounts:
        """What was counted, or is counted now."""
        if self.file is not None:
            with suppress(OSError, ModelError):  # not seen from here, or gone
                return _read(self.file)
        counts = settings.count(self.source.texts())
        self.leave(counts)
        return counts

    def leave(self, counts: TermCounts) -> None:
        """Leave counts for whoever sees the directory; where there is no room, shards are counted whenever asked."""
        if self.file is None or not self.file.parent.is_dir():
            return
        offsets, columns, values = counts.rows
        arrays: dict[str, NDArray[Any]] = {"offsets": offsets, "columns": columns, "values": values}
        if counts.terms is not None:
            arrays |= {"terms": counts.terms.bytes, "ends": counts.terms.offsets}
        beside = name_beside(self.file, "partial")
        try:
            write_arrays(beside, arrays)
            beside.replace(self.file)
        except OSError:
            with suppress(OSError):
                beside.unlink(missing_ok=True)


def _read(path: Path) -> TermCounts:
    with open(path, "rb") as file:
        arrays = map_arrays(path, file)
    terms = TermList(arrays["terms"], arrays["ends"]) if "terms" in arrays else None
    return TermCounts(terms, (arrays["offsets"], arrays["columns"], arrays["values"]))


@dataclass(frozen=True, slots=True)
class ShardRows:
    """Some texts of a shard. rows: which ones, rising; None for all."""

    shard: Shard
    rows: Ints | None
    n_texts: int


@dataclass(frozen=True)
class ShardedTexts:
    """Texts in shards, as a vectorizer takes them in the place of a list of texts.

    sizes: the texts of each shard. chosen: which texts these are, counted through all shards, rising. hashes: what stands for
    each of them where it is asked whether two are the same.
    """

    settings: CountSettings
    shards: tuple[Shard, ...]
    sizes: tuple[int, ...]
    chosen: Ints = field(repr=False)
    hashes: NDArray[np.void] = field(repr=False)

    @classmethod
    def of(cls, settings: CountSettings, shards: Sequence[Shard], hashes: Sequence[NDArray[np.void]]) -> ShardedTexts:
        """All texts of some shards, by the hashes of the texts of each."""
        sizes = tuple(len(some) for some in hashes)
        return cls(settings, tuple(shards), sizes, np.arange(sum(sizes)), np.concatenate(hashes))

    def __len__(self) -> int:
        return len(self.chosen)

    def __iter__(self) -> Iterator[str]:
        """The texts themselves, read again."""
        for part in self._parts():
            wanted = None if part.rows is None else set(part.rows.tolist())
            for row, text in enumerate(part.shard.source.texts()):
                if wanted is None or row in wanted:
                    yield text

    @property
    def keys(self) -> list[bytes]:
        """What stands for each text."""
        return [bytes(mark) for mark in self.hashes.tolist()]

    def take(self, positions: Ints) -> ShardedTexts:
        """The texts at some rising positions."""
        if not is_increasing(np.asarray(positions), strictly=True):
            raise InputError("texts in many files can be taken in their order only; sort the positions.")
        return replace(self, chosen=self.chosen[positions], hashes=self.hashes[positions])

    def joined(self, texts: Sequence[str], keys: Sequence[bytes]) -> ShardedTexts:
        """These texts, and behind them others that are at hand."""
        behind = np.frombuffer(b"".join(keys), dtype=self.hashes.dtype)
        return ShardedTexts(
            self.settings,
            (*self.shards, Shard(TextList(tuple(texts)))),
            (*self.sizes, len(texts)),
            np.concatenate([self.chosen, sum(self.sizes) + np.arange(len(texts))]),
            np.concatenate([self.hashes, behind]),
        )

    def terms(self, executor: Executor) -> tuple[TermList, NDArray[np.float64], NDArray[np.float64]]:
        """All terms, sorted; the texts that each is in, and how often it is there."""
        return merge_all(self._spread(executor, "looking for words", _terms_in, self.settings))

    def matrix(self, executor: Executor, wanted: Wanted, n_columns: int, n_entries: int | None = None) -> csr_array:
        """The counts over some terms. wanted: the terms; for hashed columns their new numbers, None to take them as they are.

        n_entries: how many counts there will be, where it is known; each is then held once.
        """
        if wanted is None:
            n_entries = sum(self._spread(executor, "measuring", _count_entries, self.settings))
        blocks = self._spread(executor, "reading words", _rows_over, (self.settings, wanted, n_columns))
        if n_entries is None:
            return stacked(list(blocks), n_columns)
        offsets: list[NDArray[np.int64]] = [np.zeros(1, dtype=np.int64)]
        columns, values = np.empty(n_entries, dtype=np.int32), np.empty(n_entries, dtype=np.float32)
        for block in blocks:
            start, end = int(offsets[-1][-1]), int(offsets[-1][-1] + block[0][-1])
            columns[start:end], values[start:end] = block[1], block[2]
            offsets.append(block[0][1:] + start)
        return as_matrix((np.concatenate(offsets), columns, values), n_columns)

    def _spread(self, executor: Executor, title: str, job: Any, common: Any) -> Iterator[Any]:
        """What a job gives for each part, in order; tells how far it is."""
        parts = self._parts()
        with stage(title, len(self)) as step:
            for part, result in zip(parts, executor.distribute(job, executor.place(common), parts), strict=True):
                yield result
                step.advance(part.n_texts)

    def _parts(self) -> list[ShardRows]:
        starts = np.cumsum([0, *self.sizes])
        found = []
        for shard, (first, last), size in zip(self.shards, pairwise(starts.tolist()), self.sizes, strict=True):
            a, b = np.searchsorted(self.chosen, (first, last))
            if a < b:
                found.append(ShardRows(shard, None if b - a == size else self.chosen[a:b] - first, int(b - a)))
        return found


def _terms_in(settings: CountSettings, part: ShardRows) -> tuple[Any, ...]:
    """The terms of some texts, with the texts that each is in, and how often it is there."""
    counts = part.shard.counts(settings)
    assert counts.terms is not None
    _, columns, values = counts.take(part.rows)
    documents = np.bincount(columns, minlength=len(counts.terms))
    occurrences = np.bincount(columns, values, minlength=len(counts.terms))
    there = np.flatnonzero(documents)
    terms = counts.terms if len(there) == len(counts.terms) else counts.terms.take(there)
    return *(np.array(part) for part in terms.packed), documents[there], occurrences[there]


def _count_entries(settings: CountSettings, part: ShardRows) -> int:
    return int(part.shard.counts(settings).take(part.rows)[0][-1])


def _rows_over(placed: tuple[CountSettings, Wanted, int], part: ShardRows) -> Rows:
    """Rows of some texts over the terms or columns that are wanted."""
    settings, wanted, n_columns = placed
    counts = part.shard.counts(settings)
    rows = counts.take(part.rows)
    if wanted is not None:
        numbers = wanted if counts.terms is None else _numbers_in(wanted, counts.terms)
        rows = renumber_rows(*rows, numbers, n_columns)
    return rows


def _numbers_in(wanted: Any, terms: TermList) -> NDArray[np.int32]:
    """Where terms stand among those that are wanted; -1 where they do not."""
    _, offsets, positions = sort_terms([wanted.packed, terms.packed])
    numbers = np.full(len(offsets) - 1, -1, dtype=np.int32)
    numbers[positions[: len(wanted)]] = np.arange(len(wanted))
    taken: NDArray[np.int32] = numbers[positions[len(wanted) :]]
    return taken
