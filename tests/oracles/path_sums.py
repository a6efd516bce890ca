"""The slow twin of a support vector machine whose weights add up along paths: dense matrices and a proof of optimality.

A unit v is a node with documents at or below it, and has weights w_v, a row of W. A class is a unit at which documents end: a
leaf of the units, or, for documents of an inner node, one more unit below it. X ends in a column of ones if there is a bias.

    f_c(x) = sum of w_v·x over the units v on the path to class c, c included
    P(W) = 1/2 sum_v |w_v|^2 + sum_i cost_i max over classes c of  Δ(y_i, c) + f_c(x_i) - f_{y_i}(x_i),       Δ(c, c) = 0

    margin "tree"   Δ(c, c') = half the edges between c and c', all the top units being children of one more
    margin "one"    Δ(c, c') = 1 where c differs from c'

All of it is the sum of a square and of maxima of affine functions, and `minimize_maxima` minimizes any such sum.
"""

from dataclasses import dataclass

import numpy as np
from threadpoolctl import ThreadpoolController

# the matrices are so small that two BLAS threads waiting for each other take thirty times as long as one
one_thread = ThreadpoolController().wrap(limits=1, user_api="blas")


# ---- units ----------------------------------------------------------------------------------------------------------------


@dataclass
class Unit:
    """The taxonomy's node, the number of the unit above or None, and whether documents end here."""

    node: int
    above: int | None
    is_class: bool


def units_of(parents, ends):
    """The units of a forest; `parents`: a list of none or one parent a node; `ends`: the node of every document."""
    ends, alive = set(ends), set()
    for node in ends:
        while node is not None:
            alive.add(node)
            node = parents[node][0] if parents[node] else None
    units = []

    def enter(node, above):
        children = [n for n in sorted(alive) if parents[n] == [node]]
        units.append(Unit(node, above, is_class=not children))
        here = len(units) - 1
        if children and node in ends:
            units.append(Unit(node, here, is_class=True))
        for child in children:
            enter(child, here)

    for root in sorted(alive):
        if not parents[root]:
            enter(root, None)
    return units


def path_to(units, unit):
    """The units from the top to one."""
    return [] if unit is None else [*path_to(units, units[unit].above), unit]


def class_paths(units):
    """For every node at which documents end, the units on the path to its class."""
    return {unit.node: path_to(units, number) for number, unit in enumerate(units) if unit.is_class}


def margin_between(path, other, margin):
    """Δ of two classes, given by their paths."""
    if path == other:
        return 0.0
    if margin == "one":
        return 1.0
    shared = sum(a == b for a, b in zip(path, other, strict=False))
    return (len(path) + len(other) - 2 * shared) / 2


# ---- the objective --------------------------------------------------------------------------------------------------------


def scores(F, X):
    """f_c(x), documents × classes, for path sums F given as {class: weights}."""
    return np.column_stack([X @ F[c] for c in F])


def objective(W, paths, X, ends, costs, margin):
    """P(W), one document after the other; `paths`: the rows of W that belong to each class."""
    F = {c: W[path].sum(axis=0) for c, path in paths.items()}
    lost = 0.0
    for x, end, cost in zip(X, ends, costs, strict=True):
        f = {c: F[c] @ x for c in F}
        lost += cost * max(margin_between(paths[end], paths[c], margin) + f[c] - f[end] for c in F)
    return 0.5 * np.sum(W * W) + lost


def solve(paths, n_units, X, ends, costs, margin):
    """The best W, P(W), and a bound that no W can go below."""
    n_features = X.shape[1]
    groups = []
    for x, end in zip(X, ends, strict=True):
        heights, slopes = [], []
        for path in paths.values():
            slope = np.zeros((n_units, n_features))
            slope[path] += x
            slope[paths[end]] -= x
            heights.append(margin_between(paths[end], path, margin))
            slopes.append(slope.ravel())
        groups.append((np.array(heights), np.array(slopes)))
    w, dual = minimize_maxima(np.eye(n_units * n_features), groups, costs)
    W = w.reshape(n_units, n_features)
    return W, objective(W, paths, X, ends, costs, margin), dual


# ---- sums of maxima -------------------------------------------------------------------------------------------------------


@one_thread
def minimize_maxima(H, groups, costs, tolerance=1e-7):
    """min over w of  1/2 w·Hw + sum_i costs_i max_j (b_ij + a_ij·w), and a lower bound; each group i is a pair (b_i, a_i).

    The dual, over α_ij >= 0 with sum_j α_ij = costs_i, is  sum α_ij b_ij - 1/2 g·H^-1 g,  g = sum α_ij a_ij: for any such α
    it is a lower bound, because a maximum is no less than a mean.
    """
    groups = [group for group, cost in zip(groups, costs, strict=True) if cost > 0]
    costs = np.array([cost for cost in costs if cost > 0])
    owner = np.concatenate([np.full(len(b), i) for i, (b, _) in enumerate(groups)])
    b, A = np.concatenate([b for b, _ in groups]), np.concatenate([a for _, a in groups])
    belongs = (owner[:, None] == np.arange(len(costs))).astype(float)

    w, alpha = _interior_point(H, A, b, belongs, costs)
    alpha = alpha * (costs / (belongs.T @ alpha))[owner]
    g = A.T @ alpha
    dual = alpha @ b - 0.5 * g @ np.linalg.solve(H, g)
    highest = [max(bi + ai @ w) for bi, ai in groups]
    primal = 0.5 * w @ H @ w + costs @ highest
    assert abs(primal - dual) <= tolerance * max(primal, 1e-12), f"not solved, primal {primal}, dual {dual}"
    return w, dual


def _interior_point(H, A, b, belongs, costs, n_steps=100):
    """min 1/2 w·Hw + costs·ξ  with slack t = Eξ - b - Aw >= 0, E = `belongs`, and its multipliers α (Mehrotra 1992).

    At the optimum Hw + A'α = 0, E'α = costs and αt = 0.
    """
    w = np.zeros(len(H))
    alpha = belongs @ (costs / belongs.sum(axis=0))
    xi = np.array([max(b[member > 0]) for member in belongs.T]) + 1
    t = belongs @ xi - b

    def direction(aim):
        """The Newton step to the two equations of the optimum and to αt = aim, t = Eξ - b - Aw kept."""
        # dα = (aim - αt - α dt) / t and dt = E dξ - A dw give two linear systems, dξ of which has a diagonal matrix
        d, rest = alpha / t, aim / t
        dual_w, dual_xi = H @ w + A.T @ rest, costs - belongs.T @ rest
        diagonal = belongs.T @ d
        means = (belongs.T @ (d[:, None] * A)) / diagonal[:, None]
        around = A - belongs @ means
        dw = np.linalg.solve(H + around.T @ (d[:, None] * around), -dual_w - means.T @ dual_xi)
        dxi = means @ dw - dual_xi / diagonal
        dt = belongs @ dxi - A @ dw
        return dw, dxi, dt, rest - alpha - d * dt

    def longest(dt, dalpha):
        now, change = np.concatenate([t, alpha]), np.concatenate([dt, dalpha])
        return min([1.0, *(-now[change < 0] / change[change < 0])])

    for _ in range(n_steps):
        value = 0.5 * w @ H @ w + costs @ [max((b + A @ w)[member > 0]) for member in belongs.T]
        off, size = np.abs(H @ w + A.T @ alpha).max(), 1 + (np.abs(A).T @ alpha).max()
        if alpha @ t <= 1e-11 * max(value, 1e-9) and off <= 1e-10 * size:
            break
        # first straight at 0, then as far from 0 as that went wrong, with the second-order error taken off
        try:
            _, _, dt, dalpha = direction(np.zeros(len(b)))
            step = longest(dt, dalpha)
            mu = ((alpha + step * dalpha) @ (t + step * dt) / (alpha @ t)) ** 3 * (alpha @ t) / len(b)
            dw, dxi, dt, dalpha = direction(mu - dt * dalpha)
        except np.linalg.LinAlgError:  # singular to rounding: no step leads nearer, and whoever asked measures the gap
            break
        step = min(1.0, 0.99 * longest(dt, dalpha))
        w, xi, t, alpha = w + step * dw, xi + step * dxi, t + step * dt, alpha + step * dalpha
    return w, alpha
