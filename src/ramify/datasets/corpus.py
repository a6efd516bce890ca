"""What reading a file of documents gives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

MAX_BAD_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that could not be used: where it stands, why, and what could be read of it."""

    source: str
    line: int
    reason: str
    cells: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents and their labels.

    documents: texts, or a CSR matrix of vectors.
    labels: the labels of each document, most specific ones; empty lists where there are none.
    lines: where each document stands in its file.
    bad_rows: what was left out.
    found: what was found out about the file: columns, separators.
    """

    source: str
    documents: Any
    labels: list[list[str]]
    lines: Sequence[int] = ()
    bad_rows: list[BadRow] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def has_vectors(self) -> bool:
        """Whether documents are vectors rather than texts."""
        return not isinstance(self.documents, list)

    def take(self, positions: Any) -> Corpus:
        """The documents at some positions, in that order."""
        chosen = np.asarray(positions, dtype=np.int64)
        documents = self.documents[chosen] if self.has_vectors else [self.documents[i] for i in chosen]
        lines = [self.lines[i] for i in chosen] if self.lines else ()
        return replace(self, documents=documents, labels=[self.labels[i] for i in chosen], lines=lines)

    def without_texts(self, texts: Collection[str]) -> Corpus:
        """The documents whose text is none of those given."""
        kept = [i for i, text in enumerate(self.documents) if text not in texts]
        return self if len(kept) == len(self) else self.take(kept)

    def joined(self, other: Corpus) -> Corpus:
        """The documents of both, of which this one tells where they were found; both hold texts."""
        documents, labels = [*self.documents, *other.documents], [*self.labels, *other.labels]
        return replace(self, documents=documents, labels=labels, lines=())

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

    def place_of(self, position: int) -> str:
        """Where a document stands, in words."""
        return f"{self.source}, line {self.lines[position]}" if self.lines else f"{self.source}, document {position + 1}"
