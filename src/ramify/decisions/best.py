"""The best node: one label a document, the node with the highest score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse

from ramify.decisions.base import Rule, about_flag, are_highest, keep_entries, read_sparse_scores, sparse_to_labels
from ramify.decisions.reasons import tell, with_labels_below
from ramify.errors import InputError
from ramify.taxonomy import Taxonomy, expand_to_ancestors


def best(scores: Any, taxonomy: Taxonomy, leaves_only: bool = False) -> csr_array:
    """Label each document with its highest-scoring node and all its ancestors.

    Nodes with a NaN score have no classifier and are never chosen; of equal scores the first in node order wins;
    a document without any score gets no label. In a sparse matrix, nodes that are absent have no score.

    >>> taxonomy = Taxonomy.from_paths(["a/b", "a/c"])
    >>> taxonomy.decode(best([[float("nan"), 0.1, 0.7]], taxonomy))
    [['a/c']]
    """
    if issparse(scores):
        few = read_sparse_scores(scores, taxonomy)
        few = keep_entries(few, taxonomy.is_leaf[few.indices]) if leaves_only else few
        return sparse_to_labels(are_highest(few), few, taxonomy, at_least_one=False)
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
    takes_sparse: ClassVar[bool] = True

    def decide(self, scores: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with its highest-scoring node and all its ancestors."""
        return best(scores, taxonomy, self.leaves_only)

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Where each node stands beside the highest.

        >>> Best().reasons([0.1, 0.7], Taxonomy.flat(["a", "b"]), [0, 1])
        ['0.10, below the highest, 0.70', '0.70, the highest of 2 scores']
        """
        S = np.asarray(values, dtype=np.float64).ravel()
        asked = np.isfinite(S) & (taxonomy.is_leaf | (not self.leaves_only))
        if not asked.any():
            return ["no node has a score"] * len(nodes)
        top = int(np.argmax(np.where(asked, S, -np.inf)))
        equals = np.count_nonzero(S[asked] == S[top])

        def say(node: int) -> str:
            if not np.isfinite(S[node]):
                return "it has no score of its own"
            told, highest = tell(S[node], S[top])
            if node == top:
                first = f", and the first of {equals} that have it" if equals > 1 else ""
                return f"{told}, the highest of {np.count_nonzero(asked)} scores{first}"
            if not asked[node]:
                return f"{told}, though only leaves are chosen; their best has {highest}"
            if S[node] == S[top]:
                return f"{told}, as high as {taxonomy.titles[top]!r}, which comes first"
            return f"{told}, below the highest, {highest}"

        return with_labels_below(say, nodes, np.arange(len(S)) == top, S, taxonomy)

    def problem(self) -> str | None:
        """What is wrong with the values of this rule, if anything is."""
        return about_flag("leaves_only", self.leaves_only)
