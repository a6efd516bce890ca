"""``ramify update``: retrain a model for a changed taxonomy, or train it on more documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from ramify import workflows
from ramify.cli import options
from ramify.cli.console import print_json, progress_shown, say


def update(
    model: options.ModelDirectory,
    data: Annotated[Path | None, Option(help="More labelled documents, in any form that 'ramify train' reads.")] = None,
    taxonomy: Annotated[Path | None, Option(help="The new taxonomy, in any format.")] = None,
    language: options.Language = None,
    reassignments: options.ReassignmentsFile = None,
    to: Annotated[
        Path | None, Option(help="Write the new model here (default: replace the old one, without a question).")
    ] = None,
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
    force: options.Force = False,
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
    from ramify.reports.tables import describe_partial_fit, describe_update
    from ramify.workflows.updating import UpdateOptions, update_model

    reading = workflows.ReadOptions(text, label, label_separator, strict, False, encoding, sheet, merge_spellings)
    options.ask_to_replace(to, force=force)
    with progress_shown():
        done = update_model(
            model, UpdateOptions(data, taxonomy, reassignments, rounds, select_rounds, reading, threads, language), to
        )
    target = model if to is None else to
    if as_json:
        print_json({"model": str(target), **done.to_dict()})
        return
    for line in describe_update(done) if isinstance(done, workflows.UpdateResult) else describe_partial_fit(done):
        say(line)
    say(f"Model saved in {target}.")
