"""``ramify update``: retrain a model for a changed taxonomy, or train it on more documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ramify import workflows
from ramify.cli import options
from ramify.cli.console import print_json, progress_shown, say
from ramify.formatting import counted

if TYPE_CHECKING:
    from ramify.workflows.updating import PartialFitResult

SHOWN = 10  # names of nodes that are listed


def update(
    model: options.ModelDirectory,
    data: Annotated[Path | None, Option(help="More labelled documents, in any form that 'ramify train' reads.")] = None,
    taxonomy: Annotated[Path | None, Option(help="The new taxonomy, in any format.")] = None,
    language: options.Language = None,
    reassignments: options.ReassignmentsFile = None,
    to: Annotated[Path | None, Option(help="Write the new model here (default: replace the old one).")] = None,
    rounds: Annotated[
        int | None, Option(min=1, help="Boosting: add this many rounds (default: as many as in training).")
    ] = None,
    select_rounds: Annotated[
        bool, Option("--select-rounds", help="Boosting: train nothing, keep the number of rounds that is best on --data.")
    ] = False,
    text: options.TextColumn = None,
    label: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    strict: options.Strict = False,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    merge_spellings: options.MergeSpellings = False,
    trust: options.Trust = None,
    threads: options.Threads = -1,
    as_json: options.AsJson = False,
) -> None:
    """Update a model: a changed taxonomy, or more documents.

    A changed taxonomy: the training data kept with the model ('ramify train --keep-training-data') is relabelled, and what the
    change affects is trained again, with a warm start; renaming nodes trains nothing. 'ramify taxonomy diff' lists
    retired nodes whose documents need a new node. A model without training data needs all documents in --data.

    More documents: nb, shrinkage-nb and pachinko-nb add their counts, also of new classes; if the taxonomy was read from label
    paths, new paths extend it. adaboost-mh and treeboost-mh add rounds with the same classes; on the same training documents
    this equals one longer training. Other systems need the training data kept with the model.

    \b
    Examples:
      ramify update out --taxonomy newer.tsv
      ramify update out --taxonomy newer.tsv --reassignments reassignments.tsv --data more.csv --to newer
      ramify update out --data more.csv
      ramify update out --data more.csv --taxonomy larger.tsv --to newer
      ramify update boosted --data tickets.csv --rounds 500
      ramify update boosted --data validation.csv --select-rounds
    """
    from ramify.workflows.updating import UpdateOptions, update_model

    reading = workflows.ReadOptions(text, label, label_separator, strict, False, encoding, sheet, merge_spellings)
    with progress_shown():
        done = update_model(
            model, UpdateOptions(data, taxonomy, reassignments, rounds, select_rounds, reading, threads, language), to
        )
    target = model if to is None else to
    if as_json:
        print_json({"model": str(target), **done.as_dict()})
        return
    if isinstance(done, workflows.UpdateResult):
        _print_update(done)
    else:
        _print_partial_fit(done)
    say(f"Model saved in {target}.")


def _print_update(done: workflows.UpdateResult) -> None:
    """Print what changed, what became of the documents, and what was trained."""
    counts: dict[str, Any] = done.changes.counts
    say(f"Taxonomy: {', '.join(f'{number:,} {kind}' for kind, number in counts.items() if number) or 'unchanged'}.")
    if done.relabelled:
        say(f"  {counted(done.relabelled, 'document')} of moved, merged, split or retired nodes relabelled")
    if done.at_split:
        say(f"  {counted(done.at_split, 'document')} of split nodes stay at the parent until --data relabels their texts")
    if done.left_out:
        say(f"  {counted(done.left_out, 'document')} without a label in the new taxonomy, left out")
    if done.added:
        replaced = f", {done.replaced:,} of them with new labels for a known text" if done.replaced else ""
        say(f"  {counted(done.added, 'document')} added{replaced}")
    if not done.is_trained:
        say("Nothing was trained: all classifiers are unchanged.")
    elif done.reused is not None:
        reused, total = done.reused
        say(f"{counted(total - reused, 'classifier')} trained, {reused:,} reused.")
    else:
        how = "Trained with a warm start" if done.warm_started else "Trained from scratch"
        say(f"{how}, on {counted(done.documents, 'document')}.")
    for name in done.started_from_parent[:SHOWN]:
        say(f"  {name} has no documents, and starts with its parent's classifier")


def _print_partial_fit(done: PartialFitResult) -> None:
    if done.micro_f1 is not None:
        for rounds, quality in done.micro_f1.items():
            say(f"  {rounds:6,} rounds: micro F1 {quality:.3f}")
        say(f"Kept {counted(done.rounds or 0, 'round')}, the best on these {counted(done.documents, 'document')}.")
        return
    words, classes = counted(done.new_words, "new word"), counted(len(done.new_classes), "new class")
    say(f"Trained on {counted(done.documents, 'more document')}: {words}, {classes}.")
    for name in done.new_classes[:SHOWN]:
        say(f"  {name}")
    if done.rounds is not None:
        say(f"The model has up to {counted(done.rounds, 'round')} now.")
