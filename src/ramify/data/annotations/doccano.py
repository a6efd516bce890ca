"""doccano: JSON Lines, ``{"text": "…", "label": ["tv"]}``. It does not tell proposals of a model from answers of people.

``label`` and ``labels`` are columns as in any other table. What differs is read here: the text is ``data`` in files of some
versions, and files for spaCy have ``cats``, a list of labels or an object with a number for each.
"""

from __future__ import annotations

from typing import Any

from ramify.data.annotations.annotated import Annotated, Answer, ExportError, Task, as_object, label_list, rounded, shown

LIKELY = 0.5  # number of a label in "cats" from which a document has it
NAMES = ("cats", "label", "labels")


def is_export(row: dict[str, Any]) -> bool:
    """Whether an object is a document of doccano, other than a plain row."""
    has_list = any(isinstance(row.get(name), list) for name in NAMES)
    return isinstance(row.get("cats"), (dict, list)) or (isinstance(row.get("data"), str) and has_list)


def parse(row: dict[str, Any]) -> Annotated:
    """The text and other values as columns, and the labels."""
    name = next((name for name in NAMES if row.get(name) is not None), None)
    fields = {("text" if key == "data" and "text" not in row else key): value for key, value in row.items() if key != name}
    answer = () if name is None else _labels(row[name], name)
    return Annotated(fields, {"label": [answer]} if answer else {})


def _labels(value: Any, name: str) -> Answer:
    if not isinstance(value, dict):
        return label_list(value, f"{name!r}")
    for label, number in as_object(value, f"{name!r}").items():
        if not isinstance(number, (int, float)):
            raise ExportError(f"the number of {label[:40]!r} in {name!r} is {shown(number)}, not a number")
    return tuple(label for label, number in value.items() if number >= LIKELY)


def render(task: Task) -> dict[str, Any]:
    """A document with the predicted labels; other values are kept as its metadata."""
    scores = [rounded(p) for _, p in task.labels]
    return {**task.fields, "id": task.id, "text": task.text, "label": [label for label, _ in task.labels], "score": scores}
