"""What both boosted learners share: their parameters, their committees, and how these score, go on, and are kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ramify.errors import InputError
from ramify.learners.base import Contributions, PartialFitLearner, Result, Scores, find_node, top_features
from ramify.learners.boosting.committee import (
    Cascade,
    Committee,
    Floats,
    Ints,
    committee_arrays,
    make_cascade,
    read_committees,
    read_nodes,
    read_parameters,
)
from ramify.learners.boosting.problems import Documents, TermChoice
from ramify.learners.boosting.rounds import VARIANTS, Settings, boost_all, known_committees
from ramify.learners.linear.training import seed_of
from ramify.learners.naive_bayes.word_counts import is_count
from ramify.learners.targets import Targets, is_nested, read_further_targets, refuse_single_class
from ramify.metrics.flat import f1, per_node
from ramify.parallel import choose_executor
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_specific


class BoostedLearner(PartialFitLearner):
    """Committees of stumps, each for the classes of one node.

    ``committees_``: of every node that has one, in node order; see :class:`Committee`.
    ``merged_``, ``merged_with_``: nodes that are passed whenever another is, and these (-1: by every document).
    ``class_nodes_``: the nodes that are most specific labels of training documents. ``n_rounds_``: the rounds of the longest
    committee.
    """

    committees_: list[Committee]
    merged_: Ints
    merged_with_: Ints
    class_nodes_: Ints
    is_multi_label_: bool
    n_rounds: int
    n_rounds_: int
    variant: str
    early_stopping: bool
    validation_fraction: float
    patience: int
    random_state: int | None
    _cascade: Cascade
    _narrow: Self | None

    # ---- what each of them says -------------------------------------------------------------------------------------

    @abstractmethod
    def _pose(self, targets: Targets) -> tuple[list[tuple[int, Ints]], list[tuple[int, int]]]:
        """The nodes at which something is asked, with the classes there; and nodes that are merged with others."""

    @abstractmethod
    def _members(self, targets: Targets) -> csr_array:
        """Documents × nodes: which of them are documents of a node, and of a class."""

    def _choice(self) -> TermChoice | None:
        """Which terms each committee looks at; None for all."""
        return None

    # ---- learning ---------------------------------------------------------------------------------------------------

    def _fit(self, X: csr_array, targets: Targets, sample_weight: Floats) -> None:
        settings = self._settings()
        counted = self._counted(targets, sample_weight)
        asked, merged = self._pose(counted)
        self.class_nodes_ = np.unique(counted.own.indices).astype(np.int64)
        self.is_multi_label_ = bool(np.any(np.diff(targets.own.indptr) != 1))
        members = self._members(targets)
        documents = Documents(X, members, sample_weight)
        known = self._known_committees(members, asked)
        fresh = [Committee.empty(*question) for question, same in zip(asked, known, strict=True) if same is None]
        made = iter(self._boost(documents, settings, fresh) if fresh else [])
        committees = [next(made) if same is None else same for same in known]
        self._set_committees(committees, *np.asarray(merged, dtype=np.int64).reshape(-1, 2).T)

    def _known_committees(self, members: csr_array, asked: list[tuple[int, Ints]]) -> list[Committee | None]:
        """Committees that an earlier learner with the same parameters made of the same documents."""
        before = self._warm_start
        if before is None or type(before.learner) is not type(self):
            return [None] * len(asked)
        other = before.learner
        same = {name: value for name, value in self.get_params().items() if name not in ("taxonomy", "n_jobs")}
        is_whole = self.early_stopping or other.n_rounds_ in (0, self.n_rounds)  # nobody has taken rounds away or added some
        if not is_whole or any(getattr(other, name) != value for name, value in same.items()):
            return [None] * len(asked)
        were = other._members(Targets(other.taxonomy_, before.own, "matrix"))
        known = known_committees(before, were, members, asked)
        self.reused_ = sum(same is not None for same in known), len(known)
        return known

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, taxonomy: Taxonomy | None = None
    ) -> Self:
        """Make `n_rounds` more rounds, from the weights that the committees so far give these documents.

        With the documents of the first fit this is the same as one longer fit. Classes and taxonomy stay what they were then.
        """
        if not hasattr(self, "taxonomy_"):
            if classes is not None and not is_nested(y) and np.ndim(y) == 1 and not np.isin(classes, y).all():
                raise InputError("boosting takes no classes in later; give documents of every class at first.")
            return self.fit(X, y, sample_weight)
        with self._restore_on_error():
            X = self._validate(X, reset=False)
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            targets = self._later_targets(y, X.shape[0], taxonomy)
            documents = Documents(X, self._members(targets), weights)
            committees = self._boost(documents, self._settings(), self.committees_)
            own = csr_array(targets.own[weights > 0])
            self.class_nodes_ = np.union1d(self.class_nodes_, own.indices).astype(np.int64)
            self.is_multi_label_ |= bool(np.any(np.diff(own.indptr) != 1))
            self._set_committees(committees, self.merged_, self.merged_with_)
        return self

    def widen(self, columns: NDArray[np.int64], n_features: int) -> None:
        """Make room for more terms: each old one moves to one of the new columns, the others are new."""
        self.n_features_in_ = n_features
        moved = [committee.with_pivots(columns[committee.pivots]) for committee in self.committees_]
        self._set_committees(moved, self.merged_, self.merged_with_)

    def with_used_features(self) -> tuple[NDArray[np.int64], Self]:
        """The columns that any pivot needs, and a learner for documents that have these columns only."""
        check_is_fitted(self, "taxonomy_")
        columns = self._cascade.columns
        if self._narrow is None:
            made = copy(self)
            made.n_features_in_ = len(columns)
            moved = [committee.with_pivots(np.searchsorted(columns, committee.pivots)) for committee in self.committees_]
            made._set_committees(moved, self.merged_, self.merged_with_)
            self._narrow = made
        self._narrow.n_jobs = self.n_jobs
        return columns, self._narrow

    def _boost(self, documents: Documents, settings: Settings, before: list[Committee]) -> list[Committee]:
        """Add rounds to committees, which come back in their order."""
        executor = choose_executor(self.n_jobs if len(before) > 1 else None)
        return boost_all(executor, documents, settings, self._choice(), before)

    def _counted(self, targets: Targets, weight: Floats) -> Targets:
        """Labels of the documents that weigh something."""
        own = csr_array(targets.own[weight > 0])
        refuse_single_class(np.unique(own.indices), targets.taxonomy)
        return Targets(targets.taxonomy, own, targets.form, targets.classes)

    def _later_targets(self, y: Any, n_documents: int, taxonomy: Taxonomy | None = None) -> Targets:
        """Labels of documents that come after the first; refuses nodes that no committee and no merged node answers for."""
        self._refuse_other(self.taxonomy_ if taxonomy is None else taxonomy)
        values = self.classes_ if self.form_ == "classes" else None
        targets = read_further_targets(y, n_documents, self.taxonomy_, None, values, None)
        self._refuse_other(targets.taxonomy)
        known = np.zeros(len(self.taxonomy_), dtype=bool)
        known[self._cascade.nodes] = known[self._cascade.merged] = True
        strange = np.flatnonzero(~known[targets.own.indices])
        if len(strange):
            name = self.taxonomy_.names[int(targets.own.indices[strange[0]])]
            raise InputError(f"node {name!r} had no documents when the model was trained; train anew to add it.")
        return targets

    def _refuse_other(self, taxonomy: Taxonomy) -> None:
        if taxonomy is self.taxonomy_ or taxonomy == self.taxonomy_:
            return
        new = next((name for name in taxonomy.names if name not in self.taxonomy_.names), None)
        what = "the taxonomy is another one" if new is None else f"node {new!r} is new"
        raise InputError(f"{what}, and boosting goes on with the nodes that it began with; train anew to change them.")

    def _settings(self) -> Settings:
        for name in ("n_rounds", "patience"):
            if not is_count(getattr(self, name)):
                raise InputError(f"{name} is {getattr(self, name)!r}; give a whole number of 1 or more.")
        if self.variant not in VARIANTS:
            raise InputError(f"variant is {self.variant!r}; give 'R', 'RA' (abstaining) or 'D' (discrete).")
        if not isinstance(self.early_stopping, (bool, np.bool_)):
            raise InputError(f"early_stopping is {self.early_stopping!r}; give true or false.")
        share = self.validation_fraction
        if not isinstance(share, (float, np.floating)) or not 0 < share < 1:
            raise InputError(f"validation_fraction is {share!r}; give a share between 0 and 1, such as 0.1.")
        rounds, patience = int(self.n_rounds), int(self.patience)
        return Settings(self.variant, rounds, bool(self.early_stopping), float(share), patience, seed_of(self.random_state))

    def _set_committees(self, committees: list[Committee], merged: Ints, merged_with: Ints) -> None:
        self.committees_, self.merged_, self.merged_with_ = committees, merged, merged_with
        self.n_rounds_ = max((committee.n_rounds for committee in committees), default=0)
        self._cascade, self._narrow = make_cascade(committees, merged, merged_with), None

    # ---- scoring ----------------------------------------------------------------------------------------------------

    def _score(self, X: csr_array) -> Scores:
        return self._cascade.score(X, len(self.taxonomy_))

    def map_positive_scores(self, X: Any, work: Callable[[Scores], Result]) -> Iterator[tuple[slice, Result]]:
        """As :meth:`map_scores`, but nodes below those that do not pass are not looked at, and have NaN."""
        return self._map_blocks(X, lambda block: work(self._cascade.score(block, len(self.taxonomy_), threshold=0.0)))

    def predict_sets(self, X: Any) -> csr_array:
        """The nodes that each document passes, all their ancestors included: boolean CSR, documents × nodes.

        Only committees below nodes that a document passes are asked, and documents × nodes is never held whole.
        """
        parts = [part for _, part in self._map_blocks(X, lambda block: self._cascade.passed(block, len(self.taxonomy_)))]
        taken = csr_array(vstack(parts, format="csr")) if parts else csr_array((0, len(self.taxonomy_)), dtype=bool)
        return expand_to_ancestors(taken, self.taxonomy_)

    def margins(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """The scores, where one of exactly 0 is a no."""
        return np.where(scores == 0, -np.finfo(np.float32).tiny, scores)

    def staged_scores(self, X: Any, rounds: Iterable[int]) -> Iterator[tuple[int, Scores]]:
        """Scores after so many rounds each, without training again."""
        for s in rounds:
            yield s, self.at_round(s).scores(X)

    def at_round(self, rounds: int) -> Self:
        """The same learner after so many rounds of every committee; all that there are, where there are fewer."""
        check_is_fitted(self, "taxonomy_")
        if not is_count(rounds):
            raise InputError(f"rounds is {rounds!r}; give a whole number of 1 or more.")
        made = copy(self)
        made.n_rounds = min(int(rounds), self.n_rounds)
        made._set_committees([committee.first(rounds) for committee in self.committees_], self.merged_, self.merged_with_)
        return made

    def choose_rounds(self, X: Any, y: Any, rounds: Iterable[int] | None = None) -> tuple[int, dict[int, float]]:
        """How many rounds serve some validation documents best, and micro F1 over most specific labels for each number tried.

        rounds: the numbers to try; by default some thirty up to all that there are. Of equally good ones the least is taken.
        """
        check_is_fitted(self, "taxonomy_")
        X = self._validate(X, reset=False)
        own = self._later_targets(y, X.shape[0]).own
        tried = sorted(set(rounds)) if rounds is not None else _spread_out(self.n_rounds_)
        quality = {}
        for s in tried:
            given = most_specific(self.at_round(s).predict_sets(X), self.taxonomy_)
            quality[s] = float(f1(per_node(csr_array(given.multiply(own))).sum(), own.nnz, given.nnz))
        if not quality:
            raise InputError("there are no numbers of rounds to try; give some, such as 10, 100, 1000.")
        return max(quality, key=lambda s: (quality[s], -s)), quality

    def votes_on(self, x: csr_array, node: int) -> Contributions:
        """Features of one document, what the presence of each adds to a node's score, and the bias; 0 where nobody votes."""
        features = x.indices.astype(np.int64)
        columns, votes, bias = self._cascade.votes_for(node) or (features[:0], np.zeros(0), 0.0)
        places = np.searchsorted(columns, features).clip(max=max(0, len(columns) - 1))
        is_asked = columns[places] == features if len(columns) else np.zeros(len(features), dtype=bool)
        added = np.zeros(len(features))
        added[is_asked] = votes[places[is_asked]]
        return features, added, bias

    def votes_of(self, node: int) -> tuple[Floats, float] | None:
        """What the presence of every term adds to a node's score, and its bias; None where no committee answers for it."""
        votes = self._cascade.votes_for(node) if node in self._cascade.nodes else None
        if votes is None:
            return None
        w = np.zeros(self.n_features_in_)
        w[votes[0]] = votes[1]
        return w, votes[2]

    def top_terms(self, node: int | str, n: int = 10, feature_names: Any = None) -> list[tuple[Any, float]]:
        """The terms whose presence speaks most for a node, largest first, by number or by name."""
        check_is_fitted(self, "taxonomy_")
        place = find_node(self.taxonomy_, node)
        votes = self.votes_of(place)
        if votes is None:
            name = self.taxonomy_.names[place]
            raise InputError(f"node {name!r} has no classifier: it has no documents, or is the only way on; ask for another.")
        return top_features(votes[0], n, feature_names)

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays from which :meth:`from_state` makes the same learner."""
        given = {name: value for name, value in self.get_params(deep=False).items() if name not in ("taxonomy", "n_jobs")}
        parameters = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
        parameters["random_state"] = seed_of(self.random_state)
        values = {"parameters": parameters, "n_features": int(self.n_features_in_), "several_labels": self.is_multi_label_}
        nodes = {"merged": self.merged_, "merged_with": self.merged_with_, "class_nodes": self.class_nodes_}
        return values, committee_arrays(self.committees_) | nodes

    @classmethod
    def from_state(cls, taxonomy: Taxonomy, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make a learner from its state, after checking shapes, types and ranges."""
        made = cls(taxonomy, **read_parameters(values, cls().get_params(deep=False)))
        made._settings()
        made.n_features_in_, made.is_multi_label_ = values["n_features"], values["several_labels"]
        made.taxonomy_, made.form_, made.classes_ = taxonomy, "matrix", np.asarray(taxonomy.names)
        committees = read_committees(arrays, made.n_features_in_, len(taxonomy))
        made.class_nodes_ = read_nodes(arrays, committees)
        made._check_places(committees, arrays["merged"], arrays["merged_with"])
        made._set_committees(committees, arrays["merged"], arrays["merged_with"])
        return made

    @abstractmethod
    def _check_places(self, committees: list[Committee], merged: Ints, merged_with: Ints) -> None:
        """Refuse committees of a model file that do not stand where they can."""

    def _validate(self, X: Any, reset: bool) -> csr_array:
        X = super()._validate(X, reset)
        if X.nnz and not X.data.all():  # a zero that is written down is no term
            X = X.copy()
            X.eliminate_zeros()
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # only whether a value is 0 counts
        return tags


def _spread_out(most: int) -> list[int]:
    """Numbers from 1 to the most, closer together at first.

    >>> _spread_out(8)
    [1, 2, 3, 4, 5, 6, 7, 8]
    """
    return sorted({max(1, round(most ** (step / 29))) for step in range(30)} | set(range(1, min(most, 8) + 1)))
