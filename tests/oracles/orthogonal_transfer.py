"""The slow twin of orthogonal transfer (Zhou, Xiao & Wu, ICML 2011): dense matrices and a proof of optimality.

A branch u is a way on from a node that has more than one; staying at a node is a way on where documents end there, and the
roots are the ways on from nowhere. It has weights w_u, a row of W. X ends in a column of ones if there is a bias.

    J(W) = 1/2 sum_uv K_uv |w_u·w_v| + sum_i cost_i max(0, max over u, v of 1 - (w_u - w_v)·x_i)
           over the branches u on the path of document i, and the other branches v of the same node
    K_uu = 1,   K_uv = coupling / sqrt(r_u r_v) where u is above v or below it, else 0,   r_u: how many are above or below u

|t| is the largest s·t with -1 <= s <= 1, so J is the maximum over symmetric S, S_uu = 1 and |S_uv| <= 1, of

    J(W, S) = 1/2 sum_uv K_uv S_uv w_u·w_v + the same losses.

Written as blocks, the quadratic form of K∘S is no less than that of the matrix with K_uu on and -K_uv off the diagonal, at
the norms of the w_u; the latter has the least eigenvalue 1 - coupling or more (scale row u by sqrt(r_u): its row sums are
1 - coupling). So J(W, S) is convex in W, linear in S, and min max = max min: D(S) = min_W J(W, S) is concave and a lower bound
of J for every S. `solve` maximizes D, whose slope at S_uv is K_uv w_u·w_v at the minimum W(S), and returns J(W) and D(S).
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from oracles.path_sums import minimize_maxima, one_thread


@dataclass(frozen=True)
class Branch:
    """A way on from the node `parent`, or from nowhere (-1); node and parent are the same where it says to stay."""

    node: int
    parent: int

    @property
    def stays(self):
        return self.node == self.parent


# ---- branches -------------------------------------------------------------------------------------------------------------


def nodes_to(parents, node):
    """The nodes from the root to one."""
    return [*(nodes_to(parents, parents[node][0]) if parents[node] else []), node]


def branches_of(parents, ends):
    """The branches of a forest with documents at the nodes `ends`; `parents`: a list of none or one parent a node."""
    alive = {node for end in ends for node in nodes_to(parents, end)}
    found = []
    for here in [-1, *sorted(alive)]:
        ways = [Branch(node, here) for node in sorted(alive) if (parents[node] or [-1]) == [here]]
        if here in set(ends) and ways:
            ways.append(Branch(here, here))
        found += ways if len(ways) > 1 else []
    return found


def path_of(branches, parents, end):
    """The numbers of the branches that a document takes on its way to the node `end`."""
    way = nodes_to(parents, end)
    return [u for u, b in enumerate(branches) if (b.node == end if b.stays else b.node in way)]


def is_above(a, b, parents):
    """Whether branch a leads to the node at which b is asked about, or to a node above that."""
    if a.stays:
        return False
    return a.node in (nodes_to(parents, b.parent) if b.parent >= 0 else [])


def couplings(branches, parents, coupling):
    """K."""
    related = np.array([[is_above(a, b, parents) or is_above(b, a, parents) for b in branches] for a in branches])
    r = related.sum(axis=1)
    K = np.eye(len(branches))
    for u, v in np.argwhere(related):
        K[u, v] = coupling / np.sqrt(r[u] * r[v])
    return K


# ---- the objective --------------------------------------------------------------------------------------------------------


def penalty(W, K):
    """Ω(W) = 1/2 sum_uv K_uv |w_u·w_v|."""
    return 0.5 * np.sum(K * np.abs(W @ W.T))


def rivals(branches, parents, end):
    """The pairs (u, v) of a branch on the path to `end` and another one of the same node."""
    taken = path_of(branches, parents, end)
    return [(u, v) for u in taken for v, b in enumerate(branches) if v != u and b.parent == branches[u].parent]


def objective(W, K, branches, parents, X, ends, costs):
    """J(W), one document after the other."""
    lost = 0.0
    for x, end, cost in zip(X, ends, costs, strict=True):
        lost += cost * max([0.0, *(1 - (W[u] - W[v]) @ x for u, v in rivals(branches, parents, end))])
    return penalty(W, K) + lost


@one_thread
def solve(K, branches, parents, X, ends, costs, n_rounds=20):
    """The best W, J(W), and a bound that no W can go below."""
    shape = len(branches), X.shape[1]
    groups = [_pieces(rivals(branches, parents, end), x, shape) for x, end in zip(X, ends, strict=True)]
    pairs = [(u, v) for u in range(len(K)) for v in range(u) if K[u, v] > 0]

    def at(signs):
        """W(S) and D(S), S given by its entries at `pairs`."""
        S = np.eye(len(K))
        for (u, v), s in zip(pairs, signs, strict=True):
            S[u, v] = S[v, u] = s
        w, bound = minimize_maxima(np.kron(K * S, np.eye(shape[1])), groups, costs)
        return w.reshape(shape), bound

    def down(signs):
        W, bound = at(signs)
        return -bound, np.array([-K[u, v] * (W[u] @ W[v]) for u, v in pairs])

    signs = np.zeros(len(pairs))
    for _ in range(n_rounds if pairs else 1):
        W, bound = at(signs)
        value = objective(W, K, branches, parents, X, ends, costs)
        if value - bound <= 1e-7 * value:
            break
        found = minimize(
            down, signs, jac=True, method="L-BFGS-B", bounds=[(-1, 1)] * len(pairs), options={"ftol": 0, "gtol": 1e-12}
        )
        signs = found.x
    return W, value, bound


def _pieces(pairs, x, shape):
    """The heights and slopes of the affine functions of W whose maximum is the loss of a document x; 0 is one of them."""
    slopes = np.zeros((len(pairs) + 1, *shape))
    for row, (u, v) in enumerate(pairs):
        slopes[row, u] -= x
        slopes[row, v] += x
    return np.array([1.0] * len(pairs) + [0.0]), slopes.reshape(len(pairs) + 1, -1)


# ---- the published way ----------------------------------------------------------------------------------------------------


def slope_of(W, K, branches, parents, X, ends, costs):
    """A subgradient of J at W: sign(0) is 0, and of equally high losses the first counts."""
    G = (K * np.sign(W @ W.T)) @ W
    for x, end, cost in zip(X, ends, costs, strict=True):
        losses = {(u, v): 1 - (W[u] - W[v]) @ x for u, v in rivals(branches, parents, end)}
        if losses and max(losses.values()) > 0:
            u, v = max(losses, key=losses.get)
            G[u] -= cost * x
            G[v] += cost * x
    return G


def average_slopes(K, branches, parents, X, ends, costs, coupling, n_rounds):
    """Regularized dual averaging: W = -(mean slope of J - σ/2 |W|^2 so far) / σ, σ = 1 - coupling; the best W met, and J."""
    sigma, mean = 1 - coupling, np.zeros((len(branches), X.shape[1]))
    W, best = mean.copy(), (np.inf, None)
    for t in range(1, n_rounds + 1):
        value = objective(W, K, branches, parents, X, ends, costs)
        if value < best[0]:
            best = value, W
        mean = mean + (slope_of(W, K, branches, parents, X, ends, costs) - sigma * W - mean) / t
        W = -mean / sigma
    return best[1], best[0]
