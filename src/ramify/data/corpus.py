"""What reading a file of documents gives."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

MAX_BAD_FRACTION = 0.1
HASH_BYTES = 16


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that could not be used: where it stands, why, and what could be read of it."""

    source: str
    line: int
    reason: str
    cells: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}: {self.reason}"


@runtime_checkable
class StoredTexts(Protocol):
    """Texts that are not held here, such as those of many files. keys: what stands for each, made by :func:`hash_text`."""

    @property
    def keys(self) -> list[bytes]: ...  # noqa: D102

    def take(self, positions: NDArray[np.int64]) -> Self:
        """The texts at some rising positions."""

    def joined(self, texts: Sequence[str], keys: Sequence[bytes]) -> Self:
        """These texts, and behind them others that are here."""


def hash_text(text: str) -> bytes:
    """What stands for a text where it is asked whether two are the same: in all likelihood no other text has it."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=HASH_BYTES).digest()


@dataclass(frozen=True, slots=True)
class DocumentLocations:
    """Where the documents of several files stand: document i in line lines[i] of files[file_of[i]]."""

    files: Sequence[str]
    file_of: NDArray[np.int32]
    lines: NDArray[np.int64]

    @classmethod
    def of(cls, files: Sequence[str], lines: Sequence[Sequence[int] | NDArray[np.int64]]) -> DocumentLocations:
        """The places of all documents, from the lines of each file."""
        counts = [len(some) for some in lines]
        together = np.concatenate([np.asarray(some, dtype=np.int64) for some in lines] or [np.zeros(0, dtype=np.int64)])
        return cls(files, np.repeat(np.arange(len(files), dtype=np.int32), counts), together)

    def take(self, chosen: NDArray[np.int64]) -> DocumentLocations:
        """Some of them."""
        return replace(self, file_of=self.file_of[chosen], lines=self.lines[chosen])

    def __getitem__(self, position: int) -> str:
        return f"{self.files[self.file_of[position]]}, line {self.lines[position]}"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents and their labels.

    documents: texts, texts that are not held here, or a CSR matrix of vectors.
    labels: the labels of each document, most specific ones; empty lists where there are none.
    lines: where each document stands in its file. locations: the same, where there are several files.
    bad_rows: what was left out.
    found: what was found out about the file: columns, separators.
    """

    source: str
    documents: Any
    labels: list[list[str]]
    lines: Sequence[int] = ()
    bad_rows: list[BadRow] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=dict)
    locations: DocumentLocations | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def has_vectors(self) -> bool:
        """Whether documents are vectors rather than texts."""
        return not isinstance(self.documents, (list, StoredTexts))

    @property
    def keys(self) -> Sequence[Hashable]:
        """What tells texts apart: the texts, or what stands for them where they are not held."""
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
        """The documents whose text no document of another corpus has; both hold texts."""
        ours, theirs = comparable_keys(self, other)
        left_out = set(theirs)
        kept = [i for i, key in enumerate(ours) if key not in left_out]
        return self if len(kept) == len(self) else self.take(kept)

    def joined(self, other: Corpus) -> Corpus:
        """The documents of both, of which this one tells where they were found; both have texts, the other holds them."""
        if isinstance(self.documents, StoredTexts):
            documents: Any = self.documents.joined(other.documents, [hash_text(text) for text in other.documents])
        else:
            documents = [*self.documents, *other.documents]
        return replace(self, documents=documents, labels=[*self.labels, *other.labels], lines=(), locations=None)

    def labelled(self) -> Corpus:
        """The documents that have a label."""
        return self if all(self.labels) else self.take([i for i, labels in enumerate(self.labels) if labels])

    def with_width(self, n_features: int) -> Corpus:
        """Vectors with just so many features: absent ones are 0, and those that a model never saw are left out."""
        if not self.has_vectors or self.documents.shape[1] == n_features:
            return self
        resized = self.documents.copy()
        resized.resize((self.documents.shape[0], n_features))
        return replace(self, documents=resized)

    def location_of(self, position: int) -> str:
        """Where a document stands, in words."""
        if self.locations is not None:
            return self.locations[position]
        return f"{self.source}, line {self.lines[position]}" if self.lines else f"{self.source}, document {position + 1}"


def comparable_keys(one: Corpus, other: Corpus) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
    """What tells the texts of two corpora apart, in the same form for both."""
    is_held = [isinstance(corpus.documents, list) for corpus in (one, other)]
    if all(is_held):
        return one.documents, other.documents
    first, second = (
        [hash_text(text) for text in corpus.documents] if held else corpus.keys
        for corpus, held in zip((one, other), is_held, strict=True)
    )
    return first, second
