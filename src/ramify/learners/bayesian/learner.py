"""Hierarchical Bayesian logistic regression: weights are normal around those of the parent, with learned precisions α.

    y_i ~ softmax over classes k of w_k·x_i,      w_u ~ N(w_above(u), 1/α_u),      α ~ Gamma(shape, rate)

Source: Gopal, Yang, Bai & Niculescu-Mizil 2012 (HBLR; M1, M2 and M3 are `precisions` of "features", "siblings" and "node").
The model, the variational posterior and the bound are theirs; see `problem`. Deviations: the means of all nodes are updated
together by Newton's method on that bound (see `variational`), where the paper updates classes and levels in turn; the prior on
α is set from the length of documents (see :class:`BayesianLogistic`), where the paper takes the inverse Fisher information of a
simpler model; the bias is a constant feature.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from sklearn.exceptions import ConvergenceWarning

from ramify.errors import InputError, ModelError, suggest
from ramify.features.base import check_fitted
from ramify.learners.base import Scores
from ramify.learners.bayesian.problem import PRECISIONS, DenseDocuments, Documents, Groups, Problem, SparseDocuments
from ramify.learners.bayesian.variational import fit_posterior
from ramify.learners.linear.model import LinearModel
from ramify.learners.linear.problem import BLOCKS, suits_dense_solver
from ramify.learners.linear.taxonomy_ties import Forest, tie_along_paths
from ramify.learners.linear.training import check_limits, is_number, tied_rows
from ramify.learners.linear.weights import Weights
from ramify.learners.path_probabilities import aggregate_upward, softmax_rows
from ramify.learners.targets import Targets, require_one_label
from ramify.parallel import Executor, choose_executor, count_workers
from ramify.taxonomy import Taxonomy

WHAT = "hierarchical Bayesian logistic regression"
COVARIANCES = ("auto", "full", "diagonal")
SCORE = 5.0  # standard deviation of the score of a typical document, as the automatic prior expects it
MOST = 1 << 26  # numbers in a table: half a gigabyte, and training holds a dozen of them


@dataclass(eq=False, repr=False)
class BayesianLogistic(LinearModel):
    """Hierarchical Bayesian logistic regression (system ``hblr``); every document has one label.

    precisions: one α per ``"node"``, one for all ``"siblings"``, or for siblings one per feature (``"features"``).
    covariance: ``"full"`` over the weights of a class, ``"diagonal"``, or ``"auto"``: full where features
    are few and documents dense.
    shape, rate: of the Gamma prior on every α. ``"auto"`` weighs the prior like the weights that an α governs (a shape of half
    their number), so that α at most doubles, with a mean at which a typical document's score changes by 5 from a node to a
    child (a rate of shape × 25 / mean ‖x‖²).
    tol: training ends when the bound on the evidence grows relatively by no more than this in a round.

    ``weights_``: the posterior means. ``evidence_``: a lower bound on the logarithm of the evidence, after every round.
    ``precisions_``: the posterior mean of α by unit, units or units × features, in the order of ``weights_``.

    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> fitted = BayesianLogistic(taxonomy).fit([[1, 0, 0], [1, 1, 0], [0, 0, 1]], ["a/x", "a/y", "b"])
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "bayesian-logistic"
    uses_main_parents: ClassVar[bool] = True
    supports_multi_label: ClassVar[bool] = False
    taxonomy: Taxonomy | None = None
    _: KW_ONLY
    precisions: str = "node"
    covariance: str = "auto"
    shape: float | str = "auto"
    rate: float | str = "auto"
    tol: float = 1e-5
    max_iter: int = 100
    fit_intercept: bool = True
    n_jobs: int | None = None

    def _check_parameters(self) -> None:
        for name, allowed in (("precisions", PRECISIONS), ("covariance", COVARIANCES)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in allowed:
                known = ", ".join(map(repr, allowed))
                raise InputError(f"{name} is {value!r}; give one of {known}.{suggest(str(value), allowed)}")
        for name in ("shape", "rate"):
            value = getattr(self, name)
            is_auto = isinstance(value, str) and value == "auto"
            if not is_auto and (not is_number(value) or not 1e-12 <= value <= 1e12):
                raise InputError(f"{name} is {value!r}; give a number above 0 (from 1e-12 to 1e+12), or 'auto'.")
        check_limits(self, "a relative growth of the evidence")
        count_workers(self.n_jobs)  # refuses what is no number of threads

    # ---- training ---------------------------------------------------------------------------------------------------

    def _fit(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        self._check_parameters()
        require_one_label(targets, WHAT, "system='hr-lr'")
        forest = tie_along_paths(targets.taxonomy.tree, np.unique(targets.own.indices).astype(np.int64))
        executor = choose_executor(self.n_jobs)
        problem = self._problem(X, targets, sample_weight, forest, executor)
        q, found, growth = fit_posterior(problem, executor, self.tol, self.max_iter)
        if growth > self.tol:
            warnings.warn(
                f"training stopped after {len(found)} rounds while the evidence still grew by {growth:.2g} of itself a round, "
                f"above tol={self.tol:g}; raise max_iter, or accept the growth by raising tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.weights_: Weights = tied_rows(q.means, forest, self.fit_intercept)
        self.precisions_ = q.precisions() if problem.groups.per_feature else q.precisions()[:, 0]
        self.evidence_, self.n_iter_ = np.asarray(found), len(found)
        self._set_classes(forest.class_nodes)

    def _problem(self, X: csr_array, targets: Targets, weights: Any, forest: Forest, executor: Executor) -> Problem:
        if self.fit_intercept:  # a last feature that is 1 in every document, for the bias
            X = csr_array(hstack([X, csr_array(np.ones((X.shape[0], 1), dtype=X.dtype))], format="csr"))
        counts = weights > 0
        weights, documents = weights[counts], self._documents(X[counts], forest, executor)
        labels = np.empty(len(targets.taxonomy), dtype=np.int64)
        labels[forest.class_nodes] = np.arange(len(forest.class_nodes))
        groups = Groups.of(forest, self.precisions)
        shape = 0.5 * groups.governed(documents.shape[1])  # shape and rate of every group, groups × 1
        if not isinstance(self.shape, str):
            shape = np.full(shape.shape, float(self.shape))
        if not isinstance(self.rate, str):
            rate = np.full(shape.shape, float(self.rate))
        else:
            length = float(weights @ documents.squared_norms()) / max(float(weights.sum()), 1e-300)
            rate = shape * SCORE**2 / (length if length > 0 else 1.0)
        return Problem(documents, labels[targets.own.indices[counts]], weights, forest, groups, shape, rate)

    def _documents(self, X: csr_array, forest: Forest, executor: Executor) -> Documents:
        (n_documents, n_features), n_classes = X.shape, len(forest.class_nodes)
        held = (n_features, len(forest), "features × nodes"), (n_documents, n_classes, "documents × classes")
        for rows, columns, what in held:
            if rows * columns > MOST:
                raise InputError(
                    f"{what} are {rows:,} × {columns:,}, and {WHAT} holds tables of up to {MOST:,} numbers; "
                    "choose fewer features, or use system='hr-lr', which scales."
                )
        suited = suits_dense_solver(n_documents, n_features, X.nnz, n_classes)
        if self.covariance == "diagonal" or (self.covariance == "auto" and not suited):
            return SparseDocuments.of(X, executor)
        if n_classes * n_features**2 > BLOCKS:
            raise InputError(
                f"full covariances of {n_classes:,} classes over {n_features:,} features are too large to hold; "
                "give covariance='diagonal', or choose fewer features."
            )
        return DenseDocuments(X.toarray().astype(np.float64), executor)

    # ---- scoring ----------------------------------------------------------------------------------------------------

    def to_probabilities(self, scores: Scores) -> Scores:
        """The softmax of the scores that posterior means give; a node gets the sum of the classes at and below it."""
        return aggregate_upward(softmax_rows(scores[:, self.class_nodes_]), self._nodes_above, is_multi_label=False)

    def mean_precision_by_level(self) -> list[float]:
        """The mean of α over the units of every level, from the top down; a document's own class below its node is a level."""
        check_fitted(self)
        depth = np.zeros(len(self.precisions_), dtype=np.int64)
        for unit, above in enumerate(self.weights_.parent.tolist()):  # parents come first
            depth[unit] = 0 if above < 0 else depth[above] + 1
        return [float(self.precisions_[depth == level].mean()) for level in range(depth.max() + 1)]

    def training_facts(self) -> dict[str, Any]:
        """The evidence, and how strongly nodes are shrunk towards their parents, on average by level."""
        means = enumerate(self.mean_precision_by_level(), start=1)
        levels = {f"mean_precision_of_level_{level}": mean for level, mean in means}
        return {"evidence": float(self.evidence_[-1]), "rounds": self.n_iter_, **levels}

    # ---- state ------------------------------------------------------------------------------------------------------

    def _extra_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {}, {"evidence": self.evidence_, "precisions": self.precisions_}

    def _restore(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.evidence_, self.precisions_ = (np.asarray(arrays[name]) for name in ("evidence", "precisions"))
        fits = self.evidence_.ndim == 1 and len(self.evidence_) > 0 and len(self.precisions_) == len(self.weights_.parent)
        if not fits or not np.isfinite(self.evidence_).all() or not (self.precisions_ > 0).all():
            raise ModelError("evidence and precisions are not ones that the model writes; train the model again.")
        self.n_iter_ = len(self.evidence_)
