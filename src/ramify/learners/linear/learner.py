"""What all linear learners share: parameters, scores, probabilities, explanations, and how they are kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from ramify.errors import InputError, ModelError
from ramify.execution import choose_executor
from ramify.learners.contract import Learner, Result, Scores
from ramify.learners.linear.choosing import choose_cost, give_classes
from ramify.learners.linear.forest import Forest
from ramify.learners.linear.near import Signatures
from ramify.learners.linear.routing import index_weights, score_near, search
from ramify.learners.linear.solver import Certificate, Costs
from ramify.learners.linear.structure import Structure
from ramify.learners.linear.training import Setup, Trained, check_setup, train, warn_unless_converged, weigh_classes
from ramify.learners.linear.weights import Weights
from ramify.learners.paths import spread_upward
from ramify.learners.strongest import find_node, strongest
from ramify.learners.targets import Targets
from ramify.taxonomy import Taxonomy, ancestor_matrix


class Gap(float):
    """The relative duality gap of what was learnt, and what it is made of.

    primal: the objective of the weights. dual: a bound that no weights go below. rounds: how long it took.

    >>> gap = Gap(4.0, 3.0, 10)
    >>> gap, gap.primal, gap <= 0.5
    (0.25, 4.0, True)
    """

    primal: float
    dual: float
    rounds: int

    def __new__(cls, primal: float, dual: float, rounds: int) -> Gap:
        """Make it of both sides of the objective."""
        made = super().__new__(cls, Certificate(primal, dual, rounds).gap)
        made.primal, made.dual, made.rounds = primal, dual, rounds
        return made

    def __getnewargs__(self) -> tuple[float, float, int]:  # type: ignore[override]
        return self.primal, self.dual, self.rounds


class LinearLearner(Learner):
    """One linear classifier for every node that has documents of its own.

    ``class_nodes_``: the nodes that have a classifier. ``weights_``: their weights.
    ``near_``: in the fast mode, how to find the classes near a document; ``n_nearest_``: how many of them are scored.
    ``gap_``: the relative duality gap, a number, with ``primal`` and ``dual`` beside it.
    ``C_``: the cost that was used; ``C_scores_``: with ``C="auto"``, the quality of every cost that was tried.
    """

    class_nodes_: NDArray[np.int64]
    weights_: Weights
    near_: Signatures | None = None
    n_nearest_: int = 0
    gap_: Gap
    several_labels_: bool
    C: float | str
    C_: float
    C_scores_: dict[float, float]
    n_iter_: int

    # ---- what each of them says -------------------------------------------------------------------------------------

    @abstractmethod
    def _loss(self) -> str:
        """The loss by name."""

    @abstractmethod
    def _tie(self, taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest | Structure:
        """The units, and which of them are drawn to which."""

    # ---- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        setup = check_setup(self, self._loss())
        ties = self._tie(targets.taxonomy, np.unique(targets.own.indices).astype(np.int64))
        own = csr_array(targets.own[:, ties.class_nodes])

        def train_on(X: csr_array, own: csr_array, weight: Any, setup: Setup, start: Any = None) -> Trained:
            costs = weigh_classes(own.tocsc(), setup, targets.taxonomy, ties.class_nodes, weight)
            return self._train(X, own, ties, costs, setup, start)

        if self.C == "auto":
            several = bool(np.any(np.diff(own.indptr) != 1))

            def attempt(learnt: Any, held_out: Any, setup: Setup, last: Any) -> tuple[csr_array, Any]:
                tried = train_on(X[learnt], own[learnt], sample_weight[learnt], setup, last)
                return give_classes(tried, X[held_out], several), tried.start

            best, self.C_scores_ = choose_cost(own, setup, attempt)
            setup = replace(setup, C=best)
        trained = train_on(X, own, sample_weight, setup)
        warn_unless_converged(trained.certificate, setup)
        self.weights_, self.C_ = trained.weights, setup.C
        self.near_, self.n_nearest_ = trained.near, trained.n_nearest
        self.gap_ = gap_of(trained.certificate)
        self.n_iter_ = max(1, trained.certificate.rounds)
        self.several_labels_ = bool(np.any(np.diff(targets.own.indptr) != 1))
        self._set_classes(ties.class_nodes)

    def _train(self, X: csr_array, own: csr_array, ties: Any, costs: Costs, setup: Setup, start: Any) -> Trained:
        """Solve the problem for one cost (own: documents × classes)."""
        return train(X, own, ties, costs, setup, start)

    # ---- scoring ----------------------------------------------------------------------------------------------------

    def map_scores(self, X: Any, work: Callable[[Scores], Result]) -> Iterator[tuple[slice, Result]]:
        """Apply `work` to the scores of one block of rows after the other; documents × nodes is never held whole."""
        check_is_fitted(self, "taxonomy_")
        if self.near_ is None:
            self.weights_.make_ready()
        return super().map_scores(X, work)

    def _score(self, X: csr_array) -> Scores:
        S = np.full((X.shape[0], len(self.taxonomy_)), np.nan, dtype=np.float32)
        if self.near_ is None:
            S[:, self.class_nodes_] = self.weights_.score(X)
        else:
            S[:, self.class_nodes_] = score_near(X, self.weights_, self.near_, self.n_nearest_)
        return S

    def _find_best(self, X: Any) -> NDArray[np.int64]:
        if self.near_ is None:
            return super()._find_best(X)
        best = self.search(X, width=self.n_nearest_)[0][:, 0]
        return np.where(best < 0, self.class_nodes_.min(), best)  # a document that is near to nothing

    def to_probabilities(self, scores: Scores) -> Scores:
        """Sigmoids of the scores, not calibrated.

        Learnt from one label a document, they are made to add up to one, and a node gets the sum of the classes at and
        below it; otherwise it gets the largest of them.
        """
        each = 1 / (1 + np.exp(-scores[:, self.class_nodes_].astype(np.float64)))
        return spread_upward(each, self._nodes_above, self.several_labels_)

    def search(self, X: Any, k: int = 1, width: int = 10) -> tuple[NDArray[np.int64], Scores]:
        """The k best nodes of each document and their scores, of the `width` that are likeliest by their strongest weights.

        The scores are exact; a node that is not among the likeliest is never looked at. :meth:`top_k` looks at all. In the
        fast mode the likeliest are those that were near in training, and no more than can be told apart.
        """
        check_is_fitted(self, "taxonomy_")
        check_width(k, width)
        X = self._check(X, reset=False)
        if self.near_ is not None:
            index, start, width = self.near_, np.zeros(len(self.class_nodes_), dtype=np.float32), min(width, self.n_nearest_)
        else:
            if not hasattr(self, "_index"):
                self._index = index_weights(self.weights_)
            index, start = self._index, (self.weights_.paths() @ self.weights_.bias).astype(np.float32)
        classes, scores = search(X, self.weights_, index, start, int(k), int(width), choose_executor(self.n_jobs))
        return np.where(classes < 0, -1, self.class_nodes_[classes]), scores

    def contributions(self, x: csr_array, node: int) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
        """Features of one document, what each adds to the score of a class, and the bias."""
        w, bias = self.weights_.of_unit(self._unit_of(node))
        return x.indices.astype(np.int64), x.data.astype(np.float64) * w[x.indices], bias

    def top_terms(self, node: int | str, n: int = 10, feature_names: Any = None) -> list[tuple[Any, float]]:
        """The features with the largest weights for a node, strongest first, by number or by name.

        >>> from ramify.learners import OneVsRestSVM
        >>> fitted = OneVsRestSVM().fit([[1, 0], [0, 1], [1, 0]], ["a", "b", "a"])
        >>> fitted.top_terms("a", n=1, feature_names=["apple", "bread"])[0][0]
        'apple'
        """
        check_is_fitted(self, "taxonomy_")
        w, _ = self.weights_.of_unit(self._unit_of(find_node(self.taxonomy_, node)))
        return strongest(w, n, feature_names)

    def _unit_of(self, node: int) -> int:
        found = np.flatnonzero(self.class_nodes_ == node)
        if not len(found):
            name = self.taxonomy_.names[node]
            raise InputError(f"node {name!r} has no classifier, since no document was labelled with it; ask for another node.")
        return int(self.weights_.class_units[found[0]])

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays from which :meth:`from_state` makes the same learner."""
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in _NOT_KEPT}
        gap = {"primal": self.gap_.primal, "dual": self.gap_.dual, "rounds": self.gap_.rounds}
        values = {"parameters": parameters, "gap": gap, "several_labels": self.several_labels_, "chosen_C": self.C_}
        values |= {"n_features": self.weights_.n_features, "n_nearest": self.n_nearest_}
        near = {} if self.near_ is None else self.near_.kept()
        return values, self._class_arrays() | self.weights_.arrays() | near

    @classmethod
    def from_state(cls, taxonomy: Taxonomy, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make a learner from its state, after checking shapes, types and ranges."""
        parameters = dict(values["parameters"])
        if set(parameters) != set(cls().get_params(deep=False)) - _NOT_KEPT:
            raise ModelError("the parameters of the linear model are not the ones that it takes; train the model again.")
        made = cls(taxonomy, **parameters)
        check_setup(made, made._loss())
        made.several_labels_, made.C_ = bool(values["several_labels"]), float(values["chosen_C"])
        made.n_iter_ = max(1, int(values["gap"]["rounds"]))
        made.gap_ = Gap(float(values["gap"]["primal"]), float(values["gap"]["dual"]), int(values["gap"]["rounds"]))
        made.n_features_in_ = int(values["n_features"])
        made.weights_ = Weights.from_arrays(arrays, made.n_features_in_)
        made.n_nearest_ = int(values["n_nearest"])
        if made.n_nearest_ > 0:
            made.near_ = Signatures.from_kept(arrays, made.n_features_in_, len(made.weights_.class_units))
        made.taxonomy_, made.form_, made.classes_ = taxonomy, "matrix", np.asarray(taxonomy.names)
        made._restore_classes(arrays)
        return made

    def _class_arrays(self) -> dict[str, NDArray[Any]]:
        return {"class_nodes": self.class_nodes_}

    def _restore_classes(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._set_classes(_checked_nodes(arrays["class_nodes"], self.weights_, len(self.taxonomy_)))

    def _set_classes(self, nodes: NDArray[np.int64]) -> None:
        self.class_nodes_ = nodes
        self.__dict__.pop("_index", None)  # of earlier weights
        self._nodes_above = ancestor_matrix(self.taxonomy_)[nodes].astype(np.float64)


def gap_of(certificate: Certificate) -> Gap:
    """What a user sees of a certificate."""
    return Gap(certificate.primal, certificate.dual, certificate.rounds)


def check_width(k: Any, width: Any) -> None:
    """Refuse a search for more than it looks at."""
    whole = all(isinstance(number, (int, np.integer)) for number in (k, width))
    if not whole or not 1 <= k <= width:
        raise InputError(f"k is {k!r} and width {width!r}; give k of 1 or more, and a width that is no smaller.")


_NOT_KEPT = {"taxonomy", "n_jobs", "class_weight", "random_state"}


def _checked_nodes(nodes: NDArray[Any], weights: Weights, n_nodes: int) -> NDArray[np.int64]:
    if nodes.dtype != np.int64 or nodes.shape != weights.class_units.shape or len(np.unique(nodes)) < len(nodes):
        raise ModelError("the classes of the linear model do not fit its weights; train the model again.")
    if len(nodes) and (nodes.min() < 0 or nodes.max() >= n_nodes):
        raise ModelError(f"the classes of the linear model are not nodes of the taxonomy (0 to {n_nodes - 1}); train it again.")
    return nodes
