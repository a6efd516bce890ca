"""Recursive regularization: the weights of every node are drawn to those of its parent.

    min over W   ½ Σ_v ‖w_v − w_parent(v)‖² + C Σ_n Σ_i L(y_in w_n·x_i)

over all nodes v with documents at or below them, with the loss of the labelled nodes n; a root is drawn to zero. A document
labelled at an inner node counts for a class of its own below that node.
Source: Gopal & Yang 2013, sections 3.1 to 3.3 (HR-SVM and HR-LR).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ramify.learners.linear.forest import Forest, tie_along_paths
from ramify.learners.one_vs_rest import OneVsRestLogistic, OneVsRestSVM
from ramify.taxonomy import Taxonomy


class RecursiveSVM(OneVsRestSVM):
    """Support vector machines tied along the hierarchy (system ``hr-svm``); parameters as of :class:`OneVsRestSVM`.

    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> fitted = RecursiveSVM(taxonomy).fit([[1, 0, 0], [1, 1, 0], [0, 0, 1]], ["a/x", "a/y", "b"])
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "recursive-svm"

    def _tie(self, taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest:
        return tie_along_paths(taxonomy, labelled)


class RecursiveLogistic(OneVsRestLogistic):
    """Logistic regression tied along the hierarchy (system ``hr-lr``); parameters as of :class:`OneVsRestLogistic`.

    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> fitted = RecursiveLogistic(taxonomy).fit([[1, 0, 0], [1, 1, 0], [0, 0, 1]], ["a/x", "a/y", "b"])
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "recursive-logistic"

    def _tie(self, taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest:
        return tie_along_paths(taxonomy, labelled)
