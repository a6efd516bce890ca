"""Reallocation of probability mass after one node of one document gets another probability, node by node."""

from __future__ import annotations


def path_to(parents, node):
    """The node and those above it, the top first."""
    return [*(path_to(parents, parents[node][0]) if parents[node] else []), node]


def reallocated(P, parents, node, target, left, raise_ancestors):
    """The probabilities of all nodes afterwards."""
    if P[node] <= 0:
        return list(P)
    path = path_to(parents, node)
    before = {-1: 1.0, **{v: P[v] for v in path}}
    steps = list(zip([-1, *path], path, strict=False))  # a node of the path, and the next
    siblings = [P[v] for v in range(len(P)) if parents[v] == parents[node] and v != node]
    above = before[steps[-1][0]]
    stopping = above - P[node] - sum(siblings)
    around = sum(siblings) + (stopping if stopping > 1e-12 * above else 0.0)  # less than that is noise
    beside = {low: before[high] - before[low] for high, low in steps} | {node: around}
    if around > 0:
        best = max(siblings, default=0.0)
        # lower, the best sibling would have best · (above − x) / around, which is x here
        lowest = min(P[node], best * above / (around + best))
    else:
        lowest = P[node]
    highest = 1 - left * (1 - P[node]) if raise_ancestors else above - left * around
    after = {-1: 1.0, node: min(max(target, lowest), max(lowest, highest))}
    for high, low in reversed(steps[1:]):
        room = after[low] + left * beside[low] if after[low] > before[low] else 0.0
        after[high] = max(before[high], room)
    return [after[v] if v in path else P[v] * factor(v, path, parents, before, after, beside) for v in range(len(P))]


def factor(v, path, parents, before, after, beside):
    """What becomes of a node beside or below the path: as much as of all that leaves the path where it does."""
    shared = [a for a in path_to(parents, v) if a in path]
    if len(shared) == len(path):
        return after[path[-1]] / before[path[-1]]
    high, low = (shared[-1] if shared else -1), path[len(shared)]
    return (after[high] - after[low]) / beside[low] if beside[low] > 0 else 1.0
