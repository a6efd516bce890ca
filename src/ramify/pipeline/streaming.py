"""Classifying a stream of rows that need not fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.datasets import BadRow, Corpus
from ramify.datasets.documents import why_not_text
from ramify.errors import DataError
from ramify.execution import choose_executor, row_blocks
from ramify.pipeline.answering import Answering, Wish, batch_size
from ramify.pipeline.classifier import TextClassifier

BATCH_CHARACTERS = 1 << 22

Rows = list[tuple[int, dict[str, Any] | BadRow]]
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
    classifier: TextClassifier, rows: Iterable[tuple[int, dict[str, Any] | BadRow]], text: str, wish: Wish | None = None
) -> Iterator[Answer]:
    """An answer for every row, in order; a row that cannot be classified gets the reason instead of a label.

    A few hundred rows are held at a time, on as many threads as the classifier has.
    """
    answer = Answering(classifier.with_threads(1), wish)
    batches = _batches(rows, text, answer.batch_size)
    for answers in choose_executor(classifier.n_jobs).map(lambda batch: answer_rows(answer, batch, text), batches):
        yield from answers


def answer_rows(answer: Answering, rows: Rows, text: str) -> list[Answer]:
    """An answer for each of a few rows."""
    reasons = [row.reason if isinstance(row, BadRow) else _why_not(row, text) for _, row in rows]
    texts = [row[text] for (_, row), why in zip(rows, reasons, strict=True) if why is None and isinstance(row, dict)]
    found = iter(answer(texts))
    made = []
    for (line, row), reason in zip(rows, reasons, strict=True):
        labels, others = next(found) if reason is None else ([], [])
        cells = row.cells if isinstance(row, BadRow) else row
        made.append(Answer(line, cells, answer.named(labels), answer.named(others), reason))
    return made


def _why_not(row: dict[str, Any], text: str) -> str | None:
    return why_not_text(row[text]) if text in row else f"there is no {text!r}"


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


def classify_vectors(classifier: TextClassifier, corpus: Corpus, wish: Wish | None = None) -> Iterator[Answer]:
    """An answer for every document of a corpus of fitting vectors, and for every bad row, in order of their lines."""
    bad = iter(sorted(corpus.bad_rows, key=lambda row: row.line))
    waiting, answer = next(bad, None), Answering(classifier, wish)
    for block in row_blocks(len(corpus), 1, answer.batch_size):
        for line, (labels, others) in zip(corpus.lines[block], answer(corpus.documents[block]), strict=True):
            while waiting is not None and waiting.line < line:
                yield Answer(waiting.line, {"line": waiting.line}, [], [], waiting.reason)
                waiting = next(bad, None)
            yield Answer(line, {"line": line}, answer.named(labels), answer.named(others))
    while waiting is not None:
        yield Answer(waiting.line, {"line": waiting.line}, [], [], waiting.reason)
        waiting = next(bad, None)


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
