"""``ramify score``: the scores behind the answers, as a table that ``ramify decide`` reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.classifier import TextClassifier, load
from ramify.cli.console import RichProgress, say
from ramify.cli.options import Encoding, ModelDirectory, Strict, TextColumn, Threads, readable, refuse_output
from ramify.cli.tables import opened
from ramify.data import stream_rows
from ramify.data.svmlight import read_vectors
from ramify.data.tables import find_kind, known_encoding
from ramify.errors import DataError, InputError
from ramify.formatting import counted
from ramify.parallel import count_workers, reporting_to, stage
from ramify.workflows import score_rows
from ramify.workflows.score_tables import score_writer
from ramify.workflows.training import fitting, refuse_texts


def score(
    model: ModelDirectory,
    data: Annotated[Path, typer.Argument(help="Documents: CSV, TSV, JSON Lines, Parquet, svmlight; - for stdin.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV file to write.")] = None,
    text: TextColumn = None,
    strict: Strict = False,
    encoding: Encoding = "utf-8",
    threads: Threads = -1,
) -> None:
    """Write a table of scores: the columns of the input but the text, then one for every node of the taxonomy.

    \b
    Examples:
      ramify score out new.csv --out scores.csv
      ramify decide scores.csv --model out --rule isotonic --rule-param penalty=5
    """
    if out is not None:
        refuse_output(out, model, data)
        if out.suffix.lower() not in ("", ".csv", ".txt"):
            raise InputError(f"cannot write a file that ends in {out.suffix!r}; scores are written as .csv.")
    classifier = load(model)
    count_workers(threads)
    classifier.use_threads(threads)
    bad: list[str] = []
    with RichProgress() as progress, reporting_to(progress), readable(data) as file:
        columns, rows = _scored(classifier, file, text, encoding, bad, strict)
        with opened(out) as target, stage(f"scoring {data.name}") as step:
            write, total = score_writer(target, columns, classifier.taxonomy_), 0
            for row, scores in rows:
                write(row, scores)
                step.advance()
                total += 1
            if bad and not total:
                raise DataError(f"{data}: not one row could be scored; the first: {bad[0]}.")
    if bad:
        say(f"{counted(len(bad), 'row')} left out. The first: {bad[0]}.")
    if out is not None:
        say(f"Written to {out}. Next: ramify decide {out} --model {model} --rule top-down")


def _scored(
    classifier: TextClassifier, file: Path, text: str | None, encoding: str, bad: list[str], strict: bool
) -> tuple[list[str], Iterable[tuple[dict[str, Any], Any]]]:
    """The columns that are carried along, and every row with its scores."""
    if find_kind(file, known_encoding(encoding)) == "svmlight":
        corpus = fitting(classifier, read_vectors(file))
        scored = classifier.learner_.map_scores(corpus.documents, lambda S: S)
        return ["line"], (({"line": corpus.lines[rows.start + k]}, line) for rows, S in scored for k, line in enumerate(S))
    refuse_texts(classifier, str(file))
    like = classifier.figures_.get("columns")
    columns, column, rows = stream_rows(file, text, like=like, encoding=encoding)
    return [name for name in columns if name != column], score_rows(classifier, rows, column, bad, strict)
