"""Tables of scores with a column per node, written by a model or anyone else, and decided with any rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.classifier.fitting import decide_by, refuse_misfit, values_for
from ramify.classifier.loading import load
from ramify.classifier.text_classifier import TextClassifier
from ramify.data import BadRow, stream_rows
from ramify.data.svmlight import read_vectors
from ramify.data.tables import TableFormat, find_format, list_names, stream_table
from ramify.decisions import DecisionRule, FittableRule
from ramify.errors import DataError, InputError, LabelError, suggest
from ramify.formatting import csv_line
from ramify.taxonomy import LabelFormat, Taxonomy, most_specific, read_taxonomy
from ramify.workflows.predict_stream import Labels, Prediction, score_rows
from ramify.workflows.predictor import batch_size
from ramify.workflows.reading import adapt_corpus, readable, refuse_texts

LABEL_SEPARATOR = "|"
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """A file of scores over a taxonomy. nodes: columns that are nodes, with their numbers."""

    path: Path
    columns: list[str]
    nodes: dict[str, int]
    format: TableFormat

    @property
    def others(self) -> list[str]:
        """The columns that are not nodes."""
        return [column for column in self.columns if column not in self.nodes]

    def blocks(self, n_nodes: int) -> Iterator[tuple[list[tuple[int, dict[str, Any] | BadRow]], NDArray[np.float32]]]:
        """Rows with their lines, and the scores of those that could be read, documents × nodes; bad rows have a reason."""
        _, rows = stream_table(self.path, self.format)
        checked = ((line, self._checked(line, row)) for line, row in rows)
        while batch := list(islice(checked, batch_size(n_nodes))):
            good = [row for _, row in batch if isinstance(row, dict)]
            S = np.full((len(good), n_nodes), np.nan, dtype=np.float32)
            for k, row in enumerate(good):
                for column, node in self.nodes.items():
                    S[k, node] = read_number(row.get(column))
            yield batch, S

    def _checked(self, line: int, row: dict[str, Any] | BadRow) -> dict[str, Any] | BadRow:
        if isinstance(row, BadRow):
            return row
        for column in self.nodes:
            try:
                value = read_number(row.get(column))
                is_too_large = abs(value) > LARGEST and value != -np.inf
            except (TypeError, ValueError, OverflowError):
                is_too_large = True
            if is_too_large:
                return BadRow(str(self.path), line, f"the score of {column!r} is {row.get(column)!r}, not a finite number", row)
        return row


def open_scores(path: Path, taxonomy: Taxonomy, encoding: str | None = None) -> ScoreTable:
    """Find the columns of a table of scores; nodes without a column are nodes without a classifier, -inf is never taken."""
    given = find_format(path, encoding)
    if given.kind == "svmlight":
        raise DataError(f"{path} holds vectors; give a table of scores with a column for every node.")
    columns, _ = stream_table(path, given)
    place = {name: node for node, name in enumerate(taxonomy.names)}
    nodes = {column: place[column] for column in columns if column in place}
    if not nodes:
        has, similar = (
            f"its columns are {list_names(columns[:8])}",
            suggest(columns[-1], (*taxonomy.names[:20_000], *taxonomy.titles[:20_000])),
        )
        nodes_are = f"the first nodes {list_names(taxonomy.names[:5])}"
        raise DataError(f"{path} has no column named like a node of the taxonomy; {has}, {nodes_are}.{similar}")
    return ScoreTable(path, columns, nodes, given)


def read_number(cell: Any) -> float:
    """A score; an empty cell is no score.

    >>> read_number(" 0.5 "), read_number("")
    (0.5, nan)
    """
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return float("nan")
    if isinstance(cell, bool):
        raise ValueError(cell)
    return float(cell)


def score_writer(file: IO[str], columns: list[str], taxonomy: Taxonomy) -> Callable[[dict[str, Any], Any], None]:
    """Write a header, and return a function that writes the cells of a row and its scores; NaN is an empty cell."""
    names = set(taxonomy.names)
    others = [column for column in columns if column not in names]
    file.write(csv_line([*others, *taxonomy.names]))

    def write(row: dict[str, Any], scores: NDArray[np.float32]) -> None:
        given = [row.get(column) for column in others]
        given = [f" {LABEL_SEPARATOR} ".join(map(str, cell)) if isinstance(cell, list) else cell for cell in given]
        file.write(csv_line([*given, *("" if value != value else str(value) for value in scores)]))

    return write


@dataclass(frozen=True, slots=True)
class Decider:
    """A rule, for scores of a learner or values as the rule takes them. form: how labels are written (default: names)."""

    rule: DecisionRule
    taxonomy: Taxonomy
    learner: Any = None
    form: LabelFormat | None = None

    def values(self, S: NDArray[np.float32]) -> NDArray[np.floating[Any]]:
        """The values that the rule takes."""
        return S if self.learner is None else values_for(self.rule, self.learner, S)

    def decide(self, S: NDArray[np.float32]) -> tuple[csr_array, NDArray[np.floating[Any]]]:
        """Labels, and the numbers to show beside them."""
        values = self.values(S)
        Y, refined = decide_by(self.rule, values, self.taxonomy)
        if refined is not None:
            return Y, refined
        return Y, values if self.learner is None else self.learner.to_probabilities(S)

    def fit(self, table: ScoreTable, label: str) -> Decider:
        """A decider whose rule is fitted on a table of held-out scores and true labels."""
        if not isinstance(self.rule, FittableRule):
            raise InputError(f"rule {self.rule.kind!r} has nothing to fit; leave out --learn, or choose another rule.")
        if label not in table.columns:
            raise InputError(f"{table.path} has no column {label!r} with true labels; name it with --label.")
        scores, labels = [], []
        for rows, S in table.blocks(len(self.taxonomy)):
            scores.append(S)
            for line, row in rows:
                if isinstance(row, dict):
                    labels.append(split_labels(row.get(label)))
                    for name in labels[-1]:
                        if name not in self.taxonomy:
                            raise LabelError(f"{table.path}, line {line}: label {name!r} is not in the taxonomy; put it right.")
        if not labels:
            raise DataError(f"{table.path} has no row with scores to fit the rule on.")
        rule = self.rule.fit(self.values(np.concatenate(scores)), self.taxonomy.encode(labels), self.taxonomy)
        return replace(self, rule=rule)


@contextmanager
def score_file(
    classifier: TextClassifier, data: Path, text: str | None, encoding: str | None, bad: list[str], strict: bool
) -> Iterator[tuple[list[str], Iterable[tuple[dict[str, Any], Any]]]]:
    """The columns of a table except the text, and every row with its scores; problems of unreadable rows go to `bad`."""
    with readable(data) as file:
        if find_format(file, encoding).kind == "svmlight":
            corpus = adapt_corpus(classifier, read_vectors(file))
            scored = classifier.learner_.map_scores(corpus.documents, lambda S: S)
            yield ["line"], (({"line": corpus.lines[rows.start + k]}, s) for rows, S in scored for k, s in enumerate(S))
            return
        refuse_texts(classifier, str(file))
        names, columns, rows = stream_rows(file, text, like=classifier.figures_.get("columns"), encoding=encoding)
        yield [name for name in names if name not in columns.texts], score_rows(classifier, rows, columns, bad, strict)


def new_decider(
    model: Path | None, taxonomy: Path | None, rule: DecisionRule | None, learn: Path | None, label: str, encoding: str | None
) -> Decider:
    """The rule of a model, or a rule over a taxonomy, fitted on a table of held-out scores if given."""
    if model is not None:
        classifier = load(model)
        decider = Decider(rule or classifier.decision_, classifier.taxonomy_, classifier.learner_, classifier.form_)
    else:
        assert rule is not None
        assert taxonomy is not None
        decider = Decider(rule, read_taxonomy(taxonomy))
    if learn is not None:
        decider = decider.fit(open_scores(learn, decider.taxonomy, encoding), label)
    if isinstance(decider.rule, FittableRule) and not decider.rule.is_fitted:
        raise InputError(f"rule {decider.rule.kind!r} must be fitted; give --learn, or its parameters as numbers.")
    refuse_misfit(decider.rule, decider.taxonomy)
    return decider


def decide_rows(decider: Decider, table: ScoreTable) -> Iterator[Prediction]:
    """A prediction for every row of a table of scores, in order."""
    others = table.others
    for rows, S in table.blocks(len(decider.taxonomy)):
        predictions = iter(_decide_block(decider, S))
        for line, row in rows:
            labels, problem = ([], row.reason) if isinstance(row, BadRow) else next(predictions)
            cells = row.cells if isinstance(row, BadRow) else row
            yield Prediction(line, {column: cells.get(column) for column in others}, labels, [], problem)


def _decide_block(decider: Decider, S: NDArray[np.float32]) -> list[tuple[Labels, str | None]]:
    """Labels of each row, or why the rule refuses it; one bad row does not affect the others."""
    try:
        Y, shown = decider.decide(S)
    except InputError as error:
        if len(S) == 1:
            return [([], str(error).removesuffix("."))]
        return [prediction for row in S for prediction in _decide_block(decider, row[None])]
    own, taxonomy, form = most_specific(Y, decider.taxonomy), decider.taxonomy, decider.form
    found: list[tuple[Labels, str | None]] = []
    for values, (start, end) in zip(shown, pairwise(own.indptr), strict=True):
        nodes = sorted(own.indices[start:end].tolist(), key=lambda node: -values[node])
        names = [taxonomy.names[node] for node in nodes] if form is None else form.write(taxonomy, nodes)
        found.append(([(name, float(values[node])) for name, node in zip(names, nodes, strict=True)], None))
    return found


def split_labels(cell: Any) -> list[str]:
    """The labels of a cell: a list, or names separated by a bar.

    >>> split_labels("tv | radio")
    ['tv', 'radio']
    """
    if cell is None:
        return []
    parts = cell if isinstance(cell, list) else str(cell).split(LABEL_SEPARATOR)
    return [str(part).strip() for part in parts if part is not None and str(part).strip()]
