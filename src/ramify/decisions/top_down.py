"""From the top down by sign: a node is taken where its parent is and its score reaches the threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from ramify.decisions.held_out import read_scores
from ramify.decisions.learnt import LARGEST, Rule, about_number
from ramify.decisions.reasons import UNANSWERED, compare
from ramify.errors import InputError
from ramify.taxonomy import Taxonomy, levels_of


def top_down(scores: Any, taxonomy: Taxonomy, threshold: float = 0.0) -> csr_array:
    """Label each document with the nodes that reach the threshold and whose ancestors all do.

    Source: H-SVM of Cesa-Bianchi, Gentile & Zaniboni 2006, section 4. Nodes with a NaN score are never taken.

    >>> taxonomy = Taxonomy.from_paths(["a/b", "c/d"])
    >>> taxonomy.decode(top_down([[0.5, 0.1, -1.0, 2.0]], taxonomy))
    [['a/b']]
    """
    taxonomy.require_tree("going from the top down")
    if problem := about_number("threshold", threshold, -LARGEST, LARGEST):
        raise InputError(f"{problem}.")
    taken = np.ascontiguousarray((read_scores(scores, taxonomy) >= threshold).T)
    parent = taxonomy.parent
    for level in levels_of(taxonomy)[1:]:
        taken[level] &= taken[parent[level]]
    return csr_array(taken.T)


@dataclass(frozen=True, slots=True, eq=False)
class TopDown(Rule):
    """The rule of :func:`top_down`, as a part of a system."""

    threshold: float = 0.0
    kind: ClassVar[str] = "top-down"
    takes: ClassVar[str] = "margins"

    def decide(self, values: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with the nodes that reach the threshold and whose ancestors all do."""
        return top_down(values, taxonomy, self.threshold)

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Whether each node's margin reaches the threshold, and those of the nodes above it do.

        >>> TopDown().reasons([-1.0, 2.0], Taxonomy.from_paths(["a/b"]), [0, 1])
        ['margin -1.00 is below 0', 'margin 2.00 would reach 0, but its parent was not taken']
        """
        margins = read_scores(values, taxonomy)[0]

        def say(node: int) -> str:
            above = taxonomy.nodes_to(node)[:-1]
            is_reached = bool((margins[above] >= self.threshold).all())
            if np.isnan(margins[node]):
                return UNANSWERED
            said = f"margin {compare(margins[node], self.threshold, '')}"
            if margins[node] < self.threshold:
                return said if is_reached else f"{said}, and its parent was not taken"
            if not is_reached:
                return f"{said.replace('reaches', 'would reach')}, but its parent was not taken"
            return f"{said}, and every node above was taken" if above else said

        return [say(node) for node in nodes]

    def problem(self) -> str | None:
        """What is wrong with the values of this rule, if anything is."""
        return about_number("threshold", self.threshold, -LARGEST, LARGEST)
