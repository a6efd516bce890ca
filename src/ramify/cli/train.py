"""``ramify train``: from a table to a model directory and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli.console import RichProgress, answers, notes, print_json
from ramify.cli.options import AsJson, LabelColumn, LabelSeparator, Strict, TextColumn, Threads, read_params, tell_about
from ramify.datasets import read_corpus
from ramify.errors import InputError
from ramify.execution import reporting_to
from ramify.metrics.page import render_page
from ramify.metrics.terminal import render_report
from ramify.persistence import write_text_atomically
from ramify.persistence.directory import refuse_foreign_target
from ramify.pipeline import TextClassifier, Trained
from ramify.pipeline import train as train_on
from ramify.systems import System, find_system
from ramify.taxonomy import read_taxonomy


def train(
    data: Annotated[Path, typer.Argument(help="Documents: CSV, TSV, JSON Lines, Parquet, or svmlight vectors.")],
    model: Annotated[Path, typer.Option("--model", "-m", help="Directory to write the model to.")],
    text: TextColumn = None,
    label: LabelColumn = None,
    label_separator: LabelSeparator = None,
    taxonomy: Annotated[
        Path | None, typer.Option(help="Taxonomy file; without it label paths spell out the taxonomy.")
    ] = None,
    path_separator: Annotated[
        str | None, typer.Option(help="What joins the parts of a label path, e.g. ' > '; found when not given.")
    ] = None,
    system: Annotated[str, typer.Option(help="Which system to train; see 'ramify systems'.")] = "nb",
    test: Annotated[Path | None, typer.Option(help="Test documents; without them some are held out.")] = None,
    holdout: Annotated[
        float, typer.Option(help="Share of the documents to hold out for the report; 0 for none.")
    ] = 0.2,
    refit: Annotated[bool, typer.Option(help="After the report, train once more on all documents.")] = True,
    seed: Annotated[int, typer.Option(help="Fixes the hold-out.")] = 0,
    ngrams: Annotated[int, typer.Option(help="Use runs of up to this many words.")] = 1,
    stop_words: Annotated[str | None, typer.Option(help="'english' to leave out common words.")] = None,
    stem: Annotated[str | None, typer.Option(help="Reduce words to stems: 'english', 'porter', 'german', …")] = None,
    min_df: Annotated[int, typer.Option(help="Leave out words in fewer documents.")] = 1,
    max_features: Annotated[int | None, typer.Option(help="Keep only so many words.")] = None,
    param: Annotated[
        list[str] | None, typer.Option(help="A parameter of the learner, e.g. alpha=0.1; may be repeated.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write the report as an HTML page.")] = None,
    strict: Strict = False,
    threads: Threads = -1,
    as_json: AsJson = False,
) -> None:
    """Train a classifier on a table of documents, report how good it is, and save it.

    \b
    Examples:
      ramify train tickets.csv --model out
      ramify train tickets.csv --text body --label category --model out --report report.html
      ramify train docs.jsonl --taxonomy taxonomy.tsv --test test.jsonl --model out
    """
    refuse_foreign_target(model)
    chosen = find_system(system)
    known = None if taxonomy is None else read_taxonomy(taxonomy)
    is_label = None if known is None else known.__contains__
    classifier = TextClassifier(
        system,
        known,
        vectorizer=_vectorizer(chosen, (1, ngrams), stop_words, stem, min_df, max_features),
        learner=_learner(chosen, read_params(param or [])),
        separator=path_separator,
        n_jobs=threads,
    )
    with RichProgress() as progress, reporting_to(progress):
        options: dict[str, Any] = {
            "text": text,
            "label": label,
            "label_separator": label_separator,
            "is_label": is_label,
            "strict": strict,
        }
        corpus = read_corpus(data, **options)
        tell_about(corpus)
        tested = None if test is None else read_corpus(test, **options)
        if tested is not None:
            tell_about(tested)
        trained = train_on(classifier, corpus, tested, share=holdout, seed=seed, refit=refit)
        trained.classifier.save(model)
    if report is not None and trained.report is not None:
        write_text_atomically(
            report, render_page(trained.report, f"{system} on {data.name}", _what_was_tested(trained))
        )
    if as_json:
        print_json(_as_dict(trained, model))
    else:
        _tell(trained, model, report)


def _vectorizer(
    system: System,
    ngrams: tuple[int, int],
    stop_words: str | None,
    stem: str | None,
    min_df: int,
    max_features: int | None,
) -> Any:
    options = {
        "ngram_range": ngrams,
        "stop_words": stop_words,
        "stemmer": stem,
        "min_df": min_df,
        "max_features": max_features,
    }
    return system.vectorizer().set_params(**options)


def _learner(system: System, params: dict[str, Any]) -> Any:
    learner = system.learner()
    allowed = sorted(set(learner.get_params()) - {"taxonomy", "n_jobs"})
    for name in params:
        if name not in allowed:
            raise InputError(f"--param {name} is no parameter of {system.name}; it has {', '.join(allowed)}.")
    return learner.set_params(**params)


def _what_was_tested(trained: Trained) -> str:
    again = "; the saved model then learnt from all of them" if trained.refitted else ""
    return f"Learnt from {trained.learnt_from:,} documents, tested on {trained.tested_on:,} others{again}."


def _as_dict(trained: Trained, model: Path) -> dict[str, Any]:
    report = None if trained.report is None else trained.report.as_dict()
    return {
        "model": str(model),
        "learnt_from": trained.learnt_from,
        "tested_on": trained.tested_on,
        "refitted": trained.refitted,
        "report": report,
    }


def _tell(trained: Trained, model: Path, page: Path | None) -> None:
    if trained.report is not None:
        answers.print(_what_was_tested(trained), markup=False, soft_wrap=True)
        answers.print(render_report(trained.report))
    if page is not None:
        notes.print(f"Report written to {page}", markup=False)
    notes.print(f"Model saved in {model}. Next: ramify predict {model} new.csv", markup=False)
