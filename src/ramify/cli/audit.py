"""``ramify audit``: wrong labels, contradictory duplicates, and classes that cannot be learnt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ramify.cli.console import output, print_json, progress_shown, say
from ramify.cli.options import (
    AsJson,
    Encoding,
    KeepUnlabelled,
    LabelColumn,
    LabelSeparator,
    MaxFeatures,
    MinDf,
    Ngrams,
    PathSeparator,
    Stem,
    StopWords,
    Strict,
    TaxonomyFile,
    TaxonomyFormat,
    TextColumn,
    Threads,
    TrainingFile,
    opened,
    refuse_output,
    table_format,
)

if TYPE_CHECKING:
    from ramify.workflows import Audit

SYSTEM = "lr:C=10"  # the best probabilities for their time


def audit(
    data: TrainingFile,
    text: TextColumn = None,
    label: LabelColumn = None,
    label_separator: LabelSeparator = None,
    taxonomy: TaxonomyFile = None,
    taxonomy_format: TaxonomyFormat = None,
    path_separator: PathSeparator = None,
    system: Annotated[
        str, typer.Option(help="System of the out-of-fold predictions, with parameters if need be: svm, or lr:C=1.")
    ] = SYSTEM,
    max_issues: Annotated[int, typer.Option(min=0, help="Report at most this many label issues.")] = 200,
    show: Annotated[int, typer.Option(min=0, help="Print this many of each kind; the report and the file have all.")] = 20,
    folds: Annotated[int, typer.Option(help="Number of cross-validation folds.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the folds.")] = 0,
    similarity: Annotated[float, typer.Option(help="Fraction of common words from which texts are near duplicates.")] = 0.9,
    min_documents: Annotated[int, typer.Option(min=0, help="Report classes with fewer documents as tiny.")] = 5,
    report: Annotated[Path | None, typer.Option(help="Write everything as an HTML page.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the label issues: .csv or .tsv, or .jsonl for 'ramify reviews add'."),
    ] = None,
    ngrams: Ngrams = 1,
    stop_words: StopWords = None,
    stem: Stem = None,
    min_df: MinDf = 1,
    max_features: MaxFeatures = None,
    strict: Strict = False,
    keep_unlabelled: KeepUnlabelled = False,
    encoding: Encoding = "utf-8",
    threads: Threads = -1,
    as_json: AsJson = False,
) -> None:
    """Find wrong labels, contradictory duplicates and classes that cannot be learnt.

    Every document is scored by a classifier that was not trained on it. Reported are label issues, worst first, with a better
    label and the words in favour of it; duplicates with different labels; indistinguishable siblings; and classes that are
    empty, tiny or never recognized.

    \b
    Examples:
      ramify audit tickets.csv
      ramify audit tickets.csv --report audit.html --out issues.csv
      ramify audit docs.jsonl --taxonomy taxonomy.tsv --system svm --max-issues 500
      ramify audit tickets.csv --out issues.jsonl
      ramify reviews add ramify-reviews.db issues.jsonl --model out
    """
    from ramify.reports.terminal import render_audit
    from ramify.workflows import FeatureOptions, ReadOptions, TrainOptions
    from ramify.workflows import audit as run

    kind = table_format(out).removeprefix(".")
    for path in (report, out):
        refuse_output(path, None, data, taxonomy)
    reading = ReadOptions(text, label, label_separator, strict, keep_unlabelled, encoding)
    features = FeatureOptions(ngrams, stop_words, stem, min_df, max_features)
    options = TrainOptions(system, taxonomy=taxonomy, taxonomy_format=taxonomy_format, path_separator=path_separator,
                           features=features, n_jobs=threads)  # fmt: skip
    classifier, known = options.new_classifier(), options.known_taxonomy()
    is_label = None if known is None else known.__contains__
    with progress_shown():
        corpus = reading.read(data, is_label)
        found = run(
            classifier,
            corpus,
            max_issues=max_issues,
            folds=folds,
            seed=seed,
            similarity=similarity,
            min_documents=min_documents,
        )
    _write(found, data, report, out, kind)
    if as_json:
        print_json(found.as_dict())
    else:
        output.print(render_audit(found, show))


def _write(found: Audit, data: Path, report: Path | None, out: Path | None, kind: str) -> None:
    from ramify.formatting import counted
    from ramify.persistence import write_text_atomically
    from ramify.reports.pages import audit_page
    from ramify.workflows.auditing.issue_details import issue_lines

    if report is not None:
        write_text_atomically(report, audit_page(found, f"Labels of {data.name}"))
        say(f"Report written to {report}")
    if out is not None:
        with opened(out) as file:
            file.writelines(issue_lines(found.issues, kind))
        say(f"{counted(len(found.issues), 'label issue')} written to {out}")
