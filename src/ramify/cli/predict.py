"""``ramify predict``: labels for new documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ramify.cli.console import RichProgress, answers, print_json
from ramify.cli.options import (
    AsJson,
    Cluster,
    Encoding,
    ModelDirectory,
    RuleName,
    RuleParams,
    Strict,
    TextColumn,
    Threads,
    chosen_rule,
    readable,
    refuse_output,
    working_on,
)
from ramify.cli.tables import choose_writer, write_answers
from ramify.datasets import stream_rows
from ramify.datasets.svmlight import read_vectors
from ramify.datasets.tables import find_kind, known_encoding
from ramify.errors import InputError
from ramify.execution import count_workers, reporting_to
from ramify.pipeline import Answer, TextClassifier, Wish, classify_rows, classify_vectors, load
from ramify.pipeline.training import fitting, refuse_texts


def predict(
    model: ModelDirectory,
    data: Annotated[
        Path | None, typer.Argument(help="Documents: CSV, TSV, JSON Lines, Parquet, svmlight; - for stdin.")
    ] = None,
    sentence: Annotated[str | None, typer.Option("--try", help="Classify one text given here, and say why.")] = None,
    text: TextColumn = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write: .csv, .tsv or .jsonl.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Also give the next most likely leaves, so many labels in all.")] = 1,
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="Go up the path to the deepest node that is at least so likely.")
    ] = None,
    within: Annotated[list[str] | None, typer.Option(help="Only labels at or below this node; may be repeated.")] = None,
    without: Annotated[list[str] | None, typer.Option(help="No label at or below this node; may be repeated.")] = None,
    rule: RuleName = None,
    rule_param: RuleParams = None,
    strict: Strict = False,
    encoding: Encoding = "utf-8",
    threads: Threads = -1,
    cluster: Cluster = None,
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
      ramify predict out new.csv --threshold 0.7 --without "Returns & warranty"
    """
    if (data is None) == (sentence is None):
        raise InputError("give a file of documents to classify, or one text with --try, and not both.")
    writer = choose_writer(out, as_json)
    if out is not None:
        refuse_output(out, model, data)
    decision = chosen_rule(rule, rule_param)
    classifier = load(model) if decision is None else load(model).redecided(decision)
    count_workers(threads)
    classifier.use_threads(threads)
    wish = Wish(top, threshold, tuple(within or ()), tuple(without or ()))
    if sentence is not None:
        _try(classifier, sentence, wish, as_json)
    elif data is not None:
        with RichProgress() as progress, reporting_to(progress), working_on(cluster), readable(data) as file:
            columns, rows = _answers(classifier, file, text, wish, encoding)
            write_answers(rows, columns, data, out, writer, top, strict)


def _try(classifier: TextClassifier, sentence: str, wish: Wish, as_json: bool) -> None:
    refuse_texts(classifier, "--try")
    answer = next(iter(classify_rows(classifier, [(1, {"text": sentence})], "text", wish)))
    if answer.problem:
        raise InputError(f"{answer.problem}; give some words to classify.")
    why = classifier.explain(sentence)
    if as_json:
        labels = [{"label": label, "probability": p} for label, p in answer.labels + answer.others]
        print_json({"labels": labels, "rival": why.rival, "words": why.words, "prior": why.prior, "margin": why.margin})
        return
    if not answer.labels:
        answers.print(f"        no label; nearest is {' > '.join(why.path)}", markup=False, soft_wrap=True)
    for label, probability in answer.labels + answer.others:
        answers.print(f"{probability:6.1%}  {label}", markup=False, soft_wrap=True)
    words = ", ".join(f"{word} {weight:+.2f}" for word, weight in why.words[:8])
    reasons = f"{words}, class size {why.prior:+.2f}" if words else "the text has no known word; only class sizes spoke"
    answers.print(f"        rather than {' > '.join(why.rival)}: {reasons}", markup=False, style="dim", soft_wrap=True)


def _answers(
    classifier: TextClassifier, file: Path, text: str | None, wish: Wish, encoding: str
) -> tuple[list[str], Iterator[Answer]]:
    """The columns of the input, and an answer for every row."""
    if find_kind(file, known_encoding(encoding)) == "svmlight":
        return ["line"], classify_vectors(classifier, fitting(classifier, read_vectors(file)), wish)
    refuse_texts(classifier, str(file))
    columns, column, rows = stream_rows(file, text, like=classifier.figures_.get("columns"), encoding=encoding)
    return columns, classify_rows(classifier, rows, column, wish)
