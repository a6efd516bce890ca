"""Learning what probabilities mean, from documents that the learner has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ramify.calibration import Energies, calibration_for
from ramify.pipeline.cross_fitting import cross_fit, few_folds

FEWEST = 100  # documents from which on a calibration is learnt
MOST_NODES = 50_000  # beyond them, documents × nodes of enough documents have no room


def learn_calibration(learner: Any, X: csr_array, Y: csr_array, several: bool) -> Any:
    """A calibration of a learner, by cross-fitted scores; None where documents are too few, or nodes too many.

    several: whether documents have several labels.
    """
    if Y.shape[0] < FEWEST or Y.shape[1] > MOST_NODES or getattr(learner, "looks_at_few", False):
        return None
    taxonomy = learner.taxonomy_
    kind = calibration_for(taxonomy, several)
    if learner.held_out_ is not None:
        documents, scores = learner.held_out_
        return kind.learn(getattr(learner, kind.takes)(scores), Y[documents], taxonomy)
    folds = few_folds(*Y.shape)
    documents, found = cross_fit(learner, X, Y, folds, lambda fitted, scores: getattr(fitted, kind.takes)(scores))
    if not found:
        return None
    values = Energies.joined(found) if isinstance(found[0], Energies) else np.concatenate(found)
    return kind.learn(values, Y[documents], taxonomy)
