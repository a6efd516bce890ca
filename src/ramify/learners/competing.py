"""What learners share whose classes compete: one score each, of which the highest is the best."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.learners.contract import Learner
from ramify.learners.evidence import Evidence, best_of, classes_under, lead_over, no_question


class CompetingClasses(Learner):
    """A learner with a score for every node that has documents of its own.

    ``class_nodes_``: these nodes, the classes.
    """

    class_nodes_: NDArray[np.int64]
    _nodes_above: csr_array

    def spokesman(self, scores: NDArray[Any], node: int) -> int | None:
        """The class whose score is a node's: its own, or else the best below it; None where no class is."""
        return node if node in self.class_nodes_ else best_of(scores, self._classes_under(node))

    def evidence(self, x: csr_array, scores: NDArray[Any], node: int, end: int) -> Evidence:
        """What speaks for the class at the end, against the best of those that part from it at a node on the way.

        These lie at or below the node's parent, the one above it on the way, and not at or below the node.
        """
        speaker = self.spokesman(scores, end)
        if speaker is None:
            return no_question("no training document was here")
        way = self.taxonomy_.nodes_to(end)
        place = way.index(node)
        around = self.class_nodes_ if place == 0 else self._classes_under(way[place - 1])
        rival = best_of(scores, np.setdiff1d(around, self._classes_under(node)))
        if rival is None:
            return no_question("the only way on")
        return lead_over(rival, self.contributions(x, speaker), self.contributions(x, rival))

    def _classes_under(self, node: int) -> NDArray[np.int64]:
        return self.class_nodes_[classes_under(self._nodes_above, node)]
