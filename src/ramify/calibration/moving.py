"""Giving nodes other probabilities, so that sums still hold and as little as possible changes around them.

One node of each document gets what is wanted. Its siblings and staying at its parent have what the parent has left, in
proportion. Where the parent has too little, it is raised, too, and so is all that lies above it; what lies beside the path has
less then, in proportion again, and never less than a hundredth of what it had. What lies below a node has the share of it that
it had before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ramify.native import move_nodes_in_place
from ramify.taxonomy import Taxonomy

LEFT = 0.01  # of what lies beside the path: the least that is left there

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def likeliest(P: Floats, nodes: Ints) -> Ints:
    """The likeliest of some nodes, of every document; of equals the first."""
    best: Ints = nodes[P[:, nodes].argmax(axis=1)]
    return best


def move_in_place(P: Floats, taxonomy: Taxonomy, nodes: Ints, wanted: Floats, *, raising: bool) -> None:
    """Give one node in every document what is wanted, as far as that can be.

    A node keeps its place before its siblings; it cannot sink where there is nothing beside it, nor rise from 0.
    raising: whether nodes above are raised; otherwise it has at most what leaves its siblings something.

    >>> taxonomy, P = Taxonomy.from_paths(["a/x", "a/y", "b"]), np.array([[0.5, 0.4, 0.1, 0.5]])
    >>> move_in_place(P, taxonomy, np.array([1]), np.array([0.8]), raising=True)
    >>> taxonomy.names, P.round(3).tolist()
    (('a', 'a/x', 'a/y', 'b'), [[0.801, 0.8, 0.001, 0.199]])
    """
    move_nodes_in_place(P, taxonomy.parent.astype(np.int32), nodes.astype(np.int32), wanted, LEFT, raising)
