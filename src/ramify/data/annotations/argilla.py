"""Argilla: records as JSON, as ``dataset.records.to_json`` writes them and ``from_json`` reads them.

    {"fields": {"text": "…"}, "suggestions": {"label": {"value": "tv"}}, "responses": {"label": [{"value": "tv"}]}}

Responses are answers; suggestions, which are proposals of a model, are not. Records of version 1, which list the answers by
annotator with their status, are read too.
"""

from __future__ import annotations

from typing import Any

from ramify.data.annotations.annotated import Annotated, Answer, Task, as_list, as_object, label_list, rounded

QUESTION = "label"  # name of the question in the tasks that Ramify writes
LEFT_OUT = ("discarded", "draft")  # states of responses


def is_export(row: dict[str, Any]) -> bool:
    """Whether an object is a record."""
    return isinstance(row.get("fields"), dict) and any(name in row for name in ("responses", "suggestions"))


def parse(row: dict[str, Any]) -> Annotated:
    """The fields of a record as columns, and the answers."""
    fields = as_object(row.get("fields"), "'fields'")
    responses = row.get("responses") or {}
    if isinstance(responses, list):
        return _parse_version_1(fields, responses)
    answers: dict[str, list[Answer]] = {}
    n_skipped = 0
    for question, given in as_object(responses, "'responses'").items():
        listed = [given] if isinstance(given, dict) else as_list(given, f"the response to {question[:40]!r}")
        for each in listed:
            if as_object(each, f"a response to {question[:40]!r}").get("status") in LEFT_OUT:
                n_skipped += 1
            else:
                _add(answers, question, each.get("value"))
    return Annotated(fields, answers, n_skipped)


def _parse_version_1(fields: dict[str, Any], responses: list[Any]) -> Annotated:
    answers: dict[str, list[Answer]] = {}
    n_skipped = 0
    for response in responses:
        if as_object(response, "a response").get("status") in LEFT_OUT:
            n_skipped += 1
            continue
        for question, given in as_object(response.get("values") or {}, "'values'").items():
            _add(answers, question, as_object(given, f"the response to {question[:40]!r}").get("value"))
    return Annotated(fields, answers, n_skipped)


def _add(answers: dict[str, list[Answer]], question: str, value: Any) -> None:
    """Note an answer that is a label or a list of labels; ratings, rankings and spans are ignored."""
    is_of_spans = isinstance(value, list) and any(isinstance(each, dict) for each in value)
    if value is not None and not isinstance(value, (int, float, dict)) and not is_of_spans:
        answers.setdefault(question, []).append(label_list(value, f"the response to {question[:40]!r}"))


def render(task: Task) -> dict[str, Any]:
    """A record with the predicted labels as its suggestion: a list where documents may have several."""
    labels, scores = [label for label, _ in task.labels], [rounded(p) for _, p in task.labels]
    made: dict[str, Any] = {"id": task.id, "fields": {"text": task.text}, "suggestions": {}, "responses": {}}
    if labels:
        value, score = (labels, scores) if task.is_multi_label else (labels[0], scores[0])
        made["suggestions"][QUESTION] = {"value": value, "score": score, "agent": "ramify"}
    return made
