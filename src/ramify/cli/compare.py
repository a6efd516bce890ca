"""``ramify compare``: several systems on the same documents, and which differences are more than luck."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.classifier import TextClassifier, load
from ramify.cli.building import (
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
    read_labelled,
    read_stop_words,
    refuse_selector,
)
from ramify.cli.console import RichProgress, answers, print_json, say
from ramify.cli.options import (
    AsJson,
    Cluster,
    Encoding,
    KeepUnlabelled,
    LabelColumn,
    LabelSeparator,
    Strict,
    TextColumn,
    Threads,
    read_params,
    refuse_output,
    working_on,
)
from ramify.errors import InputError
from ramify.metrics.significance import CORRECTIONS, check_correction
from ramify.parallel import count_workers, reporting_to
from ramify.persistence import write_text_atomically
from ramify.reports.comparison_page import render_comparison_page
from ramify.reports.comparison_tables import render_comparison
from ramify.systems import SYSTEMS, find_system
from ramify.taxonomy import Taxonomy, read_taxonomy
from ramify.workflows.comparing import compare as compare_on
from ramify.workflows.comparison import LABELS, Comparison, Recommendation, check_measure, recommend

ALL = "all"  # what --system takes for every system


def compare(
    data: Annotated[Path, typer.Argument(help="Labelled documents, in any form that 'ramify train' reads.")],
    system: Annotated[
        list[str] | None,
        typer.Option(
            help="A system, with parameters if need be: nb, or nb:alpha=0.1; give two or more. "
            "'all', or no system at all: every system."
        ),
    ] = None,
    model: Annotated[
        list[Path] | None, typer.Option("--model", "-m", help="Instead of systems: a trained model; give two or more.")
    ] = None,
    test: Annotated[Path | None, typer.Option(help="Test documents; without them DATA is dealt into folds.")] = None,
    folds: Annotated[int, typer.Option(help="How many folds; each is tested by what learnt from the others.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Fixes folds and resamples.")] = 0,
    resamples: Annotated[
        int | None,
        typer.Option(min=1, help="How often documents are drawn anew; without it 1000, or more where there are many pairs."),
    ] = None,
    correction: Annotated[str, typer.Option(help=f"For many comparisons: {', '.join(CORRECTIONS)}.")] = "holm",
    by: Annotated[str, typer.Option(help=f"The measure to recommend a system by: {', '.join(LABELS)}.")] = "micro_f1",
    report: Annotated[Path | None, typer.Option(help="Write everything as an HTML page, with quality against time.")] = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    label_separator: LabelSeparator = None,
    taxonomy: TaxonomyFile = None,
    taxonomy_format: TaxonomyFormat = None,
    path_separator: PathSeparator = None,
    ngrams: Ngrams = 1,
    stop_words: StopWords = None,
    stem: Stem = None,
    min_df: MinDf = 1,
    select: Select = None,
    select_by: SelectBy = "information-gain",
    select_join: SelectJoin = "max",
    select_scope: SelectScope = "flat",
    strict: Strict = False,
    keep_unlabelled: KeepUnlabelled = False,
    encoding: Encoding = "utf-8",
    threads: Threads = -1,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Compare systems on the same documents: measures, time, memory, tests of every pair, and which one to take.

    A system that cannot take the documents is left out, with the reason.

    \b
    Examples:
      ramify compare tickets.csv
      ramify compare tickets.csv --report compared.html --by macro_f1
      ramify compare tickets.csv --system nb --system hr-svm
      ramify compare tickets.csv --system nb --system nb:alpha=0.1 --system shrinkage-nb --folds 10
      ramify compare train.jsonl --test test.jsonl --taxonomy taxonomy.tsv --system svm --system hr-svm:C=10
      ramify compare tickets.csv --cluster auto
      ramify compare test.csv --model one --model other
    """
    if report is not None:
        refuse_output(report, None, data, test, taxonomy)
    check_correction(correction)
    check_measure(by)
    count_workers(threads)
    known = None if taxonomy is None else read_taxonomy(taxonomy, taxonomy_format)
    reading: dict[str, Any] = {"text": text, "label": label, "label_separator": label_separator}
    reading |= {"strict": strict, "encoding": encoding}
    features = {"ngram_range": (1, ngrams), "stop_words": read_stop_words(stop_words), "stemmer": stem, "min_df": min_df}
    selector = new_selector(select, select_by, select_join, select_scope)
    shared: dict[str, Any] = {"taxonomy": known, "selector": selector, "separator": path_separator, "n_jobs": threads}
    if model:
        _refuse_beside_models(system, test, known, features, selector, path_separator)
        classifiers = _load_all(model, threads)
        known, reading["like"] = _taught(next(iter(classifiers.values())))
    else:
        classifiers = _new_systems(system or [ALL], features, shared)
    reading["is_label"] = None if known is None else known.__contains__
    with RichProgress() as progress, reporting_to(progress), working_on(cluster):
        corpus = read_labelled(data, reading, keep_unlabelled)
        tested = None if test is None else read_labelled(test, reading, keep_unlabelled)
        settings: dict[str, Any] = {"folds": folds, "seed": seed, "n_resamples": resamples, "correction": correction}
        found = compare_on(classifiers, corpus, test=tested, **settings)
    _show(found, recommend(found, by), data, report, as_json)


def _show(found: Comparison, advice: Recommendation, data: Path, report: Path | None, as_json: bool) -> None:
    if report is not None:
        write_text_atomically(report, render_comparison_page(found, advice, f"Systems on {data.name}"))
        say(f"Report written to {report}")
    if as_json:
        print_json(found.as_dict() | {"recommendation": asdict(advice)})
    else:
        answers.print(render_comparison(found, advice, answers.width))


def read_system(given: str) -> tuple[str, dict[str, Any]]:
    """The name of a system, and the parameters after a colon.

    >>> read_system("nb:alpha=0.1,fit_prior=false")
    ('nb', {'alpha': 0.1, 'fit_prior': False})
    """
    name, colon, params = given.partition(":")
    # a comma parts parameters where a name and an equals sign follow, and else belongs to a value
    pairs = re.split(r",(?=\s*\w+\s*=)", params) if colon else []
    return name.strip(), read_params(pairs, f"a parameter of --system {name}")


def _new_systems(given: Sequence[str], features: dict[str, Any], shared: dict[str, Any]) -> dict[str, TextClassifier]:
    _refuse_few("system", given)
    made: dict[str, TextClassifier] = {}
    for each in dict.fromkeys(name for one in given for name in (SYSTEMS if one == ALL else [one])):
        name, params = read_system(each)
        chosen = find_system(name)
        learner = new_learner(chosen, params, f"--system {each}:")
        if each in given:  # one of all that cannot have its words chosen so is left out when it says so itself
            refuse_selector(shared["selector"], learner)
        made[each] = TextClassifier(name, vectorizer=new_vectorizer(chosen, **features), learner=learner, **shared)
    return made


def _load_all(paths: Sequence[Path], threads: int) -> dict[str, TextClassifier]:
    _refuse_few("model", [str(path) for path in paths])
    loaded = {str(path): load(path) for path in paths}
    for classifier in loaded.values():
        classifier.use_threads(threads)
    return loaded


def _refuse_few(option: str, given: Sequence[str]) -> None:
    if len(given) < 2 and ALL not in given:
        found = f"only {given[0]!r} was" if given else f"no {option} was"
        or_all = ", or none for every system" if option == "system" else ""
        raise InputError(f"{found} given; a comparison needs two: give --{option} twice or more{or_all}.")
    for each in given:
        if given.count(each) > 1:
            other = "other parameters" if option == "system" else "another directory"
            raise InputError(f"--{option} {each} was given twice; give {other}, or leave one out.")


def _refuse_beside_models(
    system: list[str] | None, test: Path | None, known: Any, features: dict[str, Any], selector: Any, separator: str | None
) -> None:
    """Refuse what only training could use."""
    given = {"--system": system, "--test": test, "--taxonomy": known, "--select": selector, "--path-separator": separator}
    given |= {"--stop-words": features["stop_words"], "--stem": features["stemmer"]}
    given |= {"--ngrams": features["ngram_range"] != (1, 1), "--min-df": features["min_df"] > 1}
    for option, value in given.items():
        if value:
            raise InputError(f"--model and {option} were given; models are tested as they are, so leave {option} out.")


def _taught(model: TextClassifier) -> tuple[Taxonomy, Any]:
    """The taxonomy of a model, and the columns that it learnt from."""
    return model.taxonomy_, model.figures_.get("columns")
