"""Oracle of the decision rules."""

import math

from oracles.taxonomy import close_upward, is_leaf


def best(scores: list[list[float]], parents: list[list[int]], leaves_only: bool = False) -> list[set[int]]:
    """The first node with the highest score, and its ancestors; nothing where no node has a score."""
    chosen = []
    for row in scores:
        allowed = [n for n, s in enumerate(row) if not math.isnan(s) and (not leaves_only or is_leaf(parents, n))]
        top = [n for n in allowed if row[n] == max(row[m] for m in allowed)]
        chosen.append(close_upward(parents, top[:1]))
    return chosen
