"""Learning what probabilities mean, from documents that the learner has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ramify.calibration import Energies, calibration_for
from ramify.decisions import learn_promise
from ramify.execution import stage
from ramify.pipeline.cross_fitting import cross_fit, few_folds
from ramify.pipeline.promising import Ints, Promised

FEWEST = 100  # documents from which on a calibration is learnt
MOST_NODES = 50_000  # beyond them, documents × nodes of enough documents have no room


def learn_calibration(
    learner: Any, X: csr_array, Y: csr_array, one_each: bool, promises: bool = True
) -> tuple[Any, Promised | None]:
    """A calibration of a learner by cross-fitted scores, and what can be promised, if that is wanted.

    There is neither where documents are too few, or nodes too many. one_each: whether documents have one label each.
    """
    if Y.shape[0] < FEWEST or Y.shape[1] > MOST_NODES or getattr(learner, "looks_at_few", False):
        return None, None
    taxonomy = learner.taxonomy_
    kind = calibration_for(taxonomy, several=not one_each)
    documents, values = _unseen(learner, X, Y, kind.takes)
    if not len(documents):
        return None, None
    with stage("calibrating", 2) as step:
        calibration = kind.learn(values, Y[documents], taxonomy)
        step.advance()
        if not promises:
            return calibration, None
        P = calibration.apply(values, taxonomy).astype(np.float32)
        promise = learn_promise(P, Y[documents], taxonomy, several=not one_each)
    return calibration, Promised(promise, len(documents), is_proven=False)


def _unseen(learner: Any, X: csr_array, Y: csr_array, takes: str) -> tuple[Ints, Any]:
    """Documents, and what learners say that have not seen them."""
    if learner.held_out_ is not None:
        documents, scores = learner.held_out_
        return documents, getattr(learner, takes)(scores)
    documents, found = cross_fit(learner, X, Y, few_folds(*Y.shape), lambda fitted, scores: getattr(fitted, takes)(scores))
    if not found:
        return documents, None
    return documents, Energies.joined(found) if isinstance(found[0], Energies) else np.concatenate(found)
