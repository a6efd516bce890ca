"""One candidate on one fold: what it learns, what it costs, and what every rule makes of its scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from ramify.classifier.rules import values_for
from ramify.classifier.text_classifier import TextClassifier
from ramify.decisions import Best, DecisionRule, FittableRule, PCut, PredictedCut, RCut, SCut
from ramify.errors import RamifyError
from ramify.metrics.flat import Floats
from ramify.metrics.resampling import LOSSES, MEASURES, draw_measures, from_sums, interval, measure_rows
from ramify.systems import find_system
from ramify.workflows.training import train_classifier
from ramify.workflows.tuning.candidates import Candidate
from ramify.workflows.tuning.folds import Ground

PARTS = 3  # into which held-out documents are dealt, so that rules learn from some and decide others
MOST_SCORES = 1 << 25  # of documents × nodes that may be kept for rules to learn from
LOOSE = 0.03  # the gap that is enough to tell candidates apart


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a fold.

    answers: of the rules that learn nothing, by their place. values: what the others learn from, by what they take.
    """

    answers: dict[int, csr_array]
    values: dict[str, NDArray[np.float32]]


def rules_for(candidate: Candidate, several: bool, n_scores: int, given: DecisionRule | None = None) -> list[DecisionRule]:
    """The rules among which one is chosen, the system's own first; one that is given leaves no choice.

    several: whether documents have several labels. n_scores: documents × nodes; of too many no rule can learn.
    """
    if given is not None:
        return [given]
    system = find_system(candidate.system)
    own = system.multi_label_decision() if several and system.multi_label_decision is not None else system.decision()
    others: list[DecisionRule] = [Best()]
    if several:
        others = [SCut(at_least_one=True), SCut(fbr=0.3, at_least_one=True), PCut(at_least_one=True), RCut()]
        others += [PredictedCut(at_least_one=True), Best()]
    rules = [own, *(rule for rule in others if repr(rule) != repr(own))]
    return rules if n_scores <= MOST_SCORES else [rule for rule in rules if not has_to_learn(rule)]


def problem_with(candidate: Candidate, ground: Ground) -> str | None:
    """Why a candidate cannot take the documents, as far as that shows without trying; None if nothing is against it."""
    system = find_system(candidate.system)
    if system.needs_tree:
        try:
            ground.taxonomy.require_tree(f"system {system.name!r}")
        except RamifyError as error:
            return str(error)
    others = 0 if system.learner().supports_multi_label else ground.n_not_single
    if others:
        return f"{others:,} documents have several labels or none, and {system.name} takes one label a document."
    return None


def try_out(candidate: Candidate, ground: Ground, number: int, share: float, rules: Sequence[DecisionRule]) -> Tried:
    """Let a candidate learn and answer in one round; refuses with the reason for which it cannot."""
    learn, tested = ground.round(candidate, number, share)
    fitted = train_classifier(_loosely(candidate, ground), learn, holdout=0).classifier
    blocks = [block for _, block in fitted.map_scores(tested.documents, lambda scores: _decide(fitted, scores, rules))]
    answers = {place: csr_array(vstack([given[place] for given, _ in blocks], format="csr")) for place in blocks[0][0]}
    return Tried(answers, {takes: np.concatenate([kept[takes] for _, kept in blocks]) for takes in blocks[0][1]})


def has_to_learn(rule: DecisionRule) -> bool:
    """Whether a rule has something to learn."""
    return isinstance(rule, FittableRule) and not rule.is_fitted


def answers_of(rule: FittableRule, values: NDArray[np.float32], truth: csr_array, ground: Ground) -> csr_array:
    """The answers of a rule to held-out documents, in parts, each by what it learnt from the others."""
    part = np.random.default_rng(0).permutation(len(values)) % PARTS
    given: list[csr_array] = []
    for k in range(PARTS):
        learnt = rule.fit(values[part != k], truth[part != k], ground.taxonomy)
        given.append(learnt.decide(values[part == k], ground.taxonomy))
    order = np.argsort(np.concatenate([np.flatnonzero(part == k) for k in range(PARTS)]))
    return csr_array(csr_array(vstack(given, format="csr"))[order])


def _loosely(candidate: Candidate, ground: Ground) -> TextClassifier:
    """The classifier of a candidate, trained as closely as telling candidates apart needs; its rule is not asked."""
    learner = candidate.learner()
    if "tol" in learner.get_params() and "C" in learner.get_params():
        learner.set_params(tol=max(LOOSE, learner.tol))
    settings: dict[str, Any] = {"learner": learner, "decision": Best(), "calibrate": False, "n_jobs": ground.n_jobs}
    return TextClassifier(candidate.system, ground.taxonomy, **settings)


def _decide(
    fitted: TextClassifier, scores: NDArray[np.float32], rules: Sequence[DecisionRule]
) -> tuple[dict[int, csr_array], dict[str, NDArray[np.float32]]]:
    """What rules that learn nothing say, and what the others learn from."""
    given: dict[int, csr_array] = {}
    kept: dict[str, NDArray[np.float32]] = {}
    for place, rule in enumerate(rules):
        if not has_to_learn(rule):
            given[place] = rule.decide(values_for(rule, fitted.learner_, scores), fitted.taxonomy_)
        elif rule.takes not in kept:
            kept[rule.takes] = np.asarray(values_for(rule, fitted.learner_, scores), dtype=np.float32)
    return given, kept


# --------------------------------------------------------------------------------------------------------------
# What was seen of one candidate so far: its answers by every rule, and what they are worth.


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
            return answers_of(cast(FittableRule, rule), values, truth, ground)
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


# --------------------------------------------------------------------------------------------------------------
# How sure a choice is: whether it would be the same on other documents of the same kind.


RESAMPLES, FEWEST_RESAMPLES = 1000, 200
MANY = 2_000  # documents; with more of them fewer resamples are drawn


@dataclass(frozen=True, slots=True)
class Sureness:
    """What resamples of the documents say of the winner.

    first: the share of resamples in which no finalist is ahead of it. error: the standard error of its score.
    ahead: by how much it is ahead of the next; low, high: between which values that lies in 95 of 100 resamples.
    documents: how many were tested. Without another finalist, first is 1 and there is nothing to be ahead of.
    """

    first: float
    error: float
    ahead: float | None
    low: float | None
    high: float | None
    documents: int


def how_sure(finalists: Sequence[Look], ground: Ground, by: str, seed: int = 0) -> Sureness:
    """What resampling the documents that all finalists were tested on says of the first of them."""
    truth = pooled_truth(ground, finalists[0].folds)
    n_docs = truth.shape[0]
    n_resamples = int(np.clip(RESAMPLES * MANY / n_docs, FEWEST_RESAMPLES, RESAMPLES))
    rows = [measure_rows(truth, look.answers, ground.taxonomy, ground.classes) for look in finalists]
    drawn = np.stack([draw_measures(some, n_resamples, seed)[:, MEASURES.index(by)] for some in rows])
    first = share_first(drawn[:, 1:])
    if len(drawn) == 1:
        return Sureness(first, float(drawn[0, 1:].std()), None, None, None, n_docs)
    apart = drawn[0] - drawn[1]
    return Sureness(first, float(drawn[0, 1:].std()), float(apart[0]), *interval(apart[1:]), n_docs)


def share_first(drawn: Floats) -> float:
    """In which share of the resamples the first row is ahead of all others; ties are shared out.

    >>> share_first(np.array([[0.5, 0.6, 0.6, 0.7], [0.4, 0.7, 0.6, 0.1]]))
    0.625
    """
    is_best = drawn == drawn.max(axis=0)
    return float((is_best[0] / is_best.sum(axis=0)).mean())
