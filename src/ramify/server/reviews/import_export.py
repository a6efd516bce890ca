"""Export decisions as training data, and import the label issues of an audit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ramify.data.annotations import Task
from ramify.errors import DataError, InputError
from ramify.formatting import csv_line
from ramify.server.reviews.store import KEYS, Queued, Review

COLUMNS = ("text", "label", "action", "reviewer", "at", "model", "predicted", "confidence", "comment")
SEPARATOR = "|"  # between labels; spaces around it do not count


def training_rows(reviews: Iterable[Review]) -> Iterator[dict[str, Any]]:
    """One row per document with the labels of its last decision; rejected documents are left out."""
    for review in reviews:
        last = review.decisions[-1] if review.decisions else None
        if last is None or last.action == "reject" or not last.labels:
            continue
        predicted, confidence = [label["label"] for label in review.labels], round(review.confidence, 6)
        decision = (last.labels, last.action, last.reviewer, last.at)
        yield dict(zip(COLUMNS, (review.text, *decision, review.model, predicted, confidence, last.comment), strict=True))


def export_rows(rows: Iterable[dict[str, Any]], kind: str, escape_formulas: bool = False) -> Iterator[str]:
    """Rows as lines of CSV, the names of the columns first, or of JSON.

    escape_formulas: for a spreadsheet; texts that are escaped are not the same when they are read again for training.
    """
    if kind == "jsonl":
        yield from (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return
    yield csv_line(COLUMNS)
    for row in rows:
        cells = [row[name] for name in COLUMNS]
        joined = (f" {SEPARATOR} ".join(cell) if isinstance(cell, list) else cell for cell in cells)
        yield csv_line(joined, escape_formulas=escape_formulas)


def waiting_tasks(reviews: Iterable[Review]) -> list[Task]:
    """Documents that wait for a review, as tasks of an annotation tool, with the prediction of the model as a proposal."""
    waiting = list(reviews)
    has_many = any(len(review.labels) > 1 for review in waiting)
    return [_task(review, has_many) for review in waiting]


def _task(review: Review, is_multi_label: bool) -> Task:
    labels = [(label["label"], float(label["probability"])) for label in review.labels]
    fields = {"id": review.id, "model": review.model} | ({} if review.source is None else {"source": review.source})
    return Task(str(review.id), review.text, fields, labels, [label["path"] for label in review.labels], is_multi_label)


SOURCE = 2_000  # characters, at most


def read_label_issues(path: Path) -> Iterator[Queued]:
    """The documents of a file that ``ramify audit --out issues.jsonl`` wrote.

    The suggested labels are the ones to accept; the given label is an alternative. The confidence is the probability of the
    given label, so that the most suspicious documents come first in the queue.
    """
    wanted = "give a file that 'ramify audit --out issues.jsonl' wrote."
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}; {wanted}") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield _queued(json.loads(line))
            except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError):
                raise DataError(f"{path}, line {number}: not a label issue of an audit; {wanted}") from None


def _queued(row: dict[str, Any]) -> Queued:
    json.dumps(row, ensure_ascii=False, allow_nan=False).encode()  # refuses halves of characters, and what is no number
    text, given = row["text"], None if row["given"] is None else _label(row["given"])
    if not isinstance(text, str) or not text.strip():
        raise ValueError("no text")
    proposed = [_label(each) for each in row["proposed"]]
    chances = [label["probability"] for label in ([given] if given is not None else proposed)]
    source = f"{row['place']}: labelled {', '.join(row['labels']) or 'with nothing'}"
    return text, proposed, [] if given is None else [given], float(min(chances, default=0.0)), source[:SOURCE]


def _label(value: dict[str, Any]) -> dict[str, Any]:
    for key, kind in KEYS.items():
        if not isinstance(value[key], kind):
            raise TypeError(key)
    if not all(isinstance(title, str) for title in value["path"]) or len(value["path"]) != len(value["probabilities"]):
        raise ValueError("path")
    chances = {"probabilities": [float(p) for p in value["probabilities"]], "probability": float(value["probability"])}
    return {"label": value["label"], "path": value["path"], **chances}
