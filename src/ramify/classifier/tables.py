"""Whole tables in memory in the place of texts: which column holds the texts, and predictions as a table of the same kind."""

from __future__ import annotations

from itertools import islice
from typing import Any

from ramify.data import read_corpus
from ramify.data.columns import text_columns
from ramify.data.frames import SOURCE, column_names, library_of, like_frame, raw_names, stream_frame

SAMPLE = 100  # rows that tell texts from numbers
PREDICTED = "predicted"  # the column of predictions


def is_text_table(given: Any) -> bool:
    """Whether documents are a table with columns, and not all of them hold numbers.

    >>> is_text_table({"body": ["late parcel"], "price": [3]}), is_text_table({"price": [3]}), is_text_table(["text"])
    (True, False, False)
    """
    if library_of(given) is None or not all(isinstance(name, str) for name in raw_names(given)):
        return False
    names = column_names(given)
    return any(isinstance(cell, str) for _, row in islice(stream_frame(given, names), SAMPLE) for cell in row.values())


def read_training_table(table: Any, labels: Any) -> tuple[list[str], Any, dict[str, Any]]:
    """The texts, their labels, and the columns that were found. labels: the name of a column, or the labels themselves."""
    if not isinstance(labels, str):
        texts, found = read_text_table(table, None)
        return texts, labels, found
    corpus = read_corpus(table, label=labels).labelled()
    is_one = all(len(row) == 1 for row in corpus.labels)
    return corpus.documents, [row[0] for row in corpus.labels] if is_one else corpus.labels, corpus.found


def read_text_table(table: Any, like: dict[str, Any] | None) -> tuple[list[str], dict[str, Any]]:
    """The texts of a table, and the columns that they are from. like: the columns of the training documents."""
    names = column_names(table)
    columns = text_columns(SOURCE, names, list(islice(stream_frame(table, names), SAMPLE)), None, like)
    texts = [columns.read_text(row) for _, row in stream_frame(table, columns.texts)]
    return texts, {"text": columns.text, "label": [], "label_separator": None}


def as_table(table: Any, predictions: Any) -> Any:
    """Predictions for the rows of a table, as a table of the same library with the same index."""
    return like_frame(table, {PREDICTED: list(predictions.tolist() if hasattr(predictions, "tolist") else predictions)})
