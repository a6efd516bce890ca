"""The slow twins of the kernels of linear models, on dense lists, one number after the other.

`pairs` is one list a class of (document, sign, alpha). `paths` is one list a class of the units above it.
"""

import math

LOSSES = ("hinge", "squared_hinge", "logistic")


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def find_negative_candidates(X, signatures, start, own, n_nearest):
    """Of the classes that share a feature with a row, and are not its own, the best by start + product; in order of number."""
    found = []
    for row, mine in zip(X, own, strict=True):
        met = [c for c, s in enumerate(signatures) if c not in mine and any(x and w for x, w in zip(row, s, strict=True))]
        best = sorted(met, key=lambda c: (-(start[c] + dot(row, signatures[c])), c))[:n_nearest]
        found.append(sorted(best) + [-1] * (n_nearest - len(best)))
    return found


def sum_class_vectors(X, pairs):
    """u = Σ α y x of every class."""
    return [[sum(alpha * sign * X[i][f] for i, sign, alpha in own) for f in range(len(X[0]))] for own in pairs]


def assemble_tree_deltas(X, pairs, paths, n_units):
    """δ of every unit: the sum of u over the classes below it."""
    deltas = [[0.0] * len(X[0]) for _ in range(n_units)]
    for u, path in zip(sum_class_vectors(X, pairs), paths, strict=True):
        for unit in path:
            deltas[unit] = [d + v for d, v in zip(deltas[unit], u, strict=True)]
    return deltas


def dual_of(X, pairs, paths, n_units, loss, cost=1.0):
    """Σ U h(α/U) − ½ Σ ‖δ‖² over the units and the classes themselves."""
    vectors = assemble_tree_deltas(X, pairs, paths, n_units) + sum_class_vectors(X, pairs)
    entropy = sum(entropy_of(alpha, cost, loss) for own in pairs for _, _, alpha in own)
    return entropy - 0.5 * sum(value * value for vector in vectors for value in vector)


def loss_of(z, loss):
    """L(z)."""
    if loss == "hinge":
        return max(0.0, 1 - z)
    if loss == "squared_hinge":
        return max(0.0, 1 - z) ** 2
    return math.log1p(math.exp(-z)) if z > 0 else math.log1p(math.exp(z)) - z


def entropy_of(alpha, cost, loss):
    """U h(α / U), the largest lower bound that α gives of a loss with cost U."""
    if loss == "hinge":
        return alpha
    if loss == "squared_hinge":
        return alpha - alpha**2 / (4 * cost)
    return -cost * sum(p * math.log(p) for p in (alpha / cost, 1 - alpha / cost) if p > 0)


def best_alpha(loss, z, squared_norm, cost, steps=300):
    """The α that maximizes U h(α / U) − α z − ½ α² ‖x‖², where its slope changes sign."""

    def slope(alpha):
        own = {"hinge": 1.0, "squared_hinge": 1 - alpha / (2 * cost)}.get(loss)
        if own is None:
            own = math.log((cost - alpha) / alpha) if 0 < alpha < cost else math.inf if alpha <= 0 else -math.inf
        return own - z - alpha * squared_norm

    low, high = 0.0, 2 * cost * (1 + abs(z)) if loss == "squared_hinge" else cost
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return high if slope(high) >= 0 else low


def strays(scores, known, threshold, costs):
    """The pairs (document, class) that are not known, cost something, and score above the threshold."""
    return {
        (i, c)
        for i, row in enumerate(scores)
        for c, score in enumerate(row)
        if (i, c) not in known and costs[i][c] > 0 and score > threshold
    }
