"""Oracle of the decisions about the H-loss: every consistent set is tried against every true set.

The H-loss of a set y against the true set v, both closed upward on a forest, is the sum of c_i over the nodes i that are
in exactly one of them while all ancestors of i are right. p[i] is the probability that node i is true when its parent
is (of a root: that it is true); a node whose parent is false is false. NaN: nothing is known, and the node is not true.
An impossible node (NaN or 0) is never taken, even where it costs nothing.
"""

import math
from itertools import chain, combinations

import numpy as np

from oracles.taxonomy import ancestors, children, depth, siblings

Parents = list[list[int]]


# ---- from the definitions -------------------------------------------------------------------------------------------


def closed_sets(parents: Parents) -> list[set[int]]:
    """Every set of nodes that holds the parent of each of its nodes."""
    nodes = range(len(parents))
    subsets = map(set, chain.from_iterable(combinations(nodes, size) for size in range(len(parents) + 1)))
    return [subset for subset in subsets if all(parent in subset for node in subset for parent in parents[node])]


def h_loss(y: set[int], v: set[int], parents: Parents, costs: list[float]) -> float:
    """The costs of the nodes that are wrong below ancestors that are all right."""
    wrong = y ^ v
    return sum(costs[node] for node in wrong if not ancestors(parents, node) & wrong)


def probability(v: set[int], p: list[float], parents: Parents) -> float:
    """The chance that v is the true set: the product over nodes of the chance given the parent."""
    product = 1.0
    for node, above in enumerate(parents):
        chance = known(p[node]) if all(parent in v for parent in above) else 0.0
        product *= chance if node in v else 1 - chance
    return product


def known(chance: float) -> float:
    """The chance itself, or 0 where it is NaN."""
    return 0.0 if math.isnan(chance) else chance


def expected_h_loss(y: set[int], p: list[float], parents: Parents, costs: list[float]) -> float:
    """The mean H-loss of y over all consistent true sets."""
    return sum(probability(v, p, parents) * h_loss(y, v, parents, costs) for v in closed_sets(parents))


def allowed_sets(p: list[float], parents: Parents, switch_depth: int = 0) -> list[set[int]]:
    """The consistent sets without an impossible node; above the switch depth they are those of a walk down by p >= 1/2."""
    high = {node for node in range(len(parents)) if depth(parents, node) < switch_depth}
    walked = top_down(p, parents, 0.5)
    impossible = {node for node in range(len(parents)) if not p[node] > 0}
    return [y for y in closed_sets(parents) if not y & impossible and y & high == walked & high]


def least_expected_h_loss(p: list[float], parents: Parents, costs: list[float], switch_depth: int = 0) -> float:
    """The smallest expected H-loss of any allowed set."""
    return min(expected_h_loss(y, p, parents, costs) for y in allowed_sets(p, parents, switch_depth))


def top_down(scores: list[float], parents: Parents, threshold: float = 0.0) -> set[int]:
    """The nodes that reach the threshold, as do all their ancestors; NaN reaches none."""
    reached = {node for node, score in enumerate(scores) if score >= threshold}
    return {node for node in reached if ancestors(parents, node) <= reached}


def sibling_costs(parents: Parents) -> list[float]:
    """One over the number of siblings, the node included."""
    return [1 / len(siblings(parents, node)) for node in range(len(parents))]


# ---- the same for all consistent sets and many documents at once ----------------------------------------------------


def all_expected_h_losses(P: np.ndarray, parents: Parents, costs: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Sets × nodes: the consistent sets; documents × sets: the expected H-loss of each, over all of them as the truth."""
    V = set_matrix(closed_sets(parents), len(parents))
    losses = np.zeros((len(V), len(V)))  # of each set against each set
    right_down_to: list[np.ndarray] = []  # sets × sets: this node and all its ancestors are right
    for node, above in enumerate(parents):
        wrong = V[:, None, node] != V[None, :, node]
        right_above = right_down_to[above[0]] if above else np.ones_like(wrong)
        right_down_to.append(right_above & ~wrong)
        losses += costs[node] * (right_above & wrong)
    return V, set_chances(np.nan_to_num(P, nan=0.0), V, parents) @ losses.T


def set_matrix(sets: list[set[int]], n_nodes: int) -> np.ndarray:
    """Sets × nodes, booleans."""
    return np.array([[node in nodes for node in range(n_nodes)] for nodes in sets], dtype=bool).reshape(len(sets), n_nodes)


def set_chances(P: np.ndarray, V: np.ndarray, parents: Parents) -> np.ndarray:
    """Documents × sets: the chance that the set is the true one."""
    chances = np.ones((len(P), len(V)))
    for node, above in enumerate(parents):
        parent_is_true = V[:, above[0]] if above else np.ones(len(V), dtype=bool)
        chance = P[:, node, None] * parent_is_true
        chances *= np.where(V[:, node], chance, 1 - chance)
    return chances


# ---- closed forms, for forests too large to try every set -----------------------------------------------------------


def expected_h_loss_along_paths(y: set[int], p: list[float], parents: Parents, costs: list[float]) -> float:
    """Each node below a taken parent costs c_i × P(it is wrong | parent) × P(parent): the walk to it must be true too.

    A node below a parent that is not taken costs nothing: either its parent is wrong or it is rightly left out.
    """
    total = 0.0
    reach = [0.0] * len(parents)
    # parents have smaller numbers, so a forward sweep knows the chance of the parent
    for node, above in enumerate(parents):
        if all(parent in y for parent in above):
            reached = math.prod(reach[parent] for parent in above)
            chance = known(p[node])
            total += reached * costs[node] * (1 - chance if node in y else chance)
            reach[node] = reached * chance
    return total


def minimize_h_loss(p: list[float], parents: Parents, costs: list[float], switch_depth: int = 0) -> set[int]:
    """Take a node when that costs no more than leaving it, given that its parent is true; then walk down.

    least[i] = min(c_i p_i, c_i (1 − p_i) + p_i Σ least[children]); above the switch depth a node is taken for p >= 1/2.
    """
    least, below, levels = [0.0] * len(parents), [0.0] * len(parents), []
    for above in parents:
        levels.append(1 + levels[above[0]] if above else 0)
    wanted = set()
    # children have larger numbers, so a backward sweep knows the losses of all children
    for node in reversed(range(len(parents))):
        chance = known(p[node])
        leaving, taking = costs[node] * chance, costs[node] * (1 - chance) + chance * below[node]
        wins = p[node] >= 0.5 if levels[node] < switch_depth else taking <= leaving
        if wins and p[node] > 0:
            wanted.add(node)
        least[node] = taking if node in wanted else leaving
        for parent in parents[node]:
            below[parent] += least[node]
    taken: set[int] = set()
    for node, above in enumerate(parents):
        if node in wanted and all(parent in taken for parent in above):
            taken.add(node)
    return taken


# ---- as printed -----------------------------------------------------------------------------------------------------


def printed_recursion(p: list[float], parents: Parents, costs: list[float]) -> set[int]:
    """H-BAYES as printed in Cesa-Bianchi, Gentile & Zaniboni 2006, section 3.1; not optimal below two levels.

    H_i = c_i (p_i (1 − y_i) + (1 − p_i) y_i) + Σ_children H_k;  y_i = 1 iff p_i (2 − Σ_children H_k / c_i) >= 1.
    The sum over children should count only where node i is rightly taken: it lacks the factor p_i y_i.
    """
    H = [0.0] * len(parents)
    taken: set[int] = set()
    for node in reversed(range(len(parents))):
        below = sum(H[child] for child in children(parents, node))
        y = p[node] * (2 - below / costs[node]) >= 1
        H[node] = costs[node] * (1 - p[node] if y else p[node]) + below
        if y:
            taken.add(node)
    return {node for node in taken if ancestors(parents, node) <= taken}
