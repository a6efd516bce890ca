"""HSVM: a support vector machine over whole paths, one problem in which all classes compete for every document.

    f_c(x) = Σ w_v·x over the nodes v on the path to class c
    min over W   ½ Σ_v ‖w_v‖² + C Σ_i max over classes c of [Δ(y_i, c) + f_c(x_i) − f_{y_i}(x_i)]

Δ is half the number of edges between two classes in the tree, or 1 between any two. A document labelled at an inner node counts
for a class of its own below that node.

Source: Cai & Hofmann 2004 (hierarchical document categorization with support vector machines), with margins rescaled by the
loss as in Tsochantaridis et al. 2005; the system HSVM of Gopal & Yang 2013, section 4.2.
Deviation: they find the worst outputs one after the other and solve a quadratic program over the ones found. Here dual ascent
runs over all classes of every document until the duality gap is small. The bias is a constant feature.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import InputError, suggest
from ramify.learners.base import Scores
from ramify.learners.linear.dual_solver import TrainedWeights
from ramify.learners.linear.learner import TiedLearner
from ramify.learners.linear.problem import Costs
from ramify.learners.linear.taxonomy_ties import Forest, tie_along_paths
from ramify.learners.linear.training import Setup
from ramify.learners.path_probabilities import aggregate_upward, softmax_rows
from ramify.learners.structured.problem import Floats, Outputs, build_problem, refuse_too_large, to_weights
from ramify.learners.structured.solver import DualState, SquaredNorm, solve
from ramify.learners.targets import Targets, require_one_label
from ramify.taxonomy import Taxonomy

MARGINS = ("tree", "one")


@dataclass(eq=False, repr=False)
class HierarchicalSVM(TiedLearner):
    """One large-margin model of all paths (system ``hsvm``); a document has one label.

    margin: Δ: ``"tree"``, the distance of two classes in the tree, or ``"one"`` between any two.
    C: the cost of a unit of loss, or ``"auto"`` to select it by cross-validation. class_weight: None, ``"balanced"``, or a
    weight by class name. tol: relative duality gap. max_iter: rounds after which training ends with a warning.
    random_state: the order in which documents are visited. n_jobs: threads for scoring; training uses one.

    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> fitted = HierarchicalSVM(taxonomy).fit([[1, 0, 0], [1, 1, 0], [0, 0, 1]], ["a/x", "a/y", "b"])
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "hierarchical-svm"
    uses_main_parents: ClassVar[bool] = True
    supports_multi_label: ClassVar[bool] = False
    taxonomy: Taxonomy | None = None
    _: KW_ONLY
    C: float | str = 1.0
    margin: str = "tree"
    class_weight: Any = None
    tol: float = 1e-3
    max_iter: int = 1000
    fit_intercept: bool = True
    n_jobs: int | None = None
    random_state: int | None = 0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.margin not in MARGINS:
            raise InputError(
                f"margin is {self.margin!r}; give {' or '.join(map(repr, MARGINS))}.{suggest(str(self.margin), MARGINS)}"
            )

    def _tie(self, taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest:
        return tie_along_paths(taxonomy.tree, labelled)

    def _fit(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        self._check_parameters()
        require_one_label(targets, "hsvm", "system='hr-svm'")
        super()._fit(X, targets, sample_weight)

    def _train(self, X: csr_array, own: csr_array, ties: Any, costs: Costs, setup: Setup, start: Any = None) -> TrainedWeights:
        n = len(ties.class_nodes)
        refuse_too_large(X.shape[1] + 1, len(ties), (len(own.indices) + n) * n, "hsvm", "system='hr-svm'")
        margins = tree_distances(ties) if self.margin == "tree" else 1.0 - np.eye(n)
        problem = build_problem(X, own, path_outputs(ties, margins), len(ties), costs, setup.bias)
        state = DualState.start(problem, SquaredNorm(), setup.settings.seed) if start is None else start.rescale(problem)
        W, certificate = solve(state, setup.settings)
        classes = np.flatnonzero(ties.class_of >= 0).astype(np.int64)
        return TrainedWeights(to_weights(W, problem.rows, ties.parent, classes), certificate, state)

    def to_probabilities(self, scores: Scores) -> Scores:
        """A softmax over the classes, not calibrated; a node gets the sum of the classes at and below it."""
        return aggregate_upward(softmax_rows(scores[:, self.class_nodes_]), self._nodes_above, is_multi_label=False)


def path_outputs(forest: Forest, margins: Floats) -> Outputs:
    """Every class is an output: all units on its path (margins: classes × classes, 0 on the diagonal)."""
    class_units = np.flatnonzero(forest.class_of >= 0)
    n = len(class_units)
    above = np.split(forest.above, forest.above_offsets[1:-1])
    listed = [np.append(units, unit).astype(np.int32) for units, unit in zip(above, class_units, strict=True)]
    own_first = np.tile(np.arange(n, dtype=np.int32), (n, 1))
    for c in range(n):
        own_first[c, : c + 1] = [c, *range(c)]
    units = np.concatenate(listed)
    return Outputs(
        offsets=n * np.arange(n + 1, dtype=np.int64),
        outputs=own_first.ravel(),
        margins=np.take_along_axis(margins, own_first.astype(np.int64), axis=1).ravel(),
        unit_offsets=np.concatenate([[0], np.cumsum([len(path) for path in listed])]).astype(np.int64),
        units=units,
        signs=np.ones(len(units)),
    )


def tree_distances(forest: Forest) -> Floats:
    """Half the number of edges between two classes, with one root above all: classes × classes.

    >>> from ramify import Taxonomy
    >>> from ramify.learners.linear.taxonomy_ties import tie_along_paths
    >>> tree = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> tree_distances(tie_along_paths(tree, np.asarray([tree.index("b"), tree.index("a/x"), tree.index("a/y")])))
    array([[0. , 1. , 1.5],
           [1. , 0. , 1.5],
           [1.5, 1.5, 0. ]])
    """
    n, lengths = len(forest.above_offsets) - 1, np.diff(forest.above_offsets) + 1
    contains = np.zeros((n, len(forest)))  # whether a unit is on the path to a class
    contains[np.repeat(np.arange(n), lengths - 1), forest.above] = 1
    contains[np.arange(n), np.flatnonzero(forest.class_of >= 0)] = 1
    return np.asarray((lengths[:, None] + lengths[None, :]) / 2 - contains @ contains.T)
