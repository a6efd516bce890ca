"""How likely each class is a label of a document, where it may have any number of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ramify.calibration import SeveralCalibration
from ramify.pipeline.auditing.unseen import Floats, Ints, Unseen
from ramify.taxonomy import Taxonomy, expand_to_ancestors


@dataclass(frozen=True, slots=True)
class Memberships:
    """Probabilities of classes, each for itself; of an inner node, that no child is right."""

    classes: Ints
    calibration: SeveralCalibration
    taxonomy: Taxonomy

    @classmethod
    def learn(cls, unseen: Unseen) -> Self:
        """From what learners say of some documents that they have not seen."""
        blocks = list(unseen.judged(unseen.sample(), lambda learner, scores: learner.memberships(scores)))
        P = np.concatenate([block for _, block in blocks])
        Y = expand_to_ancestors(unseen.own[np.concatenate([rows for rows, _ in blocks])], unseen.taxonomy)
        return cls(unseen.classes, SeveralCalibration.learn(P, Y, unseen.taxonomy), unseen.taxonomy)

    def __call__(self, learner: Any, scores: NDArray[np.float32]) -> Floats:
        """P(a document has the class as a most specific label), documents × classes."""
        P = self.calibration.apply(learner.memberships(scores), self.taxonomy)
        found = P[:, self.classes]
        for place, node in enumerate(self.classes.tolist()):
            below = self.taxonomy.children_of(node)
            if len(below):
                found[:, place] -= P[:, below].max(axis=1)
        return found
