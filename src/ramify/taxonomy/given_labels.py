"""Labels as users give them, recognized by their form, as names of nodes; what has no clear meaning is refused.

| given | meaning |
|---|---|
| strings, whole numbers, or a column of them | one label per document: a name, a title, or a path joined by a separator |
| lists or sets of these | any number of labels per document |
| tuples ``("food", "fruit")`` | one path per document; several in a list |
| 2-D array of strings, ``""`` or None at the end of a row | one path per document, level by level, as in HiClass |
| 3-D array of strings, or lists of lists of strings | any number of such paths per document |
| data frame of 0 and 1, or a 0/1 matrix with one column per node | any number of labels per document |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import column_or_1d

from ramify.arguments import REAL, as_list, describe, entries, frame_columns, is_column, is_missing
from ramify.errors import LabelError
from ramify.taxonomy.hierarchy import Taxonomy, expand_to_ancestors
from ramify.taxonomy.label_format import LabelFormat, find_label_format, normalize_labels, taxonomy_of_labels

Path = tuple[str, ...]
SEVERAL = "give a list for several labels, such as ['apple', 'bread']"


@dataclass(frozen=True, slots=True)
class GivenLabels:
    """Labels of documents as names of nodes of a taxonomy, and the form in which they were given."""

    rows: list[list[str]]
    taxonomy: Taxonomy
    form: LabelFormat


def read_labels(labels: Any, taxonomy: Taxonomy | None = None, separator: str | None = None, known: bool = True) -> GivenLabels:
    """Labels in any form of the table above. taxonomy: the nodes (default: found from the labels).

    separator: joins the parts of a path. known: refuse labels that are not in the taxonomy.

    >>> given = read_labels([("food", "fruit"), ("drink",)])
    >>> given.rows, given.taxonomy.names
    ([['food/fruit'], ['drink']], ('drink', 'food', 'food/fruit'))
    """
    if issparse(labels):
        return _from_indicators(labels, None, taxonomy, separator, "sparse")
    if (columns := frame_columns(labels)) is not None:
        return _from_frame(labels, columns, taxonomy, separator)
    if not hasattr(labels, "__iter__"):
        labels = as_list(labels)
    if isinstance(labels, np.ndarray) and labels.ndim > 1:
        return _from_array(labels, taxonomy, separator)
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "fc":
        labels = _whole_numbers(labels)
    if is_column(labels):
        refuse_missing(labels)
    listed = list(entries(as_list(labels), "labels, one entry per document,", LabelError))
    if (paths := _paths_of(listed)) is not None:
        several = any(not isinstance(entry, tuple) for entry in listed if entry is not None)
        is_nested = any(isinstance(path, (list, np.ndarray)) for entry in listed if isinstance(entry, list) for path in entry)
        if not is_nested:
            _refuse_sets(paths, taxonomy)
        form = LabelFormat(several, shape="lists" if is_nested else "tuples")
        return _from_paths(paths, taxonomy, separator, form, known)
    rows, several, integers = normalize_labels(listed)
    made = _taxonomy_of(rows, integers, separator) if taxonomy is None else taxonomy
    return GivenLabels(rows, made, find_label_format(rows, several, integers, made))


def refuse_missing(column: Any) -> None:
    """Refuse a column of a data frame in which a label is missing."""
    missing = [number for number, label in enumerate(as_list(column), 1) if is_missing(label)]
    if missing:
        found = f"{len(missing):,} of {len(column):,} labels are missing, that of document {missing[0]} the first"
        raise LabelError(f"{found}; drop these rows first, or give lists of labels, [] for a document without any.")


def _whole_numbers(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Floating-point numbers that are whole, as integers."""
    if labels.dtype.kind == "c":
        raise LabelError("Complex data not supported: the labels are complex numbers; give names, paths or whole numbers.")
    if not np.isfinite(labels).all():
        number = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise LabelError(f"Input y contains NaN or infinity: document {number + 1} has label {labels[number]}; drop it.")
    if (fractions := labels != np.floor(labels)).any():
        number = int(np.flatnonzero(fractions)[0])
        found = f"document {number + 1} has label {labels[number]}, so the labels are continuous numbers"
        raise LabelError(f"{found}; labels are names or paths, as strings, or whole numbers.")
    return labels.astype(np.int64)


def _taxonomy_of(rows: list[list[str]], integers: bool, separator: str | None) -> Taxonomy:
    """The taxonomy of labels; whole numbers are in numeric order, as scikit-learn has them."""
    distinct = {label for row in rows for label in row}
    if integers and distinct and separator is None:
        return Taxonomy.flat(sorted(distinct, key=int))
    return taxonomy_of_labels(rows, separator)


# ---- paths --------------------------------------------------------------------------------------------------------------


def _paths_of(listed: list[Any]) -> list[list[Path]] | None:
    """The paths of each document, where labels are tuples, or lists of tuples or of lists; None where they are not."""
    found: list[list[Path]] = []
    is_path = [_kind_of(entry) for entry in listed]
    if "path" not in is_path:
        return None
    for number, (kind, entry) in enumerate(zip(is_path, listed, strict=True), 1):
        if kind == "label":
            advice = "give every label as a tuple, or none"
            raise LabelError(
                f"document {number} has label {describe(entry)}, and others have tuples or nested lists; {advice}."
            )
        each = [] if entry is None else [entry] if isinstance(entry, tuple) else list(entry)
        found.append([path for given in each if (path := _clean_path(given, number))])
    return found


def _kind_of(entry: Any) -> str:
    if entry is None or (isinstance(entry, (list, set, frozenset)) and not entry):
        return "none"
    if isinstance(entry, tuple):
        return "path"
    is_nested = isinstance(entry, (list, set, frozenset)) and any(isinstance(each, (tuple, list, np.ndarray)) for each in entry)
    return "path" if is_nested else "label"


def _clean_path(given: Any, document: int) -> Path:
    """The parts of a path without the padding at its end."""
    if not isinstance(given, (tuple, list, np.ndarray)):
        raise LabelError(f"document {document} has {describe(given)} beside paths; give every path as a tuple of names.")
    parts = list(given)
    while parts and (is_missing(parts[-1]) or (isinstance(parts[-1], str) and not parts[-1].strip())):
        parts.pop()
    for part in parts:
        if not isinstance(part, str):
            found = f"document {document} has the path {tuple(given)!r:.80}, with {describe(part)} in it"
            raise LabelError(f"{found}; the parts of a path are strings, padded at its end. For several labels, {SEVERAL}.")
        if not part.strip():
            raise LabelError(f"document {document} has the path {tuple(parts)!r:.80}, in which a level is empty; name it.")
    return tuple(str(part).strip() for part in parts)


def _refuse_sets(paths: list[list[Path]], taxonomy: Taxonomy | None) -> None:
    """Refuse tuples that look like sets of labels, as MultiLabelBinarizer returns them, rather than like paths."""
    if taxonomy is not None:
        nodes = Nodes(taxonomy)
        for number, path in ((number, path) for number, row in enumerate(paths, 1) for path in row):
            if len(path) > 1 and nodes.find(path) is None and all(part in taxonomy for part in path):
                raise LabelError(f"document {number}: {path!r} is a tuple, so a path, and the taxonomy has no such; {SEVERAL}.")
        return
    tops = {path[0] for row in paths for path in row}
    for number, path in ((number, path) for number, row in enumerate(paths, 1) for path in row):
        if below := [part for part in path[1:] if part in tops]:
            found = f"document {number}: {path!r} is a tuple, so a path, but {below[0]!r} is also the top of one"
            raise LabelError(f"{found}; {SEVERAL}, or paths as an array of levels.")


def _from_paths(
    paths: list[list[Path]], taxonomy: Taxonomy | None, separator: str | None, form: LabelFormat, known: bool = True
) -> GivenLabels:
    if taxonomy is None:
        if not any(paths):
            raise LabelError("no document has a label; training needs documents of at least two classes.")
        distinct = sorted({path for row in paths for path in row})
        taxonomy = _taxonomy_of_paths(distinct, separator)
    nodes, joined = Nodes(taxonomy), taxonomy.separator
    rows: list[list[str]] = []
    for number, row in enumerate(paths, 1):
        rows.append([])
        for path in row:
            if (name := nodes.find(path)) is None:
                if known:
                    raise LabelError(f"document {number}: the path {path!r} is not in the taxonomy of {len(taxonomy)} nodes.")
                name = joined.join(path)
            rows[-1].append(name)
    return GivenLabels(rows, taxonomy, form)


def _taxonomy_of_paths(paths: list[Path], separator: str | None) -> Taxonomy:
    together = "\n".join(part for path in paths for part in path)
    free = [each for each in (separator, "/", " > ", "::", " » ", "→") if each and each.strip() not in together]
    return Taxonomy.from_paths([free[0].join(path) for path in paths], free[0]) if free else Taxonomy.from_title_paths(paths)


class Nodes:
    """The nodes of a taxonomy by their paths, which are made of titles or names."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self.taxonomy, self.found = taxonomy, dict[Path, int]()
        self.roots = [node for node in range(len(taxonomy)) if not len(taxonomy.parents_of(node))]

    def find(self, path: Path) -> str | None:
        """The name of the node at the end of a path from a root; None without one.

        >>> Nodes(Taxonomy.from_paths(["food/fruit"])).find(("food", "fruit"))
        'food/fruit'
        """
        if path not in self.found:
            self.found[path] = self._search(path)
        node = self.found[path]
        return None if node < 0 else self.taxonomy.names[node]

    def _search(self, path: Path) -> int:
        among: Iterable[int] = self.roots
        node = -1
        for part in path:
            node = next((each for each in among if part in (self.taxonomy.titles[each], self.taxonomy.names[each])), -1)
            if node < 0:
                return -1
            among = self.taxonomy.children_of(node).tolist()
        return node


# ---- arrays and data frames ---------------------------------------------------------------------------------------------


def _from_array(labels: Any, taxonomy: Taxonomy | None, separator: str | None) -> GivenLabels:
    """One column of labels, levels of paths, or indicators."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        return read_labels(column_or_1d(labels, warn=True), taxonomy, separator)
    is_text = labels.dtype.kind in "UT" or (labels.dtype.kind == "O" and _are_texts(labels))
    if is_text and labels.ndim in (2, 3):
        rows = labels.tolist()
        paths = [
            [_clean_path(row, n)] if labels.ndim == 2 else [_clean_path(p, n) for p in row] for n, row in enumerate(rows, 1)
        ]
        form = LabelFormat(labels.ndim == 3, shape="levels", width=int(labels.shape[-1]))
        return _from_paths([[path for path in row if path] for row in paths], taxonomy, separator, form)
    if labels.ndim == 2 and (labels.dtype.kind in REAL or (labels.dtype.kind == "O" and labels.size)):
        return _from_indicators(labels, None, taxonomy, separator, "array")
    advice = "give one label per document, or rows of strings, one column per level"
    raise LabelError(f"the labels are an array of shape {labels.shape} and type {labels.dtype}; {advice}.")


def _are_texts(labels: Any) -> bool:
    return all(isinstance(value, str) or is_missing(value) for value in labels.ravel().tolist())


def _from_frame(labels: Any, columns: list[Any], taxonomy: Taxonomy | None, separator: str | None) -> GivenLabels:
    """A column of labels, columns of levels, or one column of 0 and 1 per label."""
    array = np.asarray(labels)
    if len(columns) == 1 and array.dtype.kind in "OUT":
        return read_labels(_without_missing(array.ravel()), taxonomy, separator)
    if array.dtype.kind in "OUT" and _are_texts(array):
        return _from_array(array, taxonomy, separator)
    container = type(labels).__module__.partition(".")[0]
    return _from_indicators(array, columns, taxonomy, separator, container if container in ("pandas", "polars") else "array")


def _without_missing(column: Any) -> list[Any]:
    listed: list[Any] = column.tolist()
    missing = [number for number, label in enumerate(listed, 1) if is_missing(label)]
    if missing:
        found = f"{len(missing):,} of {len(listed):,} labels are missing, that of document {missing[0]} the first"
        raise LabelError(f"{found}; drop these rows first.")
    return listed


def _from_indicators(
    matrix: Any, columns: Sequence[Any] | None, taxonomy: Taxonomy | None, separator: str | None, container: str
) -> GivenLabels:
    """A 0/1 matrix whose columns have names: those of a data frame, or the nodes of the taxonomy."""
    marked = _marks(matrix)
    if columns is None:
        if taxonomy is None or len(taxonomy) != marked.shape[1]:
            nodes = "" if taxonomy is None else f", and the taxonomy has {len(taxonomy)} nodes"
            found = f"the labels are a 0/1 matrix with {marked.shape[1]} columns and no names{nodes}"
            advice = "pandas.DataFrame(Y, columns=names), or lists of names"
            raise LabelError(f"{found}; give a data frame whose columns are the labels, such as {advice}.")
        names, integers = list(taxonomy.names), False
    else:
        integers = all(isinstance(name, (int, np.integer)) for name in columns)
        names = [str(name) for name in columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise LabelError(f"the labels are a 0/1 table with two columns {twice!r}; give each label one column.")
        if not marked.nnz:
            raise LabelError("no document has a label; training needs documents of at least two classes.")
        taxonomy = taxonomy or taxonomy_of_labels([names], separator)
    ends, own = marked.indptr.tolist(), [names[column] for column in marked.indices.tolist()]
    rows = [own[start:end] for start, end in pairwise(ends)]
    form = find_label_format([names], True, False, taxonomy)
    form = replace(form, shape="indicators", columns=tuple(names), container=container, integers=integers)
    return GivenLabels(rows, taxonomy, replace(form, closed=_is_closed(rows, names, taxonomy)))


def _marks(matrix: Any) -> csr_array:
    """A 0/1 matrix as boolean CSR; refuses other values."""
    if not issparse(matrix):
        try:
            matrix = np.asarray(matrix, dtype=np.float64) if matrix.dtype.kind == "O" else np.asarray(matrix)
        except (TypeError, ValueError):
            matrix = np.full((1, 2), np.nan)
    values = matrix.data if issparse(matrix) else matrix
    if values.dtype.kind not in REAL or not np.isin(values, (0, 1)).all():
        advice = "give one label per document, lists of labels, paths as rows of strings, or a table of 0 and 1"
        raise LabelError(f"the labels are a table of shape {matrix.shape} whose values are not all 0 or 1; {advice}.")
    marked = csr_array(matrix).astype(bool)
    marked.sum_duplicates()
    marked.eliminate_zeros()
    return marked


def _is_closed(rows: list[list[str]], names: list[str], taxonomy: Taxonomy) -> bool:
    """Whether every document has all ancestors of its labels, of those that are columns at all."""
    Y = taxonomy.encode(rows)
    nodes = [taxonomy.index(name) for name in names]
    if not any(len(taxonomy.parents_of(node)) for node in nodes):
        return False
    return bool(csr_array(expand_to_ancestors(Y, taxonomy))[:, nodes].nnz == sum(map(len, rows)))
