"""What was seen of one candidate so far: its answers by every rule, and what they are worth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from scipy.sparse import csr_array, vstack

from ramify.decisions import DecisionRule, LearnableRule
from ramify.errors import RamifyError
from ramify.metrics.sums import LOSSES, MEASURES, from_sums, measure_rows
from ramify.pipeline.choosing.candidates import Candidate
from ramify.pipeline.choosing.ground import Ground
from ramify.pipeline.choosing.trying import Tried, answers_of, has_to_learn


@dataclass(slots=True)
class Look:
    """One candidate on some folds.

    share: of the documents that it might have learnt from. rules: those among which one is chosen. seconds: in all.
    scores: what each rule is worth on all these folds, higher is better; place: of the best of them. answers: of that rule.
    """

    candidate: Candidate
    share: float
    rules: list[DecisionRule]
    folds: dict[int, Tried] = field(default_factory=dict)
    seconds: float = 0.0
    scores: list[float] = field(default_factory=list)
    place: int = 0
    answers: csr_array | None = None

    @property
    def score(self) -> float:
        """What the best rule is worth."""
        return self.scores[self.place]

    @property
    def rule(self) -> DecisionRule:
        """The best rule; of equals the first."""
        return self.rules[self.place]

    @property
    def is_own_rule(self) -> bool:
        """Whether it is the rule that the system has anyway."""
        return self.place == 0

    def judge(self, ground: Ground, by: str) -> None:
        """Find the best rule on all folds that were tried."""
        truth = pooled_truth(ground, self.folds)
        given = [self._answers(place, truth, ground) for place in range(len(self.rules))]
        self.scores = [-np.inf if answers is None else measure(truth, answers, ground, by) for answers in given]
        self.place = int(np.argmax(self.scores))
        self.answers = given[self.place]

    def forget(self) -> None:
        """Give up what rules would learn from, where the candidate is out of the running."""
        self.folds = {number: replace(tried, values={}) for number, tried in self.folds.items()}

    def by_fold(self, ground: Ground, by: str) -> list[float]:
        """What the best rule is worth on each fold."""
        assert self.answers is not None
        found, start = [], 0
        for number in sorted(self.folds):
            truth = ground.truth(number)
            found.append(measure(truth, csr_array(self.answers[start : start + truth.shape[0]]), ground, by))
            start += truth.shape[0]
        return found

    def _answers(self, place: int, truth: csr_array, ground: Ground) -> csr_array | None:
        """The answers of a rule; None where there was nothing that it could learn from."""
        rule, tried = self.rules[place], [self.folds[number] for number in sorted(self.folds)]
        if not has_to_learn(rule):
            return csr_array(vstack([each.answers[place] for each in tried], format="csr"))
        values = np.concatenate([each.values[rule.takes] for each in tried])
        try:
            return answers_of(cast(LearnableRule, rule), values, truth, ground)
        except RamifyError:
            return None


def pooled_truth(ground: Ground, numbers: Iterable[int]) -> csr_array:
    """The labels of the documents of some folds, one fold after the other."""
    return csr_array(vstack([ground.truth(number) for number in sorted(numbers)], format="csr"))


def measure(truth: csr_array, answers: csr_array, ground: Ground, by: str) -> float:
    """A measure of answers; losses with a minus, so that higher is always better."""
    rows = measure_rows(truth, answers, ground.taxonomy, ground.classes)
    value = float(from_sums(np.asarray(rows.sum(axis=0)).ravel())[MEASURES.index(by)])
    return -value if by in LOSSES else value
