"""One candidate on folds: its predictions by every decision rule, their scores, and the probability that it is the best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from ramify.classifier.fitting import values_for
from ramify.classifier.text_classifier import TextClassifier
from ramify.decisions import Best, DecisionRule, FittableRule, PCut, PredictedCut, RCut, SCut
from ramify.errors import RamifyError
from ramify.metrics.flat import Floats
from ramify.metrics.resampling import LOSSES, MEASURES, draw_measures, from_sums, interval, measure_rows
from ramify.systems import find_system
from ramify.workflows.folds import TuningFolds
from ramify.workflows.training import train_classifier
from ramify.workflows.tuning.candidates import Candidate

PARTS = 3  # of the held-out documents, so that rules are fitted on some and decide others
MAX_SCORES = 1 << 25  # documents × nodes that may be stored for fitting rules
LOOSE_TOL = 0.03  # duality gap that is enough to rank candidates


@dataclass(frozen=True, slots=True)
class FoldResult:
    """Of one fold, the predictions of rules without fitting, by place, and values for fitting the others, by their kind."""

    predictions: dict[int, csr_array]
    values: dict[str, NDArray[np.float32]]


def rules_for(
    candidate: Candidate, is_multi_label: bool, n_scores: int, given: DecisionRule | None = None
) -> list[DecisionRule]:
    """The given rule, or the system's own and others; with too many `n_scores`, documents × nodes, none that needs fitting."""
    if given is not None:
        return [given]
    system = find_system(candidate.system)
    own = system.multi_label_decision() if is_multi_label and system.multi_label_decision is not None else system.decision()
    others: list[DecisionRule] = [Best()]
    if is_multi_label:
        others = [SCut(at_least_one=True), SCut(fbr=0.3, at_least_one=True), PCut(at_least_one=True), RCut()]
        others += [PredictedCut(at_least_one=True), Best()]
    rules = [own, *(rule for rule in others if repr(rule) != repr(own))]
    return rules if n_scores <= MAX_SCORES else [rule for rule in rules if not needs_fitting(rule)]


def problem_with(candidate: Candidate, folds: TuningFolds) -> str | None:
    """Why a candidate cannot be used on the documents, as far as that is known before a trial."""
    system = find_system(candidate.system)
    others = 0 if system.learner().supports_multi_label else folds.n_not_single
    needed = f"{system.name} needs exactly one label per document"
    return f"{others:,} documents have no label or more than one, and {needed}." if others else None


def run_fold(
    candidate: Candidate, folds: TuningFolds, number: int, fraction: float, rules: Sequence[DecisionRule]
) -> FoldResult:
    """Train and test a candidate on one fold."""
    learner = candidate.learner()
    if {"tol", "C"} <= set(learner.get_params()):
        learner.set_params(tol=max(LOOSE_TOL, learner.tol))
    settings: dict[str, Any] = {"learner": learner, "decision": Best(), "calibrate": False, "n_jobs": folds.n_jobs}
    classifier = TextClassifier(candidate.system, folds.taxonomy, **settings)
    training, tested = folds.split(candidate, number, fraction)
    fitted = train_classifier(classifier, training, holdout=0).classifier

    def decide(scores: NDArray[np.float32]) -> tuple[dict[int, csr_array], dict[str, NDArray[np.float32]]]:
        """Predictions of rules without fitting, and values for fitting the others."""
        given: dict[int, csr_array] = {}
        stored: dict[str, NDArray[np.float32]] = {}
        for place, rule in enumerate(rules):
            if not needs_fitting(rule):
                given[place] = rule.decide(values_for(rule, fitted.learner_, scores), fitted.taxonomy_)
            elif rule.takes not in stored:
                stored[rule.takes] = np.asarray(values_for(rule, fitted.learner_, scores), dtype=np.float32)
        return given, stored

    blocks = [block for _, block in fitted.map_scores(tested.documents, decide)]
    predictions = {place: csr_array(vstack([given[place] for given, _ in blocks], format="csr")) for place in blocks[0][0]}
    return FoldResult(predictions, {takes: np.concatenate([values[takes] for _, values in blocks]) for takes in blocks[0][1]})


def needs_fitting(rule: DecisionRule) -> bool:
    """Whether a rule has to be fitted before it can decide."""
    return isinstance(rule, FittableRule) and not rule.is_fitted


def cross_decide(rule: FittableRule, values: NDArray[np.float32], truth: csr_array, folds: TuningFolds) -> csr_array:
    """The predictions of a rule for held-out documents, in parts, each by a rule that was fitted on the others."""
    part = np.random.default_rng(0).permutation(len(values)) % PARTS
    fitted = (rule.fit(values[part != k], truth[part != k], folds.taxonomy) for k in range(PARTS))
    given = [each.decide(values[part == k], folds.taxonomy) for k, each in enumerate(fitted)]
    order = np.argsort(np.concatenate([np.flatnonzero(part == k) for k in range(PARTS)]))
    return csr_array(csr_array(vstack(given, format="csr"))[order])


# ---- all folds of a candidate -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Trial:
    """One candidate on some folds.

    fraction: of the training documents. rules: those to choose from. seconds: of all folds.
    scores: of each rule on all these folds, higher is better; place: of the best rule. predictions: of that rule;
    own_predictions: of the first rule, which is the system's own.
    """

    candidate: Candidate
    fraction: float
    rules: list[DecisionRule]
    results: dict[int, FoldResult] = field(default_factory=dict)
    seconds: float = 0.0
    scores: list[float] = field(default_factory=list)
    place: int = 0
    predictions: csr_array | None = None
    own_predictions: csr_array | None = None

    @property
    def score(self) -> float:
        """The score of the best rule."""
        return self.scores[self.place]

    @property
    def rule(self) -> DecisionRule:
        """The best rule; of ties the first."""
        return self.rules[self.place]

    def with_own_rule(self) -> Trial:
        """The same with the first rule, unless that could not be fitted."""
        return self if self.own_predictions is None else replace(self, place=0, predictions=self.own_predictions)

    def score_rules(self, folds: TuningFolds, by: str) -> None:
        """Score all rules on the folds so far, and find the best."""
        truth, results = pooled_truth(folds, self.results), [self.results[number] for number in sorted(self.results)]
        given: list[csr_array | None] = []  # None where a rule could not be fitted
        for place, rule in enumerate(self.rules):
            if not needs_fitting(rule):
                given.append(csr_array(vstack([each.predictions[place] for each in results], format="csr")))
                continue
            values = np.concatenate([each.values[rule.takes] for each in results])
            try:
                given.append(cross_decide(cast(FittableRule, rule), values, truth, folds))
            except RamifyError:
                given.append(None)
        self.scores = [-np.inf if predictions is None else measure(truth, predictions, folds, by) for predictions in given]
        self.place = int(np.argmax(self.scores))
        self.predictions, self.own_predictions = given[self.place], given[0]

    def by_fold(self, folds: TuningFolds, by: str) -> list[float]:
        """The score of the best rule on each fold."""
        assert self.predictions is not None
        truths = [folds.truth(number) for number in sorted(self.results)]
        starts = np.cumsum([0, *(truth.shape[0] for truth in truths)]).tolist()
        parts = [csr_array(self.predictions[start:end]) for start, end in pairwise(starts)]
        return [measure(truth, part, folds, by) for truth, part in zip(truths, parts, strict=True)]


def pooled_truth(folds: TuningFolds, numbers: Iterable[int]) -> csr_array:
    """The labels of the test documents of some folds, in order."""
    return csr_array(vstack([folds.truth(number) for number in sorted(numbers)], format="csr"))


def measure(truth: csr_array, predictions: csr_array, folds: TuningFolds, by: str) -> float:
    """A measure of predictions; losses are negative, so that higher is better."""
    rows = measure_rows(truth, predictions, folds.taxonomy, folds.classes)
    value = float(from_sums(np.asarray(rows.sum(axis=0)).ravel())[MEASURES.index(by)])
    return -value if by in LOSSES else value


# ---- probability of winning ---------------------------------------------------------------------------------------------

RESAMPLES, MIN_RESAMPLES = 1000, 200
MANY = 2_000  # documents; with more of them fewer resamples are drawn


@dataclass(frozen=True, slots=True)
class WinProbability:
    """Whether a candidate would also be the best of some on other documents of the same kind, by paired bootstrap resamples.

    probability: fraction of resamples in which it has the highest score of all. standard_error: of its score.
    lead: difference to the second; low, high: its 95% interval. documents: number of test documents.
    Without another one, the probability is 1 and there is no lead.
    """

    probability: float
    standard_error: float
    lead: float | None
    low: float | None
    high: float | None
    documents: int


def estimate_winning(finalists: Sequence[Trial], folds: TuningFolds, by: str, seed: int = 0) -> WinProbability:
    """The probability that the first finalist is the best, from resamples of the documents that all were tested on."""
    truth = pooled_truth(folds, finalists[0].results)
    n_docs = truth.shape[0]
    n_resamples = int(np.clip(RESAMPLES * MANY / n_docs, MIN_RESAMPLES, RESAMPLES))
    rows = [measure_rows(truth, trial.predictions, folds.taxonomy, folds.classes) for trial in finalists]
    drawn = np.stack([draw_measures(some, n_resamples, seed)[:, MEASURES.index(by)] for some in rows])
    probability, error = fraction_first(drawn[:, 1:]), float(drawn[0, 1:].std())
    if len(drawn) == 1:
        return WinProbability(probability, error, None, None, None, n_docs)
    lead = drawn[0] - drawn[1]
    return WinProbability(probability, error, float(lead[0]), *interval(lead[1:]), n_docs)


def fraction_first(drawn: Floats) -> float:
    """The fraction of resamples in which the first row is the highest; ties count in part.

    >>> fraction_first(np.array([[0.5, 0.6, 0.6, 0.7], [0.4, 0.7, 0.6, 0.1]]))
    0.625
    """
    is_best = drawn == drawn.max(axis=0)
    return float((is_best[0] / is_best.sum(axis=0)).mean())
