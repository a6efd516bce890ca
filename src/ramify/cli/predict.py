"""``ramify predict``: labels for new documents."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from ramify.cli.console import RichProgress, answers, notes
from ramify.cli.options import AsJson, ModelDirectory, Strict, TextColumn, Threads
from ramify.datasets import stream_rows
from ramify.errors import DataError, InputError
from ramify.execution import reporting_to, stage
from ramify.persistence import atomic_writer
from ramify.pipeline import TextClassifier, classify_rows, load
from ramify.pipeline.streaming import Answer

SEVERAL = " | "


def predict(
    model: ModelDirectory,
    data: Annotated[Path | None, typer.Argument(help="Documents to classify: CSV, TSV, JSON Lines or Parquet.")] = None,
    sentence: Annotated[str | None, typer.Option("--try", help="Classify one text given here, and say why.")] = None,
    text: TextColumn = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write; standard output when not given.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Also give the next most likely leaves, so many labels in all.")] = 1,
    strict: Strict = False,
    threads: Threads = -1,
    as_json: AsJson = False,
) -> None:
    """Add predicted labels and their probabilities to a table; every row keeps its place.

    Rows that cannot be classified get the reason in the column 'problem'. Output is CSV, or JSON Lines with --json or
    when the name of the output file ends in .jsonl.

    \b
    Examples:
      ramify predict out new.csv > classified.csv
      ramify predict out new.csv --out classified.jsonl --top 3
      ramify predict out --try "my parcel has not arrived"
    """
    if (data is None) == (sentence is None):
        raise InputError("give a file of documents to classify, or one text with --try, and not both.")
    classifier = load(model)
    classifier.learner_.n_jobs = threads
    if sentence is not None:
        _try(classifier, sentence, top)
    elif data is not None:
        as_json = as_json or (out is not None and out.suffix in (".jsonl", ".ndjson"))
        _classify_file(classifier, data, text, out, top, strict, as_json)


def _try(classifier: TextClassifier, sentence: str, top: int) -> None:
    answer = next(iter(classify_rows(classifier, [(1, {"text": sentence})], "text", top)))
    if answer.problem:
        raise InputError(f"{answer.problem}; give some words to classify.")
    for label, probability in answer.labels + answer.others:
        answers.print(f"{probability:6.1%}  {label}", markup=False, soft_wrap=True)
    why = classifier.explain(sentence)
    words = ", ".join(f"{word} {weight:+.2f}" for word, weight in why.words[:8])
    answers.print(
        f"        rather than {' > '.join(why.rival)}: {words or 'no known word'}",
        markup=False,
        style="dim",
        soft_wrap=True,
    )


def _classify_file(
    classifier: TextClassifier, data: Path, text: str | None, out: Path | None, top: int, strict: bool, as_json: bool
) -> None:
    columns, text_column, rows = stream_rows(data, text)
    problems = 0
    with (
        RichProgress() as progress,
        reporting_to(progress),
        _opened(out) as file,
        stage(f"classifying {data.name}") as step,
    ):
        write = _json_lines(file) if as_json else _csv_table(file, columns, top)
        for answer in classify_rows(classifier, rows, text_column, top):
            if answer.problem and strict:
                raise DataError(f"{data}, line {answer.line}: {answer.problem}; put it right, or drop --strict.")
            problems += answer.problem is not None
            write(answer)
            step.advance()
    if problems:
        notes.print(f"{problems:,} rows could not be classified; the column 'problem' says why.", markup=False)
    if out is not None:
        notes.print(f"Written to {out}", markup=False)


@contextmanager
def _opened(out: Path | None) -> Iterator[IO[str]]:
    if out is None:
        yield sys.stdout
        sys.stdout.flush()
    else:
        with atomic_writer(out) as file:
            yield file


def _json_lines(file: IO[str]) -> Any:
    def write(answer: Answer) -> None:
        labels = [{"label": label, "probability": p} for label, p in answer.labels]
        line: dict[str, Any] = {**answer.row, "predicted": labels}
        if answer.others:
            line["also"] = [{"label": label, "probability": p} for label, p in answer.others]
        if answer.problem:
            line |= {"line": answer.line, "problem": answer.problem}
        file.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")

    return write


def _csv_table(file: IO[str], columns: list[str], top: int) -> Any:
    table = csv.writer(file, lineterminator="\n")
    extra = [
        "predicted",
        "probability",
        *(f"{name}_{k}" for k in range(2, top + 1) for name in ("predicted", "probability")),
        "problem",
    ]
    kept = [column for column in columns if column not in extra]
    table.writerow([*kept, *extra])

    def write(answer: Answer) -> None:
        cells = [_cell(answer.row.get(column)) for column in kept]
        others = (answer.others + [("", None)] * top)[: top - 1]
        table.writerow([*cells, *_joined(answer.labels), *_pairs(others), answer.problem or ""])

    return write


def _joined(labels: list[tuple[str, float]]) -> tuple[str, str]:
    return SEVERAL.join(label for label, _ in labels), SEVERAL.join(f"{p:.4f}" for _, p in labels)


def _pairs(others: Iterable[tuple[str, float | None]]) -> Iterator[str]:
    for label, probability in others:
        yield label
        yield "" if probability is None else f"{probability:.4f}"


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value
