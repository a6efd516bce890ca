"""Classifying a stream of rows that need not fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.datasets import BadRow, Corpus
from ramify.datasets.documents import why_not_text
from ramify.errors import DataError
from ramify.execution import row_blocks
from ramify.pipeline.classifier import TextClassifier
from ramify.taxonomy import most_specific

BATCH = 2_000
BATCH_BYTES = 1 << 26
BATCH_CHARACTERS = 1 << 24

Labels = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said of one row.

    line: where the row stands. row: its cells, as far as they could be read. labels: with a probability each, most likely
    first. others: further candidates. problem: why there is no answer, or None.
    """

    line: int
    row: dict[str, Any]
    labels: Labels
    others: Labels
    problem: str | None = None


def classify_rows(
    classifier: TextClassifier, rows: Iterable[tuple[int, dict[str, Any] | BadRow]], text: str, top: int = 1
) -> Iterator[Answer]:
    """An answer for every row, in order; a row that cannot be classified gets the reason instead of a label."""
    names = _Names(classifier)
    for batch in _batches(rows, text, batch_size(len(classifier.taxonomy_))):
        reasons = [row.reason if isinstance(row, BadRow) else why_not_text(row.get(text)) for _, row in batch]
        texts = [row[text] for (_, row), why in zip(batch, reasons, strict=True) if why is None and isinstance(row, dict)]
        answers = _classify(classifier, texts, top, names)
        for (line, row), reason in zip(batch, reasons, strict=True):
            cells = row.cells if isinstance(row, BadRow) else row
            labels, others = next(answers) if reason is None else ([], [])
            yield Answer(line, cells, labels, others, reason)


def score_rows(
    classifier: TextClassifier, rows: Iterable[tuple[int, dict[str, Any] | BadRow]], text: str, bad: list[str], strict: bool
) -> Iterator[tuple[dict[str, Any], NDArray[np.float32]]]:
    """The scores of every row that can be read; the others are noted in `bad`, or refused when `strict`."""
    for batch in _batches(rows, text, batch_size(len(classifier.taxonomy_))):
        good = []
        for line, row in batch:
            reason = row.reason if isinstance(row, BadRow) else why_not_text(row.get(text))
            if isinstance(row, BadRow) or reason is not None:
                bad.append(f"line {line}: {reason}")
                if strict:
                    raise DataError(f"{bad[-1]}; put it right, or drop --strict.")
            else:
                good.append(row)
        if good:
            yield from zip(
                good, classifier.learner_.scores(classifier.vectorizer_.transform([r[text] for r in good])), strict=True
            )


def classify_vectors(classifier: TextClassifier, corpus: Corpus, top: int = 1) -> Iterator[Answer]:
    """An answer for every document of a corpus of fitting vectors, and for every bad row, in order of their lines."""
    bad = iter(sorted(corpus.bad_rows, key=lambda row: row.line))
    waiting, names = next(bad, None), _Names(classifier)
    for block in row_blocks(len(corpus), BATCH_BYTES // batch_size(len(classifier.taxonomy_)), BATCH_BYTES):
        answers = _classify(classifier, corpus.documents[block], top, names)
        for line, (labels, others) in zip(corpus.lines[block], answers, strict=True):
            while waiting is not None and waiting.line < line:
                yield Answer(waiting.line, {"line": waiting.line}, [], [], waiting.reason)
                waiting = next(bad, None)
            yield Answer(line, {"line": line}, labels, others)
    while waiting is not None:
        yield Answer(waiting.line, {"line": waiting.line}, [], [], waiting.reason)
        waiting = next(bad, None)


def batch_size(n_nodes: int) -> int:
    """How many documents are held at once."""
    return max(1, min(BATCH, BATCH_BYTES // (16 * max(1, n_nodes))))


def _batches(rows: Iterable[tuple[int, Any]], text: str, most: int) -> Iterator[list[tuple[int, Any]]]:
    """A few rows at a time: so many, or fewer where texts are long."""
    batch: list[tuple[int, Any]] = []
    n_characters = 0
    for line, row in rows:
        batch.append((line, row))
        cell = row.get(text) if isinstance(row, dict) else None
        n_characters += len(cell) if isinstance(cell, str) else 0
        if len(batch) >= most or n_characters >= BATCH_CHARACTERS:
            yield batch
            batch, n_characters = [], 0
    if batch:
        yield batch


class _Names(dict[int, str]):
    """Nodes as the user writes them, each written once."""

    def __init__(self, classifier: TextClassifier) -> None:
        self.classifier = classifier

    def __missing__(self, node: int) -> str:
        name = self[node] = self.classifier.form_.write(self.classifier.taxonomy_, [node])[0]
        return name


def _classify(classifier: TextClassifier, documents: Any, top: int, names: _Names) -> Iterator[tuple[Labels, Labels]]:
    Y, P = classifier.decide_with_probabilities(documents, answers_only=top == 1)
    own = most_specific(Y, classifier.taxonomy_)
    ends, nodes = own.indptr.tolist(), own.indices.tolist()
    chosen = P[np.repeat(np.arange(Y.shape[0]), np.diff(own.indptr)), own.indices].tolist()
    for d, (start, end) in enumerate(pairwise(ends)):
        labels = [(names[node], p) for node, p in zip(nodes[start:end], chosen[start:end], strict=True)]
        if end - start > 1:
            labels.sort(key=lambda label: -label[1])
        others = _next_best(classifier, P[d], own.indices[start:end], top - 1) if top > 1 else ()
        yield labels, [(names[int(node)], float(P[d, node])) for node in others]


def _next_best(classifier: TextClassifier, p: NDArray[np.float32], chosen: NDArray[Any], count: int) -> NDArray[np.int64]:
    """The most likely leaves that were not chosen."""
    candidates = np.setdiff1d(np.flatnonzero(classifier.taxonomy_.is_leaf & ~np.isnan(p)), chosen)
    return candidates[np.argsort(-p[candidates], kind="stable")[:count]]
