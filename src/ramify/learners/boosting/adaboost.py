"""AdaBoost.MH over all labelled nodes: one committee, whose stumps vote for and against every class.

Source: AdaBoost.MH of Schapire & Singer 2000 as used by Esuli, Fagni & Sebastiani 2008, section 2; see ``rounds.py``.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from ramify.errors import ModelError
from ramify.learners.base import Contributions, MulticlassLearner, Scores
from ramify.learners.boosting.committee import ABOVE_ROOTS, Committee, Ints
from ramify.learners.boosting.learner import BoostedLearner
from ramify.learners.boosting.rounds import Question
from ramify.learners.path_probabilities import aggregate_upward
from ramify.learners.targets import Targets
from ramify.taxonomy import ancestor_matrix


class AdaBoostMH(MulticlassLearner, BoostedLearner):
    """Boosted stumps over all classes (system ``adaboost-mh``).

    Only whether a document has a term counts, not its value. A sample weight of 2 counts as two copies of a document; weights
    far below 1 have little effect, because of the smoothing.

    n_rounds: the number of stumps. There is one committee, which is not split over workers: a cluster is no faster.
    variant: ``"R"``, real-valued votes; ``"RA"``, which abstains where the term is absent; or ``"D"``, discrete votes ±α.
    early_stopping: hold out `validation_fraction` of the documents, stop when micro F1 on them (where equal, the loss) has not
    improved for `patience` rounds, and keep the rounds up to the best. random_state: selects the held-out documents.

    Scores are sums of votes, positive for yes. Fitted attributes are those of :class:`BoostedLearner`.

    >>> fitted = AdaBoostMH(n_rounds=5).fit([[1, 0, 1], [1, 0, 0], [0, 1, 1]], ["fruit", "fruit", "bread"])
    >>> fitted.predict([[1, 0, 0]]).tolist(), fitted.committees_[0].pivots[:2].tolist()
    (['fruit'], [0, 0])
    """

    kind: ClassVar[str] = "adaboost-mh"

    def _questions(self, targets: Targets) -> tuple[list[Question], list[tuple[int, int]]]:
        return [(ABOVE_ROOTS, np.unique(targets.own.indices).astype(np.int64))], []

    def _document_nodes(self, targets: Targets) -> csr_array:
        return targets.own

    def _set_committees(self, committees: list[Committee], merged: Ints, merged_with: Ints) -> None:
        super()._set_committees(committees, merged, merged_with)
        self._nodes_above = ancestor_matrix(self.taxonomy_)[self.class_nodes_].astype(np.float64)

    # ---- scoring ----------------------------------------------------------------------------------------------------

    def to_probabilities(self, scores: Scores) -> Scores:
        """Probabilities from scores taken as half log-odds, not calibrated.

        Trained on one label per document, they are normalized to sum to one, and a node gets the sum of the classes at and
        below it; otherwise it gets the largest of them.
        """
        each = expit(2 * scores[:, self.class_nodes_].astype(np.float64))
        return aggregate_upward(each, self._nodes_above, self.is_multi_label_)

    def margins(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """For every node the highest score of the classes at and below it."""
        each = super().margins(scores)[:, self.class_nodes_]
        margins = np.full(scores.shape, -np.inf)
        for column, above in enumerate(np.split(self._nodes_above.indices, self._nodes_above.indptr[1:-1])):
            margins[:, above] = np.fmax(margins[:, above], each[:, [column]])
        return margins

    def contributions(self, x: csr_array, node: int) -> Contributions:
        """Features of one document, what the presence of each adds to the score of a class, and the bias."""
        return self.votes_on(x, node)

    def _check_places(self, committees: list[Committee], merged: Ints, merged_with: Ints) -> None:
        is_single = len(committees) == 1 and committees[0].node == ABOVE_ROOTS and not len(merged) and not len(merged_with)
        if not is_single or not np.array_equal(committees[0].classes, self.class_nodes_):
            raise ModelError("AdaBoost.MH has one committee for all classes, and the model another; train the model again.")
