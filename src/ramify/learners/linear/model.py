"""What all linear models share, however they were learnt: scores, explanations, and how they are kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from ramify.errors import InputError, ModelError
from ramify.execution import choose_executor
from ramify.learners.competing import CompetingClasses
from ramify.learners.contract import Result, Scores
from ramify.learners.evidence import Contributions
from ramify.learners.linear.routing import index_weights, search
from ramify.learners.linear.weights import Weights
from ramify.learners.strongest import find_node, strongest
from ramify.taxonomy import Taxonomy, ancestor_matrix


class LinearModel(CompetingClasses):
    """One vector of weights for every node that has documents of its own.

    ``class_nodes_``: the nodes that have weights. ``weights_``: their weights.
    """

    weights_: Weights

    # ---- what each of them says -------------------------------------------------------------------------------------

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that mean nothing."""

    def _kept(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What there is to keep beside parameters, classes and weights."""
        return {}, {}

    def _restore(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what was kept, after checking it."""

    # ---- scoring ----------------------------------------------------------------------------------------------------

    def map_scores(self, X: Any, work: Callable[[Scores], Result]) -> Iterator[tuple[slice, Result]]:
        """Apply `work` to the scores of one block of rows after the other; documents × nodes is never held whole."""
        check_is_fitted(self, "taxonomy_")
        self._make_ready()
        return super().map_scores(X, work)

    def _make_ready(self) -> None:
        """Arrange what scoring needs, before several threads do so at once."""
        self.weights_.make_ready()

    def _score(self, X: csr_array) -> Scores:
        S = np.full((X.shape[0], len(self.taxonomy_)), np.nan, dtype=np.float32)
        S[:, self.class_nodes_] = self._score_classes(X)
        return S

    def _score_classes(self, X: csr_array) -> Scores:
        return self.weights_.score(X)

    def search(self, X: Any, k: int = 1, width: int = 10) -> tuple[NDArray[np.int64], Scores]:
        """The k best nodes of each document and their scores, of the `width` that are likeliest by their strongest weights.

        The scores are exact; a node that is not among the likeliest is never looked at. :meth:`top_k` looks at all. In the
        fast mode the likeliest are those that were near in training, and no more than can be told apart.
        """
        check_is_fitted(self, "taxonomy_")
        check_width(k, width)
        X = self._check(X, reset=False)
        index, start, width = self._likely(int(width))
        classes, scores = search(X, self.weights_, index, start, int(k), width, choose_executor(self.n_jobs))
        return np.where(classes < 0, -1, self.class_nodes_[classes]), scores

    def _likely(self, width: int) -> tuple[Any, NDArray[np.float32], int]:
        """How to find likely classes, what each starts from, and how many of them to score."""
        if not hasattr(self, "_index"):
            self._index = index_weights(self.weights_)
        return self._index, (self.weights_.paths() @ self.weights_.bias).astype(np.float32), width

    def contributions(self, x: csr_array, node: int) -> Contributions:
        """Features of one document, what each adds to the score of a class, and the bias."""
        return self.weights_.contributions(x, self._unit_of(node))

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
        values, arrays = self._kept()
        values = {"parameters": parameters, "n_features": self.weights_.n_features} | values
        return values, self._class_arrays() | self.weights_.arrays() | arrays

    @classmethod
    def from_state(cls, taxonomy: Taxonomy, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make a learner from its state, after checking shapes, types and ranges."""
        parameters = dict(values["parameters"])
        if set(parameters) != set(cls().get_params(deep=False)) - _NOT_KEPT:
            raise ModelError("the parameters of the linear model are not the ones that it takes; train the model again.")
        made = cls(taxonomy, **parameters)
        made._check_parameters()
        made.n_features_in_ = int(values["n_features"])
        made.weights_ = Weights.from_arrays(arrays, made.n_features_in_)
        made._restore(values, arrays)
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
