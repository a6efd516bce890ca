"""The format in which a user gives labels; predictions have the same format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ramify.arguments import describe, entries
from ramify.errors import LabelError, ModelError
from ramify.taxonomy.bounds import LONGEST_SEPARATOR
from ramify.taxonomy.edges import labels_of
from ramify.taxonomy.formats.text import find_separator
from ramify.taxonomy.hierarchy import Taxonomy

STYLES = ("name", "title", "path")


@dataclass(frozen=True, slots=True)
class LabelFormat:
    """The format of labels.

    multi_label: a list of labels per document, rather than one label.
    style: a node's "name", its "title", or its "path" of titles joined by `separator`.
    integers: labels are integers.
    """

    multi_label: bool
    style: str = "name"
    separator: str = " > "
    integers: bool = False

    def write(self, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Labels of nodes in this format."""
        if self.style == "name":
            return [taxonomy.names[node] for node in nodes]
        if self.style == "title":
            return [taxonomy.titles[node] for node in nodes]
        return [self.separator.join(taxonomy.path_of(node)) for node in nodes]

    def to_output(self, rows: list[list[str]]) -> Any:
        """Predictions in this format: lists of labels, or an array with one label per document ('' if there is none)."""
        if self.integers:
            numbers = [[int(label) for label in row] for row in rows]
            return numbers if self.multi_label else np.asarray([row[0] if row else -1 for row in numbers])
        return rows if self.multi_label else np.asarray([row[0] if row else "" for row in rows], dtype=str)

    def state(self) -> dict[str, Any]:
        """Plain values from which :meth:`from_state` makes an equal format."""
        return asdict(self)

    @classmethod
    def from_state(cls, values: dict[str, Any], taxonomy: Taxonomy) -> LabelFormat:
        """Make a format from its state, after checking it against the taxonomy."""
        form = cls(**values)
        flags = isinstance(form.multi_label, bool) and isinstance(form.integers, bool)
        is_separator = isinstance(form.separator, str) and 0 < len(form.separator) <= LONGEST_SEPARATOR
        if not flags or form.style not in STYLES or not is_separator:
            raise ModelError("the label format is invalid; train the model again.")
        if form.integers and not _are_integers(taxonomy.names):
            raise ModelError("the label format says integers, but the labels are not; train the model again.")
        return form


def normalize_labels(labels: Iterable[Any]) -> tuple[list[list[str]], bool, bool]:
    """Labels as a list of strings per document; whether they were lists; and whether they were integers."""
    given = list(entries(labels, "labels, one entry per document,", LabelError))
    multi_label = any(isinstance(entry, (list, tuple, set, frozenset, np.ndarray)) for entry in given)
    raw = [labels_of(entry) for entry in given]
    integers = bool(raw) and all(isinstance(label, (int, np.integer)) for row in raw for label in row)
    for document, label in ((document, label) for document, row in enumerate(raw, 1) for label in row):
        if not isinstance(label, (str, int, np.integer)) or isinstance(label, bool):
            raise LabelError(f"document {document} has label {describe(label)}; labels are names or paths, as strings.")
    return [[str(label) for label in row] for row in raw], multi_label, integers


def find_label_format(rows: Iterable[Iterable[str]], multi_label: bool, integers: bool, taxonomy: Taxonomy) -> LabelFormat:
    """The format of labels that are all in the taxonomy."""
    distinct = {label for row in rows for label in row}
    names = set(taxonomy.names)
    if distinct <= names:
        return LabelFormat(multi_label, integers=integers and _are_integers(names))
    if distinct <= set(taxonomy.titles):
        return LabelFormat(multi_label, "title")
    return LabelFormat(multi_label, "path", find_separator(distinct - names) or taxonomy.separator)


def taxonomy_of_labels(rows: Iterable[Iterable[str]], separator: str | None = None) -> Taxonomy:
    """The taxonomy of labels that are paths, or a flat one for other labels."""
    distinct = sorted({label for row in rows for label in row if label.strip()})
    if not distinct:
        raise LabelError("no document has a label; training needs documents of at least two classes.")
    separator = separator or find_separator(distinct)
    return Taxonomy.from_paths(distinct, separator) if separator else Taxonomy.flat(distinct)


def _are_integers(names: Iterable[str]) -> bool:
    return all(re.fullmatch(r"-?[0-9]{1,18}", name) for name in names)
