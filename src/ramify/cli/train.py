"""``ramify train``: from a table to a model directory and a report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from ramify import workflows
from ramify.cli import main, options
from ramify.cli.console import output, print_json, print_plain, progress_shown, say
from ramify.errors import InputError


def train(
    data: options.TrainingFile,
    model: Annotated[Path, Option("--model", "-m", help="Directory to write the model to.")],
    text: options.TextColumn = None,
    label: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    taxonomy: options.TaxonomyFile = None,
    taxonomy_format: options.TaxonomyFormat = None,
    language: options.Language = None,
    path_separator: options.PathSeparator = None,
    auto: Annotated[
        bool, Option("--auto", help="Choose features, system, C and rule by cross-validation, within --minutes.")
    ] = False,
    minutes: Annotated[float | None, Option(help="With --auto: time limit of the whole command (default: 5).")] = None,
    by: Annotated[str | None, Option(help=f"With --auto: measure to maximize: {options.MEASURES} (default: micro_f1).")] = None,
    system: Annotated[str | None, Option(help="System to train; see 'ramify systems' (default: path-svm).")] = None,
    add: Annotated[
        list[Path] | None, Option(help="More documents for training only, such as exported reviews; may be repeated.")
    ] = None,
    test: Annotated[Path | None, Option(help="Test documents (default: hold out some of DATA).")] = None,
    holdout: Annotated[float, Option(help="Fraction of the documents to hold out; 0 for no report.")] = 0.2,
    calibrate: Annotated[bool, Option(help="Calibrate probabilities; takes several times longer to train.")] = True,
    keep_back: Annotated[
        float, Option(help="Fraction of the documents not used in training, so that --risk is a proven guarantee.")
    ] = 0.0,
    refit: Annotated[bool, Option(help="After the report, train again on all documents.")] = True,
    seed: Annotated[int, Option(min=0, help="Seed of the hold-out.")] = 0,
    ngrams: options.Ngrams = 1,
    characters: options.CharacterNgrams = None,
    stop_words: options.StopWords = None,
    stem: options.Stem = None,
    min_df: options.MinDf = 1,
    max_features: options.MaxFeatures = None,
    hashing: options.Hashing = None,
    select: options.Select = None,
    select_by: options.SelectBy = "information-gain",
    select_join: options.SelectJoin = "max",
    select_scope: options.SelectScope = "flat",
    param: Annotated[list[str] | None, Option(help="A parameter of the learner, e.g. alpha=0.1.")] = None,
    rule: options.RuleName = None,
    rule_param: options.RuleParams = None,
    shards: Annotated[
        int | None,
        Option(min=1, max=10_000, help="Save the weights in this many files that stay on disk: svm, lr, hr-svm, hr-lr."),
    ] = None,
    keep_training_data: Annotated[
        bool, Option("--keep-training-data", help="Keep the documents with the model, so that 'ramify update' can retrain it.")
    ] = False,
    report: options.ReportPage = None,
    strict: options.Strict = False,
    keep_unlabelled: options.KeepUnlabelled = False,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    column: options.Columns = None,
    separate: options.Separate = False,
    merge_spellings: options.MergeSpellings = False,
    threads: options.Threads = -1,
    cluster: options.Cluster = None,
    checkpoints: options.CheckpointDirectory = None,
    resume: options.Resume = False,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Train a classifier on a table of documents, evaluate it, and save it.

    \b
    Examples:
      ramify train tickets.csv --model out
      ramify train tickets.csv --text body --label category --model out --report report.html
      ramify train tickets.csv --auto --minutes 5 --model out
      ramify train tickets.csv --system svm --characters 3-4 --model out
      ramify train tickets.csv --auto --system hr-svm --by macro_f1 --model out
      ramify train docs.jsonl --taxonomy taxonomy.tsv --test test.jsonl --model out
      ramify train tickets.csv --system shrinkage-nb --stop-words english --model out
      ramify train tickets.csv --add reviews.csv --model out --force
      ramify train tickets.csv --system svm --keep-back 0.1 --model out
      ramify train parts/ --model out
      ramify train 'parts/2024-*.parquet' --test 'parts/2025-*.parquet' --model out
      ramify train titles.parquet --system hr-svm --cluster auto --model out
      ramify train titles.parquet --system hr-svm --cluster auto --model out --resume
      ramify train catalogue.csv --system hr-svm --param mode=fast --shards 16 --model out
      ramify train tickets.csv --system b-svm --rule-param costs=uniform --rule minimize-h-loss --model out
    """
    from ramify.workflows.option_values import parse_params
    from ramify.workflows.training import refuse_target

    without_auto = {"--cluster": cluster, "--checkpoints": checkpoints, "--resume": resume, "--shards": shards}
    tune = _tune_options(auto, minutes, by, without_auto | {"--select": select, "--column": column, "--separate": separate})
    refuse_target(model)
    kept = checkpoints if checkpoints or not (cluster or resume) else model.with_name(f"{model.name}.checkpoints")
    read = [data, test, taxonomy, stop_words, *(add or ()), *options.files_among(rule, *(rule_param or ()))]
    options.refuse_outputs(report, models=[model], read=read, force=force)
    options.ask_to_replace(model, force=force)
    _refuse_checkpoints(kept, model, report)
    selection = (select, select_by, select_join, select_scope)
    features = workflows.FeatureOptions(ngrams, stop_words, stem, min_df, max_features, hashing, *selection, characters)
    of_file = (strict, keep_unlabelled, encoding, sheet, merge_spellings, column or (), separate)
    reading = workflows.ReadOptions(text, label, label_separator, *of_file)
    wanted = workflows.TrainOptions(
        system, parse_params(param or []), taxonomy, taxonomy_format, path_separator, options.parse_rule(rule, rule_param),
        features, reading, test, holdout, seed, refit, add or (), calibrate=calibrate, keep_back=keep_back,
        keep_training_data=keep_training_data, shards=shards, tune=tune, n_jobs=threads, taxonomy_language=language,
    )  # fmt: skip
    with progress_shown(cluster, kept, resume):
        trained = workflows.train(data, wanted, model)
    options.say_notes(wanted.rule, trained.classifier.taxonomy_)
    _show(trained, data, model, report, as_json)


def _refuse_checkpoints(kept: Path | None, *outputs: Path | None) -> None:
    """Refuse a directory for checkpoints that is another output, lies in it, or holds it."""
    from ramify.persistence.paths import is_at_or_below

    for place in outputs:
        if kept is not None and place is not None and (is_at_or_below(kept, place) or is_at_or_below(place, kept)):
            raise InputError(f"the checkpoints in {kept} would mix with {place}; choose another directory for them.")


def _tune_options(auto: bool, minutes: float | None, by: str | None, others: dict[str, Any]) -> workflows.TuneOptions | None:
    """What --auto, --minutes and --by ask for; refuses options that do not go together."""
    from ramify.workflows.comparison import check_measure

    if not auto:
        for option, value in (("--minutes", minutes), ("--by", by)):
            if value is not None:
                raise InputError(f"{option} goes with --auto; give --auto as well, or leave {option} out.")
        return None
    for option, value in others.items():
        if value:
            raise InputError(f"--auto and {option} were given; --auto does not support {option}, so leave one of them out.")
    check_measure(by or "micro_f1")
    started_at = time.monotonic() if main.started_at is None else main.started_at
    return workflows.TuneOptions(5.0 if minutes is None else minutes, by or "micro_f1", started_at)


def _show(trained: workflows.TrainResult, data: Path, model: Path, page: Path | None, as_json: bool) -> None:
    """Write the report as a page, and print it, or everything as JSON."""
    from ramify.reports.tables import describe_training
    from ramify.reports.terminal import describe_main_parents, render_report, render_tuning
    from ramify.workflows.tuning.result import command_options

    report, tuning = trained.report, trained.tuning
    if page is not None and report is not None:
        from ramify.persistence import write_text_atomically
        from ramify.reports.pages import report_page

        title = f"{trained.classifier.system} on {data.name}"
        write_text_atomically(page, report_page(report, title, describe_training(trained), tuning))
    if as_json:
        print_json({"model": str(model), **trained.to_dict()})
        return
    if (made := trained.classifier).uses_main_parents:
        what = made.system if made.learner_.uses_main_parents else f"rule {made.decision_.kind!r}"
        how = "works over the tree of main parents, those with the fewest documents; labels get all their ancestors"
        say(f"The taxonomy is a DAG: {what} {how}. {describe_main_parents(made.taxonomy_)}.")
    if tuning is not None:
        output.print(render_tuning(tuning, report is not None))
        command = f"ramify train {data} {command_options(tuning)}"
        print_plain("", f"The same without --auto, with the other options as given: {command}", "", style="dim")
    if report is None:
        say("Nothing was held out, so there are no figures and no report; give --test or a larger --holdout.")
    else:
        print_plain(describe_training(trained), trained.classifier.summary(), "")
        output.print(render_report(report))
        if page is not None:
            say(f"Report written to {page}")
    say(f"Model saved in {model}. Next: ramify predict {model} new.csv")
    if tuning is None:
        say(f"To look for a better one: ramify train {data} --auto --minutes 5 --model {model}")
