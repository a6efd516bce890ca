"""What reading a file of documents gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

MAX_BAD_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that could not be used: where it stands and why."""

    source: str
    line: int
    reason: str

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
