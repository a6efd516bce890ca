"""Predict labels for a stream of rows that need not fit in memory, and write them as CSV, TSV or JSON Lines."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ramify.classifier.text_classifier import TextClassifier
from ramify.data import BadRow, Corpus, stream_rows
from ramify.data.columns import Columns
from ramify.data.documents import why_not_text
from ramify.data.svmlight import read_vectors
from ramify.data.tables import find_format
from ramify.errors import DataError
from ramify.features.base import check_fitted
from ramify.formatting import csv_line
from ramify.parallel import Stage, choose_executor, is_distributed, row_blocks
from ramify.type_hints import checks_types
from ramify.workflows.predictor import PredictOptions, Predictor, batch_size
from ramify.workflows.reading import adapt_corpus, readable, refuse_texts

BATCH_CHARACTERS = 1 << 22
REMOTE_BATCHES = 16  # batches that a worker of a cluster gets at a time
LABEL_SEPARATOR = " | "
PROGRESS_ROWS = 500  # between two reports of progress

Row = tuple[int, dict[str, Any] | BadRow]  # line and cells
Labels = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction for one row.

    row: its cells, as far as they could be read. labels: with their probabilities, most probable first. others: further
    candidates. problem: why there is no prediction, or None. text: what was classified, if it is a text.
    """

    line: int
    row: dict[str, Any]
    labels: Labels
    others: Labels
    problem: str | None = None
    text: str | None = None


@checks_types
def predict_rows(
    classifier: TextClassifier, rows: Iterable[Row], text: str | Columns, options: PredictOptions | None = None
) -> Iterator[Prediction]:
    """A prediction for every row, in order; a row that cannot be classified gets the reason instead of a label.

    text: the column with the text, or several.

    A few hundred rows are held at a time for each thread, or some more for each worker of a cluster; only texts are sent there.
    """
    check_fitted(classifier)
    columns = text if isinstance(text, Columns) else Columns((text,), ())
    return stream_predictions(Predictor(classifier.with_threads(1), options), rows, columns, classifier.n_jobs)


def stream_predictions(predictor: Predictor, rows: Iterable[Row], text: Columns, n_jobs: int | None) -> Iterator[Prediction]:
    """The same as :func:`predict_rows`, by a predictor with one thread that may be called from many threads."""
    executor = choose_executor(n_jobs)
    size = predictor.batch_size * (REMOTE_BATCHES if is_distributed() else 1)
    waiting: deque[list[Row]] = deque()

    def texts() -> Iterator[list[str]]:
        for batch in _batches(rows, text, size):
            waiting.append(batch)
            yield _texts(batch, text)

    for found in executor.distribute(predict_texts, executor.place(predictor), texts()):
        yield from _merge(waiting.popleft(), text, found)


def predict_texts(predictor: Predictor, texts: list[str]) -> list[tuple[Labels, Labels]]:
    """The labels of each text, and the further ones; where memory does not suffice, first for one half, then the other."""
    size, predictions = predictor.batch_size, []
    try:
        for start in range(0, len(texts), size):
            found = predictor.predict(texts[start : start + size])
            predictions += [(predictor.named(labels), predictor.named(others)) for labels, others in found]
    except MemoryError:
        if len(texts) < 2:
            raise
        half = len(texts) // 2
        return predict_texts(predictor, texts[:half]) + predict_texts(predictor, texts[half:])
    return predictions


def predict_batch(predictor: Predictor, rows: list[Row], text: Columns) -> list[Prediction]:
    """A prediction for each row of one batch."""
    return list(_merge(rows, text, predict_texts(predictor, _texts(rows, text))))


def _reason(row: dict[str, Any] | BadRow, text: Columns) -> str | None:
    """Why a row cannot be classified; None if it can."""
    if isinstance(row, BadRow):
        return row.reason
    missing = next((name for name in text.texts if name not in row), None) if len(text.texts) == 1 else None
    return why_not_text(text.read_text(row)) if missing is None else f"there is no {missing!r}"


def _texts(rows: list[Row], text: Columns) -> list[str]:
    return [text.read_document(row) for _, row in rows if isinstance(row, dict) and _reason(row, text) is None]


def _merge(rows: list[Row], text: Columns, found: Iterable[tuple[Labels, Labels]]) -> Iterator[Prediction]:
    predictions = iter(found)
    for line, row in rows:
        reason = _reason(row, text)
        labels, others = next(predictions) if reason is None else ([], [])
        if isinstance(row, BadRow):
            yield Prediction(line, row.cells, labels, others, reason)
        else:
            yield Prediction(line, row, labels, others, reason, None if reason else text.read_text(row))


@checks_types
def score_rows(
    classifier: TextClassifier, rows: Iterable[Row], text: Columns, bad: list[str], strict: bool
) -> Iterator[tuple[dict[str, Any], NDArray[np.float32]]]:
    """The scores of every row that can be read; problems of the others are added to `bad`, or refused when `strict`."""
    for batch in _batches(rows, text, batch_size(len(classifier.taxonomy_))):
        good = []
        for line, row in batch:
            reason = row.reason if isinstance(row, BadRow) else why_not_text(text.read_text(row))
            if isinstance(row, BadRow) or reason is not None:
                bad.append(f"line {line}: {reason}")
                if strict:
                    raise DataError(f"{bad[-1]}; put it right, or drop --strict.")
            else:
                good.append(row)
        if good:
            X = classifier.vectorizer_.transform([text.read_document(row) for row in good])
            yield from zip(good, classifier.learner_.scores(X), strict=True)


@checks_types
def predict_vectors(classifier: TextClassifier, corpus: Corpus, options: PredictOptions | None = None) -> Iterator[Prediction]:
    """A prediction for every document of a corpus of vectors, and for every bad row, in the order of their lines."""
    bad = deque(sorted(corpus.bad_rows, key=lambda row: row.line))
    predictor = Predictor(classifier, options)
    for block in row_blocks(len(corpus), 1, predictor.batch_size):
        for line, (labels, others) in zip(corpus.lines[block], predictor.predict(corpus.documents[block]), strict=True):
            while bad and bad[0].line < line:
                yield Prediction(bad[0].line, {"line": bad[0].line}, [], [], bad.popleft().reason)
            yield Prediction(line, {"line": line}, predictor.named(labels), predictor.named(others))
    for row in bad:
        yield Prediction(row.line, {"line": row.line}, [], [], row.reason)


@contextmanager
def predict_file(
    classifier: TextClassifier,
    data: Path,
    options: PredictOptions,
    text: str | Sequence[str] | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> Iterator[tuple[list[str], Iterator[Prediction]]]:
    """The columns of a table of documents, or of a file of vectors, and a prediction for every row."""
    with readable(data) as file:
        if find_format(file, encoding, sheet).kind == "svmlight":
            yield ["line"], predict_vectors(classifier, adapt_corpus(classifier, read_vectors(file)), options)
            return
        refuse_texts(classifier, str(file))
        like = classifier.figures_.get("columns")
        names, columns, rows = stream_rows(file, text, like=like, encoding=encoding, sheet=sheet)
        yield names, predict_rows(classifier, rows, columns, options)


def _batches(rows: Iterable[Row], text: Columns, most: int) -> Iterator[list[Row]]:
    """Batches of at most so many rows, and fewer where texts are long."""
    batch: list[Row] = []
    n_characters = 0
    for line, row in rows:
        batch.append((line, row))
        cell = text.read_text(row) if isinstance(row, dict) else None
        n_characters += len(cell) if isinstance(cell, str) else 0
        if len(batch) >= most or n_characters >= BATCH_CHARACTERS:
            yield batch
            batch, n_characters = [], 0
    if batch:
        yield batch


# ---- tables of predictions: the cells of the input, then the predicted labels ------------------------------------------


@dataclass(frozen=True, slots=True)
class PredictionTable:
    """The format of a table of predictions. columns: those of the input. top: number of labels per row.

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

    def cells(self, prediction: Prediction) -> list[Any]:
        """The row of a prediction."""
        given = [prediction.row.get(column) for column in self.columns]
        given = [json.dumps(cell, ensure_ascii=False) if isinstance(cell, (list, dict)) else cell for cell in given]
        labels = LABEL_SEPARATOR.join([label for label, _ in prediction.labels])
        probabilities = LABEL_SEPARATOR.join([f"{p:.4f}" for _, p in prediction.labels])
        others = [cell for label, p in prediction.others for cell in (label, f"{p:.4f}")]
        missing = [""] * (2 * (self.top - 1) - len(others))
        return [*given, labels, probabilities, *others, *missing, prediction.problem or ""]


class Tally(NamedTuple):
    """What was written: rows, their labels, rows that could not be classified, and the first of these with the reason."""

    documents: int = 0
    labels: int = 0
    problems: int = 0
    first: str = ""

    def plus(self, other: Tally) -> Tally:
        """The sum of two tallies."""
        counts = (self.documents + other.documents, self.labels + other.labels, self.problems + other.problems)
        return Tally(*counts, self.first or other.first)


def write_all(
    predictions: Iterable[Prediction], write: Callable[[Prediction], None], source: str, strict: bool, step: Stage
) -> Tally:
    """Write predictions and count them. strict: refuse the first row that could not be classified."""
    tally = Tally()
    for prediction in predictions:
        problem = f"{source}, line {prediction.line}: {prediction.problem}" if prediction.problem else ""
        if problem and strict:
            raise DataError(f"{problem}; put it right, or drop --strict.")
        tally = tally.plus(Tally(1, len(prediction.labels), int(bool(problem)), problem))
        write(prediction)
        if tally.documents % PROGRESS_ROWS == 0:
            step.advance(PROGRESS_ROWS)
    return tally


def free_names(names: Iterable[str], taken: Sequence[str]) -> list[str]:
    """Names for new columns that the input does not use already.

    >>> free_names(["predicted", "problem"], ["text", "problem"])
    ['predicted', 'ramify_problem']
    """
    return [next(new for k in count() if (new := k * "ramify_" + name) not in taken) for name in names]


def _json_lines(file: IO[str], columns: Sequence[str], top: int, escape_formulas: bool = False) -> Callable[[Prediction], None]:
    """Rows as JSON; no program takes texts in it for formulas."""

    def write(prediction: Prediction) -> None:
        file.write(json.dumps(json_row(prediction, columns), ensure_ascii=False, default=str) + "\n")

    return write


def json_row(prediction: Prediction, columns: Sequence[str]) -> dict[str, Any]:
    """The cells of a row and its predicted labels, as an object of JSON. columns: those of the input.

    >>> json_row(Prediction(1, {"text": "no picture"}, [("tv", 0.9)], []), ["text"])
    {'text': 'no picture', 'predicted': [{'label': 'tv', 'probability': 0.9}]}
    """
    predicted, also, line, problem = free_names(("predicted", "also", "line", "problem"), columns)

    def objects(labels: Labels) -> list[dict[str, Any]]:
        return [{"label": label, "probability": p} for label, p in labels]

    row: dict[str, Any] = {**prediction.row, predicted: objects(prediction.labels)}
    if prediction.others:
        row[also] = objects(prediction.others)
    if prediction.problem:
        row |= {line: prediction.line, problem: prediction.problem}
    return row


def _table(
    file: IO[str], columns: Sequence[str], top: int, escape_formulas: bool = False, *, delimiter: str
) -> Callable[[Prediction], None]:
    table = PredictionTable(columns, top)

    def write_line(cells: Sequence[Any]) -> None:
        file.write(csv_line(cells, delimiter, escape_formulas))

    write_line(table.head)
    return lambda prediction: write_line(table.cells(prediction))


# by the suffix of a file; each takes the file, the columns of the input, the number of labels per row, and whether to escape
# formulas
WRITERS: dict[str, Callable[..., Callable[[Prediction], None]]]
WRITERS = {".csv": partial(_table, delimiter=","), ".tsv": partial(_table, delimiter="\t"), ".jsonl": _json_lines}
