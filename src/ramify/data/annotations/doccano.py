"""doccano: JSON Lines, ``{"text": "…", "label": ["tea"]}``. It does not tell proposals of a model from answers of people.

That is a table as any other. Read here are files for spaCy, where ``cats`` is a list of labels or an object with a number for
each; a table that has a column of labels beside it is about cats.
"""

from __future__ import annotations

from typing import Any

from ramify.data.annotations.annotated import Annotated, Answer, ExportError, Task, label_list, rounded, shown
from ramify.data.headers import LABEL_NAMES

CATEGORIES = "cats"
LIKELY = 0.5  # number of a label from which a document has it


def is_export(row: dict[str, Any]) -> bool:
    """Whether an object is a document for spaCy."""
    return isinstance(row.get(CATEGORIES), (dict, list)) and not any(name.strip().lower() in LABEL_NAMES for name in row)


def parse(row: dict[str, Any]) -> Annotated:
    """The other values as columns, and the labels."""
    fields = {name: value for name, value in row.items() if name != CATEGORIES}
    found = () if row.get(CATEGORIES) is None else _labels(row[CATEGORIES])
    return Annotated(fields, {"label": [found]} if found else {})


def _labels(value: Any) -> Answer:
    if not isinstance(value, dict):
        return label_list(value, f"{CATEGORIES!r}")
    for label, number in value.items():
        if not isinstance(number, (int, float)):
            raise ExportError(f"the number of {label[:40]!r} in {CATEGORIES!r} is {shown(number)}, not a number")
    return tuple(label for label, number in value.items() if number >= LIKELY)


def render(task: Task) -> dict[str, Any]:
    """A document with the predicted labels; other values are kept as its metadata."""
    scores = [rounded(p) for _, p in task.labels]
    return {**task.fields, "id": task.id, "text": task.text, "label": [label for label, _ in task.labels], "score": scores}
