"""Random DAGs and label graphs with documents, for the solver of graphs and its slow twin."""

import numpy as np
import pytest
from oracles import recursive_regularization as oracle
from scipy.sparse import csc_array, csr_array

from ramify.learners.linear import graph_solver as graph_solver
from ramify.learners.linear.graph_problem import GraphProblem
from ramify.learners.linear.problem import Costs, Settings, arrange_rows
from ramify.parallel import SerialExecutor
from ramify.taxonomy import LabelGraph, Taxonomy

LOSSES = oracle.LOSSES


def random_dag(rng, n_nodes=10, most_parents=3):
    parents = [rng.choice(v, size=min(v, int(rng.integers(0, most_parents + 1))), replace=False) for v in range(n_nodes)]
    edges = [(f"n{v}", f"n{p}") for v, above in enumerate(parents) for p in above]
    return Taxonomy.from_edges([(f"n{v}", None) for v, above in enumerate(parents) if len(above) == 0] + edges)


def random_graph(rng, n_labels=9, density=0.3):
    edges = [(f"l{a}", f"l{b}") for a in range(n_labels) for b in range(a) if rng.random() < density]
    return LabelGraph.from_edges(edges, [f"l{a}" for a in range(n_labels)])


def some_of(rng, n):
    return np.sort(rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False))


def make_task(rng, structure, loss, n_documents=25, n_features=6, tolerance=1e-5, max_iter=400):
    """Documents with a bias, classes of random documents, and costs between 0.1 and 10."""
    X = rng.normal(size=(n_documents, n_features)) * (rng.random((n_documents, n_features)) < 0.7)
    n_classes = len(structure.class_units)
    own = X @ rng.normal(size=(n_features, n_classes)) + 0.7 * rng.normal(size=(n_documents, n_classes)) > 0.5
    positive, negative, documents = (10 ** rng.uniform(-1, 1, size=n) for n in (n_classes, n_classes, n_documents))
    costs = Costs(*(cost.astype(np.float32) for cost in (positive, negative, documents)))
    rows = arrange_rows(csr_array(X.astype(np.float32)))
    settings = Settings(loss=loss, tolerance=tolerance, max_iter=max_iter)
    return GraphProblem(rows, csc_array(own), structure, costs, settings)


def solve_graph(problem, executor=None):
    return graph_solver.solve_graph(problem, executor or SerialExecutor(), with_pairs=True)


def weights_of(solution, rows):
    """Units × features of the rows, the bias first."""
    weights = solution.weights
    W = np.zeros((len(weights.bias), rows.n_features))
    W[:, rows.place] = weights.deltas.toarray()
    if rows.has_bias:
        W[:, 0] = weights.bias
    return W


def as_the_oracle_takes_it(task, M=None, class_units=None):
    rows, own = task.rows, task.own.toarray()
    X = csr_array((rows.values, rows.features, rows.offsets), shape=(len(rows), rows.n_features)).toarray().astype(float)
    costs = np.where(own, task.costs.positive, task.costs.negative) * task.costs.documents[:, None].astype(float)
    M = task.structure.M.toarray() if M is None else M
    return M, X, np.where(own, 1.0, -1.0), costs, task.structure.class_units if class_units is None else class_units


def assert_solved(task, executor=None):
    """The objective that the solver reports is that of its weights, and near the best; its bound is below the best."""
    solution, problem, loss = solve_graph(task, executor), as_the_oracle_takes_it(task), task.settings.loss
    _, primal, dual = oracle.solve(*problem, loss)
    value = oracle.objective(weights_of(solution, task.rows), *problem, loss)
    assert value == pytest.approx(solution.certificate.primal, rel=1e-5)
    assert value <= primal * (1 + 1e-4)
    assert solution.certificate.dual <= primal * (1 + 1e-6)
    assert solution.certificate.gap <= 3 * task.settings.tolerance  # dear documents leave some rounding in single precision
    return solution, dual
