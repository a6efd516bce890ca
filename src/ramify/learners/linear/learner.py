"""What linear learners with a loss, a cost and a duality gap share."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.special import expit

from ramify.errors import ModelError
from ramify.learners.base import Scores
from ramify.learners.linear.candidates import Signatures
from ramify.learners.linear.incremental import (
    begin_leaves,
    check_figures,
    columns_of,
    has_same_parameters,
    reuse_or_train,
    solve_reached,
    start_from,
)
from ramify.learners.linear.model import LinearModel
from ramify.learners.linear.problem import Certificate, Costs
from ramify.learners.linear.select_C import cross_validate_C, predict_classes
from ramify.learners.linear.shards import Shard, ShardedWeights, cut_evenly, files_of
from ramify.learners.linear.taxonomy_ties import Forest, Structure, flat_units
from ramify.learners.linear.top_k import score_near
from ramify.learners.linear.training import Setup, TrainedWeights, check_setup, train, warn_unless_converged, weigh_classes
from ramify.learners.linear.warm_start import Dual
from ramify.learners.linear.weights import Weights
from ramify.learners.path_probabilities import spread_few_upward, spread_upward
from ramify.learners.targets import Targets
from ramify.learners.warm_start import same_columns
from ramify.parallel import Executor, shard_directory
from ramify.persistence import ArrayFile
from ramify.taxonomy import Taxonomy

MOST_KEPT = 1 << 25  # dual variables that are kept with a model
IMPOSSIBLE = np.float32(-1e4)  # the score of the class that a document gets for want of a better one


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


class LinearLearner(LinearModel):
    """Linear classifiers with a loss each, for every node that has documents of its own.

    ``signatures_``: in the fast mode, how to find the classes near a document; ``n_candidates_``: how many of them are scored.
    ``gap_``: the relative duality gap, a number, with ``primal`` and ``dual`` beside it.
    ``dual_``, ``class_figures_``: where training is to go on later, dual variables, and what is certain of every class.
    ``slack_``: how much of the gap is that of weights which an update has held.
    ``C_``: the cost that was used; ``C_scores_``: with ``C="auto"``, the quality of every cost that was tried.
    """

    signatures_: Signatures | None = None
    n_candidates_: int = 0
    dual_: Dual | None = None
    class_figures_: NDArray[np.float64] | None = None
    slack_: float = 0.0
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

    # ---- learning ---------------------------------------------------------------------------------------------------

    def _take(self, trained: TrainedWeights, setup: Setup, targets: Targets) -> None:
        """Keep what was learnt, and tell where it stopped before the gap was reached."""
        warn_unless_converged(trained.certificate, setup)
        self.weights_, self.C_ = trained.weights, setup.C
        self.signatures_, self.n_candidates_ = trained.near, trained.n_nearest
        self.class_figures_ = trained.figures if self.keeps_warm_start else None
        is_small = trained.dual is not None and len(trained.dual.values) <= MOST_KEPT
        self.dual_ = trained.dual if self.keeps_warm_start and is_small else None
        certificate = trained.certificate
        self.gap_ = Gap(certificate.primal, certificate.dual, certificate.rounds)
        self.n_iter_ = max(1, certificate.rounds)
        self.several_labels_ = bool(np.any(np.diff(targets.own.indptr) != 1))

    def _check_parameters(self) -> None:
        check_setup(self, self._loss())

    # ---- scoring ----------------------------------------------------------------------------------------------------

    def _make_ready(self) -> None:
        if self.signatures_ is None:
            super()._make_ready()

    def _score_classes(self, X: csr_array) -> Scores:
        if self.signatures_ is None:
            return super()._score_classes(X)
        assert isinstance(self.weights_, Weights)
        return score_near(X, self.weights_, self.signatures_, self.n_candidates_)

    def _find_best(self, X: Any) -> NDArray[np.int64]:
        if self.signatures_ is None:
            return super()._find_best(X)
        best = self.search(X, width=self.n_candidates_)[0][:, 0]
        return np.where(best < 0, self.class_nodes_.min(), best)  # a document that is near to nothing

    def _shards(self) -> Sequence[Shard]:
        if self.signatures_ is None or not isinstance(self.weights_, Weights):
            return super()._shards()
        return [Shard.by_nearness(self.weights_, self.signatures_)]

    def _width(self, width: int) -> int:
        return min(width, self.n_candidates_) if self.n_candidates_ else width

    def _look(self, X: csr_array, executor: Executor) -> tuple[NDArray[np.int64], Scores]:
        nodes, scores = super()._look(X, executor)
        lost = nodes[:, 0] < 0  # near to nothing
        nodes[lost, 0], scores[lost, 0] = self.class_nodes_.min(), IMPOSSIBLE
        return nodes, scores

    def to_probabilities(self, scores: Any) -> Any:
        """Sigmoids of the scores, not calibrated.

        Learnt from one label a document, they are made to add up to one, and a node gets the sum of the classes at and
        below it; otherwise it gets the largest of them. Classes that were not looked at are impossible. Sparse scores give
        sparse probabilities.
        """
        if issparse(scores):
            return self._few_to_probabilities(scores)
        each = expit(scores[:, self.class_nodes_].astype(np.float64))
        if self.scores_candidates_only:
            each = np.nan_to_num(each, nan=0.0)
        return spread_upward(each, self._nodes_above, self.several_labels_)

    def _few_to_probabilities(self, few: csr_array) -> Any:
        place = np.empty(len(self.taxonomy_), dtype=np.int64)
        place[self.class_nodes_] = np.arange(len(self.class_nodes_))
        shape = (few.shape[0], len(self.class_nodes_))
        each = csr_array((expit(few.data.astype(np.float64)), place[few.indices], few.indptr), shape=shape)
        return spread_few_upward(each, self._nodes_above, self.several_labels_)

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def _kept(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        gap = {"primal": self.gap_.primal, "dual": self.gap_.dual, "rounds": self.gap_.rounds}
        values = {"gap": gap, "several_labels": self.several_labels_, "chosen_C": self.C_, "n_nearest": self.n_candidates_}
        if self.slack_:
            values["loose"] = self.slack_
        arrays = {} if self.signatures_ is None else self.signatures_.kept()
        if self.class_figures_ is not None:
            arrays["class_figures"] = self.class_figures_
        return values, arrays if self.dual_ is None else arrays | self.dual_.arrays()

    def _restore(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.several_labels_, self.C_ = bool(values["several_labels"]), float(values["chosen_C"])
        self.n_iter_ = max(1, int(values["gap"]["rounds"]))
        self.gap_ = Gap(float(values["gap"]["primal"]), float(values["gap"]["dual"]), int(values["gap"]["rounds"]))
        self.n_candidates_ = int(values["n_nearest"])
        if "dual_offsets" in arrays:
            self.dual_ = Dual.from_arrays(arrays, self.weights_.n_classes)
        self.slack_ = float(values.get("loose", 0.0))
        if "class_figures" in arrays:
            self.class_figures_ = check_figures(arrays["class_figures"], self.weights_.n_classes)
        if isinstance(self.weights_, ShardedWeights):
            if self.weights_.is_fast != (self.n_candidates_ > 0):
                raise ModelError("the shards are not those of this model: their mode differs; train the model again.")
        elif self.n_candidates_ > 0:
            self.signatures_ = Signatures.from_kept(arrays, self.n_features_in_, self.weights_.n_classes)

    def state_in_shards(self, n_shards: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]], list[ArrayFile]]:
        """The state of the same model with its weights in so many shards, and their files, which are made when written."""
        assert isinstance(self.weights_, Weights)
        stretches = cut_evenly(self.weights_.n_classes, n_shards)
        values, arrays = self.state()
        apart = {*self.weights_.arrays(), *({} if self.signatures_ is None else self.signatures_.kept())}
        values |= {"shards": [stretch.stop - stretch.start for stretch in stretches], "beam": self.beam_}
        kept = {name: array for name, array in arrays.items() if name not in apart}
        return values, kept, files_of(self.weights_, self.signatures_, stretches)


def new_shards() -> Path | None:
    """A directory for the shards of one model, where large ones are to be written in shards."""
    directory = shard_directory()
    return None if directory is None else Path(tempfile.mkdtemp(prefix="shards-", dir=directory)).absolute()


class TiedLearner(LinearLearner):
    """Linear classifiers that are learnt in one problem, whose units are tied to each other or stand alone."""

    shrinks_to_parents: ClassVar[bool] = False  # whether a node without documents is best off with the weights of its parent

    @abstractmethod
    def _tie(self, taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest | Structure:
        """The units, and which of them are drawn to which."""

    def _learn(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        setup = check_setup(self, self._loss())
        ties = self._tie(targets.taxonomy, np.unique(targets.own.indices).astype(np.int64))
        own = csr_array(targets.own[:, ties.class_nodes])

        def train_on(X: csr_array, own: csr_array, weight: Any, setup: Setup, start: Any = None) -> TrainedWeights:
            costs = weigh_classes(own.tocsc(), setup, targets.taxonomy, ties.class_nodes, weight)
            return self._train(X, own, ties, costs, setup, start)

        if self.C == "auto":
            several = bool(np.any(np.diff(own.indptr) != 1))

            def attempt(learnt: Any, held_out: Any, setup: Setup, last: Any) -> tuple[csr_array, Any]:
                tried = train_on(X[learnt], own[learnt], sample_weight[learnt], setup, last)
                return predict_classes(tried, X[held_out], several), tried.start

            best, self.C_scores_ = cross_validate_C(own, setup, attempt)
            setup = replace(setup, C=best)
        shards = new_shards() if self._warm_start is None else None
        setup = replace(setup, shards=shards, keep_dual=self.keeps_warm_start)
        trained, self.slack_ = self._take_over(X, own, ties, setup), 0.0
        start = None if trained is not None else self._start(own, setup)
        if start is not None:
            trained, start = self._solve_reached(X, own, ties, setup, start)
        self._take(trained or train_on(X, own, sample_weight, setup, start), setup, targets)
        self._set_classes(ties.class_nodes)
        if self._warm_start is not None and self.shrinks_to_parents and isinstance(ties, Forest):
            assert isinstance(self.weights_, Weights)
            self.weights_, leaves = begin_leaves(self.weights_, ties, self._warm_start.leaves, targets.taxonomy.parent)
            self._set_classes(np.append(ties.class_nodes, leaves))

    def _start(self, own: csr_array, setup: Setup) -> Dual | None:
        """What an earlier learner leaves to go on from; classes that it does not know begin at 0."""
        before = self._warm_start
        start = start_from(before, own) if before is not None and has_same_parameters(self, before, setup.C) else None
        self.warm_started_ = start is not None
        return start

    def _solve_reached(
        self, X: csr_array, own: csr_array, ties: Any, setup: Setup, start: Dual
    ) -> tuple[TrainedWeights | None, Dual | None]:
        """The part of a tree that a change has reached, where that is enough; and what the whole can start from otherwise."""
        before = self._warm_start
        if before is None or not isinstance(ties, Forest) or ties.is_flat or not self.shrinks_to_parents:
            return None, start
        costs = weigh_classes(own.tocsc(), setup, self.taxonomy_, ties.class_nodes, np.ones(X.shape[0]))
        found = solve_reached(X, own, ties, costs, setup, before, start)
        if isinstance(found, Dual):
            return None, found
        self.slack_, self.reused_ = found.loose, (found.taken_over, own.shape[1])
        return found.trained, None

    def _take_over(self, X: csr_array, own: csr_array, ties: Any, setup: Setup) -> TrainedWeights | None:
        """Classes that stand alone, and have the same documents on both sides as before, are as they were."""
        before = self._warm_start
        if before is None or not has_same_parameters(self, before, setup.C) or not (isinstance(ties, Forest) and ties.is_flat):
            return None
        other = before.learner
        if not before.has_same_documents or other.class_figures_ is None:
            return None

        def train_some(some: NDArray[np.int64]) -> TrainedWeights:
            mine, nodes = csr_array(own[:, some]), ties.class_nodes[some]
            costs = weigh_classes(mine.tocsc(), setup, self.taxonomy_, nodes, np.ones(X.shape[0]))
            return train(X, mine, flat_units(nodes), costs, setup)

        taken = same_columns([before.now(columns_of(before.own, other.class_nodes_))], [own.tocsc()])
        self.reused_ = int(np.sum(taken >= 0)), len(taken)
        dual = None if other.dual_ is None else other.dual_.numbered(before.documents)
        return reuse_or_train(taken, other.weights_, other.class_figures_, train_some, dual)

    def _train(self, X: csr_array, own: csr_array, ties: Any, costs: Costs, setup: Setup, start: Any) -> TrainedWeights:
        """Solve the problem for one cost (own: documents × classes)."""
        return train(X, own, ties, costs, setup, start)
