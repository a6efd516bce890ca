"""Classifying a stream of rows that need not fit in memory."""

from __future__ import annotations

import csv
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ramify.classifier.text_classifier import TextClassifier
from ramify.data import BadRow, Corpus, stream_rows
from ramify.data.documents import why_not_text
from ramify.data.svmlight import read_vectors
from ramify.data.tables import find_kind, known_encoding
from ramify.errors import DataError
from ramify.parallel import Stage, choose_executor, is_distributed, row_blocks
from ramify.workflows.evaluation import adapt_corpus, refuse_texts
from ramify.workflows.predictor import PredictOptions, Predictor, batch_size
from ramify.workflows.reading import readable

BATCH_CHARACTERS = 1 << 22
FAR_BATCHES = 16  # so many batches go to a worker of a cluster at once

Rows = list[tuple[int, dict[str, Any] | BadRow]]
Labels = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is said of one row.

    line: where the row stands. row: its cells, as far as they could be read. labels: with a probability each, most likely
    first. others: further candidates. problem: why there is no answer, or None.
    """

    line: int
    row: dict[str, Any]
    labels: Labels
    others: Labels
    problem: str | None = None


def predict_rows(
    classifier: TextClassifier,
    rows: Iterable[tuple[int, dict[str, Any] | BadRow]],
    text: str,
    options: PredictOptions | None = None,
) -> Iterator[Prediction]:
    """An answer for every row, in order; a row that cannot be classified gets the reason instead of a label.

    A few hundred rows are held at a time for each thread that the classifier has, or some more for each worker of a cluster;
    only texts are sent there.
    """
    return answer_stream(Predictor(classifier.with_threads(1), options), rows, text, classifier.n_jobs)


def answer_stream(
    answer: Predictor, rows: Iterable[tuple[int, dict[str, Any] | BadRow]], text: str, n_jobs: int | None
) -> Iterator[Prediction]:
    """The same, by somebody who answers with one thread and may be asked from several."""
    executor = choose_executor(n_jobs)
    size = answer.batch_size * (FAR_BATCHES if is_distributed() else 1)
    waiting: deque[tuple[Rows, list[str | None]]] = deque()

    def sent() -> Iterator[list[str]]:
        for batch in _batches(rows, text, size):
            reasons = _reasons(batch, text)
            waiting.append((batch, reasons))
            yield _texts(batch, reasons, text)

    for found in executor.distribute(answer_texts, executor.place(answer), sent()):
        yield from _put_together(*waiting.popleft(), found)


def answer_texts(answer: Predictor, texts: list[str]) -> list[tuple[Labels, Labels]]:
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


def answer_rows(answer: Predictor, rows: Rows, text: str) -> list[Prediction]:
    """An answer for each of a few rows."""
    reasons = _reasons(rows, text)
    found = answer(_texts(rows, reasons, text))
    return list(_put_together(rows, reasons, [(answer.named(labels), answer.named(others)) for labels, others in found]))


def _reasons(rows: Rows, text: str) -> list[str | None]:
    return [row.reason if isinstance(row, BadRow) else _why_not(row, text) for _, row in rows]


def _texts(rows: Rows, reasons: list[str | None], text: str) -> list[str]:
    return [row[text] for (_, row), why in zip(rows, reasons, strict=True) if why is None and isinstance(row, dict)]


def _put_together(rows: Rows, reasons: list[str | None], found: Iterable[tuple[Labels, Labels]]) -> Iterator[Prediction]:
    answers = iter(found)
    for (line, row), reason in zip(rows, reasons, strict=True):
        labels, others = next(answers) if reason is None else ([], [])
        yield Prediction(line, row.cells if isinstance(row, BadRow) else row, labels, others, reason)


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


def predict_vectors(classifier: TextClassifier, corpus: Corpus, options: PredictOptions | None = None) -> Iterator[Prediction]:
    """An answer for every document of a corpus of fitting vectors, and for every bad row, in order of their lines."""
    bad = iter(sorted(corpus.bad_rows, key=lambda row: row.line))
    waiting, answer = next(bad, None), Predictor(classifier, options)
    for block in row_blocks(len(corpus), 1, answer.batch_size):
        for line, (labels, others) in zip(corpus.lines[block], answer(corpus.documents[block]), strict=True):
            while waiting is not None and waiting.line < line:
                yield Prediction(waiting.line, {"line": waiting.line}, [], [], waiting.reason)
                waiting = next(bad, None)
            yield Prediction(line, {"line": line}, answer.named(labels), answer.named(others))
    while waiting is not None:
        yield Prediction(waiting.line, {"line": waiting.line}, [], [], waiting.reason)
        waiting = next(bad, None)


@contextmanager
def predict_file(
    classifier: TextClassifier, data: Path, options: PredictOptions, text: str | None = None, encoding: str = "utf-8"
) -> Iterator[tuple[list[str], Iterator[Prediction]]]:
    """The columns of a table of documents, or of a file of vectors, and a prediction for every row."""
    with readable(data) as file:
        if find_kind(file, known_encoding(encoding)) == "svmlight":
            yield ["line"], predict_vectors(classifier, adapt_corpus(classifier, read_vectors(file)), options)
            return
        refuse_texts(classifier, str(file))
        columns, column, rows = stream_rows(file, text, like=classifier.figures_.get("columns"), encoding=encoding)
        yield columns, predict_rows(classifier, rows, column, options)


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


# --------------------------------------------------------------------------------------------------------------
# Answers as rows of a table, CSV, TSV or JSON Lines: the cells that came, and behind them what was predicted.


SEVERAL = " | "
TOLD_AFTER = 500  # rows, after which progress is told
Writer = Callable[[IO[str], Sequence[str], int], Callable[[Prediction], None]]


@dataclass(frozen=True, slots=True)
class PredictionTable:
    """What the rows of answers look like.

    columns: those of the input. top: how many labels were asked for.

    >>> PredictionTable(["text"], top=1).cells(Prediction(1, {"text": "no picture"}, [("tv", 0.9)], []))
    ['no picture', 'tv', '0.9000', '']
    """

    columns: Sequence[str]
    top: int = 1

    @property
    def head(self) -> list[str]:
        """The names of all columns."""
        pairs = [f"{name}_{k}" for k in range(2, self.top + 1) for name in ("predicted", "probability")]
        return [*self.columns, *free_names(("predicted", "probability", *pairs, "problem"), self.columns)]

    def cells(self, answer: Prediction) -> list[Any]:
        """The row of an answer."""
        came = [_cell(answer.row.get(column)) for column in self.columns]
        labels = SEVERAL.join([label for label, _ in answer.labels])
        chances = SEVERAL.join([f"{p:.4f}" for _, p in answer.labels])
        others = [cell for label, p in answer.others for cell in (label, f"{p:.4f}")]
        missing = [""] * (2 * (self.top - 1) - len(others))
        return [*came, labels, chances, *others, *missing, answer.problem or ""]


@dataclass(frozen=True, slots=True)
class Tally:
    """What was written: rows, labels in them, rows that could not be classified, and the first of these with the reason."""

    documents: int = 0
    labels: int = 0
    problems: int = 0
    first: str = ""

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        counts = (self.documents + other.documents, self.labels + other.labels, self.problems + other.problems)
        return Tally(*counts, self.first or other.first)


def write_all(
    answers: Iterable[Prediction], write: Callable[[Prediction], None], source: str, strict: bool, step: Stage
) -> Tally:
    """Write answers and count them. strict: refuse the first row that could not be classified."""
    documents = labels = problems = 0
    first = ""
    for answer in answers:
        if answer.problem:
            first = first or f"{source}, line {answer.line}: {answer.problem}"
            problems += 1
            if strict:
                raise DataError(f"{first}; put it right, or drop --strict.")
        documents += 1
        labels += len(answer.labels)
        write(answer)
        if documents % TOLD_AFTER == 0:
            step.advance(TOLD_AFTER)
    return Tally(documents, labels, problems, first)


def free_names(names: Iterable[str], taken: Sequence[str]) -> list[str]:
    """Names for our columns that the input does not use already.

    >>> free_names(["predicted", "problem"], ["text", "problem"])
    ['predicted', 'ramify_problem']
    """
    return [_free(name, taken) for name in names]


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = f"ramify_{name}"
    return name


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value


def _json_lines(file: IO[str], columns: Sequence[str], top: int) -> Callable[[Prediction], None]:
    predicted, also, line, problem = free_names(("predicted", "also", "line", "problem"), columns)

    def write(answer: Prediction) -> None:
        row: dict[str, Any] = {**answer.row, predicted: _objects(answer.labels)}
        if answer.others:
            row[also] = _objects(answer.others)
        if answer.problem:
            row |= {line: answer.line, problem: answer.problem}
        file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")

    return write


def _table(file: IO[str], columns: Sequence[str], top: int, delimiter: str) -> Callable[[Prediction], None]:
    table, shown = csv.writer(file, delimiter=delimiter, lineterminator="\n"), PredictionTable(columns, top)
    table.writerow(shown.head)

    def write(answer: Prediction) -> None:
        table.writerow(shown.cells(answer))

    return write


def _objects(labels: list[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"label": label, "probability": p} for label, p in labels]


# by the ending of a file; each takes the file, the columns of the input, and how many labels were asked for
WRITERS: dict[str, Writer] = {
    ".csv": partial(_table, delimiter=","),
    ".tsv": partial(_table, delimiter="\t"),
    ".jsonl": _json_lines,
}
