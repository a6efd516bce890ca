"""Term counts of texts that do not fit into memory: texts lie in shards, and workers count each shard where they read it.

The counts of a shard are saved to a file, if there is a shared directory; a worker that cannot read the file counts the shard
again. A fit moves the terms of each shard with their counts (:meth:`ShardedTexts.terms`), then the selected terms, then the
rows over these, once. Results do not depend on how texts are divided into shards.
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
from ramify.features import term_counts
from ramify.features.term_counts import Rows, TermList
from ramify.features.text_analysis import TermRules
from ramify.native import count_hashed_terms, count_new_terms, sort_terms
from ramify.parallel import Executor, stage
from ramify.persistence.arrays import is_increasing, map_arrays, write_arrays
from ramify.persistence.atomic import name_beside

Ints = NDArray[np.int64]
Wanted = TermList | NDArray[np.int32] | None


class TextSource(Protocol):
    """Texts that can be read repeatedly, on any worker."""

    def texts(self) -> Iterable[str]:
        """Read the texts; always the same ones."""


@dataclass(frozen=True, slots=True)
class TextList:
    """Texts in memory."""

    held: tuple[str, ...]

    def texts(self) -> Iterable[str]:
        """The texts."""
        return self.held


@dataclass(frozen=True, slots=True)
class TermCounts:
    """Rows of term counts. terms: the names of the columns; None for hashed columns."""

    terms: TermList | None
    rows: Rows

    def take(self, rows: Ints | None) -> Rows:
        """Selected rows; None for all."""
        if rows is None:
            return self.rows
        offsets, columns, counts = self.rows
        taken = csr_array((counts, columns, offsets), shape=(len(offsets) - 1, 1 + int(columns.max(initial=0))))[rows]
        return taken.indptr.astype(np.int64, copy=False), taken.indices.astype(np.int32, copy=False), taken.data


@dataclass(frozen=True, slots=True)
class CountSettings:
    """How to count terms. hashing: the number of hashed columns; None for a vocabulary."""

    rules: TermRules
    hashing: int | None

    def count(self, texts: Iterable[str]) -> TermCounts:
        """Count the terms of texts, a block at a time."""
        blocks = ((some, self.rules.for_kernel(some)) for some in term_counts.cut(iter(texts), 1)[0])
        if self.hashing is not None:
            hashed = [count_hashed_terms(some, rules, self.hashing) for some, rules in blocks]
            return TermCounts(None, term_counts.joined(hashed))
        parts = [count_new_terms(some, rules, True) for some, rules in blocks]
        terms, _, _, positions = term_counts.merge(TermList.of([]), np.zeros(0), np.zeros(0), parts)
        numbered = term_counts.with_positions(parts, positions)
        return TermCounts(terms, term_counts.joined([term_counts.renumber(rows, part, len(terms)) for rows, part in numbered]))


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of texts. file: where its counts are saved; None to count it every time."""

    source: TextSource
    file: Path | None = None

    def counts(self, settings: CountSettings) -> TermCounts:
        """Read the saved counts, or count and save them."""
        if self.file is not None:
            with suppress(OSError, ModelError):  # not visible from this worker, or gone
                with open(self.file, "rb") as file:
                    arrays = map_arrays(self.file, file)
                terms = TermList(arrays["terms"], arrays["ends"]) if "terms" in arrays else None
                return TermCounts(terms, (arrays["offsets"], arrays["columns"], arrays["values"]))
        counts = settings.count(self.source.texts())
        self.save_counts(counts)
        return counts

    def save_counts(self, counts: TermCounts) -> None:
        """Save counts for other workers; if that fails, shards are counted every time."""
        if self.file is None or not self.file.parent.is_dir():
            return
        arrays: dict[str, NDArray[Any]] = dict(zip(("offsets", "columns", "values"), counts.rows, strict=True))
        if counts.terms is not None:
            arrays |= {"terms": counts.terms.bytes, "ends": counts.terms.offsets}
        beside = name_beside(self.file, "partial")
        try:
            write_arrays(beside, arrays)
            beside.replace(self.file)
        except OSError:
            with suppress(OSError):
                beside.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class ShardRows:
    """Selected texts of a shard. rows: increasing; None for all."""

    shard: Shard
    rows: Ints | None
    n_texts: int


@dataclass(frozen=True)
class ShardedTexts:
    """Texts in shards; a vectorizer accepts them instead of a list of texts.

    sizes: the number of texts in each shard. chosen: the positions of these texts in all shards, increasing. hashes: of each
    text, to find duplicates.
    """

    settings: CountSettings
    shards: tuple[Shard, ...]
    sizes: tuple[int, ...]
    chosen: Ints = field(repr=False)
    hashes: NDArray[np.void] = field(repr=False)

    @classmethod
    def of(cls, settings: CountSettings, shards: Sequence[Shard], hashes: Sequence[NDArray[np.void]]) -> ShardedTexts:
        """All texts of shards, with the hashes of the texts of each shard."""
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
        """The texts at increasing positions."""
        if not is_increasing(np.asarray(positions), strictly=True):
            raise InputError("texts in many files can only be taken in order; sort the positions.")
        return replace(self, chosen=self.chosen[positions], hashes=self.hashes[positions])

    def joined(self, texts: Sequence[str], keys: Sequence[bytes]) -> ShardedTexts:
        """These texts, followed by texts in memory."""
        added = np.frombuffer(b"".join(keys), dtype=self.hashes.dtype)
        shards, sizes = (*self.shards, Shard(TextList(tuple(texts)))), (*self.sizes, len(texts))
        chosen = np.concatenate([self.chosen, sum(self.sizes) + np.arange(len(texts))])
        return ShardedTexts(self.settings, shards, sizes, chosen, np.concatenate([self.hashes, added]))

    def terms(self, executor: Executor) -> tuple[TermList, NDArray[np.float64], NDArray[np.float64]]:
        """All terms, sorted, with document frequencies and numbers of occurrences."""
        return term_counts.merge_all(self._map(executor, "counting terms", _terms_in, self.settings))

    def matrix(self, executor: Executor, wanted: Wanted, n_columns: int, n_entries: int | None = None) -> csr_array:
        """The matrix of counts. wanted: the terms; for hashed columns their new numbers, or None to use all columns.

        n_entries: the number of non-zero counts, if known; the matrix is then filled in place.
        """
        if wanted is None:
            n_entries = sum(self._map(executor, "measuring", _count_entries, self.settings))
        blocks = self._map(executor, "building the matrix", _rows_over, (self.settings, wanted, n_columns))
        if n_entries is None:
            return term_counts.stacked(list(blocks), n_columns)
        offsets: list[NDArray[np.int64]] = [np.zeros(1, dtype=np.int64)]
        columns, values = np.empty(n_entries, dtype=np.int32), np.empty(n_entries, dtype=np.float32)
        for block in blocks:
            start, end = int(offsets[-1][-1]), int(offsets[-1][-1] + block[0][-1])
            columns[start:end], values[start:end] = block[1], block[2]
            offsets.append(block[0][1:] + start)
        return term_counts.as_matrix((np.concatenate(offsets), columns, values), n_columns)

    def _map(self, executor: Executor, title: str, job: Any, common: Any) -> Iterator[Any]:
        """Apply a job to each shard, in order, and report progress."""
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
    """The terms of texts, with document frequencies and numbers of occurrences."""
    counts = part.shard.counts(settings)
    assert counts.terms is not None
    _, columns, values = counts.take(part.rows)
    documents = np.bincount(columns, minlength=len(counts.terms))
    occurrences = np.bincount(columns, values, minlength=len(counts.terms))
    used = np.flatnonzero(documents)
    terms = counts.terms if len(used) == len(counts.terms) else counts.terms.take(used)
    return np.array(terms.bytes), np.array(terms.offsets), documents[used], occurrences[used]


def _count_entries(settings: CountSettings, part: ShardRows) -> int:
    return int(part.shard.counts(settings).take(part.rows)[0][-1])


def _rows_over(placed: tuple[CountSettings, Wanted, int], part: ShardRows) -> Rows:
    """Rows of texts over the wanted terms or columns."""
    settings, wanted, n_columns = placed
    counts = part.shard.counts(settings)
    rows = counts.take(part.rows)
    if isinstance(wanted, TermList):
        # the positions of the shard's terms among the wanted ones, -1 for others
        assert counts.terms is not None
        _, offsets, positions = sort_terms([wanted.packed, counts.terms.packed])
        numbers = np.full(len(offsets) - 1, -1, dtype=np.int32)
        numbers[positions[: len(wanted)]] = np.arange(len(wanted))
        return term_counts.renumber(rows, numbers[positions[len(wanted) :]], n_columns)
    return rows if wanted is None else term_counts.renumber(rows, wanted, n_columns)
