"""From the top down: at every node to the likeliest child, until staying is likelier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from ramify.decisions.bayes import read_probabilities
from ramify.decisions.learnt import Rule
from ramify.errors import InputError
from ramify.taxonomy import Taxonomy, expand_to_ancestors, walk_down


def descend(scores: Any, taxonomy: Taxonomy) -> csr_array:
    """Label each document with the node at which it ends, and all above it.

    scores: ln P(node | parent), NaN for nodes that cannot be entered; what the children leave of 1 is the chance to stay.

    >>> taxonomy = Taxonomy.from_paths(["a/b", "a/c"])
    >>> taxonomy.decode(descend(np.log([[1.0, 0.3, 0.7]]), taxonomy))
    [['a/c']]
    """
    taxonomy.require_tree("going from the top down")
    S = np.array(scores, dtype=np.float32, ndmin=2)
    if S.ndim != 2 or S.shape[1] != len(taxonomy):
        raise InputError(f"scores have shape {S.shape}; the taxonomy has {len(taxonomy)} nodes, one column each.")
    ends = walk_down(S, taxonomy)
    rows = np.flatnonzero(ends >= 0)
    own = csr_array((np.ones(len(rows), dtype=bool), (rows, ends[rows])), shape=S.shape)
    return expand_to_ancestors(own, taxonomy)


@dataclass(frozen=True, slots=True, eq=False)
class Descend(Rule):
    """The rule of :func:`descend`, as a part of a system."""

    kind: ClassVar[str] = "descend"
    takes: ClassVar[str] = "conditionals"

    def decide(self, values: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with the node at which it ends, and all above it."""
        with np.errstate(divide="ignore"):
            return descend(np.log(read_probabilities(values, taxonomy)), taxonomy)

    def problem(self) -> str | None:
        """It has no settings, so nothing is ever wrong with them."""
        return None
