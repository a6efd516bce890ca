"""Orthogonal transfer: the weights of a branch are drawn to be orthogonal to those of the branches above it.

    min over W   ½ Σ_uv K_uv |w_u·w_v| + C Σ_i max(0, max over u, v of 1 − (w_u − w_v)·x_i)

u goes over the branches that document i takes on its way down, v over the other branches of the same node. K_uu is 1; K_uv is
coupling / √(r_u r_v) where one of u and v is above the other, and else 0; r_u is how many branches are above or below u. With a
coupling below 1 the problem is convex; with 0 it is one machine over all branches without any pull between levels.

Source: Zhou, Xiao & Wu 2011; the system OT of Gopal & Yang 2013, section 4.2. The paper asks of K that it stay positive
semidefinite when the signs off its diagonal are turned, which any coupling up to 1 makes sure of.
Deviations: `solver="exact"` climbs the dual over documents and the signs of w_u·w_v in turn, until the duality gap is small;
`solver="dual-averaging"` is the paper's method. Where documents stay at an inner node, staying is one more branch. Margins of
siblings are turned into shares by a softmax, so that paths can be compared. The bias is a constant feature.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from ramify.errors import InputError
from ramify.learners.branch_machines import BranchMachines
from ramify.learners.branches import find_branches, only_ways
from ramify.learners.joint.ascent import Ascent
from ramify.learners.joint.averaging import average_slopes
from ramify.learners.joint.branches import Branches, branch_answers
from ramify.learners.joint.orthogonal import Couplings, Orthogonal
from ramify.learners.joint.problem import Floats, Problem, pose, refuse_too_large, weights_of
from ramify.learners.joint.solving import settle
from ramify.learners.linear.problem import Certificate
from ramify.learners.linear.training import Setup, Trained, check_setup, is_number, weigh_classes
from ramify.learners.targets import Targets, require_one_label
from ramify.taxonomy import Taxonomy, expand_to_ancestors

COPIES = {"exact": 3, "dual-averaging": 5}  # of the weights, that a solver works on
MOST_COUPLING = {"exact": 0.9999, "dual-averaging": 0.99}
SOLVERS = tuple(COPIES)


class OrthogonalTransfer(BranchMachines):
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
    takes_several: ClassVar[bool] = False

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

    def _learn(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        taxonomy = targets.taxonomy
        taxonomy.require_tree("orthogonal transfer")
        self._check_parameters()
        require_one_label(targets, "ot", "system='td-svm'")
        setup = check_setup(self, self._loss())
        if self.C == "auto":
            best, self.C_scores_ = self._choose_cost(X, targets, sample_weight, setup)
            setup = replace(setup, C=best)
        alive = np.diff(csc_array(expand_to_ancestors(targets.own, taxonomy)).indptr) > 0
        ends = np.flatnonzero(np.diff(csc_array(targets.own).indptr))
        nodes, parents = find_branches(taxonomy, alive, np.isin(np.arange(len(taxonomy)), ends)).T
        branches = Branches(nodes, parents, taxonomy)
        self._take(self._train(X, targets.own[:, ends], ends, branches, sample_weight, setup), setup, targets)
        self._set_branches(nodes, parents, only_ways(alive, nodes, parents))

    def _train(
        self, X: csr_array, own: csr_array, ends: Any, branches: Branches, sample_weight: NDArray[np.float64], setup: Setup
    ) -> Trained:
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
        return Trained(weights_of(W, problem.rows, alone, np.arange(n, dtype=np.int64)), certificate)

    def _solve(self, problem: Problem, couplings: Couplings, setup: Setup) -> tuple[Floats, Certificate]:
        if self.solver == "dual-averaging":
            return average_slopes(problem, couplings, setup.settings)
        return settle(Ascent.start(problem, Orthogonal.start(couplings), setup.settings.seed), setup.settings)
