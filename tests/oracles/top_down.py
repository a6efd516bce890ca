"""The slow twins of going from the top down, one document after the other.

`shares` is one number a node, P(node | parent), None where a node cannot be entered; `parents` as in `oracles.taxonomy`.
"""

import math

from oracles.taxonomy import children


def ways_from(parents, node):
    """The children of a node, or the roots where the node is -1."""
    return [n for n, above in enumerate(parents) if not above] if node < 0 else children(parents, node)


def descend_by_probability(shares, parents):
    """The node at which a document ends; -1 where it cannot enter anywhere."""
    here = -1
    while True:
        open_ways = [child for child in ways_from(parents, here) if shares[child] is not None]
        if not open_ways:
            return here
        best = max(open_ways, key=lambda child: (shares[child], -child))
        left = 1 - sum(shares[child] for child in open_ways)
        if here >= 0 and shares[best] < left - 1e-6:
            return here
        here = best


def ends_of(shares, parents, stays):
    """ln P of ending at a node, for every node at which a document can end; `stays`: the nodes at which it may stay."""
    found = {}

    def go(node, log):
        open_ways = [child for child in ways_from(parents, node) if shares[child] is not None]
        if not open_ways:
            found[node] = log
        elif node in stays:
            left = 1 - sum(shares[child] for child in open_ways)
            found[node] = log + (math.log(left) if left > 0 else -math.inf)
        for child in open_ways:
            go(child, log + math.log(shares[child]))

    go(-1, 0.0)
    return found


def likeliest(ends, k):
    """The k likeliest ends, of equals the first, as (node, log)."""
    return sorted(ends.items(), key=lambda end: (-end[1], end[0]))[:k]
