"""Answers within some subtrees only: what a decision rule is told when it is known that a document lies there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ramify.decisions import DecisionRule, Descend
from ramify.errors import InputError
from ramify.taxonomy import Taxonomy

Bools = NDArray[np.bool_]
ROUNDING = 1e-5
SURE = 1e6  # a margin that no threshold in use is above


@dataclass(frozen=True, slots=True)
class Subtrees:
    """Where labels may lie.

    is_inside: nodes that may be labels. is_open: these, and the nodes above the subtrees that are allowed.
    """

    taxonomy: Taxonomy
    is_inside: Bools
    is_open: Bools

    @classmethod
    def of(cls, taxonomy: Taxonomy, within: Sequence[str], without: Sequence[str]) -> Self:
        """Everything below the nodes of `within` (or everything), and nothing at or below those of `without`."""
        tops, closed = [taxonomy.index(label) for label in within], [taxonomy.index(label) for label in without]
        is_inside = _below(taxonomy, tops) if tops else np.ones(len(taxonomy), dtype=bool)
        is_shut = _below(taxonomy, closed)
        is_inside &= ~is_shut
        if not is_inside.any():
            raise InputError("nothing is left of the taxonomy: every node of `within` lies in a subtree of `without`.")
        above = np.zeros(len(taxonomy), dtype=bool)
        for node in tops:
            above[taxonomy.ancestors_of(node)] = True
        return cls(taxonomy, is_inside, (is_inside | above) & ~is_shut)

    def close(self, values: Any, rule: DecisionRule) -> NDArray[np.floating[Any]]:
        """What a rule is told: no at closed nodes, and yes at those that lead to the open subtrees.

        Values are those that the rule takes: scores, margins, memberships or conditionals, documents × nodes.
        """
        V = np.array(values, dtype=np.float64)
        takes = getattr(rule, "takes", "scores")
        leads = self.is_open & ~self.is_inside
        if isinstance(rule, Descend):  # the children of a node and staying there add up to 1, also when some are closed
            self._share_out(V)
        V[:, ~self.is_open] = {"memberships": 0.0, "conditionals": 0.0}.get(takes, np.nan)
        if takes == "scores":
            V[:, leads] = np.nan
        elif takes == "margins":
            V[:, leads] = SURE
        elif takes == "conditionals":
            V[:, leads] = 1.0
        return V

    def _share_out(self, conditionals: NDArray[np.float64]) -> None:
        """What closed children had goes to their open siblings, and to staying, in proportion to what these have."""
        parent = self.taxonomy.parent
        for node in np.unique(parent[~self.is_open]).tolist():
            children = self.taxonomy.roots if node < 0 else self.taxonomy.children_of(node)
            stays = 1 - np.nansum(conditionals[:, children], axis=1, keepdims=True)
            stays[stays < ROUNDING] = 0  # so little may be what adding up has lost
            open_children = children[self.is_open[children]]
            left = np.nansum(conditionals[:, open_children], axis=1, keepdims=True) + stays
            conditionals[:, open_children] /= np.where(left > 0, left, 1)


def _below(taxonomy: Taxonomy, nodes: Sequence[int]) -> Bools:
    found = np.zeros(len(taxonomy), dtype=bool)
    for node in nodes:
        found[node] = True
        found[taxonomy.descendants_of(node)] = True
    return found
