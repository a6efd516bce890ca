"""The best node: one label per document, the node with the highest score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse

from ramify.arguments import as_numbers
from ramify.decisions import base
from ramify.decisions.reasons import NO_SCORE, format_numbers, why_missing, with_labels_below
from ramify.taxonomy import Taxonomy


def best(scores: Any, taxonomy: Taxonomy, leaves_only: bool = False) -> csr_array:
    """Label each document with its highest-scoring node and all its ancestors.

    A node with a NaN score has no classifier and is never chosen; of equal scores the first in node order wins;
    a document without any score gets no label. In a sparse matrix, absent nodes have no score.

    >>> taxonomy = Taxonomy.from_paths(["a/b", "a/c"])
    >>> taxonomy.decode(best([[float("nan"), 0.1, 0.7]], taxonomy))
    [['a/c']]
    """
    if issparse(scores):
        given = base.read_sparse_scores(scores, taxonomy)
        given = base.select_entries(given, taxonomy.is_leaf[given.indices]) if leaves_only else given
        return base.sparse_to_labels(base.are_highest(given), given, taxonomy, at_least_one=False)
    S = np.array(as_numbers(scores, "scores", base.SCORES), dtype=np.float64, ndmin=2)
    base.check_width(S.shape, taxonomy)
    S[np.isnan(S)] = -np.inf
    if leaves_only:
        S[:, ~taxonomy.is_leaf] = -np.inf
    chosen = S.argmax(axis=1) if len(taxonomy) else np.zeros(len(S), dtype=np.int64)
    return base.nodes_to_labels(np.where(S.max(axis=1, initial=-np.inf) > -np.inf, chosen, -1), taxonomy)


@dataclass(frozen=True, slots=True, eq=False)
class Best(base.DecisionRule):
    """The rule of :func:`best`, as a part of a system."""

    leaves_only: bool = base.setting(False, base.flag)
    kind: ClassVar[str] = "best"
    takes_sparse: ClassVar[bool] = True

    def decide(self, scores: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with its highest-scoring node and all its ancestors."""
        return best(scores, taxonomy, self.leaves_only)

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """How each node's score compares with the highest.

        >>> Best().reasons([0.1, 0.7], Taxonomy.flat(["a", "b"]), [0, 1])
        ['0.10, below the highest, 0.70', '0.70, the highest of 2 scores']
        """
        S = np.asarray(values, dtype=np.float64).ravel()
        candidates = np.isfinite(S) & (taxonomy.is_leaf | (not self.leaves_only))
        if not candidates.any():
            return ["no node has a score"] * len(nodes)
        top = int(np.argmax(np.where(candidates, S, -np.inf)))
        equals = np.count_nonzero(S[candidates] == S[top])

        def explain(node: int) -> str:
            if not np.isfinite(S[node]):
                return why_missing(S[node], NO_SCORE)
            score, highest = format_numbers(S[node], S[top])
            if node == top:
                first = f", and the first of {equals} that have it" if equals > 1 else ""
                return f"{score}, the highest of {np.count_nonzero(candidates)} scores{first}"
            if not candidates[node]:
                return f"{score}, but only leaves are chosen; the best leaf has {highest}"
            if S[node] == S[top]:
                return f"{score}, as high as {taxonomy.titles[top]!r}, which comes first"
            return f"{score}, below the highest, {highest}"

        return with_labels_below(explain, nodes, np.arange(len(S)) == top, S, taxonomy)
