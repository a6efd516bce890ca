"""Labels in any form that users give, as one label matrix over one taxonomy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d

from ramify.errors import InputError, LabelError
from ramify.taxonomy import Taxonomy, as_taxonomy, expand_to_ancestors, most_specific


@dataclass(frozen=True, slots=True)
class Targets:
    """The labels of training documents.

    own: documents × nodes, the most specific labels. classes: class values in node order, where labels are plain values without
    a taxonomy. form: "classes", "names" (one name per document), "lists" (of names) or "matrix"; predictions have the same
    form.
    """

    taxonomy: Taxonomy
    own: csr_array
    form: str
    classes: NDArray[Any] | None = None


def read_targets(y: Any, taxonomy: Taxonomy | str | Path | None, n_documents: int) -> Targets:
    """Read labels given as a matrix over nodes, one value per document, or a list of names per document."""
    if y is None:
        raise InputError("fitting requires y to be passed, but the target y is None.")
    targets = _require_length(_read(y, None if taxonomy is None else as_taxonomy(taxonomy)), n_documents)
    refuse_single_class(np.unique(targets.own.indices), targets.taxonomy)
    return _with_main_parents(targets)


def read_further_targets(
    y: Any, n_documents: int, known: Taxonomy | None, given: Any, values: NDArray[Any] | None, classes: Any
) -> Targets:
    """Labels of further documents.

    known: the taxonomy so far, None before the first documents. given: a larger one to continue with. values: the class values
    so far, where there is no taxonomy; `classes` and y may add more.
    """
    is_plain = values is not None or (known is None and given is None and not is_nested(y) and np.ndim(y) != 2)
    if is_plain and given is None:
        return _require_length(_from_classes(*_with_values(y, values, classes)), n_documents)
    taxonomy = known if given is None else as_taxonomy(given)
    if known is not None and given is not None and taxonomy is not known:
        taxonomy = as_taxonomy(given).with_main_parents_of(known)
    return _with_main_parents(_require_length(_read(y, taxonomy), n_documents))


def _with_main_parents(targets: Targets) -> Targets:
    """In a DAG, the most specific parents are the main ones, unless others were chosen before."""
    if targets.taxonomy.is_tree or targets.taxonomy.main_parents is not None:
        return targets
    counts = np.bincount(expand_to_ancestors(targets.own, targets.taxonomy).indices, minlength=len(targets.taxonomy))
    return replace(targets, taxonomy=targets.taxonomy.with_main_parents(counts))


def _require_length(targets: Targets, n_documents: int) -> Targets:
    n = targets.own.shape[0]
    if n != n_documents:
        raise InputError(f"there are {n_documents} documents but labels for {n}; give one entry per document.")
    return targets


def _with_values(y: Any, values: NDArray[Any] | None, classes: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Class values, and all known ones: those so far, those announced, and those of y."""
    y = column_or_1d(y, warn=True)
    try:
        every = [column_or_1d(part) for part in (values, classes, y) if part is not None]
        if len({part.dtype.kind in "USO" for part in every if len(part)}) <= 1:
            return y, np.unique(np.concatenate(every))
    except (TypeError, ValueError):
        pass
    raise InputError("the class values mix types, such as numbers and words; give one type, in one list.")


def _read(y: Any, taxonomy: Taxonomy | None) -> Targets:
    if is_nested(y):
        return _from_names(y, taxonomy, "lists")
    if not issparse(y):
        y = np.asarray(y)
    if y.ndim == 2 and (taxonomy is not None or y.shape[1] > 1):
        taxonomy = Taxonomy.flat(str(column) for column in range(y.shape[1])) if taxonomy is None else taxonomy
        return Targets(taxonomy, most_specific(expand_to_ancestors(y, taxonomy), taxonomy), "matrix")
    if taxonomy is not None:
        return _from_names(y.tolist(), taxonomy, "names")
    return _from_classes(column_or_1d(y, warn=True))


def is_nested(y: Any) -> bool:
    """Whether labels are lists of names, one list per document."""
    if not isinstance(y, (list, tuple, np.ndarray)) or (isinstance(y, np.ndarray) and y.dtype != object):
        return False
    lists = [entry for entry in y if isinstance(entry, (list, tuple, set, frozenset))]
    return bool(lists) and all(isinstance(label, str) for entry in lists for label in entry)


def _from_names(y: Sequence[Any], taxonomy: Taxonomy | None, form: str) -> Targets:
    if taxonomy is None:
        listed = [[labels] if isinstance(labels, str) else labels or () for labels in y]
        taxonomy = Taxonomy.flat(sorted({label for labels in listed for label in labels}))
    return Targets(taxonomy, most_specific(taxonomy.encode(y), taxonomy), form)


def _from_classes(y: NDArray[Any], classes: NDArray[Any] | None = None) -> Targets:
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes = np.unique(y) if classes is None else classes
    column = np.searchsorted(classes, y)
    names = [str(value) for value in classes.tolist()]
    if not all(name.strip() for name in names) or len(set(names)) < len(names):
        names = [repr(value) for value in classes.tolist()]
    own = csr_array((np.ones(len(y), dtype=bool), column, np.arange(len(y) + 1)), shape=(len(y), len(classes)))
    return Targets(Taxonomy.flat(names), own, "classes", classes)


def refuse_single_class(nodes: NDArray[np.integer[Any]], taxonomy: Taxonomy) -> None:
    """Refuse labels of fewer than two classes."""
    if len(nodes) == 0:
        raise LabelError("no document has a label; learning needs documents of at least two classes.")
    if len(nodes) == 1:
        raise LabelError(
            f"every label is {taxonomy.names[int(nodes[0])]!r}; learning needs documents of at least two classes, "
            "and this is one class only."
        )


def require_one_label(targets: Targets, what: str, instead: str) -> None:
    """Refuse documents that do not have exactly one label."""
    others = np.flatnonzero(np.diff(targets.own.indptr) != 1)
    if len(others):
        raise LabelError(
            f"{len(others):,} of {targets.own.shape[0]:,} documents have multiple labels or none, number {others[0] + 1} the "
            f"first; {what} takes one label per document: leave such documents out, or use {instead}."
        )
