"""``ramify score``: the scores behind the answers, as a table that ``ramify decide`` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ramify.cli.console import RichProgress, counted, say
from ramify.cli.options import Encoding, ModelDirectory, Strict, TextColumn, Threads, readable, refuse_output
from ramify.cli.tables import opened
from ramify.datasets import stream_rows
from ramify.execution import count_workers, reporting_to, stage
from ramify.pipeline import load, score_rows
from ramify.pipeline.score_tables import score_writer
from ramify.pipeline.training import refuse_texts


def score(
    model: ModelDirectory,
    data: Annotated[Path, typer.Argument(help="Documents: CSV, TSV, JSON Lines or Parquet; - for stdin.")],
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
    classifier = load(model)
    refuse_texts(classifier, str(data))
    count_workers(threads)
    classifier.learner_.n_jobs = threads
    bad: list[str] = []
    with RichProgress() as progress, reporting_to(progress), readable(data) as file:
        like = classifier.figures_.get("columns")
        columns, column, rows = stream_rows(file, text, like=like, encoding=encoding)
        with opened(out) as target, stage(f"scoring {data.name}") as step:
            write = score_writer(target, [name for name in columns if name != column], classifier.taxonomy_)
            for row, scores in score_rows(classifier, rows, column, bad, strict):
                write(row, scores)
                step.advance()
    if bad:
        say(f"{counted(len(bad), 'row')} left out. The first: {bad[0]}.")
    if out is not None:
        say(f"Written to {out}. Next: ramify decide {out} --model {model} --rule top-down")
