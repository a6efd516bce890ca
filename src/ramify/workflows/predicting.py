"""Predictions that are held in memory, for Python: of a file, a corpus, or some texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ramify.arguments import entries
from ramify.classifier.tables import PREDICTED
from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.data.columns import text_columns
from ramify.data.documents import first_rows
from ramify.data.frames import SOURCE, Frame, column_names, stream_frame, with_columns
from ramify.errors import InputError
from ramify.results import Result
from ramify.workflows.predict_stream import Prediction, free_names, json_row, predict_file, predict_rows, predict_vectors
from ramify.workflows.predictor import PredictOptions
from ramify.workflows.reading import adapt_corpus, refuse_texts

TEXT = "text"  # the column of texts that have no file


@dataclass(frozen=True, slots=True, repr=False)
class PredictResult(Result):
    """The predictions for some documents, in their order.

    source: where the documents are from. columns: those of their table. predictions: one per document. top: number of labels
    that were asked for. table: the table in memory that they are from, if they are.
    """

    source: str
    columns: tuple[str, ...]
    predictions: tuple[Prediction, ...]
    top: int = 1
    table: Any = None

    def __len__(self) -> int:
        return len(self.predictions)

    @property
    def labels(self) -> list[list[str]]:
        """The labels of each document, most probable first; none where it could not be classified."""
        return [[label for label, _ in each.labels] for each in self.predictions]

    @property
    def problems(self) -> list[Prediction]:
        """The documents that could not be classified."""
        return [each for each in self.predictions if each.problem]

    def to_frame(self, table: str | None = None) -> Any:
        """The documents with their labels as a data frame: the table that they are from, if they are, with further columns."""
        if self.table is None:
            return Result.to_frame(self, table)
        names = free_names((PREDICTED, "probability", "problem"), self.columns)
        is_one = all(len(each.labels) <= 1 for each in self.predictions)
        pairs = [each.labels[0] if each.labels else (None, None) for each in self.predictions] if is_one else []
        labels = [label for label, _ in pairs] if is_one else self.labels
        probabilities = [p for _, p in pairs] if is_one else [[p for _, p in each.labels] for each in self.predictions]
        columns = [labels, probabilities, [each.problem for each in self.predictions]]
        return with_columns(self.table, dict(zip(names, columns, strict=True)))

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON-ready values: the lines of JSON that the command writes."""
        return {"source": self.source, "predictions": [json_row(each, self.columns) for each in self.predictions]}


def predict(
    classifier: TextClassifier,
    data: str | Path | Corpus | Frame | Iterable[str],
    options: PredictOptions | None = None,
    text: str | Sequence[str] | None = None,
    encoding: str | None = None,
) -> PredictResult:
    """Predict the labels of documents. text, encoding: of a file.

    >>> clf = TextClassifier("nb").fit(["sweet red apple", "rye bread crust"], ["food/fruit", "food/bread"])
    >>> predict(clf, ["a red apple", ""]).labels
    [['food/fruit'], []]
    """
    options = options or PredictOptions()
    if isinstance(data, (str, Path)):
        if not Path(data).exists() and str(data) != "-":
            raise InputError(f"there is no file {str(data)!r}; give a file of documents, or texts in a list: ['a text'].")
        with predict_file(classifier, Path(data), options, text, encoding) as (columns, rows):
            return PredictResult(str(data), tuple(columns), tuple(rows), options.top)
    if isinstance(data, Frame):
        return _predict_table(classifier, data, options, text)
    if isinstance(data, Corpus) and data.has_vectors:
        adapted = adapt_corpus(classifier, data)
        return PredictResult(data.source, ("line",), tuple(predict_vectors(classifier, adapted, options)), options.top)
    source, texts = (data.source, data.documents) if isinstance(data, Corpus) else ("the given texts", data)
    refuse_texts(classifier, source)
    made = tuple(predict_rows(classifier, _rows(entries(texts, "texts")), TEXT, options))
    return PredictResult(source, (TEXT,), made, options.top)


def _predict_table(classifier: TextClassifier, table: Any, options: PredictOptions, text: Any) -> PredictResult:
    refuse_texts(classifier, SOURCE)
    names = column_names(table)
    columns = text_columns(SOURCE, names, first_rows(stream_frame(table, names)), text, classifier.figures_.get("columns"))
    made = tuple(predict_rows(classifier, stream_frame(table, names), columns, options))
    return PredictResult(SOURCE, tuple(names), made, options.top, table)


def _rows(texts: Iterable[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    return ((number, {TEXT: text}) for number, text in enumerate(texts, 1))
