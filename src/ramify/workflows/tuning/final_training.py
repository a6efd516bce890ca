"""The last training, of what was chosen: as good as the time that is left allows, and never longer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sklearn.base import clone

from ramify.classifier.fitting import FEWEST_HELD_OUT, MOST_NODES, few_folds
from ramify.classifier.rules import FOLDS
from ramify.decisions import DecisionRule
from ramify.errors import InputError
from ramify.formatting import duration
from ramify.parallel import OutOfTime, deadline_at
from ramify.workflows.training import Parts, TrainResult, train_on_all, train_on_part
from ramify.workflows.tuning.evaluator import Allowance, Times
from ramify.workflows.tuning.trials import LOOSE, Look, has_to_learn

CAUTION = 1.5  # times as long as was thought, a training is expected to take at most
SURELY = 2.0  # times as long as was thought is what is kept back for the quickest way
QUICK = 0.4  # of the time of the best: what one takes that is trained if the best cannot be
CLOSELY = 3.0  # times as long as a loose training takes one that is as close as usual
CALIBRATION = 0.25  # of the time: what may be kept back for calibrated probabilities
EVALUATED = 1e6  # probabilities that are judged in a second
CALIBRATED = 1e6  # and that are calibrated in one
OVERHEAD = 2.0  # seconds for what is not training, such as resamples


@dataclass(frozen=True, slots=True)
class Way:
    """One way to train what was chosen. closely: to the usual gap. calibrated: with calibrated probabilities."""

    closely: bool
    calibrated: bool


WAYS = (Way(True, True), Way(False, True), Way(True, False), Way(False, False))  # the best first
LEAST = WAYS[-1]


@dataclass(frozen=True, slots=True)
class Finish:
    """What is to be trained at the end. refit: whether all documents are learnt from after a report on some.

    rule: the one that was given, if any.
    """

    parts: Parts
    refit: bool
    allowance: Allowance
    times: Times
    rule: DecisionRule | None = None

    def reserve(self, look: Look) -> float:
        """Seconds to keep back: for calibrated probabilities too, unless they take very long."""
        least, calibrated = SURELY * self.cost(look, LEAST), CAUTION * self.cost(look, Way(False, True))
        return least + (calibrated if calibrated <= CALIBRATION * self.allowance.seconds else 0.0)

    def cost(self, look: Look, way: Way) -> float:
        """Seconds of all that is left to do."""
        return OVERHEAD + self._part(look, way) + (self._again(look, way) if self._is_refitted else 0.0)

    def run(self, best: Look, others: Sequence[Look]) -> tuple[Look, TrainResult]:
        """Train the best in the best way for which there is time; if that took longer than was thought, in a quicker one."""
        for look, way, kept in self._plans(best, others):
            parts = replace(self.parts, classifier=self._classifier(look, way))
            trained = self._in_time(partial(train_on_part, parts), kept)
            if trained is not None:
                return look, self._all(parts, trained, look, way)
        raise InputError(f"no system could be trained within {duration(self.allowance.seconds)}; give more time.")

    def _plans(self, best: Look, others: Sequence[Look]) -> Iterator[tuple[Look, Way, float]]:
        """What is to be trained, in which way, and how many seconds are kept back for the next plan, should it fail."""
        quick = self._quicker(best, others)
        for_quick = 0.0 if quick is None else OVERHEAD + SURELY * self._part(quick, LEAST)
        for_least = OVERHEAD + SURELY * self._part(best, LEAST)
        way = next((way for way in WAYS if CAUTION * self.cost(best, way) + for_least <= self.allowance.left), LEAST)
        if way != LEAST:
            yield best, way, for_least
        yield best, LEAST, for_quick
        if quick is not None:
            yield quick, LEAST, 0.0

    def _quicker(self, best: Look, others: Sequence[Look]) -> Look | None:
        """The best of those that are trained in much less time."""
        enough = QUICK * self._part(best, LEAST)
        return next((look for look in others if self._part(look, LEAST) <= enough), None)

    def _all(self, parts: Parts, trained: TrainResult, look: Look, way: Way) -> TrainResult:
        """What was trained on a part, trained once more on everything, if that is wanted and there is time."""
        if not self._is_refitted or self._again(look, way) > self.allowance.left:
            return trained
        return self._in_time(partial(train_on_all, parts, trained), 0.0) or trained

    def _in_time(self, work: Callable[[], TrainResult], kept: float) -> TrainResult | None:
        try:
            with deadline_at(self.allowance.end - kept, self.allowance.clock):
                return work()
        except OutOfTime:
            return None

    @property
    def _is_refitted(self) -> bool:
        return self.refit and self.parts.is_held_out and self.parts.tested is not None

    def _part(self, look: Look, way: Way) -> float:
        tested = self.parts.tested
        evaluation = 0.0 if tested is None else len(tested) * len(self.parts.taxonomy) / EVALUATED
        return self._training(look, way, len(self.parts.learn)) + evaluation

    def _again(self, look: Look, way: Way) -> float:
        # what probabilities mean is known by then, unless documents are kept back
        calibrated = way.calibrated and self.parts.classifier.keep_back > 0
        return self._training(look, replace(way, calibrated=calibrated), len(self.parts.everything))

    def _training(self, look: Look, way: Way, n_documents: int) -> float:
        candidate = look.candidate
        once, extra, learner = self.times.predict(candidate, n_documents), 0.0, candidate.learner()
        if way.closely and _is_solved(learner):
            once *= CLOSELY
        if has_to_learn(look.rule) and learner.calibration is None:
            extra += FOLDS * (1 - 1 / FOLDS)
        if way.calibrated and n_documents >= FEWEST_HELD_OUT and len(self.parts.taxonomy) <= MOST_NODES:
            folds = few_folds(n_documents, len(self.parts.taxonomy))
            extra += len(folds)
            return once * (1 + extra) + sum(map(len, folds)) * len(self.parts.taxonomy) / CALIBRATED
        return once * (1 + extra)

    def _classifier(self, look: Look, way: Way) -> Any:
        candidate = look.candidate
        learner = candidate.learner()
        if _is_solved(learner) and not way.closely:
            learner.set_params(tol=max(LOOSE, learner.tol))
        calibrate = way.calibrated and self.parts.classifier.calibrate
        settings = {"system": candidate.system, "learner": learner, "calibrate": calibrate}
        settings["decision"] = None if look.is_own_rule and self.rule is None else look.rule
        if not self.parts.everything.has_vectors:
            settings["vectorizer"] = candidate.vectorizer()
        return clone(self.parts.classifier).set_params(**settings)


def _is_solved(learner: Any) -> bool:
    """Whether a learner is trained until a gap is small enough."""
    return {"C", "tol"} <= set(learner.get_params())
