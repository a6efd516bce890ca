"""Exports of annotation tools as tables: which tool wrote a file of JSON objects is found from the first one.

A document is a row with its fields as columns. The answers to the only question are the column ``label``; of several questions,
each is a column of its name. A field that could be taken for labels gets a prefix, such as ``data.category``: it is what
annotators saw, not what they answered.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from ramify.data.annotations import argilla, doccano, label_studio
from ramify.data.annotations.annotated import Annotated, ExportError, majority
from ramify.data.corpus import BadRow
from ramify.data.csv_tables import Row, Rows
from ramify.data.headers import LABEL_NAMES, LEVEL_NAME
from ramify.data.json_tables import json_objects
from ramify.errors import DataError
from ramify.formatting import counted

FIRST = 100  # objects of which the first readable one tells the tool
MOST_QUESTIONS = 100
LABEL = "label"


class Tool(Protocol):
    """A module that reads the objects of one tool."""

    def is_export(self, row: dict[str, Any]) -> bool: ...  # noqa: D102

    def parse(self, row: dict[str, Any]) -> Annotated: ...  # noqa: D102


TOOLS: dict[str, tuple[Tool, str]] = {  # with the name of what holds the fields
    "Label Studio": (label_studio, "data"),
    "Argilla": (argilla, "fields"),
    "doccano": (doccano, "data"),
}


@dataclass(frozen=True, slots=True)
class Export:
    """What is known of a file of exported documents.

    questions: those that were answered, in the order in which they occur. n_disputed: documents on which annotators disagree.
    n_skipped: answers of annotators who skipped or cancelled.
    """

    tool: str
    questions: tuple[str, ...] = ()
    n_disputed: int = 0
    n_skipped: int = 0

    def parse(self, row: Row) -> Annotated:
        """What an object holds."""
        module, prefix = TOOLS[self.tool]
        if not module.is_export(row) and self.tool != "doccano":
            raise ExportError(f"not a document of {self.tool}, as the first one is: it needs {prefix!r} and answers")
        return module.parse(row)

    def read(self, row: Row) -> Row:
        """An object as a plain row."""
        found = self.parse(row)
        made = {self._field(name): value for name, value in found.fields.items()}
        if len(self.questions) < 2:  # a list is never split at commas, as a text may be
            return made | {LABEL: majority(next(iter(found.answers.values()), ()))}
        answers = {question: majority(found.answers.get(question, ())) for question in self.questions}
        return made | {name: labels[0] if len(labels) == 1 else labels for name, labels in answers.items()}

    def _field(self, name: str) -> str:
        plain = name.strip().lower()
        could_be_labels = plain in LABEL_NAMES or plain.startswith("sub") or LEVEL_NAME.fullmatch(plain) is not None
        return f"{TOOLS[self.tool][1]}.{name}" if could_be_labels or name in self.questions else name


def find_export(path: Path, encoding: str) -> Export | None:
    """The tool that wrote a file of JSON objects, and its questions; None for a plain table."""
    first = next((row for _, row in islice(json_objects(path, encoding), FIRST) if isinstance(row, dict)), None)
    tool = None if first is None else next((name for name, (each, _) in TOOLS.items() if each.is_export(first)), None)
    if tool is None:
        return None
    state = os.stat(path)
    return _inspect(path, encoding, tool, (state.st_ino, state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=64)
def _inspect(path: Path, encoding: str, tool: str, state: tuple[int, ...]) -> Export:
    """Read a whole export once. state: of the file, which tells whether it is still the same."""
    export, questions = Export(tool), dict[str, None]()
    n_good = n_disputed = n_skipped = 0
    problem = ""
    for number, row in json_objects(path, encoding):
        try:
            if isinstance(row, dict):
                found = export.parse(row)
                questions |= dict.fromkeys(found.answers)
                n_disputed, n_skipped, n_good = n_disputed + found.is_disputed, n_skipped + found.n_skipped, n_good + 1
        except ExportError as error:
            problem = problem or f"line {number}: {error}"
        if len(questions) > MOST_QUESTIONS:
            many = f"{path} is an export of {tool} with more than {MOST_QUESTIONS} questions"
            raise DataError(f"{many}; export the answers to one of them.")
    if problem and not n_good:
        raise DataError(f"no document of {path}, an export of {tool}, can be read; the first problem is in {problem}.")
    return Export(tool, tuple(questions), n_disputed, n_skipped)


def read_objects(path: Path, encoding: str) -> Rows:
    """The objects of a JSON file as rows; those of an annotation tool with the labels that people gave."""
    export = find_export(path, encoding)
    for number, row in json_objects(path, encoding):
        if export is None or isinstance(row, BadRow):
            yield number, row
            continue
        try:
            yield number, export.read(row)
        except ExportError as error:
            yield number, BadRow(str(path), number, str(error))


def annotation_remarks(files: Iterable[tuple[Path, str]]) -> list[str]:
    """What to say of exports among JSON files with their encodings: the tool, answers that differ, and skipped ones."""
    exports = [found for path, encoding in files if (found := find_export(path, encoding)) is not None]
    tools = list(dict.fromkeys(export.tool for export in exports))
    return _remarks(tools, sum(each.n_disputed for each in exports), sum(each.n_skipped for each in exports))


def _remarks(tools: Sequence[str], n_disputed: int, n_skipped: int) -> list[str]:
    said = [f"read as an export of {' and '.join(tools)}"] if tools else []
    if n_disputed:
        how = "the answer that most gave counts, of equally frequent ones the last"
        said.append(f"annotators disagree on {counted(n_disputed, 'document')}; {how}")
    if n_skipped:
        said.append(f"{counted(n_skipped, 'skipped or cancelled answer')} left out")
    return said
