"""The label set with the least expected H-loss, for children that are independent given their parent.

With p_i = P(node i | its parent is true) and costs c_i, from the leaves up,

    risk_i = c_i p_i                                        if node i is left,
             c_i (1 − p_i) + p_i Σ_{children k} risk_k      if it is taken,

and a node is taken when that costs no more. Source: Cesa-Bianchi, Gentile & Zaniboni 2006, section 3.1.
Deviation: the paper's H adds the children's risk unweighted by p_i, whether or not the node is taken; so printed, it misses
the least expected loss on some forests (docs/papers/cesabianchi2006.md). Its condition (1) follows from the form above.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.decisions.blocks import over_rows, stack_labels
from ramify.decisions.held_out import read_scores
from ramify.decisions.learnt import LARGEST, Numbers, Rule, about_numbers, is_whole
from ramify.errors import InputError
from ramify.metrics.h_loss import Costs, node_costs
from ramify.native import minimize_h_loss as minimize_rows
from ramify.taxonomy import Taxonomy

MOST_LEVELS = 1 << 30


def minimize_h_loss(
    probabilities: Any, taxonomy: Taxonomy, costs: Costs = None, switch_depth: int = 0, n_jobs: int | None = None
) -> csr_array:
    """Label each document with the set of nodes that has the least expected H-loss.

    probabilities: documents × nodes, P(node | parent); a node with NaN is never taken.
    costs: 1 everywhere, "siblings" for 1 / the number of siblings, or one number a node.
    switch_depth: nodes above this depth are decided from the top down, at 1/2; 0 decides all from the bottom up.

    >>> taxonomy = Taxonomy.from_paths(["a/b", "a/c"])
    >>> taxonomy.decode(minimize_h_loss([[0.6, 0.9, 0.1], [0.6, 0.5, 0.5]], taxonomy))
    [['a/b'], []]
    """
    taxonomy.require_tree("minimizing the H-loss")
    P = read_probabilities(probabilities, taxonomy)
    if problem := _about_depth(switch_depth):
        raise InputError(f"{problem}.")
    by_sign = (taxonomy.depth < switch_depth).astype(np.uint8)
    parent, paid = taxonomy.parent.astype(np.int32), node_costs(taxonomy, costs)
    parts = over_rows(P, lambda block: minimize_rows(block, parent, paid, by_sign), n_jobs)
    return stack_labels(parts, P.shape)


def read_probabilities(probabilities: Any, taxonomy: Taxonomy) -> NDArray[np.floating[Any]]:
    """Probabilities as documents × nodes, refused where they are none."""
    P = read_scores(probabilities, taxonomy)
    if P.size and (np.fmin.reduce(P, axis=None) < 0 or np.fmax.reduce(P, axis=None) > 1):
        raise InputError(
            f"probabilities lie between {np.nanmin(P):g} and {np.nanmax(P):g}; give numbers from 0 to 1, "
            "such as sigmoids of scores, and NaN where a node has no classifier."
        )
    return P


@dataclass(frozen=True, slots=True, eq=False)
class MinimizeHLoss(Rule):
    """The rule of :func:`minimize_h_loss`, as a part of a system; it takes P(node | parent).

    costs: "siblings", "uniform", or one number a node.
    """

    costs: str | Numbers = "siblings"
    switch_depth: int = 0
    kind: ClassVar[str] = "minimize-h-loss"
    takes: ClassVar[str] = "conditionals"

    def decide(self, values: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with the set of nodes that has the least expected H-loss."""
        self.refuse_problems()
        is_uniform = isinstance(self.costs, str) and self.costs == "uniform"
        costs: Any = None if is_uniform else self.costs
        return minimize_h_loss(values, taxonomy, costs, self.switch_depth)

    def problem(self) -> str | None:
        """What is wrong with the values of this rule, if anything is."""
        if isinstance(self.costs, str) and self.costs not in ("siblings", "uniform"):
            return f"costs is {self.costs!r}, not 'siblings', 'uniform', or one number a node"
        costs = None if isinstance(self.costs, str) else about_numbers("the costs", self.costs, 0, LARGEST)
        return costs or _about_depth(self.switch_depth)


def _about_depth(value: Any) -> str | None:
    fits = is_whole(value) and 0 <= value <= MOST_LEVELS
    return None if fits else f"switch_depth is {value!r}, not a whole number of at least 0"
