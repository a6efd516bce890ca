"""Support vector machines at every node, whose scores are added along the path (system ``path-svm``).

    score of label n = w_n·x + λ Σ_{a above n} w_a·x

Every node, inner ones included, has a flat classifier of the documents at or below it, so an ancestor with many documents backs
a label that has few. λ is selected on out-of-fold scores, where 0 leaves flat classifiers: the tree is used as far as it helps.
After Dumais & Chen (2000), who combine the probabilities of two levels; here scores are added, over all levels and, in a DAG,
over all ancestors, each once. A document labelled at an inner node belongs to a class of its own below that node. The model is
linear: the weights of a label are w_n + λ Σ w_a, stored as one row for each node and added along paths, as in ``hr-svm``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack

from ramify.errors import InputError
from ramify.learners.base import Scores
from ramify.learners.linear.cross_fit import best_unless_close, count_best
from ramify.learners.linear.learner import FEWEST_DOCUMENTS
from ramify.learners.linear.recursive import OneVsRestSVM
from ramify.learners.linear.taxonomy_ties import Forest, flat_units, tie_along_paths
from ramify.learners.linear.training import check_setup, is_number
from ramify.learners.linear.weights import Weights
from ramify.learners.targets import Targets
from ramify.persistence import checked_number
from ramify.taxonomy import expand_to_ancestors

SHARES = (0.0, 0.125, 0.25, 0.5)  # values of λ that are tried
FIRST_SHARE = 0.25  # where there is nothing to select by


@dataclass(eq=False, repr=False, kw_only=True)
class PathSVM(OneVsRestSVM):
    """Support vector machines at every node, whose scores are added along the path.

    ancestors: λ, the weight of the scores of ancestors, or ``"auto"`` to select it by cross-validation.
    Other parameters are those of :class:`OneVsRestSVM`.

    ``ancestors_``: the weight that was used.

    >>> from ramify import Taxonomy
    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> fitted = PathSVM(taxonomy).fit([[1, 0, 0], [1, 1, 0], [0, 0, 1]], ["a/x", "a/y", "b"])
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "path-svm"
    C: float | str = "auto"
    loss: str = "squared_hinge"
    ancestors: float | str = "auto"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        is_share = is_number(self.ancestors) and 0 <= float(self.ancestors) <= 1
        if self.ancestors != "auto" and not is_share:
            raise InputError(f"ancestors is {self.ancestors!r}; give a weight from 0 to 1, or 'auto' to select it.")
        if self.mode != "exact":
            raise InputError(f"path-svm has no mode {self.mode!r}; give mode='exact', or use svm with mode='fast'.")

    def _fit(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        self._check_parameters()
        setup = check_setup(self, self.loss, self.mode)
        forest = tie_along_paths(targets.taxonomy, np.unique(targets.own.indices).astype(np.int64))
        own_units = np.flatnonzero(~forest.joins.is_join)  # a join of a DAG has no classifier of its own
        is_class, paths = forest.class_of[own_units] >= 0, path_matrix(forest)[own_units]
        columns = csr_array(_documents_of(targets, forest)[:, own_units])
        selects = self.ancestors == "auto" and not is_class.all() and X.shape[0] >= FEWEST_DOCUMENTS
        units = flat_units(forest.node[own_units])
        trained, setup, found = self._train_at_best_cost(X, columns, units, sample_weight, setup, is_class, selects)
        if self.ancestors != "auto":
            self.ancestors_ = float(self.ancestors)
        else:
            first = 0.0 if is_class.all() else FIRST_SHARE
            self.ancestors_ = select_weight(*found, columns, is_class, paths) if selects and found is not None else first
        self._store(replace(trained, weights=added_along_paths(trained.weights, forest, self.ancestors_)), setup, targets)
        self.dual_ = self.class_figures_ = None  # those of all nodes, which an update does not start from
        self._set_classes(forest.class_nodes)
        if self.keeps_held_out and found is not None:
            above = np.float32(self.ancestors_) * (found[1] @ paths)
            self.held_out_ = found[0], self._on_nodes(found[1][:, is_class] + above)

    def selected_params(self) -> dict[str, Any]:
        """C and the weight of ancestors that were used."""
        return {**super().selected_params(), "ancestors": self.ancestors_}

    def training_facts(self) -> dict[str, Any]:
        """C, the weight of ancestors, and the duality gap of the classifiers of all nodes."""
        return {**super().training_facts(), "ancestors": self.ancestors_}

    def _extra_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values, arrays = super()._extra_state()
        return {**values, "chosen_ancestors": self.ancestors_}, arrays

    def _restore(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(values, arrays)
        self.ancestors_ = checked_number(values, "chosen_ancestors", 0, 1)


def select_weight(
    documents: NDArray[np.int64], scores: Scores, columns: csr_array, is_class: NDArray[np.bool_], paths: csr_array
) -> float:
    """The λ with the best held-out predictions, by the mean of micro and macro F1; ¼ if no other is clearly better.

    scores: out of fold, documents × units. columns: which documents belong to which units. is_class: by unit. paths: units ×
    classes, one where a unit is above a class.
    """
    above, own = scores @ paths, csr_array(columns[documents][:, is_class])
    counts = {share: count_best(scores[:, is_class] + np.float32(share) * above, own) for share in SHARES}
    return best_unless_close(counts, FIRST_SHARE)[0]


def _documents_of(targets: Targets, forest: Forest) -> csr_array:
    """Documents × units: for a class its own documents, for an inner unit those at or below its node."""
    closed, is_class = expand_to_ancestors(targets.own, targets.taxonomy), forest.class_of >= 0
    columns = csr_array(hstack([targets.own[:, forest.node[is_class]], closed[:, forest.node[~is_class]]], format="csr"))
    order = np.argsort(np.concatenate([np.flatnonzero(is_class), np.flatnonzero(~is_class)]))
    return csr_array(columns[:, order])


def path_matrix(forest: Forest) -> csr_array:
    """Units × classes: one where a unit is above a class."""
    n_classes = len(forest.above_offsets) - 1
    classes = np.repeat(np.arange(n_classes), np.diff(forest.above_offsets))
    return csr_array((np.ones(len(classes), np.float32), (forest.above, classes)), shape=(len(forest), n_classes))


def added_along_paths(own: Weights, forest: Forest, share: float) -> Weights:
    """Weights whose paths add up to those of a class and λ times those of its ancestors. own: of all units but joins."""
    is_join, class_units = forest.joins.is_join, np.flatnonzero(forest.class_of >= 0).astype(np.int64)
    factor = np.where(forest.class_of >= 0, 1, share).astype(np.float32)
    rows = own.deltas
    if is_join.any():
        # a join adds up the weights of those ancestors that its path lacks
        mixed = csr_array(diags_array(factor) + share * forest.joins.matrix(), dtype=np.float32)[:, ~is_join]
        deltas, bias = csr_array(mixed @ rows, dtype=np.float32), mixed @ own.bias
    else:
        values = rows.data * np.repeat(factor, np.diff(rows.indptr))
        deltas, bias = csr_array((values, rows.indices, rows.indptr), shape=rows.shape), factor * own.bias
    if share == 0:
        deltas = deltas.copy()
        deltas.eliminate_zeros()
    return Weights(deltas, bias, forest.parent, class_units)
