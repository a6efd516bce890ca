"""From documents and labels to weights: check parameters, set costs, and call the solver that suits the documents."""

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
from ramify.learners.linear.candidates import count_candidates
from ramify.learners.linear.dense_solver import solve_dense
from ramify.learners.linear.dual_solver import TrainedWeights, solve
from ramify.learners.linear.graph_problem import GraphProblem
from ramify.learners.linear.graph_solver import solve_graph
from ramify.learners.linear.problem import (
    LOSSES,
    Certificate,
    Costs,
    Dual,
    Problem,
    Settings,
    arrange_rows,
    pair_up,
    suits_dense_solver,
)
from ramify.learners.linear.taxonomy_ties import Forest, Structure, flat_units, matrix_of
from ramify.learners.linear.weights import Weights
from ramify.parallel import choose_executor, count_workers
from ramify.taxonomy import Taxonomy

DENSE_PRECISION = 1e-6  # fraction of the tolerance to which the dense solver solves small problems
DENSE_STEPS = 200  # steps of the dense solver at most
SMALL = 1 << 16  # documents × classes of a small problem
LEAST_COST, MOST_COST = 1e-12, 1e12


# ---- parameters ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setup:
    """The parameters that all linear learners share, checked.

    keep_dual: return dual variables, from which a solution for other costs can start. shards: directory for the weights of
    large models, written shard by shard.
    """

    C: float
    class_weight: Any
    settings: Settings
    bias: bool
    n_jobs: int | None
    keep_dual: bool = False
    shards: Path | None = None


def check_setup(learner: Any, loss: str, mode: str = "exact") -> Setup:
    """Check the parameters of a linear learner."""
    if not isinstance(loss, str) or loss not in LOSSES:
        raise InputError(f"loss is {loss!r}; give one of {', '.join(map(repr, LOSSES))}.{suggest(str(loss), LOSSES)}")
    check_limits(learner, "a relative duality gap")
    if mode not in ("exact", "fast"):
        raise InputError(f"mode is {mode!r}; give 'exact' or 'fast'.{suggest(str(mode), ('exact', 'fast'))}")
    settings = Settings(loss, float(learner.tol), int(learner.max_iter), seed_of(learner.random_state), mode == "fast")
    count_workers(learner.n_jobs)  # checks the number of threads
    return Setup(check_cost(learner.C), learner.class_weight, settings, bool(learner.fit_intercept), learner.n_jobs)


def check_limits(learner: Any, tolerance: str) -> None:
    """Check tol, max_iter and fit_intercept; `tolerance` describes tol."""
    if not is_number(learner.tol) or not 0 < learner.tol < 1:
        raise InputError(f"tol is {learner.tol!r}; give {tolerance} between 0 and 1, such as 1e-3.")
    if not is_whole(learner.max_iter) or not 1 <= learner.max_iter <= 2**31:
        raise InputError(f"max_iter is {learner.max_iter!r}; give a whole number from 1 to {2**31}.")
    if not isinstance(learner.fit_intercept, (bool, np.bool_)):
        raise InputError(f"fit_intercept is {learner.fit_intercept!r}; give true or false.")


def check_cost(C: Any) -> float:
    """A cost above zero; 1 for ``"auto"``, until it is selected."""
    if isinstance(C, str) and C == "auto":
        return 1.0
    if not is_number(C) or not LEAST_COST <= C <= MOST_COST:
        raise InputError(
            f"C is {C!r}; give a number above 0, such as 1 (from {LEAST_COST:g} to {MOST_COST:g}), "
            "or 'auto' to choose it by cross-validation."
        )
    return float(C)


def is_whole(value: Any) -> bool:
    """Whether a parameter is a whole number and not a bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a parameter is a number and not a bool."""
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
    """The cost of a unit of loss: C, times the class weight for positive documents, times the document's sample weight."""
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


# ---- training -----------------------------------------------------------------------------------------------------------


def train(
    X: csr_array, own: csr_array, ties: Forest | Structure, costs: Costs, setup: Setup, start: Any = None
) -> TrainedWeights:
    """Solve classes that are independent, or tied by a tree, a DAG or a graph.

    own: documents × classes. start: `start` of an earlier result for the same documents and classes, or dual variables.
    """
    if suits(X, own, setup):
        return _train_dense(X, own, ties, costs, setup, None if isinstance(start, Dual) else start)
    executor = choose_executor(setup.n_jobs)
    if isinstance(ties, Structure):
        return solve_graph(GraphProblem(arrange_rows(X, setup.bias), own.tocsc(), ties, costs, setup.settings), executor)
    if isinstance(start, TrainedWeights) and start.problem is not None and start.order is not None:
        order, rows = start.order, start.problem.rows  # of the same documents
    else:
        order = np.argsort(first_class_of(own), kind="stable")  # documents of neighbours in the tree then share cached features
        rows = arrange_rows(X[order], setup.bias)
    costs = Costs(costs.positive, costs.negative, costs.documents[order])
    problem = Problem(rows, csc_array(own[order]), ties, costs, setup.settings)
    if isinstance(start, Dual):
        start = start.numbered(np.argsort(order))
    solution = solve(problem, executor, start, setup.keep_dual, setup.shards)
    trained = replace(solution, signatures=None, pairs=None)  # those of the solution are in the order of its rows
    if setup.keep_dual and solution.pairs is not None:
        start = replace(solution, weights=None, problem=problem, order=order)
        trained = replace(trained, start=start, dual=Dual.of(solution.pairs, order))
    if solution.signatures is None or not setup.settings.fast:
        return trained
    n_candidates = count_candidates(rows, solution.signatures, csr_array(problem.own), executor)
    if not isinstance(solution.weights, Weights):
        return replace(trained, n_candidates=n_candidates)  # shards contain their signatures
    return replace(trained, signatures=solution.signatures.in_original_order(rows.place), n_candidates=n_candidates)


def suits(X: csr_array, own: csr_array, setup: Setup) -> bool:
    """Whether documents have few, dense features, so that the dense solver is the better one."""
    return suits_dense_solver(X.shape[0], X.shape[1] + setup.bias, X.nnz + setup.bias * X.shape[0], own.shape[1])


def _train_dense(
    X: csr_array, own: csr_array, ties: Forest | Structure, costs: Costs, setup: Setup, start: Any
) -> TrainedWeights:
    structure = matrix_of(ties) if isinstance(ties, Forest) else ties
    dense = X.toarray().astype(np.float64)
    if setup.bias:
        dense = np.column_stack([dense, np.ones(len(dense))])
    settings = setup.settings
    # second-order steps reach far below the tolerance at little cost; the result then does not depend on the document order
    tolerance = settings.tolerance * (DENSE_PRECISION if own.shape[0] * own.shape[1] <= SMALL else 1)
    found = solve_dense(
        dense, own.tocsc(), structure.M, structure.class_units, costs, settings.loss, tolerance,
        min(settings.max_iter, DENSE_STEPS), start, choose_executor(setup.n_jobs),
    )  # fmt: skip
    certificate = Certificate(found.primal, found.dual, found.iterations)
    return TrainedWeights(tied_rows(found.W, ties, setup.bias), certificate, found.W)


def tied_rows(W: NDArray[Any], ties: Forest | Structure, bias: bool) -> Weights:
    """Weights of all units (the bias last), stored as differences from their parents."""
    if isinstance(ties, Forest):
        deltas, parent, class_units = ties.to_increments() @ W, ties.parent, np.flatnonzero(ties.class_of >= 0)
        joins = None if ties.is_tree else ties.joins
    else:
        deltas, parent, class_units, joins = W, np.full(len(W), -1, dtype=np.int32), ties.class_units, None
    sparse = csr_array((deltas[:, :-1] if bias else deltas).astype(np.float32))
    own_bias = deltas[:, -1].copy() if bias else np.zeros(len(W))
    return Weights(sparse, own_bias, parent, class_units.astype(np.int64), joins)


def train_subsets(
    X: csr_array, positive: csc_array, used: csc_array, group: NDArray[np.int64], costs: Costs, setup: Setup
) -> TrainedWeights:
    """Solve independent classes, each on its own training documents.

    positive, used: documents × classes. group: of every class; classes of a group are adjacent and use the same documents.
    """
    if suits(X, csr_array(positive), setup):
        return _train_dense_groups(X, csr_array(positive), used, group, costs, setup)
    negative = csc_array(used.astype(np.int8) - positive.astype(np.int8))
    negative.eliminate_zeros()
    pairs = pair_up(positive, negative, costs.positive, costs.negative)
    own = csc_array((X.shape[0], len(pairs)), dtype=bool)
    problem = Problem(arrange_rows(X, setup.bias), own, flat_units(np.arange(len(pairs))), costs, setup.settings)
    return solve(problem, choose_executor(setup.n_jobs), pairs)


def _train_dense_groups(
    X: csr_array, own: csr_array, used: csc_array, group: NDArray[np.int64], costs: Costs, setup: Setup
) -> TrainedWeights:
    parts, primal, dual, rounds = [], 0.0, 0.0, 0
    for classes in np.split(np.arange(len(group)), np.flatnonzero(np.diff(group)) + 1):
        documents = used.indices[used.indptr[classes[0]] : used.indptr[classes[0] + 1]]
        some = Costs(costs.positive[classes], costs.negative[classes], costs.documents[documents])
        trained = train(X[documents], own[documents][:, classes], flat_units(classes), some, setup)
        found = trained.certificate
        parts.append(trained.weights)
        primal, dual, rounds = primal + found.primal, dual + found.dual, max(rounds, found.rounds)
    deltas, bias = csr_array(vstack([part.deltas for part in parts], format="csr")), [part.bias for part in parts]
    return TrainedWeights(Weights.flat(deltas, np.concatenate(bias)), Certificate(primal, dual, rounds))


def first_class_of(own: csr_array) -> NDArray[np.int64]:
    """The first class of every document; for those without labels, the number of classes."""
    first = np.full(own.shape[0], own.shape[1], dtype=np.int64)
    labelled = np.diff(own.indptr) > 0
    first[labelled] = own.indices[own.indptr[:-1][labelled]]
    return first


def warn_unless_converged(certificate: Certificate, setup: Setup) -> None:
    """Warn where training stopped above the tolerance, and say what to do."""
    if certificate.gap > setup.settings.tolerance and not setup.settings.fast:
        warnings.warn(
            f"training stopped after {certificate.rounds} rounds at a relative duality gap of {certificate.gap:.2g}, "
            f"above tol={setup.settings.tolerance:g}; raise max_iter, lower C, or accept the gap by raising tol.",
            ConvergenceWarning, stacklevel=4,
        )  # fmt: skip
