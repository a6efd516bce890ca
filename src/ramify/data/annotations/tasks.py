"""Write documents as tasks of an annotation tool, with predicted labels as proposals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from ramify.data.annotations import argilla, doccano, label_studio
from ramify.data.annotations.annotated import Task
from ramify.errors import InputError, suggest


class TaskFormat(NamedTuple):
    """How tasks of a tool are written. suffix: of their file; .json is one list, .jsonl one object per line."""

    render: Callable[[Task], dict[str, Any]]
    suffix: str


TASK_FORMATS = {
    "label-studio": TaskFormat(label_studio.render, ".json"),
    "argilla": TaskFormat(argilla.render, ".json"),
    "doccano": TaskFormat(doccano.render, ".jsonl"),
}


def find_task_format(name: str) -> TaskFormat:
    """The format of this name."""
    if name not in TASK_FORMATS:
        known = f"the formats of annotation tasks are {', '.join(TASK_FORMATS)}"
        raise InputError(f"--format {name!r} is unknown; {known}.{suggest(name, TASK_FORMATS)}")
    return TASK_FORMATS[name]


@contextmanager
def task_writer(file: IO[str], name: str) -> Iterator[Callable[[Task], None]]:
    """A function that writes a task of a tool to a file."""
    render, suffix = find_task_format(name)
    is_list, is_first = suffix == ".json", True

    def write(task: Task) -> None:
        nonlocal is_first
        line = json.dumps(render(task), ensure_ascii=False, default=str)
        file.write(("[\n" if is_first else ",\n") + line if is_list else f"{line}\n")
        is_first = False

    yield write
    if is_list:
        file.write("[]\n" if is_first else "\n]\n")
