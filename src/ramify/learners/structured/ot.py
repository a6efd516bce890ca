"""Branches against their siblings: what competes for a document is, at every node on its way, each branch not taken.

An answer is a pair of branches of one node, the one that a document takes and another: φ is the other minus the taken one. A
document's own answer is that nothing is wrong, φ = 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.sparse import csc_array, csr_array
from threadpoolctl import threadpool_limits

from ramify.errors import InputError
from ramify.learners.linear.problem import Certificate, Settings
from ramify.learners.linear.top_down import TopDownLinear
from ramify.learners.linear.training import Setup, TrainedWeights, check_setup, is_number, weigh_classes
from ramify.learners.structured.dual_ascent import Ascent, measure
from ramify.learners.structured.problem import Floats, Outputs, Problem, pose, refuse_too_large, weights_of
from ramify.learners.structured.second_order import settle
from ramify.learners.targets import Targets, require_one_label
from ramify.learners.top_down_base import find_branches, only_ways
from ramify.parallel import stage
from ramify.taxonomy import Taxonomy, expand_to_ancestors

Nodes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of all nodes that have more than one, those of a node side by side.

    nodes, parents: the node of every branch, and the node at which it is asked about (-1 above the roots); both are the same
    where it says that a document stays.
    """

    nodes: Nodes
    parents: Nodes
    taxonomy: Taxonomy

    def __len__(self) -> int:
        return len(self.nodes)

    def taken_to(self, end: int) -> Nodes:
        """The branches that a document takes on its way to the node where it ends."""
        stays = self.nodes == self.parents
        on_path = np.isin(self.nodes, self.taxonomy.nodes_to(end))
        return np.flatnonzero(np.where(stays, self.nodes == end, on_path))

    def rivals_of(self, branch: int) -> Nodes:
        """The other branches of the same node."""
        first, last = np.searchsorted(self.parents, [self.parents[branch], self.parents[branch] + 1])
        return np.delete(np.arange(first, last), branch - first)

    def count_pairs(self) -> int:
        """How many pairs of a branch and a rival there are."""
        sizes = np.unique(self.parents, return_counts=True)[1]
        return int((sizes * (sizes - 1)).sum())

    def above(self) -> tuple[Nodes, Nodes]:
        """All pairs of a branch and one on the way from its node down."""
        branch_to = {int(node): b for b, node in enumerate(self.nodes) if node != self.parents[b]}
        pairs = []
        for b, parent in enumerate(self.parents.tolist()):
            ways = self.taxonomy.nodes_to(parent) if parent >= 0 else ()
            pairs += [(branch_to[int(node)], b) for node in ways if int(node) in branch_to]
        upper, lower = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
        return upper, lower


def branch_answers(branches: Branches, ends: Nodes) -> Outputs:
    """The answers for documents that end at each of some nodes; every margin is 1."""
    # the pair of a branch and a rival is the same answer for all who take that branch
    rivals = [branches.rivals_of(branch) for branch in range(len(branches))]
    lengths = np.asarray([len(others) for others in rivals])
    firsts = 1 + np.concatenate([[0], np.cumsum(lengths)])
    listed = [
        np.concatenate([[0], *(np.arange(firsts[taken], firsts[taken + 1]) for taken in branches.taken_to(end))])
        for end in ends.tolist()
    ]
    answers = np.concatenate(listed)
    units = np.column_stack([np.repeat(np.arange(len(branches)), lengths), np.concatenate(rivals)])
    return Outputs(
        offsets=np.concatenate([[0], np.cumsum([len(each) for each in listed])]).astype(np.int64),
        answers=answers.astype(np.int32),
        margins=(answers > 0).astype(np.float64),
        unit_offsets=np.concatenate([[0, 0], 2 * np.arange(1, len(units) + 1)]).astype(np.int64),
        units=units.ravel().astype(np.int32),
        signs=np.tile([-1.0, 1.0], len(units)),
    )


# --------------------------------------------------------------------------------------------------------------
# Branches that are drawn to be orthogonal to those above them, and two ways to learn them.
#
#     Ω(W) = ½ Σ_uv K_uv |w_u·w_v|,    K_uu = 1,    K_uv = coupling / √(r_u r_v) where u is above v or below it, else 0
#
# r_u is how many branches are above or below u. Ω is convex if K with the signs off its diagonal turned has no negative
# eigenvalue; its least one is 1 − coupling or more, so any coupling below 1 serves. |t| is the largest s t with −1 ≤ s ≤ 1, so
#
#     min over W of Ω(W) + losses  =  max over S of min over W of ½ tr(Wᵀ (K∘S) W) + losses,    S_uu = 1, −1 ≤ S_uv ≤ 1
#
# and with the dual of the losses a maximum over α and S together of a concave function: whatever α and S are, it is a bound.


TURNS = 20  # of the signs between two rounds, at most


@dataclass(frozen=True, slots=True)
class Couplings:
    """K by its pairs: the branches above and below, and how strongly each pair is coupled."""

    n_units: int
    coupling: float
    upper: NDArray[np.int64]
    lower: NDArray[np.int64]
    strengths: Floats

    @classmethod
    def of(cls, branches: Branches, coupling: float) -> Couplings:
        """Couple every branch with those above it."""
        upper, lower = branches.above()
        related = np.bincount(np.concatenate([upper, lower]), minlength=len(branches))
        strengths = coupling / np.sqrt(related[upper] * related[lower])
        return cls(len(branches), coupling, upper, lower, strengths)

    def metric(self, signs: Floats) -> Floats:
        """K∘S, from the signs of the pairs."""
        M = np.eye(self.n_units)
        M[self.upper, self.lower] = M[self.lower, self.upper] = self.strengths * signs
        return M

    def products(self, W: Floats) -> Floats:
        """w_u·w_v of every pair (W: features × units)."""
        return np.asarray((W.T @ W)[self.upper, self.lower])

    def penalty(self, W: Floats) -> float:
        """Ω(W)."""
        return 0.5 * float(np.vdot(W, W)) + float(self.strengths @ np.abs(self.products(W)))

    def better_signs(self, Q: Floats, signs: Floats) -> Floats:
        """Signs with less ½ tr((K∘S)⁻¹ Q) than some, or the same where these are the best."""
        if not len(signs):
            return signs

        def height(signs: Floats) -> tuple[float, Floats]:
            factor = cho_factor(self.metric(signs))
            solved = cho_solve(factor, Q)
            slope = cho_solve(factor, solved.T)  # M⁻¹ Q M⁻¹
            return 0.5 * float(np.trace(solved)), -self.strengths * slope[self.upper, self.lower]

        top = max(float(np.trace(Q)), np.finfo(np.float64).tiny)
        bounds, limits = [(-1.0, 1.0)] * len(signs), {"maxiter": TURNS, "ftol": 0.0, "gtol": 1e-12 * top}
        return np.asarray(minimize(height, signs, jac=True, method="L-BFGS-B", bounds=bounds, options=limits).x)


@dataclass(slots=True)
class Orthogonal:
    """Ω as a metric: K∘S with signs that follow the shares."""

    couplings: Couplings
    signs: Floats
    M: Floats
    inverse: Floats

    @classmethod
    def start(cls, couplings: Couplings) -> Orthogonal:
        """No pair has a sign yet."""
        M = np.eye(couplings.n_units)
        return cls(couplings, np.zeros(len(couplings.strengths)), M, M.copy())

    def penalty(self, W: Floats) -> float:
        """Ω(W)."""
        return self.couplings.penalty(W)

    def form(self, W: Floats) -> float:
        """½ tr(Wᵀ (K∘S) W)."""
        return 0.5 * float(((W.T @ W) * self.M).sum())

    def matrix(self, n_units: int) -> Floats:
        """K∘S."""
        return self.M

    def turn_in_place(self, W: Floats) -> None:
        """Better signs for the shares that W belongs to; with the best ones Ω(W) is just ½ tr(Wᵀ (K∘S) W)."""
        if not len(self.signs):
            return
        with threadpool_limits(1, "blas"):  # many small products: threads would wait for one another longer than they work
            G = W @ self.M
            self.signs = self.couplings.better_signs(G.T @ G, self.signs)
            self.M = self.couplings.metric(self.signs)
            self.inverse = np.asarray(np.linalg.inv(self.M), dtype=np.float64)
            W[:] = G @ self.inverse


# --------------------------------------------------------------------------------------------------------------
# Regularized dual averaging, as Zhou, Xiao & Wu 2011 publish it for orthogonal transfer.
#
# Every round takes a subgradient of J(W) − σ/2 ‖W‖² at W, averages it with all before, ḡ, and goes to W = −ḡ / σ, where σ = 1 −
# coupling is by how much J is strongly convex at least. The best W met is the result; the distance falls like ln t / t.
#
# The rounds also average which answer was the worst for each document, and the signs of w_u·w_v: shares and signs of the dual,
# whose value is a bound. That certificate is ours.


LOOKS = 25  # rounds between two looks at the bound


def average_slopes(problem: Problem, couplings: Couplings, settings: Settings) -> tuple[Floats, Certificate]:
    """The best weights met (features × units), and what is certain of them."""
    sigma, shape = 1 - couplings.coupling, (problem.rows.n_features, problem.n_units)
    W, mean, best = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    shares, signs = np.zeros(len(problem.margins)), np.zeros(len(couplings.strengths))
    primal, dual = np.inf, -np.inf
    with stage("dual averaging", settings.max_iter) as step:
        for t in range(1, settings.max_iter + 1):
            losses, worst = measure(problem, W)
            value = couplings.penalty(W) + float(losses @ problem.costs)
            if value < primal:
                primal, best = value, W
            sign = np.sign(couplings.products(W))
            given = problem.alpha_offsets[:-1] + worst
            slope = W @ couplings.metric(sign) - sigma * W - push(problem, given, problem.costs)
            mean += (slope - mean) / t
            shares *= 1 - 1 / t
            shares[given] += problem.costs / t
            signs += (sign - signs) / t
            W = -mean / sigma
            step.advance()
            if t % LOOKS == 0 or t == settings.max_iter:
                dual = max(dual, bound(problem, couplings, shares, signs))
                if Certificate(primal, dual, t).gap <= settings.tolerance:
                    break
    return best, Certificate(primal, dual, t)


def push(problem: Problem, given: NDArray[np.int64], amounts: Floats) -> Floats:
    """Σ amount (φ_own − φ_a) xᵀ over some shares (features × units); one's own answer has φ = 0."""
    answers = problem.answers
    document = np.searchsorted(problem.alpha_offsets, given, side="right") - 1
    place = answers.offsets[problem.labels[document]] + given - problem.alpha_offsets[document]
    answer = answers.answers[place]
    lengths = np.diff(answers.unit_offsets)[answer]
    entries = np.repeat(answers.unit_offsets[answer] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    entries += np.arange(len(entries))
    values = -answers.signs[entries] * np.repeat(amounts, lengths)
    shape = (len(problem), problem.n_units)
    R = csr_array((values, (np.repeat(document, lengths), answers.units[entries])), shape=shape)
    return np.asarray((problem.rows.matrix().T @ R).toarray(), dtype=np.float64)


def bound(problem: Problem, couplings: Couplings, shares: Floats, signs: Floats) -> float:
    """The dual of shares and signs."""
    given = np.flatnonzero(shares)
    G = push(problem, given, shares[given])
    half = 0.5 * float(np.sum((G.T @ G) * np.linalg.inv(couplings.metric(signs))))
    return float(shares @ problem.margins) - half


# --------------------------------------------------------------------------------------------------------------
# Orthogonal transfer: the weights of a branch are drawn to be orthogonal to those of the branches above it.
#
#     min over W   ½ Σ_uv K_uv |w_u·w_v| + C Σ_i max(0, max over u, v of 1 − (w_u − w_v)·x_i)
#
# u goes over the branches that document i takes on its way down, v over the other branches of the same node. K_uu is 1; K_uv is
# coupling / √(r_u r_v) where one of u and v is above the other, and else 0; r_u is how many branches are above or below u.
# With a
# coupling below 1 the problem is convex; with 0 it is one machine over all branches without any pull between levels.
#
# Source: Zhou, Xiao & Wu 2011; the system OT of Gopal & Yang 2013, section 4.2. The paper asks of K that it stay positive
# semidefinite when the signs off its diagonal are turned, which any coupling up to 1 makes sure of.
# Deviations: `solver="exact"` climbs the dual over documents and the signs of w_u·w_v in turn, until the duality gap is small;
# `solver="dual-averaging"` is the paper's method. Where documents stay at an inner node, staying is one more branch. Margins of
# siblings are turned into shares by a softmax, so that paths can be compared. The bias is a constant feature.


COPIES = {"exact": 3, "dual-averaging": 5}  # of the weights, that a solver works on
MOST_COUPLING = {"exact": 0.9999, "dual-averaging": 0.99}
SOLVERS = tuple(COPIES)


class OrthogonalTransfer(TopDownLinear):
    """Branches drawn to be orthogonal to those above them (system ``ot``); a document has one label.

    coupling: how strongly, from 0 to 0.9999, or to 0.99 with dual averaging.
    solver: ``"exact"`` until the relative duality gap is within `tol`, or ``"dual-averaging"``, as published.
    C: what a unit of loss costs, or ``"auto"`` to choose it by cross-validation. class_weight: None, ``"balanced"``, or a
    weight by class name. max_iter: rounds after which training ends with a warning. random_state: the order in which
    documents are visited. n_jobs: threads for scoring; learning takes one.

    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> fitted = OrthogonalTransfer(taxonomy).fit([[1, 0, 0], [1, 1, 0], [0, 0, 1]], ["a/x", "a/y", "b"])
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "orthogonal-transfer"
    supports_multi_label: ClassVar[bool] = False

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        C: float | str = 1.0,
        coupling: float = 0.9,
        solver: str = "exact",
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.taxonomy = taxonomy
        self.C = C
        self.coupling = coupling
        self.solver = solver
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _loss(self) -> str:
        return "hinge"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.solver not in SOLVERS:
            raise InputError(f"solver is {self.solver!r}; give {' or '.join(map(repr, SOLVERS))}.")
        most = MOST_COUPLING[self.solver]
        if not is_number(self.coupling) or not 0 <= self.coupling <= most:
            raise InputError(
                f"coupling is {self.coupling!r}; with solver={self.solver!r} give a number from 0 to {most}: near 1 the "
                "problem is no longer strongly convex, and averaging takes steps of up to 1 / (1 − coupling)."
            )

    def _fit(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        taxonomy = targets.taxonomy
        taxonomy.require_tree("orthogonal transfer")
        self._check_parameters()
        require_one_label(targets, "ot", "system='td-svm'")
        setup = check_setup(self, self._loss())
        if self.C == "auto":
            best, self.C_scores_ = self._cross_validate_C(X, targets, sample_weight, setup)
            setup = replace(setup, C=best)
        alive = np.diff(csc_array(expand_to_ancestors(targets.own, taxonomy)).indptr) > 0
        ends = np.flatnonzero(np.diff(csc_array(targets.own).indptr))
        nodes, parents = find_branches(taxonomy, alive, np.isin(np.arange(len(taxonomy)), ends)).T
        branches = Branches(nodes, parents, taxonomy)
        self._store(self._train(X, targets.own[:, ends], ends, branches, sample_weight, setup), setup, targets)
        self._set_branches(nodes, parents, only_ways(alive, nodes, parents))

    def _train(
        self, X: csr_array, own: csr_array, ends: Any, branches: Branches, sample_weight: NDArray[np.float64], setup: Setup
    ) -> TrainedWeights:
        held, other, n_copies = (X.shape[1] + 1, len(branches)), "system='td-svm'", COPIES[self.solver]
        refuse_too_large(*held, branches.count_pairs(), "ot", other, n_copies)  # before all pairs are listed
        answers = branch_answers(branches, ends)
        refuse_too_large(*held, int(np.diff(answers.offsets)[own.indices].sum()), "ot", other, n_copies)
        costs = weigh_classes(own.tocsc(), setup, branches.taxonomy, ends, sample_weight)
        problem = pose(X, own, answers, len(branches), costs, setup.bias)
        couplings = Couplings.of(branches, float(self.coupling))
        W, certificate = self._solve(problem, couplings, setup)
        n = len(branches)
        alone = np.full(n, -1, dtype=np.int32)
        return TrainedWeights(weights_of(W, problem.rows, alone, np.arange(n, dtype=np.int64)), certificate)

    def _solve(self, problem: Problem, couplings: Couplings, setup: Setup) -> tuple[Floats, Certificate]:
        if self.solver == "dual-averaging":
            return average_slopes(problem, couplings, setup.settings)
        return settle(Ascent.start(problem, Orthogonal.start(couplings), setup.settings.seed), setup.settings)
