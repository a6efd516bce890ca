"""What annotation tools have in common: an object of an export with the answers that people gave, and a document to annotate.

Each annotator's answer to a question is a set of labels. The answer that most annotators gave counts, of equally frequent ones
the last; an answer that is marked as the ground truth counts alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ramify.arguments import describe
from ramify.taxonomy import ARROW

Answer = tuple[str, ...]


class ExportError(ValueError):
    """An object that does not have the form of the export; the message says why."""


@dataclass(frozen=True, slots=True)
class Annotated:
    """One document of an export.

    fields: its columns. answers: those of all annotators to each question, in their order. n_skipped: answers of annotators who
    skipped or cancelled, which are left out.
    """

    fields: Mapping[str, Any]
    answers: Mapping[str, Sequence[Answer]] = field(default_factory=dict)
    n_skipped: int = 0

    @property
    def is_disputed(self) -> bool:
        """Whether annotators gave different answers to a question."""
        return any(len(set(map(frozenset, given))) > 1 for given in self.answers.values())


@dataclass(frozen=True, slots=True)
class Task:
    """A document to annotate. id: tells it from others. fields: its other cells. labels: predicted ones, with probabilities.
    paths: the same from the top node down. is_multi_label: whether a document may have several.
    """

    id: str
    text: str
    fields: Mapping[str, Any]
    labels: Sequence[tuple[str, float]]
    paths: Sequence[Sequence[str]]
    is_multi_label: bool

    @property
    def score(self) -> float:
        """The probability of the least likely label."""
        return min((rounded(p) for _, p in self.labels), default=0.0)


def majority(answers: Sequence[Answer]) -> list[str]:
    """The answer that most annotators gave; of equally frequent ones the last.

    >>> majority([("tv",), ("radio",), ("tv",)]), majority([("tv",), ("radio",)]), majority([])
    (['tv'], ['radio'], [])
    """
    if not answers:
        return []
    counts = Counter(map(frozenset, answers))
    most = max(counts.values())
    return list(dict.fromkeys(next(answer for answer in reversed(answers) if counts[frozenset(answer)] == most)))


def joined_path(parts: Any) -> str:
    """A path, given as a list of its parts, as one label.

    >>> joined_path(["Food", "Fruit"])
    'Food > Fruit'
    """
    listed = as_list(parts, "a path of labels")
    for part in listed:
        if not isinstance(part, str) or not part.strip():
            raise ExportError(f"a part of a path is {shown(part)}, not a name")
        if len(listed) > 1 and ARROW in f" {part} ":
            raise ExportError(f"the part {part[:40]!r} of a path holds {ARROW!r}, which separates parts")
    return ARROW.join(part.strip() for part in listed)


def label_list(value: Any, what: str) -> Answer:
    """One label, or a list of labels, each once."""
    listed = [value] if isinstance(value, str) else as_list(value, what)
    for label in listed:
        if not isinstance(label, str):
            raise ExportError(f"{what} holds {shown(label)}, not only strings")
    return tuple(dict.fromkeys(label.strip() for label in listed if label.strip()))


def as_list(value: Any, what: str) -> list[Any]:
    """The value, if it is a list."""
    if not isinstance(value, list):
        raise ExportError(f"{what} is {shown(value)}, not a list")
    return value


def as_object(value: Any, what: str) -> dict[str, Any]:
    """The value, if it is an object."""
    if not isinstance(value, dict):
        raise ExportError(f"{what} is {shown(value)}, not an object")
    return value


def shown(value: Any) -> str:
    """A value in a message; what is nested is not written out."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    return "null" if value is None else describe(value)


def rounded(probability: float) -> float:
    """A probability as it is written to a task."""
    return round(float(probability), 6)
