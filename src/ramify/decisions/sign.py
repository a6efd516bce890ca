"""By sign alone: a node is taken where its score reaches the threshold, whatever its parents say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from ramify.decisions.held_out import read_scores
from ramify.decisions.learnt import LARGEST, Rule, about_number
from ramify.decisions.reasons import compare, with_labels_below
from ramify.errors import InputError
from ramify.taxonomy import Taxonomy, expand_to_ancestors


def sign(scores: Any, taxonomy: Taxonomy, threshold: float = 0.0) -> csr_array:
    """Label each document with the nodes that reach the threshold, and all their ancestors; trees and DAGs alike.

    Nodes with a NaN score are taken only for what is below them.

    >>> taxonomy = Taxonomy.from_paths(["a/b", "c/d"])
    >>> taxonomy.decode(sign([[-0.5, 0.1, -1.0, -2.0]], taxonomy))
    [['a/b']]
    """
    if problem := about_number("threshold", threshold, -LARGEST, LARGEST):
        raise InputError(f"{problem}.")
    return expand_to_ancestors(csr_array(read_scores(scores, taxonomy) >= threshold), taxonomy)


@dataclass(frozen=True, slots=True, eq=False)
class Sign(Rule):
    """The rule of :func:`sign`, as a part of a system."""

    threshold: float = 0.0
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
        margins = read_scores(values, taxonomy)[0]

        def say(node: int) -> str:
            if np.isnan(margins[node]):
                return "no classifier answers here"
            return f"margin {compare(margins[node], self.threshold, '')}"

        return with_labels_below(say, nodes, margins >= self.threshold, margins, taxonomy)

    def problem(self) -> str | None:
        """What is wrong with the values of this rule, if anything is."""
        return about_number("threshold", self.threshold, -LARGEST, LARGEST)
