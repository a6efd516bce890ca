"""The format in which a user gives labels; predictions have the same format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.arguments import describe, entries
from ramify.errors import LabelError, ModelError
from ramify.taxonomy.bounds import LONGEST_SEPARATOR
from ramify.taxonomy.edges import labels_of
from ramify.taxonomy.formats.text import find_separator
from ramify.taxonomy.hierarchy import Taxonomy, most_specific

STYLES = ("name", "title", "path")
SHAPES = ("labels", "tuples", "lists", "levels", "indicators")
CONTAINERS = ("array", "sparse", "pandas", "polars")
MOST_COLUMNS = 1 << 24


@dataclass(frozen=True, slots=True)
class LabelFormat:
    """The format of labels.

    multi_label: a list of labels per document, rather than one label.
    style: a node's "name", its "title", or its "path" of titles joined by `separator`.
    integers: labels are integers.
    shape: "labels"; paths as "tuples", "lists" or an array of "levels", of which there are `width`; or "indicators": a 0/1
    table, whose `columns` are labels, in a `container`. closed: whether ancestors of labels are marked in it, too.
    """

    multi_label: bool
    style: str = "name"
    separator: str = " > "
    integers: bool = False
    shape: str = "labels"
    width: int = 0
    columns: tuple[str, ...] = ()
    container: str = "array"
    closed: bool = False

    def write(self, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Labels of nodes in this format."""
        if self.style == "name":
            return [taxonomy.names[node] for node in nodes]
        if self.style == "title":
            return [taxonomy.titles[node] for node in nodes]
        return [self.separator.join(taxonomy.path_of(node)) for node in nodes]

    def write_values(self, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[Any]:
        """Labels of nodes as values in this format: strings, integers, or paths."""
        if self.shape in ("tuples", "levels"):
            return [taxonomy.path_of(node) for node in nodes]
        if self.shape == "lists":
            return [list(taxonomy.path_of(node)) for node in nodes]
        return [int(label) for label in self.write(taxonomy, nodes)] if self.integers else self.write(taxonomy, nodes)

    def predictions(self, Y: csr_array, taxonomy: Taxonomy) -> Any:
        """Predictions over all nodes, closed upward, in this format."""
        if self.shape == "indicators":
            return self._to_table(Y if self.closed else most_specific(Y, taxonomy), taxonomy)
        own = most_specific(Y, taxonomy)
        ends = own.indptr.tolist()
        rows = [own.indices[start:end].tolist() for start, end in pairwise(ends)]
        values = [self.write_values(taxonomy, row) for row in rows]
        if self.shape == "levels":
            return self._to_levels(values)
        if self.multi_label:
            return values
        if self.shape == "tuples":
            return [row[0] if row else () for row in values]
        return np.asarray([row[0] if row else -1 for row in values]) if self.integers else self._strings(values)

    def _strings(self, rows: list[list[str]]) -> NDArray[Any]:
        """One label per document, '' if there is none."""
        return np.asarray([row[0] if row else "" for row in rows], dtype=str)

    def _to_levels(self, rows: list[list[tuple[str, ...]]]) -> NDArray[Any]:
        """Documents × levels, or documents × labels × levels, padded with ''."""
        width = max([self.width, *(len(path) for row in rows for path in row)])
        padded = [[(*path, *[""] * (width - len(path))) for path in row] for row in rows]
        if not self.multi_label:
            return np.asarray([row[0] if row else ("",) * width for row in padded], dtype=str).reshape(len(rows), width)
        most = max([1, *map(len, padded)])
        filled = [[*row, *[("",) * width] * (most - len(row))] for row in padded]
        return np.asarray(filled, dtype=str).reshape(len(rows), most, width)

    def _to_table(self, Y: csr_array, taxonomy: Taxonomy) -> Any:
        """A 0/1 table with the columns of the training labels; a node that is none of them is left out."""
        nodes = [taxonomy.index(name) for name in self.columns]
        table = csr_array(csr_array(Y)[:, nodes]).astype(np.int64)
        if self.container == "sparse":
            return table
        if self.container == "array":
            return table.toarray()
        try:
            frames = import_module(self.container)
        except ImportError:
            raise LabelError(f"the labels are columns of a {self.container} frame; install {self.container}.") from None
        names = [int(name) for name in self.columns] if self.integers else list(self.columns)
        if self.container == "polars":
            return frames.DataFrame(table.toarray(), schema=names)
        return frames.DataFrame(table.toarray(), columns=names)

    def state(self) -> dict[str, Any]:
        """Plain values from which :meth:`from_state` makes an equal format."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_state(cls, values: dict[str, Any], taxonomy: Taxonomy) -> LabelFormat:
        """Make a format from its state, after checking it against the taxonomy."""
        form = cls(**{**values, "columns": tuple(values.get("columns", ()))})
        flags = all(isinstance(flag, bool) for flag in (form.multi_label, form.integers, form.closed))
        is_separator = isinstance(form.separator, str) and 0 < len(form.separator) <= LONGEST_SEPARATOR
        if not flags or form.style not in STYLES or not is_separator or not form._has_known_shape(taxonomy):
            raise ModelError("the label format is invalid; train the model again.")
        if form.integers and not _are_integers(form.columns or taxonomy.names):
            raise ModelError("the label format says integers, but the labels are not; train the model again.")
        return form

    def _has_known_shape(self, taxonomy: Taxonomy) -> bool:
        is_width = type(self.width) is int and 0 <= self.width < MOST_COLUMNS
        are_nodes = all(isinstance(name, str) and taxonomy.has_node(name) for name in self.columns)
        return self.shape in SHAPES and self.container in CONTAINERS and is_width and are_nodes


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
