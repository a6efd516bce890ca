"""``ramify train``: from a table to a model directory and a report."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.classifier import TextClassifier
from ramify.classifier.guarantees import check_share
from ramify.classifier.saving import refuse_shards
from ramify.cli.auto import (
    Auto,
    By,
    Minutes,
    fixed_parts,
    moment_begun,
    refuse_beside_auto,
    refuse_without_auto,
    seconds_of,
    show_choice,
)
from ramify.cli.building import (
    Hashing,
    MaxFeatures,
    MinDf,
    Ngrams,
    PathSeparator,
    Select,
    SelectBy,
    SelectJoin,
    SelectScope,
    Stem,
    StopWords,
    TaxonomyFile,
    TaxonomyFormat,
    new_learner,
    new_selector,
    new_vectorizer,
    read_added,
    read_labelled,
    read_stop_words,
    refuse_selector,
    tell_about_change,
    warn_about_several_labels,
)
from ramify.cli.console import RichProgress, answers, print_json, say
from ramify.cli.options import (
    SEVERAL_FILES,
    AsJson,
    CheckpointDirectory,
    Cluster,
    Encoding,
    KeepUnlabelled,
    LabelColumn,
    LabelSeparator,
    Resume,
    RuleName,
    RuleParams,
    Strict,
    TextColumn,
    Threads,
    chosen_rule,
    read_params,
    refuse_output,
    working_on,
)
from ramify.errors import InputError
from ramify.formatting import counted
from ramify.parallel import count_workers, reporting_to, writing_shards_to
from ramify.persistence import MAX_SHARDS, refuse_foreign_target, scratch_directory, write_text_atomically
from ramify.reports.page import render_page
from ramify.reports.terminal import render_report
from ramify.reports.tuning_section import choice_section
from ramify.systems import find_system
from ramify.taxonomy import read_taxonomy
from ramify.workflows import TrainResult
from ramify.workflows import train as train_on
from ramify.workflows.many_files import needs_shards
from ramify.workflows.tuning import tune


def train(
    data: Annotated[Path, typer.Argument(help=f"Documents: CSV, TSV, JSON Lines, Parquet, or svmlight; {SEVERAL_FILES}")],
    model: Annotated[Path, typer.Option("--model", "-m", help="Directory to write the model to.")],
    text: TextColumn = None,
    label: LabelColumn = None,
    label_separator: LabelSeparator = None,
    taxonomy: TaxonomyFile = None,
    taxonomy_format: TaxonomyFormat = None,
    path_separator: PathSeparator = None,
    auto: Auto = False,
    minutes: Minutes = None,
    by: By = None,
    system: Annotated[str | None, typer.Option(help="Which system to train; see 'ramify systems'; nb unless told.")] = None,
    add: Annotated[
        list[Path] | None, typer.Option(help="More documents to learn from, such as exported reviews; never tested on.")
    ] = None,
    test: Annotated[Path | None, typer.Option(help="Test documents; without them some are held out.")] = None,
    holdout: Annotated[float, typer.Option(help="Share of the documents to hold out; 0 for no report.")] = 0.2,
    calibrate: Annotated[bool, typer.Option(help="Calibrate probabilities, by learning several times more.")] = True,
    keep_back: Annotated[
        float, typer.Option(help="Share of the documents to learn nothing from, so that what --risk promises is proven.")
    ] = 0.0,
    refit: Annotated[bool, typer.Option(help="After the report, train once more on all documents.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Fixes the hold-out.")] = 0,
    ngrams: Ngrams = 1,
    stop_words: StopWords = None,
    stem: Stem = None,
    min_df: MinDf = 1,
    max_features: MaxFeatures = None,
    hashing: Hashing = None,
    select: Select = None,
    select_by: SelectBy = "information-gain",
    select_join: SelectJoin = "max",
    select_scope: SelectScope = "flat",
    param: Annotated[list[str] | None, typer.Option(help="A parameter of the learner, e.g. alpha=0.1.")] = None,
    rule: RuleName = None,
    rule_param: RuleParams = None,
    shards: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_SHARDS,
            help="Keep the weights in so many files that stay on the disk: svm, lr, hr-svm and hr-lr with very many classes.",
        ),
    ] = None,
    keep_training_data: Annotated[
        bool,
        typer.Option(
            "--keep-training-data",
            help="Keep the documents, as vectors, with the model: 'ramify update' can then follow a new taxonomy.",
        ),
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write the report as an HTML page.")] = None,
    strict: Strict = False,
    keep_unlabelled: KeepUnlabelled = False,
    encoding: Encoding = "utf-8",
    threads: Threads = -1,
    cluster: Cluster = None,
    checkpoints: CheckpointDirectory = None,
    resume: Resume = False,
    as_json: AsJson = False,
) -> None:
    """Train a classifier on a table of documents, report how good it is, and save it.

    \b
    Examples:
      ramify train tickets.csv --model out
      ramify train tickets.csv --text body --label category --model out --report report.html
      ramify train tickets.csv --auto --minutes 5 --model out
      ramify train tickets.csv --auto --system hr-svm --by macro_f1 --model out
      ramify train docs.jsonl --taxonomy taxonomy.tsv --test test.jsonl --model out
      ramify train tickets.csv --system shrinkage-nb --stop-words english --model out
      ramify train tickets.csv --add reviews.csv --model out
      ramify train tickets.csv --system svm --keep-back 0.1 --model out
      ramify train parts/ --model out
      ramify train 'parts/2024-*.parquet' --test 'parts/2025-*.parquet' --model out
      ramify train titles.parquet --system hr-svm --cluster auto --model out
      ramify train titles.parquet --system hr-svm --cluster auto --model out --resume
      ramify train catalogue.csv --system hr-svm --param mode=fast --shards 16 --model out
      ramify train tickets.csv --system b-svm --rule-param costs=uniform --rule minimize-h-loss --model out
    """
    begun, name = moment_begun(), system or "nb"
    refuse_foreign_target(model)
    if auto:
        beside_auto = {"--cluster": cluster, "--checkpoints": checkpoints, "--resume": resume, "--shards": shards}
        refuse_beside_auto(beside_auto | {"--select": select}, system, param)
    else:
        refuse_without_auto(minutes, by)
        tell_about_change(model, name)
    if report is not None:
        refuse_output(report, model, data, test, taxonomy, *(add or ()))
    chosen = find_system(name)
    known = None if taxonomy is None else read_taxonomy(taxonomy, taxonomy_format)
    features = {"ngram_range": (1, ngrams), "stop_words": read_stop_words(stop_words), "stemmer": stem, "hashing": hashing}
    features |= {"min_df": min_df, "max_features": max_features}
    selector = new_selector(select, select_by, select_join, select_scope)
    params = read_params(param or [])
    learner = new_learner(chosen, params)
    refuse_selector(selector, learner)
    if shards is not None:
        if check_share(keep_back) > 0:
            raise InputError("a model in shards looks at few nodes and can promise nothing; leave out --keep-back or --shards.")
        refuse_shards(chosen.learner() if learner is None else learner, name)
    count_workers(threads)
    classifier = TextClassifier(
        name,
        known,
        vectorizer=new_vectorizer(chosen, **features),
        learner=learner,
        decision=chosen_rule(rule, rule_param),
        selector=selector,
        separator=path_separator,
        calibrate=calibrate,
        keep_back=check_share(keep_back),
        keep_training_data=keep_training_data,
        n_jobs=threads,
    )
    reading: dict[str, Any] = {"text": text, "label": label, "label_separator": label_separator, "strict": strict}
    reading |= {"is_label": None if known is None else known.__contains__, "encoding": encoding}
    kept = checkpoints if checkpoints or not (cluster or resume) else model.with_name(f"{model.name}.checkpoints")
    in_shards = not auto and (needs_shards(data) or (test is not None and needs_shards(test)))
    beside = scratch_directory(model) if in_shards or cluster else nullcontext()
    with (
        RichProgress() as progress, reporting_to(progress), working_on(cluster, kept, resume), beside as scratch,
        writing_shards_to(scratch if cluster else None),
    ):  # fmt: skip
        sharding = None if auto else {"vectorizer": classifier.vectorizer, "scratch": scratch, "n_jobs": threads}
        corpus = read_labelled(data, reading, keep_unlabelled, sharding)
        tested = None if test is None else read_labelled(test, reading, keep_unlabelled, sharding)
        more = read_added(add or [], corpus, known, strict, encoding)
        testing: dict[str, Any] = {"share": holdout, "seed": seed, "refit": refit, "more": more}
        choice = None
        if auto:
            fixed = fixed_parts(system, params, features, classifier.decision)
            choosing: dict[str, Any] = {"seconds": seconds_of(minutes), "by": by or "micro_f1", "fixed": fixed, "begun": begun}
            trained, choice = tune(classifier, corpus, tested, **testing, **choosing)
            tell_about_change(model, trained.classifier.system)
        else:
            warn_about_several_labels(chosen, corpus, rule is not None)
            trained = train_on(classifier, corpus, tested, **testing)
        trained.classifier.save(model, shards)
    if report is not None and trained.report is not None:
        title = f"{trained.classifier.system} on {data.name}"
        how = "" if choice is None else choice_section(choice)
        write_text_atomically(report, render_page(trained.report, title, _what_was_tested(trained), how))
    if as_json:
        print_json(_as_dict(trained, model) | ({} if choice is None else {"choice": choice.as_dict()}))
        return
    if choice is not None:
        show_choice(choice, data, trained.report is not None)
    _tell(trained, model, report)


def _what_was_tested(trained: TrainResult) -> str:
    others = f"tested on {trained.tested_on:,}" + (" others" if not trained.seen_before else "")
    seen = f", {trained.seen_before:,} of which have the text of one learnt from" if trained.seen_before else ""
    promised = trained.classifier.guarantee_
    but = " but those kept back" if promised is not None and promised.is_proven else ""
    again = f"; the saved model then learnt from all of them{but}" if trained.refitted else ""
    return f"Learnt from {counted(trained.learnt_from, 'document')}, {others}{seen}{again}."


def _as_dict(trained: TrainResult, model: Path) -> dict[str, Any]:
    report = None if trained.report is None else trained.report.as_dict()
    counts = {name: getattr(trained, name) for name in ("learnt_from", "tested_on", "refitted", "seen_before")}
    return {"model": str(model), **counts, "report": report}


def _tell(trained: TrainResult, model: Path, page: Path | None) -> None:
    if trained.report is None:
        say("Nothing was held out, so there are no figures and no report; give --test or a larger --holdout.")
    else:
        answers.print(_what_was_tested(trained), markup=False, soft_wrap=True)
        answers.print(render_report(trained.report))
        if page is not None:
            say(f"Report written to {page}")
    say(f"Model saved in {model}. Next: ramify predict {model} new.csv")
