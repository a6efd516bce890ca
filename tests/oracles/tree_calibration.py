"""NestedLogit down a tree, one document and one node at a time."""

from __future__ import annotations

import math


def children_of(parents, node):
    return [child for child, above in enumerate(parents) if (above == [node] if node >= 0 else not above)]


def depth_of(parents, node):
    return 0 if not parents[node] else 1 + depth_of(parents, parents[node][0])


def worth(node, ends, steps, parents, choices):
    """z of a node as a way; None where it cannot be entered. choices: sharpness, reliance and offset of every depth."""
    sharpness, reliance, _ = choices[depth_of(parents, node)]
    is_leaf = not children_of(parents, node)
    value = steps[node] if steps is not None else ends[node] if is_leaf else 0.0
    ways = ways_of(node, ends, steps, parents, choices)
    if value is None or not (is_leaf or ways):
        return None
    return sharpness * value + (0.0 if is_leaf else reliance * math.log(sum(ways.values())))


def ways_of(node, ends, steps, parents, choices):
    """exp z of each child, and of staying, at a node; -1 is above the roots."""
    children = children_of(parents, node)
    if not children:
        return {}
    sharpness, _, staying = choices[0 if node < 0 else depth_of(parents, node) + 1]
    values = {child: worth(child, ends, steps, parents, choices) for child in children}
    found = {child: math.exp(value) for child, value in values.items() if value is not None}
    if node >= 0 and ends[node] is not None:
        found["stay"] = math.exp(sharpness * ends[node] + staying)
    return found


def shares(ends, steps, parents, choices):
    """P(node | parent) of every node."""
    found = [0.0] * len(parents)
    for node in range(-1, len(parents)):
        ways = ways_of(node, ends, steps, parents, choices)
        for child in children_of(parents, node):
            if child in ways:
                found[child] = ways[child] / sum(ways.values())
    return found


def log_likelihood(documents, parents, choices):
    """Of where documents end. documents: (ends, steps, the node where it ends)."""
    total = 0.0
    for ends, steps, truth in documents:
        p, node = shares(ends, steps, parents, choices), truth
        below = ways_of(truth, ends, steps, parents, choices)
        if below:
            total += math.log(below["stay"] / sum(below.values()))
        while True:
            total += math.log(p[node])
            if not parents[node]:
                break
            node = parents[node][0]
    return total
