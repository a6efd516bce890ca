"""Features of documents that have several columns: a block for each column.

Such a document is a tuple of cells, one for each column; a plain text stands for its first column, and the others are missing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone

from ramify.errors import InputError, ModelError
from ramify.features.base import BaseVectorizer, Ints, State, check_fitted, checked_columns
from ramify.features.vectorizer import Vectorizer

FEW = 12  # distinct numbers up to which a column of numbers is one of categories
BINS = 10  # ranges of a column of numbers, each with about as many documents
MOST_CATEGORIES = 100_000
LONGEST = 200  # characters of a category; longer cells are cut


class Cells(BaseVectorizer):
    """A block for a column of numbers or of categories, with one feature for each category, or for each range of numbers.

    name: of the column, for the names of the features. as_category: take numbers for categories, too.

    ``edges_``: upper ends of the ranges; None for categories. ``categories_``: in the order of the features.

    >>> cells = Cells("brand").fit(["Acme", None, "Bolt", "Acme"])
    >>> cells.get_feature_names_out().tolist(), cells.transform(["Bolt", "new"]).toarray().tolist()
    (['brand=Acme', 'brand=Bolt'], [[0.0, 1.0], [0.0, 0.0]])
    >>> Cells("price").fit(range(100)).get_feature_names_out().tolist()[:2]
    ['price ≤ 9.9', 'price 9.9–19.8']
    """

    kind: ClassVar[str] = "cells"
    weighting = "tf-idf"  # rows have unit length
    edges_: NDArray[np.float64] | None
    categories_: list[str]

    def __init__(self, name: str = "column", as_category: bool = False) -> None:
        self.name, self.as_category = name, as_category

    def fit(self, cells: Iterable[Any], y: Any = None) -> Self:
        """Find the categories, or the ranges of numbers."""
        self.fit_count(cells)
        return self

    def fit_count(self, cells: Iterable[Any]) -> csr_array:
        """Find the categories, or the ranges of numbers, and return the matrix."""
        cells = list(cells)
        present = [cell for cell in map(_plain, cells) if cell is not None]
        numbers = [] if self.as_category else [as_number(cell) for cell in present]
        self.selected_columns_, self.edges_, self.categories_ = None, None, []
        if present and not self.as_category and None not in numbers and len(set(numbers)) > FEW:
            inner = np.quantile(np.asarray(numbers, dtype=np.float64), np.arange(1, BINS) / BINS)
            self.edges_ = np.unique(inner)
        else:
            counts = Counter(present)
            self.categories_ = sorted(name for name, _ in counts.most_common(MOST_CATEGORIES))
        if not present:
            raise InputError(f"column {self.name!r} is empty in every row; leave it out.")
        self._prepare()
        return self.transform(cells)

    def _prepare(self) -> None:
        self._number_of = {category: number for number, category in enumerate(self.categories_)}

    def weight_counts(self, counts: csr_array) -> csr_array:
        """The matrix as it is."""
        return counts

    def transform(self, cells: Iterable[Any]) -> csr_array:
        """One 1 in each row; none for a missing cell, a new category, or what is no number."""
        check_fitted(self, "categories_")
        found = [self._feature(cell) for cell in cells]
        has = np.asarray([number >= 0 for number in found], dtype=bool)
        columns = np.asarray([number for number in found if number >= 0], dtype=np.int32)
        shape = (len(found), len(self._all_names()))
        X = csr_array((np.ones(len(columns), dtype=np.float32), columns, np.append(0, np.cumsum(has))), shape=shape)
        return X if self.selected_columns_ is None else csr_array(X[:, self.selected_columns_])

    def _feature(self, cell: Any) -> int:
        plain = _plain(cell)
        if plain is None:
            return -1
        if self.edges_ is None:
            return self._number_of.get(plain, -1)
        number = as_number(plain)
        return -1 if number is None else bisect_left(self.edges_.tolist(), number)

    def _all_names(self) -> list[str]:
        if self.edges_ is None:
            return [f"{self.name}={category}" for category in self.categories_]
        ends = [f"{edge:.4g}" for edge in self.edges_]
        if not ends:
            return [self.name]
        inner = [f"{self.name} {low}–{high}" for low, high in pairwise(ends)]
        return [f"{self.name} ≤ {ends[0]}", *inner, f"{self.name} > {ends[-1]}"]

    @property
    def n_features_out(self) -> int:
        """The number of columns in use."""
        return len(self._all_names()) if self.selected_columns_ is None else len(self.selected_columns_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns in use."""
        names = np.asarray([*self._all_names(), None], dtype=object)[:-1]
        return names if self.selected_columns_ is None else names[self.selected_columns_]

    def summary(self) -> str:
        """The column in words."""
        return f"column {self.name!r}"

    def state(self) -> State:
        """Plain values and arrays from which :meth:`from_state` makes an equal object."""
        arrays = {} if self.selected_columns_ is None else {"columns": self.selected_columns_}
        edges = None if self.edges_ is None else self.edges_.tolist()
        values = {"name": self.name, "as_category": self.as_category, "edges": edges, "categories": self.categories_}
        return values, arrays

    @classmethod
    def from_state(cls, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Cells:
        """Make one from its state, after checking it."""
        name, edges, categories = values["name"], values["edges"], values["categories"]
        is_right = isinstance(name, str) and isinstance(categories, list) and len(categories) <= MOST_CATEGORIES
        is_right = is_right and all(isinstance(each, str) and len(each) <= LONGEST for each in categories)
        is_right = is_right and len(set(categories)) == len(categories) and type(values["as_category"]) is bool
        if is_right and edges is not None:
            is_right = isinstance(edges, list) and len(edges) < BINS and not categories
            is_right = is_right and all(type(edge) is float and np.isfinite(edge) for edge in edges) and edges == sorted(edges)
        if not is_right:
            raise ModelError("a column of the features is not one that Ramify writes; train the model again.")
        made = cls(name, values["as_category"])
        made.edges_ = None if edges is None else np.asarray(edges, dtype=np.float64)
        made.categories_ = categories
        made._prepare()
        made.selected_columns_ = checked_columns(arrays.get("columns"), len(made._all_names()))
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return "categories_" in vars(self)


class Column(BaseVectorizer):
    """The features of one column of documents with several.

    number: of the column, from 0. block: reads its cells; texts for a vectorizer. name: put before the names of terms; None
    for no name.

    >>> column = Column(1, Vectorizer(), "title").fit([("long text", "a title"), ("other", None)])
    >>> column.get_feature_names_out().tolist()
    ['title: title']
    """

    kind: ClassVar[str] = "column"
    block_: Any

    def __init__(self, number: int = 0, block: Any = None, name: str | None = None, n_jobs: int | None = None) -> None:
        self.number, self.block, self.name, self.n_jobs = number, block, name, n_jobs

    def check_settings(self) -> None:
        """Refuse invalid settings of the block."""
        if hasattr(self.block, "check_settings"):
            self.block.check_settings()

    def fit(self, documents: Iterable[Any], y: Any = None) -> Self:
        """Fit the block on the cells of the column."""
        self.fit_count(documents)
        return self

    def fit_count(self, documents: Iterable[Any]) -> csr_array:
        """Fit the block on the cells of the column, and return its counts."""
        block = clone(self.block)
        if "n_jobs" in block.get_params():
            block.set_params(n_jobs=self.n_jobs)
        counts = block.fit_count(self._cells(documents, block))
        self.block_ = block
        return csr_array(counts)

    def _cells(self, documents: Iterable[Any], block: Any) -> list[Any]:
        cells = list(cells_of(documents, self.number))
        return cells if isinstance(block, Cells) else ["" if cell is None else str(cell) for cell in cells]

    def weight_counts(self, counts: csr_array) -> csr_array:
        """Apply the weighting of the block."""
        return csr_array(self.block_.weight_counts(counts))

    def transform(self, documents: Iterable[Any]) -> csr_array:
        """The weighted matrix of the cells of the column."""
        check_fitted(self, "block_")
        return csr_array(self.block_.transform(self._cells(documents, self.block_)))

    @property
    def weighting(self) -> str:
        """That of the block."""
        return str(getattr(getattr(self, "block_", self.block), "weighting", "tf-idf"))

    @property
    def n_features_out(self) -> int:
        """The number of columns in use."""
        return int(self.block_.n_features_out)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns in use."""
        names: NDArray[np.object_] = self.block_.get_feature_names_out()
        return (
            names if self.name is None else np.asarray([*(f"{self.name}: {name}" for name in names), None], dtype=object)[:-1]
        )

    def term_names(self, document: Any, columns: Ints) -> list[str]:
        """The names of columns that a document has."""
        (cell,) = self._cells([document], self.block_)
        names = self.block_.term_names(cell, columns)
        return names if self.name is None else [f"{self.name}: {name}" for name in names]

    def locate(self, text: str) -> list[tuple[int, int, int]]:
        """(start, end, column) of every known term in a text of the first column."""
        has_place = self.number == 0 and hasattr(self.block_, "locate")
        return self.block_.locate(text) if has_place else []

    def select_columns(self, columns: Ints) -> None:
        """Use only some of the columns from now on."""
        self.block_ = copy(self.block_)  # others may use it with all columns
        self.block_.select_columns(columns)

    def summary(self) -> str:
        """The block in words."""
        found = str(self.block_.summary())
        return found if self.name is None else f"{found} of {self.name!r}"

    def state(self) -> State:
        """Plain values and arrays from which :meth:`from_state` makes an equal object."""
        values, arrays = self.block_.state()
        return {"number": self.number, "name": self.name, "block": {"kind": self.block_.kind, **values}}, arrays

    @classmethod
    def from_state(cls, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Column:
        """Make one from its state, after checking it."""
        from ramify.features.union import FeatureUnion

        number, name, inner = values["number"], values["name"], dict(values["block"])
        kinds: dict[Any, Any] = {each.kind: each for each in (Vectorizer, FeatureUnion, Cells)}
        kind = kinds.get(inner.pop("kind", None))
        if kind is None or type(number) is not int or not 0 <= number < 1_000 or not isinstance(name, (str, type(None))):
            raise ModelError("a column of the features is not one that Ramify writes; train the model again.")
        block = kind.from_state(inner, arrays)
        made = cls(number, clone(block), name)
        made.block_ = block
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return "block_" in vars(self)


def cells_of(documents: Iterable[Any], number: int) -> Iterator[Any]:
    """The cells of one column of documents.

    >>> list(cells_of(["text", ("other", 5)], 1))
    [None, 5]
    """
    for document in documents:
        if isinstance(document, tuple):
            yield document[number] if number < len(document) else None
        else:
            yield document if number == 0 else None


def as_number(cell: str) -> float | None:
    """The number that a cell holds, with a point or a comma before its fraction.

    >>> as_number("12,50"), as_number("1e3"), as_number("12 kg"), as_number("nan")
    (12.5, 1000.0, None, None)
    """
    try:
        number = float(cell.replace(",", ".") if cell.count(",") == 1 and "." not in cell else cell.replace(",", ""))
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _plain(cell: Any) -> str | None:
    """A cell as a short text; None if it is missing."""
    if cell is None or (isinstance(cell, float) and not np.isfinite(cell)):
        return None
    text = (str(int(cell)) if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15 else str(cell)).strip()
    return text[:LONGEST] or None
