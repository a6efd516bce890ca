"""From the top down: at every node to the likeliest child, until staying is likelier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.decisions.bayes import read_probabilities
from ramify.decisions.learnt import Rule
from ramify.decisions.reasons import tell
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
