"""``ramify evaluate``: how good a model is on labelled documents."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from ramify.classifier import load
from ramify.cli.console import RichProgress, answers, print_json, say
from ramify.cli.options import (
    AsJson,
    Encoding,
    KeepUnlabelled,
    LabelColumn,
    LabelSeparator,
    ModelDirectory,
    RuleName,
    RuleParams,
    Strict,
    TextColumn,
    Threads,
    chosen_rule,
    labelled,
    readable,
    refuse_output,
)
from ramify.data import read_corpus
from ramify.metrics.evaluation import check_hierarchy
from ramify.parallel import reporting_to
from ramify.persistence import write_text_atomically
from ramify.reports.page import render_page
from ramify.reports.terminal import render_report
from ramify.workflows import evaluate as evaluate_on
from ramify.workflows.many_files import needs_shards, read_sharded


def evaluate(
    model: ModelDirectory,
    data: Annotated[Path, typer.Argument(help="Labelled documents, in any form that 'ramify train' reads.")],
    text: TextColumn = None,
    label: LabelColumn = None,
    label_separator: LabelSeparator = None,
    rule: RuleName = None,
    rule_param: RuleParams = None,
    hierarchy: Annotated[
        str, typer.Option(help="'modified' adds F1 where inner nodes have leaves for documents of their own.")
    ] = "original",
    report: Annotated[Path | None, typer.Option(help="Write the report as an HTML page.")] = None,
    strict: Strict = False,
    keep_unlabelled: KeepUnlabelled = False,
    encoding: Encoding = "utf-8",
    threads: Threads = -1,
    as_json: AsJson = False,
) -> None:
    """Compare a model's answers with labels: level by level, branch by branch, sibling against sibling.

    \b
    Examples:
      ramify evaluate out test.csv
      ramify evaluate out test.csv --report report.html
      ramify evaluate out test.csv --json > figures.json
      ramify evaluate out test.csv --hierarchy modified
      ramify evaluate out test.csv --rule isotonic --rule-param penalty=5
    """
    if report is not None:
        refuse_output(report, model, data)
    check_hierarchy(hierarchy)
    decision = chosen_rule(rule, rule_param)
    with RichProgress() as progress, reporting_to(progress), readable(data) as file, ExitStack() as also:
        classifier = load(model)
        if decision is not None:
            classifier = classifier.redecided(decision)
        classifier.use_threads(threads)
        columns: dict[str, Any] = {"text": text, "label": label, "like": classifier.figures_.get("columns")}
        separators: dict[str, Any] = {"label_separator": label_separator, "is_label": classifier.taxonomy_.__contains__}
        reading: dict[str, Any] = {**columns, **separators, "strict": strict, "encoding": encoding}
        if needs_shards(file):
            scratch = also.enter_context(TemporaryDirectory())
            corpus = read_sharded(file, classifier.vectorizer_, scratch=scratch, n_jobs=threads, **reading)
        else:
            corpus = read_corpus(file, **reading)
        result = evaluate_on(classifier, labelled(corpus, keep_unlabelled), hierarchy)
    if report is not None:
        write_text_atomically(report, render_page(result, f"{classifier.system} on {data.name}", f"Model {model}."))
        say(f"Report written to {report}")
    if as_json:
        print_json(result.as_dict())
    else:
        answers.print(render_report(result))
