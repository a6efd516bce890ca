"""Flat one-vs-rest classifiers over the labelled nodes: the solver of recursive regularization with nothing above a class.

    min over w_n   ½‖w_n‖² + C Σ_i L(y_in w_n·x_i)     for every labelled node n on its own

Source: the systems SVM and LR of Gopal & Yang 2013, section 4.2. A constant feature stands for the bias.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ramify.learners.linear.learner import TiedLearner
from ramify.learners.linear.taxonomy_ties import Forest, Structure, tie_along_paths, tie_dag, tie_flat, tie_graph
from ramify.learners.targets import Targets, read_targets
from ramify.taxonomy import LabelGraph, Taxonomy


class OneVsRestSVM(TiedLearner):
    """Flat support vector machines (system ``svm``).

    C: what a unit of loss costs, or ``"auto"`` to choose it by cross-validation.
    loss: ``"hinge"`` or ``"squared_hinge"``. class_weight: None, ``"balanced"``, or a weight by class name.
    mode: ``"exact"`` until the relative duality gap is within `tol`; ``"fast"`` on near negatives alone.
    max_iter: passes over a class, or rounds over a tree, after which it is left as it is, with a warning.
    random_state: the order in which documents are visited.

    >>> OneVsRestSVM().fit([[1, 0], [0, 1]], ["a", "b"]).predict([[2, 1]])
    array(['a'], dtype='<U1')
    """

    kind: ClassVar[str] = "one-vs-rest-svm"
    takes_shards: ClassVar[bool] = True

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        C: float | str = 1.0,
        loss: str = "hinge",
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        mode: str = "exact",
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.taxonomy = taxonomy
        self.C = C
        self.loss = loss
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.mode = mode
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _loss(self) -> str:
        return self.loss

    def _tie(self, taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest | Structure:
        return tie_flat(taxonomy, labelled)


class OneVsRestLogistic(TiedLearner):
    """Flat logistic regression (system ``lr``); the parameters are those of :class:`OneVsRestSVM`.

    >>> OneVsRestLogistic().fit([[1, 0], [0, 1]], ["a", "b"]).predict([[2, 1]])
    array(['a'], dtype='<U1')
    """

    kind: ClassVar[str] = "one-vs-rest-logistic"
    takes_shards: ClassVar[bool] = True

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        C: float | str = 1.0,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        mode: str = "exact",
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.taxonomy = taxonomy
        self.C = C
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.mode = mode
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _loss(self) -> str:
        return "logistic"

    def _tie(self, taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest | Structure:
        return tie_flat(taxonomy, labelled)


# --------------------------------------------------------------------------------------------------------------
# Recursive regularization: the weights of every node are drawn to those of its parent.
#
#     min over W   ½ Σ_v ‖w_v − w_parent(v)‖² + C Σ_n Σ_i L(y_in w_n·x_i)
#
# over all nodes v with documents at or below them, with the loss of the labelled nodes n; a root is drawn to zero. A document
# labelled at an inner node counts for a class of its own below that node. In a DAG a node is drawn to each of its parents; in a
# graph of labels, to each of its neighbours, and a little (ρ = 10⁻⁴) to zero, since nothing else holds the graph as a whole:
#
#     ½ Σ_edges ‖w_a − w_b‖² + ½ ρ Σ_v ‖w_v‖² + C Σ_n Σ_i L(y_in w_n·x_i)
#
# Source: Gopal & Yang 2013, sections 3.1 to 3.3 (HR-SVM and HR-LR).


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
    shrinks_to_parents: ClassVar[bool] = True

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
    shrinks_to_parents: ClassVar[bool] = True

    def _tie(self, taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest | Structure:
        return _tie_recursively(self.taxonomy, taxonomy, labelled)

    def _read_targets(self, y: Any, n_documents: int) -> Targets:
        return read_targets(y, _nodes_of(self.taxonomy), n_documents)
