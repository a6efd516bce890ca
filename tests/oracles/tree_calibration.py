"""A nested logit over a tree, one document and one node at a time."""

from __future__ import annotations

import math
from decimal import Decimal  # utilities may be beyond the exponents of floats


def children_of(parents, node):
    return [child for child, above in enumerate(parents) if (above == [node] if node >= 0 else not above)]


def depth_of(parents, node):
    return 0 if not parents[node] else 1 + depth_of(parents, parents[node][0])


def utility(node, ends, steps, parents, fitted):
    """z of a node as an alternative; None where it cannot be entered. fitted: scale, dissimilarity and offset of every depth."""
    scale, dissimilarity, _ = fitted[depth_of(parents, node)]
    is_leaf = not children_of(parents, node)
    value = steps[node] if steps is not None else ends[node] if is_leaf else 0.0
    odds = alternatives_of(node, ends, steps, parents, fitted)
    if value is None or not (is_leaf or odds):
        return None
    return scale * value + (0.0 if is_leaf else dissimilarity * float(sum(odds.values()).ln()))


def alternatives_of(node, ends, steps, parents, fitted):
    """exp z of each child, and of stopping, at a node; -1 is above the roots."""
    children = children_of(parents, node)
    if not children:
        return {}
    scale, _, stopping = fitted[0 if node < 0 else depth_of(parents, node) + 1]
    values = {child: utility(child, ends, steps, parents, fitted) for child in children}
    found = {child: Decimal(value).exp() for child, value in values.items() if value is not None}
    if node >= 0 and ends[node] is not None:
        found["stop"] = Decimal(scale * ends[node] + stopping).exp()
    return found


def conditionals(ends, steps, parents, fitted):
    """P(node | parent) of every node."""
    found = [0.0] * len(parents)
    for node in range(-1, len(parents)):
        odds = alternatives_of(node, ends, steps, parents, fitted)
        for child in children_of(parents, node):
            if child in odds:
                found[child] = float(odds[child] / sum(odds.values()))
    return found


def log_likelihood(documents, parents, fitted):
    """Of where documents end. documents: (ends, steps, the node where it ends)."""
    total = 0.0
    for ends, steps, truth in documents:
        p, node = conditionals(ends, steps, parents, fitted), truth
        below = alternatives_of(truth, ends, steps, parents, fitted)
        if below:
            total += math.log(below["stop"] / sum(below.values()))
        while True:
            total += math.log(p[node])
            if not parents[node]:
                break
            node = parents[node][0]
    return total
