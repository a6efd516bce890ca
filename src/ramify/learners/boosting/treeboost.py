"""TreeBoost.MH: AdaBoost.MH at every inner node, among its children and over its own documents only.

At an inner node the classes are its children, the documents those that carry the node, and the weights start anew, so that
a child's negatives are near to it and what is hard elsewhere does not matter. Documents that stay at the node are negatives of
all its children. A document goes down to every child with a score above 0.

Source: Esuli, Fagni & Sebastiani 2008, section 3. The roots are the children of a node above them that all documents carry.
Deviation: the paper merges a single child with its parent; here every child is merged that carries all documents of its
parent, since there is nothing to ask, and a single child is asked about where documents stay at the parent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from ramify.calibration import LogPotentials
from ramify.errors import InputError, ModelError
from ramify.features import TermSelector
from ramify.learners.base import Contributions, Evidence, Scores, evidence_of, no_evidence
from ramify.learners.boosting.committee import YES, Committee, Floats, Ints, check_merged
from ramify.learners.boosting.learner import BoostedLearner
from ramify.learners.boosting.problems import ABOVE_ROOTS, TermChoice
from ramify.learners.boosting.rounds import Settings
from ramify.learners.naive_bayes.word_counts import is_count
from ramify.learners.path_probabilities import descend_positive, log_end_probabilities, path_products
from ramify.learners.targets import Targets
from ramify.persistence import is_increasing
from ramify.taxonomy import Taxonomy, expand_to_ancestors


class TreeBoostMH(BoostedLearner):
    """Boosted stumps at every inner node (system ``treeboost-mh``); other parameters as of :class:`AdaBoostMH`.

    n_rounds: how many stumps every committee gets. Committees are made side by side; one is never cut.
    n_terms: how many terms each inner node looks at, those that tell most about its children; None for all. measure, join: how
    these are found; see :class:`~ramify.features.TermSelector`.

    Scores are sums of votes on whether a document that is at the parent goes on to the node, above 0 for yes. Fitted attributes
    are those of :class:`BoostedLearner`.

    >>> taxonomy = Taxonomy.from_paths(["food/fruit", "food/bread", "car"])
    >>> X, labels = [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0]], ["food/fruit", "food/bread", "car"]
    >>> fitted = TreeBoostMH(taxonomy, n_rounds=5).fit(X, labels)
    >>> taxonomy.decode(fitted.predict_sets([[1, 0, 0, 1]]))
    [['food/fruit']]
    """

    kind: ClassVar[str] = "treeboost-mh"

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        n_rounds: int = 500,
        variant: str = "R",
        n_terms: int | None = None,
        measure: str = "information-gain",
        join: str = "round-robin",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 50,
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.taxonomy = taxonomy
        self.n_rounds = n_rounds
        self.variant = variant
        self.n_terms = n_terms
        self.measure = measure
        self.join = join
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _settings(self) -> Settings:
        if self.n_terms is not None and not is_count(self.n_terms):
            raise InputError(f"n_terms is {self.n_terms!r}; give a whole number of 1 or more, or none for all terms.")
        TermSelector(measure=self.measure, join=self.join).check_settings()
        return super()._settings()

    def _pose(self, targets: Targets) -> tuple[list[tuple[int, Ints]], list[tuple[int, int]]]:
        taxonomy = targets.taxonomy
        taxonomy.require_tree("TreeBoost.MH")
        closed = expand_to_ancestors(targets.own, taxonomy)
        counts = np.bincount(closed.indices, minlength=len(taxonomy))
        asked, merged = [], []
        for node in [ABOVE_ROOTS, *np.flatnonzero(~taxonomy.is_leaf & (counts > 0)).tolist()]:
            children = taxonomy.roots if node == ABOVE_ROOTS else taxonomy.children_of(node)
            total = closed.shape[0] if node == ABOVE_ROOTS else counts[node]
            merged += [(int(child), node) for child in children[counts[children] == total]]
            classes = children[(counts[children] > 0) & (counts[children] < total)]
            if len(classes):
                asked.append((node, np.sort(classes).astype(np.int64)))
        return asked, sorted(merged)

    def _members(self, targets: Targets) -> csr_array:
        return expand_to_ancestors(targets.own, targets.taxonomy)

    def _choice(self) -> TermChoice | None:
        return None if self.n_terms is None else TermChoice(int(self.n_terms), self.measure, self.join)

    # ---- scoring ----------------------------------------------------------------------------------------------------

    def conditionals(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """P(node | parent), from taking scores for half log-odds, not calibrated; 1 for merged nodes."""
        shares: Floats = expit(2 * scores.astype(np.float64))
        shares[:, self.merged_] = np.where(np.isnan(scores[:, self.merged_]), np.nan, 1.0)
        return shares

    def to_probabilities(self, scores: Scores) -> Scores:
        """The product of P(node | parent) along the path."""
        return path_products(self.conditionals(scores), self.taxonomy_).astype(np.float32)

    def label_scores(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """ln P(node and none of its children), children taken for independent given their parent.

        Nodes at which no training document ended are no labels, and have NaN.
        """
        P, shares = self.to_probabilities(scores).astype(np.float64), self.conditionals(scores)
        is_label = np.isin(np.arange(len(self.taxonomy_)), self.class_nodes_)
        return np.where(np.isnan(scores) | ~is_label, np.nan, log_end_probabilities(P, shares, self.taxonomy_))

    def log_potentials(self, scores: Scores) -> LogPotentials:
        """The scores, beside those of merged nodes, which follow from their parents; to stay has none of its own."""
        steps = scores.astype(np.float64)
        steps[:, self.merged_] = np.where(np.isnan(steps[:, self.merged_]), np.nan, 0.0)
        return LogPotentials(np.zeros(scores.shape), steps)

    def _best_nodes(self, scores: Scores) -> NDArray[np.int64]:
        """From the best root to the best child, as long as one has a score above 0."""
        return descend_positive(self.margins(scores), self.taxonomy_)

    def contributions(self, x: csr_array, node: int) -> Contributions:
        """Features of one document, what the presence of each adds to the scores on the path to a node, and the biases."""
        added, bias = np.zeros(len(x.indices)), 0.0
        for step in self.taxonomy_.nodes_to(node):
            if step not in self.merged_:
                _, more, before = self.votes_on(x, step)
                added, bias = added + more, bias + before
        return x.indices.astype(np.int64), added, bias

    def evidence(self, x: csr_array, scores: NDArray[Any], node: int, end: int) -> Evidence:
        """What speaks for a yes of the committee that answers for a node; a merged node has that of the one above it."""
        if np.isnan(scores[node]):
            return no_evidence("no training document was here")
        if self._cascade.votes_for(node) is None:
            return replace(no_evidence(f"every text passes here, with {YES:g}"), score=YES, prior=YES)
        return evidence_of(self.votes_on(x, node), "the only way on" if node in self.merged_ else "")

    def _check_places(self, committees: list[Committee], merged: Ints, merged_with: Ints) -> None:
        self.taxonomy_.require_tree("TreeBoost.MH")
        for committee in committees:
            if not is_increasing(committee.classes, strictly=True) or np.any(
                self.taxonomy_.parent[committee.classes] != committee.node
            ):
                raise ModelError("a committee of boosting does not answer for children of its node; train the model again.")
        check_merged(merged, merged_with, committees, self.taxonomy_)
