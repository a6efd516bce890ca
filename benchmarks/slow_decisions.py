"""The slow oracles of the decision functions, for sizes at which nobody can try every answer.

Legend: x: a document's scores on one tree, NaN where there is none; y: the smoothed scores; children[v]: the children of
node v, and node 0 is the root; w, a: weights and penalties, one a node.

Those of ``tests/oracles`` try every answer; :func:`check_oracles` holds the oracles here against them on small trees.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# at the end: folders of tests have the names of modules here
sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from oracles import h_loss_decisions, isotonic

Floats = NDArray[np.float64]
Family = list[list[int]]
N_SMALL = 50
MOST_NODES = 5
TOLERANCE = 1e-9


# ---- isotonic smoothing ---------------------------------------------------------------------------------------------


def least_cost(x: Floats, children: Family, w: Floats, a: Floats) -> float:
    """The least Σ w|x − y| + Σ_{inner v} a_v (y_v − max_{children u} y_u) over all y with y_parent ≥ y_child.

    err_v(i) = w_v |x_v − x̂_i| + Σ_u best_u(i) + min_u min_{j≤i} [err_u(j) − best_u(i) + a_v (x̂_i − x̂_j)]

    best_u(i) = min_{j≤i} err_u(j), and x̂ are the distinct scores, rising; a_v = ∞ leaves only j = i.
    """
    has_score = has_scores(x, w)
    values = np.unique(x[has_score])

    def err(v: int) -> Floats:
        own = w[v] * np.abs(x[v] - values) if has_score[v] else np.zeros(len(values))
        if not children[v]:
            return own
        at_best, extra = np.zeros(len(values)), np.full(len(values), np.inf)
        for u in children[v]:
            cost = err(u)
            best = np.minimum.accumulate(cost)
            at_best += best
            extra = np.minimum(extra, as_largest(cost, values, a[v]) - best)
        return own + at_best + extra

    return float(err(0).min()) if len(values) else 0.0


def as_largest(cost: Floats, values: Floats, penalty: float) -> Floats:
    """min_{j≤i} [cost_j + penalty · (x̂_i − x̂_j)] for each i."""
    return cost if math.isinf(penalty) else np.minimum.accumulate(cost - penalty * values) + penalty * values


def cost_of(x: Floats, y: Floats, children: Family, w: Floats, a: Floats) -> float:
    """What smoothed scores cost; infinite where they are missing or contradict the tree."""
    has_score = has_scores(x, w)
    total = float(np.sum(w[has_score] * np.abs(x - y)[has_score]))
    for v, below in enumerate(children):
        gap = y[v] - y[below].max() if below else 0.0
        if not gap >= 0 or np.isnan(y[v]):
            return math.inf
        total += float(a[v] * gap) if gap else 0.0
    return total


def has_scores(x: Floats, w: Floats) -> NDArray[np.bool_]:
    """The nodes whose scores count."""
    return ~np.isnan(x) & (w > 0)


def grid_of(x: Floats, levels: int) -> Floats:
    """Equally spaced values from the lowest to the highest score."""
    low, high = np.nanmin(x), np.nanmax(x)
    return np.asarray(low + (high - low) / (levels - 1) * np.arange(levels))


def is_coarse(x: Floats, levels: int) -> bool:
    """Whether scores have no more distinct values than levels, so that they stay as they are."""
    return len(np.unique(x[~np.isnan(x)])) <= levels


def nearest_of(grid: Floats, x: Floats) -> Floats:
    """Every score at the nearest value of a grid, the upper one of two; NaN stays."""
    step = (grid[-1] - grid[0]) / (len(grid) - 1)
    at = np.floor((x - grid[0]) / step + 0.5)
    return np.where(np.isnan(x), np.nan, grid[np.clip(np.nan_to_num(at), 0, len(grid) - 1).astype(int)])


# ---- least expected H-loss ------------------------------------------------------------------------------------------


def least_risk(p: Floats, parents: Family, costs: list[float]) -> set[int]:
    """The nodes with the least expected H-loss: risks from the leaves up, one document and node after the other."""
    return h_loss_decisions.minimize_h_loss(p.tolist(), parents, costs)


def sibling_costs(parents: Family) -> list[float]:
    """One over the number of siblings."""
    return h_loss_decisions.sibling_costs(parents)


# ---- the oracles against every answer ---------------------------------------------------------------------------------


def check_oracles(rng: np.random.Generator) -> float:
    """The largest difference between the oracles' costs and the least of all answers, on small random trees."""
    return max(max(_smoothing_difference(rng), _risk_difference(rng)) for _ in range(N_SMALL))


def _smoothing_difference(rng: np.random.Generator) -> float:
    """Scores with ties and gaps, weights of 0, and penalties of every kind."""
    n = int(rng.integers(1, MOST_NODES + 1))
    parents = _random_parents(rng, n, roots=1)
    x = np.where(rng.random(n) < 0.2, np.nan, rng.choice([rng.random(n), np.round(rng.random(n), 1)]))
    w, a = rng.choice([0.0, 1.0, 2.5], size=n), rng.choice([0.0, 1.0, 5.0, np.inf], size=n)
    given = x.tolist(), parents, w.tolist(), a.tolist()
    y = np.full(n, 0.5)
    by_definition = isotonic.cost(given[0], y.tolist(), *given[1:])
    children = children_of(parents)
    return max(
        abs(least_cost(x, children, w, a) - isotonic.smooth_by_enumeration(*given)),
        abs(cost_of(x, y, children, w, a) - by_definition),
    )


def _risk_difference(rng: np.random.Generator) -> float:
    n = int(rng.integers(1, MOST_NODES + 1))
    parents = _random_parents(rng, n, roots=2)
    p = np.where(rng.random(n) < 0.1, np.nan, rng.random(n))
    costs = sibling_costs(parents)
    reached = h_loss_decisions.expected_h_loss(least_risk(p, parents, costs), p.tolist(), parents, costs)
    return abs(reached - h_loss_decisions.least_expected_h_loss(p.tolist(), parents, costs))


def _random_parents(rng: np.random.Generator, n_nodes: int, roots: int) -> Family:
    return [[int(rng.integers(node))] if node >= roots else [] for node in range(n_nodes)]


def children_of(parents: Family) -> Family:
    """The children of each node."""
    children: Family = [[] for _ in parents]
    for node, above in enumerate(parents):
        for parent in above:
            children[parent].append(node)
    return children
