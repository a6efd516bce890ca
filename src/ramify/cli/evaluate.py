"""``ramify evaluate``: how good a model is on labelled documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ramify.cli.console import RichProgress, answers, notes, print_json
from ramify.cli.options import (
    AsJson,
    LabelColumn,
    LabelSeparator,
    ModelDirectory,
    Strict,
    TextColumn,
    Threads,
    tell_about,
)
from ramify.datasets import read_corpus
from ramify.execution import reporting_to
from ramify.metrics.page import render_page
from ramify.metrics.terminal import render_report
from ramify.persistence import write_text_atomically
from ramify.pipeline import evaluate as evaluate_on
from ramify.pipeline import load


def evaluate(
    model: ModelDirectory,
    data: Annotated[Path, typer.Argument(help="Labelled documents, in any form that 'ramify train' reads.")],
    text: TextColumn = None,
    label: LabelColumn = None,
    label_separator: LabelSeparator = None,
    report: Annotated[Path | None, typer.Option(help="Write the report as an HTML page.")] = None,
    strict: Strict = False,
    threads: Threads = -1,
    as_json: AsJson = False,
) -> None:
    """Compare a model's answers with labels: level by level, branch by branch, sibling against sibling.

    \b
    Examples:
      ramify evaluate out test.csv
      ramify evaluate out test.csv --report report.html
      ramify evaluate out test.csv --json > figures.json
    """
    with RichProgress() as progress, reporting_to(progress):
        classifier = load(model)
        classifier.learner_.n_jobs = threads
        is_label = classifier.taxonomy_.__contains__
        corpus = read_corpus(
            data, text=text, label=label, label_separator=label_separator, is_label=is_label, strict=strict
        )
        tell_about(corpus)
        result = evaluate_on(classifier, corpus)
    if report is not None:
        write_text_atomically(report, render_page(result, f"{classifier.system} on {data.name}", f"Model {model}."))
        notes.print(f"Report written to {report}", markup=False)
    if as_json:
        print_json(result.as_dict())
    else:
        answers.print(render_report(result))
