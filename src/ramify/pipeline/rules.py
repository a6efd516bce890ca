"""Decision rules that learn: from scores of documents that the learner had not seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone

from ramify.decisions import LearnableRule
from ramify.execution import stage
from ramify.taxonomy import most_specific

FOLDS = 3
MAX_SCORES = 1 << 28  # of held-out documents × nodes; beyond it some of the documents must do


def learn_rule(rule: LearnableRule, learner: Any, X: csr_array, Y: csr_array) -> LearnableRule:
    """Learn a rule from cross-fitted scores: each document is scored by a learner of the same kind that did not see it."""
    n_docs, n_nodes = Y.shape
    shown = np.random.default_rng(0).permutation(n_docs)[: max(FOLDS, MAX_SCORES // max(1, n_nodes))]
    fold_of = np.full(n_docs, -1, dtype=np.int64)
    fold_of[shown] = np.arange(len(shown)) % FOLDS
    scores, kept = [], []
    with stage("learning the decision rule", FOLDS) as step:
        for fold in range(FOLDS):
            held_out = np.flatnonzero(fold_of == fold)
            seen = np.flatnonzero(fold_of != fold)
            if len(held_out) and _can_learn(Y[seen], learner):
                scores.append(_alike(learner).fit(X[seen], Y[seen]).scores(X[held_out]))
                kept.append(held_out)
            step.advance()
    if scores and _has_scored_label(np.concatenate(scores), Y[np.concatenate(kept)], learner):
        return rule.learn(np.concatenate(scores), Y[np.concatenate(kept)], learner.taxonomy_)
    return rule.learn(learner.scores(X), Y, learner.taxonomy_)  # too few documents to hold any out


def _has_scored_label(scores: NDArray[np.float32], Y: csr_array, learner: Any) -> bool:
    own = most_specific(Y, learner.taxonomy_).tocoo()
    return bool(np.isfinite(scores[own.row, own.col]).any())


def _can_learn(Y: csr_array, learner: Any) -> bool:
    own: NDArray[Any] = most_specific(Y, learner.taxonomy_).indices
    return len(np.unique(own)) > 1


def _alike(learner: Any) -> Any:
    """A new learner with the parameters of one, and with those that it chose for itself."""
    made = clone(learner)
    return made.set_params(C=learner.C_) if hasattr(learner, "C_") else made
