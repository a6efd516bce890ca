"""The label set with the least expected H-loss, for children that are independent given their parent.

With p_i = P(node i | its parent is true) and costs c_i, from the leaves up,

    risk_i = c_i p_i                                        if node i is left,
             c_i (1 − p_i) + p_i Σ_{children k} risk_k      if it is taken,

and a node is taken when that costs no more and it is possible (p_i > 0). Source: Cesa-Bianchi, Gentile & Zaniboni 2006,
section 3.1.
Deviation: the paper's H adds the children's risk unweighted by p_i, whether or not the node is taken; so printed, it misses
the least expected loss on some forests (docs/papers/cesabianchi2006.md). Its condition (1) follows from the form above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from ramify.decisions import base
from ramify.decisions.base import Floats, Scores
from ramify.decisions.reasons import IMPOSSIBLE, NO_CLASSIFIER, compare, format_numbers, with_labels_below
from ramify.metrics.hierarchical import Costs, node_costs
from ramify.native import minimize_h_loss as minimize_rows
from ramify.taxonomy import Taxonomy, levels_of

MAX_DEPTH = 1 << 30


def minimize_h_loss(
    probabilities: Any, taxonomy: Taxonomy, costs: Costs = None, switch_depth: int = 0, n_jobs: int | None = None
) -> csr_array:
    """Label each document with the set of nodes that has the least expected H-loss.

    probabilities: documents × nodes, P(node | parent); a node with NaN or 0 is never taken.
    costs: 1 everywhere, "siblings" for 1 / the number of siblings, one number per node, or numbers by node name (others: 1).
    switch_depth: nodes above this depth are decided from the top down, at 1/2; 0 decides all from the bottom up.
    The set is exact for a tree. A DAG is decided over its main-parent tree, whose H-loss is minimized; then all ancestors of a
    label are added.

    >>> taxonomy = Taxonomy.from_paths(["a/b", "a/c"])
    >>> taxonomy.decode(minimize_h_loss([[0.6, 0.9, 0.1], [0.6, 0.5, 0.5]], taxonomy))
    [['a/b'], []]
    """
    P, tree = base.read_probabilities(probabilities, taxonomy), taxonomy.tree
    MinimizeHLoss(switch_depth=switch_depth).check()
    by_sign = (tree.depth < switch_depth).astype(np.uint8)
    parent, cost = tree.parent.astype(np.int32), node_costs(tree, costs)
    parts = base.over_rows(P, lambda block: minimize_rows(block, parent, cost, by_sign), n_jobs)
    offsets, nodes = ([part[k] for part in parts] for k in (0, 1))
    starts = np.cumsum([0, *(len(some) for some in nodes)])
    indptr = np.concatenate([[0], *(some[1:] + start for some, start in zip(offsets, starts, strict=False))])
    indices = np.concatenate([np.zeros(0, dtype=np.int32), *nodes])
    return base.close_over_dag(csr_array((np.ones(len(indices), dtype=bool), indices, indptr), shape=P.shape), taxonomy)


def expected_losses(p: Scores, taxonomy: Taxonomy, costs: Floats, switch_depth: int = 0) -> tuple[Floats, Floats]:
    """The expected H-loss of taking and of leaving each node of one document, given that its parent is true and taken.

    >>> expected_losses(np.array([0.6, 0.9, 0.1]), Taxonomy.from_paths(["a/b", "a/c"]), np.ones(3))[0].round(2)
    array([0.52, 0.1 , 0.9 ])
    """
    probability, parent, below = np.nan_to_num(p.astype(np.float64), nan=0.0), taxonomy.parent, np.zeros(len(p))
    if_left, if_taken = costs * probability, costs * (1 - probability)
    for level in reversed(levels_of(taxonomy)):
        if_taken[level] += probability[level] * below[level]
        by_sign = taxonomy.depth[level] < switch_depth
        takes = np.where(by_sign, probability[level] >= 0.5, (if_taken[level] <= if_left[level]) & (probability[level] > 0))
        inner = level[parent[level] >= 0]
        least = np.where(takes, if_taken[level], if_left[level])[parent[level] >= 0]
        np.add.at(below, parent[inner], least)
    return if_taken, if_left


def _about_costs(name: str, costs: Any) -> str | None:
    if not isinstance(costs, str):
        return base.numbers(0, by_name=True)(name, costs)
    fits = costs in ("siblings", "uniform")
    return None if fits else f"costs is {costs!r}, not 'siblings', 'uniform', or a number per node"


def _about_depth(name: str, depth: Any) -> str | None:
    return base.count(0)(name, depth) or (None if depth <= MAX_DEPTH else f"switch_depth is {depth!r}, too large")


@dataclass(frozen=True, slots=True, eq=False)
class MinimizeHLoss(base.DecisionRule):
    """The rule of :func:`minimize_h_loss`, as a part of a system; it takes P(node | parent).

    costs: "siblings", "uniform", one number per node, or numbers by node name (others: 1).

    >>> tree = Taxonomy.from_paths(["a/b", "a/c"])
    >>> tree.decode(MinimizeHLoss(costs={"c": 0.1}).decide([[0.9, 0.4, 0.6]], tree))
    [['a/c']]
    """

    costs: str | base.Numbers | base.ByName = base.setting("siblings", _about_costs, of_others=1.0)
    switch_depth: int = base.setting(0, _about_depth)
    kind: ClassVar[str] = "minimize-h-loss"
    uses_main_parents: ClassVar[bool] = True
    takes: ClassVar[str] = "conditionals"

    def decide(self, values: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with the set of nodes that has the least expected H-loss."""
        self.check()
        return minimize_h_loss(values, taxonomy, self._costs, self.switch_depth)

    @property
    def _costs(self) -> Any:
        return None if isinstance(self.costs, str) and self.costs == "uniform" else self.costs

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """The expected loss of taking and of leaving each node, given that its parent is true and taken.

        >>> tree = Taxonomy.from_paths(["a/b", "a/c"])
        >>> MinimizeHLoss(costs="uniform").reasons([0.6, 0.5, 0.5], tree, [0, 1])[0]
        'more probable than not, 0.60, but the expected loss is 1.00 if taken and 0.60 if left'
        """
        P, tree = base.read_probabilities(values, taxonomy), taxonomy.tree
        if_taken, if_left = expected_losses(P[0], tree, node_costs(tree, self._costs), self.switch_depth)
        chosen, parent = self.decide(P, tree).toarray()[0], tree.parent  # a DAG adds their other ancestors

        def explain(node: int) -> str:
            p, is_by_sign = float(P[0, node]), bool(tree.depth[node] < self.switch_depth)
            if not p > 0:
                return NO_CLASSIFIER if np.isnan(p) else IMPOSSIBLE
            is_parent_taken = parent[node] < 0 or bool(chosen[parent[node]])
            if is_by_sign:
                reason, is_wanted = f"P(node | parent) {compare(p, 0.5, '')}", p >= 0.5
            else:
                verb = "is" if is_parent_taken else "would be"
                taking, leaving = format_numbers(if_taken[node], if_left[node])
                reason = f"the expected loss {verb} {taking} if taken and {leaving} if left"
                is_wanted = bool(if_taken[node] <= if_left[node])
            if not is_parent_taken:
                return f"{reason}, {'but' if is_wanted else 'and'} its parent was not taken"
            if not is_by_sign and p >= 0.5 and not chosen[node]:
                return f"more probable than not, {format_numbers(p, 0.5)[0]}, but {reason}"
            return reason

        return with_labels_below(explain, nodes, chosen, P[0], taxonomy)
