"""Oracle of isotonic smoothing on a forest: least costs by trying every assignment, by programs and by a table.

    minimize  Σ_v w_v |x_v − y_v|  +  Σ_inner v  a_v (y_v − max_children u y_u)    subject to  y_parent >= y_child

x: scores, y: smoothed scores, w: weights, a: penalties, one number a node; those of leaves mean nothing. Where a_v is
infinite the parent equals its largest child. A node with a NaN score or weight 0 has no score: its value is free.
"""

import math
from itertools import pairwise, product

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from oracles.taxonomy import ancestors, children

Parents = list[list[int]]
Row = list[float]


def scored(x: Row, weights: Row) -> list[int]:
    """The nodes that have a score."""
    return [node for node, score in enumerate(x) if not math.isnan(score) and weights[node] > 0]


def trees_of(parents: Parents) -> list[list[int]]:
    """The nodes of each tree of the forest, its root first."""
    roots = [node for node, above in enumerate(parents) if not above]
    return [[node for node in range(len(parents)) if node == root or root in ancestors(parents, node)] for root in roots]


def tree_scores(x: Row, parents: Parents, weights: Row) -> list[tuple[list[int], list[float]]]:
    """The nodes of each tree and its distinct scores, rising."""
    with_score = set(scored(x, weights))
    return [(tree, sorted({x[node] for node in tree if node in with_score})) for tree in trees_of(parents)]


def cost(x: Row, y: Row, parents: Parents, weights: Row, penalties: Row) -> float:
    """The objective above; infinite where an infinite penalty is paid."""
    total = sum(weights[node] * abs(x[node] - y[node]) for node in scored(x, weights))
    for node in range(len(parents)):
        below = children(parents, node)
        if below:
            gap = y[node] - max(y[child] for child in below)
            total += penalties[node] * gap if gap else 0.0
    return total


def is_feasible(y: Row, parents: Parents, penalties: Row) -> bool:
    """Whether no child is above its parent, and each parent with an infinite penalty equals its largest child."""
    for node in range(len(parents)):
        below = [y[child] for child in children(parents, node)]
        if below and not (y[node] == max(below) if math.isinf(penalties[node]) else y[node] >= max(below)):
            return False
    return True


# ---- every assignment of scores -------------------------------------------------------------------------------------


def smooth_by_enumeration(x: Row, parents: Parents, weights: Row, penalties: Row) -> float:
    """The least cost over all assignments of the scores of a tree to its nodes, summed over trees that have scores."""
    with_score = set(scored(x, weights))
    total = 0.0
    for tree, values in tree_scores(x, parents, weights):
        if values:
            Y = dict(zip(tree, np.array(list(product(values, repeat=len(tree)))).T, strict=True))  # node: its values
            total += costs_of_assignments(x, Y, parents, weights, penalties, with_score).min()
    return total


def costs_of_assignments(x, Y, parents, weights, penalties, with_score) -> np.ndarray:
    """The cost of each assignment of one tree, infinite where it is not feasible; `Y[node]` holds the node's values."""
    costs = sum(weights[node] * np.abs(x[node] - Y[node]) for node in Y if node in with_score)
    for node in Y:
        below = children(parents, node)
        if below:
            gap = Y[node] - np.max([Y[child] for child in below], axis=0)
            costs = costs + np.where(gap > 0, penalties[node] * np.where(gap > 0, gap, 1.0), 0.0)
            costs = np.where(gap < 0, np.inf, costs)
    return costs


def smooth_chain_by_enumeration(x: Row, weights: Row) -> float:
    """The least Σ w |x − y| over all falling sequences y of scores: a chain with penalty 0."""
    values = sorted({x[node] for node in scored(x, weights)})
    falling = (y for y in product(values, repeat=len(x)) if all(above >= below for above, below in pairwise(y)))
    return min(sum(weights[node] * abs(x[node] - y[node]) for node in scored(x, weights)) for y in falling)


# ---- any real values, by a program ----------------------------------------------------------------------------------


def smooth_by_program(x: Row, parents: Parents, weights: Row, penalties: Row) -> float:
    """The least cost over all real y, by a mixed-integer program; nothing says that values are scores.

    Columns, one block of n each: y; d_v >= |x_v − y_v|; m_v, the largest child of v; z_u = 1 for the child that is it.
    """
    n, with_score = len(parents), scored(x, weights)
    if not with_score:
        return 0.0
    low, high = min(x[node] for node in with_score) - 1, max(x[node] for node in with_score) + 1
    M = high - low
    objective, rows, least, most = np.zeros(4 * n), [], [], []

    def require(terms: dict[int, float], at_least: float, at_most: float = np.inf) -> None:
        row = np.zeros(4 * n)
        row[list(terms)] = list(terms.values())
        rows.append(row)
        least.append(at_least)
        most.append(at_most)

    def y(node):
        return node

    def d(node):
        return n + node

    def m(node):
        return 2 * n + node

    def z(node):
        return 3 * n + node

    for v in with_score:
        objective[d(v)] = weights[v]
        require({d(v): 1, y(v): -1}, -x[v])
        require({d(v): 1, y(v): 1}, x[v])
    for v in range(n):
        below = children(parents, v)
        for u in below:
            require({y(v): 1, y(u): -1}, 0)
            require({y(u): 1, m(v): -1, z(u): -M}, -M)
        if below:
            require({z(u): 1 for u in below}, 1, 1)
            if math.isinf(penalties[v]):
                require({y(v): 1, m(v): -1}, 0, 0)
            else:
                objective[y(v)] += penalties[v]
                objective[m(v)] -= penalties[v]
    lower = np.repeat([low, 0, low, 0], n)
    upper = np.repeat([high, np.inf, high, 1], n)
    found = milp(
        objective,
        constraints=LinearConstraint(np.array(rows), least, most),
        bounds=Bounds(lower, upper),
        integrality=np.repeat([0, 0, 0, 1], n),
        options={"mip_rel_gap": 0.0},
    )
    assert found.success, found.message
    return found.fun


def smooth_by_linear_program(x: Row, parents: Parents, weights: Row) -> float:
    """The least cost with penalty 0, where no largest child has to be chosen. Columns: y, then d_v >= |x_v − y_v|."""
    n, rows, bound = len(parents), [], []
    eye = np.eye(2 * n)
    for v in scored(x, weights):
        rows += [eye[v] - eye[n + v], -eye[v] - eye[n + v]]
        bound += [x[v], -x[v]]
    for v, above in enumerate(parents):
        rows += [eye[v] - eye[parent] for parent in above]
        bound += [0.0 for _ in above]
    if not rows:
        return 0.0
    has_score = np.isin(np.arange(n), scored(x, weights))
    objective = np.concatenate([np.zeros(n), np.where(has_score, weights, 0.0)])
    found = linprog(objective, A_ub=np.array(rows), b_ub=bound, bounds=[(None, None)] * n + [(0, None)] * n)
    assert found.success, found.message
    return found.fun


# ---- large trees with few distinct scores ---------------------------------------------------------------------------


def smooth_by_table(x: Row, parents: Parents, weights: Row, penalties: Row) -> float:
    """The least cost by a table: least[v][k] is that of the subtree of v when y_v is the k-th value."""
    with_score = set(scored(x, weights))
    values = np.array(sorted({x[node] for node in with_score}))
    least: list[np.ndarray] = [np.zeros(0)] * len(parents)
    below: list[list[int]] = [[] for _ in parents]
    for node, above in enumerate(parents):
        for parent in above:
            below[parent].append(node)
    if not with_score:
        return 0.0
    # children have larger numbers, so a backward sweep has filled in all children
    for v in reversed(range(len(parents))):
        own = weights[v] * np.abs(x[v] - values) if v in with_score else np.zeros(len(values))
        least[v] = own + cheapest_children([least[u] for u in below[v]], values, penalties[v]) if below[v] else own
    return float(sum(least[node].min() for node, above in enumerate(parents) if not above))


def cheapest_children(tables: list[np.ndarray], values: np.ndarray, penalty: float) -> np.ndarray:
    """For each value of the parent: the least cost of its children and of the gap to the largest of them."""
    up_to = np.array([np.minimum.accumulate(table) for table in tables])
    # one child is the largest and has exactly the m-th value, the others have any value up to it
    with_largest = (np.array(tables) - up_to).min(axis=0) + up_to.sum(axis=0)
    if math.isinf(penalty):
        return with_largest
    return np.array(
        [min(penalty * (values[k] - values[m]) + with_largest[m] for m in range(k + 1)) for k in range(len(values))]
    )
