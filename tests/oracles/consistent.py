"""Choices down a tree, one document and one node at a time."""

from __future__ import annotations

import math


def children_of(parents, node):
    return [child for child, above in enumerate(parents) if (above == [node] if node >= 0 else not above)]


def depth_of(parents, node):
    return 0 if not parents[node] else 1 + depth_of(parents, parents[node][0])


def worth(node, ends, steps, parents, sharpness, staying):
    """What a node is worth as a way; None where it is none."""
    if steps is not None:
        return steps[node]
    ways = ways_of(node, ends, steps, parents, sharpness, staying)
    if not children_of(parents, node):
        return ends[node]
    g = sharpness[depth_of(parents, node) + 1]
    return math.log(sum(ways.values())) / g if ways else None


def ways_of(node, ends, steps, parents, sharpness, staying):
    """exp of what each child is worth, and of staying, at a node; -1 is above the roots."""
    children = children_of(parents, node)
    if not children:
        return {}
    depth = 0 if node < 0 else depth_of(parents, node) + 1
    found = {}
    for child in children:
        value = worth(child, ends, steps, parents, sharpness, staying)
        if value is not None:
            found[child] = math.exp(sharpness[depth] * value)
    if node >= 0 and ends[node] is not None:
        found["stay"] = math.exp(sharpness[depth] * ends[node] + staying[depth])
    return found


def shares(ends, steps, parents, sharpness, staying):
    """P(node | parent) of every node."""
    found = [0.0] * len(parents)
    for node in range(-1, len(parents)):
        ways = ways_of(node, ends, steps, parents, sharpness, staying)
        for child in children_of(parents, node):
            if child in ways:
                found[child] = ways[child] / sum(ways.values())
    return found


def log_likelihood(documents, parents, sharpness, staying):
    """Of where documents end. documents: (ends, steps, the node where it ends)."""
    total = 0.0
    for ends, steps, truth in documents:
        p, node = shares(ends, steps, parents, sharpness, staying), truth
        below = ways_of(truth, ends, steps, parents, sharpness, staying)
        if below:
            total += math.log(below["stay"] / sum(below.values()))
        while True:
            total += math.log(p[node])
            if not parents[node]:
                break
            node = parents[node][0]
    return total
