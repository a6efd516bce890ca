"""``ramify audit``: wrong labels, contradictory duplicates, and classes that cannot be learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from ramify import workflows
from ramify.cli import options
from ramify.cli.console import output, print_json, progress_shown, say
from ramify.formatting import counted

SYSTEM = "lr:C=10"  # the best probabilities for their time


def audit(
    data: options.TrainingFile,
    text: options.TextColumn = None,
    label: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    taxonomy: options.TaxonomyFile = None,
    taxonomy_format: options.TaxonomyFormat = None,
    language: options.Language = None,
    path_separator: options.PathSeparator = None,
    system: Annotated[
        str, Option(help="System of the out-of-fold predictions, with parameters if need be: svm, or lr:C=1.")
    ] = SYSTEM,
    max_issues: Annotated[int, Option(min=0, help="Report at most this many label issues.")] = 200,
    show: Annotated[int, Option(min=0, help="Print this many of each kind; the report and the file have all.")] = 20,
    folds: Annotated[int, Option(help="Number of cross-validation folds.")] = 5,
    seed: Annotated[int, Option(min=0, help="Seed of the folds.")] = 0,
    similarity: Annotated[float, Option(help="Fraction of common words from which texts are near duplicates.")] = 0.9,
    min_documents: Annotated[int, Option(min=0, help="Report classes with fewer documents as tiny.")] = 5,
    report: Annotated[Path | None, Option(help="Write everything as an HTML page.")] = None,
    out: Annotated[
        Path | None, Option("--out", "-o", help="Write the label issues: .csv or .tsv, or .jsonl for 'ramify reviews add'.")
    ] = None,
    escape_formulas: options.EscapeFormulas = False,
    ngrams: options.Ngrams = 1,
    stop_words: options.StopWords = None,
    stem: options.Stem = None,
    min_df: options.MinDf = 1,
    max_features: options.MaxFeatures = None,
    strict: options.Strict = False,
    keep_unlabelled: options.KeepUnlabelled = False,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    column: options.Columns = None,
    separate: options.Separate = False,
    merge_spellings: options.MergeSpellings = False,
    threads: options.Threads = -1,
    force: options.Force = False,
    as_json: options.AsJson = False,
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
    from ramify.persistence import write_text_atomically
    from ramify.reports.pages import audit_page
    from ramify.reports.terminal import render_audit
    from ramify.workflows.auditing.issue_details import issue_lines

    kind = options.table_format(out, escape_formulas=escape_formulas).removeprefix(".")
    options.refuse_outputs(report, out, read=[data, taxonomy, stop_words], force=force)
    of_file = (strict, keep_unlabelled, encoding, sheet, merge_spellings, column or (), separate)
    reading = workflows.ReadOptions(text, label, label_separator, *of_file)
    features = workflows.FeatureOptions(ngrams, stop_words, stem, min_df, max_features)
    wanted = workflows.TrainOptions(
        system, {}, taxonomy, taxonomy_format, path_separator, features=features, n_jobs=threads, taxonomy_language=language
    )
    classifier, known = wanted.new_classifier(), wanted.known_taxonomy()
    settings: dict[str, Any] = {"max_issues": max_issues, "folds": folds, "seed": seed, "similarity": similarity}
    with progress_shown():
        corpus = reading.read(data, None if known is None else known.__contains__)
        found = workflows.audit(classifier, corpus, min_documents=min_documents, **settings)
    if report is not None:
        write_text_atomically(report, audit_page(found, f"Labels of {data.name}"))
        say(f"Report written to {report}")
    if out is not None:
        with options.opened(out) as file:
            file.writelines(issue_lines(found.issues, kind, escape_formulas))
        say(f"{counted(len(found.issues), 'label issue')} written to {out}")
    if as_json:
        print_json(found.as_dict())
    else:
        output.print(render_audit(found, show))
