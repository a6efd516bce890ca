"""From the top down by sign: a node is taken where its parent is and its score reaches the threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from ramify.decisions.held_out import read_scores
from ramify.decisions.learnt import LARGEST, Rule, about_number
from ramify.errors import InputError
from ramify.taxonomy import Taxonomy


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
    for node in np.flatnonzero(taxonomy.parent >= 0).tolist():  # parents come first
        taken[node] &= taken[taxonomy.parent[node]]
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

    def problem(self) -> str | None:
        """What is wrong with the values of this rule, if anything is."""
        return about_number("threshold", self.threshold, -LARGEST, LARGEST)
