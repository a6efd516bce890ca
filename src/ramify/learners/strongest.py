"""The features that speak most for a node, by number or by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.errors import InputError
from ramify.taxonomy import Taxonomy


def find_node(taxonomy: Taxonomy, node: int | str) -> int:
    """The number of a node that is given by number or by name."""
    place = taxonomy.index(node) if isinstance(node, str) else int(node)
    if not 0 <= place < len(taxonomy):
        raise InputError(f"node {place} is not one of the {len(taxonomy)} of the taxonomy; count from 0.")
    return place


def strongest(weights: NDArray[np.float64], n: int, feature_names: Any = None) -> list[tuple[Any, float]]:
    """The n features with the largest weights above 0, strongest first.

    >>> strongest(np.array([0.5, -1.0, 2.0]), 3, ["apple", "bread", "cake"])
    [('cake', 2.0), ('apple', 0.5)]
    """
    names = np.arange(len(weights)) if feature_names is None else np.asarray(feature_names)
    if len(names) != len(weights):
        raise InputError(f"there are {len(names)} feature names for {len(weights)} features; give one a feature.")
    best = [f for f in np.argsort(-weights, kind="stable")[: max(0, n)] if weights[f] > 0]
    return [(names[f : f + 1].tolist()[0], float(weights[f])) for f in best]
