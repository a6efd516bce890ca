"""``ramify audit``: labels that seem wrong, duplicates that contradict each other, and classes that cannot be learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.classifier import TextClassifier
from ramify.cli.building import (
    MaxFeatures,
    MinDf,
    Ngrams,
    PathSeparator,
    Stem,
    StopWords,
    TaxonomyFile,
    TaxonomyFormat,
    new_learner,
    new_vectorizer,
    read_labelled,
    read_stop_words,
)
from ramify.cli.compare import read_system
from ramify.cli.console import RichProgress, answers, print_json, say
from ramify.cli.options import (
    SEVERAL_FILES,
    AsJson,
    Encoding,
    KeepUnlabelled,
    LabelColumn,
    LabelSeparator,
    Strict,
    TextColumn,
    Threads,
    refuse_output,
)
from ramify.cli.tables import JSON, PLAIN, TABBED, opened
from ramify.errors import InputError
from ramify.formatting import counted
from ramify.parallel import count_workers, reporting_to
from ramify.persistence import write_text_atomically
from ramify.reports.audit_page import render_audit_page
from ramify.reports.audit_tables import render_audit
from ramify.systems import find_system
from ramify.taxonomy import read_taxonomy
from ramify.workflows import Audit
from ramify.workflows import audit as audit_corpus
from ramify.workflows.auditing.audit import FEWEST, FOLDS, MOST, SIMILARITY
from ramify.workflows.auditing.findings import finding_rows

SYSTEM = "lr:C=10"  # knows best what cannot be, and is quickly learnt
ENDINGS = {"csv": PLAIN, "tsv": TABBED, "jsonl": JSON}


def audit(
    data: Annotated[Path, typer.Argument(help=f"Documents: CSV, TSV, JSON Lines, Parquet, or svmlight; {SEVERAL_FILES}")],
    text: TextColumn = None,
    label: LabelColumn = None,
    label_separator: LabelSeparator = None,
    taxonomy: TaxonomyFile = None,
    taxonomy_format: TaxonomyFormat = None,
    path_separator: PathSeparator = None,
    system: Annotated[
        str, typer.Option(help="Which system judges, with parameters if need be: svm, or lr:C=1; see 'ramify systems'.")
    ] = SYSTEM,
    most: Annotated[int, typer.Option(min=0, help="How many doubtful labels to tell.")] = MOST,
    show: Annotated[int, typer.Option(min=0, help="How many of everything to print; the page and the file have all.")] = 20,
    folds: Annotated[int, typer.Option(help="How many parts; each is judged by what learnt from the others.")] = FOLDS,
    seed: Annotated[int, typer.Option(min=0, help="Fixes the folds.")] = 0,
    similar: Annotated[float, typer.Option(help="Share of common words from which on texts are nearly the same.")] = SIMILARITY,
    fewest: Annotated[int, typer.Option(min=0, help="A class with fewer documents is told as tiny.")] = FEWEST,
    page: Annotated[Path | None, typer.Option(help="Write everything as an HTML page.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the doubtful labels: .csv or .tsv, or .jsonl for 'ramify reviews add'."),
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
    """Find labels that seem wrong: every document is judged by a classifier that has not seen it.

    Told are doubtful labels, with a better one and the words that speak for it, the most doubtful first; duplicates with
    different labels; siblings that cannot be told apart; and classes that are empty, tiny or never recognized.

    \b
    Examples:
      ramify audit tickets.csv
      ramify audit tickets.csv --page audit.html --out findings.csv
      ramify audit docs.jsonl --taxonomy taxonomy.tsv --system svm --most 500
      ramify audit tickets.csv --out findings.jsonl
      ramify reviews add ramify-reviews.db findings.jsonl --model out
    """
    kind = _kind_of(out)
    for output in (page, out):
        if output is not None:
            refuse_output(output, None, data, taxonomy)
    count_workers(threads)
    name, params = read_system(system)
    chosen = find_system(name)
    known = None if taxonomy is None else read_taxonomy(taxonomy, taxonomy_format)
    features = {"ngram_range": (1, ngrams), "stop_words": read_stop_words(stop_words), "stemmer": stem}
    vectorizer = new_vectorizer(chosen, min_df=min_df, max_features=max_features, **features)
    learner = new_learner(chosen, params, f"--system {system}:")
    classifier = TextClassifier(name, known, vectorizer=vectorizer, learner=learner, separator=path_separator, n_jobs=threads)
    reading: dict[str, Any] = {"text": text, "label": label, "label_separator": label_separator, "strict": strict}
    reading |= {"is_label": None if known is None else known.__contains__, "encoding": encoding}
    settings: dict[str, Any] = {"most": most, "folds": folds, "seed": seed, "similarity": similar, "fewest": fewest}
    with RichProgress() as progress, reporting_to(progress):
        found = audit_corpus(classifier, read_labelled(data, reading, keep_unlabelled), **settings)
    _write(found, data, page, out, kind)
    if as_json:
        print_json(found.as_dict())
    else:
        answers.print(render_audit(found, show))


def _kind_of(out: Path | None) -> str:
    suffix = "" if out is None else out.suffix.lower()
    kind = next((kind for kind, endings in ENDINGS.items() if suffix in ("", *endings)), None)
    if kind is None:
        raise InputError(f"cannot write a file that ends in {suffix!r}; give one that ends in .csv, .tsv or .jsonl.")
    return kind


def _write(found: Audit, data: Path, page: Path | None, out: Path | None, kind: str) -> None:
    if page is not None:
        write_text_atomically(page, render_audit_page(found, f"Labels of {data.name}"))
        say(f"Page written to {page}")
    if out is not None:
        with opened(out) as file:
            file.writelines(finding_rows(found.findings, kind))
        say(f"{counted(len(found.findings), 'doubtful label')} written to {out}")
