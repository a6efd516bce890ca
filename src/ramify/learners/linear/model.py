"""What all linear models share, however they were trained: scoring, explanations, saving and loading."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import InputError, ModelError
from ramify.features.base import check_fitted
from ramify.learners.base import Contributions, MulticlassLearner, Result, Scores, find_node, top_features
from ramify.learners.linear import shards
from ramify.learners.linear.candidates import Signatures
from ramify.learners.linear.shards import Shard, ShardedWeights
from ramify.learners.linear.weights import MOST_FEATURES, Weights
from ramify.parallel import Executor, SerialExecutor, choose_executor
from ramify.persistence import ArrayFile, LazyArrays, OpenedArrays, are_indices, checked_count
from ramify.taxonomy import Taxonomy, ancestor_matrix

IMPOSSIBLE = np.float32(-1e4)  # the score of the class that a document without candidates gets
_NOT_SAVED = {"taxonomy", "n_jobs", "class_weight", "random_state"}


class LinearModel(MulticlassLearner):
    """One weight vector for every node that has documents of its own.

    ``class_nodes_``: the nodes that have weights. ``weights_``: their weights, in one piece or in shards.
    ``beam_``: of a model in shards, how many candidate classes of a document are scored, picked by their largest weights; all
    others have probability 0.
    ``signatures_``, ``n_candidates_``: in the fast mode, how candidate classes are found, and how many are scored.
    """

    weights_: Weights | ShardedWeights
    signatures_: Signatures | None = None
    n_candidates_: int = 0
    beam_: int = shards.BEAM
    _shard: Shard | None = None

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise InputError for parameters that are not allowed."""

    def _extra_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What there is to save beside parameters, classes and weights."""
        return {}, {}

    def _restore(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Restore what :meth:`_extra_state` saved, after checking it."""

    # ---- scoring ----------------------------------------------------------------------------------------------------

    def map_scores(self, X: Any, work: Callable[[Scores], Result]) -> Iterator[tuple[slice, Result]]:
        """Apply `work` to the scores of one block of rows after the other; documents × nodes is never held whole."""
        check_fitted(self)
        if isinstance(self.weights_, Weights) and self.signatures_ is None:
            self.weights_.make_ready()
        return super().map_scores(X, work)

    def _score(self, X: csr_array) -> Scores:
        S = self._no_scores(X.shape[0])
        if self.scores_candidates_only:
            found = self._candidate_scores(X)
            S[np.repeat(np.arange(X.shape[0]), np.diff(found.indptr)), found.indices] = found.data
        else:
            assert isinstance(self.weights_, Weights)
            S[:, self.class_nodes_] = shards.score_classes(X, self.weights_, self.signatures_, self.n_candidates_)
        return S

    # ---- scoring candidates only --------------------------------------------------------------------------------------

    @property
    def scores_candidates_only(self) -> bool:
        """Whether only candidate classes of a document are scored, as in a model in shards; others have NaN."""
        check_fitted(self)
        return isinstance(self.weights_, ShardedWeights)

    def map_candidate_scores(self, X: Any, work: Callable[[csr_array], Result]) -> Iterator[tuple[slice, Result]]:
        """As :meth:`map_scores`, with a sparse matrix of scores, documents × nodes; nodes that are not scored are absent."""
        return self._map_blocks(X, lambda block: work(self._candidate_scores(block)), 16 * self.beam_ * self.taxonomy_.n_levels)

    def among(self, is_allowed: NDArray[np.bool_]) -> Self:
        """The same model in shards with some nodes as candidates only. is_allowed: one per node."""
        assert isinstance(self.weights_, ShardedWeights)
        made = copy(self)
        made.weights_ = self.weights_.among(is_allowed[self.class_nodes_])
        return made

    def _candidate_scores(self, X: csr_array) -> csr_array:
        nodes, scores = self._score_candidates(X, SerialExecutor())
        there = nodes >= 0
        ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        return csr_array((scores[there], nodes[there], ends), shape=(X.shape[0], len(self.taxonomy_)))

    def _score_candidates(self, X: csr_array, executor: Executor) -> tuple[NDArray[np.int64], Scores]:
        """The candidate nodes of each document in order of number, and their scores; -1 where there are fewer.

        A document without candidates gets the first class, with an impossible score.
        """
        beam = _checked_beam(self.beam_)
        classes, scores = shards.score_likeliest(X, self._shards(), min(beam, self.n_candidates_ or beam), executor)
        nodes = np.where(classes < 0, len(self.taxonomy_), self.class_nodes_[classes])
        order = np.argsort(nodes, axis=1)
        nodes, scores = np.take_along_axis(nodes, order, axis=1), np.take_along_axis(scores, order, axis=1)
        nodes, has_none = np.where(nodes < len(self.taxonomy_), nodes, -1), nodes[:, 0] == len(self.taxonomy_)
        nodes[has_none, 0], scores[has_none, 0] = self.class_nodes_.min(), IMPOSSIBLE
        return nodes, scores

    def _predict_nodes(self, X: Any) -> NDArray[np.int64]:
        if self.signatures_ is not None:
            best = self.search(X, width=self.n_candidates_)[0][:, 0]
            return np.where(best < 0, self.class_nodes_.min(), best)  # a document without candidates
        return self.top_k(X, 1)[0][:, 0] if self.scores_candidates_only else super()._predict_nodes(X)

    def top_k(self, X: Any, k: int = 5) -> tuple[NDArray[np.int64], Scores]:
        """The k best-scoring nodes of each document and their scores, best first; -1 where there are fewer.

        Exact; scores of all nodes exist for a block of documents at a time only. Of a model in shards, the k best of the
        candidate classes.
        """
        if not self.scores_candidates_only:
            return super().top_k(X, k)
        check_fitted(self)
        check_width(k, k)
        return shards.best_first(*self._score_candidates(self._validate(X, reset=False), choose_executor(self.n_jobs)), int(k))

    def search(self, X: Any, k: int = 1, width: int = 10) -> tuple[NDArray[np.int64], Scores]:
        """The k best of `width` candidate nodes of each document, and their scores.

        Candidates are the likeliest nodes by their largest weights, in the fast mode by their signatures. Scores are exact,
        but other nodes are not scored; :meth:`top_k` scores all.
        """
        check_fitted(self)
        check_width(k, width)
        X, width = self._validate(X, reset=False), min(int(width), self.n_candidates_ or int(width))
        classes, scores = shards.search(X, self._shards(), int(k), width, choose_executor(self.n_jobs))
        return np.where(classes < 0, -1, self.class_nodes_[classes]), scores

    def _shards(self) -> Sequence[Shard]:
        """The shards to search; weights in one piece are one shard."""
        if isinstance(self.weights_, ShardedWeights):
            return self.weights_.shards
        if self.signatures_ is not None:
            return [Shard.by_signatures(self.weights_, self.signatures_)]
        if self._shard is None:
            self._shard = Shard.by_weights(self.weights_, shards.index_weights(self.weights_))
        return [self._shard]

    # ---- explaining ---------------------------------------------------------------------------------------------------

    def contributions(self, x: csr_array, node: int) -> Contributions:
        """Features of a document, what each adds to the score of a class, and the bias."""
        return self._class_contributions(x, self._class_of(node))

    def _class_contributions(self, x: csr_array, k: int) -> Contributions:
        w, bias = self.weights_.at_features(k, x.indices)
        return x.indices.astype(np.int64), x.data.astype(np.float64) * w, bias

    def top_terms(self, node: int | str, n: int = 10, feature_names: Any = None) -> list[tuple[Any, float]]:
        """The features with the largest weights for a node, largest first, by number or by name.

        >>> from ramify.learners import OneVsRestSVM
        >>> fitted = OneVsRestSVM().fit([[1, 0], [0, 1], [1, 0]], ["a", "b", "a"])
        >>> fitted.top_terms("a", n=1, feature_names=["apple", "bread"])[0][0]
        'apple'
        """
        check_fitted(self)
        w, _ = self.weights_.of_class(self._class_of(find_node(self.taxonomy_, node)))
        return top_features(w, n, feature_names)

    def _class_of(self, node: int) -> int:
        found = np.flatnonzero(self.class_nodes_ == node)
        if not len(found):
            name = self.taxonomy_.names[node]
            raise InputError(f"node {name!r} has no classifier, since no document was labelled with it; ask for another node.")
        return int(found[0])

    # ---- saving -----------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays from which :meth:`from_state` makes the same learner, with :meth:`shard_files` if any."""
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in _NOT_SAVED}
        values, arrays = self._extra_state()
        values = {"parameters": parameters, "n_features": self.weights_.n_features} | values
        if isinstance(self.weights_, ShardedWeights):
            return values | {"shards": self.weights_.sizes, "beam": self.beam_}, self._class_arrays() | arrays
        return values, self._class_arrays() | self.weights_.arrays() | arrays

    @property
    def shard_bytes(self) -> int:
        """The size of the weights of a model in shards."""
        if not isinstance(self.weights_, ShardedWeights):
            return 0
        return sum(array.nbytes for shard in self.weights_.shards for array in shard.arrays().values())

    def training_facts(self) -> dict[str, Any]:
        """Of a model in shards: how many there are, and how many classes of a document are scored."""
        if not isinstance(self.weights_, ShardedWeights):
            return {}
        return {"shards": len(self.weights_.shards), "beam": self.beam_}

    def shard_files(self) -> list[ArrayFile]:
        """The files of a model in shards; empty for a model in one piece."""
        if not isinstance(self.weights_, ShardedWeights):
            return []
        return [LazyArrays(shard.arrays) if shard.file is None else shard.file for shard in self.weights_.shards]

    @classmethod
    def from_state(
        cls, taxonomy: Taxonomy, values: dict[str, Any], arrays: dict[str, NDArray[Any]], shards: Sequence[OpenedArrays] = ()
    ) -> Self:
        """Make a learner from its state, after checking shapes, types and ranges."""
        parameters = dict(values["parameters"])
        if set(parameters) != set(cls().get_params(deep=False)) - _NOT_SAVED:
            raise ModelError("the parameters of the linear model are not the ones that it takes; train the model again.")
        made = cls(taxonomy, **parameters)
        made._check_parameters()
        made.n_features_in_ = checked_count(values, "n_features", 1, MOST_FEATURES)
        made._restore_weights(values, arrays, shards)
        made._restore(values, arrays)
        made.taxonomy_, made.form_, made.classes_ = taxonomy, "matrix", np.asarray(taxonomy.names)
        made._restore_classes(arrays)
        return made

    def _restore_weights(self, values: dict[str, Any], arrays: Any, shards: Sequence[OpenedArrays]) -> None:
        if not shards and "shards" not in values:
            self.weights_ = Weights.from_arrays(arrays, self.n_features_in_)
            return
        if not self.supports_shards or len(shards) != len(values.get("shards", ())):
            expected = len(values.get("shards", ())) if self.supports_shards else "none"
            raise ModelError(f"the model has {len(shards)} shards where {expected} were written; train the model again.")
        weights = ShardedWeights.open(shards)
        if weights.sizes != values["shards"] or weights.n_features != self.n_features_in_:
            raise ModelError("the shards are not those of this model: classes or features differ; train the model again.")
        self.weights_, self.beam_ = weights, _checked_beam(values["beam"])

    def _class_arrays(self) -> dict[str, NDArray[Any]]:
        return {"class_nodes": self.class_nodes_}

    def _restore_classes(self, arrays: dict[str, NDArray[Any]]) -> None:
        nodes, n_nodes = arrays["class_nodes"], len(self.taxonomy_)
        if nodes.dtype != np.int64 or nodes.shape != (self.weights_.n_classes,) or len(np.unique(nodes)) < len(nodes):
            raise ModelError("the classes of the linear model do not fit its weights; train the model again.")
        if not are_indices(nodes, n_nodes):
            raise ModelError(
                f"the classes of the linear model are not nodes of the taxonomy (0 to {n_nodes - 1}); train it again."
            )
        self._set_classes(nodes)

    def _set_classes(self, nodes: NDArray[np.int64]) -> None:
        self.class_nodes_, self._shard = nodes, None
        self._nodes_above = ancestor_matrix(self.taxonomy_)[nodes].astype(np.float64)


def check_width(k: Any, width: Any) -> None:
    """Check that k is at most the width of a search."""
    whole = all(isinstance(number, (int, np.integer)) for number in (k, width))
    if not whole or not 1 <= k <= width:
        raise InputError(f"k is {k!r} and width {width!r}; give k of 1 or more, and a width that is no smaller.")


def _checked_beam(beam: Any) -> int:
    if not isinstance(beam, (int, np.integer)) or isinstance(beam, bool) or beam < 2:
        raise InputError(f"beam_ is {beam!r}; give a whole number of classes to score, 2 or more.")
    return int(beam)
