"""The solver of DAGs and label graphs against its slow twin, which proves its optimum."""

import numpy as np
import pytest
from graph_problems import (
    LOSSES,
    as_the_oracle_takes_it,
    assert_solved,
    make_task,
    random_dag,
    random_graph,
    solve_graph,
    some_of,
    weights_of,
)
from oracles import recursive_regularization as oracle
from seeds import each_seed

from ramify.errors import InputError
from ramify.learners.linear import graph_solver as graph_solver
from ramify.learners.linear.taxonomy_ties import ANCHOR, matrix_of, tie_along_paths, tie_dag, tie_flat, tie_graph
from ramify.parallel import SerialExecutor, ThreadExecutor
from ramify.taxonomy import Taxonomy


@pytest.mark.parametrize("loss", LOSSES)
@each_seed(4)
def test_a_dag_reaches_the_optimum(loss, seed):
    rng = np.random.default_rng(seed)
    taxonomy = random_dag(rng)
    assert_solved(make_task(rng, tie_dag(taxonomy, some_of(rng, len(taxonomy))), loss))


@pytest.mark.parametrize("loss", LOSSES)
@each_seed(4)
def test_a_graph_reaches_the_optimum(loss, seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, density=(0.1, 0.2, 0.4, 0.7)[seed])
    assert_solved(make_task(rng, tie_graph(graph, some_of(rng, len(graph))), loss))


@each_seed(5)
def test_the_matrix_of_a_dag_is_the_oracles(seed):
    rng = np.random.default_rng(seed)
    taxonomy = random_dag(rng)
    every = np.arange(len(taxonomy))
    structure = tie_dag(taxonomy, every)
    extra = np.flatnonzero(~taxonomy.is_leaf)
    edges = [(v, p) for v in every for p in taxonomy.parents_of(v)]
    edges += [(len(every) + place, v) for place, v in enumerate(extra)]
    np.testing.assert_array_equal(structure.M.toarray(), oracle.hierarchy_regularizer(len(structure), edges))
    np.testing.assert_array_equal(structure.class_nodes, every)
    np.testing.assert_array_equal(structure.node, np.concatenate([every, extra]))


@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
def test_the_matrix_of_a_graph_is_the_oracles(density):
    graph = random_graph(np.random.default_rng(0), density=density)
    edges = [(a, b) for a in range(len(graph)) for b in graph.neighbours_of(a) if a < b]
    M = oracle.graph_regularizer(len(graph), edges, ANCHOR)
    np.testing.assert_allclose(tie_graph(graph, np.array([1])).M.toarray(), M, rtol=1e-15)


def test_only_nodes_with_a_labelled_node_at_or_below_them_are_units():
    taxonomy = Taxonomy.from_edges([("a", None), ("b", None), ("c", "a"), ("c", "b"), ("d", "c"), ("e", "b"), ("f", "d")])
    structure = tie_dag(taxonomy, np.array([taxonomy.index("d")]))
    assert [taxonomy.names[n] for n in structure.node] == ["a", "b", "c", "d"]
    assert structure.class_units.tolist() == [3]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_tree_given_as_a_dag_has_the_trees_optimum(loss):
    rng = np.random.default_rng(3)
    tree = random_dag(rng, n_nodes=9, most_parents=1)
    labelled = some_of(rng, len(tree))
    task, forest = make_task(rng, tie_dag(tree, labelled), loss), tie_along_paths(tree, labelled)
    edges = [(unit, parent) for unit, parent in enumerate(forest.parent) if parent >= 0]
    M = oracle.hierarchy_regularizer(len(forest), edges)
    np.testing.assert_array_equal(matrix_of(forest).M.toarray(), M)
    unit_of = {node: unit for unit, node in enumerate(forest.node) if forest.class_of[unit] >= 0}
    units = [unit_of[node] for node in task.structure.class_nodes]
    _, primal, _ = oracle.solve(*as_the_oracle_takes_it(task, M, units), loss)
    assert solve_graph(task).certificate.primal == pytest.approx(primal, rel=1e-4)


def test_flat_classes_have_the_identity():
    structure = matrix_of(tie_flat(Taxonomy.flat(["a", "b", "c"]), np.array([0, 2])))
    np.testing.assert_array_equal(structure.M.toarray(), np.eye(2))
    assert structure.class_nodes.tolist() == [0, 2]


@pytest.mark.parametrize("loss", LOSSES)
def test_units_without_documents_are_the_weighted_mean_of_their_neighbours(loss):
    rng = np.random.default_rng(1)
    graph = random_graph(rng, density=0.4)
    task = make_task(rng, tie_graph(graph, np.array([0, 3, 4, 7])), loss, tolerance=1e-3)
    W, M = weights_of(solve_graph(task), task.rows), task.structure.M.toarray()
    for unit in (1, 2, 5, 6, 8):
        others = M[unit].copy()
        others[unit] = 0
        np.testing.assert_allclose(W[unit], -others @ W / M[unit, unit], atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_isolated_labels_are_flat_classes(loss):
    rng = np.random.default_rng(2)
    problem = make_task(rng, tie_graph(random_graph(rng, 5, density=0), np.array([0, 2, 3])), loss)
    solution, _ = assert_solved(problem)
    assert not weights_of(solution, problem.rows)[[1, 4]].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_complete_graph_reaches_the_optimum(loss):
    rng = np.random.default_rng(4)
    assert_solved(make_task(rng, tie_graph(random_graph(rng, 7, density=1.1), np.arange(7)), loss))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_single_class_reaches_the_optimum(loss):
    rng = np.random.default_rng(5)
    assert_solved(make_task(rng, tie_graph(random_graph(rng, 1), np.array([0])), loss))


def test_documents_of_no_cost_change_nothing():
    rng = np.random.default_rng(6)
    task = make_task(rng, tie_graph(random_graph(rng), np.arange(5)), "logistic")
    task.costs.documents[::2] = 0
    assert_solved(task)


def test_a_solution_can_be_repeated_with_any_number_of_threads():
    first, second, third = (
        solve_graph(make_task(rng, tie_graph(random_graph(rng, 40), np.arange(30)), "hinge", max_iter=8), executor)
        for rng, executor in (
            (np.random.default_rng(0), SerialExecutor()),
            (np.random.default_rng(0), SerialExecutor()),
            (np.random.default_rng(0), ThreadExecutor(3)),
        )
    )
    for other in (second, third):
        np.testing.assert_array_equal(first.weights.deltas.toarray(), other.weights.deltas.toarray())
        np.testing.assert_array_equal(first.weights.bias, other.weights.bias)
        np.testing.assert_array_equal(first.pairs.alphas, other.pairs.alphas)
        assert first.certificate == other.certificate


def test_the_dual_variables_are_the_bound():
    rng = np.random.default_rng(8)
    task = make_task(rng, tie_dag(random_dag(rng), np.arange(10)), "hinge")
    pairs = solve_graph(task).pairs
    alphas = np.zeros(task.own.shape)
    alphas[pairs.documents, np.repeat(np.arange(len(pairs)), np.diff(pairs.offsets))] = pairs.alphas
    problem = as_the_oracle_takes_it(task)
    assert oracle.dual_objective(alphas, *problem, "hinge") == pytest.approx(oracle.solve(*problem, "hinge")[1], rel=1e-3)


def test_rounds_are_limited():
    rng = np.random.default_rng(9)
    certificate = solve_graph(make_task(rng, tie_graph(random_graph(rng), np.arange(9)), "hinge", max_iter=2)).certificate
    assert certificate.rounds == 2
    assert certificate.dual <= certificate.primal


def test_too_many_weights_are_refused_with_a_way_out(monkeypatch):
    monkeypatch.setattr(graph_solver, "MOST_WEIGHTS", 40)
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="keep at most 4 features"):
        solve_graph(make_task(rng, tie_graph(random_graph(rng), np.arange(9)), "hinge"))
