"""What speaks for a node at one step on the way down to it, feature by feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Contributions = tuple[NDArray[np.int64], Floats, float]  # features of a document, what each adds, and what is there without


@dataclass(frozen=True, slots=True)
class Evidence:
    """How far a node is ahead of its best rival, or of 0, and what each feature of the document adds to that.

    score: by how much it is ahead. features, added: of the document, and what each adds. prior: what no feature has a say in.
    rival: the node that comes next, which is the parent where a document might have stayed there; None where a classifier says
    yes or no by itself, or nothing is asked. remark: what else there is to say, such as why nothing is asked.
    """

    score: float
    features: NDArray[np.int64]
    added: Floats
    prior: float
    rival: int | None = None
    remark: str = ""


def no_question(remark: str) -> Evidence:
    """A step at which there is nothing to decide."""
    return Evidence(0.0, np.zeros(0, dtype=np.int64), np.zeros(0), 0.0, None, remark)


def answer_of(contributions: Contributions, remark: str = "") -> Evidence:
    """The answer of a node's own classifier.

    >>> answer_of((np.array([3, 7]), np.array([0.5, 1.0]), -1.0)).score
    0.5
    """
    features, added, prior = contributions
    return Evidence(float(added.sum() + prior), features, added, prior, None, remark)


def lead_over(rival: int, of_node: Contributions, of_rival: Contributions) -> Evidence:
    """By how much one of two answers to the same document is ahead of the other."""
    features, added, prior = of_node[0], of_node[1] - of_rival[1], of_node[2] - of_rival[2]
    return Evidence(float(added.sum() + prior), features, added, prior, rival)


def classes_under(nodes_above: Any, node: int) -> NDArray[np.int64]:
    """The numbers of the classes at or below a node. nodes_above: classes × nodes, one where a class is at or below a node."""
    places = np.flatnonzero(nodes_above.indices == node)
    return np.unique(np.searchsorted(nodes_above.indptr, places, side="right") - 1)


def best_of(scores: Any, nodes: NDArray[np.int64]) -> int | None:
    """The node with the highest score, the first of equals; None where no node has one.

    >>> best_of(np.array([1.0, np.nan, 3.0]), np.array([0, 1])), best_of(np.array([np.nan]), np.array([0]))
    (0, None)
    """
    known = nodes[~np.isnan(scores[nodes])]
    return int(known[np.argmax(scores[known])]) if len(known) else None
