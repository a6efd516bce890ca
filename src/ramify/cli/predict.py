"""``ramify predict``: labels for new documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.classifier import TextClassifier, load
from ramify.classifier.guarantees import branches_refused
from ramify.cli.console import RichProgress, answers, print_json, say
from ramify.cli.options import (
    SEVERAL_FILES,
    AsJson,
    ByBranch,
    Cluster,
    Encoding,
    ModelDirectory,
    Nodes,
    Risk,
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
from ramify.cli.tables import TABLES, choose_writer, tell_problems, write_answers
from ramify.data import is_file_set, stream_rows
from ramify.data.svmlight import read_vectors
from ramify.data.tables import find_kind, known_encoding
from ramify.decisions import DecisionRule
from ramify.errors import InputError
from ramify.formatting import counted
from ramify.parallel import count_workers, reporting_to
from ramify.workflows import Prediction, PredictOptions, predict_files, predict_rows, predict_vectors
from ramify.workflows.training import fitting, refuse_texts


def predict(
    model: ModelDirectory,
    data: Annotated[
        Path | None, typer.Argument(help=f"Documents: CSV, TSV, JSON Lines, Parquet, svmlight; {SEVERAL_FILES}")
    ] = None,
    sentence: Annotated[str | None, typer.Option("--try", help="Classify one text given here, and say why.")] = None,
    text: TextColumn = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write: .csv, .tsv or .jsonl; for several files a directory.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an earlier run on several files.")] = False,
    top: Annotated[int, typer.Option(min=1, help="Also give the next most likely leaves, so many labels in all.")] = 1,
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="Go up the path to the deepest node that is at least so likely.")
    ] = None,
    within: Annotated[list[str] | None, typer.Option(help="Only labels at or below this node; may be repeated.")] = None,
    without: Annotated[list[str] | None, typer.Option(help="No label at or below this node; may be repeated.")] = None,
    risk: Risk = None,
    nodes: Nodes = 1,
    by_branch: ByBranch = False,
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
      ramify predict out new.csv --risk 0.05
      ramify predict out new.csv --risk 0.05 --nodes 3 --by-branch
      ramify predict out parts/ --out answers/
      ramify predict out 'parts/*.parquet' --out answers/ --cluster auto
      ramify predict out 'parts/*.parquet' --out answers/ --cluster auto --resume
    """
    if (data is None) == (sentence is None):
        raise InputError("give a file of documents to classify, or one text with --try, and not both.")
    options = PredictOptions(top, threshold, tuple(within or ()), tuple(without or ()), risk, nodes, by_branch)
    options.check()
    count_workers(threads)
    decision = chosen_rule(rule, rule_param)
    if data is not None and is_file_set(data):
        asked = {"rule": decision, "options": options, "text": text, "encoding": encoding}
        with working_on(cluster):
            _predict_files(model, data, out, as_json=as_json, strict=strict, resume=resume, n_jobs=threads, **asked)
        return
    if resume:
        raise InputError("--resume goes on with several files; give a directory or a quoted pattern of them, and --out.")
    writer = choose_writer(out, as_json)
    if out is not None:
        refuse_output(out, model, data)
    classifier = _loaded(model, decision)
    classifier.use_threads(threads)
    _tell_refused(classifier, options)
    if sentence is not None:
        _try(classifier, sentence, options, as_json)
    elif data is not None:
        with RichProgress() as progress, reporting_to(progress), working_on(cluster), readable(data) as file:
            columns, rows = _answers(classifier, file, text, options, encoding)
            write_answers(rows, columns, data, out, writer, top, strict)


def _loaded(model: Path, decision: DecisionRule | None) -> TextClassifier:
    return load(model) if decision is None else load(model).redecided(decision)


def _tell_refused(classifier: TextClassifier, options: PredictOptions) -> None:
    """Name the branches for which nothing can be promised."""
    if options.by_branch and options.risk is not None and (refusal := branches_refused(classifier, options.risk)):
        say(refusal)


def _predict_files(model: Path, data: Path, out: Path | None, **asked: Any) -> None:
    """Answers to several files, each in a file of its own."""
    if out is None or (out.suffix.lower() in TABLES and not out.is_dir()):
        raise InputError(
            f"answers to several files go into a directory; name one with --out, such as --out {data.name}-answers."
        )
    if asked["options"].by_branch:
        _tell_refused(_loaded(model, asked["rule"]), asked["options"])
    with RichProgress() as progress, reporting_to(progress):
        done = predict_files(model, data, out, **asked)
    tell_problems(done.tally)
    if done.kept:
        say(f"{counted(done.kept, 'file')} of an earlier run left as they were.")
    what = f"{counted(done.tally.documents, 'document')} with {counted(done.tally.labels, 'label')}"
    say(f"{what} in {counted(done.written, 'file')} written to {out}")


def _try(classifier: TextClassifier, sentence: str, options: PredictOptions, as_json: bool) -> None:
    refuse_texts(classifier, "--try")
    answer = next(iter(predict_rows(classifier, [(1, {"text": sentence})], "text", options)))
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
    classifier: TextClassifier, file: Path, text: str | None, options: PredictOptions, encoding: str
) -> tuple[list[str], Iterator[Prediction]]:
    """The columns of the input, and an answer for every row."""
    if find_kind(file, known_encoding(encoding)) == "svmlight":
        return ["line"], predict_vectors(classifier, fitting(classifier, read_vectors(file)), options)
    refuse_texts(classifier, str(file))
    columns, column, rows = stream_rows(file, text, like=classifier.figures_.get("columns"), encoding=encoding)
    return columns, predict_rows(classifier, rows, column, options)
