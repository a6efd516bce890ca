"""Classifying a stream of rows that need not fit in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.datasets import BadRow, Corpus
from ramify.datasets.documents import why_not_text
from ramify.errors import DataError
from ramify.execution import choose_executor, is_elsewhere, row_blocks
from ramify.pipeline.answering import Answering, Wish, batch_size
from ramify.pipeline.classifier import TextClassifier

BATCH_CHARACTERS = 1 << 22
FAR_BATCHES = 16  # so many batches go to a worker of a cluster at once

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

    A few hundred rows are held at a time for each thread that the classifier has, or some more for each worker of a cluster;
    only texts are sent there.
    """
    return answer_stream(Answering(classifier.with_threads(1), wish), rows, text, classifier.n_jobs)


def answer_stream(
    answer: Answering, rows: Iterable[tuple[int, dict[str, Any] | BadRow]], text: str, n_jobs: int | None
) -> Iterator[Answer]:
    """The same, by somebody who answers with one thread and may be asked from several."""
    executor = choose_executor(n_jobs)
    size = answer.batch_size * (FAR_BATCHES if is_elsewhere() else 1)
    waiting: deque[tuple[Rows, list[str | None]]] = deque()

    def sent() -> Iterator[list[str]]:
        for batch in _batches(rows, text, size):
            reasons = _reasons(batch, text)
            waiting.append((batch, reasons))
            yield _texts(batch, reasons, text)

    for found in executor.spread(answer_texts, executor.place(answer), sent()):
        yield from _put_together(*waiting.popleft(), found)


def answer_texts(answer: Answering, texts: list[str]) -> list[tuple[Labels, Labels]]:
    """The labels of each text, and the further ones; where memory does not suffice for all at once, for halves in turn."""
    size, answers = answer.batch_size, []
    try:
        for start in range(0, len(texts), size):
            answers += [(answer.named(labels), answer.named(others)) for labels, others in answer(texts[start : start + size])]
    except MemoryError:
        if len(texts) < 2:
            raise
        half = len(texts) // 2
        return answer_texts(answer, texts[:half]) + answer_texts(answer, texts[half:])
    return answers


def answer_rows(answer: Answering, rows: Rows, text: str) -> list[Answer]:
    """An answer for each of a few rows."""
    reasons = _reasons(rows, text)
    found = answer(_texts(rows, reasons, text))
    return list(_put_together(rows, reasons, [(answer.named(labels), answer.named(others)) for labels, others in found]))


def _reasons(rows: Rows, text: str) -> list[str | None]:
    return [row.reason if isinstance(row, BadRow) else _why_not(row, text) for _, row in rows]


def _texts(rows: Rows, reasons: list[str | None], text: str) -> list[str]:
    return [row[text] for (_, row), why in zip(rows, reasons, strict=True) if why is None and isinstance(row, dict)]


def _put_together(rows: Rows, reasons: list[str | None], found: Iterable[tuple[Labels, Labels]]) -> Iterator[Answer]:
    answers = iter(found)
    for (line, row), reason in zip(rows, reasons, strict=True):
        labels, others = next(answers) if reason is None else ([], [])
        yield Answer(line, row.cells if isinstance(row, BadRow) else row, labels, others, reason)


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
