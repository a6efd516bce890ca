"""``ramify predict``: labels for new documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import ramify
from ramify import workflows
from ramify.cli import options
from ramify.cli.console import print_json, print_plain, progress_shown, say
from ramify.errors import DataError, InputError
from ramify.formatting import counted


def predict(
    model: options.ModelDirectory,
    data: Annotated[Path | None, Argument(help=f"Documents: {options.DOCUMENTS}; {options.MANY_FILES}")] = None,
    sentence: Annotated[str | None, Option("--try", help="Classify this text, and explain its label.")] = None,
    text: options.TextColumn = None,
    out: Annotated[
        Path | None, Option("--out", "-o", help="File to write: .csv, .tsv or .jsonl; a directory for many files.")
    ] = None,
    tasks: options.TaskFormat = None,
    resume: Annotated[bool, Option("--resume", help="Continue an earlier run on many files.")] = False,
    top: Annotated[int, Option(min=1, help="Labels per document, including the next most probable leaves.")] = 1,
    threshold: Annotated[
        float | None, Option(min=0, max=1, help="Back off to the deepest node that is at least this probable.")
    ] = None,
    within: Annotated[list[str] | None, Option(help="Only labels at or below this node; may be repeated.")] = None,
    without: Annotated[list[str] | None, Option(help="No label at or below this node; may be repeated.")] = None,
    risk: options.Risk = None,
    nodes: options.Nodes = 1,
    by_branch: options.ByBranch = False,
    rule: options.RuleName = None,
    rule_param: options.RuleParams = None,
    escape_formulas: options.EscapeFormulas = False,
    strict: options.Strict = False,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    trust: options.Trust = None,
    threads: options.Threads = -1,
    cluster: options.Cluster = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Add predicted labels and their probabilities to a table.

    Rows keep their order; a row that cannot be classified has the reason in the column 'problem'. The output is CSV, or JSON
    Lines with --json or an output file that ends in .jsonl. With --format, documents become tasks of an annotation tool, which
    propose the predicted labels.

    \b
    Examples:
      ramify predict out new.csv > classified.csv
      ramify predict out new.csv --out classified.jsonl --top 3
      ramify predict out --try "my parcel has not arrived"
      ramify predict out new.csv --threshold 0.7 --without "Returns & warranty"
      ramify predict out new.csv --out tasks.json --format label-studio
      ramify predict out new.csv --risk 0.05
      ramify predict out new.csv --risk 0.05 --nodes 3 --by-branch
      ramify predict out parts/ --out predictions/
      ramify predict out 'parts/*.parquet' --out predictions/ --cluster auto
      ramify predict out 'parts/*.parquet' --out predictions/ --cluster auto --resume
    """
    from ramify.workflows.file_predictions import MANIFEST
    from ramify.workflows.predict_stream import predict_file

    if (data is None) == (sentence is None):
        raise InputError("give a file of documents to classify, or one text with --try, and not both.")
    wanted = ramify.PredictOptions(top, threshold, tuple(within or ()), tuple(without or ()), risk, nodes, by_branch)
    wanted.check()
    decision = options.parse_rule(rule, rule_param)
    if tasks is not None:
        _refuse_with_tasks(tasks, data, out, as_json, escape_formulas)
    if data is not None and ramify.data.is_file_set(data):
        settings = {"text": text, "encoding": encoding, "strict": strict, "resume": resume, "n_jobs": threads}
        settings["escape_formulas"] = escape_formulas
        with progress_shown(cluster):
            options.ask_to_replace(out and out / MANIFEST if not resume else None, force=force)
            _predict_files(model, data, out, rule=decision, options=wanted, as_json=as_json, **settings)
        return
    if resume:
        raise InputError("--resume continues a run on many files; give a directory or a quoted pattern of them, and --out.")
    kind = "" if tasks is not None else options.table_format(out, as_json, escape_formulas)
    files = options.files_among(rule, *(rule_param or ()))
    options.refuse_outputs(out, models=[model], read=[data, *files], force=force)
    classifier = options.load_model(model, decision, threads)
    _warn_about_branches(classifier, wanted)
    if sentence is not None:
        _predict_sentence(classifier, sentence, wanted, as_json)
    elif data is not None:
        with progress_shown(cluster), predict_file(classifier, data, wanted, text, encoding, sheet) as (columns, rows):
            if tasks is not None:
                _write_tasks(rows, data, out, tasks, classifier, strict, wanted.nodes > 1)
                return
            options.write_predictions(rows, columns, data, out, kind, top, strict, escape_formulas)


def _refuse_with_tasks(name: str, data: Path | None, out: Path | None, as_json: bool, escape_formulas: bool) -> None:
    """Refuse what does not go together with --format."""
    options.check_tasks_file(name, out)
    if data is None or ramify.data.is_file_set(data):
        raise InputError("--format writes the tasks of one file of documents; give one file, and not --try or many files.")
    if as_json or escape_formulas:
        raise InputError("--format writes annotation tasks, not a table; leave out --json and --escape-formulas.")


def _write_tasks(
    rows: Any, data: Path, out: Path | None, name: str, classifier: ramify.TextClassifier, strict: bool, is_multi_label: bool
) -> None:
    """Write a task for every row that has a text; refuse a file without one."""
    from ramify.features import Vectors
    from ramify.parallel import stage
    from ramify.workflows.annotation_tasks import write_tasks

    if isinstance(classifier.vectorizer_, Vectors):
        raise InputError("annotation tasks need texts, but the model was trained on vectors; leave out --format.")
    with options.opened(out) as file, stage(f"classifying {data.name}") as step:
        writing: dict[str, Any] = {"source": str(data), "strict": strict, "is_multi_label": is_multi_label}
        tally = write_tasks(rows, file, name, classifier, step, **writing)
        if tally.problems and tally.problems == tally.documents:
            raise DataError(f"none of {counted(tally.documents, 'row')} could be classified; the first: {tally.first}.")
    if tally.problems:
        say(f"{counted(tally.problems, 'row')} without a text left out. The first: {tally.first}.")
    done = f"{counted(tally.documents - tally.problems, 'task')} for {name}"
    say(done if out is None else f"{done} written to {out}")


def _warn_about_branches(classifier: ramify.TextClassifier, wanted: ramify.PredictOptions) -> None:
    """Name the branches that have no guarantee."""
    if wanted.by_branch and wanted.risk is not None:
        from ramify.classifier.guarantees import branches_without_guarantee

        if problem := branches_without_guarantee(classifier, wanted.risk):
            say(problem)


def _predict_files(model: Path, data: Path, out: Path | None, **settings: Any) -> None:
    """Write the predictions of many files, each into a file of its own."""
    if out is None or (out.suffix.lower() in options.TABLES and not out.is_dir()):
        name = f"{data.name}-predicted"
        raise InputError(f"predictions of many files go into a directory; name it with --out, such as --out {name}.")
    if settings["options"].by_branch:
        _warn_about_branches(options.load_model(model, settings["rule"]), settings["options"])
    done = workflows.predict_files(model, data, out, **settings)
    options.report_problems(done.tally)
    if done.skipped:
        say(f"{counted(done.skipped, 'file')} of an earlier run left unchanged.")
    documents = f"{counted(done.tally.documents, 'document')} with {counted(done.tally.labels, 'label')}"
    say(f"{documents} in {counted(done.written, 'file')} written to {out}")


def _predict_sentence(classifier: ramify.TextClassifier, sentence: str, wanted: ramify.PredictOptions, as_json: bool) -> None:
    from ramify.workflows.reading import refuse_texts

    refuse_texts(classifier, "--try")
    predicted = next(iter(workflows.predict_rows(classifier, [(1, {"text": sentence})], "text", wanted)))
    if predicted.problem:
        raise InputError(f"{predicted.problem}; give some words to classify.")
    why = classifier.explain(sentence)
    labels = predicted.labels + predicted.others
    if as_json:
        found = [{"label": label, "probability": p} for label, p in labels]
        print_json({"labels": found, "rival": why.rival, "words": why.words, "prior": why.prior, "margin": why.margin})
        return
    if not predicted.labels:
        print_plain(f"        no label; the best is {' > '.join(why.path)}")
    for label, probability in labels:
        print_plain(f"{probability:6.1%}  {label}")
    words = ", ".join(f"{word} {weight:+.2f}" for word, weight in why.words[:8])
    reasons = f"{words}, class size {why.prior:+.2f}" if words else "the text has no known word; only class sizes count"
    print_plain(f"        rather than {' > '.join(why.rival)}: {reasons}", style="dim")
