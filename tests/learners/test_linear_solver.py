"""The dual solver against an independent convex solver, on small random trees, forests, DAGs and flat classes."""

import numpy as np
import pytest
from oracles import recursive_regularization as oracle
from scipy.sparse import csc_array, csr_array, random_array
from seeds import each_seed

from ramify import Taxonomy
from ramify.learners.linear import dual_solver, flat_worker
from ramify.learners.linear.problem import Costs, Problem, Settings, arrange_rows
from ramify.learners.linear.taxonomy_ties import tie_along_paths, tie_flat
from ramify.parallel import choose_executor

LOSSES = ["hinge", "squared_hinge", "logistic"]


def random_taxonomy(rng, n_nodes, roots):
    """Nodes 0, 1, …, each below an earlier one; the first few are roots."""
    parents = [None if node < roots else int(rng.integers(node)) for node in range(n_nodes)]
    return Taxonomy.from_edges([(f"n{v}", None if p is None else f"n{p}") for v, p in enumerate(parents)])


def random_problem(seed, n_docs=30, n_features=12, n_nodes=9, roots=1, several=False):
    rng = np.random.default_rng(seed)
    taxonomy = random_taxonomy(rng, n_nodes, roots)
    X = csr_array(random_array((n_docs, n_features), density=0.4, rng=rng, format="csr")).astype(np.float32)
    labels = [
        set(rng.choice(n_nodes, size=1 + (several and rng.random() < 0.3), replace=False).tolist()) for _ in range(n_docs)
    ]
    rows = np.repeat(np.arange(n_docs), [len(row) for row in labels])
    own = csr_array((np.ones(len(rows), bool), (rows, [v for row in labels for v in row])), shape=(n_docs, n_nodes))
    return X, own, taxonomy, rng


def tie_in_dag(taxonomy, labelled):
    """The ties of a DAG: the same taxonomy, with one or two more parents for most nodes, all of them earlier nodes."""
    rng, edges = np.random.default_rng(len(taxonomy) + int(labelled.sum())), []
    for node, name in enumerate(taxonomy.names):
        parents = set(taxonomy.parents_of(node).tolist())
        parents |= set(rng.integers(node, size=int(rng.integers(3))).tolist() if parents else [])
        edges += [(name, taxonomy.names[parent]) for parent in sorted(parents)] or [(name, None)]
    dag = Taxonomy.from_edges(edges)
    assert dag.names == taxonomy.names
    return tie_along_paths(dag, labelled)


TIES = [tie_flat, tie_along_paths, tie_in_dag]


def make_problem(X, own, forest, costs, loss, tolerance=1e-5, seed=0, max_iter=3000, bias=True):
    rows = arrange_rows(X, bias)
    settings = Settings(loss, tolerance, max_iter, seed)
    return Problem(rows, csc_array(own[:, forest.class_nodes]), forest, costs, settings)


def solve(problem, start=None, threads=1, executor=None):
    return dual_solver.solve(problem, executor or choose_executor(threads), start, keep_dual=True)


def unit_costs(forest, n_docs, C=1.0):
    each = np.full(len(forest.class_nodes), C, dtype=np.float32)
    return Costs(each, each.copy(), np.ones(n_docs, dtype=np.float32))


def oracle_problem(problem):
    """The same problem for the slow twin: M, dense documents, signs, costs and class units."""
    forest, rows = problem.forest, problem.rows
    units, place = units_of(forest), {}
    place.update((unit, k) for k, unit in enumerate(units))
    M = oracle.ancestor_regularizer(len(units), [(place[u], place[a]) for u in units for a in ancestors_of(forest, u)])
    X = csr_array((rows.values, rows.features, rows.offsets), shape=(len(rows), rows.n_features)).toarray().astype(float)
    is_own = problem.own.toarray()
    signs = np.where(is_own, 1.0, -1.0)
    costs = np.where(is_own, problem.costs.positive, problem.costs.negative) * problem.costs.documents[:, None]
    return M, X, signs, costs.astype(float), np.flatnonzero(forest.class_of[units] >= 0)


def units_of(forest):
    """All units but joins, which have no weights of their own."""
    return np.flatnonzero(~forest.joins.is_join).tolist()


def ancestors_of(forest, unit):
    """One step up after the other; a join is passed, and what it adds is taken along."""
    found = []
    while (unit := int(forest.parent[unit])) >= 0:
        found += forest.joins.added_by(unit) or [unit]
    return found


def objective_of(problem, solution):
    """The objective of the weights that are kept, by the twin."""
    M, X, signs, costs, units = oracle_problem(problem)
    weights = solution.weights
    W = np.zeros((len(M), problem.rows.n_features))
    for k, unit in enumerate(units_of(problem.forest)):
        w, b = weights.of_unit(unit)
        W[k, problem.rows.place], W[k, 0] = w, b
    return oracle.objective(W, M, X, signs, costs, units, problem.settings.loss)


@pytest.fixture(params=["all pairs", "near pairs first"])
def pairs_at_first(request, monkeypatch):
    """Small problems take all pairs at once; here also by way of near pairs and screening."""
    if request.param == "near pairs first":
        monkeypatch.setattr(dual_solver, "SMALL", 0)
        monkeypatch.setattr(dual_solver, "CANDIDATES", 1)
        monkeypatch.setattr(flat_worker, "MOST_VIOLATORS", 3)


@pytest.mark.usefixtures("pairs_at_first")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tie", TIES)
@each_seed(6)
def test_the_objective_is_that_of_an_independent_solver(loss, tie, seed):
    X, own, taxonomy, rng = random_problem(seed, roots=1 + seed % 3, several=seed % 2 == 1)
    forest = tie(taxonomy, np.unique(own.indices).astype(np.int64))
    C = float(rng.choice([0.01, 0.3, 1, 5]))
    costs = unit_costs(forest, X.shape[0], C)
    problem = make_problem(X, own, forest, costs, loss)
    solution = solve(problem)
    _, best, _ = oracle.solve(*oracle_problem(problem), loss)
    found = solution.certificate
    assert found.gap <= 1e-5
    assert found.dual <= best * (1 + 1e-6)
    objective = objective_of(problem, solution)
    assert objective == pytest.approx(found.primal, rel=1e-4)
    assert best * (1 - 1e-6) <= objective <= best * (1 + 1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tie", TIES)
def test_weights_of_classes_and_documents_count(loss, tie):
    X, own, taxonomy, rng = random_problem(11, n_nodes=7, roots=2)
    forest = tie(taxonomy, np.unique(own.indices).astype(np.int64))
    n = len(forest.class_nodes)
    documents = rng.choice([0, 0.5, 1, 3], size=X.shape[0]).astype(np.float32)
    costs = Costs(rng.uniform(0.1, 3, n).astype(np.float32), rng.uniform(0.1, 3, n).astype(np.float32), documents)
    problem = make_problem(X, own, forest, costs, loss)
    solution = solve(problem)
    _, best, _ = oracle.solve(*oracle_problem(problem), loss)
    assert objective_of(problem, solution) == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_inner_delta_is_the_sum_of_those_below_it(loss):
    X, own, taxonomy, _ = random_problem(5)
    forest = tie_along_paths(taxonomy, np.unique(own.indices).astype(np.int64))
    problem = make_problem(X, own, forest, unit_costs(forest, X.shape[0]), loss, tolerance=1e-6)
    weights = solve(problem).weights
    deltas = np.column_stack([weights.deltas.toarray(), weights.bias])
    for unit in np.flatnonzero(forest.class_of < 0):
        below = deltas[forest.parent == unit].sum(axis=0)
        np.testing.assert_allclose(deltas[unit], below, atol=2e-2 * np.abs(deltas).max())


@pytest.mark.parametrize("tie", TIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_start_from_another_cost_leads_to_the_same_objective(tie, loss):
    X, own, taxonomy, _ = random_problem(3)
    forest = tie(taxonomy, np.unique(own.indices).astype(np.int64))
    problems = [make_problem(X, own, forest, unit_costs(forest, X.shape[0], C), loss) for C in (0.1, 2.0)]
    cold, warm = solve(problems[1]), solve(problems[1], solve(problems[0]))
    assert warm.certificate.gap <= 1e-5
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=1e-4)


@pytest.mark.parametrize("tie", TIES)
def test_threads_agree_within_the_gap_and_a_seed_repeats_bit_for_bit(tie):
    X, own, taxonomy, _ = random_problem(8, n_docs=60, n_nodes=20, roots=3)
    forest = tie(taxonomy, np.unique(own.indices).astype(np.int64))
    costs = unit_costs(forest, X.shape[0])
    found = {t: solve(make_problem(X, own, forest, costs, "hinge"), threads=t) for t in (1, 2, 4)}
    again = solve(make_problem(X, own, forest, costs, "hinge"), threads=2)
    for t in (1, 2, 4):
        assert found[t].certificate.primal == pytest.approx(found[1].certificate.primal, rel=2e-5)
        problem = make_problem(X, own, forest, costs, "hinge")
        assert objective_of(problem, found[t]) == pytest.approx(found[t].certificate.primal, rel=1e-5)
    np.testing.assert_array_equal(again.weights.deltas.data, found[2].weights.deltas.data)
    np.testing.assert_array_equal(again.pairs.alphas, found[2].pairs.alphas)


def test_training_that_stops_early_reports_its_gap():
    X, own, taxonomy, _ = random_problem(2)
    forest = tie_flat(taxonomy, np.unique(own.indices).astype(np.int64))
    problem = make_problem(X, own, forest, unit_costs(forest, X.shape[0], 100.0), "hinge", tolerance=1e-9, max_iter=1)
    assert solve(problem).certificate.gap > 1e-9
