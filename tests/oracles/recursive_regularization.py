"""The slow twin of recursive regularization (Gopal & Yang, KDD 2013, section 3): dense matrices and a proof of optimality.

Every unit n (a node of a hierarchy or a graph) has weights w_n, a row of W. Column k of `signs` and `costs` belongs to unit
class_units[k]; the other units have no loss. A cost of 0 takes the document out of that class. X ends in a bias column if the
caller wants one; it is regularized like any other feature.

Primal   P(W) = 1/2 sum_ab M_ab w_a·w_b + sum_ik costs_ik L(z_ik),   z_ik = signs_ik w_n·x_i,  n = class_units[k]
             hinge          L(z) = max(0, 1 - z)
             squared_hinge  L(z) = max(0, 1 - z)^2
             logistic       L(z) = ln(1 + e^-z)

Dual     D(α) = sum_ik G_c(α_ik) - 1/2 sum_ab (M^-1)_ab u_a·u_b,   u_n = sum_i α_ik signs_ik x_i,  u = 0 for other units
             G_c(α) = min_z c L(z) + α z, the largest lower bound that α gives of a loss with cost c:
             hinge          α                                   0 <= α <= c
             squared_hinge  α - α^2 / 4c                        0 <= α
             logistic       c (h(α/c) + h(1 - α/c))             0 <= α <= c,  h(p) = -p ln p

P(W) - D(α) is the sum of c L(z) + α z - G_c(α) >= 0 over the pairs, and of 1/2 (W - M^-1 U)' M (W - M^-1 U) >= 0. So D never
exceeds P, both meet at W = M^-1 U and α = -c L'(z), and `solve` returns both: their difference bounds the error.
"""

import numpy as np
from scipy.special import entr, expit
from threadpoolctl import ThreadpoolController

LOSSES = ("hinge", "squared_hinge", "logistic")
# the matrices are so small that two BLAS threads waiting for each other take thirty times as long as one
one_thread = ThreadpoolController().wrap(limits=1, user_api="blas")


def flat_regularizer(n_units):
    """M of 1/2 sum_n |w_n|^2: every class is regularized towards 0."""
    return np.eye(n_units)


def hierarchy_regularizer(n_units, edges):
    """M of 1/2 sum over (child, parent) of |w_child - w_parent|^2, and 1/2 |w_root|^2 for every unit without a parent."""
    roots = set(range(n_units)) - {child for child, _ in edges}
    return _differences(n_units, edges) + _squares(n_units, roots)


def ancestor_regularizer(n_units, edges):
    """M of 1/2 sum_n |δ_n|^2, where w_n is the sum of δ over n and all units above it, each once; edges: (child, parent)."""
    above = {n: {parent for child, parent in edges if child == n} for n in range(n_units)}
    A = np.eye(n_units)  # W = A δ
    for n in range(n_units):
        waiting, found = list(above[n]), set()
        while waiting:
            found.add(unit := waiting.pop())
            waiting += above[unit] - found
        A[n, sorted(found)] = 1
    increments = np.linalg.inv(A)
    return increments.T @ increments


def graph_regularizer(n_units, edges, anchor):
    """M of 1/2 sum over {a, b} of |w_a - w_b|^2, 1/2 anchor |w_n|^2 for every unit, and 1/2 |w_n|^2 for the isolated."""
    isolated = set(range(n_units)) - {unit for edge in edges for unit in edge}
    return _differences(n_units, edges) + anchor * np.eye(n_units) + _squares(n_units, isolated)


def _differences(n_units, edges):
    M = np.zeros((n_units, n_units))
    for a, b in edges:
        M[a, a] += 1
        M[b, b] += 1
        M[a, b] -= 1
        M[b, a] -= 1
    return M


def _squares(n_units, units):
    return np.diag([1.0 if n in units else 0.0 for n in range(n_units)])


def loss_of(z, loss):
    """L(z)."""
    if loss == "hinge":
        return np.maximum(0, 1 - z)
    if loss == "squared_hinge":
        return np.maximum(0, 1 - z) ** 2
    return np.logaddexp(0, -z)


def objective(W, M, X, signs, costs, class_units, loss):
    """P(W)."""
    z = signs * (X @ W[class_units].T)
    return 0.5 * np.sum(M * (W @ W.T)) + np.sum(costs * loss_of(z, loss))


def dual_objective(alphas, M, X, signs, costs, class_units, loss):
    """D(α), a lower bound of P at any W; α, shaped as the costs, is first brought into its bounds, 0 where a cost is 0."""
    alphas = np.maximum(alphas, 0) * (costs > 0)
    if loss != "squared_hinge":
        alphas = np.minimum(alphas, costs)
    safe = np.where(costs > 0, costs, 1)
    if loss == "hinge":
        bounds = alphas
    elif loss == "squared_hinge":
        bounds = alphas - alphas**2 / (4 * safe)
    else:
        bounds = costs * (entr(alphas / safe) + entr(1 - alphas / safe))
    U = np.zeros((len(M), X.shape[1]))
    U[class_units] = (alphas * signs).T @ X
    return np.sum(bounds) - 0.5 * np.sum(U * np.linalg.solve(M, U))


@one_thread
def solve(M, X, signs, costs, class_units, loss, tolerance=1e-7):
    """The best W, P(W), and a dual bound that no W can go below; fails unless they agree to the relative `tolerance`."""
    # one long vector w of all the weights: P = 1/2 w·Hw + sum c L(Aw), one row of A for each pair with a cost
    n_units, n_features = len(M), X.shape[1]
    taking_part = np.argwhere(costs > 0)
    A = np.zeros((len(taking_part), n_units, n_features))
    for row, (i, k) in enumerate(taking_part):
        A[row, class_units[k]] = signs[i, k] * X[i]
    A, H = A.reshape(len(A), n_units * n_features), np.kron(M, np.eye(n_features))

    w, alpha = (_interior_point if loss == "hinge" else _newton)(H, A, costs[costs > 0], loss)
    W, alphas = w.reshape(n_units, n_features), np.zeros(costs.shape)
    alphas[costs > 0] = alpha  # in the order of argwhere
    primal = objective(W, M, X, signs, costs, class_units, loss)
    dual = dual_objective(alphas, M, X, signs, costs, class_units, loss)
    assert abs(primal - dual) <= tolerance * primal, f"{loss}: not solved, primal {primal}, dual {dual}"
    return W, primal, dual


def _newton(H, A, c, loss, n_steps=200):
    """min 1/2 w·Hw + sum c L(Aw) for a smooth loss, and α = -c L'(Aw), by Newton steps with halving."""

    def value(w):
        return 0.5 * w @ H @ w + np.sum(c * loss_of(A @ w, loss))

    def slopes(w):
        z = A @ w
        if loss == "squared_hinge":
            return 2 * c * np.maximum(0, 1 - z), 2 * c * (z < 1)
        return c * expit(-z), c * expit(z) * expit(-z)

    w = np.zeros(len(H))
    for _ in range(n_steps):
        alpha, curvature = slopes(w)
        gradient = H @ w - A.T @ alpha
        # the gap of this w and α, see the head of the file: both smooth terms meet exactly
        if 0.5 * gradient @ np.linalg.solve(H, gradient) <= 1e-14 * value(w):
            break
        direction = -np.linalg.solve(H + A.T @ (curvature[:, None] * A), gradient)
        step, rounding = 1.0, 1e-14 * value(w)
        while value(w + step * direction) > value(w) + 1e-4 * step * (gradient @ direction) + rounding:
            step /= 2
        w = w + step * direction
    return w, slopes(w)[0]


def _interior_point(H, A, c, loss, n_steps=200):
    """min 1/2 w·Hw + c·ξ with t = Aw + ξ - 1 >= 0 and ξ >= 0, and the α of the first bound (Mehrotra 1992).

    β = c - α belongs to the second bound. At the optimum Hw = A'α, αt = 0 and βξ = 0; on the way αt and βξ shrink together.
    """
    w, alpha, beta = np.zeros(len(H)), c / 2, c / 2
    xi, t = np.full(len(c), 2.0), np.ones(len(c))

    def direction(aim_t, aim_xi):
        """The Newton step to Hw = A'α, αt = aim_t and βξ = aim_xi, the other two equations kept."""
        theta = t / alpha + xi / beta
        lift = (aim_t / alpha - t) - (aim_xi / beta - xi)
        dw = np.linalg.solve(H + A.T @ (A / theta[:, None]), A.T @ (alpha + lift / theta) - H @ w)
        dalpha = (lift - A @ dw) / theta
        return dw, dalpha, aim_t / alpha - t - t * dalpha / alpha, aim_xi / beta - xi + xi * dalpha / beta

    def longest(dalpha, dt, dxi):
        """The step, at most 1, at which the first of α, β, t and ξ reaches 0."""
        now, change = np.concatenate([alpha, beta, t, xi]), np.concatenate([dalpha, -dalpha, dt, dxi])
        return min([1.0, *(-now[change < 0] / change[change < 0])])

    for _ in range(n_steps):
        residual = H @ w - A.T @ alpha
        value = 0.5 * w @ H @ w + np.sum(c * loss_of(A @ w, loss))
        products = alpha @ t + beta @ xi
        if products + 0.5 * residual @ np.linalg.solve(H, residual) <= 1e-11 * value:
            break
        # first straight at 0, then as far from 0 as that went wrong, with the second-order error taken off
        dw, dalpha, dt, dxi = direction(0, 0)
        step = longest(dalpha, dt, dxi)
        left = (alpha + step * dalpha) @ (t + step * dt) + (beta - step * dalpha) @ (xi + step * dxi)
        mu = (left / products) ** 3 * products / (2 * len(c))
        dw, dalpha, dt, dxi = direction(mu - dalpha * dt, mu + dalpha * dxi)
        step = min(1.0, 0.99 * longest(dalpha, dt, dxi))
        w, alpha, beta, t, xi = w + step * dw, alpha + step * dalpha, beta - step * dalpha, t + step * dt, xi + step * dxi
    return w, alpha
