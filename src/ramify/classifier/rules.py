"""Decision rules on learners: what a rule is told of a document, and from what it learns."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.classifier.fitting import cross_fit
from ramify.decisions import (
    Best,
    DecisionRule,
    Descend,
    FittableRule,
    IsotonicSmooth,
    MinimizeHLoss,
    PCut,
    PredictedCut,
    RCut,
    RefiningRule,
    SCut,
    Sign,
    TopDown,
)
from ramify.errors import InputError, suggest
from ramify.taxonomy import Taxonomy, most_specific

_ALL = (Best, Sign, TopDown, Descend, MinimizeHLoss, IsotonicSmooth, SCut, RCut, PCut, PredictedCut)
RULES: dict[str, Any] = {rule.kind: rule for rule in _ALL}
FOLDS = 3
MAX_SCORES = 1 << 28  # of held-out documents × nodes; beyond it some of the documents must do


def make_rule(name: str, settings: dict[str, Any]) -> DecisionRule:
    """A rule by its name, with settings.

    >>> make_rule("isotonic", {"penalty": 5})
    IsotonicSmooth(penalty=5, scale=None, weights=None, threshold=0.5, at_least_one=False, prior_weight=0.0, levels='auto')
    """
    if name not in RULES:
        raise InputError(f"rule {name!r} is unknown; the rules are {', '.join(RULES)}.{suggest(name, RULES)}")
    allowed = [setting.name for setting in fields(RULES[name]) if setting.repr]
    for given in settings:
        if given not in allowed:
            raise InputError(f"{given!r} is no setting of rule {name!r}; it has {', '.join(allowed) or 'none'}.")
    rule: DecisionRule = RULES[name](**settings)
    rule.check()
    return rule


def values_for(rule: DecisionRule, learner: Any, scores: NDArray[np.float32]) -> NDArray[np.floating[Any]]:
    """What a rule takes of a learner's scores."""
    values: NDArray[np.floating[Any]] = learner.convert_scores(scores, rule.takes)
    return values


def is_by_sign(rule: DecisionRule) -> bool:
    """Whether a rule takes the nodes with a margin of 0 or more."""
    return isinstance(rule, (Sign, TopDown)) and rule.threshold == 0


def needs_passing_only(rule: DecisionRule) -> bool:
    """Whether a rule never looks below a node with a margin under 0."""
    return isinstance(rule, TopDown) and rule.threshold >= 0


def decide_by(
    rule: DecisionRule, values: NDArray[np.floating[Any]], taxonomy: Taxonomy
) -> tuple[csr_array, NDArray[np.floating[Any]] | None]:
    """Labels, and what the rule made of the values on its way, where it makes anything of them."""
    if not isinstance(rule, RefiningRule):
        return rule.decide(values, taxonomy), None
    refined = rule.refine(values, taxonomy)
    return rule.cut(refined, values, taxonomy), refined


def refuse_misfit(rule: DecisionRule, taxonomy: Taxonomy) -> None:
    """Refuse a rule that cannot decide over a taxonomy, before it is relied upon: try it on a document without scores."""
    rule.decide(np.full((1, len(taxonomy)), np.nan), taxonomy)


def fit_rule(rule: FittableRule, learner: Any, X: csr_array, Y: csr_array) -> FittableRule:
    """Learn a rule from cross-fitted scores: each document is scored by a learner of the same kind that did not see it."""
    if learner.held_out_ is not None:  # it has such scores already, from its calibration
        documents, scores = learner.held_out_
        if _has_scored_label(scores, Y[documents], learner):
            return rule.fit(values_for(rule, learner, scores), Y[documents], learner.taxonomy_)
        return rule.fit(values_for(rule, learner, learner.scores(X)), Y, learner.taxonomy_)
    n_docs, n_nodes = Y.shape
    shown = np.random.default_rng(0).permutation(n_docs)[: max(FOLDS, MAX_SCORES // max(1, n_nodes))]
    folds = [np.sort(shown[k::FOLDS]) for k in range(FOLDS)]
    documents, values = cross_fit(learner, X, Y, folds, lambda fitted, scores: values_for(rule, fitted, scores))
    if values and _has_scored_label(np.concatenate(values), Y[documents], learner):
        return rule.fit(np.concatenate(values), Y[documents], learner.taxonomy_)
    return rule.fit(values_for(rule, learner, learner.scores(X)), Y, learner.taxonomy_)  # too few to hold any out


def _has_scored_label(scores: NDArray[np.floating[Any]], Y: csr_array, learner: Any) -> bool:
    own = most_specific(Y, learner.taxonomy_).tocoo()
    return bool(np.isfinite(scores[own.row, own.col]).any())
