"""Decision rules on learners: make a rule by its name, apply it to scores, and fit it on out-of-fold scores."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.classifier.fitting import HeldOut, cross_fit
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
MAX_SCORES = 1 << 28  # held-out documents × nodes; beyond that, a sample of the documents is used


def make_rule(name: str, settings: dict[str, Any]) -> DecisionRule:
    """A rule by its name, with parameters.

    >>> make_rule("isotonic", {"penalty": 5})
    IsotonicSmooth(penalty=5, scale=None, weights=None, threshold=0.5, at_least_one=False, prior_weight=0.0, levels='auto')
    """
    if name not in RULES:
        raise InputError(f"rule {name!r} is unknown; the rules are {', '.join(RULES)}.{suggest(name, RULES)}")
    allowed = [setting.name for setting in fields(RULES[name]) if setting.repr]
    for given in settings:
        if given not in allowed:
            raise InputError(f"{given!r} is not a parameter of rule {name!r}; it has {', '.join(allowed) or 'none'}.")
    rule: DecisionRule = RULES[name](**settings)
    rule.check()
    return rule


def values_for(rule: DecisionRule, learner: Any, scores: NDArray[np.float32]) -> NDArray[np.floating[Any]]:
    """A learner's scores converted to the values that a rule takes."""
    values: NDArray[np.floating[Any]] = learner.convert_scores(scores, rule.takes)
    return values


def is_by_sign(rule: DecisionRule) -> bool:
    """Whether a rule predicts the nodes with a margin of 0 or more."""
    return isinstance(rule, (Sign, TopDown)) and rule.threshold == 0


def needs_positive_only(rule: DecisionRule) -> bool:
    """Whether a rule ignores everything below a node with a negative margin."""
    return isinstance(rule, TopDown) and rule.threshold >= 0


def decide_by(
    rule: DecisionRule, values: NDArray[np.floating[Any]], taxonomy: Taxonomy
) -> tuple[csr_array, NDArray[np.floating[Any]] | None]:
    """Labels, and the refined values of a rule that refines them."""
    if not isinstance(rule, RefiningRule):
        return rule.decide(values, taxonomy), None
    refined = rule.refine(values, taxonomy)
    return rule.cut(refined, values, taxonomy), refined


def refuse_misfit(rule: DecisionRule, taxonomy: Taxonomy) -> None:
    """Refuse a rule that cannot decide over a taxonomy, by trying it on a document without scores."""
    rule.decide(np.full((1, len(taxonomy)), np.nan), taxonomy)


def rule_folds(learner: Any, Y: csr_array) -> list[NDArray[np.int64]]:
    """Folds to fit a rule on; none where the learner has held-out scores already, from its calibration."""
    if learner.held_out_ is not None:
        return []
    n_docs, n_nodes = Y.shape
    used = np.random.default_rng(0).permutation(n_docs)[: max(FOLDS, MAX_SCORES // max(1, n_nodes))]
    return [np.sort(used[k::FOLDS]) for k in range(FOLDS)]


def fit_rule(rule: FittableRule, learner: Any, X: csr_array, Y: csr_array, held_out: HeldOut | None = None) -> FittableRule:
    """Fit a rule on out-of-fold values: each document is scored by a learner that was not trained on it.

    held_out: what :func:`cross_fit` returns for :func:`rule_folds`; computed here when not given.
    """
    if learner.held_out_ is not None:
        documents, scores = learner.held_out_
        values = [values_for(rule, learner, scores)] if _has_scored_label(scores, Y[documents], learner) else []
    else:
        if held_out is None:
            held_out = cross_fit(learner, X, Y, rule_folds(learner, Y), partial(values_for, rule))
        documents, values = held_out
        values = values if values and _has_scored_label(np.concatenate(values), Y[documents], learner) else []
    if values:
        return rule.fit(np.concatenate(values), Y[documents], learner.taxonomy_)
    return rule.fit(values_for(rule, learner, learner.scores(X)), Y, learner.taxonomy_)  # too few documents to hold any out


def _has_scored_label(scores: NDArray[np.floating[Any]], Y: csr_array, learner: Any) -> bool:
    own = most_specific(Y, learner.taxonomy_).tocoo()
    return bool(np.isfinite(scores[own.row, own.col]).any())
