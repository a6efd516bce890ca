"""The best node: one label a document, the node with the highest score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from ramify.decisions.learnt import Rule, about_flag
from ramify.errors import InputError
from ramify.taxonomy import Taxonomy, expand_to_ancestors


def best(scores: Any, taxonomy: Taxonomy, leaves_only: bool = False) -> csr_array:
    """Label each document with its highest-scoring node and all its ancestors.

    Nodes with a NaN score have no classifier and are never chosen; of equal scores the first in node order wins;
    a document without any score gets no label.

    >>> taxonomy = Taxonomy.from_paths(["a/b", "a/c"])
    >>> taxonomy.decode(best([[float("nan"), 0.1, 0.7]], taxonomy))
    [['a/c']]
    """
    S = np.array(scores, dtype=np.float64, ndmin=2)
    if S.ndim != 2 or S.shape[1] != len(taxonomy):
        raise InputError(f"scores have shape {S.shape}; the taxonomy has {len(taxonomy)} nodes, one column each.")
    S[np.isnan(S)] = -np.inf
    if leaves_only:
        S[:, ~taxonomy.is_leaf] = -np.inf
    chosen = S.argmax(axis=1) if len(taxonomy) else np.zeros(len(S), dtype=np.int64)
    rows = np.flatnonzero(S.max(axis=1, initial=-np.inf) > -np.inf)
    own = csr_array((np.ones(len(rows), dtype=bool), (rows, chosen[rows])), shape=S.shape)
    return expand_to_ancestors(own, taxonomy)


@dataclass(frozen=True, slots=True, eq=False)
class Best(Rule):
    """The rule of :func:`best`, as a part of a system."""

    leaves_only: bool = False
    kind: ClassVar[str] = "best"
    takes: ClassVar[str] = "scores"

    def decide(self, scores: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with its highest-scoring node and all its ancestors."""
        return best(scores, taxonomy, self.leaves_only)

    def problem(self) -> str | None:
        """What is wrong with the values of this rule, if anything is."""
        return about_flag("leaves_only", self.leaves_only)
