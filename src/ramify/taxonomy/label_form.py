"""The form in which a user gives labels, so that predictions can come back in the same one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ramify.errors import LabelError, ModelError
from ramify.taxonomy.formats.paths import find_separator
from ramify.taxonomy.hierarchy import Taxonomy

STYLES = ("name", "title", "path")


@dataclass(frozen=True, slots=True)
class LabelForm:
    """How labels look.

    many: a list of labels a document, rather than one label.
    style: a node's "name", its "title", or its "path" of titles joined by `separator`.
    """

    many: bool
    style: str = "name"
    separator: str = " > "

    def write(self, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Nodes as the user would write them."""
        if self.style == "name":
            return [taxonomy.names[node] for node in nodes]
        if self.style == "title":
            return [taxonomy.titles[node] for node in nodes]
        return [self.separator.join(taxonomy.path_of(node)) for node in nodes]

    def gather(self, rows: list[list[str]]) -> Any:
        """Label lists as they are, or an array with one label a document ('' where there is none)."""
        return rows if self.many else np.asarray([row[0] if row else "" for row in rows], dtype=str)

    def state(self) -> dict[str, Any]:
        """Plain values from which :meth:`from_state` makes the same form."""
        return asdict(self)

    @classmethod
    def from_state(cls, values: dict[str, Any]) -> LabelForm:
        """Make a form from its state."""
        form = cls(**values)
        if not isinstance(form.many, bool) or form.style not in STYLES or not isinstance(form.separator, str):
            raise ModelError("the form of the labels is not one that Ramify writes; train the model again.")
        return form


def listed_labels(labels: Iterable[Any]) -> tuple[list[list[str]], bool]:
    """Labels as one list a document, and whether they came as lists."""
    entries = list(labels)
    many = any(isinstance(entry, (list, tuple, set, frozenset, np.ndarray)) for entry in entries)
    rows: list[list[str]] = []
    for entry in entries:
        given = [] if entry is None else [entry] if isinstance(entry, str) or np.isscalar(entry) else list(entry)
        rows.append([label if isinstance(label, str) else _as_string(label, len(rows)) for label in given])
    return rows, many


def find_form(rows: Iterable[Iterable[str]], many: bool, taxonomy: Taxonomy) -> LabelForm:
    """The form of labels that are all in the taxonomy."""
    distinct = {label for row in rows for label in row}
    names = set(taxonomy.names)
    if distinct <= names:
        return LabelForm(many)
    if distinct <= set(taxonomy.titles):
        return LabelForm(many, "title")
    return LabelForm(many, "path", find_separator(distinct - names) or taxonomy.separator)


def taxonomy_of_labels(rows: Iterable[Iterable[str]], separator: str | None = None) -> Taxonomy:
    """The taxonomy that labels spell out when they are paths, or a flat one when they are not."""
    distinct = sorted({label for row in rows for label in row if label.strip()})
    if not distinct:
        raise LabelError("no document has a label; learning needs documents of at least two classes.")
    separator = separator or find_separator(distinct)
    return Taxonomy.from_paths(distinct, separator) if separator else Taxonomy.flat(distinct)


def _as_string(label: Any, document: int) -> str:
    if isinstance(label, (bool, np.bool_)) or not isinstance(label, (str, int, np.integer, np.str_)):
        raise LabelError(f"document {document + 1} has label {label!r}; labels are names or paths, as strings.")
    return str(label)
