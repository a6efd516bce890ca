"""Options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli.console import notes
from ramify.datasets import Corpus
from ramify.errors import InputError

ModelDirectory = Annotated[Path, typer.Argument(help="Model directory that 'ramify train' wrote.")]
TextColumn = Annotated[
    str | None, typer.Option("--text", help="Column with the text; found from the table when not given.")
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label", help="Column with the labels, or level columns from the top: 'level1,level2'; found when not given."
    ),
]
LabelSeparator = Annotated[
    str | None, typer.Option("--label-separator", help="What stands between several labels of one cell, e.g. '|'.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse the file when a row is bad, instead of leaving the row out.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for machines.")]
Threads = Annotated[int, typer.Option("--threads", help="Threads to use; -1 for all cores.")]


def read_params(pairs: Sequence[str]) -> dict[str, Any]:
    """``alpha=0.1`` and the like, values as JSON or else as plain words."""
    params: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--param is {pair!r}; give a name and a value, such as alpha=0.1.")
        try:
            params[name.strip()] = json.loads(value)
        except ValueError:
            params[name.strip()] = value
    return params


def tell_about(corpus: Corpus, shown: int = 5) -> None:
    """Say what was found in a file, and name the rows that were left out."""
    unlabelled = sum(not labels for labels in corpus.labels)
    notes.print(f"{corpus.source}: {len(corpus):,} documents{_columns(corpus)}", markup=False)
    if unlabelled:
        notes.print(f"  {unlabelled:,} of them without a label", markup=False)
    if corpus.bad_rows:
        notes.print(f"  {len(corpus.bad_rows):,} rows left out:", markup=False)
        for bad in corpus.bad_rows[:shown]:
            notes.print(f"    {bad}", markup=False)
        if len(corpus.bad_rows) > shown:
            notes.print(f"    and {len(corpus.bad_rows) - shown:,} more", markup=False)


def _columns(corpus: Corpus) -> str:
    if corpus.has_vectors:
        return f", vectors of {corpus.documents.shape[1]:,} features"
    label = " > ".join(corpus.found["label"])
    split = f", several labels split at {corpus.found['label_separator']!r}" if corpus.found["label_separator"] else ""
    return f", text in {corpus.found['text']!r}, labels in {label!r}{split}"
