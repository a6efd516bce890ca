"""Documents and labels that were read from files, and splits into training and test documents."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ramify.arguments import check_count
from ramify.errors import InputError

MAX_BAD_FRACTION = 0.1
HASH_BYTES = 16


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that could not be used: its line, the reason, and the readable cells."""

    source: str
    line: int
    reason: str
    cells: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}: {self.reason}"


@runtime_checkable
class StoredTexts(Protocol):
    """Texts that are not in memory, such as those of many files. keys: the hash of each text, by :func:`hash_text`."""

    @property
    def keys(self) -> list[bytes]: ...  # noqa: D102

    def take(self, positions: NDArray[np.int64]) -> Self:
        """The texts at increasing positions."""

    def joined(self, texts: Sequence[str], keys: Sequence[bytes]) -> Self:
        """These texts, followed by texts in memory."""


def hash_text(text: Any) -> bytes:
    """A hash of a text, or of a document with several columns, to find equal ones."""
    text = text if isinstance(text, str) else repr(text)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=HASH_BYTES).digest()


def text_of(document: Any) -> str:
    """A document as one text, to show it.

    >>> text_of("late parcel"), text_of(("late parcel", None, "Acme", 3.0))
    ('late parcel', 'late parcel | Acme | 3')
    """
    if isinstance(document, str):
        return document
    return " | ".join(f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in document if cell is not None)


@dataclass(frozen=True, slots=True)
class DocumentLocations:
    """Where documents of several files were read: document i in line lines[i] of files[file_of[i]]."""

    files: Sequence[str]
    file_of: NDArray[np.int32]
    lines: NDArray[np.int64]

    @classmethod
    def of(cls, files: Sequence[str], lines: Sequence[Sequence[int] | NDArray[np.int64]]) -> DocumentLocations:
        """The locations of all documents, from the lines of each file."""
        counts = [len(some) for some in lines]
        together = np.concatenate([np.asarray(some, dtype=np.int64) for some in lines] or [np.zeros(0, dtype=np.int64)])
        return cls(files, np.repeat(np.arange(len(files), dtype=np.int32), counts), together)

    def take(self, chosen: NDArray[np.int64]) -> DocumentLocations:
        """The locations of some documents."""
        return replace(self, file_of=self.file_of[chosen], lines=self.lines[chosen])

    def __getitem__(self, position: int) -> str:
        return f"{self.files[self.file_of[position]]}, line {self.lines[position]}"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents and their labels.

    documents: a list of texts, or of tuples of cells where a document has several columns; stored texts; or a CSR matrix of
    vectors.
    labels: the most specific labels of each document; may be empty.
    lines: the line of each document in its file. locations: the same for several files.
    bad_rows: rows that were left out. found: the detected columns and label separator. remarks: what else to know of the file.
    """

    source: str
    documents: Any
    labels: list[list[str]]
    lines: Sequence[int] = ()
    bad_rows: list[BadRow] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=dict)
    locations: DocumentLocations | None = None
    remarks: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def has_vectors(self) -> bool:
        """Whether documents are vectors rather than texts."""
        return not isinstance(self.documents, (list, StoredTexts))

    @property
    def keys(self) -> Sequence[Hashable]:
        """The texts, or their hashes if they are not in memory; equal keys mean equal texts."""
        return self.documents.keys if isinstance(self.documents, StoredTexts) else self.documents

    def take(self, positions: Any) -> Corpus:
        """The documents at some positions, in that order."""
        chosen = np.asarray(positions, dtype=np.int64)
        if isinstance(self.documents, StoredTexts):
            documents: Any = self.documents.take(chosen)
        else:
            documents = self.documents[chosen] if self.has_vectors else [self.documents[i] for i in chosen]
        lines = [self.lines[i] for i in chosen] if self.lines else ()
        locations = None if self.locations is None else self.locations.take(chosen)
        return replace(self, documents=documents, labels=[self.labels[i] for i in chosen], lines=lines, locations=locations)

    def without_texts_of(self, other: Corpus) -> Corpus:
        """The documents whose text is not in another corpus; both hold texts."""
        ours, theirs = comparable_keys(self, other)
        excluded = set(theirs)
        rest = [i for i, key in enumerate(ours) if key not in excluded]
        return self if len(rest) == len(self) else self.take(rest)

    def joined(self, other: Corpus) -> Corpus:
        """The documents of both; both hold texts, those of the other in memory."""
        if isinstance(self.documents, StoredTexts):
            documents: Any = self.documents.joined(other.documents, [hash_text(text) for text in other.documents])
        else:
            documents = [*self.documents, *other.documents]
        return replace(self, documents=documents, labels=[*self.labels, *other.labels], lines=(), locations=None)

    def labelled(self) -> Corpus:
        """The documents that have a label."""
        return self if all(self.labels) else self.take([i for i, labels in enumerate(self.labels) if labels])

    def with_width(self, n_features: int) -> Corpus:
        """Vectors with a given number of features: missing ones are 0, further ones are dropped."""
        if not self.has_vectors or self.documents.shape[1] == n_features:
            return self
        resized = self.documents.copy()
        resized.resize((self.documents.shape[0], n_features))
        return replace(self, documents=resized)

    def location_of(self, position: int) -> str:
        """File and line of a document, for messages."""
        if self.locations is not None:
            return self.locations[position]
        return f"{self.source}, line {self.lines[position]}" if self.lines else f"{self.source}, document {position + 1}"


def comparable_keys(one: Corpus, other: Corpus) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
    """The keys of two corpora in the same form: texts, or hashes."""
    if isinstance(one.documents, list) and isinstance(other.documents, list):
        return one.documents, other.documents
    hashed = [list(map(hash_text, each.documents)) if isinstance(each.documents, list) else each.keys for each in (one, other)]
    return hashed[0], hashed[1]


def hold_out(
    labels: Sequence[Sequence[str]], fraction: float = 0.2, seed: int = 0, texts: Sequence[Hashable] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sorted positions of training and test documents, stratified by label set.

    Each label set gives `fraction` of its documents to the test set, rounded at random, but never its last document. A document
    with the same text as a training document is left out of the test set. texts: the texts, or a key for each.

    >>> train, test = hold_out([["a"]] * 8 + [["b"]] * 2, fraction=0.5, seed=1)
    >>> len(train), len(test)
    (5, 5)
    """
    check_count(seed, "seed", 0)
    if not 0 < fraction < 1:
        raise InputError(f"the fraction to hold out is {fraction}; give a number between 0 and 1, such as 0.2.")
    rng = np.random.default_rng(seed)
    groups: dict[tuple[str, ...], list[int]] = {}
    for position, given in enumerate(labels):
        groups.setdefault(tuple(sorted(given)), []).append(position)
    tested: list[int] = []
    for group in groups.values():
        size = min(int(fraction * len(group) + rng.random()), len(group) - 1)
        tested += rng.permutation(group)[:size].tolist()
    is_tested = np.zeros(len(labels), dtype=bool)
    is_tested[tested] = True
    if texts is not None:
        trained_on = {texts[i] for i in np.flatnonzero(~is_tested).tolist()}
        is_tested[[i for i in tested if texts[i] in trained_on]] = False
    return np.flatnonzero(~is_tested), np.flatnonzero(is_tested)
