"""Flat one-vs-rest classifiers over the labelled nodes: the solver of recursive regularization with nothing above a class.

    min over w_n   ½‖w_n‖² + C Σ_i L(y_in w_n·x_i)     for every labelled node n on its own

Source: the systems SVM and LR of Gopal & Yang 2013, section 4.2. A constant feature stands for the bias.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ramify.learners.linear.forest import Forest, stand_alone
from ramify.learners.linear.learner import TiedLearner
from ramify.learners.linear.structure import Structure
from ramify.taxonomy import Taxonomy


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
        return stand_alone(taxonomy, labelled)


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
        return stand_alone(taxonomy, labelled)
