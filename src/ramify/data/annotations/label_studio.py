"""Label Studio: tasks as JSON. The labels of a document are what its Taxonomy tag or its Choices tag holds.

    {"data": {"text": "…"}, "annotations": [{"result": [{"from_name": "taxonomy", "value": {"taxonomy": [["Food", "Tea"]]}}]}]}

Annotations are answers; predictions, which are proposals of a model, and drafts are not. ``was_cancelled`` marks an annotation
that was skipped, ``ground_truth`` one that counts alone. The short form of an export, JSON-MIN, has one object per annotation:

    {"text": "…", "taxonomy": [["Food", "Tea"]], "annotation_id": 1, "annotator": 1}
"""

from __future__ import annotations

from typing import Any

from ramify.data.annotations.annotated import Annotated, Answer, Task, as_list, as_object, joined_path, label_list, rounded

ANSWERS = ("annotations", "completions")  # the second one in exports of old versions
CONTROL, OBJECT = "taxonomy", "text"  # names of the tags in the labelling configuration that Ramify writes


def is_export(row: dict[str, Any]) -> bool:
    """Whether an object is a task, or an annotation in the short form; one with single choices is a table as it is."""
    has_answers = len(row) == 1 or any(name in row for name in (*ANSWERS, "predictions"))
    is_short = _is_short(row) and bool(_parse_short(row).answers)
    return is_short or (isinstance(row.get("data"), dict) and has_answers)


def parse(row: dict[str, Any]) -> Annotated:
    """The data of a task as columns, and the answers."""
    if _is_short(row):
        return _parse_short(row)
    fields = as_object(row.get("data"), "'data'")
    name = next((name for name in ANSWERS if row.get(name) is not None), None)
    given = [] if name is None else [as_object(each, "an annotation") for each in as_list(row[name], f"{name!r}")]
    counted = [each for each in given if each.get("was_cancelled") is not True]
    truth = [each for each in counted if each.get("ground_truth") is True]
    answers: dict[str, list[Answer]] = {}
    for each in truth or counted:
        for question, answer in _labels_by_tag(each).items():
            answers.setdefault(question, []).append(answer)
    return Annotated(fields, answers, len(given) - len(counted))


def _is_short(row: dict[str, Any]) -> bool:
    return "annotation_id" in row and "annotator" in row and "data" not in row


def _parse_short(row: dict[str, Any]) -> Annotated:
    """An annotation in the short form; a single choice is a plain text there, and so a column as any other."""
    as_paths = {name: {"taxonomy": value} if _are_paths(value) else value for name, value in row.items()}
    given = {name: value for name, value in as_paths.items() if isinstance(value, dict) and _has_labels(value)}
    fields = {name: value for name, value in row.items() if name not in given}
    return Annotated(fields, {name: [_labels(value)] for name, value in given.items()})


def _are_paths(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], list)


def _has_labels(value: dict[str, Any]) -> bool:
    return "taxonomy" in value or "choices" in value


def _labels_by_tag(annotation: dict[str, Any]) -> dict[str, Answer]:
    """The labels that one annotator gave, by the name of the tag; other tags, such as those of spans, are ignored."""
    found: dict[str, Answer] = {}
    for part in as_list(annotation.get("result") or [], "'result'"):
        value = as_object(part, "an entry of 'result'").get("value")
        if isinstance(value, dict) and _has_labels(value):
            question = part.get("from_name")
            question = question if isinstance(question, str) else CONTROL
            found[question] = tuple(dict.fromkeys((*found.get(question, ()), *_labels(value))))
    return found


def _labels(value: dict[str, Any]) -> Answer:
    if "taxonomy" in value:
        return tuple(map(joined_path, as_list(value["taxonomy"], "'taxonomy'")))
    return label_list(value["choices"], "'choices'")


def render(task: Task) -> dict[str, Any]:
    """A task with the predicted labels as its prediction."""
    made: dict[str, Any] = {"data": {**task.fields, OBJECT: task.text}, "predictions": []}
    if task.labels:
        value = {"taxonomy": [list(path) for path in task.paths]}
        scores = [rounded(p) for _, p in task.labels]
        result = {"from_name": CONTROL, "to_name": OBJECT, "type": "taxonomy", "value": value, "score": min(scores)}
        made["predictions"].append({"model_version": "ramify", "score": task.score, "result": [result]})
    return made
