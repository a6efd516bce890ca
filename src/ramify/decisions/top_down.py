"""By sign alone: a node is taken where its score reaches the threshold, whatever its parents say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.decisions.base import LARGEST, Rule, about_number
from ramify.decisions.h_loss import read_probabilities
from ramify.decisions.held_out import read_scores
from ramify.decisions.reasons import UNANSWERED, compare, tell, with_labels_below
from ramify.errors import InputError
from ramify.taxonomy import Taxonomy, descend_by_probability, expand_to_ancestors, levels_of


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


# --------------------------------------------------------------------------------------------------------------
# From the top down by sign: a node is taken where its parent is and its score reaches the threshold.


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
    parent = taxonomy.parent
    for level in levels_of(taxonomy)[1:]:
        taken[level] &= taken[parent[level]]
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

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Whether each node's margin reaches the threshold, and those of the nodes above it do.

        >>> TopDown().reasons([-1.0, 2.0], Taxonomy.from_paths(["a/b"]), [0, 1])
        ['margin -1.00 is below 0', 'margin 2.00 would reach 0, but its parent was not taken']
        """
        margins = read_scores(values, taxonomy)[0]

        def say(node: int) -> str:
            above = taxonomy.nodes_to(node)[:-1]
            is_reached = bool((margins[above] >= self.threshold).all())
            if np.isnan(margins[node]):
                return UNANSWERED
            said = f"margin {compare(margins[node], self.threshold, '')}"
            if margins[node] < self.threshold:
                return said if is_reached else f"{said}, and its parent was not taken"
            if not is_reached:
                return f"{said.replace('reaches', 'would reach')}, but its parent was not taken"
            return f"{said}, and every node above was taken" if above else said

        return [say(node) for node in nodes]

    def problem(self) -> str | None:
        """What is wrong with the values of this rule, if anything is."""
        return about_number("threshold", self.threshold, -LARGEST, LARGEST)


# --------------------------------------------------------------------------------------------------------------
# From the top down: at every node to the likeliest child, until staying is likelier.


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
    ends = descend_by_probability(S, taxonomy)
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

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Which way on was the likeliest, and how likely it was to stay.

        >>> Descend().reasons([1.0, 0.2, 0.7], Taxonomy.from_paths(["a/b", "a/c"]), [1, 2])
        ["0.20, below 'c', 0.70", 'the likeliest way on, 0.70; staying had 0.10']
        """
        P = read_probabilities(values, taxonomy)[0].astype(np.float64)
        taken = set(self.decide(P, taxonomy).indices.tolist())
        parent = taxonomy.parent
        return [_say(node, int(parent[node]), P, taken, taxonomy) for node in nodes]

    def problem(self) -> str | None:
        """It has no settings, so nothing is ever wrong with them."""
        return None


def _say(node: int, parent: int, P: NDArray[np.float64], taken: set[int], taxonomy: Taxonomy) -> str:
    """What happened at a node among its siblings."""
    ways = taxonomy.roots if parent < 0 else taxonomy.children_of(parent)
    staying = max(0.0, 1 - float(np.nansum(P[ways])))
    if np.isnan(P[node]):
        return "no training document went this way, so it is never entered"
    if parent >= 0 and parent not in taken:
        is_likeliest = P[node] >= max(np.nanmax(P[ways]), staying)
        said = f"{tell(P[node])[0]}"
        return f"{said}{' would be the likeliest way on, but' if is_likeliest else ', and'} its parent was not taken"
    chosen = next((way for way in ways.tolist() if way in taken), None)
    told, stays, best = tell(P[node], staying, P[node] if chosen is None else P[chosen])
    if node == chosen:
        return f"the likeliest way on, {told}" + (f"; staying had {stays}" if parent >= 0 else "")
    if chosen is None:
        return f"{told}, below staying, {stays}"
    return f"{told}, {'as likely as' if P[node] == P[chosen] else 'below'} {taxonomy.titles[chosen]!r}, {best}"
