"""``ramify train``: from a table to a model directory and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from sklearn.base import clone

from ramify.cli.console import RichProgress, answers, counted, print_json, say
from ramify.cli.options import (
    AsJson,
    Encoding,
    KeepUnlabelled,
    LabelColumn,
    LabelSeparator,
    RuleName,
    RuleParams,
    Strict,
    TextColumn,
    Threads,
    chosen_rule,
    labelled,
    read_params,
    readable,
    refuse_output,
)
from ramify.datasets import Corpus, read_corpus
from ramify.errors import InputError
from ramify.execution import count_workers, reporting_to
from ramify.features import TermSelector
from ramify.features.relevance import MEASURES
from ramify.features.selection import JOINS, SCOPES
from ramify.features.stop_words import STOP_LISTS
from ramify.metrics.page import render_page
from ramify.metrics.terminal import render_report
from ramify.persistence import refuse_foreign_target, write_text_atomically
from ramify.pipeline import TextClassifier, Trained
from ramify.pipeline import train as train_on
from ramify.pipeline.features import selector_for
from ramify.systems import System, find_system
from ramify.taxonomy import Taxonomy, read_taxonomy


def train(
    data: Annotated[Path, typer.Argument(help="Documents: CSV, TSV, JSON Lines, Parquet, or svmlight; - for stdin.")],
    model: Annotated[Path, typer.Option("--model", "-m", help="Directory to write the model to.")],
    text: TextColumn = None,
    label: LabelColumn = None,
    label_separator: LabelSeparator = None,
    taxonomy: Annotated[Path | None, typer.Option(help="Taxonomy file; without it label paths spell it out.")] = None,
    taxonomy_format: Annotated[str | None, typer.Option(help="edges, paths, indented, json, lshtc or skos.")] = None,
    path_separator: Annotated[str | None, typer.Option(help="What joins the parts of a label path, e.g. ' > '.")] = None,
    system: Annotated[str, typer.Option(help="Which system to train; see 'ramify systems'.")] = "nb",
    test: Annotated[Path | None, typer.Option(help="Test documents; without them some are held out.")] = None,
    holdout: Annotated[float, typer.Option(help="Share of the documents to hold out; 0 for no report.")] = 0.2,
    refit: Annotated[bool, typer.Option(help="After the report, train once more on all documents.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Fixes the hold-out.")] = 0,
    ngrams: Annotated[int, typer.Option(min=1, help="Use runs of up to this many words.")] = 1,
    stop_words: Annotated[
        str | None, typer.Option(help="Leave out common words: 'english', 'english-long', or a file with one a line.")
    ] = None,
    stem: Annotated[str | None, typer.Option(help="Reduce words to stems: 'english', 'porter', 'german', …")] = None,
    min_df: Annotated[int, typer.Option(min=1, help="Leave out words in fewer documents.")] = 1,
    max_features: Annotated[int | None, typer.Option(min=1, help="Keep only so many words, the most frequent.")] = None,
    hashing: Annotated[int | None, typer.Option(min=1, help="Put words into so many columns by their hash.")] = None,
    select: Annotated[int | None, typer.Option(min=1, help="Keep so many words that tell most about the labels.")] = None,
    select_by: Annotated[str, typer.Option(help=f"How much a word tells: {', '.join(MEASURES)}.")] = "information-gain",
    select_join: Annotated[str, typer.Option(help=f"How classes are joined: {', '.join(JOINS)}.")] = "max",
    select_scope: Annotated[str, typer.Option(help=f"Where words are chosen: {', '.join(SCOPES)}.")] = "flat",
    param: Annotated[list[str] | None, typer.Option(help="A parameter of the learner, e.g. alpha=0.1.")] = None,
    rule: RuleName = None,
    rule_param: RuleParams = None,
    report: Annotated[Path | None, typer.Option(help="Write the report as an HTML page.")] = None,
    strict: Strict = False,
    keep_unlabelled: KeepUnlabelled = False,
    encoding: Encoding = "utf-8",
    threads: Threads = -1,
    as_json: AsJson = False,
) -> None:
    """Train a classifier on a table of documents, report how good it is, and save it.

    \b
    Examples:
      ramify train tickets.csv --model out
      ramify train tickets.csv --text body --label category --model out --report report.html
      ramify train docs.jsonl --taxonomy taxonomy.tsv --test test.jsonl --model out
      ramify train tickets.csv --system shrinkage-nb --stop-words english --model out
      ramify train tickets.csv --system b-svm --rule-param costs=uniform --rule minimize-h-loss --model out
    """
    refuse_foreign_target(model)
    if report is not None:
        refuse_output(report, model, data, test, taxonomy)
    chosen = find_system(system)
    known = None if taxonomy is None else read_taxonomy(taxonomy, taxonomy_format)
    features = {"ngram_range": (1, ngrams), "stop_words": _stop_words(stop_words), "stemmer": stem, "hashing": hashing}
    selector = None if select is None else TermSelector(select, measure=select_by, join=select_join, scope=select_scope)
    learner = _learner(chosen, read_params(param or []))
    if selector is not None:
        clone(selector).set_params(taxonomy=Taxonomy.flat(["x"])).check_settings()
        selector_for(selector, learner)
    count_workers(threads)
    classifier = TextClassifier(
        system,
        known,
        vectorizer=_checked(chosen.vectorizer().set_params(min_df=min_df, max_features=max_features, **features)),
        learner=learner,
        decision=chosen_rule(rule, rule_param),
        selector=selector,
        separator=path_separator,
        n_jobs=threads,
    )
    reading: dict[str, Any] = {"text": text, "label": label, "label_separator": label_separator, "strict": strict}
    reading |= {"is_label": None if known is None else known.__contains__, "encoding": encoding}
    with RichProgress() as progress, reporting_to(progress):
        corpus = labelled(_read(data, reading), keep_unlabelled)
        tested = None if test is None else labelled(_read(test, reading), keep_unlabelled)
        _warn_about_several_labels(chosen, corpus, rule is not None)
        trained = train_on(classifier, corpus, tested, share=holdout, seed=seed, refit=refit)
        trained.classifier.save(model)
    if report is not None and trained.report is not None:
        title = f"{system} on {data.name}"
        write_text_atomically(report, render_page(trained.report, title, _what_was_tested(trained)))
    if as_json:
        print_json(_as_dict(trained, model))
    else:
        _tell(trained, model, report)


def _stop_words(given: str | None) -> str | list[str] | None:
    """The name of a stop list, or the words of a file."""
    if given is None or given in STOP_LISTS:
        return given
    try:
        return [line.strip() for line in Path(given).read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError):
        names = " or ".join(repr(name) for name in STOP_LISTS)
        raise InputError(f"--stop-words is {given!r}; give {names}, or a text file with one word a line.") from None


def _checked(vectorizer: Any) -> Any:
    """Settings that make no sense are found out before anything is read."""
    vectorizer.check_settings()
    return vectorizer


def _read(path: Path, reading: dict[str, Any]) -> Corpus:
    with readable(path) as file:
        return read_corpus(file, **reading)


def _learner(system: System, params: dict[str, Any]) -> Any:
    learner = system.learner()
    allowed = sorted(set(learner.get_params()) - {"taxonomy", "n_jobs"})
    for name in params:
        if name not in allowed:
            raise InputError(f"--param {name} is no parameter of {system.name}; it has {', '.join(allowed)}.")
    return learner.set_params(**params)


def _warn_about_several_labels(system: System, corpus: Corpus, is_ruled: bool) -> None:
    several = sum(len(labels) > 1 for labels in corpus.labels)
    if several and not system.several_labels and not is_ruled:
        say(f"  {counted(several, 'document')} with several labels; {system.name} learns from all, and answers with one")


def _what_was_tested(trained: Trained) -> str:
    others = f"tested on {trained.tested_on:,}" + (" others" if not trained.seen_before else "")
    seen = f", {trained.seen_before:,} of which have the text of one learnt from" if trained.seen_before else ""
    again = "; the saved model then learnt from all of them" if trained.refitted else ""
    return f"Learnt from {counted(trained.learnt_from, 'document')}, {others}{seen}{again}."


def _as_dict(trained: Trained, model: Path) -> dict[str, Any]:
    report = None if trained.report is None else trained.report.as_dict()
    counts = {name: getattr(trained, name) for name in ("learnt_from", "tested_on", "refitted", "seen_before")}
    return {"model": str(model), **counts, "report": report}


def _tell(trained: Trained, model: Path, page: Path | None) -> None:
    if trained.report is None:
        say("Nothing was held out, so there are no figures and no report; give --test or a larger --holdout.")
    else:
        answers.print(_what_was_tested(trained), markup=False, soft_wrap=True)
        answers.print(render_report(trained.report))
        if page is not None:
            say(f"Report written to {page}")
    say(f"Model saved in {model}. Next: ramify predict {model} new.csv")
