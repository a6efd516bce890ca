"""The final training of the winner: as accurate as the time left allows, and never longer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from sklearn.base import clone

from ramify.classifier.fitting import FEWEST_HELD_OUT, MOST_NODES, RULE_FOLDS, few_folds
from ramify.decisions import DecisionRule
from ramify.errors import InputError
from ramify.formatting import duration
from ramify.learners.linear.recursive import OneVsRest
from ramify.parallel import OutOfTime, deadline_at
from ramify.workflows.training import TrainResult, TrainTestSplit, train_on_all, train_on_part
from ramify.workflows.tuning.evaluator import TimeBudget, Timings
from ramify.workflows.tuning.trials import LOOSE_TOL, Trial, needs_fitting

CAUTION = 1.3  # factor on the expected time of a training
SAFETY = 2.0  # factor on the expected time of the quickest mode, which is reserved
QUICK = 0.4  # fraction of the time of the winner that a substitute may take
ACCURATE_FACTOR, FLAT_FACTOR = 3.0, 1.2  # time of a training to the default tolerance, relative to a loose one; if flat
ACCURACY_TIME, CALIBRATION_TIME = 0.15, 0.5  # fractions of the time that may be reserved for accuracy, and for calibration
CROSS_FIT_TIME = 0.3  # of out-of-fold scores of independent classes, relative to their training
EVALUATED_PER_SECOND = 1e6  # probabilities
CALIBRATED_PER_SECOND = 1e6
OVERHEAD = 2.0  # seconds for everything else, such as resamples


class TrainingMode(NamedTuple):
    """How to train the winner. accurate: to the default tolerance. calibrated: with calibrated probabilities."""

    accurate: bool
    calibrated: bool


QUICKEST = TrainingMode(False, False)
MODES = (TrainingMode(True, True), TrainingMode(False, True), QUICKEST)  # best first


@dataclass(frozen=True, slots=True)
class FinalTraining:
    """The training at the end. refit: whether to train on all documents after the report. rule: set by the user, if any."""

    parts: TrainTestSplit
    refit: bool
    budget: TimeBudget
    timings: Timings
    rule: DecisionRule | None = None

    def reserve(self, trial: Trial) -> float:
        """Seconds to reserve: also for an accurate training and calibrated probabilities, unless they take very long."""
        limits = zip(MODES, (ACCURACY_TIME, CALIBRATION_TIME), strict=False)
        wanted = ((CAUTION * self.cost(trial, mode), fraction * self.budget.seconds) for mode, fraction in limits)
        return SAFETY * self.cost(trial, QUICKEST) + next((seconds for seconds, most in wanted if seconds <= most), 0.0)

    def cost(self, trial: Trial, mode: TrainingMode) -> float:
        """Expected seconds of everything that follows the search."""
        return OVERHEAD + self._part(trial, mode) + self._again(trial, mode)

    def run(self, best: Trial, others: Sequence[Trial]) -> tuple[Trial, TrainResult]:
        """Train the winner in the best mode for which there is time; if that takes too long, in a quicker one."""
        for trial, mode, reserved in self._plans(best, others):
            candidate, learner = trial.candidate, trial.candidate.learner()
            if _has_tolerance(learner) and not mode.accurate:
                learner.set_params(tol=max(LOOSE_TOL, learner.tol))
            calibrate = mode.calibrated and self.parts.classifier.calibrate
            settings = {"system": candidate.system, "learner": learner, "calibrate": calibrate}
            settings["decision"] = None if trial.place == 0 and self.rule is None else trial.rule
            if not self.parts.full.has_vectors:
                settings["features"] = candidate.vectorizer()
            parts = replace(self.parts, classifier=clone(self.parts.classifier).set_params(**settings))
            trained = self._in_time(partial(train_on_part, parts), reserved)
            if trained is not None and self._is_refitted and self._again(trial, mode) <= self.budget.left:
                trained = self._in_time(partial(train_on_all, parts, trained), 0.0) or trained
            if trained is not None:
                return trial, trained
        raise InputError(f"no system could be trained within {duration(self.budget.seconds)}; give more time.")

    def _plans(self, best: Trial, others: Sequence[Trial]) -> Iterator[tuple[Trial, TrainingMode, float]]:
        """Trials with a mode, and the seconds that are reserved for the next plan in case it takes too long."""
        enough = QUICK * self._part(best, QUICKEST)
        quick = next((trial for trial in others if self._part(trial, QUICKEST) <= enough), None)  # the best of much less time
        for_quick = 0.0 if quick is None else OVERHEAD + SAFETY * self._part(quick, QUICKEST)
        for_quickest = OVERHEAD + SAFETY * self._part(best, QUICKEST)
        mode = next((mode for mode in MODES if CAUTION * self.cost(best, mode) + for_quickest <= self.budget.left), QUICKEST)
        if mode != QUICKEST:
            yield best, mode, for_quickest
        yield best, QUICKEST, for_quick
        if quick is not None:
            yield quick, QUICKEST, 0.0

    def _in_time(self, work: Callable[[], TrainResult], reserved: float) -> TrainResult | None:
        try:
            with deadline_at(self.budget.end - reserved, self.budget.clock):
                return work()
        except OutOfTime:
            return None

    @property
    def _is_refitted(self) -> bool:
        return self.refit and self.parts.is_held_out and self.parts.test is not None

    def _part(self, trial: Trial, mode: TrainingMode) -> float:
        n_tested = 0 if self.parts.test is None else len(self.parts.test)
        return self._training(trial, mode, len(self.parts.train)) + n_tested * len(self.parts.taxonomy) / EVALUATED_PER_SECOND

    def _again(self, trial: Trial, mode: TrainingMode) -> float:
        if not self._is_refitted:
            return 0.0
        # the calibration of the first training is reused, unless documents are kept back for it
        calibrated = mode.calibrated and self.parts.classifier.keep_back > 0
        return self._training(trial, TrainingMode(mode.accurate, calibrated), len(self.parts.full))

    def _training(self, trial: Trial, mode: TrainingMode, n_documents: int) -> float:
        learner, n_nodes = trial.candidate.learner(), len(self.parts.taxonomy)
        once, fits_rule = self.timings.predict(trial.candidate, n_documents), needs_fitting(trial.rule)
        if mode.accurate and _has_tolerance(learner):
            once *= FLAT_FACTOR if _has_held_out_scores(learner) else ACCURATE_FACTOR
        is_calibrated = mode.calibrated and n_documents >= FEWEST_HELD_OUT and n_nodes <= MOST_NODES
        folds = few_folds(n_documents, n_nodes) if is_calibrated else []
        if _has_held_out_scores(learner):
            extra = CROSS_FIT_TIME if fits_rule or is_calibrated else 0.0
        else:
            extra = len(folds) + (RULE_FOLDS - 1 if fits_rule else 0.0)
        return once * (1 + extra) + sum(map(len, folds)) * n_nodes / CALIBRATED_PER_SECOND


def _has_held_out_scores(learner: Any) -> bool:
    """Whether training gives out-of-fold scores, so that rules and calibrations need no further one."""
    return learner.calibration is not None or (isinstance(learner, OneVsRest) and not learner.shrinks_to_parents)


def _has_tolerance(learner: Any) -> bool:
    """Whether a learner is trained up to a duality gap."""
    return {"C", "tol"} <= set(learner.get_params())
