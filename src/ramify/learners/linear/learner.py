"""The scikit-learn face of linear learners with a loss, a cost and a duality gap.

``fit`` (learners/base.py) checks documents and labels and calls ``TiedLearner._fit``, which selects C and calls
``training.train``; that one calls ``dual_solver.solve``.
"""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, issparse
from scipy.special import expit

from ramify.errors import ModelError
from ramify.learners.base import Scores
from ramify.learners.linear import incremental
from ramify.learners.linear.candidates import Signatures
from ramify.learners.linear.cross_fit import CrossFit, HeldOut, best_unless_close
from ramify.learners.linear.dual_solver import TrainedWeights
from ramify.learners.linear.model import LinearModel
from ramify.learners.linear.problem import LARGEST_OBJECTIVE, Certificate, Dual
from ramify.learners.linear.select_C import cross_validate_C, predict_classes
from ramify.learners.linear.shards import ShardedWeights, cut_evenly, files_of
from ramify.learners.linear.taxonomy_ties import Forest, Structure, flat_units
from ramify.learners.linear.training import (
    LEAST_COST,
    MOST_COST,
    Setup,
    check_setup,
    suits,
    train,
    warn_unless_converged,
    weigh_classes,
)
from ramify.learners.linear.weights import MOST_FEATURES, Weights
from ramify.learners.path_probabilities import aggregate_sparse_upward, aggregate_upward
from ramify.learners.targets import Targets
from ramify.learners.warm_start import WarmStart, match_columns
from ramify.parallel import shard_directory, stage
from ramify.persistence import ArrayFile, checked_count, checked_number
from ramify.taxonomy import Taxonomy

MOST_ROUNDS = 1 << 40
FEWEST_DOCUMENTS = 100  # from which on C is selected
MOST_COSTS = 12  # that are tried
LOOSE = 1e-2  # relative duality gap that suffices to compare costs of tied classes
MOST_DUAL_VARIABLES = 1 << 25  # that are stored with a model
FIRST_COSTS = {"hinge": 3.0, "squared_hinge": 3.0, "logistic": 30.0}  # by loss: C that suits most texts


class Gap(float):
    """The relative duality gap, with its parts.

    primal: the objective of the weights. dual: a lower bound of the objective. rounds: of the solver.

    >>> gap = Gap(4.0, 3.0, 10)
    >>> gap, gap.primal, gap <= 0.5
    (0.25, 4.0, True)
    """

    primal: float
    dual: float
    rounds: int

    def __new__(cls, primal: float, dual: float, rounds: int) -> Gap:
        """From both sides of the objective."""
        made = super().__new__(cls, Certificate(primal, dual, rounds).gap)
        made.primal, made.dual, made.rounds = primal, dual, rounds
        return made

    def __getnewargs__(self) -> tuple[float, float, int]:  # type: ignore[override]
        return self.primal, self.dual, self.rounds


def read_gap(primal: Any, dual: Any, rounds: Any) -> tuple[float, float, int]:
    """Both sides of the objective and the rounds from a model file, checked."""
    gap = {"objective": primal, "bound": dual, "rounds": rounds}
    most = LARGEST_OBJECTIVE
    objective, bound = (checked_number(gap, name, -most, most) for name in ("objective", "bound"))
    return objective, bound, checked_count(gap, "rounds", 0, MOST_ROUNDS)


class LinearLearner(LinearModel):
    """A linear classifier for every node that has documents of its own.

    ``gap_``: the relative duality gap, a number, with its ``primal`` and ``dual``.
    ``C_``: the cost that was used; ``C_scores_``: with ``C="auto"``, the quality of every cost that was tried.
    ``dual_``, ``class_figures_``: with ``keeps_warm_start``, dual variables, and objective and bound of every class.
    ``slack_``: the part of the gap that comes from weights which an incremental fit held fixed.
    """

    dual_: Dual | None = None
    class_figures_: NDArray[np.float64] | None = None
    slack_: float = 0.0
    gap_: Gap
    is_multi_label_: bool
    loss: str = "hinge"
    mode: str = "exact"
    C: float | str
    C_: float
    C_scores_: dict[float, float]
    n_iter_: int

    def _check_parameters(self) -> None:
        check_setup(self, self.loss, self.mode)

    def _store(self, trained: TrainedWeights, setup: Setup, targets: Targets) -> None:
        """Set the fitted attributes; warns where the gap is above the tolerance."""
        certificate = trained.certificate
        warn_unless_converged(certificate, setup)
        self.weights_, self.C_ = trained.weights, setup.C
        self.signatures_, self.n_candidates_ = trained.signatures, trained.n_candidates
        self.class_figures_ = trained.figures if self.keeps_warm_start else None
        is_small = trained.dual is not None and len(trained.dual.values) <= MOST_DUAL_VARIABLES
        self.dual_ = trained.dual if self.keeps_warm_start and is_small else None
        self.gap_ = Gap(certificate.primal, certificate.dual, certificate.rounds)
        self.n_iter_ = max(1, certificate.rounds)
        self.is_multi_label_ = bool(np.any(np.diff(targets.own.indptr) != 1))

    def to_probabilities(self, scores: Any) -> Any:
        """Sigmoids of the scores, not calibrated.

        Trained on one label per document, they are normalized to sum to one, and a node gets the sum of the classes at and
        below it; otherwise it gets the largest of them. Classes without a score have probability 0. Sparse scores give sparse
        probabilities.
        """
        if issparse(scores):
            place = np.empty(len(self.taxonomy_), dtype=np.int64)
            place[self.class_nodes_] = np.arange(len(self.class_nodes_))
            shape = (scores.shape[0], len(self.class_nodes_))
            each = csr_array((expit(scores.data.astype(np.float64)), place[scores.indices], scores.indptr), shape=shape)
            return aggregate_sparse_upward(each, self._nodes_above, self.is_multi_label_)
        dense = expit(scores[:, self.class_nodes_].astype(np.float64))
        if self.scores_candidates_only:
            dense = np.nan_to_num(dense, nan=0.0)
        return aggregate_upward(dense, self._nodes_above, self.is_multi_label_)

    # ---- saving -----------------------------------------------------------------------------------------------------

    def selected_params(self) -> dict[str, Any]:
        """The C that was used."""
        return {"C": self.C_}

    def training_facts(self) -> dict[str, Any]:
        """C, the objective, and the duality gap."""
        facts = {"C": self.C_, "objective": self.gap_.primal, "duality_gap": float(self.gap_), "rounds": self.gap_.rounds}
        return facts | super().training_facts()

    @property
    def n_warm_start_documents(self) -> int:
        """How many training documents the stored dual variables refer to."""
        return 0 if self.dual_ is None or not len(self.dual_.documents) else int(self.dual_.documents.max()) + 1

    def _extra_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        gap = {"primal": self.gap_.primal, "dual": self.gap_.dual, "rounds": self.gap_.rounds}
        values = {"gap": gap, "is_multi_label": self.is_multi_label_, "chosen_C": self.C_, "n_candidates": self.n_candidates_}
        if self.slack_:
            values["slack"] = self.slack_
        arrays = {} if self.signatures_ is None else self.signatures_.to_arrays()
        if self.class_figures_ is not None:
            arrays["class_figures"] = self.class_figures_
        return values, arrays if self.dual_ is None else arrays | self.dual_.arrays()

    def _restore(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.is_multi_label_, self.C_ = values["is_multi_label"], checked_number(values, "chosen_C", LEAST_COST, MOST_COST)
        if not isinstance(self.is_multi_label_, bool):
            raise ModelError("the linear model does not say whether documents have several labels; train the model again.")
        self.gap_ = Gap(*read_gap(*(values["gap"][name] for name in ("primal", "dual", "rounds"))))
        self.n_iter_, self.n_candidates_ = max(1, self.gap_.rounds), checked_count(values, "n_candidates", 0, MOST_FEATURES)
        self.slack_ = checked_number({"slack": 0.0, **values}, "slack", 0.0, LARGEST_OBJECTIVE)
        if "dual_offsets" in arrays:
            self.dual_ = Dual.from_arrays(arrays, self.weights_.n_classes)
        if "class_figures" in arrays:
            self.class_figures_ = incremental.check_figures(arrays["class_figures"], self.weights_.n_classes)
        if self.dual_ is not None and self.class_figures_ is not None and len(self.dual_) != len(self.class_figures_):
            raise ModelError("the dual variables and the certificates are of different classes; train the model again.")
        if isinstance(self.weights_, ShardedWeights):
            if self.weights_.shards[0].is_fast != (self.n_candidates_ > 0):
                raise ModelError("the shards are not those of this model: their mode differs; train the model again.")
        elif self.n_candidates_ > 0:
            self.signatures_ = Signatures.from_arrays(arrays, self.n_features_in_, self.weights_.n_classes)

    def state_in_shards(self, n_shards: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]], list[ArrayFile]]:
        """The state of the same model with its weights in so many shards, and their files, which are made when written."""
        assert isinstance(self.weights_, Weights)
        ranges = cut_evenly(self.weights_.n_classes, n_shards)
        values, arrays = self.state()
        in_shards = {*self.weights_.arrays(), *({} if self.signatures_ is None else self.signatures_.to_arrays())}
        values |= {"shards": [classes.stop - classes.start for classes in ranges], "beam": self.beam_}
        others = {name: array for name, array in arrays.items() if name not in in_shards}
        return values, others, files_of(self.weights_, self.signatures_, ranges)


class TiedLearner(LinearLearner):
    """Linear classifiers trained in one problem, whose units are tied to each other or independent."""

    shrinks_to_parents: ClassVar[bool] = False  # whether the best weights of a node without documents are its parent's
    _train: Callable[..., TrainedWeights] = staticmethod(train)  # (X, own, ties, costs, setup, start): solve for one cost

    @abstractmethod
    def _tie(self, taxonomy: Taxonomy, labelled: NDArray[np.int64]) -> Forest | Structure:
        """The units, and which of them are regularized towards which."""

    def _fit(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        setup = check_setup(self, self.loss, self.mode)
        ties = self._tie(targets.taxonomy, np.unique(targets.own.indices).astype(np.int64))
        own = csr_array(targets.own[:, ties.class_nodes])
        self.slack_, warm_start, held_out = 0.0, self._warm_start, None
        if warm_start is None:
            trained, setup, held_out = self._train_at_best_cost(X, own, ties, sample_weight, setup)
        else:
            if self.C == "auto":
                setup = replace(setup, C=warm_start.learner.C_)
            setup = replace(setup, keep_dual=self.keeps_warm_start)
            trained = self._train_incrementally(X, own, ties, sample_weight, setup, warm_start)
        self._store(trained, setup, targets)
        self._set_classes(ties.class_nodes)
        if held_out is not None:
            self.held_out_ = held_out[0], self._on_nodes(held_out[1])
        if warm_start is not None and self.shrinks_to_parents and isinstance(ties, Forest):
            leaves, taxonomy = warm_start.leaves, targets.taxonomy
            self.weights_, leaves = incremental.add_empty_leaves(trained.weights, ties, leaves, taxonomy)
            self._set_classes(np.append(ties.class_nodes, leaves))

    # ---- the selection of C, and out-of-fold scores -------------------------------------------------------------------

    def _train_at_best_cost(
        self,
        X: csr_array,
        own: csr_array,
        ties: Any,
        weight: NDArray[np.float64],
        setup: Setup,
        judged: Any = None,
        keeps_held_out: bool = False,
    ) -> tuple[TrainedWeights, Setup, tuple[NDArray[np.int64], Scores] | None]:
        """Weights for the given C or, with ``"auto"``, for the one that predicts held-out documents best.

        Then training documents and their out-of-fold scores, if they are wanted and classes are not tied. Classes are solved
        for the first cost, independently of each other, folds start from there, and so does the solution for another cost.
        judged: by class, whether it is a label (default: all); with it, C of tied or dense problems is the first one.
        keeps_held_out: whether out-of-fold scores are wanted, even if they are not kept.
        """
        directory = shard_directory()  # where large models are written in shards
        shards = None if directory is None else Path(tempfile.mkdtemp(prefix="shards-", dir=directory)).absolute()
        has_dual = self._train is train  # other solvers have no dual variables that folds could start from
        is_sparse = isinstance(ties, Forest) and shards is None and has_dual and not suits(X, own, setup)
        by_folds, is_enough = is_sparse and ties.is_flat, own.shape[0] >= FEWEST_DOCUMENTS
        wants_scores = by_folds and (self.keeps_held_out or keeps_held_out)

        def solve(setup: Setup, ties: Any, start: Any = None) -> TrainedWeights:
            costs = weigh_classes(own.tocsc(), setup, self.taxonomy_, ties.class_nodes, weight)
            return self._train(X, own, ties, costs, replace(setup, shards=shards), start)

        trained: TrainedWeights | None = None
        folds: CrossFit | None = None
        if self.C == "auto":
            self.C_scores_ = {}
            setup = replace(setup, C=FIRST_COSTS[setup.settings.loss])
            if is_enough and is_sparse:  # ties are left out: they change the best cost little, and take longer to solve
                units = ties if by_folds else flat_units(ties.class_nodes)
                loose = max(setup.settings.tolerance, LOOSE)
                rough = setup if by_folds else replace(setup, settings=replace(setup.settings, tolerance=loose))
                C, rough_weights, rough_folds = self._select_cost(
                    X, own, judged, rough, lambda setup, start: solve(setup, units, start)
                )
                setup = replace(setup, C=C)
                if by_folds:
                    trained, folds = rough_weights, rough_folds
            elif (is_enough or not has_dual) and not by_folds and judged is None:
                setup = replace(setup, C=self._select_C(X, own, ties, weight, setup))
        setup = replace(setup, keep_dual=self.keeps_warm_start or wants_scores)
        trained = solve(setup, ties) if trained is None else trained
        if not wants_scores:
            return trained, setup, None
        if folds is None:
            folds = CrossFit.of(trained, HeldOut.of(X, own.shape[1], self.block_ends), self.n_jobs)
        return trained, setup, None if folds is None else (folds.held_out.documents, folds.scores(trained.weights))

    def _select_cost(
        self, X: csr_array, own: csr_array, judged: Any, setup: Setup, solve: Callable[[Setup, Any], TrainedWeights]
    ) -> tuple[float, TrainedWeights, CrossFit | None]:
        """The cost that predicts held-out documents best, the solution for it, and folds that start from there."""
        judged = np.ones(own.shape[1], dtype=bool) if judged is None else judged
        is_multi_label, quality = bool(np.any(own[:, judged].sum(axis=1) != 1)), dict[float, float]()
        held_out = HeldOut.of(X, own.shape[1], self.block_ends, compares_costs=True)
        setup = replace(setup, keep_dual=True)
        trained = solve(setup, None)
        while (folds := CrossFit.of(trained, held_out, self.n_jobs)) is not None:
            with stage("selecting C", 1) as step:
                factor, found = best_unless_close(folds.measure_costs(own, judged, is_multi_label), 1.0)
                step.advance()
            quality |= {setup.C * each: found[each] for each in found}
            if factor == 1 or len(quality) > MOST_COSTS:
                break
            setup = replace(setup, C=setup.C * factor)
            trained = solve(setup, trained.start)
        self.C_scores_ = dict(sorted(quality.items()))
        return setup.C, trained, folds

    def _on_nodes(self, scores: Scores) -> Scores:
        """Scores of classes as scores of nodes."""
        S = np.full((len(scores), len(self.taxonomy_)), np.nan, dtype=np.float32)
        S[:, self.class_nodes_] = scores
        return S

    def _select_C(self, X: csr_array, own: csr_array, ties: Any, weight: NDArray[np.float64], setup: Setup) -> float:
        is_multi_label = bool(np.any(np.diff(own.indptr) != 1))

        def attempt(used: Any, held_out: Any, setup: Setup, start: Any) -> tuple[csr_array, Any]:
            costs = weigh_classes(own[used].tocsc(), setup, self.taxonomy_, ties.class_nodes, weight[used])
            trained = self._train(X[used], own[used], ties, costs, setup, start)
            return predict_classes(trained, X[held_out], is_multi_label), trained.start

        best, self.C_scores_ = cross_validate_C(own, setup, attempt)
        return best

    # ---- incremental training ---------------------------------------------------------------------------------------

    def _train_incrementally(
        self, X: csr_array, own: csr_array, ties: Any, weight: NDArray[np.float64], setup: Setup, warm_start: WarmStart
    ) -> TrainedWeights:
        """Reuse what has not changed since an earlier learner; start the rest from its dual variables."""
        other, start = warm_start.learner, None
        costs = weigh_classes(own.tocsc(), setup, self.taxonomy_, ties.class_nodes, weight)
        if incremental.has_same_parameters(self, warm_start, setup.C) and isinstance(other.weights_, Weights):
            is_flat = isinstance(ties, Forest) and ties.is_flat
            if is_flat and warm_start.has_same_documents and incremental.are_independent(other.weights_, other.class_figures_):
                # reuse independent classes whose positive documents are the same; train the others
                old = warm_start.renumber(csc_array(warm_start.own[:, other.class_nodes_]))
                reused, ones = match_columns([old], [own.tocsc()]), np.ones(X.shape[0])
                self.reused_ = int(np.sum(reused >= 0)), len(reused)

                def train_some(some: NDArray[np.int64]) -> TrainedWeights:
                    part, nodes = csr_array(own[:, some]), ties.class_nodes[some]
                    costs = weigh_classes(part.tocsc(), setup, self.taxonomy_, nodes, ones)
                    return self._train(X, part, flat_units(nodes), costs, setup)

                dual = None if other.dual_ is None else other.dual_.numbered(warm_start.documents)
                return incremental.reuse_or_train(reused, other.weights_, other.class_figures_, train_some, dual)
            start = incremental.start_from(warm_start, own)
            self.warm_started_ = start is not None
            if start is not None and isinstance(ties, Forest) and not is_flat and self.shrinks_to_parents:
                found = incremental.solve_changed_part(X, own, ties, costs, setup, warm_start, start)
                if not isinstance(found, Dual):
                    trained, self.slack_, n_reused = found
                    self.reused_ = n_reused, own.shape[1]
                    return trained
                start = found
        return self._train(X, own, ties, costs, setup, start)
