"""Giving one node of one document another probability, one node after the other."""

from __future__ import annotations


def line_of(parents, node):
    """The node and those above it, the top first."""
    return [*(line_of(parents, parents[node][0]) if parents[node] else []), node]


def moved(P, parents, node, wanted, left, raising):
    """The probabilities of all nodes afterwards."""
    if P[node] <= 0:
        return list(P)
    way = line_of(parents, node)
    before = {-1: 1.0, **{v: P[v] for v in way}}
    steps = list(zip([-1, *way], way, strict=False))  # a node of the way, and the next
    siblings = [P[v] for v in range(len(P)) if parents[v] == parents[node] and v != node]
    above = before[steps[-1][0]]
    staying = above - P[node] - sum(siblings)
    around = sum(siblings) + (staying if staying > 1e-12 * above else 0.0)  # less than that is noise
    beside = {low: before[high] - before[low] for high, low in steps} | {node: around}
    if around > 0:
        best = max(siblings, default=0.0)
        # lower, the best sibling would have best · (above − x) / around, which is x here
        lowest = min(P[node], best * above / (around + best))
    else:
        lowest = P[node]
    highest = 1 - left * (1 - P[node]) if raising else above - left * around
    after = {-1: 1.0, node: min(max(wanted, lowest), max(lowest, highest))}
    for high, low in reversed(steps[1:]):
        room = after[low] + left * beside[low] if after[low] > before[low] else 0.0
        after[high] = max(before[high], room)
    return [after[v] if v in way else P[v] * factor(v, way, parents, before, after, beside) for v in range(len(P))]


def factor(v, way, parents, before, after, beside):
    """What becomes of a node beside or below the way: as much as of all that leaves the way where it does."""
    shared = [a for a in line_of(parents, v) if a in way]
    if len(shared) == len(way):
        return after[way[-1]] / before[way[-1]]
    high, low = (shared[-1] if shared else -1), way[len(shared)]
    return (after[high] - after[low]) / beside[low] if beside[low] > 0 else 1.0
