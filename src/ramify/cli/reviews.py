"""``ramify reviews``: what people decided, for training and for reading."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ramify.cli.console import answers, print_json, say
from ramify.cli.options import AsJson
from ramify.cli.tables import opened
from ramify.errors import InputError
from ramify.formatting import counted
from ramify.persistence import refuse_unwritable
from ramify.server.reviews import ReviewStore, Summary, export_rows, read_label_issues, summarize, training_rows

ReviewFile = Annotated[Path, typer.Argument(help="File of reviews that 'ramify serve' keeps.")]
ModelName = Annotated[str | None, typer.Option("--model", help="Only documents of this model.")]


def take_in(
    file: Annotated[Path, typer.Argument(help="File of reviews, made where there is none; 'ramify serve --reviews' uses it.")],
    findings: Annotated[Path, typer.Argument(help="What 'ramify audit --out findings.jsonl' wrote.")],
    model: Annotated[str, typer.Option("--model", help="Name of the served model whose labels people choose from.")],
) -> None:
    """Put doubtful labels of an audit into the review queue: with the better label to accept, the most doubtful first.

    \b
    Examples:
      ramify audit tickets.csv --out findings.jsonl
      ramify reviews add ramify-reviews.db findings.jsonl --model out
      ramify serve out --reviews ramify-reviews.db
      ramify reviews export ramify-reviews.db --out reviews.csv
      ramify train tickets.csv --add reviews.csv --model out
    """
    documents = list(read_label_issues(findings))
    if not documents:
        say(f"{findings} holds no doubtful labels, so nothing was queued")
        return
    store = ReviewStore(file)
    queued, known = store.queue(model, documents, by="audit")
    store.close()
    say(f"{counted(len(queued) - known, 'document')} queued in {file}" + (f", {known:,} were there already" if known else ""))


def export(
    file: ReviewFile,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write: .csv or .jsonl; else standard output.")
    ] = None,
    model: ModelName = None,
) -> None:
    """Write decided documents as training rows: accepted and corrected ones with their labels; rejected ones are left out.

    \b
    Examples:
      ramify reviews export ramify-reviews.db --out reviews.csv
      ramify train tickets.csv --add reviews.csv --model out
    """
    suffix = "" if out is None else out.suffix.lower()
    if suffix not in ("", ".csv", ".jsonl", ".ndjson"):
        raise InputError(f"cannot write a file that ends in {suffix!r}; give one that ends in .csv or .jsonl.")
    if out is not None:
        refuse_unwritable(out)
    store = _open(file)
    if model is None and len(models := store.models()) > 1:
        raise InputError(f"{file} holds reviews of {', '.join(models)}; name one of them with --model.")
    rows = list(training_rows(store.all("done", model)))
    with opened(out) as written:
        for line in export_rows(rows, "jsonl" if suffix in (".jsonl", ".ndjson") else "csv"):
            written.write(line)
    say(f"{counted(len(rows), 'document')} with labels" + (f" written to {out}" if out is not None else ""))


def summary(file: ReviewFile, model: ModelName = None, as_json: AsJson = False) -> None:
    """Tell how many documents wait, and how often people agree with the model and with each other.

    \b
    Example:
      ramify reviews summary ramify-reviews.db
    """
    made = summarize(_open(file).all(model=model))
    if as_json:
        print_json({name: value for name, value in asdict(made).items() if name != "by_level"})
    else:
        _tell(made)


def _open(file: Path) -> ReviewStore:
    if not file.is_file():
        found = "is a directory" if file.is_dir() else "does not exist"
        raise InputError(f"{file} {found}; give the file that 'ramify serve --reviews' writes.")
    return ReviewStore.reading(file)


def _tell(made: Summary) -> None:
    lines = [f"{counted(made.open, 'document')} waiting, {counted(made.reviewed, 'document')} reviewed"]
    lines.append(f"{made.accepted:,} accepted, {made.corrected:,} corrected, {made.rejected:,} rejected")
    if made.agreement is not None:
        lines.append(f"people agree with the model on {made.agreement:.1%} of what they did not reject")
    pairs, same = made.between_reviewers["pairs"], made.between_reviewers["same"]
    if pairs:
        lines.append(f"two people on the same document agree in {same:,} of {counted(pairs, 'case')}")
    lines += [f"  {row['reviewer']}: {counted(row['decisions'], 'decision')}" for row in made.by_reviewer]
    for line in lines:
        answers.print(line, markup=False, soft_wrap=True)
