"""``ramify compare``: systems or models on the same documents, with significance tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from typer import Option

import ramify
from ramify import workflows
from ramify.cli import options
from ramify.cli.console import output, print_json, progress_shown, say
from ramify.errors import InputError

ALL = "all"  # --system all: every system


def compare(
    data: options.LabelledFile,
    system: Annotated[
        list[str] | None,
        Option(help="A system, with parameters if need be: nb, or nb:alpha=0.1; give two or more (default: all of them)."),
    ] = None,
    model: Annotated[
        list[Path] | None, Option("--model", "-m", help="Instead of systems: a trained model; give two or more.")
    ] = None,
    rule: Annotated[
        list[str] | None,
        Option(help="Decision rule, with parameters if need be: isotonic:penalty=5; if repeated, every system with each."),
    ] = None,
    rule_param: options.RuleParams = None,
    test: Annotated[Path | None, Option(help="Test documents (default: cross-validate on DATA).")] = None,
    folds: Annotated[int, Option(help="Number of cross-validation folds.")] = 5,
    seed: Annotated[int, Option(min=0, help="Seed of folds and resamples.")] = 0,
    resamples: Annotated[
        int | None, Option(min=1, help="Number of bootstrap resamples (default: 1000, or more for many pairs).")
    ] = None,
    correction: Annotated[
        str, Option(help="Correction for multiple tests: holm, bonferroni, benjamini-hochberg or none.")
    ] = "holm",
    by: Annotated[str, Option(help=f"Measure to recommend a system by: {options.MEASURES}.")] = "micro_f1",
    report: Annotated[Path | None, Option(help="Write everything as an HTML page, with quality against time.")] = None,
    trust: options.Trust = None,
    text: options.TextColumn = None,
    label: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    taxonomy: options.TaxonomyFile = None,
    taxonomy_format: options.TaxonomyFormat = None,
    language: options.Language = None,
    path_separator: options.PathSeparator = None,
    ngrams: options.Ngrams = 1,
    characters: options.CharacterNgrams = None,
    stop_words: options.StopWords = None,
    stem: options.Stem = None,
    min_df: options.MinDf = 1,
    select: options.Select = None,
    select_by: options.SelectBy = "information-gain",
    select_join: options.SelectJoin = "max",
    select_scope: options.SelectScope = "flat",
    strict: options.Strict = False,
    keep_unlabelled: options.KeepUnlabelled = False,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    column: options.Columns = None,
    separate: options.Separate = False,
    merge_spellings: options.MergeSpellings = False,
    threads: options.Threads = -1,
    cluster: options.Cluster = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Compare systems on the same documents, with significance tests.

    The result has measures, time, memory, tests of every pair, and a recommendation. A system that cannot be trained on the
    documents is left out, with the reason.

    \b
    Examples:
      ramify compare tickets.csv
      ramify compare tickets.csv --report compared.html --by macro_f1
      ramify compare tickets.csv --system nb --system hr-svm
      ramify compare tickets.csv --system nb --system nb:alpha=0.1 --system shrinkage-nb --folds 10
      ramify compare train.jsonl --test test.jsonl --taxonomy taxonomy.tsv --system svm --system hr-svm:C=10
      ramify compare tickets.csv --cluster auto
      ramify compare test.csv --model one --model other
      ramify compare tickets.csv --system svm --system b-svm --rule minimize-h-loss --rule-param costs=costs.csv
      ramify compare tickets.csv --system b-svm --rule top-down --rule minimize-h-loss --rule minimize-h-loss:costs=uniform
    """
    from ramify.metrics.significance import check_correction
    from ramify.persistence import write_text_atomically
    from ramify.reports.pages import comparison_page
    from ramify.reports.terminal import render_comparison
    from ramify.workflows.comparing import common_taxonomy
    from ramify.workflows.comparison import check_measure

    read = [data, test, taxonomy, stop_words, *options.files_among(*(rule or ()), *(rule_param or ()))]
    options.refuse_outputs(report, models=model or (), read=read, force=force)
    check_correction(correction)
    check_measure(by)
    selection: dict[str, Any] = {"select": select, "select_by": select_by}
    selection |= {"select_join": select_join, "select_scope": select_scope}
    features = workflows.FeatureOptions(ngrams, stop_words, stem, min_df, **selection, characters=characters)
    of_file = (strict, keep_unlabelled, encoding, sheet, merge_spellings, column or (), separate)
    reading = workflows.ReadOptions(text, label, label_separator, *of_file)
    wanted = workflows.TrainOptions(
        None, {}, taxonomy, taxonomy_format, path_separator, features=features, n_jobs=threads, taxonomy_language=language
    )
    known, columns = None if model else wanted.known_taxonomy(), None
    rules = _rules(rule, rule_param)
    if model:
        _refuse_training_options(system, test, wanted)
        _refuse_few("model", [str(path) for path in model], rule)
        loaded = [(str(path), each, options.load_model(path, rules[each], threads)) for path in model for each in rules]
        classifiers = {_name(path, each): classifier for path, each, classifier in loaded}
        first = next(iter(classifiers.values()))
        known, columns = first.taxonomy_, first.figures_.get("columns")
    else:
        _refuse_few("system", system or [ALL], rule)
        classifiers = _new_systems(system or [ALL], wanted, rules)
    is_label = None if known is None else known.__contains__
    with progress_shown(cluster):
        corpus = reading.read(data, is_label, like=columns)
        tested = None if test is None else reading.read(test, is_label, like=columns)
        settings: dict[str, Any] = {"folds": folds, "seed": seed, "n_resamples": resamples, "correction": correction}
        found = workflows.compare(classifiers, corpus, test=tested, **settings)
    for each in rules.values() if rule and not model else ():
        options.say_notes(each, common_taxonomy(classifiers, corpus))
    advice = workflows.recommend(found, by)
    if report is not None:
        write_text_atomically(report, comparison_page(found, advice, f"Systems on {data.name}"))
        say(f"Report written to {report}")
    if as_json:
        print_json(found.as_dict() | {"recommendation": asdict(advice)})
    else:
        output.print(render_comparison(found, advice, output.width))


Rules = dict[str | None, Any]  # by what was given; None: the rule of each system or model


def _rules(given: Sequence[str] | None, params: list[str] | None) -> Rules:
    if not given:
        return {None: options.parse_rule(None, params)}
    return {each: options.parse_rule(each, params) for each in given}


def _name(system: str, rule: str | None) -> str:
    return system if rule is None else f"{system} + {rule}"


def _new_systems(
    given: Sequence[str],
    wanted: workflows.TrainOptions,
    rules: Rules = {None: None},  # noqa: B006 - not changed
) -> dict[str, ramify.TextClassifier]:
    from ramify.systems import SYSTEMS

    made: dict[str, ramify.TextClassifier] = {}
    for each in dict.fromkeys(name for one in given for name in (SYSTEMS if one == ALL else [one])):
        for name, rule in rules.items():
            # among all systems, one that cannot use the term selector is left out of the comparison, with the reason
            asked = replace(wanted, system=each, rule=rule)
            made[_name(each, name)] = asked.new_classifier(checks_selector=each in given)
    return made


def _refuse_few(option: str, given: Sequence[str], rules: Sequence[str] | None) -> None:
    rules = rules or ()
    if len(given) < 2 and len(rules) < 2 and ALL not in given:
        found = f"only {given[0]!r} was" if given else f"no {option} was"
        or_all = ", or none for every system" if option == "system" else ""
        raise InputError(f"{found} given; a comparison needs two: give --{option} or --rule twice or more{or_all}.")
    for name, listed in ((option, given), ("rule", rules)):
        for each in listed:
            if listed.count(each) > 1:
                other = "another directory" if name == "model" else "other parameters"
                raise InputError(f"--{name} {each} was given twice; give {other}, or leave one out.")


def _refuse_training_options(system: list[str] | None, test: Path | None, wanted: workflows.TrainOptions) -> None:
    """Refuse options that only training uses."""
    features, separator = wanted.features, wanted.path_separator
    given: dict[str, Any] = {"--system": system, "--test": test, "--taxonomy": wanted.taxonomy, "--path-separator": separator}
    given |= {"--select": features.select, "--stop-words": features.stop_words, "--stem": features.stem}
    given |= {"--ngrams": features.ngrams > 1, "--min-df": features.min_df > 1}
    for option, value in given.items():
        if value:
            raise InputError(f"--model and {option} were given; models are tested as they are, so leave {option} out.")
