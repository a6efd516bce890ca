"""Answers as rows of a table, CSV, TSV or JSON Lines: the cells that came, and behind them what was predicted."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

from ramify.errors import DataError
from ramify.execution import Stage
from ramify.pipeline.streaming import Answer

SEVERAL = " | "
TOLD_AFTER = 500  # rows, after which progress is told
Writer = Callable[[IO[str], Sequence[str], int], Callable[[Answer], None]]


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """What the rows of answers look like.

    columns: those of the input. top: how many labels were asked for.

    >>> AnswerTable(["text"], top=1).cells(Answer(1, {"text": "no picture"}, [("tv", 0.9)], []))
    ['no picture', 'tv', '0.9000', '']
    """

    columns: Sequence[str]
    top: int = 1

    @property
    def head(self) -> list[str]:
        """The names of all columns."""
        pairs = [f"{name}_{k}" for k in range(2, self.top + 1) for name in ("predicted", "probability")]
        return [*self.columns, *free_names(("predicted", "probability", *pairs, "problem"), self.columns)]

    def cells(self, answer: Answer) -> list[Any]:
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


def write_all(answers: Iterable[Answer], write: Callable[[Answer], None], source: str, strict: bool, step: Stage) -> Tally:
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


def _json_lines(file: IO[str], columns: Sequence[str], top: int) -> Callable[[Answer], None]:
    predicted, also, line, problem = free_names(("predicted", "also", "line", "problem"), columns)

    def write(answer: Answer) -> None:
        row: dict[str, Any] = {**answer.row, predicted: _objects(answer.labels)}
        if answer.others:
            row[also] = _objects(answer.others)
        if answer.problem:
            row |= {line: answer.line, problem: answer.problem}
        file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")

    return write


def _table(file: IO[str], columns: Sequence[str], top: int, delimiter: str) -> Callable[[Answer], None]:
    table, shown = csv.writer(file, delimiter=delimiter, lineterminator="\n"), AnswerTable(columns, top)
    table.writerow(shown.head)

    def write(answer: Answer) -> None:
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
