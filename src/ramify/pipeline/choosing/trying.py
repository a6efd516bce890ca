"""One candidate on one fold: what it learns, what it costs, and what every rule makes of its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from ramify.decisions import Best, DecisionRule, LearnableRule, PCut, PredictedCut, RCut, SCut
from ramify.errors import RamifyError
from ramify.pipeline.choosing.candidates import Candidate
from ramify.pipeline.choosing.ground import Ground
from ramify.pipeline.classifier import TextClassifier
from ramify.pipeline.rules import values_for
from ramify.pipeline.training import train
from ramify.systems import find_system

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
    own = system.several() if several and system.several is not None else system.decision()
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
    others = 0 if system.learner().takes_several else ground.n_not_single
    if others:
        return f"{others:,} documents have several labels or none, and {system.name} takes one label a document."
    return None


def try_out(candidate: Candidate, ground: Ground, number: int, share: float, rules: Sequence[DecisionRule]) -> Tried:
    """Let a candidate learn and answer in one round; refuses with the reason for which it cannot."""
    learn, tested = ground.round(candidate, number, share)
    fitted = train(_loosely(candidate, ground), learn, share=0).classifier
    blocks = [block for _, block in fitted.map_scores(tested.documents, lambda scores: _decide(fitted, scores, rules))]
    answers = {place: csr_array(vstack([given[place] for given, _ in blocks], format="csr")) for place in blocks[0][0]}
    return Tried(answers, {takes: np.concatenate([kept[takes] for _, kept in blocks]) for takes in blocks[0][1]})


def has_to_learn(rule: DecisionRule) -> bool:
    """Whether a rule has something to learn."""
    return isinstance(rule, LearnableRule) and not rule.is_learnt


def answers_of(rule: LearnableRule, values: NDArray[np.float32], truth: csr_array, ground: Ground) -> csr_array:
    """The answers of a rule to held-out documents, in parts, each by what it learnt from the others."""
    part = np.random.default_rng(0).permutation(len(values)) % PARTS
    given: list[csr_array] = []
    for k in range(PARTS):
        learnt = rule.learn(values[part != k], truth[part != k], ground.taxonomy)
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
