"""From documents and labels to weights: which solver, which costs, and what is certain of the result."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, vstack
from sklearn.exceptions import ConvergenceWarning

from ramify.errors import InputError, suggest
from ramify.learners.linear.candidates import Signatures, count_nearest
from ramify.learners.linear.dense_solver import solve_dense, suits_dense_solver
from ramify.learners.linear.dual_solver import solve, solve_given
from ramify.learners.linear.graph_problem import GraphProblem
from ramify.learners.linear.graph_solver import solve_graph
from ramify.learners.linear.problem import LOSSES, Certificate, Costs, Pairs, Problem, Settings, arrange_rows
from ramify.learners.linear.taxonomy_ties import Forest, Structure, flat_units, matrix_of
from ramify.learners.linear.top_k import score_near
from ramify.learners.linear.warm_start import Dual
from ramify.learners.linear.weights import Weights
from ramify.parallel import choose_executor, count_workers
from ramify.taxonomy import Taxonomy

BEYOND = 1e-6  # of the tolerance: how close second-order steps come
MOST_STEPS = 200
SMALL = 1 << 16  # documents × classes up to which they do
LEAST_COST, MOST_COST = 1e-12, 1e12


@dataclass(frozen=True, slots=True)
class Setup:
    """The parameters that all linear learners share, checked.

    keep_dual: whether another result, with other costs, is going to start from this one. shards: where large models are
    written shard by shard, if they are.
    """

    C: float
    loss: str
    class_weight: Any
    settings: Settings
    bias: bool
    n_jobs: int | None
    keep_dual: bool = False
    shards: Path | None = None


def check_setup(learner: Any, loss: str) -> Setup:
    """Refuse parameters that mean nothing."""
    if not isinstance(loss, str) or loss not in LOSSES:
        raise InputError(f"loss is {loss!r}; give one of {', '.join(map(repr, LOSSES))}.{suggest(str(loss), LOSSES)}")
    check_limits(learner, "a relative duality gap")
    mode = getattr(learner, "mode", "exact")
    if mode not in ("exact", "fast"):
        raise InputError(f"mode is {mode!r}; give 'exact' or 'fast'.")
    seed = seed_of(learner.random_state)
    settings = Settings(loss, float(learner.tol), int(learner.max_iter), seed, mode == "fast")
    count_workers(learner.n_jobs)  # refuses what is no number of threads
    return Setup(check_cost(learner.C), loss, learner.class_weight, settings, bool(learner.fit_intercept), learner.n_jobs)


def check_limits(learner: Any, tolerance: str) -> None:
    """Refuse a tolerance, a number of rounds or a bias that mean nothing; `tolerance` says what it is one of."""
    if not is_number(learner.tol) or not 0 < learner.tol < 1:
        raise InputError(f"tol is {learner.tol!r}; give {tolerance} between 0 and 1, such as 1e-3.")
    if not is_whole(learner.max_iter) or not 1 <= learner.max_iter <= 2**31:
        raise InputError(f"max_iter is {learner.max_iter!r}; give a whole number from 1 to {2**31}.")
    if not isinstance(learner.fit_intercept, (bool, np.bool_)):
        raise InputError(f"fit_intercept is {learner.fit_intercept!r}; give true or false.")


def check_cost(C: Any) -> float:
    """A cost above zero; ``"auto"`` stands for one that is still to be chosen."""
    if isinstance(C, str) and C == "auto":
        return 1.0
    if not is_number(C) or not LEAST_COST <= C <= MOST_COST:
        raise InputError(
            f"C is {C!r}; give a number above 0, such as 1 (from {LEAST_COST:g} to {MOST_COST:g}), "
            "or 'auto' to choose it by cross-validation."
        )
    return float(C)


def is_whole(value: Any) -> bool:
    """Whether a parameter is a whole number; True and False are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a parameter is a number; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def seed_of(random_state: Any) -> int:
    """A seed in any of scikit-learn's forms, as a number; None is 0."""
    if random_state is None:
        return 0
    if is_whole(random_state) and 0 <= random_state < 2**32:
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    raise InputError(f"random_state is {random_state!r}; give a whole number from 0 to {2**32 - 1}.")


def weigh_classes(own: csc_array, setup: Setup, taxonomy: Taxonomy, nodes: NDArray[np.int64], documents: Any) -> Costs:
    """What a unit of loss costs: C, times a class's weight for its own documents, times a document's weight."""
    n_classes = own.shape[1]
    factor = np.ones(n_classes)
    if isinstance(setup.class_weight, str) and setup.class_weight == "balanced":
        counts = np.maximum(np.asarray(own.astype(np.float64).T @ documents), 1e-12)
        factor = documents.sum() / (n_classes * counts)
    elif isinstance(setup.class_weight, Mapping):
        places = {int(node): k for k, node in enumerate(nodes)}
        for name, weight in setup.class_weight.items():
            node = taxonomy.index(str(name))
            if not is_number(weight) or not 0 <= weight <= MOST_COST:
                raise InputError(f"class_weight of {name!r} is {weight!r}; give a number from 0 to {MOST_COST:g}.")
            if node in places:
                factor[places[node]] = weight
    elif setup.class_weight is not None:
        raise InputError(f"class_weight is {setup.class_weight!r}; give None, 'balanced' or a weight by class name.")
    costs = np.full(n_classes, setup.C, dtype=np.float32)
    return Costs((costs * factor).astype(np.float32), costs, np.asarray(documents, dtype=np.float32))


@dataclass(frozen=True, slots=True)
class TrainedWeights:
    """Weights, what is certain of them, and what a solution for other costs can start from.

    dual: the dual variables, where they were asked for. figures: objective and bound of every class, where classes stand
    alone and are solved one by one. near: how to find the classes near a document, where these were learnt
    on near documents alone; n_nearest: how many to score.
    """

    weights: Any  # Weights, or ShardedWeights where the setup says so
    certificate: Certificate
    start: Any = None
    dual: Dual | None = None
    figures: NDArray[np.float64] | None = None
    near: Signatures | None = None
    n_nearest: int = 0

    def score(self, X: csr_array) -> NDArray[np.float32]:
        """Scores of documents, documents × classes; classes learnt on near documents alone only where they are near."""
        return self.weights.score(X) if self.near is None else score_near(X, self.weights, self.near, self.n_nearest)


def train(
    X: csr_array, own: csr_array, ties: Forest | Structure, costs: Costs, setup: Setup, start: Any = None
) -> TrainedWeights:
    """Solve classes that stand alone, or are tied by a tree, a DAG or a graph, by the method that suits the documents.

    own: documents × classes. start: what an earlier result for the same documents and classes gave; or dual variables.
    """
    if suits(X, own, setup):
        return _train_in_feature_space(X, own, ties, costs, setup, None if isinstance(start, Dual) else start)
    if isinstance(ties, Structure):
        return _train_on_graph(X, own, ties, costs, setup)
    order = _by_class(own)
    rows = arrange_rows(X[order], setup.bias)
    costs = Costs(costs.positive, costs.negative, costs.documents[order])
    problem, executor = Problem(rows, csc_array(own[order]), ties, costs, setup.settings), choose_executor(setup.n_jobs)
    if isinstance(start, Dual):
        start = start.numbered(np.argsort(order))
    solution = solve(problem, executor, start, setup.keep_dual, setup.shards)
    dual = None if solution.pairs is None else Dual.of(solution.pairs, order)
    trained = TrainedWeights(
        solution.weights, solution.certificate, solution if setup.keep_dual else None, dual, solution.figures
    )
    if solution.near is None or not setup.settings.fast:
        return trained
    n_nearest = count_nearest(rows, solution.near, csr_array(problem.own), executor)
    if not isinstance(solution.weights, Weights):
        return replace(trained, n_nearest=n_nearest)  # shards have their signatures with them
    return replace(trained, near=solution.near.as_they_came(rows.place), n_nearest=n_nearest)


def suits(X: csr_array, own: csr_array, setup: Setup) -> bool:
    """Whether documents are few features wide and dense, so that second-order steps are the better method."""
    return suits_dense_solver(X.shape[0], X.shape[1] + setup.bias, X.nnz + setup.bias * X.shape[0], own.shape[1])


def _train_in_feature_space(
    X: csr_array, own: csr_array, ties: Forest | Structure, costs: Costs, setup: Setup, start: Any
) -> TrainedWeights:
    structure = matrix_of(ties) if isinstance(ties, Forest) else ties
    dense = X.toarray().astype(np.float64)
    if setup.bias:
        dense = np.column_stack([dense, np.ones(len(dense))])
    settings = setup.settings
    # second-order steps go far beyond the tolerance at little cost, and so do not depend on the order of documents
    tolerance = settings.tolerance * (BEYOND if own.shape[0] * own.shape[1] <= SMALL else 1)
    steps = min(settings.max_iter, MOST_STEPS)
    found = solve_dense(
        dense, own.tocsc(), structure.M, structure.class_units, costs, settings.loss, tolerance, steps, start,
        choose_executor(setup.n_jobs),
    )  # fmt: skip
    certificate = Certificate(found.primal, found.dual, found.iterations)
    return TrainedWeights(tied_rows(found.W, ties, setup.bias), certificate, found.W)


def tied_rows(W: NDArray[Any], ties: Forest | Structure, bias: bool) -> Weights:
    """Weights of all units (the bias last) as changes from the unit above, where there is one."""
    deltas = W.astype(np.float64, copy=True)
    parent = np.full(len(W), -1, dtype=np.int32)
    class_units = np.flatnonzero(ties.class_of >= 0) if isinstance(ties, Forest) else ties.class_units
    if isinstance(ties, Forest):
        parent = ties.parent
        deltas[parent >= 0] -= W[parent[parent >= 0]]
    features = deltas[:, :-1] if bias else deltas
    sparse = csr_array(features.astype(np.float32))
    return Weights(sparse, deltas[:, -1].copy() if bias else np.zeros(len(W)), parent, class_units.astype(np.int64))


def _train_on_graph(X: csr_array, own: csr_array, ties: Structure, costs: Costs, setup: Setup) -> TrainedWeights:
    problem = GraphProblem(arrange_rows(X, setup.bias), own.tocsc(), ties, costs, setup.settings)
    found = solve_graph(problem, choose_executor(setup.n_jobs))
    return TrainedWeights(found.weights, found.certificate)


def train_pairs(X: csr_array, pairs: Pairs, costs: Costs, setup: Setup) -> TrainedWeights:
    """Solve classes that stand alone, each on pairs of its own choice."""
    rows, executor = arrange_rows(X, setup.bias), choose_executor(setup.n_jobs)
    own = csc_array((X.shape[0], len(pairs)), dtype=bool)
    problem = Problem(rows, own, flat_units(np.arange(len(pairs))), costs, setup.settings)
    solution = solve_given(problem, executor, pairs)
    return TrainedWeights(solution.weights, solution.certificate, figures=solution.figures)


def train_apart(
    X: csr_array, own: csr_array, asked: csc_array, group: NDArray[np.int64], costs: Costs, setup: Setup
) -> TrainedWeights:
    """Solve groups of classes that stand alone, each on the documents that it is asked about (asked: documents × classes)."""
    parts, primal, dual, rounds = [], 0.0, 0.0, 0
    for here in np.split(np.arange(len(group)), np.flatnonzero(np.diff(group)) + 1):
        documents = asked.indices[asked.indptr[here[0]] : asked.indptr[here[0] + 1]]
        some = Costs(costs.positive[here], costs.negative[here], costs.documents[documents])
        trained = train(X[documents], own[documents][:, here], flat_units(here), some, setup)
        found = trained.certificate
        parts.append(trained.weights)
        primal, dual, rounds = primal + found.primal, dual + found.dual, max(rounds, found.rounds)
    deltas = csr_array(vstack([part.deltas for part in parts], format="csr"))
    n = len(group)
    bias, units = np.concatenate([part.bias for part in parts]), np.arange(n, dtype=np.int64)
    return TrainedWeights(Weights(deltas, bias, np.full(n, -1, dtype=np.int32), units), Certificate(primal, dual, rounds))


def _by_class(own: csr_array) -> NDArray[np.int64]:
    """Documents of a class side by side, neighbours in the tree near each other: their rare features then share caches."""
    first = np.full(own.shape[0], own.shape[1], dtype=np.int64)
    labelled = np.diff(own.indptr) > 0
    first[labelled] = own.indices[own.indptr[:-1][labelled]]
    return np.argsort(first, kind="stable")


def warn_unless_converged(certificate: Certificate, setup: Setup) -> None:
    """Say what to do when training ended before the gap was reached."""
    if certificate.gap > setup.settings.tolerance and not setup.settings.fast:
        warnings.warn(
            f"training stopped after {certificate.rounds} rounds at a relative duality gap of {certificate.gap:.2g}, "
            f"above tol={setup.settings.tolerance:g}; raise max_iter, lower C, or accept the gap by raising tol.",
            ConvergenceWarning,
            stacklevel=4,
        )
