"""Options that several commands share."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.classifier import make_rule
from ramify.cli.console import say
from ramify.data import Corpus
from ramify.decisions import DecisionRule
from ramify.errors import InputError
from ramify.formatting import counted
from ramify.parallel import Checkpoints, checkpointing, open_cluster, running_on
from ramify.persistence import refuse_unwritable

SEVERAL_FILES = "a directory or a quoted pattern of files; - for stdin."
ModelDirectory = Annotated[Path, typer.Argument(help="Model directory that 'ramify train' wrote.")]
TextColumn = Annotated[str | None, typer.Option("--text", help="Column with the text; found when not given.")]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label", help="Column with the labels, or level columns: 'level1,level2'; found when not given."),
]
LabelSeparator = Annotated[str | None, typer.Option(help="What stands between several labels of one cell, e.g. '|'.")]
Encoding = Annotated[str, typer.Option(help="Encoding of CSV and JSON files, such as cp1252.")]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse the file when a row is bad.")]
KeepUnlabelled = Annotated[
    bool, typer.Option("--keep-unlabelled", help="Take documents without a label as documents that have none.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Threads = Annotated[int, typer.Option("--threads", help="Threads to use; -1 for all cores.")]

Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Work on a Ray cluster: its address, 'auto' for the one here, 'local' to start one; needs ramify[ray].",
    ),
]
CheckpointDirectory = Annotated[
    Path | None,
    typer.Option("--checkpoints", help="Keep what is done so far in this directory, which all machines reach."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the checkpoints of a run that was interrupted.")]

RuleName = Annotated[
    str | None, typer.Option("--rule", help="Decide by this rule instead: best, top-down, isotonic, minimize-h-loss, …")
]
RuleParams = Annotated[list[str] | None, typer.Option("--rule-param", help="A setting of the rule, e.g. penalty=5.")]


@contextmanager
def working_on(cluster: str | None, directory: Path | None = None, resume: bool = False) -> Iterator[None]:
    """Let work of this block run on a cluster, and be kept; checkpoints of work that is done are removed."""
    if resume and directory is None:
        raise InputError("--resume goes on from checkpoints; say where they are with --checkpoints.")
    checkpoints = None if directory is None else Checkpoints(directory, resume)
    with checkpointing(checkpoints), ExitStack() as stack:
        if cluster is not None:
            stack.enter_context(running_on(stack.enter_context(open_cluster(cluster))))
        try:
            yield
        except KeyboardInterrupt:
            if checkpoints is not None and checkpoints.has_begun:
                say(f"What was done so far is in {directory}; the same command with --resume goes on from there.")
            raise
        if checkpoints is not None:
            checkpoints.forget()


Risk = Annotated[
    float | None,
    typer.Option(help="Go up to the deepest node that holds the truth but for this share of documents, such as 0.05."),
]
Nodes = Annotated[int, typer.Option(help="With --risk: up to 2, 3, 5 or 10 nodes, one of which holds the truth.")]
ByBranch = Annotated[bool, typer.Option("--by-branch", help="With --risk: promise it for every top-level branch, too.")]


def chosen_rule(name: str | None, pairs: Sequence[str] | None) -> DecisionRule | None:
    """The rule that --rule and --rule-param ask for, if they do."""
    if name is None:
        if pairs:
            raise InputError("--rule-param sets something of a rule; say which one with --rule.")
        return None
    return make_rule(name, read_params(pairs or [], "--rule-param"))


def read_params(pairs: Sequence[str], option: str = "--param") -> dict[str, Any]:
    """``alpha=0.1`` and the like, values as JSON or else as plain words."""
    params: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{option} is {pair!r}; give a name and a value, such as alpha=0.1.")
        try:
            params[name.strip()] = json.loads(value)
        except ValueError:
            params[name.strip()] = value
    return params


@contextmanager
def readable(path: Path) -> Iterator[Path]:
    """A file that can be read more than once: standard input (-) and pipes are copied to one first."""
    if str(path) != "-" and (path.is_file() or path.is_dir() or not path.exists()):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "input"
        with open(copy, "wb") as file:
            if str(path) == "-":
                shutil.copyfileobj(sys.stdin.buffer, file)
            else:
                with open(path, "rb") as pipe:
                    shutil.copyfileobj(pipe, file)
        yield copy


def refuse_output(output: Path, model: Path | None, *inputs: Path | None) -> None:
    """Refuse to write where nothing can be written, over what is read, or into a model directory."""
    refuse_unwritable(output)
    if model is not None and output.resolve().parent == model.resolve():
        raise InputError(f"{output} lies in the model directory; choose another place for it.")
    for given in inputs:
        if given is not None and output.exists() and given.exists() and output.samefile(given):
            raise InputError(f"{output} is read by this command and would be overwritten; choose another output file.")


def labelled(corpus: Corpus, keep: bool) -> Corpus:
    """A corpus without the documents that have no label, unless they are to be kept; says what it left out."""
    tell_about(corpus)
    missing = sum(not labels for labels in corpus.labels)
    if missing:
        done = "kept as documents that have none" if keep else "left out; --keep-unlabelled keeps them"
        say(f"  {counted(missing, 'document')} without a label, {done}")
    return corpus if keep else corpus.labelled()


def tell_about(corpus: Corpus, shown: int = 5) -> None:
    """Say what was found in a file, and name the rows that were left out."""
    files = "" if corpus.locations is None else f" in {counted(len(set(corpus.locations.files)), 'file')}"
    say(f"{corpus.source}: {counted(len(corpus), 'document')}{files}{_columns(corpus)}")
    if corpus.bad_rows:
        say(f"  {counted(len(corpus.bad_rows), 'row')} left out:")
        for bad in corpus.bad_rows[:shown]:
            say(f"    {bad}")
        if len(corpus.bad_rows) > shown:
            say(f"    and {len(corpus.bad_rows) - shown:,} more")


def _columns(corpus: Corpus) -> str:
    if corpus.has_vectors:
        return f", vectors with features up to {corpus.documents.shape[1] - 1:,}"
    label, separator = " > ".join(corpus.found["label"]), corpus.found["label_separator"]
    split = f", several labels split at {separator!r}" if separator else ""
    return f", text in {corpus.found['text']!r}, labels in {label!r}{split}"
