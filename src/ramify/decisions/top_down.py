"""Rules that compare each node with a threshold, with or without its ancestors, and the greedy descent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from ramify.arguments import as_numbers
from ramify.decisions import base
from ramify.decisions.reasons import IMPOSSIBLE, NO_CLASSIFIER, compare, format_numbers, why_missing, with_labels_below
from ramify.taxonomy import Taxonomy, descend_by_probability, expand_to_ancestors, levels_of


def sign(scores: Any, taxonomy: Taxonomy, threshold: float = 0.0) -> csr_array:
    """Label each document with the nodes that reach the threshold, and all their ancestors; for trees and DAGs.

    A node with a NaN score is taken only as the ancestor of another.

    >>> taxonomy = Taxonomy.from_paths(["a/b", "c/d"])
    >>> taxonomy.decode(sign([[-0.5, 0.1, -1.0, -2.0]], taxonomy))
    [['a/b']]
    """
    S = base.read_scores(scores, taxonomy)
    Sign(threshold).check()
    return expand_to_ancestors(csr_array(threshold <= S), taxonomy)


def top_down(scores: Any, taxonomy: Taxonomy, threshold: float = 0.0) -> csr_array:
    """Label each document with the nodes that reach the threshold and whose ancestors all do; in a DAG, those in its tree.

    Source: H-SVM of Cesa-Bianchi, Gentile & Zaniboni 2006, section 4. A node with a NaN score is never taken. A DAG is
    decided over its main-parent tree; then all ancestors of a label are added.

    >>> taxonomy = Taxonomy.from_paths(["a/b", "c/d"])
    >>> taxonomy.decode(top_down([[0.5, 0.1, -1.0, 2.0]], taxonomy))
    [['a/b']]
    """
    S, tree = base.read_scores(scores, taxonomy), taxonomy.tree
    TopDown(threshold).check()
    taken = np.ascontiguousarray((threshold <= S).T)
    for level in levels_of(tree)[1:]:
        taken[level] &= taken[tree.parent[level]]
    return base.close_over_dag(csr_array(taken.T), taxonomy)


def descend(scores: Any, taxonomy: Taxonomy) -> csr_array:
    """Follow the most probable child from the root, until stopping is more probable; label with that node and its ancestors.

    scores: ln P(node | parent), NaN or -inf for nodes that cannot be entered; the probability to stop is what the children
    leave of 1. In a DAG, parents are main parents, and all ancestors of the node are labels.

    >>> taxonomy = Taxonomy.from_paths(["a/b", "a/c"])
    >>> taxonomy.decode(descend(np.log([[1.0, 0.3, 0.7]]), taxonomy))
    [['a/c']]
    """
    S = np.array(as_numbers(scores, "scores", base.SCORES), dtype=np.float32, ndmin=2)
    base.check_width(S.shape, taxonomy)
    return base.nodes_to_labels(descend_by_probability(S, taxonomy.tree), taxonomy)


@dataclass(frozen=True, slots=True, eq=False)
class Sign(base.DecisionRule):
    """The rule of :func:`sign`, as a part of a system."""

    threshold: float = base.setting(0.0, base.number())
    kind: ClassVar[str] = "sign"
    takes: ClassVar[str] = "margins"

    def decide(self, values: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with the nodes that reach the threshold, and all their ancestors."""
        return sign(values, taxonomy, self.threshold)

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Whether each node's margin reaches the threshold.

        >>> Sign().reasons([-0.5, 0.1], Taxonomy.from_paths(["a/b"]), [0, 1])
        ["margin -0.50 is below 0, but 'b' below it was taken", 'margin 0.10 reaches 0']
        """
        margins = base.read_scores(values, taxonomy)[0]

        def explain(node: int) -> str:
            if not np.isfinite(margins[node]):
                return why_missing(margins[node], "it has no classifier")
            return f"margin {compare(margins[node], self.threshold, '')}"

        return with_labels_below(explain, nodes, margins >= self.threshold, margins, taxonomy)


@dataclass(frozen=True, slots=True, eq=False)
class TopDown(base.DecisionRule):
    """The rule of :func:`top_down`, as a part of a system."""

    threshold: float = base.setting(0.0, base.number())
    kind: ClassVar[str] = "top-down"
    uses_main_parents: ClassVar[bool] = True
    takes: ClassVar[str] = "margins"

    def decide(self, values: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with the nodes that reach the threshold and whose ancestors all do."""
        return top_down(values, taxonomy, self.threshold)

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Whether each node's margin and those of its ancestors reach the threshold.

        >>> TopDown().reasons([-1.0, 2.0], Taxonomy.from_paths(["a/b"]), [0, 1])
        ['margin -1.00 is below 0', 'margin 2.00 would reach 0, but its parent was not taken']
        """
        margins = base.read_scores(values, taxonomy)[0]
        chosen = self.decide(margins, taxonomy.tree).toarray()[0]  # a DAG adds their other ancestors

        def explain(node: int) -> str:
            if not np.isfinite(margins[node]):
                return why_missing(margins[node], NO_CLASSIFIER)
            above = taxonomy.nodes_to(node)[:-1]
            is_parent_taken = bool((margins[above] >= self.threshold).all())
            reason = f"margin {compare(margins[node], self.threshold, '')}"
            if margins[node] < self.threshold:
                return reason if is_parent_taken else f"{reason}, and its parent was not taken"
            if not is_parent_taken:
                return f"{reason.replace('reaches', 'would reach')}, but its parent was not taken"
            return f"{reason}, and every node above was taken" if above else reason

        return with_labels_below(explain, nodes, chosen, margins, taxonomy)


@dataclass(frozen=True, slots=True, eq=False)
class Descend(base.DecisionRule):
    """The rule of :func:`descend`, as a part of a system."""

    kind: ClassVar[str] = "descend"
    uses_main_parents: ClassVar[bool] = True
    takes: ClassVar[str] = "conditionals"

    def decide(self, values: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with the node at which the descent stops, and its ancestors."""
        with np.errstate(divide="ignore"):
            return descend(np.log(base.read_probabilities(values, taxonomy)), taxonomy)

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Which child was the most probable, and how probable it was to stop.

        >>> Descend().reasons([1.0, 0.2, 0.7], Taxonomy.from_paths(["a/b", "a/c"]), [1, 2])
        ["0.20, below 'c', 0.70", 'the most probable child, 0.70; stopping had 0.10']
        """
        P, tree = base.read_probabilities(values, taxonomy)[0].astype(np.float64), taxonomy.tree
        chosen = self.decide(P, tree).toarray()[0]  # a DAG adds their other ancestors
        taken = set(np.flatnonzero(chosen).tolist())

        def explain(node: int) -> str:
            parent = int(tree.parent[node])
            siblings = tree.roots if parent < 0 else tree.children_of(parent)
            stop = max(0.0, 1 - float(np.nansum(P[siblings])))
            if not P[node] > 0:
                return NO_CLASSIFIER if np.isnan(P[node]) else IMPOSSIBLE
            if parent >= 0 and parent not in taken:
                is_most_probable = P[node] >= max(np.nanmax(P[siblings]), stop)
                reason = " would be the most probable child, but" if is_most_probable else ", and"
                return f"{format_numbers(P[node])[0]}{reason} its parent was not taken"
            chosen = next((sibling for sibling in siblings.tolist() if sibling in taken), None)
            own, stopping, best = format_numbers(P[node], stop, P[node] if chosen is None else P[chosen])
            if node == chosen:
                return f"the most probable {f'child, {own}; stopping had {stopping}' if parent >= 0 else f'root, {own}'}"
            if chosen is None:
                return f"{own}, below stopping, {stopping}"
            return f"{own}, {'as probable as' if P[node] == P[chosen] else 'below'} {taxonomy.titles[chosen]!r}, {best}"

        return with_labels_below(explain, nodes, chosen, P, taxonomy)
