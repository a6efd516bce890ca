"""TreeBoost.MH: AdaBoost.MH at every inner node, among its children and over its own documents only.

At an inner node the classes are its children, the training set is its documents, and the weights start afresh, so that the
negatives of a child are its siblings' documents. Documents labelled with the node itself are negatives of all its children.
A document goes on to every child with a positive score.

Source: Esuli, Fagni & Sebastiani 2008, section 3. The roots are the children of a virtual node that has all documents.
Deviation: the paper merges a single child with its parent; here every child is merged that has all documents of its parent,
since there is nothing to separate, and a single child has a committee where documents stay at the parent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from ramify.calibration import LogPotentials
from ramify.errors import InputError, ModelError
from ramify.features import TermSelector
from ramify.learners.base import Contributions, Evidence, Scores
from ramify.learners.boosting.committee import ABOVE_ROOTS, YES, Committee, Floats, Ints, check_merged
from ramify.learners.boosting.learner import BoostedLearner
from ramify.learners.boosting.problems import TermSelection
from ramify.learners.boosting.rounds import Question, Settings
from ramify.learners.naive_bayes.word_counts import is_count
from ramify.learners.path_probabilities import descend_positive, log_end_probabilities, path_products
from ramify.learners.targets import Targets
from ramify.persistence import is_increasing
from ramify.taxonomy import expand_to_ancestors, largest_below


@dataclass(eq=False, repr=False, kw_only=True)
class TreeBoostMH(BoostedLearner):
    """Boosted stumps at every inner node (system ``treeboost-mh``); other parameters as of :class:`AdaBoostMH`.

    n_rounds: the number of stumps of every committee. Committees are trained in parallel; one is not split over workers.
    n_terms: how many terms each inner node uses, the most informative ones for its children; None for all. measure, join: how
    these are selected; see :class:`~ramify.features.TermSelector`.

    Scores are sums of votes on whether a document of the parent goes on to the node, positive for yes. Fitted attributes are
    those of :class:`BoostedLearner`.

    >>> from ramify import Taxonomy
    >>> taxonomy = Taxonomy.from_paths(["food/fruit", "food/bread", "car"])
    >>> X, labels = [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0]], ["food/fruit", "food/bread", "car"]
    >>> fitted = TreeBoostMH(taxonomy, n_rounds=5).fit(X, labels)
    >>> taxonomy.decode(fitted.predict_sets([[1, 0, 0, 1]]))
    [['food/fruit']]
    """

    kind: ClassVar[str] = "treeboost-mh"
    uses_main_parents: ClassVar[bool] = True
    n_terms: int | None = None
    measure: str = "information-gain"
    join: str = "round-robin"

    def _settings(self) -> Settings:
        if self.n_terms is not None and not is_count(self.n_terms):
            raise InputError(f"n_terms is {self.n_terms!r}; give a whole number of 1 or more, or none for all terms.")
        TermSelector(measure=self.measure, join=self.join).check_settings()
        selection = None if self.n_terms is None else TermSelection(int(self.n_terms), self.measure, self.join)
        return replace(super()._settings(), selection=selection)

    def _questions(self, targets: Targets) -> tuple[list[Question], list[tuple[int, int]]]:
        taxonomy = targets.taxonomy.tree
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

    def _document_nodes(self, targets: Targets) -> csr_array:
        return expand_to_ancestors(targets.own, targets.taxonomy.tree)

    # ---- scoring ----------------------------------------------------------------------------------------------------

    def conditionals(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """P(node | parent) from scores taken as half log-odds, not calibrated; 1 for merged nodes."""
        conditional: Floats = expit(2 * scores.astype(np.float64))
        conditional[:, self.merged_] = np.where(np.isnan(scores[:, self.merged_]), np.nan, 1.0)
        return conditional

    def to_probabilities(self, scores: Scores) -> Scores:
        """The product of P(node | parent) along the path; in a DAG, the largest at and below a node."""
        P = self.tree_probabilities(scores)
        return P if self.taxonomy_.is_tree else largest_below(P, self.taxonomy_)

    def tree_probabilities(self, scores: Scores) -> Scores:
        """The product of P(node | parent) along the path."""
        return path_products(self.conditionals(scores), self.taxonomy_.tree).astype(np.float32)

    def label_scores(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """ln P(node and none of its children), children independent given their parent; NaN for nodes that are no labels."""
        P, conditional = self.tree_probabilities(scores).astype(np.float64), self.conditionals(scores)
        is_label = np.isin(np.arange(len(self.taxonomy_)), self.class_nodes_)
        ends = np.where(is_label, log_end_probabilities(P, conditional, self.taxonomy_.tree), np.nan)
        return np.where(np.isfinite(scores), ends, scores)

    def log_potentials(self, scores: Scores) -> LogPotentials:
        """The scores of steps, 0 for merged nodes; staying has 0."""
        steps = scores.astype(np.float64)
        steps[:, self.merged_] = np.where(np.isnan(steps[:, self.merged_]), np.nan, 0.0)
        return LogPotentials(np.zeros(scores.shape), steps)

    def _best_nodes(self, scores: Scores) -> NDArray[np.int64]:
        """From the best root to the best child, as long as its score is positive."""
        return descend_positive(self.margins(scores), self.taxonomy_.tree)

    def contributions(self, x: csr_array, node: int) -> Contributions:
        """Features of one document, what the presence of each adds to the scores on the path to a node, and the biases."""
        added, bias = np.zeros(len(x.indices)), 0.0
        for step in self.taxonomy_.nodes_to(node):
            if step not in self.merged_:
                _, more, more_bias = self.votes_on(x, step)
                added, bias = added + more, bias + more_bias
        return x.indices.astype(np.int64), added, bias

    def evidence(self, x: csr_array, scores: NDArray[Any], node: int, end: int) -> Evidence:
        """The score of a node's committee; a merged node has that of the node above it."""
        if not np.isfinite(scores[node]):
            return Evidence.none("no training document was here")
        if self._tree.votes_for(node) is None:
            return replace(Evidence.none(f"every text passes here, with {YES:g}"), score=YES, prior=YES)
        return Evidence.of(self.votes_on(x, node), "the only way on" if node in self.merged_ else "")

    def _check_places(self, committees: list[Committee], merged: Ints, merged_with: Ints) -> None:
        for committee in committees:
            leads = np.all(self.taxonomy_.tree.parent[committee.classes] == committee.node)
            if not leads or not is_increasing(committee.classes, strictly=True):
                raise ModelError("a committee of boosting does not score children of its node; train the model again.")
        check_merged(merged, merged_with, committees, self.taxonomy_.tree)
