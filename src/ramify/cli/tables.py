"""Answers as rows of a table: CSV, TSV or JSON Lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ramify.cli.console import say
from ramify.errors import DataError, InputError
from ramify.formatting import counted
from ramify.parallel import stage
from ramify.persistence import atomic_writer
from ramify.workflows import Prediction
from ramify.workflows.predict_stream import WRITERS, Tally, Writer, write_all

JSON, TABBED, PLAIN = (".jsonl", ".ndjson"), (".tsv", ".tab"), (".csv", ".txt")
TABLES = (*JSON, *TABBED, *PLAIN)


def choose_writer(out: Path | None, as_json: bool) -> Writer:
    """By --json, or by the ending of the output file."""
    suffix = "" if out is None else out.suffix.lower()
    if as_json or suffix in JSON:
        return WRITERS[".jsonl"]
    if suffix in TABBED:
        return WRITERS[".tsv"]
    if suffix in ("", *PLAIN):
        return WRITERS[".csv"]
    raise InputError(f"cannot write a file that ends in {suffix!r}; give one that ends in .csv, .tsv or .jsonl.")


def write_answers(
    rows: Iterator[Prediction], columns: list[str], data: Path, out: Path | None, writer: Writer, top: int, strict: bool
) -> None:
    """Write an answer for every row, tell of those that could not be read, and refuse where none could."""
    with opened(out) as file, stage(f"classifying {data.name}") as step:
        tally = write_all(rows, writer(file, columns, top), str(data), strict, step)
        if tally.problems and tally.problems == tally.documents:
            raise DataError(f"not one of {counted(tally.documents, 'row')} could be classified; the first: {tally.first}.")
    tell_problems(tally)
    if out is not None:
        say(f"Written to {out}")


def tell_problems(tally: Tally) -> None:
    """Say how many rows could not be classified, if any."""
    if tally.problems:
        what = f"{counted(tally.problems, 'row')} could not be classified; the column 'problem' says why"
        say(f"{what}. The first: {tally.first}.")


@contextmanager
def opened(out: Path | None) -> Iterator[IO[str]]:
    """A file that appears when it is whole, or standard output."""
    if out is None:
        yield sys.stdout
        sys.stdout.flush()
    else:
        with atomic_writer(out) as file:
            yield file
