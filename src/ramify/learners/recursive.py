"""Recursive regularization: the weights of every node are drawn to those of its parent.

    min over W   ½ Σ_v ‖w_v − w_parent(v)‖² + C Σ_n Σ_i L(y_in w_n·x_i)

over all nodes v with documents at or below them, with the loss of the labelled nodes n; a root is drawn to zero. A document
labelled at an inner node counts for a class of its own below that node. In a DAG a node is drawn to each of its parents; in a
graph of labels, to each of its neighbours, and a little (ρ = 10⁻⁴) to zero, since nothing else holds the graph as a whole:

    ½ Σ_edges ‖w_a − w_b‖² + ½ ρ Σ_v ‖w_v‖² + C Σ_n Σ_i L(y_in w_n·x_i)

Source: Gopal & Yang 2013, sections 3.1 to 3.3 (HR-SVM and HR-LR).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ramify.learners.linear.forest import Forest, tie_along_paths
from ramify.learners.linear.structure import Structure, tie_dag, tie_graph
from ramify.learners.one_vs_rest import OneVsRestLogistic, OneVsRestSVM
from ramify.learners.targets import Targets, read_targets
from ramify.taxonomy import LabelGraph, Taxonomy


def _nodes_of(taxonomy: Any) -> Any:
    """The labels of a graph are a forest of single nodes."""
    return Taxonomy.flat(taxonomy.names) if isinstance(taxonomy, LabelGraph) else taxonomy


def _tie_recursively(given: Any, taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest | Structure:
    if isinstance(given, LabelGraph):
        return tie_graph(given, labelled)
    return tie_along_paths(taxonomy, labelled) if taxonomy.is_tree else tie_dag(taxonomy, labelled)


class RecursiveSVM(OneVsRestSVM):
    """Support vector machines tied along the hierarchy (system ``hr-svm``); parameters as of :class:`OneVsRestSVM`.

    taxonomy: a tree, a DAG, or a ``LabelGraph``.

    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> fitted = RecursiveSVM(taxonomy).fit([[1, 0, 0], [1, 1, 0], [0, 0, 1]], ["a/x", "a/y", "b"])
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "recursive-svm"
    draws_to_parents: ClassVar[bool] = True

    def _tie(self, taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest | Structure:
        return _tie_recursively(self.taxonomy, taxonomy, labelled)

    def _read_targets(self, y: Any, n_documents: int) -> Targets:
        return read_targets(y, _nodes_of(self.taxonomy), n_documents)


class RecursiveLogistic(OneVsRestLogistic):
    """Logistic regression tied along the hierarchy (system ``hr-lr``); parameters as of :class:`OneVsRestLogistic`.

    taxonomy: a tree, a DAG, or a ``LabelGraph``.

    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> fitted = RecursiveLogistic(taxonomy).fit([[1, 0, 0], [1, 1, 0], [0, 0, 1]], ["a/x", "a/y", "b"])
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "recursive-logistic"
    draws_to_parents: ClassVar[bool] = True

    def _tie(self, taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest | Structure:
        return _tie_recursively(self.taxonomy, taxonomy, labelled)

    def _read_targets(self, y: Any, n_documents: int) -> Targets:
        return read_targets(y, _nodes_of(self.taxonomy), n_documents)
