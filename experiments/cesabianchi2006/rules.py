"""H-SVM, B-SVM and variants: which machines stand at the nodes, and how their answers become labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.decisions import minimize_h_loss, top_down
from ramify.metrics.hierarchical import node_costs
from ramify.taxonomy import Taxonomy

Floats = NDArray[np.floating[Any]]
Decide = Callable[[Floats, Floats, Taxonomy], csr_array]


class Learner(NamedTuple):
    """The classifier at a node, and how its margins become probabilities; None where it gives them itself."""

    base: str
    calibration: str | None


class Rule(NamedTuple):
    """Whose answers a rule takes, and what it makes of them."""

    learner: Learner
    decide: Decide


def descend_by_probability(S: Floats, P: Floats, taxonomy: Taxonomy) -> csr_array:
    """H-SVM: by the sign of the margins, from the top down."""
    return top_down(S, taxonomy)


def least_h_loss(costs: Any = "siblings", switch_depth: int = 0) -> Decide:
    """B-SVM: the set with the least expected H-loss; the hybrid walks down above the switch depth."""
    return lambda S, P, taxonomy: minimize_h_loss(P, taxonomy, costs, switch_depth)


def no_labels(S: Floats, P: Floats, taxonomy: Taxonomy) -> csr_array:
    """Nothing for anyone; its H-loss is the number of roots that a document has."""
    return csr_array(P.shape, dtype=bool)


def as_printed(S: Floats, P: Floats, taxonomy: Taxonomy) -> csr_array:
    """B-SVM with the recursion of section 3.1 and the messages of Figure 2, word for word.

    p: P(node | parent), c: costs, y: what is taken, H: documents × nodes, the message that a node sends to its parent.
    """
    p, c = np.nan_to_num(P, nan=0.0), node_costs(taxonomy, "siblings")
    H, y = np.zeros(p.shape), np.zeros(p.shape, dtype=bool)
    # parents come first, so a backward sweep sees children first
    for i in range(len(taxonomy) - 1, -1, -1):
        below = H[:, taxonomy.children_of(i)].sum(axis=1)
        y[:, i] = p[:, i] * (2 - below / c[i]) >= 1  # (1)
        H[:, i] = c[i] * np.where(y[:, i], 1 - p[:, i], p[:, i]) + below
    for i in np.flatnonzero(taxonomy.parent >= 0).tolist():
        y[:, i] &= y[:, taxonomy.parent[i]]
    return csr_array(y)


SVM, LR = Learner("svm", "sigmoid"), Learner("lr", "sigmoid")
RULES: dict[str, Rule] = {
    "no labels": Rule(SVM, no_labels),
    "H-SVM": Rule(SVM, descend_by_probability),
    "B-SVM": Rule(SVM, least_h_loss()),
    "B-SVM, recursion as printed": Rule(SVM, as_printed),
    "B-SVM, costs uniform": Rule(SVM, least_h_loss(None)),
    "hybrid, top-down at depth 0": Rule(SVM, least_h_loss(switch_depth=1)),
    "hybrid, top-down at depths 0 and 1": Rule(SVM, least_h_loss(switch_depth=2)),
    "B-SVM, Platt with offset": Rule(Learner("svm", "platt"), least_h_loss()),
    "B-SVM, isotonic calibration": Rule(Learner("svm", "isotonic"), least_h_loss()),
    "H-LR": Rule(LR, descend_by_probability),
    "B-LR": Rule(LR, least_h_loss()),
    "B-LR, Platt with offset": Rule(Learner("lr", "platt"), least_h_loss()),
    "B-LR, no calibration": Rule(Learner("lr", None), least_h_loss()),
}
