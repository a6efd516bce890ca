"""Recursive regularization (systems ``hr-svm``, ``hr-lr``), and flat one-vs-rest classifiers as its special case.

Flat: every labelled node n by itself (Gopal & Yang 2013, section 4.2: SVM and LR)

    min over w_n   ½‖w_n‖² + C Σ_i L(y_in w_n·x_i)

Recursive: every node is regularized towards its parent, a root towards zero (sections 3.1 to 3.3: HR-SVM and HR-LR)

    min over W   ½ Σ_v ‖w_v − w_parent(v)‖² + C Σ_n Σ_i L(y_in w_n·x_i)

over all nodes v with documents at or below them, with the loss of the labelled nodes n. A document labelled at an inner node
belongs to a class of its own below that node. With increments δ_v = w_v − w_parent(v), this is

    min over δ   ½ Σ_v ‖δ_v‖² + C Σ_n Σ_i L(y_in w_n·x_i),   w_n = Σ δ_v over n and its ancestors v, each once

and in this form it holds for a DAG, too. The paper has edges instead, from every node to each of its parents
(``ties="edges"``); in a graph of labels from each label to its neighbours, with ρ = 10⁻⁴ towards zero, so that the solution is
unique:

    min over W   ½ Σ_edges ‖w_a − w_b‖² + ½ ρ Σ_v ‖w_v‖² + C Σ_n Σ_i L(y_in w_n·x_i)

The bias is the weight of a constant feature.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ramify.errors import InputError, suggest
from ramify.learners.linear.learner import TiedLearner
from ramify.learners.linear.taxonomy_ties import Forest, Structure, tie_along_paths, tie_dag, tie_flat, tie_graph
from ramify.learners.targets import Targets, read_targets
from ramify.taxonomy import LabelGraph, Taxonomy

TIES = ("ancestors", "edges")


@dataclass(eq=False, repr=False)
class OneVsRest(TiedLearner):
    """Flat classifiers, one per labelled node."""

    supports_shards: ClassVar[bool] = True
    taxonomy: Taxonomy | None = None
    _: KW_ONLY
    C: float | str = 1.0
    class_weight: Any = None
    tol: float = 1e-3
    max_iter: int = 1000
    mode: str = "exact"
    fit_intercept: bool = True
    n_jobs: int | None = None
    random_state: int | None = 0

    def _tie(self, taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest | Structure:
        return tie_flat(taxonomy, labelled)


@dataclass(eq=False, repr=False, kw_only=True)
class OneVsRestSVM(OneVsRest):
    """Flat support vector machines (system ``svm``).

    C: cost of a unit of loss, or ``"auto"`` to select it by cross-validation.
    loss: ``"hinge"`` or ``"squared_hinge"``. class_weight: None, ``"balanced"``, or a weight by class name.
    mode: ``"exact"`` trains until the relative duality gap is at most `tol`; ``"fast"`` uses candidate negatives only.
    max_iter: passes over a class, or rounds over a tree, after which training stops with a warning.
    random_state: seed of the order in which documents are visited.

    >>> OneVsRestSVM().fit([[1, 0], [0, 1]], ["a", "b"]).predict([[2, 1]])
    array(['a'], dtype='<U1')
    """

    kind: ClassVar[str] = "one-vs-rest-svm"
    loss: str = "hinge"


class OneVsRestLogistic(OneVsRest):
    """Flat logistic regression (system ``lr``); the parameters are those of :class:`OneVsRestSVM`.

    >>> OneVsRestLogistic().fit([[1, 0], [0, 1]], ["a", "b"]).predict([[2, 1]])
    array(['a'], dtype='<U1')
    """

    kind: ClassVar[str] = "one-vs-rest-logistic"
    loss = "logistic"


class RecursiveLearner(TiedLearner):
    """Ties weights along a tree, a DAG, or a ``LabelGraph``."""

    shrinks_to_parents: ClassVar[bool] = True
    ties: str

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.ties not in TIES:
            raise InputError(f"ties is {self.ties!r}; give one of {', '.join(map(repr, TIES))}.{suggest(str(self.ties), TIES)}")

    def _tie(self, taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest | Structure:
        self._check_parameters()
        given: Any = self.taxonomy
        if isinstance(given, LabelGraph):
            return tie_graph(given, labelled)
        if self.ties == "edges" and not taxonomy.is_tree:
            return tie_dag(taxonomy, labelled)
        return tie_along_paths(taxonomy, labelled)

    def _read_targets(self, y: Any, n_documents: int) -> Targets:
        given: Any = self.taxonomy
        nodes = Taxonomy.flat(given.names) if isinstance(given, LabelGraph) else given  # labels of a graph are single nodes
        return read_targets(y, nodes, n_documents)


@dataclass(eq=False, repr=False, kw_only=True)
class RecursiveSVM(RecursiveLearner, OneVsRestSVM):
    """Support vector machines tied along the hierarchy (system ``hr-svm``); parameters as of :class:`OneVsRestSVM`.

    taxonomy: a tree, a DAG, or a ``LabelGraph``.
    ties: of a DAG, ``"ancestors"`` adds one increment for each ancestor; ``"edges"`` regularizes a node towards each parent,
    which takes far longer. Of a tree, both are the same.

    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> fitted = RecursiveSVM(taxonomy).fit([[1, 0, 0], [1, 1, 0], [0, 0, 1]], ["a/x", "a/y", "b"])
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "recursive-svm"
    ties: str = "ancestors"


@dataclass(eq=False, repr=False, kw_only=True)
class RecursiveLogistic(RecursiveLearner, OneVsRestLogistic):
    """Logistic regression tied along the hierarchy (system ``hr-lr``); parameters as of :class:`OneVsRestLogistic`.

    taxonomy: a tree, a DAG, or a ``LabelGraph``. ties: as of :class:`RecursiveSVM`.

    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> fitted = RecursiveLogistic(taxonomy).fit([[1, 0, 0], [1, 1, 0], [0, 0, 1]], ["a/x", "a/y", "b"])
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "recursive-logistic"
    ties: str = "ancestors"
