"""OT (orthogonal transfer): the weights of a branch are regularized towards being orthogonal to those of the branches above it.

    min over W   Ω(W) + C Σ_i max(0, max over u, v of 1 − (w_u − w_v)·x_i),      Ω(W) = ½ Σ_uv K_uv |w_u·w_v|

u runs over the branches on the path of document i, v over the other branches of the same node. K_uu is 1; K_uv is coupling /
√(r_u r_v) where one of u and v is above the other, and else 0; r_u is how many branches are above or below u. Ω is convex if K
stays positive semidefinite with any signs off its diagonal. Its least eigenvalue is then 1 − coupling or more, so any coupling
below 1 serves; with 0 it is one SVM over all branches without any tie between levels.

|t| is the largest s t with −1 ≤ s ≤ 1. So the minimum is that over W of the maximum over S of ½ tr(Wᵀ (K∘S) W) + losses, with
S_uu = 1 and −1 ≤ S_uv ≤ 1, and with the dual of the losses a concave maximum over α and S: any α and S give a lower bound.

Source: Zhou, Xiao & Wu 2011; the system OT of Gopal & Yang 2013, section 4.2.
Deviations: `solver="exact"` alternates dual ascent over documents and over the signs S until the duality gap is small;
`solver="dual-averaging"` is the paper's method, with our bound. Where documents stay at an inner node, staying is one more
branch. A softmax over siblings makes paths comparable. The bias is a constant feature.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.sparse import csc_array, csr_array
from threadpoolctl import threadpool_limits

from ramify.errors import InputError, suggest
from ramify.learners.linear.dual_solver import TrainedWeights
from ramify.learners.linear.problem import Certificate, Settings
from ramify.learners.linear.top_down import TopDownLinear
from ramify.learners.linear.training import Setup, check_setup, is_number, weigh_classes
from ramify.learners.structured.problem import Floats, Outputs, Problem, build_problem, refuse_too_large, to_weights
from ramify.learners.structured.solver import DualState, SquaredNorm, measure, solve
from ramify.learners.targets import Targets, require_one_label
from ramify.learners.top_down_base import find_branches, only_children
from ramify.parallel import stage
from ramify.taxonomy import Taxonomy, expand_to_ancestors

Nodes = NDArray[np.int64]
COPIES = {"exact": 3, "dual-averaging": 5}  # of the weights, that a solver holds
MOST_COUPLING = {"exact": 0.9999, "dual-averaging": 0.99}
SIGN_STEPS = 20  # of the signs between two rounds, at most
BOUND_EVERY = 25  # rounds of dual averaging between two computations of the bound


@dataclass(eq=False, repr=False)
class OrthogonalTransfer(TopDownLinear):
    """Branches regularized to be orthogonal to those above them (system ``ot``); a document has one label.

    coupling: the strength, from 0 to 0.9999, or to 0.99 with dual averaging.
    solver: ``"exact"`` until the relative duality gap is within `tol`, or ``"dual-averaging"``, as published.
    C: the cost of a unit of loss, or ``"auto"`` to select it by cross-validation. class_weight: None, ``"balanced"``, or a
    weight by class name. max_iter: rounds after which training ends with a warning. random_state: the order in which
    documents are visited. n_jobs: threads for scoring; training uses one.

    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> fitted = OrthogonalTransfer(taxonomy).fit([[1, 0, 0], [1, 1, 0], [0, 0, 1]], ["a/x", "a/y", "b"])
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "orthogonal-transfer"
    supports_multi_label: ClassVar[bool] = False
    taxonomy: Taxonomy | None = None
    _: KW_ONLY
    C: float | str = 1.0
    coupling: float = 0.9
    solver: str = "exact"
    class_weight: Any = None
    tol: float = 1e-3
    max_iter: int = 1000
    fit_intercept: bool = True
    n_jobs: int | None = None
    random_state: int | None = 0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.solver not in COPIES:
            raise InputError(
                f"solver is {self.solver!r}; give {' or '.join(map(repr, COPIES))}.{suggest(str(self.solver), COPIES)}"
            )
        most = MOST_COUPLING[self.solver]
        if not is_number(self.coupling) or not 0 <= self.coupling <= most:
            raise InputError(
                f"coupling is {self.coupling!r}; with solver={self.solver!r} give a number from 0 to {most}: near 1 the "
                "problem is no longer strongly convex, and averaging takes steps of up to 1 / (1 − coupling)."
            )

    def _fit(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        taxonomy = targets.taxonomy.tree
        self._check_parameters()
        require_one_label(targets, "ot", "system='td-svm'")
        setup = check_setup(self, self.loss)
        if self.C == "auto":
            best, self.C_scores_ = self._cross_validate_C(X, targets, sample_weight, setup)
            setup = replace(setup, C=best)
        alive = np.diff(csc_array(expand_to_ancestors(targets.own, taxonomy)).indptr) > 0
        ends = np.flatnonzero(np.diff(csc_array(targets.own).indptr))
        nodes, parents = find_branches(taxonomy, alive, np.isin(np.arange(len(taxonomy)), ends)).T
        branches = Branches(nodes, parents, taxonomy)
        self._store(self._train(X, targets.own[:, ends], ends, branches, sample_weight, setup), setup, targets)
        self._set_branches(nodes, parents, only_children(alive, nodes, parents))

    def _train(
        self, X: csr_array, own: csr_array, ends: Any, branches: Branches, sample_weight: NDArray[np.float64], setup: Setup
    ) -> TrainedWeights:
        held, other, n_copies = (X.shape[1] + 1, len(branches)), "system='td-svm'", COPIES[self.solver]
        refuse_too_large(*held, branches.count_pairs(), "ot", other, n_copies)  # before all pairs are listed
        outputs = branch_outputs(branches, ends)
        refuse_too_large(*held, int(np.diff(outputs.offsets)[own.indices].sum()), "ot", other, n_copies)
        costs = weigh_classes(own.tocsc(), setup, branches.taxonomy, ends, sample_weight)
        n = len(branches)
        problem = build_problem(X, own, outputs, n, costs, setup.bias)
        penalty = OrthogonalPenalty.of(branches, float(self.coupling))
        if self.solver == "dual-averaging":
            W, certificate = average_gradients(problem, penalty, setup.settings)
        else:
            W, certificate = solve(DualState.start(problem, penalty, setup.settings.seed), setup.settings)
        alone = np.full(n, -1, dtype=np.int32)
        return TrainedWeights(to_weights(W, problem.rows, alone, np.arange(n, dtype=np.int64)), certificate)


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of all nodes that have more than one; those of a node are adjacent.

    nodes, parents: of every branch its node, and the node above (-1 above the roots); both are the same for staying there.
    """

    nodes: Nodes
    parents: Nodes
    taxonomy: Taxonomy

    def __len__(self) -> int:
        return len(self.nodes)

    def on_path_to(self, end: int) -> Nodes:
        """The branches on the path of a document that ends at a node."""
        stays = self.nodes == self.parents
        on_path = np.isin(self.nodes, self.taxonomy.nodes_to(end))
        return np.flatnonzero(np.where(stays, self.nodes == end, on_path))

    def rivals(self) -> list[Nodes]:
        """For every branch the other branches of the same node."""
        firsts, lasts = (np.searchsorted(self.parents, self.parents, side) for side in ("left", "right"))
        return [np.delete(np.arange(a, z), b - a) for b, (a, z) in enumerate(zip(firsts, lasts, strict=True))]

    def count_pairs(self) -> int:
        """The number of pairs of a branch and a rival."""
        sizes = np.unique(self.parents, return_counts=True)[1]
        return int((sizes * (sizes - 1)).sum())

    def above(self) -> tuple[Nodes, Nodes]:
        """All pairs of a branch and one below it."""
        branch_to = {int(node): b for b, node in enumerate(self.nodes) if node != self.parents[b]}
        pairs = []
        for b, parent in enumerate(self.parents.tolist()):
            path = self.taxonomy.nodes_to(parent) if parent >= 0 else ()
            pairs += [(branch_to[int(node)], b) for node in path if int(node) in branch_to]
        upper, lower = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
        return upper, lower


def branch_outputs(branches: Branches, ends: Nodes) -> Outputs:
    """The outputs of documents that end at each of some nodes; every margin is 1.

    An output is a pair of branches of one node, one on the document's path and a rival: φ is the rival minus the former. The
    own output is that no rival wins, φ = 0.
    """
    # a pair is the same output for all documents whose path has that branch
    rivals = branches.rivals()
    lengths = np.asarray([len(others) for others in rivals])
    firsts = 1 + np.concatenate([[0], np.cumsum(lengths)])
    listed = [
        np.concatenate([[0], *(np.arange(firsts[taken], firsts[taken + 1]) for taken in branches.on_path_to(end))])
        for end in ends.tolist()
    ]
    outputs = np.concatenate(listed)
    units = np.column_stack([np.repeat(np.arange(len(branches)), lengths), np.concatenate(rivals)])
    return Outputs(
        offsets=np.concatenate([[0], np.cumsum([len(each) for each in listed])]).astype(np.int64),
        outputs=outputs.astype(np.int32),
        margins=(outputs > 0).astype(np.float64),
        unit_offsets=np.concatenate([[0, 0], 2 * np.arange(1, len(units) + 1)]).astype(np.int64),
        units=units.ravel().astype(np.int32),
        signs=np.tile([-1.0, 1.0], len(units)),
    )


@dataclass(slots=True)
class OrthogonalPenalty(SquaredNorm):
    """Ω, with M = K∘S and signs that maximize the dual.

    upper, lower, strengths: K by its pairs off the diagonal, the branches of each and its entry. signs: S of the pairs.
    """

    coupling: float
    upper: NDArray[np.int64]
    lower: NDArray[np.int64]
    strengths: Floats
    signs: Floats
    M: Floats
    inverse: Floats

    @classmethod
    def of(cls, branches: Branches, coupling: float) -> OrthogonalPenalty:
        """Couple every branch with those above it; all signs are 0."""
        upper, lower = branches.above()
        related = np.bincount(np.concatenate([upper, lower]), minlength=len(branches))
        strengths, M = coupling / np.sqrt(related[upper] * related[lower]), np.eye(len(branches))
        return cls(coupling, upper, lower, strengths, np.zeros(len(upper)), M, M.copy())

    def metric(self, signs: Floats) -> Floats:
        """K∘S, from the signs of the pairs."""
        M = np.eye(len(self.M))
        M[self.upper, self.lower] = M[self.lower, self.upper] = self.strengths * signs
        return M

    def products(self, W: Floats) -> Floats:
        """w_u·w_v of every pair (W: features × units)."""
        return np.asarray((W.T @ W)[self.upper, self.lower])

    def penalty(self, W: Floats) -> float:
        """Ω(W)."""
        return 0.5 * float(np.vdot(W, W)) + float(self.strengths @ np.abs(self.products(W)))

    def quadratic(self, W: Floats) -> float:
        """½ tr(Wᵀ (K∘S) W)."""
        return 0.5 * float(((W.T @ W) * self.M).sum())

    def matrix(self, n_units: int) -> Floats:
        """K∘S."""
        return self.M

    def improve_in_place(self, W: Floats) -> None:
        """Improve the signs; at the optimum Ω(W) = ½ tr(Wᵀ (K∘S) W)."""
        if not len(self.signs):
            return
        with threadpool_limits(1, "blas"):  # small products are faster without threads
            G = W @ self.M
            self.signs = self._better_signs(G.T @ G)
            self.M = self.metric(self.signs)
            self.inverse = np.asarray(np.linalg.inv(self.M), dtype=np.float64)
            W[:] = G @ self.inverse

    def _better_signs(self, Q: Floats) -> Floats:
        """Signs with a smaller ½ tr((K∘S)⁻¹ Q), or the same where these are optimal."""

        def objective(signs: Floats) -> tuple[float, Floats]:
            factor = cho_factor(self.metric(signs))
            solved = cho_solve(factor, Q)
            gradient = cho_solve(factor, solved.T)  # M⁻¹ Q M⁻¹
            return 0.5 * float(np.trace(solved)), -self.strengths * gradient[self.upper, self.lower]

        top = max(float(np.trace(Q)), np.finfo(np.float64).tiny)
        bounds, limits = [(-1.0, 1.0)] * len(self.signs), {"maxiter": SIGN_STEPS, "ftol": 0.0, "gtol": 1e-12 * top}
        return np.asarray(minimize(objective, self.signs, jac=True, method="L-BFGS-B", bounds=bounds, options=limits).x)


def average_gradients(problem: Problem, penalty: OrthogonalPenalty, settings: Settings) -> tuple[Floats, Certificate]:
    """Regularized dual averaging, as the paper has it: the best weights met (features × units), and their certificate.

    Every round averages a subgradient of the objective less σ/2 ‖W‖² with all before, ḡ, and goes to W = −ḡ / σ; σ = 1 −
    coupling is the strong convexity. The averages of the worst outputs and of the signs are feasible in the dual: our bound.
    """
    sigma, shape = 1 - penalty.coupling, (problem.rows.n_features, problem.n_units)
    W, mean, best = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    alphas, signs = np.zeros(len(problem.margins)), np.zeros(len(penalty.strengths))
    primal, dual = np.inf, -np.inf
    with stage("dual averaging", settings.max_iter) as step:
        for t in range(1, settings.max_iter + 1):
            losses, worst = measure(problem, W)
            value = penalty.penalty(W) + float(losses @ problem.costs)
            if value < primal:
                primal, best = value, W
            sign = np.sign(penalty.products(W))
            given = problem.alpha_offsets[:-1] + worst
            gradient = W @ penalty.metric(sign) - sigma * W - weight_sum(problem, given, problem.costs)
            mean += (gradient - mean) / t
            alphas *= 1 - 1 / t
            alphas[given] += problem.costs / t
            signs += (sign - signs) / t
            W = -mean / sigma
            step.advance()
            if t % BOUND_EVERY == 0 or t == settings.max_iter:
                dual = max(dual, bound(problem, penalty, alphas, signs))
                if Certificate(primal, dual, t).gap <= settings.tolerance:
                    break
    return best, Certificate(primal, dual, t)


def weight_sum(problem: Problem, given: NDArray[np.int64], values: Floats) -> Floats:
    """Σ α (φ_own − φ_a) xᵀ over some dual variables (features × units); the own output has φ = 0."""
    outputs = problem.outputs
    document = np.searchsorted(problem.alpha_offsets, given, side="right") - 1
    place = outputs.offsets[problem.labels[document]] + given - problem.alpha_offsets[document]
    output = outputs.outputs[place]
    lengths = np.diff(outputs.unit_offsets)[output]
    entries = np.repeat(outputs.unit_offsets[output] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    entries += np.arange(len(entries))
    data = -outputs.signs[entries] * np.repeat(values, lengths)
    shape = (len(problem), problem.n_units)
    R = csr_array((data, (np.repeat(document, lengths), outputs.units[entries])), shape=shape)
    return np.asarray((problem.rows.matrix().T @ R).toarray(), dtype=np.float64)


def bound(problem: Problem, penalty: OrthogonalPenalty, alphas: Floats, signs: Floats) -> float:
    """The dual objective of α and the signs."""
    given = np.flatnonzero(alphas)
    G = weight_sum(problem, given, alphas[given])
    half = 0.5 * float(np.sum((G.T @ G) * np.linalg.inv(penalty.metric(signs))))
    return float(alphas @ problem.margins) - half
