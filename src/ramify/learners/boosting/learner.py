"""The base class of both boosted learners: training, scoring and state of their committees."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sklearn.utils.validation import _check_sample_weight

from ramify.errors import InputError, ModelError
from ramify.features.base import check_fitted
from ramify.formatting import cut
from ramify.learners.base import Contributions, PartialFitLearner, Result, Scores, find_node, is_fitted, top_features
from ramify.learners.boosting.committee import Committee, CommitteeTree, Floats, Ints, committee_arrays, read_committees
from ramify.learners.boosting.problems import Documents
from ramify.learners.boosting.rounds import VARIANTS, Question, Settings, boost_all, reusable_committees
from ramify.learners.linear.training import seed_of
from ramify.learners.naive_bayes.word_counts import is_count
from ramify.learners.targets import Targets, is_nested, read_further_targets, refuse_single_class
from ramify.metrics.flat import f1, per_node
from ramify.parallel import choose_executor
from ramify.persistence import is_increasing
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_specific

MOST_ROUNDS = 1_000_000


@dataclass(eq=False, repr=False)
class BoostedLearner(PartialFitLearner):
    """Committees of stumps, each for the classes of one node.

    ``committees_``: in node order; see :class:`Committee`. ``merged_``, ``merged_with_``: nodes that are passed whenever
    another is, and these others (-1: passed by every document). ``class_nodes_``: the most specific labels of training
    documents. ``n_rounds_``: the rounds of the longest committee.
    """

    taxonomy: Taxonomy | None = None
    _: KW_ONLY
    n_rounds: int = 500
    variant: str = "R"
    early_stopping: bool = False
    validation_fraction: float = 0.1
    patience: int = 50
    n_jobs: int | None = None
    random_state: int | None = 0

    @abstractmethod
    def _questions(self, targets: Targets) -> tuple[list[Question], list[tuple[int, int]]]:
        """The nodes that get a committee, with its classes; and the nodes that are merged with others."""

    @abstractmethod
    def _document_nodes(self, targets: Targets) -> csr_array:
        """Documents × nodes: whether a document belongs to a node."""

    # ---- training ---------------------------------------------------------------------------------------------------

    def _fit(self, X: csr_array, targets: Targets, sample_weight: Floats) -> None:
        settings = self._settings()
        counted = replace(targets, own=csr_array(targets.own[sample_weight > 0]))
        refuse_single_class(np.unique(counted.own.indices), targets.taxonomy)
        asked, merged = self._questions(counted)
        self.class_nodes_ = np.unique(counted.own.indices).astype(np.int64)
        self.is_multi_label_ = bool(np.any(np.diff(targets.own.indptr) != 1))
        document_nodes = self._document_nodes(targets)
        documents = Documents(X, document_nodes, sample_weight)
        reused = self._reuse(document_nodes, asked)
        fresh = [Committee.empty(*question) for question, same in zip(asked, reused, strict=True) if same is None]
        made = iter(self._boost(documents, settings, fresh) if fresh else [])
        committees = [next(made) if same is None else same for same in reused]
        self._set_committees(committees, *np.asarray(merged, dtype=np.int64).reshape(-1, 2).T)

    def _reuse(self, document_nodes: csr_array, asked: list[Question]) -> list[Committee | None]:
        """Committees of an earlier learner with the same parameters and documents; None where there is none."""
        start = self._warm_start
        if start is None or type(start.learner) is not type(self):
            return [None] * len(asked)
        other = start.learner
        has_all_rounds = self.early_stopping or other.n_rounds_ in (0, self.n_rounds)  # none were cut off or added
        if not has_all_rounds or self._model_params() != other._model_params():
            return [None] * len(asked)
        were = other._document_nodes(Targets(other.taxonomy_, start.own, "matrix"))
        reused = reusable_committees(start, were, document_nodes, asked)
        self.reused_ = sum(same is not None for same in reused), len(reused)
        return reused

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, taxonomy: Taxonomy | None = None
    ) -> Self:
        """Add `n_rounds` rounds, starting from the weights that the committees so far give these documents.

        With the documents of the first fit this equals one longer fit. Classes and taxonomy cannot change.
        """
        if not is_fitted(self):
            if classes is not None and not is_nested(y) and np.ndim(y) == 1 and not np.isin(classes, y).all():
                raise InputError("boosting cannot add classes later; give documents of every class at first.")
            return self.fit(X, y, sample_weight)
        with self._restore_on_error():
            X = self._validate(X, reset=False)
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            targets = self._later_targets(y, X.shape[0], taxonomy)
            documents = Documents(X, self._document_nodes(targets), weights)
            committees = self._boost(documents, self._settings(), self.committees_)
            own = csr_array(targets.own[weights > 0])
            self.class_nodes_ = np.union1d(self.class_nodes_, own.indices).astype(np.int64)
            self.is_multi_label_ |= bool(np.any(np.diff(own.indptr) != 1))
            self._set_committees(committees, self.merged_, self.merged_with_)
        return self

    def widen(self, columns: NDArray[np.int64], n_features: int) -> None:
        """Make room for new terms: each old one moves to its entry of `columns`."""
        self.n_features_in_ = n_features
        moved = [replace(committee, pivots=columns[committee.pivots]) for committee in self.committees_]
        self._set_committees(moved, self.merged_, self.merged_with_)

    def with_used_features(self) -> tuple[NDArray[np.int64], Self]:
        """The columns of all pivots, and the same learner over these columns alone."""
        check_fitted(self)
        self._compact.n_jobs = self.n_jobs
        return self._tree.columns, self._compact

    @cached_property
    def _compact(self) -> Self:
        made, columns = copy(self), self._tree.columns
        made.n_features_in_ = len(columns)
        moved = [replace(each, pivots=np.searchsorted(columns, each.pivots)) for each in self.committees_]
        made._set_committees(moved, self.merged_, self.merged_with_)
        return made

    def _boost(self, documents: Documents, settings: Settings, before: list[Committee]) -> list[Committee]:
        executor = choose_executor(self.n_jobs if len(before) > 1 else None)
        return boost_all(executor, documents, settings, before)

    def _later_targets(self, y: Any, n_documents: int, taxonomy: Taxonomy | None = None) -> Targets:
        """Labels of further documents; refuses nodes that no committee scores."""
        self._refuse_other(self.taxonomy_ if taxonomy is None else taxonomy)
        values = self.classes_ if self.form_ == "classes" else None
        targets = read_further_targets(y, n_documents, self.taxonomy_, None, values, None)
        self._refuse_other(targets.taxonomy)
        known = np.zeros(len(self.taxonomy_), dtype=bool)
        known[self._tree.nodes] = known[self._tree.merged] = True
        unknown = np.flatnonzero(~known[targets.own.indices])
        if len(unknown):
            name = self.taxonomy_.names[int(targets.own.indices[unknown[0]])]
            raise InputError(f"node {name!r} had no documents when the model was trained; train anew to add it.")
        return targets

    def _refuse_other(self, taxonomy: Taxonomy) -> None:
        if taxonomy is self.taxonomy_ or taxonomy == self.taxonomy_:
            return
        new = next((name for name in taxonomy.names if name not in self.taxonomy_.names), None)
        what = "the taxonomy is another one" if new is None else f"node {new!r} is new"
        raise InputError(f"{what}, and boosting cannot change its nodes; train anew.")

    def _settings(self) -> Settings:
        for name, value in (("n_rounds", self.n_rounds), ("patience", self.patience)):
            if not is_count(value) or value > MOST_ROUNDS:
                raise InputError(f"{name} is {cut(repr(value), 80)}; give a whole number from 1 to {MOST_ROUNDS:,}.")
        if self.variant not in VARIANTS:
            raise InputError(f"variant is {self.variant!r}; give 'R', 'RA' (abstaining) or 'D' (discrete).")
        if not isinstance(self.early_stopping, (bool, np.bool_)):
            raise InputError(f"early_stopping is {self.early_stopping!r}; give true or false.")
        held_out = self.validation_fraction
        if not isinstance(held_out, (float, np.floating)) or not 0 < held_out < 1:
            raise InputError(f"validation_fraction is {held_out!r}; give a fraction between 0 and 1, such as 0.1.")
        rounds, patience = int(self.n_rounds), int(self.patience)
        return Settings(self.variant, rounds, bool(self.early_stopping), float(held_out), patience, seed_of(self.random_state))

    def _set_committees(self, committees: list[Committee], merged: Ints, merged_with: Ints) -> None:
        self.committees_, self.merged_, self.merged_with_ = committees, merged, merged_with
        self.n_rounds_: int = max((committee.n_rounds for committee in committees), default=0)
        self._tree = CommitteeTree.of(committees, merged, merged_with)
        self.__dict__.pop("_compact", None)

    # ---- scoring ----------------------------------------------------------------------------------------------------

    def _score(self, X: csr_array) -> Scores:
        return self._tree.score_in_place(X, self._no_scores(X.shape[0]))

    def map_positive_scores(self, X: Any, work: Callable[[Scores], Result]) -> Iterator[tuple[slice, Result]]:
        """As :meth:`map_scores`, but nodes below one with a score of 0 or less are not scored, and have NaN."""
        return self._map_blocks(X, lambda block: work(self._tree.score_in_place(block, self._no_scores(block.shape[0]), 0.0)))

    def predict_sets(self, X: Any) -> csr_array:
        """The nodes with positive scores and positive ancestors, closed upward: boolean CSR, documents × nodes.

        Only committees below such nodes are evaluated, and dense documents × nodes never exists as a whole.
        """
        parts = [part for _, part in self._map_blocks(X, lambda block: self._tree.passed(block, len(self.taxonomy_)))]
        passed = csr_array(vstack(parts, format="csr")) if parts else csr_array((0, len(self.taxonomy_)), dtype=bool)
        return expand_to_ancestors(passed, self.taxonomy_)

    def margins(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """The scores, where exactly 0 counts as negative."""
        return np.where(scores == 0, -np.finfo(np.float32).tiny, scores)

    def staged_scores(self, X: Any, rounds: Iterable[int]) -> Iterator[tuple[int, Scores]]:
        """Scores after each of some numbers of rounds, without training again."""
        for s in rounds:
            yield s, self.at_round(s).scores(X)

    def at_round(self, rounds: int) -> Self:
        """The same learner after some rounds of every committee; all of them where there are fewer."""
        check_fitted(self)
        if not is_count(rounds):
            raise InputError(f"rounds is {rounds!r}; give a whole number of 1 or more.")
        made = copy(self)
        made.n_rounds = min(int(rounds), self.n_rounds)
        made._set_committees([committee.first(rounds) for committee in self.committees_], self.merged_, self.merged_with_)
        return made

    def choose_rounds(self, X: Any, y: Any, rounds: Iterable[int] | None = None) -> tuple[int, dict[int, float]]:
        """The number of rounds with the best micro F1 over most specific labels on validation documents, and F1 by number.

        rounds: the numbers to try; by default some thirty up to all. The least of equally good ones wins.
        """
        check_fitted(self)
        X = self._validate(X, reset=False)
        own = self._later_targets(y, X.shape[0]).own
        tried = sorted(set(rounds)) if rounds is not None else _rounds_to_try(self.n_rounds_)
        quality = {}
        for s in tried:
            predicted = most_specific(self.at_round(s).predict_sets(X), self.taxonomy_)
            quality[s] = float(f1(per_node(csr_array(predicted.multiply(own))).sum(), own.nnz, predicted.nnz))
        if not quality:
            raise InputError("there are no numbers of rounds to try; give some, such as 10, 100, 1000.")
        return max(quality, key=lambda s: (quality[s], -s)), quality

    def votes_on(self, x: csr_array, node: int) -> Contributions:
        """Features of one document, what the presence of each adds to a node's score, and the bias; 0 without a committee."""
        features = x.indices.astype(np.int64)
        columns, votes, bias = self._tree.votes_for(node) or (features[:0], np.zeros(0), 0.0)
        places = np.searchsorted(columns, features).clip(max=max(0, len(columns) - 1))
        is_pivot = columns[places] == features if len(columns) else np.zeros(len(features), dtype=bool)
        added = np.zeros(len(features))
        added[is_pivot] = votes[places[is_pivot]]
        return features, added, bias

    def top_terms(self, node: int | str, n: int = 10, feature_names: Any = None) -> list[tuple[Any, float]]:
        """The terms whose presence speaks most for a node, largest first, by number or by name."""
        check_fitted(self)
        place = find_node(self.taxonomy_, node)
        votes = self._tree.votes_for(place) if place in self._tree.nodes else None
        if votes is None:
            name = self.taxonomy_.names[place]
            raise InputError(f"node {name!r} has no classifier: it has no documents, or is the only way on; ask for another.")
        weights = np.zeros(self.n_features_in_)
        weights[votes[0]] = votes[1]
        return top_features(weights, n, feature_names)

    # ---- state ------------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays from which :meth:`from_state` makes the same learner."""
        parameters = self._model_params() | {"random_state": seed_of(self.random_state)}
        values = {"parameters": parameters, "n_features": int(self.n_features_in_), "is_multi_label": self.is_multi_label_}
        nodes = {"merged": self.merged_, "merged_with": self.merged_with_, "class_nodes": self.class_nodes_}
        return values, committee_arrays(*self.committees_) | nodes

    @classmethod
    def from_state(cls, taxonomy: Taxonomy, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make a learner from its state, after checking shapes, types and ranges."""
        parameters, n_features = dict(values["parameters"]), values["n_features"]
        fits = set(parameters) == set(cls()._model_params()) and isinstance(values["is_multi_label"], bool)
        if not fits or not isinstance(n_features, int) or n_features < 1:
            raise ModelError("the parameters of boosting are not the ones that it takes; train the model again.")
        made = cls(taxonomy, **parameters)
        made._settings()
        made.n_features_in_, made.is_multi_label_ = n_features, values["is_multi_label"]
        made.taxonomy_, made.form_, made.classes_ = taxonomy, "matrix", np.asarray(taxonomy.names)
        committees = read_committees(arrays, n_features, len(taxonomy))
        nodes, merged, merged_with = listed = [arrays[name] for name in ("class_nodes", "merged", "merged_with")]
        if any(array.dtype != np.int64 or array.ndim != 1 for array in listed):
            raise ModelError("the nodes of boosting are of another type than it writes; train the model again.")
        scored = np.concatenate([merged, *(committee.classes for committee in committees)])
        if not is_increasing(nodes, strictly=True) or not np.isin(nodes, scored).all():
            raise ModelError("the labels of boosting are not nodes that it scores; train the model again.")
        made.class_nodes_ = nodes
        made._check_places(committees, merged, merged_with)
        made._set_committees(committees, merged, merged_with)
        return made

    @abstractmethod
    def _check_places(self, committees: list[Committee], merged: Ints, merged_with: Ints) -> None:
        """Refuse committees of a model file at impossible nodes."""

    def _validate(self, X: Any, reset: bool) -> csr_array:
        X = super()._validate(X, reset)
        if X.nnz and not X.data.all():  # a stored zero is no term
            X = X.copy()
            X.eliminate_zeros()
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # only whether a value is 0 counts
        return tags


def _rounds_to_try(most: int) -> list[int]:
    """Numbers from 1 to the most, closer together at first.

    >>> _rounds_to_try(8)
    [1, 2, 3, 4, 5, 6, 7, 8]
    """
    return sorted({max(1, round(most ** (step / 29))) for step in range(30)} | set(range(1, min(most, 8) + 1)))
