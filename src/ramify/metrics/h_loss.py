"""H-loss: an error counts where a path first goes wrong, and nothing below it counts again.

    ℓ_H(d) = Σ_i c_i · [ i is wrong for d, and every ancestor of i is right ]

Source: Cesa-Bianchi, Gentile & Zaniboni 2006, section 2.1.
Deviation: the paper defines it on forests; on a DAG all ancestors must be right.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from ramify.errors import InputError
from ramify.metrics.flat import Floats, label_pair
from ramify.taxonomy import Taxonomy, most_general

Costs = Literal["siblings"] | Floats | list[float] | None


def h_loss(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, costs: Costs = None) -> float:
    """The mean H-loss of a document.

    >>> food = Taxonomy.from_paths(["fruit/apple", "fruit/pear", "bread/rye"])
    >>> h_loss(food.encode(["fruit/apple"]), food.encode(["bread/rye"]), food)
    2.0
    """
    return float(h_loss_by_node(Y_true, Y_pred, taxonomy, costs).sum())


def h_loss_by_depth(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, costs: Costs = None) -> Floats:
    """The part of the H-loss that arises at each depth, roots first."""
    by_node = h_loss_by_node(Y_true, Y_pred, taxonomy, costs)
    return np.asarray(np.bincount(taxonomy.depth, weights=by_node, minlength=taxonomy.n_levels), dtype=np.float64)


def h_loss_by_node(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, costs: Costs = None) -> Floats:
    """The part of the H-loss that arises at each node."""
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    firsts = first_errors(T, P, taxonomy)
    counts = np.bincount(firsts.indices, minlength=len(taxonomy))
    n_documents: int = T.shape[0]
    return node_costs(taxonomy, costs) * counts / max(1, n_documents)


def first_errors(T: csr_array, P: csr_array, taxonomy: Taxonomy) -> csr_array:
    """The wrong nodes of each document that have no wrong ancestor."""
    # T and P are closed: a wrong node's parents lie in T or in P. If all are right, they lie in both, and so do all their
    # ancestors; so checking the parents is enough
    return most_general(T != P, taxonomy)


def node_costs(taxonomy: Taxonomy, costs: Costs) -> Floats:
    """One cost per node: 1 everywhere, 1 / the number of siblings, or as given."""
    if costs is None:
        return np.ones(len(taxonomy))
    if isinstance(costs, str):
        if costs != "siblings":
            raise InputError(f"costs are {costs!r}; give None, 'siblings', or one number per node.")
        family_of = [tuple(sorted(taxonomy.parents_of(node).tolist())) for node in range(len(taxonomy))]
        sizes = Counter(family_of)
        return np.asarray([1.0 / sizes[family] for family in family_of])
    try:
        given = np.ascontiguousarray(costs, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError("the costs are not numbers; give None, 'siblings', or one number per node.") from None
    if given.shape != (len(taxonomy),):
        raise InputError(f"costs have shape {given.shape}; give {len(taxonomy)} numbers, one per node.")
    if not np.all(np.isfinite(given) & (given >= 0)):
        raise InputError("costs must be numbers of 0 or more; one of them is negative, infinite or missing.")
    return given
