"""The label set with the least expected H-loss, for children that are independent given their parent.

With p_i = P(node i | its parent is true) and costs c_i, from the leaves up,

    risk_i = c_i p_i                                        if node i is left,
             c_i (1 − p_i) + p_i Σ_{children k} risk_k      if it is taken,

and a node is taken when that costs no more. Source: Cesa-Bianchi, Gentile & Zaniboni 2006, section 3.1.
Deviation: the paper's H adds the children's risk unweighted by p_i, whether or not the node is taken; so printed, it misses
the least expected loss on some forests (docs/papers/cesabianchi2006.md). Its condition (1) follows from the form above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.decisions.base import LARGEST, Numbers, Rule, about_numbers, is_whole, over_rows, stack_labels
from ramify.decisions.held_out import read_scores
from ramify.decisions.reasons import UNANSWERED, compare, tell
from ramify.errors import InputError
from ramify.metrics.h_loss import Costs, node_costs
from ramify.native import minimize_h_loss as minimize_rows
from ramify.taxonomy import Taxonomy, levels_of

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


def weigh_risks(
    p: NDArray[np.floating[Any]], taxonomy: Taxonomy, costs: NDArray[np.float64], switch_depth: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What taking and what leaving each node of one document risks, once its parent is rightly taken.

    >>> weigh_risks(np.array([0.6, 0.9, 0.1]), Taxonomy.from_paths(["a/b", "a/c"]), np.ones(3))[0].round(2)
    array([0.52, 0.1 , 0.9 ])
    """
    chance, parent, below = np.nan_to_num(p.astype(np.float64), nan=0.0), taxonomy.parent, np.zeros(len(p))
    if_left, if_taken = costs * chance, costs * (1 - chance)
    for level in reversed(levels_of(taxonomy)):
        if_taken[level] += chance[level] * below[level]
        by_sign = taxonomy.depth[level] < switch_depth
        takes = np.where(by_sign, chance[level] >= 0.5, (if_taken[level] <= if_left[level]) & ~np.isnan(p[level]))
        inner = level[parent[level] >= 0]
        least = np.where(takes, if_taken[level], if_left[level])[parent[level] >= 0]
        np.add.at(below, parent[inner], least)
    return if_taken, if_left


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
        return minimize_h_loss(values, taxonomy, self._costs, self.switch_depth)

    @property
    def _costs(self) -> Any:
        return None if isinstance(self.costs, str) and self.costs == "uniform" else self.costs

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """What taking and leaving each node risks, once its parent is rightly taken.

        >>> tree = Taxonomy.from_paths(["a/b", "a/c"])
        >>> MinimizeHLoss(costs="uniform").reasons([0.6, 0.5, 0.5], tree, [0, 1])[0]
        'likelier than not, 0.60, but taking it risks 1.00, leaving it 0.60'
        """
        P, paid = read_probabilities(values, taxonomy), node_costs(taxonomy, self._costs)
        if_taken, if_left = weigh_risks(P[0], taxonomy, paid, self.switch_depth)
        taken = set(self.decide(P, taxonomy).indices.tolist())
        parent = taxonomy.parent

        def say(node: int) -> str:
            p, is_high = float(P[0, node]), bool(taxonomy.depth[node] < self.switch_depth)
            if np.isnan(p):
                return UNANSWERED
            would = p >= 0.5 if is_high else bool(if_taken[node] <= if_left[node])
            if parent[node] >= 0 and int(parent[node]) not in taken:
                said = _say_chance(p) if is_high else _say_risks(if_taken[node], if_left[node], "would risk")
                return f"{said}, {'but' if would else 'and'} its parent was not taken"
            if is_high:
                return _say_chance(p)
            said = _say_risks(if_taken[node], if_left[node])
            return f"likelier than not, {tell(p, 0.5)[0]}, but {said}" if p >= 0.5 and node not in taken else said

        return [say(node) for node in nodes]

    def problem(self) -> str | None:
        """What is wrong with the values of this rule, if anything is."""
        if isinstance(self.costs, str) and self.costs not in ("siblings", "uniform"):
            return f"costs is {self.costs!r}, not 'siblings', 'uniform', or one number a node"
        costs = None if isinstance(self.costs, str) else about_numbers("the costs", self.costs, 0, LARGEST)
        return costs or _about_depth(self.switch_depth)


def _say_risks(if_taken: float, if_left: float, risks: str = "risks") -> str:
    taking, leaving = tell(if_taken, if_left)
    return f"taking it {risks} {taking}, leaving it {leaving}"


def _say_chance(p: float) -> str:
    return f"P(node | parent) {compare(p, 0.5, '')}"


def _about_depth(value: Any) -> str | None:
    fits = is_whole(value) and 0 <= value <= MOST_LEVELS
    return None if fits else f"switch_depth is {value!r}, not a whole number of at least 0"
