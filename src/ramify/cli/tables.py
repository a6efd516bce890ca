"""Answers as rows of a table: CSV, TSV or JSON Lines."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from ramify.cli.console import counted, say
from ramify.errors import DataError, InputError
from ramify.execution import stage
from ramify.persistence import atomic_writer
from ramify.pipeline import Answer
from ramify.pipeline.answer_tables import AnswerTable, free_names

TOLD_AFTER = 500  # rows, after which progress is told
Writer = Callable[[IO[str], list[str], int], Callable[[Answer], None]]


def choose_writer(out: Path | None, as_json: bool) -> Writer:
    """By --json, or by the ending of the output file."""
    suffix = "" if out is None else out.suffix.lower()
    if as_json or suffix in (".jsonl", ".ndjson"):
        return _json_lines
    if suffix in (".tsv", ".tab"):
        return partial(_table, delimiter="\t")
    if suffix in ("", ".csv", ".txt"):
        return partial(_table, delimiter=",")
    raise InputError(f"cannot write a file that ends in {suffix!r}; give one that ends in .csv, .tsv or .jsonl.")


def _json_lines(file: IO[str], columns: list[str], top: int) -> Callable[[Answer], None]:
    predicted, also, line, problem = free_names(("predicted", "also", "line", "problem"), columns)

    def write(answer: Answer) -> None:
        row: dict[str, Any] = {**answer.row, predicted: _objects(answer.labels)}
        if answer.others:
            row[also] = _objects(answer.others)
        if answer.problem:
            row |= {line: answer.line, problem: answer.problem}
        file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")

    return write


def _table(file: IO[str], columns: list[str], top: int, delimiter: str) -> Callable[[Answer], None]:
    table, shown = csv.writer(file, delimiter=delimiter, lineterminator="\n"), AnswerTable(columns, top)
    table.writerow(shown.head)

    def write(answer: Answer) -> None:
        table.writerow(shown.cells(answer))

    return write


def _objects(labels: list[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"label": label, "probability": p} for label, p in labels]


def write_answers(
    rows: Iterator[Answer], columns: list[str], data: Path, out: Path | None, writer: Writer, top: int, strict: bool
) -> None:
    """Write an answer for every row, tell of those that could not be read, and refuse where none could."""
    total = problems = 0
    first = ""
    with opened(out) as file, stage(f"classifying {data.name}") as step:
        write = writer(file, columns, top)
        for answer in rows:
            if answer.problem:
                first = first or f"{data}, line {answer.line}: {answer.problem}"
                problems += 1
                if strict:
                    raise DataError(f"{first}; put it right, or drop --strict.")
            total += 1
            write(answer)
            if total % TOLD_AFTER == 0:
                step.advance(TOLD_AFTER)
        if problems and problems == total:
            raise DataError(f"not one of {counted(total, 'row')} could be classified; the first: {first}.")
    if problems:
        say(f"{counted(problems, 'row')} could not be classified; the column 'problem' says why. The first: {first}.")
    if out is not None:
        say(f"Written to {out}")


@contextmanager
def opened(out: Path | None) -> Iterator[IO[str]]:
    """A file that appears when it is whole, or standard output."""
    if out is None:
        yield sys.stdout
        sys.stdout.flush()
    else:
        with atomic_writer(out) as file:
            yield file
