"""``ramify reviews``: the decisions of reviewers, for training and for reading."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ramify.cli.console import print_json, print_plain, say
from ramify.cli.options import AsJson, EscapeFormulas, Force, check_tasks_file, opened, refuse_outputs
from ramify.data.annotations import task_writer
from ramify.errors import InputError
from ramify.formatting import counted
from ramify.server.reviews import ReviewStore, export_rows, read_label_issues, summarize, training_rows, waiting_tasks

ReviewFile = Annotated[Path, Argument(help="File of reviews that 'ramify serve' keeps.")]
ModelName = Annotated[str | None, Option("--model", help="Only documents of this model.")]


def add(
    file: Annotated[Path, Argument(help="File of reviews, created if missing; 'ramify serve --reviews' uses it.")],
    issues: Annotated[Path, Argument(help="What 'ramify audit --out issues.jsonl' wrote.")],
    model: Annotated[str, Option("--model", help="Name of the served model whose labels reviewers choose from.")],
) -> None:
    """Add the label issues of an audit to the review queue, worst first.

    \b
    Examples:
      ramify audit tickets.csv --out issues.jsonl
      ramify reviews add ramify-reviews.db issues.jsonl --model out
      ramify serve out --reviews ramify-reviews.db
      ramify reviews export ramify-reviews.db --out reviews.csv
      ramify train tickets.csv --add reviews.csv --model out --force
    """
    from ramify.workflows.reading import readable

    with readable(issues) as found:
        documents = list(read_label_issues(found))
    if not documents:
        say(f"{issues} holds no label issues, so nothing was queued")
        return
    with closing(ReviewStore(file)) as store:
        queued, known = store.queue(model, documents, by="audit")
    say(f"{counted(len(queued) - known, 'document')} queued in {file}" + (f", {known:,} were there already" if known else ""))


def export(
    file: ReviewFile,
    out: Annotated[Path | None, Option("--out", "-o", help="File to write: .csv or .jsonl (default: standard output).")] = None,
    model: ModelName = None,
    escape_formulas: EscapeFormulas = False,
    force: Force = False,
) -> None:
    """Write reviewed documents as training rows.

    Accepted and corrected documents have their labels; rejected ones are left out. Leave out --escape-formulas for training,
    which needs the texts as they are.

    \b
    Examples:
      ramify reviews export ramify-reviews.db --out reviews.csv
      ramify train tickets.csv --add reviews.csv --model out --force
    """
    suffix = "" if out is None else out.suffix.lower()
    if suffix not in ("", ".csv", ".jsonl", ".ndjson"):
        raise InputError(f"cannot write a file that ends in {suffix!r}; give one that ends in .csv or .jsonl.")
    if escape_formulas and suffix not in ("", ".csv"):
        raise InputError("--escape-formulas is for CSV, but JSON Lines would be written; leave it out.")
    refuse_outputs(out, read=[file], force=force)
    with _opened(file) as store:
        _one_model(store, file, model)
        rows = list(training_rows(store.all("done", model)))
    with opened(out) as written:
        for line in export_rows(rows, "jsonl" if suffix in (".jsonl", ".ndjson") else "csv", escape_formulas):
            written.write(line)
    say(f"{counted(len(rows), 'document')} with labels" + (f" written to {out}" if out is not None else ""))


def tasks(
    file: ReviewFile,
    format: Annotated[str, Option("--format", help="Annotation tool: label-studio, argilla or doccano.")],
    out: Annotated[Path | None, Option("--out", "-o", help="File to write (default: standard output).")] = None,
    model: ModelName = None,
    force: Force = False,
) -> None:
    """Write documents that wait for review as tasks of an annotation tool.

    Each proposes the labels that the model predicted. The review queue stays as it is.

    \b
    Examples:
      ramify reviews tasks ramify-reviews.db --format label-studio --out tasks.json
      ramify train tickets.csv --add annotated.json --model out
    """
    check_tasks_file(format, out)
    refuse_outputs(out, read=[file], force=force)
    with _opened(file) as store:
        _one_model(store, file, model)
        waiting = waiting_tasks(store.all("open", model))
    with opened(out) as written, task_writer(written, format) as write:
        for task in waiting:
            write(task)
    say(f"{counted(len(waiting), 'task')} for {format}" + (f" written to {out}" if out is not None else ""))


def summary(file: ReviewFile, model: ModelName = None, as_json: AsJson = False) -> None:
    """Show how many documents wait, and how often reviewers agree.

    \b
    Example:
      ramify reviews summary ramify-reviews.db
    """
    with _opened(file) as store:
        made = summarize(store.all(model=model))
    if as_json:
        print_json({name: value for name, value in asdict(made).items() if name != "by_level"})
        return
    print_plain(f"{counted(made.open, 'document')} waiting, {counted(made.reviewed, 'document')} reviewed")
    print_plain(f"{made.accepted:,} accepted, {made.corrected:,} corrected, {made.rejected:,} rejected")
    if made.agreement is not None:
        print_plain(f"reviewers agree with the model on {made.agreement:.1%} of the documents they did not reject")
    between = made.between_reviewers
    if between.pairs:
        print_plain(f"two reviewers of the same document agree in {between.same:,} of {counted(between.pairs, 'case')}")
    for each in made.by_reviewer:
        print_plain(f"  {each.reviewer}: {counted(each.decisions, 'decision')}")


def _one_model(store: ReviewStore, file: Path, model: str | None) -> None:
    """Refuse reviews of several models, if none is named."""
    if model is None and len(models := store.models()) > 1:
        raise InputError(f"{file} holds reviews of {', '.join(models)}; name one of them with --model.")


def _opened(file: Path) -> closing[ReviewStore]:
    if not file.is_file():
        found = "is a directory" if file.is_dir() else "does not exist"
        raise InputError(f"{file} {found}; give the file that 'ramify serve --reviews' writes.")
    return closing(ReviewStore.reading(file))
