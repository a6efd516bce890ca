"""The last training, of what was chosen: as good as the time that is left allows, and never longer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ramify.decisions import DecisionRule
from ramify.errors import InputError
from ramify.execution import OutOfTime, ending_by
from ramify.pipeline.amounts import duration
from ramify.pipeline.calibrating import FEWEST, MOST_NODES
from ramify.pipeline.choosing.candidates import Candidate
from ramify.pipeline.choosing.times import Allowance, Times
from ramify.pipeline.choosing.trying import LOOSE, has_to_learn
from ramify.pipeline.cross_fitting import few_folds
from ramify.pipeline.rules import FOLDS
from ramify.pipeline.training import Parts, Trained, train_on_all, train_on_part

CAUTION = 1.5  # times as long as was thought is what is kept back
CLOSELY = 3.0  # times as long as a loose training takes one that is as close as usual
CALIBRATION = 0.25  # of the time: what may be kept back for calibrated probabilities
EVALUATED = 5e6  # probabilities that are judged in a second
OVERHEAD = 1.0  # seconds for what is not training


@dataclass(frozen=True, slots=True)
class Way:
    """One way to train what was chosen. closely: to the usual gap. calibrated: with calibrated probabilities."""

    closely: bool
    calibrated: bool


WAYS = (Way(True, True), Way(False, True), Way(True, False), Way(False, False))  # the best first
LEAST = WAYS[-1]


@dataclass(frozen=True, slots=True)
class Finish:
    """What is to be trained at the end. refit: whether all documents are learnt from after a report on some."""

    parts: Parts
    refit: bool
    allowance: Allowance
    times: Times

    def reserve(self, candidate: Candidate, rule: DecisionRule) -> float:
        """Seconds to keep back: for calibrated probabilities too, unless they take very long."""
        calibrated = CAUTION * self.cost(candidate, rule, Way(False, True))
        if calibrated <= CALIBRATION * self.allowance.seconds:
            return calibrated
        return CAUTION * self.cost(candidate, rule, LEAST)

    def cost(self, candidate: Candidate, rule: DecisionRule, way: Way) -> float:
        """Seconds of all that is left to do."""
        first = self._training(candidate, rule, way, len(self.parts.learn))
        return OVERHEAD + first + self._evaluation() + (self._again(candidate, rule, way) if self._is_refitted else 0.0)

    def run(self, candidate: Candidate, rule: DecisionRule, is_own_rule: bool) -> Trained:
        """Train in the best way for which there is time; in the least one, where that took longer than was thought."""
        for way in self._ways(candidate, rule):
            kept = 0.0 if way == LEAST else CAUTION * self.cost(candidate, rule, LEAST)
            parts = replace(self.parts, classifier=self._classifier(candidate, rule, is_own_rule, way))
            trained = self._in_time(lambda parts=parts: train_on_part(parts), kept)  # type: ignore[misc]
            if trained is not None:
                return self._all(parts, trained, candidate, rule, way)
        raise InputError(f"{candidate.system} could not be trained within {duration(self.allowance.seconds)}; give more time.")

    def _all(self, parts: Parts, trained: Trained, candidate: Candidate, rule: DecisionRule, way: Way) -> Trained:
        """What was trained on a part, trained once more on everything, if that is wanted and there is time."""
        if not self._is_refitted or self._again(candidate, rule, way) > self.allowance.left:
            return trained
        return self._in_time(lambda: train_on_all(parts, trained), 0.0) or trained

    def _in_time(self, work: Callable[[], Trained], kept: float) -> Trained | None:
        try:
            with ending_by(self.allowance.end - kept, self.allowance.clock):
                return work()
        except OutOfTime:
            return None

    def _ways(self, candidate: Candidate, rule: DecisionRule) -> Iterator[Way]:
        left = self.allowance.left
        best = next((way for way in WAYS if self.cost(candidate, rule, way) <= left / CAUTION), LEAST)
        yield best
        if best != LEAST:
            yield LEAST

    @property
    def _is_refitted(self) -> bool:
        return self.refit and self.parts.is_held_out and self.parts.tested is not None

    def _again(self, candidate: Candidate, rule: DecisionRule, way: Way) -> float:
        return self._training(candidate, rule, way, len(self.parts.everything))

    def _training(self, candidate: Candidate, rule: DecisionRule, way: Way, n_documents: int) -> float:
        once, extra, learner = self.times.predict(candidate, n_documents), 0.0, candidate.learner()
        if way.closely and _is_solved(learner):
            once *= CLOSELY
        if has_to_learn(rule) and getattr(learner, "calibration", None) is None:
            extra += FOLDS * (1 - 1 / FOLDS)
        if way.calibrated and n_documents >= FEWEST and len(self.parts.taxonomy) <= MOST_NODES:
            extra += len(few_folds(n_documents, len(self.parts.taxonomy)))
        return once * (1 + extra)

    def _evaluation(self) -> float:
        tested = self.parts.tested
        return 0.0 if tested is None else len(tested) * len(self.parts.taxonomy) / EVALUATED

    def _classifier(self, candidate: Candidate, rule: DecisionRule, is_own_rule: bool, way: Way) -> Any:
        learner = candidate.learner()
        if _is_solved(learner) and not way.closely:
            learner.set_params(tol=max(LOOSE, learner.tol))
        settings = {"system": candidate.system, "learner": learner, "calibrate": way.calibrated}
        settings["decision"] = None if is_own_rule else rule
        if not self.parts.everything.has_vectors:
            settings["vectorizer"] = candidate.vectorizer()
        return self.parts.classifier.set_params(**settings)


def _is_solved(learner: Any) -> bool:
    """Whether a learner is trained until a gap is small enough."""
    return {"C", "tol"} <= set(learner.get_params())
